"""Certificates: damage is refused, other engines confirm them, and those there are still hold."""

from __future__ import annotations

import json
import multiprocessing
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from support.environment.sources import ROOT
from support.numbers.codes import SEED
from support.numbers.native_cases import needs_native
from test_verify import engines_asked, spoilt

from ascend_kernels.matrix import MATRIX
from pypto_cast.cli.commands.verify_command import certificate, pair_named, subjects
from pypto_cast.cli.main import main
from simulator.numbers import elementwise, verify
from simulator.numbers.rounding import RoundMode
from simulator.numbers.verify import Certificate, CertificateError, VerifiedEngine, sources_digest
from tiling.chips import A2_A3

CERTIFICATES = sorted((ROOT / "docs" / "certificates").glob("*.json"))
SAMPLE_BLOCKS = (71, 0, 143, 200)
SMALL_FLOATS_OF_950 = ("fp32-hf8-round", "fp32-e4m3fn-rint", "fp32-e5m2-rint")
"""Of the 950, rounded as its documents have by default."""
NUMPY_PAIRS = ("fp32-fp16", "fp32-bf16", "fp32-int16", "fp32-int32", "int32-fp32", "int32-fp16")


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
    assert "fp16-int8-rint  65,536  confirmed" in capsys.readouterr().out
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
    printed = json.loads(capsys.readouterr().out)
    assert printed["certificates"][0]["confirmed"] == found.confirmed
    assert [row["result"] for row in printed["comparisons"]] == ["confirmed"]


def test_another_engine_takes_over_a_certificate(
    outdated: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It gives every digest, so that the definition need not be computed again."""
    needs_native()
    path = outdated / "fp16-int8-rint.json"
    old = Certificate.from_json(path.read_text())
    asked = engines_asked(monkeypatch)
    command = ["verify", "--pair", "fp16-int8", "--mode", "RINT", "--engine", "native"]
    command += ["--jobs", "1", "--output", str(outdated)]
    assert main(command) == 0
    assert asked == [("native", False)]
    taken = Certificate.from_json(path.read_text())
    assert taken == replace(old, confirmed={"native": verify.versions("native")})
    assert (taken.engines, taken.is_current("native")) == ({"numpy", "native"}, True)
    assert not taken.is_current("numpy")
    monkeypatch.setattr(elementwise, "run", spoilt(elementwise.run, 0x3C01))
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
    monkeypatch.setattr(elementwise, "run", spoilt(elementwise.run, 0x3C01))
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
    monkeypatch.setattr(elementwise, "run", spoilt(elementwise.run, 0x4001, 0xC001))
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
    for rule in MATRIX[A2_A3].values():
        if rule.src.bits == 32:
            for subject in subjects(rule, None, "native", exhaustive=True, variants=True):
                assert "native" in engines[subject.name], subject.name
    for pair in NUMPY_PAIRS:
        for subject in subjects(pair_named(pair), None, exhaustive=True, variants=False):
            assert "numpy" in engines[subject.name], subject.name
    assert {*SMALL_FLOATS_OF_950} <= {*engines}


def test_a_pair_of_two_families_has_a_name_in_each() -> None:
    """Their results differ under SaturationMode.OFF, and so do the certificates."""
    names: list[str] = []
    for family in MATRIX:
        rule = pair_named("fp32-int16", (family,))
        names += [s.name for s in subjects(rule, RoundMode.RINT, exhaustive=True, variants=True)]
    assert names == [
        *("fp32-int16-rint", "fp32-int16-rint-off"),
        *("950-fp32-int16-rint", "950-fp32-int16-rint-off"),
    ]
    assert pair_named("fp32-hf8").family == "950"


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


@pytest.mark.sampled(32)
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=() if index % 3 == SEED % 3 else pytest.mark.exhaustive)
        for index, path in enumerate(CERTIFICATES)
    ],
    ids=lambda path: path.stem,
)
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
