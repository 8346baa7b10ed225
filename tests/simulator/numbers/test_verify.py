"""`pypto-cast verify`: it finds differences, resumes, and leaves certificates."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from support.numbers.native_cases import NOWHERE, needs_native

from ascend_kernels.matrix import MATRIX
from simulator.numbers import elementwise, fast, verify
from simulator.numbers.convert import Conversion
from simulator.numbers.formats import FP16, FP32, INT8, INT16, INT32, INT64, Codes, Format
from simulator.numbers.native import library
from simulator.numbers.rounding import RoundMode, boundary_codes
from simulator.numbers.verify import (
    Certificate,
    CertificateError,
    Subject,
    VerifiedEngine,
    sources_digest,
)
from tiling.chips import A2_A3

pytest.importorskip("typer", reason="typer is not installed (extra cli)")

from pypto_cast.cli.commands import verify_command
from pypto_cast.cli.commands.verify_command import pair_named, subjects
from pypto_cast.cli.main import main


def engines_asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The engine of every conversion from now on, and if it was by the definition."""
    asked: list[object] = []
    real = elementwise.run

    def recorded(*operands: object, engine: str, exact: bool) -> None:
        asked.append((engine, exact))
        real(*operands, engine=engine, exact=exact)

    monkeypatch.setattr(elementwise, "run", recorded)
    return asked


def spoilt(real: Callable[..., None], *wrong: int) -> Callable[..., None]:
    """A conversion whose fast path is off by one at some source codes."""

    def run(conversions: object, values: Codes, out: Codes, *, exact: bool, **more: object) -> None:
        real(conversions, values, out, exact=exact, **more)
        if not exact:
            out[np.isin(values, wrong)] += out.dtype.type(1)

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    "variants",
    [False, pytest.param(True, marks=pytest.mark.exhaustive)],
    ids=["every_mode", "every_variant"],
)
@pytest.mark.parametrize(
    "engine",
    [
        pytest.param(engine, marks=pytest.mark.exhaustive if engine == "native" else ())
        for engine in get_args(VerifiedEngine)
    ],
)
def test_all_pairs_agree_on_boundaries(engine: VerifiedEngine, variants: bool) -> None:
    if engine == "native":
        needs_native()
    for rule in MATRIX[A2_A3].values():
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
    asked = engines_asked(monkeypatch)
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
    real, wrong = elementwise.run, spoilt(elementwise.run, 0x3C01)

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
    monkeypatch.setattr(elementwise, "run", spoilt(elementwise.run, 0x3C01))
    assert main(["verify", "--pair", "fp16-int8", "--mode", "RINT", "--jobs", "1"]) == 1
    shown = capsys.readouterr().out
    rows = [line.split() for line in shown.splitlines()]
    assert ["fp16-int8-rint", "65,536", "differs"] in rows
    assert ["code", "fast", "definition", "comparison"] in rows
    assert ["0x3c01", "0x2", "0x1", "fp16-int8-rint"] in rows
    assert main(["verify", "--pair", "fp16-int8", "--mode", "RINT", "--jobs", "1", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["comparisons"] == [{"name": "fp16-int8-rint", "codes": 65536, "result": "differs"}]
    difference = {"code": "0x3c01", "fast": "0x2", "definition": "0x1", "name": "fp16-int8-rint"}
    assert (found["differences"], found["certificates"]) == ([difference], [])


def test_one_of_several_that_differs_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real, wrong = elementwise.run, spoilt(elementwise.run, 0x3C01)

    def run(chain: Sequence[Conversion], values: Codes, out: Codes, **more: object) -> None:
        (wrong if chain[-1].mode is RoundMode.FLOOR else real)(chain, values, out, **more)

    monkeypatch.setattr(elementwise, "run", run)
    assert main(["verify", "--pair", "fp16-int8", "--jobs", "1"]) == 1
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("fp16-")]
    assert len(lines) > 2
    assert [line.split()[0] for line in lines if "equal" not in line] == ["fp16-int8-floor"]


def test_a_certificate_is_read_by_others() -> None:
    """Its fields under their own names, the pair and the mode among them."""
    made = Certificate(name="fp16-int8-rint-off", exhaustive=True, codes=9, digests=("a", "b"))
    found = json.loads(made.to_json())
    assert {name: found[name] for name in ("name", "pair", "mode", "exhaustive", "codes")} == {
        "name": "fp16-int8-rint-off",
        "pair": "fp16-int8",
        "mode": "rint",
        "exhaustive": True,
        "codes": 9,
    }
    assert found["digests"] == ["a", "b"]
    assert found["checksum"] == hashlib.sha256(b"ab").hexdigest()
    assert (found["engine"], found["confirmed"]) == ("numpy", {})
    assert found["versions"]["numpy"] == np.__version__


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
    (printed,) = json.loads(capsys.readouterr().out)["certificates"]
    assert Certificate.from_json(json.dumps(printed)) == certificate


def test_a_certificate_of_the_same_code_stays_unless_it_is_replaced(tmp_path: Path) -> None:
    command = ["verify", "--pair", "fp16-int8", "--mode", "RINT", "--output", str(tmp_path)]
    assert main(command) == 0
    path = tmp_path / "fp16-int8-rint.json"
    found = json.loads(path.read_text())
    other = {"digests": ["0" * 64], "checksum": hashlib.sha256(b"0" * 64).hexdigest()}
    path.write_text(json.dumps(found | other))
    assert main(command) == 0
    assert json.loads(path.read_text())["digests"] == other["digests"]
    assert main([*command, "--force"]) == 0
    assert json.loads(path.read_text())["digests"] == found["digests"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--pair", "fp32-int8"], "no pair 'fp32-int8'; the pairs are fp32-fp16, "),
        (["--pair", "fp32-int8", "--jobs", "0"], "jobs"),
        (["--pair", "fp32-bf16", "--mode", "ODD"], "fp32-bf16 has no mode ODD"),
        (["--pair", "fp16-fp32", "--output", "nowhere"], "nowhere is no directory"),
        (["--confirm", "nowhere"], "nowhere has no certificate of what is asked for"),
        (["--confirm", ".", "--output", "."], "--output would change nothing beside --confirm"),
    ],
)
def test_errors_are_one_line(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", *arguments]) == 2
    error = capsys.readouterr().err
    assert text in error
    assert error.count("\n") == 1


def test_an_interrupted_command_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The state is kept beside the certificate, and goes when that is written."""
    command = ["verify", "--pair", "fp16-int8", "--mode", "RINT", "--output", str(tmp_path)]

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(verify_command, "certificate", interrupted)
    assert main(command) == 2
    (part,) = tmp_path.iterdir()
    assert part.name == ".fp16-int8-rint.json.pypto-cast-part"
    monkeypatch.undo()
    monkeypatch.setattr(verify, "compare", interrupted)  # there is nothing left to compare
    capsys.readouterr()
    assert main(command) == 0
    assert capsys.readouterr().err == ""
    assert [path.name for path in tmp_path.iterdir()] == ["fp16-int8-rint.json"]


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


@pytest.mark.slow
def test_another_process_has_the_same_fast_paths() -> None:
    """The other process gets a copy; a fast path it does not find would never be compared."""
    for rule in MATRIX[A2_A3].values():
        for subject in subjects(rule, None, exhaustive=True, variants=True):
            for conversion in pickle.loads(pickle.dumps(subject)).conversions:
                assert fast.loop.__wrapped__(conversion) is not None, subject.name


def test_a_difference_is_found_by_every_process(monkeypatch: pytest.MonkeyPatch) -> None:
    if multiprocessing.get_start_method() != "fork":
        pytest.skip("processes that are not forked do not share what this test breaks")
    monkeypatch.setattr(verify, "BLOCK_CODES", 1 << 15)
    monkeypatch.setattr(elementwise, "run", spoilt(elementwise.run, 0x3C01, 0xBC01))
    (subject,) = subjects(pair_named("fp16-int8"), RoundMode.RINT, exhaustive=False, variants=False)
    results = verify.verify(subject, jobs=2)
    assert {r.block: [m.code for m in r.mismatches] for r in results} == {0: [0x3C01], 1: [0xBC01]}


def test_the_definition_is_not_compared_with_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    (subject,) = subjects(pair_named("int8-fp16"), None, exhaustive=False, variants=False)
    monkeypatch.setattr(fast, "loop", lambda conversion: None)
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


def test_exhaustive_means_every_code() -> None:
    (subject,) = subjects(pair_named("int32-fp16"), None, exhaustive=True, variants=False)
    assert (subject.total_codes, subject.blocks) == (2**32, 256)
    last: Subject = subject
    assert last.codes(255)[-1] == 2**32 - 1
    assert last.codes(1)[0] == 2**24


def test_the_digest_of_sources_follows_what_they_do(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    python, header = inner / "code.py", inner / "code.h"
    python.write_text('"""Says."""\n\ndef f(x: int) -> int:\n    """Does."""\n    return x + 1\n')
    header.write_text("int f(int);\n")
    first = sources_digest(tmp_path, "fast")
    python.write_text("# Why.\ndef f( x: int ) -> int:\n    return (x + 1)\n")
    assert sources_digest(tmp_path, "fast") == first
    python.write_text("def f(x: int) -> int:\n    return x + 2\n")
    changed = sources_digest(tmp_path, "fast")
    header.write_text("long f(int);\n")
    assert len({first, changed, sources_digest(tmp_path, "fast")}) == 3
    python.rename(tmp_path / "code.py")
    assert len({first, changed, sources_digest(tmp_path, "fast")}) == 3
