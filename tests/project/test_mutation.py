"""The faults that `benchmarks.mutation` puts into the source: where, which, and whether found."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest
from support.environment.sources import ROOT

from benchmarks import mutation
from benchmarks.mutation import drawn, faults_of, judged, main, relevant_tests

SOURCE = """\
\"\"\"é: bytes are no characters.\"\"\"
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import a
def f(x: int | None, y: bool = True) -> int:
    'says'
    if x < 1 and y:
        raise ValueError(f"{x + 1}")
    z = min(x, 2) - 3 if not y else x
    print(z)
    return z
"""


def test_every_kind_of_fault_is_put_where_it_belongs() -> None:
    faults = list(faults_of("f.py", SOURCE))
    found = [(fault.line, fault.kind, fault.text) for fault in faults]
    assert sorted(found) == [
        (5, "constant", "(False)"),
        (7, "and, or", "(x < 1 or y)"),
        (7, "comparison", "(x <= 1)"),
        (7, "constant", "(2)"),
        (8, "drop a statement", "pass"),
        (9, "arithmetic", "(min(x, 2) + 3)"),
        (9, "constant", "(3)"),
        (9, "constant", "(4)"),
        (9, "min, max, any, all", "(max(x, 2))"),
        (9, "negation", "(min(x, 2) - 3 if not not y else x)"),
        (9, "negation", "(y)"),
        (10, "drop a statement", "pass"),
    ]
    for fault in faults:
        changed = fault.put_into(SOURCE.encode()).decode()
        ast.parse(changed)
        assert changed.splitlines()[: fault.line - 1] == SOURCE.splitlines()[: fault.line - 1]
        assert changed != SOURCE


def test_every_module_has_tests() -> None:
    for package in mutation.PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            names = relevant_tests(path.relative_to(ROOT).as_posix())
            assert names
            assert all((ROOT / name).exists() for name in names)
    assert relevant_tests("simulator/numbers/fast/floats.py")[0] == "tests/simulator/numbers"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of one package: what its only test looks at, and what it does not."""
    (tmp_path / "room").mkdir()
    (tmp_path / "tests" / "room").mkdir(parents=True)
    (tmp_path / "room" / "__init__.py").touch()
    (tmp_path / "room" / "one.py").write_text("def f(x):\n    return x < 1\n")
    test = "from room.one import f\n\n\ndef test_f():\n    assert f(0) and not f(1)\n"
    (tmp_path / "tests" / "room" / "test_one.py").write_text(test)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    monkeypatch.setattr(mutation, "ROOT", tmp_path)
    monkeypatch.setattr(mutation, "PACKAGES", ("room",))
    monkeypatch.setattr(mutation, "TESTS", {"room": ("room",)})
    return tmp_path


def test_a_fault_is_judged_in_a_copy_and_taken_out_again(project: Path, tmp_path: Path) -> None:
    source = (project / "room" / "one.py").read_bytes()
    every = drawn(9, 1, project)
    assert drawn(2, 1, project) == every[:2]
    by_kind = {fault.kind: fault for fault in every}
    assert set(by_kind) == {"comparison", "constant"}
    verdict = judged(by_kind["comparison"], project, 0, 60)
    assert verdict.found_by == "room/test_one.py::test_f"
    assert (project / "room" / "one.py").read_bytes() == source


def test_what_no_test_finds_is_said(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "tests" / "room" / "test_one.py").write_text("def test_f():\n    pass\n")
    source = (project / "room" / "one.py").read_bytes()
    assert main(["--sample", "1", "--seed", "1", "--jobs", "0"]) == 1
    out = capsys.readouterr().out
    assert "--seed 1, --sample 1" in out
    assert "| **no test** |" in out
    assert out.endswith("0 of 1 found\n")
    assert (project / "room" / "one.py").read_bytes() == source
