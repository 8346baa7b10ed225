"""The HTML report of a tuning result: what its figures hold, and what its page is made of."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from html.parser import HTMLParser
from typing import Any

import pytest

import pypto_cast as pypto
from pypto_cast.tuning.report.page import page, sections
from pypto_cast.tuning.report.section import Section
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


def parts(name: str) -> dict[str, Section]:
    return {section.key: section for section in sections(made(name))}


def figure(name: str, key: str) -> tuple[dict[str, Any], ...]:
    found = parts(name)[key].figure
    assert found is not None
    return found.data


def plotly() -> Any:
    return pytest.importorskip("plotly.graph_objects", reason="plotly is not installed")


every_cast = pytest.mark.parametrize("name", CASTS)


@every_cast
def test_plotly_takes_every_figure(name: str) -> None:
    """Every trace and every entry of a layout is one that Plotly knows."""
    graph = plotly()
    assert list(parts(name)) == KEYS
    for section in parts(name).values():
        if section.figure is not None:
            graph.Figure(data=section.figure.data, layout=section.figure.layout)


def test_plotly_refuses_what_it_does_not_know() -> None:
    graph = plotly()
    with pytest.raises(ValueError, match="colour"):
        graph.Figure(data=[{"type": "bar", "colour": "red"}])


@every_cast
def test_the_heat_map_has_every_cell_in_one_trace(name: str) -> None:
    legal, refused, many, star = figure(name, "landscape")
    columns = legal["z"], refused["z"], many["z"], legal["text"]
    for row in zip(*columns, strict=True):
        for time, grey, pink, hover in zip(*row, strict=True):
            assert [time, grey, pink].count(None) == 2
            assert ("not legal: two tiles do not fit " in hover) == (grey is not None)
            assert ("too many tiles: it makes " in hover) == (pink is not None)
    assert min(t for row in legal["z"] for t in row if t is not None) == 0
    column, row = legal["x"].index(star["x"][0]), legal["y"].index(star["y"][0])
    assert legal["z"][row][column] == 0
    assert str(list(made(name).best)) in legal["text"][row][column]


def test_a_tile_shape_that_makes_too_many_tiles_is_legal() -> None:
    """It is told apart in the picture, the words and the table."""
    found = tune(
        [4096, 4096], pypto.DT_FP32, pypto.DT_FP16, chip="Ascend910B3", max_tiles=2000, top=1
    )
    (section,) = [section for section in sections(found) if section.key == "landscape"]
    assert section.figure is not None
    traces = {trace["name"]: trace for trace in section.figure.data}
    many, refused = traces["too many tiles"], traces["not legal"]
    assert many["text"][0][0].startswith("<b>[1, 16]</b><br>too many tiles: it makes 1,048,576 ")
    assert (many["z"][0][0], refused["z"][0][0]) == (1, None)
    assert (many["z"][-1][-1], refused["z"][-1][-1]) == (None, 1)
    assert many["colorscale"] != refused["colorscale"]
    counts = [sum(z is not None for row in t["z"] for z in row) for t in (many, refused)]
    assert f"{counts[0]} fit UB and make too many tiles; {counts[1]} are not l" in section.summary
    assert "2,000 tiles or more (--max-tiles)" in section.notes[0]
    (table,) = section.tables
    assert (table.rows[0][1], table.rows[-1][-1]) == ("+", "–")
    cells = [cell for row in table.rows for cell in row[1:]]
    assert [cells.count("+"), cells.count("–")] == counts
    assert "–: not legal; +: too many tiles" in table.caption


@every_cast
def test_bars_are_the_estimates(name: str) -> None:
    *bars, whole = figure(name, "best")
    shown = made(name).candidates
    assert len(whole["x"]) == len(shown) <= 10
    for number, candidate in enumerate(shown):
        cost = candidate.estimate
        assert whole["x"][number] == cost.cycles
        assert whole["x"][number] + whole["error_x"]["array"][number] == cost.high_cycles
        by_name = {bar["name"].split(",")[0]: bar["x"][number] for bar in bars}
        pipes = {str(pipe): cycles for pipe, cycles in cost.pipe_cycles.items()}
        assert by_name == {pipe: pipes[pipe] for pipe in ("MTE2", "V", "MTE3", "S")}


def test_ten_bars_of_more_candidates() -> None:
    found = tune([64, 64], pypto.DT_FP32, pypto.DT_FP16, chip="Ascend910B3", top=30)
    (best,) = [section for section in sections(found) if section.key == "best"]
    assert best.figure is not None
    assert len(best.figure.data[0]["y"]) == 10
    assert best.summary.startswith("Bars of the best tile shapes, 10 of ")


@every_cast
def test_the_grid_has_the_plans_cores(name: str) -> None:
    """Each core by its number; the plan's own ranges say which tiles it has."""
    (trace,) = figure(name, "grid")
    plan = made(name).plan
    numbers: Counter[str] = Counter()
    for line, colors, hover in zip(trace["text"], trace["z"], trace["hovertext"], strict=True):
        for core, color, text in zip(line, colors, hover, strict=True):
            if core == "":
                assert color is None
                continue
            numbers[core] += 1
            assert color == int(core) % 8
            index = int(text.split("tile ")[1].split("<")[0].replace(",", ""))
            assert index in plan.core_tiles(int(core))
            assert str(list(plan.grid.tile(index).offset)) in text
    whole = {str(core): len(plan.core_tiles(core)) for core in range(plan.busy_cores)}
    if len(plan.grid) <= sum(numbers.values()):
        assert numbers == whole
    else:  # a large grid is cut after its first rows
        *full, last = numbers
        assert all(numbers[core] == whole[core] for core in full)
        assert numbers[last] <= whole[last]


def test_a_large_grid_is_cut_and_says_so() -> None:
    found = tune([20000, 20000], pypto.DT_FP32, pypto.DT_FP16, chip="Ascend910B3")
    (grid,) = [section for section in sections(found) if section.key == "grid"]
    assert grid.figure is not None
    (trace,) = grid.figure.data
    drawn = [len(trace["z"]), len(trace["z"][0])]
    assert drawn[0] <= 64
    assert drawn[1] <= 96
    assert f"the first {drawn[0]} x {drawn[1]} of " in grid.summary
    assert any("Only the first tiles are drawn" in note for note in grid.notes)


@every_cast
def test_the_strip_covers_ub_once(name: str) -> None:
    plan = made(name).plan
    end = 0.0
    for part in figure(name, "ub"):
        assert part["base"][0] == end
        end += part["x"][0]
    assert end * 1024 == plan.chip.ub_bytes
    table = parts(name)["ub"].tables[0]
    sizes = [int(row[2].replace(",", "")) for row in table.rows]
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
    (strip,) = [section for section in sections(found) if section.key == "ub"]
    assert [row[0] for row in strip.tables[0].rows].count("scratch") == 1


@every_cast
def test_the_timeline_runs_each_pipe_in_order(name: str) -> None:
    cast = made(name)
    ends = []
    for trace in figure(name, "timeline"):
        spans = [(b, b + x) for b, x in zip(trace["base"], trace["x"], strict=True)]
        assert all(end <= start + 1e-4 for (_, end), (start, _) in itertools.pairwise(spans))
        ends += [end for _, end in spans]
    (best,) = {row["y"][0] for row in figure(name, "timeline")[:1]}
    assert best == "MTE2<br>copy in"
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
            assert value
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
    plotly()
    return page(made("fp32-fp16"))


@pytest.fixture(scope="module")
def read(text: str) -> Page:
    return Page(text)


def test_nothing_is_fetched(read: Page) -> None:
    for tag, attributes in read.elements:
        assert "src" not in attributes, tag
        href = attributes.get("href", "#")
        assert href.startswith(("#", "data:")), (tag, href)
    (policy,) = read.all(**{"http-equiv": "Content-Security-Policy"})
    assert policy["content"].startswith("default-src 'none'; ")


def test_the_language_the_title_and_the_width_are_said(text: str, read: Page) -> None:
    assert read.elements[0] == ("html", {"lang": "en"})
    assert "<title>Tile shapes of [32, 127, 128, 64]: FP32 -&gt; FP16, CAST_RINT</title>" in text
    (viewport,) = read.all(name="viewport")
    assert viewport["content"].startswith("width=device-width")
    assert "@media (max-width" in text
    assert NOT_MEASURED in text


def test_tabs_panels_and_figures_are_named(read: Page) -> None:
    ids = Counter(a["id"] for _, a in read.elements if "id" in a)
    assert set(ids.values()) == {1}
    tabs, panels = read.all(role="tab"), read.all(role="tabpanel")
    assert [tab["data-key"] for tab in tabs] == KEYS
    for tab, panel in zip(tabs, panels, strict=True):
        assert tab["aria-controls"] == panel["id"]
        assert panel["aria-labelledby"] == tab["id"]
    figures = read.all(role="img")
    assert len(figures) == 5
    summaries = [s.summary for s in sections(made("fp32-fp16")) if s.figure]
    assert [figure["aria-label"] for figure in figures] == summaries
    assert len([a for tag, a in read.elements if tag == "table"]) == 9
    for region in read.all(role="region"):
        assert region["aria-label"]
        assert region["tabindex"] == "0"


def test_the_figures_are_json(read: Page) -> None:
    ((_, figures),) = [script for script in read.scripts if script[0].get("id") == "figures"]
    assert list(json.loads(figures)) == KEYS[:-1]


def test_hostile_text_stays_text() -> None:
    plotly()
    parameters = DEFAULT_COST_SET.replaced(HOSTILE, read_startup_cycles=1.0)
    found = tune([64, 64], pypto.DT_FP32, pypto.DT_FP16, chip="Ascend910B3", cost_set=parameters)
    text = page(found)
    assert "<img" not in text.replace(plotly_source(), "")
    assert "alert(2)</script>" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text


def plotly_source() -> str:
    return str(pytest.importorskip("plotly.offline").get_plotlyjs())


def test_the_report_is_as_large_as_plotly_and_a_little(text: str) -> None:
    assert len(text) - len(plotly_source()) < 1_000_000


def luminance(color: str) -> float:
    channels = [int(color[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("name", ["ink", "soft", "accent"])
def test_text_stands_out_from_the_paper(text: str, name: str) -> None:
    """WCAG 2.2, 1.4.3: at least 4.5 to 1; hovered tabs have a ground of their own."""
    color = re.search(rf"--{name}: (#\w{{6}})", text)
    assert color is not None
    for ground in ("#ffffff", "#eef2f6", "#fff6ea"):
        assert (luminance(ground) + 0.05) / (luminance(color[1]) + 0.05) >= 4.5
