"""The command: trace."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from support.environment.command import Command, command, npy
from support.programs.perfetto_document import check_document

from pypto_cast.report.text_format import extra_hint

__all__ = ["command", "npy"]  # fixtures

PLAN = "[100, 30] in 8 tiles of [32, 16], grid 4 x 2, tails [4, 14]"
WORDS = ("--to", "fp16", "--tile", "32,16")


def test_the_summary(command: Command, npy: Path) -> None:
    ran = command("trace", npy, *WORDS, "--mode", "odd")
    assert (ran.code, ran.err) == (0, "")
    assert f"{npy}: FP32 -> FP16, CAST_ODD" in ran.out
    assert PLAN in ran.out
    assert " us, " in ran.out
    assert "of 8 cores, without the launch" in ran.out
    assert ran.out.count("the limiting pipe") == 1
    assert "MTE2 (GM to UB), the limiting pipe" in ran.out
    assert (
        "cost set    pto-isa-910b3; no figure was measured on a device by this project" in ran.out
    )
    assert "18,000 B at " in ran.out
    other = command("trace", npy, *WORDS, "--cost-set", "documented", "--cores", "0-1,7")
    assert "of 3 cores" in other.out
    assert "cost set    documented; no figure" in other.out


@pytest.mark.slow
def test_only_shape_and_dtype_matter(command: Command, tmp_path: Path) -> None:
    """A sparse file of 4 GiB, of which no value is read."""
    path = tmp_path / "large.npy"
    np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(2**20, 1024))
    ran = command("trace", path, "--to", "bf16", "--tile", "32,1024", "--cores", "0")
    assert ran.code == 0
    assert "in 32,768 tiles of [32, 1024]" in ran.out


def test_bytes_have_to_be_named(command: Command, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(64, "V2"))
    words = ("trace", tmp_path / "x.npy", "--to", "fp32", "--tile", 64)
    assert "--from DT_BF16" in command(*words).error
    assert "BF16 -> FP32" in command(*words, "--from", "bf16").out


def test_the_listing(command: Command, npy: Path) -> None:
    ran = command("trace", npy, *WORDS, "--text", "--cores", "2")
    heading, *lines = ran.out.splitlines()
    assert heading.split()[:3] == ["core", "index", "pipe"]
    assert {line.split()[0] for line in lines} == {"2"}
    assert any("Cast ub+" in line and "# tile 2 at [32, 0]" in line for line in lines)


def test_the_trace_file(command: Command, npy: Path) -> None:
    out = npy.with_name("trace.json")
    ran = command("trace", npy, *WORDS, "--cores", "0-2", "--output", out)
    assert (ran.code, ran.err) == (0, "")
    assert PLAN in ran.out
    assert f"written to {out}" in ran.out
    document = json.loads(out.read_bytes())
    check_document(document)
    assert {entry["pid"] for entry in document["traceEvents"]} == {1, 2, 3}


def test_a_file_is_replaced_with_force_only(command: Command, npy: Path) -> None:
    out = npy.with_name("trace.json")
    out.write_text("mine")
    assert "--force replaces it" in command("trace", npy, *WORDS, "--output", out).error
    assert out.read_text() == "mine"
    assert command("trace", npy, *WORDS, "--output", out, "--force").code == 0
    json.loads(out.read_bytes())
    assert sorted(path.name for path in npy.parent.iterdir()) == ["trace.json", "x.npy"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "Missing argument"),
        ("x.npy", "--to"),
        ("none.npy --to fp16", "none.npy: No such file"),
        ("x.npy --to fp16 --tile 32,16 --cost-set mine", "known: documented, pto-isa-910b3"),
        ("x.npy --to fp16 --tile 32,16 --cores 0-8", "cores 0 to 7 have work"),
        ("x.npy --to fp16 --tile 32,16 --cores 2-1", "cores 0 to 7 have work"),
        ("x.npy --to fp16 --tile 32,16 --cores all", "as in 0-3,8; got 'all'"),
        ("x.npy --to fp16 --tile 32,16 --cores 0,", "as in 0-3,8"),
        ("x.npy --to fp16 --tile 32,16 --cores 00000000001", "as in 0-3,8"),
        ("x.npy --to fp16 --tile 32", "needs at least 2 entries"),
        ("x.npy --to fp16 --chip Ascend310", "unknown chip"),
        ("x.npy --to fp32 --tile 32,16", "DT_FP32 already"),
        ("x.npy --to int8 --tile 32,16", "is exact on all"),
        ("x.npy --to fp16 --tile 32,16 --text -o t.json", "--text excludes"),
        ("x.npy --to fp16 --tile 32,16 --text --json", "--text excludes"),
        ("x.npy --to fp16 --tile 32,16 -o none/t.json", "none is no directory"),
        ("x.npy --to fp16 --tile 32,16 --png x.jpg", "the picture is PNG; name it x.png"),
        ("x.npy --to fp16 --tile 32,16 --png a.png -o ./a.png", "would be the same file"),
    ],
)
def test_errors_are_one_line(
    command: Command, npy: Path, monkeypatch: pytest.MonkeyPatch, words: str, says: str
) -> None:
    monkeypatch.chdir(npy.parent)
    assert says in command("trace", *words.split()).error
    assert [path.name for path in npy.parent.iterdir()] == ["x.npy"]


def test_rounding_to_integral_values_is_a_cast(command: Command, npy: Path) -> None:
    assert command("trace", npy, "--to", "fp32", "--mode", "floor", "--tile", "8,8").code == 0


def test_json(command: Command, npy: Path) -> None:
    found = command("trace", npy, *WORDS, "--cores", "0-2", "--json").json
    text = command("trace", npy, *WORDS, "--cores", "0-2").out
    assert (found["from"], found["to"], found["cores"]) == ("DT_FP32", "DT_FP16", [0, 1, 2])
    assert found["plan"]["tile_shape"] == [32, 16]
    assert f"{found['makespan_us']:,.2f} us, {found['makespan_cycles']:,.0f} cycles" in text
    assert list(found["busy_share"]) == ["MTE2", "V", "MTE3", "S"]
    assert f"{found['busy_share']['V']:.1%}" in text
    assert found["limiting_pipe"] == "MTE2"
    assert f"{found['copied_bytes']:,} B at {found['gb_per_second']:,.0f} GB/s" in text
    assert found["cost_set"] == "pto-isa-910b3"
    assert "no figure was measured" in found["not_measured"]


def test_one_core_is_singular(command: Command, npy: Path) -> None:
    assert "this core's share" in command("trace", npy, *WORDS, "--cores", 0).out
    assert "these cores' share" in command("trace", npy, *WORDS, "--cores", "0-1").out


def test_trace_and_picture_at_once(command: Command, npy: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra viz)")
    out, png = npy.with_name("t.json"), npy.with_name("t.PNG")
    ran = command("trace", npy, *WORDS, "-o", out, "--png", png)
    assert (ran.code, ran.err) == (0, "")
    assert f"written to {out}\nwritten to {png}\n" in ran.out
    alone = npy.with_name("alone.json")
    assert command("trace", npy, *WORDS, "-o", alone).code == 0
    assert out.read_bytes() == alone.read_bytes()
    assert png.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_a_picture_needs_matplotlib(
    command: Command, npy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    found = command("trace", npy, *WORDS, "--png", npy.with_name("x.png")).error
    assert found == f"a picture needs matplotlib: {extra_hint('viz')}"
    assert not npy.with_name("x.png").exists()


@pytest.mark.parametrize("tile", ["32,16", "1,8"], ids=["few", "many"])
def test_the_picture(command: Command, npy: Path, tile: str) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra viz)")
    out = npy.with_name("x.png")
    ran = command("trace", npy, "--to", "fp16", "--tile", tile, "--png", out)
    assert (ran.code, PLAN in ran.out) == (0, tile == "32,16")
    data = out.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert int.from_bytes(data[16:20], "big") == 1560
    assert "--force" in command("trace", npy, *WORDS, "--png", out).error


@pytest.mark.parametrize(
    ("tile", "labels"), [("32,16", 3 * 4), ("1,8", 2 * 40)], ids=["few", "many"]
)
def test_numbers_of_tiles_stand_where_they_fit(
    command: Command, npy: Path, tile: str, labels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra viz)")
    from matplotlib.figure import Figure

    drawn, save = [], Figure.savefig
    monkeypatch.setattr(
        Figure, "savefig", lambda figure, *a, **k: (drawn.append(figure), save(figure, *a, **k))
    )
    words = ("--cores", "0-3", "--png", npy.with_name("x.png"))
    assert command("trace", npy, "--to", "fp16", "--tile", tile, *words).code == 0
    (axes,) = drawn[0].axes
    bars = [path.get_extents() for shown in axes.collections for path in shown.get_paths()]
    texts = [text for text in axes.texts if text.get_text().isdecimal()]
    for text in texts:
        box = text.get_window_extent().transformed(axes.transData.inverted())
        middle = text.get_position()[1]
        assert any(
            bar.x0 <= box.x0 and box.x1 <= bar.x1 and bar.y0 < middle < bar.y1 for bar in bars
        )
    assert len(texts) == labels
    title, what, line = (text.get_text() for text in drawn[0].texts)
    assert title.endswith("x.npy: FP32 -> FP16, CAST_RINT")
    assert what.startswith("[100, 30] in ")
    assert " us of the cores shown  ·  cost set pto-isa-910b3: no figure was measured" in line


def test_a_long_timeline_is_cut() -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra viz)")
    from pypto_cast.cast.cast_run import trace_cast
    from pypto_cast.cli import timeline_png
    from pypto_cast.dtypes.data_types import CastMode, DataType, SaturationMode
    from pypto_cast.options.context import options
    from pypto_cast.tensors.arrays import from_numpy
    from tiling.cost import cost_set

    tensor = from_numpy(np.zeros((8192, 64), np.float32))
    mode, satmode, costs = CastMode.CAST_RINT, SaturationMode.ON, cost_set("documented")
    with options(vec_tile_shapes=(1, 64)):
        found = trace_cast(tensor, DataType.DT_FP16, mode, satmode, costs).with_cores((0, 1))
    picture = timeline_png._picture(found)
    assert picture.is_cut
    shown = [e for e in picture.events[0] if e.is_work and e.end_cycle <= picture.end_cycle]
    assert 0.3 * timeline_png._SHOWN_EVENTS > len(shown) > 0.1 * timeline_png._SHOWN_EVENTS
