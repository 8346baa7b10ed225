"""The faults that `benchmarks.mutation` puts into the source: where, which, and whether found."""

from __future__ import annotations

import ast
import dataclasses
import itertools
import re
import subprocess
from pathlib import Path

import pytest
from support.environment.sources import ROOT

from benchmarks import mutation
from benchmarks.mutation import drawn, faults_of, judged, main, marked, reaching, relevant_tests

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


@pytest.mark.slow
def test_a_fault_is_judged_in_a_copy_and_taken_out_again(project: Path, tmp_path: Path) -> None:
    source = (project / "room" / "one.py").read_bytes()
    every = drawn(9, 1, project)
    assert drawn(2, 1, project) == every[:2]
    by_kind = {fault.kind: fault for fault in every}
    assert set(by_kind) == {"comparison", "constant"}
    found_by = judged(by_kind["comparison"], project, 0, 60, ["tests/room"])
    assert found_by == "room/test_one.py::test_f"
    assert (project / "room" / "one.py").read_bytes() == source


def test_every_place_is_marked_and_nothing_else_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = list(enumerate(faults_of("f.py", SOURCE)))
    source = "from __future__ import annotations\n" + SOURCE.partition("\n")[2]
    moved = len(source.encode()) - len(SOURCE.encode())
    by_place = [
        (n, dataclasses.replace(fault, start=fault.start + moved, stop=fault.stop + moved))
        for n, fault in faults
    ]
    module: dict[str, object] = {}
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    exec(marked(source.encode(), by_place, tmp_path / "found"), module)
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "tests/test_f.py::test_f (call)")
    f = module["f"]
    assert callable(f)
    assert f(2, False) == -1
    assert f(5) == 5
    with pytest.raises(ValueError, match="0"):
        f(-1, True)
    found = (tmp_path / "found").read_text().splitlines()
    assert found[0] == f"{next(n for n, fault in faults if fault.line == 5)} "
    assert set(found[1:]) == {
        f"{n} tests/test_f.py::test_f" for n, fault in faults if fault.line != 5
    }
    assert len(found) == len(set(found))


@pytest.mark.slow
def test_the_tests_that_reach_a_place_are_asked(project: Path) -> None:
    source = (project / "room" / "one.py").read_text()
    (project / "room" / "one.py").write_text(source + "def g():\n    return 3\nLIMIT = 5\n")
    tests = project / "tests" / "room" / "test_one.py"
    tests.write_text(
        tests.read_text().replace("import f", "import f, g")
        + "def test_g():\n    g()\ndef test_fails():\n    f(0)\n    assert not g()\n"
    )
    whole = (project / "room" / "one.py").read_bytes()
    faults = list(enumerate(drawn(9, 1, project)))
    found = reaching(faults, project, 0)
    assert {(faults[n][1].text, tests) for n, tests in found.items()} == {
        ("(x <= 1)", ("tests/room/test_one.py::test_f",)),
        ("(2)", ("tests/room/test_one.py::test_f",)),
        ("(4)", ("tests/room/test_one.py::test_g",)),
        ("(6)", ("tests/room",)),
    }
    assert (project / "room" / "one.py").read_bytes() == whole


@pytest.mark.slow
def test_what_no_test_finds_is_said(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "tests" / "room" / "test_one.py").write_text("def test_f():\n    pass\n")
    source = (project / "room" / "one.py").read_bytes()
    assert main(["--sample", "1", "--seed", "1", "--jobs", "0"]) == 1
    out = capsys.readouterr().out
    assert "--seed 1, --sample 1" in out
    assert "| **no test** |" in out
    assert out.endswith("0 of 1 found\n")
    assert (project / "room" / "one.py").read_bytes() == source


def test_the_committed_table_is_whole() -> None:
    text = (ROOT / "benchmarks" / "mutation.md").read_text(encoding="utf-8")
    draws = re.split(r"^## \w+ draw$", text, flags=re.MULTILINE)[1:]
    shares = re.findall(r"^\| \w+ \| (\d+) of (\d+) \| (\d+) \(\d+%\) \|", text, re.MULTILINE)
    assert len(shares) == len(draws) > 0
    for draw, (matter, sample, found) in zip(draws, shares, strict=True):
        head = rf"^\d{{4}}-\d\d-\d\d, revision [0-9a-f]{{7,}}, --seed \d+, --sample {sample}$"
        assert re.search(head, draw, re.MULTILINE)
        rows = re.findall(r"^\| (\d+) \| .*:\d+ \| .* \| (.*) \|$", draw, re.MULTILINE)
        assert [int(number) for number, _ in rows] == list(range(1, int(sample) + 1))
        missed = [number for number, test in rows if test == "**no test**"]
        assert f"\n{found} of {sample} found\n" in draw
        assert int(found) == int(sample) - len(missed)
        judged_so = dict(
            re.findall(r"^\| (\d+) \| (equivalent: .*|found since .*) \|$", draw, re.M)
        )
        assert list(judged_so) == missed
        tests = [re.findall("`(.*)::(.*)`", why) for why in judged_so.values()]
        assert int(matter) == int(sample) - tests.count([])
        for path, name in itertools.chain(*tests):
            assert f"def {name}(" in (ROOT / "tests" / path).read_text(encoding="utf-8")
