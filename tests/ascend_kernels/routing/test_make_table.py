"""The commands that write committed files: what they write, and what `--check` refuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from ascend_kernels.checks import check_program
from ascend_kernels.routing import make_table, routes_document
from simulator.numbers.formats import FP16, FP32, INT8, INT32
from simulator.numbers.rounding import RoundMode

QUESTIONS = (
    (FP32, FP16, RoundMode.RINT),
    (FP16, INT8, RoundMode.CEIL),
    (INT32, INT8, RoundMode.ODD),
)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An absent table of three questions, whose rows are cheap."""
    monkeypatch.setattr(make_table, "TABLE", tmp_path / "verdicts.json")
    monkeypatch.setattr(make_table, "questions", lambda: iter(QUESTIONS))
    monkeypatch.setattr(
        make_table,
        "table_row",
        lambda src, dst, mode: {"from": src.name, "to": dst.name, "mode": mode.name, "routes": []},
    )
    return tmp_path / "verdicts.json"


def ran(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["make_table", *words])
    return make_table.main()


def test_rows_are_written_under_their_own_names(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ran(monkeypatch) == 0
    found = json.loads(table.read_text())
    assert [tuple(row.values()) for row in found["rows"]] == [
        ("FP32", "FP16", "RINT", []),
        ("FP16", "INT8", "CEIL", []),
        ("INT32", "INT8", "ODD", []),
    ]
    assert set(found["rows"][0]) == {"from", "to", "mode", "routes"}
    assert "numpy" in found["versions"]
    assert ran(monkeypatch, "--check") == 0


def test_a_run_goes_on_where_one_stopped(
    table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = {"from": "FP16", "to": "INT8", "mode": "CEIL", "routes": ["known"]}
    table.write_text(json.dumps({"rows": [known]}))
    assert ran(monkeypatch) == 0
    assert capsys.readouterr().err.splitlines() == ["FP32 FP16 RINT", "INT32 INT8 ODD"]
    rows = json.loads(table.read_text())["rows"]
    assert [row["from"] for row in rows] == ["FP32", "FP16", "INT32"]
    assert rows[1] == known


@pytest.mark.parametrize("stale", [0, 2])
def test_a_stale_row_is_named_and_nothing_is_written(
    stale: int, table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran(monkeypatch)
    found = json.loads(table.read_text())
    found["rows"][stale]["routes"] = ["other"]
    table.write_text(json.dumps(found))
    before = table.read_bytes()
    assert ran(monkeypatch, "--check") == 1
    names = " ".join(str(getattr(one, "name", one)) for one in QUESTIONS[stale])
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == (
        f"verdicts.json, {names} is stale: run python -m ascend_kernels.routing.make_table"
    )
    assert table.read_bytes() == before


def test_an_absent_table_is_stale(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ran(monkeypatch, "--check") == 1
    assert not table.exists()


@pytest.mark.parametrize(
    ("module", "place", "content"),
    [(check_program, "CHECK_HEADER", "check_header"), (routes_document, "PAGE", "page")],
    ids=["header", "page"],
)
def test_a_stale_file_is_refused_and_written_anew(
    module: ModuleType,
    place: str,
    content: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "generated"
    monkeypatch.setattr(module, place, path)
    monkeypatch.setattr(module, content, lambda: "as it is now\n")
    for stale in (None, "as it was\n"):
        if stale is not None:
            path.write_text(stale)
        monkeypatch.setattr(sys, "argv", ["command", "--check"])
        assert module.main() == 1
        assert f"generated is stale: run python -m {module.__name__}" in capsys.readouterr().err
        assert not path.exists() if stale is None else path.read_text() == stale
    monkeypatch.setattr(sys, "argv", ["command"])
    assert module.main() == 0
    assert path.read_text() == "as it is now\n"
    monkeypatch.setattr(sys, "argv", ["command", "--check"])
    assert module.main() == 0
