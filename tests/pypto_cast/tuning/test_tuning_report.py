"""The HTML report of a tuning result: what its figures hold, and what its page is made of."""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from html.parser import HTMLParser
from importlib import resources

import pytest

import pypto_cast as pypto
from pypto_cast.report.figure import Row
from pypto_cast.report.report import Report, text_of
from pypto_cast.tuning.report_charts import alike_in_groups
from pypto_cast.tuning.report_page import page, sections
from pypto_cast.tuning.tune import TunedCast, tune
from tiling.cost import DEFAULT_COST_SET, NOT_MEASURED, STARTUP_RULE, figure_names

HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
CASTS = {
    "fp32-fp16": ([32, 127, 128, 64], "FP32", "FP16"),
    "fp16-int8": ([1000, 700], "FP16", "INT8"),
    "fp32-bf16": ([5000000], "FP32", "BF16"),
    "int64-fp32": ([3], "INT64", "FP32"),
    "fp16-int4": ([64, 4096], "FP16", "INT4"),
    "int32-fp16": ([40, 30, 30], "INT32", "FP16"),
}
KEYS = ["landscape", "best", "timeline", "grid", "ub", "parameters"]
cast_of = {}


def made(name: str) -> TunedCast:
    if name not in cast_of:
        shape, src, dst = CASTS[name]
        cast_of[name] = tune(
            shape, pypto.DataType[f"DT_{src}"], pypto.DataType[f"DT_{dst}"], chip="Ascend910B3"
        )
    return cast_of[name]


@functools.cache
def parts(name: str) -> dict[str, Report]:
    return {section.kind: section for section in sections(made(name))}


def rows_of(name: str, key: str) -> tuple[Row, ...]:
    return parts(name)[key].figures[0].rows


every_cast = pytest.mark.parametrize("name", CASTS)


@pytest.mark.slow
@every_cast
def test_every_figure_lies_within_its_axis_and_the_style_knows_its_marks(name: str) -> None:
    style = resources.files("pypto_cast.report").joinpath("page.css").read_text(encoding="utf-8")
    classes = {*re.findall(r"\.([a-z-]+[0-9]?)", style), "heat", "scale"}  # of the scale
    assert list(parts(name)) == KEYS
    for section in parts(name).values():
        for figure in section.figures:
            assert 1 <= len(figure.ticks) <= 8
            for at, _ in figure.ticks:
                assert 0 <= at <= figure.extent
            for row in figure.rows:
                for mark in row.marks:
                    assert 0 <= mark.left <= mark.left + mark.width <= figure.extent * (1 + 1e-12)
                    assert set(mark.kind.split()) <= classes
            assert {kind for key, _ in figure.keys for kind in key.split()} <= classes


@pytest.mark.slow
@every_cast
def test_the_heat_map_has_every_cell_once(name: str) -> None:
    rows = rows_of(name, "landscape")
    stars = 0
    for row in rows:
        assert [mark.left for mark in row.marks] == list(range(len(row.marks)))
        for mark in row.marks:
            assert ("not legal: two tiles do not fit " in mark.tip) == (mark.kind == "illegal")
            assert ("too many tiles: it makes " in mark.tip) == (mark.kind == "too-many")
            assert (mark.shade is None) == (mark.kind in ("illegal", "too-many"))
            if mark.kind == "heat best":
                stars += 1
                assert (mark.shade, mark.text) == (0, "★")
                assert mark.tip.startswith(str(list(made(name).best)))
    assert stars == 1
    shades = [mark.shade for row in rows for mark in row.marks if mark.shade is not None]
    assert min(shades) == 0
    assert max(shades) in (0, 1)


def test_a_tile_shape_that_makes_too_many_tiles_is_legal() -> None:
    """It is told apart in the picture, the words and the table."""
    found = tune(
        [4096, 4096], pypto.DT_FP32, pypto.DT_FP16, chip="Ascend910B3", max_tiles=2000, top=1
    )
    (section,) = [section for section in sections(found) if section.kind == "landscape"]
    cells = [mark for row in section.figures[0].rows for mark in row.marks]
    assert cells[0].tip.startswith("[1, 16]\ntoo many tiles: it makes 1,048,576 ")
    assert (cells[0].kind, cells[-1].kind) == ("too-many", "illegal")
    counts = [sum(mark.kind == kind for mark in cells) for kind in ("too-many", "illegal")]
    assert f"{counts[0]} fit UB and make too many tiles; {counts[1]} are not l" in section.lead
    assert f" {len(cells) - sum(counts)} of {len(cells)} are legal and take " in section.lead
    assert "2,000 tiles or more (--max-tiles)" in section.notes[0]
    (table,) = section.tables
    assert (table.rows[0][1], table.rows[-1][-1]) == ("+", "–")
    signs = [cell for row in table.rows for cell in row[1:]]
    assert [signs.count("+"), signs.count("–")] == counts
    assert "–: not legal; +: too many tiles" in table.caption


@pytest.mark.slow
@every_cast
def test_bars_are_the_estimates(name: str) -> None:
    groups = alike_in_groups(made(name))
    rows = rows_of(name, "best")
    assert len(rows) == len(groups) <= 10
    assert groups[0][0].tile_shape == made(name).best
    for row, group in zip(rows, groups, strict=True):
        cost = group[0].estimate
        *bars, spread, whole = row.marks
        assert whole.left == cost.cycles
        assert (spread.left, spread.width) == (cost.low_cycles, cost.high_cycles - cost.low_cycles)
        by_name = {mark.tip.split(",")[0]: mark.width for mark in bars}
        pipes = {str(pipe): cycles for pipe, cycles in cost.pipe_cycles.items() if cycles}
        assert by_name == {
            pipe: pipes[pipe] for pipe in ("MTE2", "V", "MTE3", "S") if pipe in pipes
        }
        at = [mark.left + mark.width for mark in bars]
        assert [0, *at[:-1]] == [mark.left for mark in bars]


@pytest.mark.slow
@every_cast
def test_the_ten_best_are_not_alike(name: str) -> None:
    """Two of them differ on several axes, or on one by more than a step of it."""
    cast = made(name)
    block = 32 * 8 // min(cast.bits.src, cast.bits.dst)
    steps = [1] * (len(cast.shape) - 1) + [block]

    def distance(a: tuple[int, ...], b: tuple[int, ...]) -> float:
        return sum(abs(x - y) / step for x, y, step in zip(a, b, steps, strict=True))

    groups = alike_in_groups(cast)
    for one, other in itertools.combinations([[c.tile_shape for c in g] for g in groups], 2):
        assert all(distance(a, b) > 1 for a in one[:1] for b in other[:1])
    for group in groups:
        shapes = [c.tile_shape for c in group]
        for at, shape in enumerate(shapes[1:], start=1):
            assert min(distance(shape, other) for other in shapes[:at]) <= 1
    ranks = [group[0].rank for group in groups]
    assert ranks == sorted(ranks)
    assert ranks[0] == 1


def test_ten_bars_even_of_one_candidate() -> None:
    """The bars say what else there is; tile shapes that are alike share one."""
    found = tune([4000, 1000], pypto.DT_FP32, pypto.DT_FP16, chip="Ascend910B3", top=1)
    (best,) = [section for section in sections(found) if section.kind == "best"]
    assert len(best.figures[0].rows) == 10
    assert best.lead.startswith("Bars of the best tile shapes, 10 of ")
    assert any(
        ", and " in row.label and row.label.endswith(" alike") for row in best.figures[0].rows
    )


@pytest.mark.slow
@every_cast
def test_the_grid_has_the_plans_cores(name: str) -> None:
    """Each core by its number; the plan's own ranges say which tiles it has."""
    plan = made(name).plan
    numbers: Counter[int] = Counter()
    for row in rows_of(name, "grid"):
        for mark in row.marks:
            core = int(mark.tip.split("core ")[1].split(",")[0])
            numbers[core] += 1
            assert mark.kind == f"core-{core % 8}"
            assert mark.text in ("", str(core))
            index = int(mark.tip.split("tile ")[1].split("\n")[0].replace(",", ""))
            assert index in plan.core_tiles(core)
            assert str(list(plan.grid.tile(index).offset)) in mark.tip
    whole = {core: len(plan.core_tiles(core)) for core in range(plan.busy_cores)}
    if "; all tiles are drawn" in parts(name)["grid"].lead:
        assert numbers == whole
    else:  # a large grid is cut after its first rows
        *full, last = numbers
        assert all(numbers[core] == whole[core] for core in full)
        assert numbers[last] <= whole[last]


def test_a_large_grid_is_cut_and_says_so() -> None:
    found = tune([20000, 20000], pypto.DT_FP32, pypto.DT_FP16, chip="Ascend910B3")
    (grid,) = [section for section in sections(found) if section.kind == "grid"]
    (figure,) = grid.figures
    drawn = [len(figure.rows), len(figure.rows[0].marks)]
    assert drawn[0] <= 64
    assert drawn[1] <= 96
    assert f"the first {drawn[0]} x {drawn[1]} of " in grid.lead
    assert any("Only the first tiles are drawn" in note for note in grid.notes)


@pytest.mark.slow
@every_cast
def test_the_strip_covers_ub_once(name: str) -> None:
    plan = made(name).plan
    end = 0.0
    (strip,) = rows_of(name, "ub")
    for part in strip.marks:
        assert part.left == end
        end += part.width
    assert end == plan.chip.ub_bytes
    table = parts(name)["ub"].tables[0]
    sizes = [row[2] for row in table.rows]
    assert sizes[: len(plan.ub.buffers)] == [buffer.size_bytes for buffer in plan.ub.buffers]


def test_a_strip_with_scratch() -> None:
    """A cast that needs some; the strip names it."""
    found = tune(
        [64, 64],
        pypto.DT_FP16,
        pypto.DT_INT8,
        chip="Ascend910B3",
        satmode=pypto.SaturationMode.OFF,
    )
    assert found.bits.tmp > 0
    assert "SaturationMode.OFF" in found.title
    (strip,) = [section for section in sections(found) if section.kind == "ub"]
    assert [row[0] for row in strip.tables[0].rows].count("scratch") == 1


@every_cast
def test_the_timeline_runs_each_pipe_in_order(name: str) -> None:
    cast = made(name)
    ends = []
    for row in rows_of(name, "timeline"):
        spans = [(mark.left, mark.left + mark.width) for mark in row.marks]
        assert all(end <= start + 1e-4 for (_, end), (start, _) in itertools.pairwise(spans))
        ends += [end for _, end in spans]
    assert [row.label for row in rows_of(name, "timeline")] == [
        "MTE2, copy in",
        "V, vector",
        "MTE3, copy out",
    ]
    whole = cast.candidates[0].estimate.microseconds
    is_cut = any("Cut after" in note for note in parts(name)["timeline"].notes)
    assert is_cut == (len(cast.plan.core_tiles(0)) > 15)
    if not is_cut:
        # The closed form and the event simulation agree within 2 % (`tiling.estimate`).
        assert whole * 0.98 < max(ends) < whole * 1.02


def test_every_figure_has_its_source() -> None:
    tables = parts("fp32-fp16")["parameters"].tables
    assert [row[0] for row in tables[0].rows] == [*figure_names(), STARTUP_RULE]
    for table in tables[:2]:
        for _, value, standing, source in table.rows:
            assert text_of(value)
            assert standing in ("documented", "inferred", "chosen")
            assert source
    assert len(tables[2].rows) == len(made("fp32-fp16").views)


# --- The page ----------------------------------------------------------------------------------


class Page(HTMLParser):
    """Elements with their attributes, and the text of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.scripts: list[tuple[dict[str, str], str]] = []
        self._script: dict[str, str] | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self._script = self.elements[-1][1] if tag == "script" else None

    def handle_endtag(self, tag: str) -> None:
        self._script = None

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self.scripts.append((self._script, data))

    def all(self, **wanted: str) -> list[dict[str, str]]:
        return [a for _, a in self.elements if wanted.items() <= a.items()]


@pytest.fixture(scope="module")
def text() -> str:
    return page(made("fp32-fp16"))


@pytest.fixture(scope="module")
def read(text: str) -> Page:
    return Page(text)


@pytest.mark.slow
def test_nothing_is_fetched(read: Page) -> None:
    for tag, attributes in read.elements:
        assert "src" not in attributes, tag
        href = attributes.get("href", "#")
        assert href.startswith(("#", "data:")), (tag, href)
    (policy,) = read.all(**{"http-equiv": "Content-Security-Policy"})
    assert policy["content"].startswith("default-src 'none'; ")


@pytest.mark.slow
def test_the_language_the_title_and_the_width_are_said(text: str, read: Page) -> None:
    assert read.elements[0] == ("html", {"lang": "en"})
    assert "<title>Tile shapes of [32, 127, 128, 64]: FP32 -&gt; FP16, CAST_RINT</title>" in text
    (viewport,) = read.all(name="viewport")
    assert viewport["content"].startswith("width=device-width")
    assert "@media (max-width" in text
    assert NOT_MEASURED in text


@pytest.mark.slow
def test_tabs_panels_and_figures_are_named(read: Page) -> None:
    ids = Counter(a["id"] for _, a in read.elements if "id" in a)
    assert set(ids.values()) == {1}
    tabs, panels = read.all(role="tab"), read.all(role="tabpanel")
    assert [tab["data-key"] for tab in tabs] == KEYS
    for tab, panel in zip(tabs, panels, strict=True):
        assert tab["aria-controls"] == panel["id"]
        assert panel["aria-labelledby"] == tab["id"]
    figures = read.all(role="img")
    assert len(figures) == 6
    summaries = [s.lead for s in parts("fp32-fp16").values() for _ in s.figures]
    assert [figure["aria-label"] for figure in figures] == summaries
    assert len([a for tag, a in read.elements if tag == "table"]) == 9
    for region in read.all(role="region"):
        assert region["aria-label"]
        assert region["tabindex"] == "0"


def test_hostile_text_stays_text() -> None:
    parameters = DEFAULT_COST_SET.replaced(HOSTILE, read_startup_cycles=1.0)
    found = tune([64, 64], pypto.DT_FP32, pypto.DT_FP16, chip="Ascend910B3", cost_set=parameters)
    text = page(found)
    assert "<img" not in text
    assert "alert(2)</script>" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text


@pytest.mark.slow
@every_cast
def test_the_report_is_small(name: str) -> None:
    assert len(page(made(name)).encode()) < 1_000_000
