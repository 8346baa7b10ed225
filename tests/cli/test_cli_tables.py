"""The command's tables on narrow terminals: nothing that counts is broken, cut or lost."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from safetensors.numpy import save_file
from support.environment.command import Command, command

from pypto_cast.report.page import script_json
from pypto_cast.report.report import Column, Report, Table, json_text, plain
from pypto_cast.report.terminal import FittedTable, shortened

__all__ = ["command"]  # a fixture

NAME = "model.layers.{}.self_attn.query_projection.weight_matrix"
NUMBER = re.compile(r"(?<![\w.,])[+-]?\d+(?:,\d{3})*(?:\.\d+)?%?(?!\w)")
SWEEP = """\
shapes = [[1024, 512], [32, 127, 128, 64]]
pairs = [["DT_FP32", "DT_FP16"], ["fp16", "int8"]]
"""


@pytest.fixture
def words(tmp_path: Path) -> dict[str, tuple[object, ...]]:
    """Command lines whose tables are wide."""
    (tmp_path / "s.toml").write_text(SWEEP, encoding="utf-8")
    values = np.random.default_rng(1).standard_normal((512, 512)).astype(np.float32)
    tensors = {NAME.format(number): values for number in range(3)}
    save_file({**tensors, "odd" * 20: np.ones(5, np.int64)}, tmp_path / "m.safetensors")
    return {
        "tune": ("tune", "--shape", "32,127,128,64", "--from", "fp32", "--to", "fp16"),
        "sweep": ("sweep", tmp_path / "s.toml", "--jobs", 1),
        "checkpoint": ("checkpoint", tmp_path / "m.safetensors", "--to", "bf16"),
        "matrix": ("matrix",),
        "explain": ("explain", "0.1", "--from", "fp16", "--to", "fp32"),
    }


@pytest.mark.slow
@pytest.mark.sampled(4)
@pytest.mark.parametrize("columns", [40, 60, 80, 100, 120])
@pytest.mark.parametrize("name", ["tune", "sweep", "checkpoint", "matrix", "explain"])
def test_numbers_stay_whole(
    command: Command,
    words: dict[str, tuple[object, ...]],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    columns: int,
) -> None:
    wide = command(*words[name]).out
    monkeypatch.setenv("COLUMNS", str(columns))
    narrow = command(*words[name])
    assert (narrow.code, narrow.err) == (0, "")
    assert sorted(NUMBER.findall(narrow.out)) == sorted(NUMBER.findall(wide))
    # Text, which a terminal folds by itself, names a folder or the cost set.
    table = [line for line in narrow.out.splitlines() if not re.search(r"/\w|^cost set", line)]
    if columns >= 80:
        assert max(map(len, table)) <= columns


@pytest.mark.parametrize("columns", [60, 80])
def test_long_names_lack_their_middle(
    command: Command,
    words: dict[str, tuple[object, ...]],
    monkeypatch: pytest.MonkeyPatch,
    columns: int,
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = command(*words["checkpoint"]).out.splitlines()
    (start,) = (n for n, line in enumerate(lines) if line.startswith("tensor"))
    rows = [n for n in range(start, len(lines)) if lines[n].startswith("model.")]
    for number in range(3):
        name, under = lines[rows[number]].split()[0], lines[rows[number] + 1]
        head, _, tail = name.partition("…")
        assert NAME.format(number).startswith(head)
        assert NAME.format(number).endswith(tail)
        assert f"layers.{number}" in head
        assert under.startswith("    tiles 80 x [13, 256]")


def rendered(table: FittedTable, width: int) -> list[str]:
    console = Console(width=width, highlight=False, markup=False, color_system=None)
    with console.capture() as capture:
        console.print(table)
    return [line.rstrip() for line in capture.get().splitlines()]


TABLE = FittedTable(
    table=Table(
        columns=(
            Column(heading="name", is_name=True),
            Column(heading="over-\nflow"),
            Column(heading="why", is_minor=True),
            Column(key="for programs alone"),
            Column(heading="bytes"),
        ),
        rows=[("a" * 20 + "b" * 20, 1234, "因", 1, 7), ("c", 5, "", 2, 1048576)],
    )
)


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (
            80,
            [
                " " * 42 + "over-",
                "name" + " " * 39 + "flow  why      bytes",
                "a" * 20 + "b" * 20 + "  1,234  因           7",
                "c" + " " * 45 + "5       1,048,576",
            ],
        ),
        (
            55,
            [
                " " * 34 + "over-",
                "name" + " " * 31 + "flow  why      bytes",
                "a" * 16 + "…" + "b" * 15 + "  1,234  因           7",
                "c" + " " * 37 + "5       1,048,576",
            ],
        ),
        (
            50,
            [
                " " * 34 + "over-",
                "name" + " " * 31 + "flow      bytes",
                "a" * 16 + "…" + "b" * 15 + "  1,234          7",
                "    why 因",
                "c" + " " * 37 + "5  1,048,576",
            ],
        ),
        (
            30,
            [
                "name",
                "a" * 15 + "…" + "b" * 14,
                "    overflow 1,234, why 因,",
                "    bytes 7",
                "c",
                "    overflow 5,",
                "    bytes 1,048,576",
            ],
        ),
    ],
)
def test_what_gives_way_to_what(width: int, lines: list[str]) -> None:
    assert rendered(TABLE, width) == lines


@pytest.mark.parametrize("width", [1, 2, 5, 12])
def test_shortened_names_fit(width: int) -> None:
    assert len(shortened("abcdefghijklm", width)) == width
    assert shortened("abc", 3) == "abc"


# --- JSON ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "writer",
    [lambda held: json_text(Report(kind="x", title="", facts=plain(held=held))), script_json],
    ids=["text", "page"],
)
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_json_holds_only_numbers_that_every_parser_takes(
    writer: Callable[[object], object], number: float
) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        writer({"ratio": [1.0, number]})
