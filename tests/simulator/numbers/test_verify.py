"""`pypto-cast verify`: it finds differences, resumes, confirms, and its certificates hold."""

from __future__ import annotations

import json
import multiprocessing
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from support.numbers.native_cases import NOWHERE, needs_native

from ascend_kernels.matrix import MATRIX
from simulator.numbers import elementwise, fast, verify
from simulator.numbers.boundaries import boundary_codes
from simulator.numbers.formats import FP16, FP32, INT8, INT16, INT32, INT64, Codes, Format
from simulator.numbers.native import library
from simulator.numbers.rounding import RoundMode
from simulator.numbers.sources import sources_digest
from simulator.numbers.verify import Certificate, CertificateError, Subject, VerifiedEngine

pytest.importorskip("typer", reason='the command needs typer: pip install "pypto-cast[cli]"')

from pypto_cast.cli.commands.verify_command import certificate, pair_named, subjects
from pypto_cast.cli.main import main

CERTIFICATES = sorted((Path(__file__).parents[3] / "docs" / "certificates").glob("*.json"))
SAMPLE_BLOCKS = (71, 0, 143, 200)
NUMPY_PAIRS = ("fp32-fp16", "fp32-bf16", "fp32-int16", "fp32-int32", "int32-fp32", "int32-fp16")


def _wrong(real: Callable[..., None], *wrong: int) -> Callable[..., None]:
    """A conversion whose fast path is off by one at some source codes."""

    def run(conversions: object, values: Codes, out: Codes, *, exact: bool, **more: object) -> None:
        real(conversions, values, out, exact=exact, **more)
        if not exact:
            out[np.isin(values, wrong)] += out.dtype.type(1)

    return run


@pytest.mark.parametrize(
    "variants",
    [False, pytest.param(True, marks=pytest.mark.exhaustive)],
    ids=["every_mode", "every_variant"],
)
@pytest.mark.parametrize("engine", get_args(VerifiedEngine))
def test_all_pairs_agree_on_boundaries(engine: VerifiedEngine, variants: bool) -> None:
    if engine == "native":
        needs_native()
    for rule in MATRIX.values():
        for subject in subjects(rule, None, engine, exhaustive=False, variants=variants):
            for result in verify.verify(subject, jobs=1):
                assert result.mismatches == (), subject.name


def test_a_certificate_names_its_engine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_native()
    command = ["verify", "--pair", "fp16-int8", "--mode", "RINT", "--engine", "native"]
    assert main([*command, "--output", str(tmp_path), "--jobs", "1"]) == 0
    path = tmp_path / "fp16-int8-rint.json"
    made = Certificate.from_json(path.read_text())
    assert (made.name, made.engine) == (path.stem, "native")
    assert made.versions["instructions"] == library.native().level
    assert main([*command, "--confirm", str(tmp_path), "--force", "--jobs", "1"]) == 0
    confirmed = Certificate.from_json(path.read_text())
    assert confirmed.confirmed == {"native": made.versions}
    asked: list[object] = []
    real = elementwise.run

    def noted(*operands: object, engine: str, exact: bool) -> None:
        asked.append((engine, exact))
        real(*operands, engine=engine, exact=exact)

    monkeypatch.setattr(elementwise, "run", noted)
    assert main([*command, "--jobs", "1"]) == 0
    assert asked == [("native", False), ("native", True)]
    monkeypatch.setenv(library.LIBRARY_VARIABLE, NOWHERE)
    library.find.cache_clear()
    capsys.readouterr()
    assert main([*command, "--jobs", "1"]) == 2
    library.find.cache_clear()
    assert f"the native engine cannot run: {NOWHERE} cannot be read" in capsys.readouterr().err


def made_natively() -> tuple[Subject, Certificate]:
    """A subject of the native engine, and its certificate; skips the test without the engine."""
    needs_native()
    (subject,) = subjects(
        pair_named("fp16-int8"), RoundMode.RINT, "native", exhaustive=False, variants=False
    )
    digests = (verify.digest(subject, 0),)
    return subject, Certificate(name=subject.name, exhaustive=True, codes=1 << 16, digests=digests)


def test_short_arrays_are_compared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """They have loops of their own in the native engine."""
    subject, made = made_natively()
    monkeypatch.setattr(verify, "_SHORT_CODES", 1 << 12)
    assert verify.compare(subject, 0).mismatches == ()
    assert verify.digest(subject, 0) == made.digests[0]
    real, wrong = elementwise.run, _wrong(elementwise.run, 0x3C01)

    def run(chain: object, values: Codes, out: Codes, **more: object) -> None:
        (wrong if values.size == 1 << 12 else real)(chain, values, out, **more)

    monkeypatch.setattr(elementwise, "run", run)
    (found,) = verify.compare(subject, 0).mismatches
    assert (found.code, found.fast, found.definition) == (0x3C01, 2, 1)
    with pytest.raises(CertificateError, match="1 of 1 blocks give other results"):
        verify.confirm(made, subject, jobs=1)


def test_levels_are_confirmed_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    subject, made = made_natively()
    now = verify.versions("native")
    for level in ("one", "two", "one"):
        monkeypatch.setattr(verify, "versions", lambda _, at=level: {**now, "instructions": at})
        made = verify.confirm(made, subject, jobs=1)
    assert made.confirmed["native"] == {**now, "instructions": "one two"}
    other = {**now, "simulator": "0" * 16, "instructions": "three"}
    monkeypatch.setattr(verify, "versions", lambda _: {**other})
    assert verify.confirm(made, subject, jobs=1).confirmed["native"] == other


def test_a_difference_is_found_shown_and_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(elementwise, "run", _wrong(elementwise.run, 0x3C01))
    assert main(["verify", "--pair", "fp16-int8", "--mode", "RINT", "--jobs", "1"]) == 1
    shown = capsys.readouterr().out
    assert "differs" in shown
    assert "0x3c01" in shown
    assert "fast 0x2, definition 0x1" in shown


def test_agreement_leaves_a_certificate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["verify", "--pair", "fp16-int8", "--mode", "RINT", "--output", str(tmp_path)]
    assert main(command) == 0
    shown = capsys.readouterr()
    assert "equal" in shown.out
    # Nothing of the progress bar where no terminal shows it.
    assert shown.err == ""
    certificate = Certificate.from_json((tmp_path / "fp16-int8-rint.json").read_text())
    assert (certificate.name, certificate.codes) == ("fp16-int8-rint", 65536)
    assert certificate.exhaustive
    assert certificate.versions["numpy"] == np.__version__
    assert [path.name for path in tmp_path.iterdir()] == ["fp16-int8-rint.json"]
    assert main([*command, "--force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["checksum"] == certificate.checksum


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--pair", "fp32-int8"], "no pair 'fp32-int8'; the pairs are fp32-fp16, "),
        (["--pair", "fp32-int8", "--jobs", "0"], "jobs"),
        (["--pair", "fp32-bf16", "--mode", "ODD"], "fp32-bf16 has no mode ODD"),
        (["--pair", "fp16-fp32", "--output", "nowhere"], "nowhere is no directory"),
        (["--confirm", "nowhere"], "nowhere has no certificate of what is asked for"),
        (["--confirm", ".", "--output", "."], "leave out --output, --exhaustive and --variants"),
    ],
)
def test_errors_are_one_line(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", *arguments]) == 2
    error = capsys.readouterr().err
    assert text in error
    assert error.count("\n") == 1


def test_an_interrupted_run_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "BLOCK_CODES", 1 << 12)
    (subject,) = subjects(pair_named("int16-fp32"), None, exhaustive=False, variants=False)
    assert subject.blocks == 16
    state = tmp_path / "state"
    first = verify.verify(subject, jobs=1, state=state)
    done = [next(first).block for _ in range(5)]
    first.close()
    compared: list[int] = []
    real = verify.compare
    monkeypatch.setattr(
        verify, "compare", lambda s, block: compared.append(block) or real(s, block)
    )
    again = list(verify.verify(subject, jobs=1, state=state))
    assert sorted(result.block for result in again) == list(range(16))
    assert sorted([*done, *compared]) == list(range(16))


def test_a_state_of_another_subject_is_not_taken(tmp_path: Path) -> None:
    state = tmp_path / "state"
    (one,) = subjects(pair_named("int8-fp16"), None, exhaustive=False, variants=False)
    (other,) = subjects(pair_named("uint8-fp16"), None, exhaustive=False, variants=False)
    (first,) = verify.verify(one, jobs=1, state=state)
    (second,) = verify.verify(other, jobs=1, state=state)
    assert first.digest != second.digest


def test_processes_give_the_same_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "BLOCK_CODES", 1 << 14)
    (subject,) = subjects(pair_named("bf16-fp32"), None, exhaustive=False, variants=False)
    alone = {result.block: result.digest for result in verify.verify(subject, jobs=1)}
    shared = {block: verify.digest(subject, block) for block in range(subject.blocks)}
    assert alone == shared


def test_another_process_has_the_same_fast_paths() -> None:
    """The other process gets a copy; a fast path it does not find would never be compared."""
    for rule in MATRIX.values():
        for subject in subjects(rule, None, exhaustive=True, variants=True):
            for conversion in pickle.loads(pickle.dumps(subject)).conversions:
                assert fast.kernel.__wrapped__(conversion) is not None, subject.name


def test_a_difference_is_found_by_every_process(monkeypatch: pytest.MonkeyPatch) -> None:
    if multiprocessing.get_start_method() != "fork":
        pytest.skip("processes that are not forked do not share what this test breaks")
    monkeypatch.setattr(verify, "BLOCK_CODES", 1 << 15)
    monkeypatch.setattr(elementwise, "run", _wrong(elementwise.run, 0x3C01, 0xBC01))
    (subject,) = subjects(pair_named("fp16-int8"), RoundMode.RINT, exhaustive=False, variants=False)
    results = verify.verify(subject, jobs=2)
    assert {r.block: [m.code for m in r.mismatches] for r in results} == {0: [0x3C01], 1: [0xBC01]}


def test_the_definition_is_not_compared_with_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    (subject,) = subjects(pair_named("int8-fp16"), None, exhaustive=False, variants=False)
    monkeypatch.setattr(fast, "kernel", lambda conversion: None)
    no_fast_path = pytest.raises(
        ValueError, match="int8-fp16-exact has no fast path to hold against"
    )
    with no_fast_path:
        next(verify.verify(subject, jobs=1))
    made = Certificate(name=subject.name, exhaustive=True, codes=256, digests=("00",))
    with no_fast_path:
        verify.confirm(made, subject, jobs=1)


@pytest.mark.parametrize("fmt", [FP16, INT8, INT16], ids=str)
def test_narrow_formats_are_taken_whole(fmt: Format) -> None:
    assert boundary_codes(fmt).tolist() == list(range(1 << fmt.bits))


@pytest.mark.parametrize("fmt", [FP32, INT32, INT64], ids=str)
def test_boundaries_hold_what_rounding_decides_at(fmt: Format) -> None:
    codes = set(boundary_codes(fmt).tolist())
    assert codes >= {0, 1, (1 << fmt.bits) - 1, 1 << (fmt.bits - 1)}
    if fmt is FP32:
        tie_of_fp16 = 0x3F801000
        assert codes >= {tie_of_fp16 - 1, tie_of_fp16, tie_of_fp16 + 1, 0x7F800000, 0x7F800001}
    else:
        assert codes >= {1 << 24, (1 << 24) + 1, (1 << fmt.bits) - (1 << 24) - 1}


def test_a_damaged_certificate_is_refused() -> None:
    certificate = Certificate(name="fp16-int8-rint", exhaustive=True, codes=1, digests=("00",))
    text = certificate.to_json()
    assert Certificate.from_json(text) == certificate
    with pytest.raises(ValueError, match="checksum does not fit"):
        Certificate.from_json(text.replace('"00"', '"01"'))


@pytest.mark.parametrize(
    "text", ["{}", "[]", "", '{"checksum": "", "pair": "", "mode": "", "digests": 1}']
)
def test_other_text_is_no_certificate(text: str) -> None:
    with pytest.raises(CertificateError, match="no certificate: "):
        Certificate.from_json(text)


@pytest.fixture
def outdated(tmp_path: Path) -> Path:
    """A folder with one certificate, made before the code of the numbers changed."""
    command = ["verify", "--pair", "fp16-int8", "--mode", "RINT", "--output", str(tmp_path)]
    assert main(command) == 0
    path = tmp_path / "fp16-int8-rint.json"
    made = Certificate.from_json(path.read_text())
    assert made.is_current("numpy")
    old = replace(made, versions={**made.versions, "numpy": "1.0", "simulator": "0" * 16})
    assert not old.is_current("numpy")
    path.write_text(old.to_json())
    return tmp_path


def test_a_certificate_is_confirmed_by_the_fast_path_alone(
    outdated: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = outdated / "fp16-int8-rint.json"
    old = Certificate.from_json(path.read_text())
    ways: list[bool] = []
    real = elementwise.run
    monkeypatch.setattr(
        elementwise, "run", lambda *a, exact, **b: ways.append(exact) or real(*a, exact=exact, **b)
    )
    capsys.readouterr()
    assert main(["verify", "--confirm", str(outdated), "--jobs", "1"]) == 0
    assert ways == [False]
    assert "fp16-int8-rint  confirmed" in capsys.readouterr().out
    found = Certificate.from_json(path.read_text())
    assert found.is_current("numpy")
    assert not found.is_current("native")
    assert (found.confirmed["numpy"]["numpy"], found.versions) == (np.__version__, old.versions)
    assert replace(found, confirmed={}) == old
    written = path.read_bytes()
    assert main(["verify", "--confirm", str(outdated)]) == 0
    assert ways == [False]
    assert "of this code already" in capsys.readouterr().out
    assert path.read_bytes() == written
    assert main(["verify", "--confirm", str(outdated), "--force", "--json", "--jobs", "1"]) == 0
    assert ways == [False, False]
    assert json.loads(capsys.readouterr().out)[0]["confirmed"] == found.confirmed


def test_another_engine_takes_over_a_certificate(
    outdated: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It gives every digest, so that the definition need not be computed again."""
    needs_native()
    path = outdated / "fp16-int8-rint.json"
    old = Certificate.from_json(path.read_text())
    asked: list[object] = []
    real = elementwise.run

    def noted(*operands: object, engine: str, exact: bool) -> None:
        asked.append((engine, exact))
        real(*operands, engine=engine, exact=exact)

    monkeypatch.setattr(elementwise, "run", noted)
    command = ["verify", "--pair", "fp16-int8", "--mode", "RINT", "--engine", "native"]
    command += ["--jobs", "1", "--output", str(outdated)]
    assert main(command) == 0
    assert asked == [("native", False)]
    taken = Certificate.from_json(path.read_text())
    assert taken == replace(old, confirmed={"native": verify.versions("native")})
    assert (taken.engines, taken.is_current("native")) == ({"numpy", "native"}, True)
    assert not taken.is_current("numpy")
    monkeypatch.setattr(elementwise, "run", _wrong(noted, 0x3C01))
    assert main(command) == 0
    path.write_text(old.to_json())
    capsys.readouterr()
    assert main(command) == 2
    assert "1 of 1 blocks give other results" in capsys.readouterr().err
    assert Certificate.from_json(path.read_text()) == old


def test_a_certificate_of_fewer_codes_is_not_taken_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "fp32-fp16-rint.json"
    few = Certificate(name=path.stem, exhaustive=False, codes=1, digests=("00",))
    path.write_text(few.to_json())
    command = ["verify", "--pair", "fp32-fp16", "--mode", "RINT", "--exhaustive"]
    assert main([*command, "--output", str(tmp_path)]) == 2
    assert "--force" in capsys.readouterr().err
    assert path.read_text() == few.to_json()


def test_other_results_are_not_confirmed(
    outdated: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = outdated / "fp16-int8-rint.json"
    before = path.read_bytes()
    monkeypatch.setattr(elementwise, "run", _wrong(elementwise.run, 0x3C01))
    assert main(["verify", "--confirm", str(outdated), "--jobs", "1"]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "1 of 1 blocks give other results than its certificate says, block 0" in shown
    assert path.read_bytes() == before


def test_processes_confirm_every_block(monkeypatch: pytest.MonkeyPatch) -> None:
    if multiprocessing.get_start_method() != "fork":
        pytest.skip("processes that are not forked do not share what this test sets")
    monkeypatch.setattr(verify, "BLOCK_CODES", 1 << 14)
    (subject,) = subjects(pair_named("fp16-int8"), RoundMode.RINT, exhaustive=False, variants=False)
    results = {result.block: result for result in verify.verify(subject, jobs=1)}
    made = certificate(subject, results)
    assert verify.confirm(made, subject, jobs=2).confirmed == {"numpy": made.versions}
    monkeypatch.setattr(elementwise, "run", _wrong(elementwise.run, 0x4001, 0xC001))
    with pytest.raises(
        CertificateError, match=r"2 of 4 blocks give other .*, block 1 is the first"
    ):
        verify.confirm(made, subject, jobs=2)


def test_a_certificate_of_other_codes_is_not_confirmed() -> None:
    (subject,) = subjects(pair_named("fp16-int8"), RoundMode.RINT, exhaustive=False, variants=False)
    made = Certificate(name=subject.name, exhaustive=True, codes=1, digests=("00",))
    with pytest.raises(
        CertificateError, match=r"rint, 1 codes in 1 blocks; .*rint, 65536 codes in 1"
    ):
        verify.confirm(made, subject, jobs=1)


def test_there_are_certificates() -> None:
    """Of native for every row from 32 bits and every overflow; of numpy for what most casts are."""
    engines = {path.stem: Certificate.from_json(path.read_text()).engines for path in CERTIFICATES}
    for rule in MATRIX.values():
        if rule.src.bits == 32:
            for subject in subjects(rule, None, "native", exhaustive=True, variants=True):
                assert "native" in engines[subject.name], subject.name
    for pair in NUMPY_PAIRS:
        for subject in subjects(pair_named(pair), None, exhaustive=True, variants=False):
            assert "numpy" in engines[subject.name], subject.name


def _sampled(path: Path, engine: VerifiedEngine, blocks: tuple[int, ...]) -> None:
    """Its checksum, and by the engine the digests of some blocks; of one piece both ways."""
    certificate = Certificate.from_json(path.read_text())
    assert certificate.name == path.stem
    pair = "-".join(certificate.name.split("-")[:2])
    exhaustive = certificate.exhaustive
    named = subjects(pair_named(pair), None, engine, exhaustive=exhaustive, variants=True)
    subject = next(one for one in named if one.name == certificate.name)
    assert (certificate.codes, len(certificate.digests)) == (subject.total_codes, subject.blocks)
    for block in blocks:
        assert verify.digest(subject, block) == certificate.digests[block]
    codes = subject.codes(blocks[0])[:: 1 << 8]
    results = []
    for exact in (False, True):
        out = np.empty(codes.shape, subject.conversions[-1].dst.code_dtype)
        elementwise.run(subject.conversions, codes, out, exact=exact, engine=engine)
        results.append(out)
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("path", CERTIFICATES, ids=lambda path: path.stem)
def test_a_certificate_still_holds(path: Path) -> None:
    engine = Certificate.from_json(path.read_text()).engine
    if engine == "native":
        needs_native()
    _sampled(path, engine, SAMPLE_BLOCKS[:1])


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", CERTIFICATES, ids=lambda path: path.stem)
def test_a_certificate_holds_for_each_of_its_engines(path: Path) -> None:
    for engine in Certificate.from_json(path.read_text()).engines:
        if engine == "native":
            needs_native()
        _sampled(path, engine, SAMPLE_BLOCKS[1:])


@pytest.mark.parametrize("engine", get_args(VerifiedEngine))
def test_every_certificate_is_of_the_code_as_it_is(engine: VerifiedEngine) -> None:
    read = [Certificate.from_json(path.read_text()) for path in CERTIFICATES]
    mine = [one for one in read if engine in one.engines]
    outdated = [one.name for one in mine if not one.is_current(engine)]
    assert not outdated, (
        f"the code of the engine {engine} has changed since {len(outdated)} of {len(mine)} "
        "certificates were made or confirmed; if every result is meant to be the same, run\n"
        f"    pypto-cast verify --engine {engine} --confirm docs/certificates\n"
        f"and commit what it writes. They are {', '.join(outdated)}"
    )


def test_exhaustive_means_every_code() -> None:
    (subject,) = subjects(pair_named("int32-fp16"), None, exhaustive=True, variants=False)
    assert (subject.total_codes, subject.blocks) == (2**32, 256)
    last: Subject = subject
    assert last.codes(255)[-1] == 2**32 - 1
    assert last.codes(1)[0] == 2**24


def test_an_engine_is_digested_without_the_folder_of_the_other(tmp_path: Path) -> None:
    for folder in ("", "fast", "native"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "code.py").write_text("x = 1\n")
    before = [sources_digest(tmp_path, folder) for folder in ("native", "fast")]
    (tmp_path / "fast" / "code.py").write_text("x = 2\n")
    after = [sources_digest(tmp_path, folder) for folder in ("native", "fast")]
    assert [old == new for old, new in zip(before, after, strict=True)] == [False, True]
    numbers = Path(verify.__file__).parent
    for engine, left_out in (("numpy", "native"), ("native", "fast")):
        assert (numbers / left_out).is_dir()
        assert sources_digest(numbers, left_out) == verify.engine_digest(engine)
