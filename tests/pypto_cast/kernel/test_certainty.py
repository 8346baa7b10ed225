"""The certainty of a kernel's results: counts, words, and the page with its pictures."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from support.devices.certainties import DIV, EXP, between, exact, scattered

import pypto_cast as pypto
from pypto_cast.kernel.certainty import (
    Cause,
    Certainty,
    CertaintyCounts,
    OutputCertainty,
    announce,
    observed_by,
)
from pypto_cast.kernel.reports.certainty_page import MOST_BYTES, certainty_page
from pypto_cast.report.report import document


def certainty() -> Certainty:
    """Six results of which two are open by a division and one by an exponential."""
    low = np.int8([[1, 2, 3], [4, 5, 6]])
    high = np.int8([[1, 3, 3], [5, 5, 9]])
    cause = np.uint16([[1, 0, 1], [0, 0, 1]])
    half = np.float16([1, np.nan])
    return Certainty(
        outputs=(between(low, high, name="y", cause=cause), exact("scale", half)), kernel="quant"
    )


# --- One output ----------------------------------------------------------------------------------


def test_an_exact_output_is_certain_everywhere() -> None:
    values = np.float32([0.0, -0.0, np.nan, np.inf])
    output = exact("out", values)
    assert output.certain.tolist() == [True] * 4
    assert (output.undecided, output.undecided_by_cause) == (0, {})
    assert str(output) == "out: DT_FP32 [4], 100% certain"
    assert output.shape == (4,)


def test_undecided_are_other_codes_and_what_may_be_nan() -> None:
    low = np.float16([-0.0, 1.0, 2.0, np.nan])
    high = np.float16([0.0, 1.0, 2.0, np.nan])
    nan = np.array([False, False, True, False])
    output = between(low, high, may_be_nan=nan)
    assert output.certain.tolist() == [False, True, False, True]
    assert [output.possible((n,)) for n in range(4)] == [
        "from -0.0 to 0.0",
        "1.0",
        "2.0 or NaN",
        "NaN",
    ]


def test_counts_are_by_cause_and_the_most_first() -> None:
    output = certainty()["y"]
    assert output.undecided == 3
    assert list(output.undecided_by_cause.items()) == [(DIV, 2), (EXP, 1)]
    twice = between(output.low, output.high, cause=output.cause, causes=(DIV, DIV))
    assert twice.undecided_by_cause == {DIV: 3}


def test_a_cause_that_is_not_there_is_refused() -> None:
    low = np.int8([1, 1])
    with pytest.raises(ValueError, match="out: cause 7 is asked for, there are 2"):
        _ = between(low, low + np.int8(1), cause=7).undecided_by_cause
    assert between(low, low, cause=7).undecided_by_cause == {}


@pytest.mark.parametrize(
    ("replaced", "error", "text"),
    [
        ({"low": np.zeros(2, np.float32)}, TypeError, "out: low must have dtype int8, not float32"),
        ({"high": np.zeros(3, np.int8)}, ValueError, r"out: high has shape \[3\], values \[2\]"),
        ({"may_be_nan": np.zeros(2, np.uint8)}, TypeError, "may_be_nan must have dtype bool"),
        ({"cause": np.zeros(2, np.int64)}, TypeError, "cause must have dtype uint16"),
        ({"cause": np.zeros((2, 1), np.uint16)}, ValueError, r"cause has shape \[2, 1\]"),
        ({"dtype": pypto.DT_BF16}, TypeError, "values must have dtype bfloat16, not int8"),
        ({"dtype": pypto.DT_DOUBLE}, TypeError, "DT_DOUBLE can be declared but holds no data"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    replaced: dict[str, Any], error: type[Exception], text: str
) -> None:
    values = np.zeros(2, np.int8)
    given = {
        **{"name": "out", "dtype": pypto.DT_INT8, "values": values, "low": values, "high": values},
        **{"may_be_nan": None, "cause": np.zeros(2, np.uint16), "causes": (DIV,)},
    }
    OutputCertainty(**given)
    with pytest.raises(error, match=text):
        OutputCertainty(**{**given, **replaced})


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((7, 0, 0), "100% certain"),
        (
            (10**6 - 3, 2, 1),
            "99.99% certain, 2 of them given named choices, 1 of 1,000,000 undecided",
        ),
        ((2, 0, 1), "66.66% certain, 1 of 3 undecided"),
        ((0, 1_000, 0), "100% certain, 1,000 of them given named choices"),
        ((0, 0, 5), "0% certain, 5 of 5 undecided"),
    ],
)
def test_a_share_never_rounds_up(counts: tuple[int, int, int], words: str) -> None:
    kinds = ("by_documents", "by_choices", "undecided")
    found = CertaintyCounts(**dict(zip(kinds, counts, strict=True)))
    assert str(found) == words
    twice = CertaintyCounts(**{kind: 2 * n for kind, n in zip(kinds, counts, strict=True)})
    assert found + found == twice


# --- All outputs ---------------------------------------------------------------------------------


def test_outputs_are_found_by_name_and_by_position() -> None:
    found = certainty()
    assert (list(found), len(found)) == (["y", "scale"], 2)
    assert "scale" in found
    assert "x" not in found
    assert found["y"] is found[0] is found[-2] is found.outputs[0]
    for key in ("x", 2, -3):
        with pytest.raises(KeyError, match=f"no output {key!r}; there are y, scale"):
            found[key]
    for held in (found.values, found.low, found.high, found.certain):
        assert list(held) == ["y", "scale"]
        assert held["scale"] is not held[0]
    assert found.values["scale"] is found.low[1] is found.high[-1]
    assert found.certain["y"].tolist() == [[True, False, True], [False, True, False]]


def test_the_words_of_a_result_are_names_of_the_package() -> None:
    for kind in (Certainty, OutputCertainty, Cause):
        assert getattr(pypto, kind.__name__) is kind
        assert kind.__name__ in pypto.__all__
        assert kind.__doc__
        assert not kind.__doc__.startswith(kind.__name__), "a dataclass without a docstring"


def test_two_outputs_of_one_name_are_refused() -> None:
    one = exact("y", np.zeros(1, np.int8))
    with pytest.raises(ValueError, match="outputs need names of their own, got y, y"):
        Certainty(outputs=(one, one))


def test_causes_are_summed_over_outputs() -> None:
    low = np.int8([0] * 4)
    other = between(low, low + np.int8(1), name="z", causes=(EXP,))
    found = Certainty(outputs=(*certainty().outputs, other))
    assert list(found.causes.items()) == [(EXP, 5), (DIV, 2)]
    assert (found.undecided, found.size) == (7, 12)


def test_what_is_printed() -> None:
    assert str(certainty()).splitlines() == [
        "y: DT_INT8 [2, 3], 50% certain, 3 of 6 undecided",
        "scale: DT_FP16 [2], 100% certain",
        "  2 left open by div at norm.py:14",
        "  1 left open by exp at norm.py:9",
    ]
    many = Certainty(outputs=(scattered((40, 40), 0.5, causes=9),))
    _, *causes = str(many).splitlines()
    counts = [int(line.split()[0]) for line in causes]
    assert len(counts) == 5
    assert counts == sorted(counts, reverse=True)
    assert repr(certainty()).startswith("<certainty: y: DT_INT8 [2, 3], 50% certain")


def test_a_notebook_shows_tables() -> None:
    text = certainty()._repr_html_()
    assert text.count("<table>") == 2
    assert "div at norm.py:14</th><td>2</td><td>/models/norm.py</td>" in text
    sly = Cause(operation="<b>", file="<i>.py", line=1)
    low = np.int8([0])
    shown = Certainty(outputs=(between(low, low + np.int8(1), name="<u>", causes=(sly,)),))
    assert not re.search("<[biu]>", shown._repr_html_())
    assert Certainty(outputs=(exact("y", low),))._repr_html_().count("<table>") == 1


def test_observers_see_what_is_announced_while_they_observe() -> None:
    seen: list[Certainty] = []
    found = certainty()
    announce(found)
    with observed_by(seen.append):
        announce(found)
        with observed_by(seen.append):
            announce(found)
    announce(found)
    assert seen == [found] * 3


# --- The page ------------------------------------------------------------------------------------


def figures(text: str) -> dict[str, Any]:
    (document,) = re.findall(r'id="data">(.*?)</script>', text)
    found: dict[str, Any] = json.loads(document)
    return found


def page(*outputs: OutputCertainty) -> str:
    return certainty_page(outputs, "Certainty", Certainty(outputs=outputs).causes)


@pytest.mark.slow
@hypothesis_settings(max_examples=20, deadline=None)
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=4),
    st.sampled_from([0.0, 0.02, 1.0]),
    st.integers(1, 9),
)
def test_every_undecided_element_is_in_one_cell(
    shape: list[int], share: float, outputs: int
) -> None:
    """Of all sizes of cells: several outputs have fewer of them each."""
    extents = tuple(shape)
    given = [scattered(extents, share, name=f"y{n}", causes=3) for n in range(outputs)]
    for data in figures(page(*given))["pictures"]:
        assert data["rows"] * data["cols"] <= 8192 // outputs
        assert 1 <= data["tail"] <= data["cols"]
        cells = [cell for cell, *_ in data["cells"]]
        assert cells == sorted(set(cells))
        assert all(0 <= cell < (data["rows"] - 1) * data["cols"] + data["tail"] for cell in cells)
        assert sum(count for _, count, *_ in data["cells"]) == given[0].undecided
        if share == 1.0:
            assert sum(total for _, _, total, *_ in data["cells"]) == given[0].values.size
        for _, count, total, first, shares in data["cells"]:
            assert sum(shares[1::2]) == count <= total
            index = tuple(json.loads(first.split(":")[0]))
            assert not given[0].certain[index]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("shape", "extent", "size", "last", "tail"),
    [
        ((128, 128), (128, 64), 2, [2] * 64, 64),  # as high as wide: wider cells
        ((130, 64), (65, 64), 2, [2] * 64, 64),  # higher than wide: higher cells
        # Broken into lines: the last one has 125, 132 and 20 elements.
        ((16381,), (128, 64), 2, [2] * 62 + [1], 63),
        ((20154,), (71, 71), 4, [4] * 66 + [2] * 5, 71),
        ((19900,), (71, 71), 4, [2] * 10, 10),
    ],
    ids=lambda given: str(given) if isinstance(given, tuple) else "",
)
def test_cells_are_as_small_as_there_is_room(
    shape: tuple[int, ...], extent: tuple[int, int], size: int, last: list[int], tail: int
) -> None:
    """At most 8192, and each tells how many elements it stands for; the last row may lack some."""
    (data,) = figures(page(scattered(shape, 1.0)))["pictures"]
    rows, cols = extent
    assert (data["rows"], data["cols"], data["tail"]) == (rows, cols, tail)
    assert [total for _, _, total, *_ in data["cells"]] == [size] * (rows - 1) * cols + last


def test_cells_of_single_elements_tell_index_interval_and_cause() -> None:
    document = figures(page(*certainty().outputs))
    first, second = document["pictures"]
    assert (first["rows"], first["cols"], second["cells"]) == (2, 3, [])
    assert first["cells"][0] == [1, 1, 1, "[0, 1]: 2 here, from 2 to 3 possible", [0, 1]]
    assert [cell[0] for cell in first["cells"]] == [1, 3, 5]
    assert [document["causes"][cell[4][0]] for cell in first["cells"]] == list(
        map(str, (DIV, DIV, EXP))
    )


def test_a_page_has_coordinates() -> None:
    """Those at which rows and columns of cells begin; of a broken tensor, where its lines do."""
    large, column, cube = figures(
        page(
            scattered((1000, 700), 0.01, name="large"),
            scattered((48, 1), 0.5, name="column"),
            scattered((3, 5, 7), 0.5, name="cube"),
        )
    )["pictures"]
    rows, cols = -(-1000 // large["rows"]), -(-700 // large["cols"])
    assert all(label == str(at * rows) for at, label in large["row_ticks"])
    assert all(label == str(at * cols) for at, label in large["col_ticks"])
    assert (column["rows"], column["cols"]) == (7, 7)
    assert column["row_ticks"][1] == [2, "14"]
    assert column["axis"] == "across: elements of a line; down: lines of 7 elements"
    assert [label for _, label in cube["row_ticks"]][:3] == ["0, 0", "0, 3", "1, 1"]
    assert large["row_lines"] == large["col_lines"] == []


def test_a_page_has_the_tiles_of_the_kernel() -> None:
    @pypto.frontend.jit
    def scaled(
        x: pypto.Tensor[[10, 96], pypto.DT_FP32], out: pypto.Tensor[[10, 96], pypto.DT_FP16]
    ):
        pypto.set_vec_tile_shapes(4, 32)
        out[:] = pypto.cast(pypto.exp(x), pypto.DT_FP16)

    found = scaled.certainty(np.ones((10, 96), np.float32), np.zeros((10, 96), np.float16))
    text = certainty_page(found.outputs, "Certainty", found.causes)
    (data,) = figures(text)["pictures"]
    assert (data["row_lines"], data["col_lines"]) == ([4, 8], [32, 64])
    (row,) = document(found.report)["outputs"]
    assert (row["shape"], row["tile_shape"]) == ([10, 96], [4, 32])


def test_a_legend_names_the_colour_and_the_number_of_each_cause() -> None:
    text = page(*certainty().outputs)
    assert '<span class="key certain"></span>certain' in text
    assert '<span class="key core-0"></span>1: 2 results left open by div at norm.py:14' in text
    assert '<span class="key core-1"></span>2: 1 result left open by exp at norm.py:9' in text
    assert figures(text)["colors"][:2] == ["core-0", "core-1"]


def test_light_causes_are_one_on_the_page() -> None:
    many = scattered((90, 90), 1.0, causes=200)
    document = figures(page(many))
    assert len(document["causes"]) == 32
    assert (
        sum(count for cell in document["pictures"][0]["cells"] for count in cell[4][1::2]) == 8100
    )
    assert "169 further causes" in page(many)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_a_page_stays_below_its_limit(dtype: Any, tmp_path: Path) -> None:
    low = -np.random.default_rng(1).random((300, 300, 2)).astype(np.float32).astype(dtype)
    sly = Cause(operation="div" * 40, file="/" + "long" * 60 + ".py", line=123456)
    high = (-low.astype(np.float32)).astype(dtype)
    outputs = [between(low, high, name=f"y{n}", causes=(sly,)) for n in range(3)]
    path = tmp_path / "page.html"
    Certainty(outputs=tuple(outputs)).html(path)
    assert path.stat().st_size <= MOST_BYTES
    text = path.read_text(encoding="utf-8")
    assert all(data["cells"] for data in figures(text)["pictures"])
    assert not re.search(r'(src|href)="(?!data:)', text)


@pytest.mark.slow
def test_a_page_over_its_limit_gets_larger_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    output = scattered((100, 80), 1.0)
    before = page(output)
    monkeypatch.setattr("pypto_cast.kernel.reports.certainty_page.MOST_BYTES", len(before.encode()))
    assert page(output) == before
    monkeypatch.setattr("pypto_cast.kernel.reports.certainty_page.MOST_BYTES", len(before) // 2)
    after = page(output)
    assert len(after) <= len(before) // 2
    assert figures(after)["pictures"][0]["cells"][0][2] > 1


def test_names_cannot_end_the_script(tmp_path: Path) -> None:
    sly = Cause(operation="</script><script>alert(1)</script>", file="a.py", line=1)
    low = np.int8([0])
    text = page(between(low, low + np.int8(1), name="</script>", causes=(sly,)))
    assert text.count("</script>") == 2
    assert "alert(1)</script>" not in text


def test_a_page_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "page.html"
    certainty().html(path)
    before = path.read_bytes()
    assert b"Certainty of quant" in before
    certainty().html(str(path))  # an older one is replaced

    def fail(*_: object) -> int:
        raise OSError("the disk is full")

    monkeypatch.setattr("pypto_cast.tensors.array_files.OutputFile.write", fail)
    with pytest.raises(OSError, match="the disk is full"):
        certainty().html(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError, match="is no directory"):
        certainty().html(tmp_path / "missing" / "page.html")
