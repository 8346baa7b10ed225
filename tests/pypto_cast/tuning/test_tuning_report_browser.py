"""The HTML report in a real browser: headless Chromium, driven by Playwright."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.environment.browser import OpenedPage, browser

import pypto_cast as pypto
from pypto_cast.tuning.report_page import page, sections
from pypto_cast.tuning.tune import TunedCast, tune

__all__ = ["browser"]  # a fixture

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 740}
TABS = ("Landscape", "Best 10", "Timeline", "Tiles", "UB", "Parameters")


@pytest.fixture(scope="module")
def cast() -> TunedCast:
    return tune([1000, 700], pypto.DT_FP16, pypto.DT_INT8, chip="Ascend910B3")


@pytest.fixture(scope="module")
def report(cast: TunedCast, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page(cast), encoding="utf-8")
    return path


class Opened(OpenedPage):
    """A report in a browser."""

    def tab(self, name: str) -> Any:
        return self.page.get_by_role("tab", name=name, exact=True)

    def hover(self, key: str, row: int, number: int) -> str:
        """The tip over a mark of a row of the first figure."""
        self.page.locator(f"#panel-{key} .lane").nth(row).locator("i").nth(number).hover()
        return str(self.page.locator("#tip").inner_text())


@pytest.fixture(params=[DESKTOP, PHONE], ids=["desktop", "phone"])
def opened(request: pytest.FixtureRequest, browser: Any, report: Path) -> Iterator[Opened]:
    context = browser.new_context(viewport=request.param)
    found = Opened(context.new_page(), report)
    yield found
    assert found.complaints == []
    assert found.requests == [report.as_uri()]
    context.close()


def test_every_tab_shows_its_panel_alone(opened: Opened, cast: TunedCast, tmp_path: Path) -> None:
    assert opened.page.get_by_role("tab").all_text_contents() == list(TABS)
    for name, section in zip(TABS, sections(cast), strict=True):
        opened.tab(name).click()
        (panel,) = opened.page.get_by_role("tabpanel").all()
        assert panel.get_attribute("id") == f"panel-{section.kind}"
        assert opened.page.locator('[aria-selected="true"]').all_text_contents() == [name]
        plots = opened.page.get_by_role("img", name=section.lead, exact=True).all()
        assert len(plots) == len(section.figures)
        for plot, figure in zip(plots, section.figures, strict=True):
            lanes = plot.locator(".lane").evaluate_all(
                "(lanes) => lanes.map((lane) => [lane.offsetWidth, lane.offsetHeight])"
            )
            assert [height for _, height in lanes] == [figure.height_px] * len(figure.rows)
            assert min(width for width, _ in lanes) >= 250
        # Nothing sticks out: a phone would have to scroll sideways.
        widths = opened.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert widths[0] <= widths[1]
        picture = tmp_path / f"{section.kind}.png"
        opened.page.screenshot(path=picture, full_page=True)
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert picture.stat().st_size > 10_000


def test_keys_move_between_tabs(opened: Opened) -> None:
    opened.tab(TABS[0]).focus()
    steps = [("ArrowRight", 1), ("ArrowRight", 2), ("End", 5), ("ArrowRight", 0), ("ArrowLeft", 5)]
    for key, index in [*steps, ("Home", 0)]:
        opened.page.keyboard.press(key)
        assert opened.page.evaluate("document.activeElement.textContent") == TABS[index]
        assert opened.tab(TABS[index]).get_attribute("aria-selected") == "true"
    # One tab takes part in the order of the Tab key, and after it comes its panel.
    assert opened.page.locator('[role=tab][tabindex="0"]').all_text_contents() == [TABS[0]]
    opened.page.keyboard.press("Tab")
    assert opened.page.evaluate("document.activeElement.id") == "panel-landscape"


def test_hovering_tells_time_and_reason(opened: Opened, cast: TunedCast) -> None:
    (section,) = [found for found in sections(cast) if found.kind == "landscape"]
    rows = section.figures[0].rows
    (best,) = [
        (number, at)
        for number, row in enumerate(rows)
        for at, mark in enumerate(row.marks)
        if mark.kind == "heat best"
    ]
    text = opened.hover("landscape", *best)
    assert str(list(cast.best)) in text
    assert f"{cast.candidates[0].estimate.microseconds:,.2f} us" in text
    refusal = opened.hover("landscape", len(rows) - 1, len(rows[0].marks) - 1)
    assert "not legal: two tiles do not fit" in refusal
    assert "188,160 B of UB that are safe for user code" in refusal


def test_keys_tell_the_same(opened: Opened) -> None:
    opened.tab("Best 10").click()
    figure, tip = opened.page.locator("#panel-best .figure"), opened.page.locator("#tip")
    figure.focus()
    seen = []
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "End", "Escape"):
        opened.page.keyboard.press(key)
        seen.append(tip.inner_text() if tip.is_visible() else "")
    assert seen[0].startswith("MTE2, copy in: ")
    assert seen[0] == seen[2] != seen[1]
    assert seen[3].startswith("whole: ")
    assert seen[4] == ""


def test_hovering_a_tile_tells_its_core(opened: Opened, cast: TunedCast) -> None:
    opened.tab("Tiles").click()
    text = opened.hover("grid", 0, 3)
    found = re.match(r"core (\d+), tile (\d+)", text)
    assert found is not None
    core, tile = map(int, found.groups())
    assert tile in cast.plan.core_tiles(core)
    assert str(list(cast.plan.grid.tile(tile).offset)) in text


def test_the_figures_as_text(opened: Opened, cast: TunedCast) -> None:
    opened.tab("UB").click()
    opened.page.get_by_text("The same as text").locator("visible=true").click()
    table = opened.page.get_by_role("table").locator("visible=true")
    assert "free" in table.inner_text()
    scrolled = opened.page.get_by_role("region", name="UB in address order")
    scrolled.focus()
    assert opened.page.evaluate("document.activeElement.getAttribute('role')") == "region"


def test_complaints_and_requests_are_noticed(browser: Any, report: Path, tmp_path: Path) -> None:
    """The checks of `opened` can fail: on an error, and on anything that the policy forbids."""
    bad = tmp_path / "bad.html"
    text = report.read_text(encoding="utf-8")
    call = (
        '<script>console.error("oh"); fetch("http://127.0.0.1:9/").catch(() => 0)</script></body>'
    )
    bad.write_text(text.replace("</body>", call), encoding="utf-8")
    context = browser.new_context()
    found = Opened(context.new_page(), bad)
    assert "error: oh" in found.complaints
    assert any("Content Security Policy" in text for text in found.complaints)
    context.close()


def test_without_scripts_every_table_is_there(browser: Any, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    shown = context.new_page()
    shown.goto(report.as_uri())
    assert len(shown.get_by_role("tabpanel").all()) == len(TABS)
    assert shown.get_by_role("tab").all() == []
    context.close()
