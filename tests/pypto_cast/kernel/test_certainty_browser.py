"""The picture of a certainty in a real browser: headless Chromium, driven by Playwright."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.devices.certainties import between, exact, scattered
from support.environment.browser import PAPER, SIZES, OpenedPage, browser, opened, scheme, size

from pypto_cast.kernel.certainty import Certainty

__all__ = ["browser", "opened", "scheme", "size"]  # fixtures


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    low = np.zeros((6, 8), np.int8)
    high = low.copy()
    high[2, 5] = 3
    path = tmp_path_factory.mktemp("certainty") / "page.html"
    outputs = (
        between(low, high, name="small"),
        scattered((1000, 700), 0.01, name="large", causes=12),
        exact("plain", np.zeros(10, np.float16)),
    )
    Certainty(outputs=outputs, kernel="quant").html(path)
    return path


def pixel(opened: OpenedPage, row: int, col: int) -> list[int]:
    """The colour in the middle of a cell of the first picture, 6 x 8 cells."""
    found: list[int] = opened.page.evaluate(
        """([row, col]) => {
            const canvas = document.getElementById("picture-0");
            const [x, y] = [(col + 0.5) * canvas.width / 8, (row + 0.5) * canvas.height / 6];
            const copy = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
            const pen = copy.getContext("2d", { willReadFrequently: true });
            pen.drawImage(canvas, -Math.floor(x), -Math.floor(y));
            return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
        }""",
        [row, col],
    )
    return found


def test_a_narrow_output_is_no_hair_and_has_coordinates(browser: Any, tmp_path: Path) -> None:
    narrow = between(np.zeros((12, 1), np.int8), np.ones((12, 1), np.int8))
    Certainty(outputs=(narrow,)).html(tmp_path / "page.html")
    context = browser.new_context(viewport=SIZES["phone"])
    shown = OpenedPage(context.new_page(), tmp_path / "page.html").page
    box = shown.locator("#picture-0").bounding_box()
    assert box["width"] >= 200
    assert box["height"] >= 12 * 12
    labels = shown.locator(".picture .rows span")
    assert labels.all_inner_texts() == ["0", "2", "4", "6", "8", "10"]
    assert shown.locator(".picture .axis").inner_text() == "across: axis 1; down: axis 0"
    # The labels stand beside the middle of their cells.
    label = labels.nth(2).bounding_box()
    middle = label["y"] + label["height"] / 2 - box["y"]
    assert abs(middle - 4.5 * box["height"] / 12) < 3
    context.close()


def test_colours_follow_the_system(opened: OpenedPage, scheme: str) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    assert opened.page.evaluate(paper) == PAPER[scheme]
    certain = {"light": [0xEC, 0xEF, 0xF2], "dark": [0x1D, 0x22, 0x28]}
    other = "dark" if scheme == "light" else "light"
    assert pixel(opened, 2, 5) == [0x99] * 3  # of 13 causes the lightest
    assert pixel(opened, 2, 4) == certain[scheme]
    opened.page.emulate_media(color_scheme=other)
    assert opened.page.evaluate(paper) == PAPER[other]
    # the page hears of a change when the next frame is made, before that frame's callbacks
    opened.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => done()))")
    assert pixel(opened, 2, 4) == certain[other]


def test_hovering_tells_the_interval_and_its_cause(opened: OpenedPage) -> None:
    canvas, tip = opened.page.locator("#picture-0"), opened.page.locator("#tip")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()

    def move(row: int, col: int) -> None:
        x, y = box["x"] + (col + 0.5) * box["width"] / 8, box["y"] + (row + 0.5) * box["height"] / 6
        opened.page.mouse.move(x, y)

    move(2, 5)
    assert tip.inner_text().splitlines() == [
        "[2, 5]: 0 here, from 0 to 3 possible",
        "left open by div at norm.py:14",
    ]
    place = tip.bounding_box()
    assert 0 <= place["x"] <= place["x"] + place["width"] <= opened.page.viewport_size["width"]
    move(2, 4)
    assert tip.is_hidden()
    move(2, 5)
    assert tip.is_visible()
    opened.page.mouse.move(0, 0)
    assert tip.is_hidden()


def test_keys_step_through_what_is_undecided(opened: OpenedPage) -> None:
    canvas, tip = opened.page.locator("#picture-1"), opened.page.locator("#tip")
    canvas.focus()
    seen = []
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "End", "ArrowRight", "Home", "Escape"):
        opened.page.keyboard.press(key)
        seen.append(tip.inner_text() if tip.is_visible() else "")
    first, second, back, end, still, home, gone = seen
    assert first == back == home != second
    assert end == still != first
    assert gone == ""
    counts, where, *causes = first.splitlines()
    assert counts.endswith(" of 266 undecided")
    assert where.startswith("first [7, 7]: ")
    assert sum(int(line.split()[0]) for line in causes) <= int(counts.split()[0])
    # An exact output has nothing to step to.
    opened.page.locator("#picture-2").focus()
    for key in ("ArrowRight", "ArrowLeft", "Home", "End"):
        opened.page.keyboard.press(key)
        assert tip.is_hidden()


def test_a_touch_tells_too(browser: Any, page: Path) -> None:
    context = browser.new_context(viewport=SIZES["phone"], has_touch=True)
    found = OpenedPage(context.new_page(), page)
    canvas = found.page.locator("#picture-0")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    x, y = box["x"] + 5.5 * box["width"] / 8, box["y"] + 2.5 * box["height"] / 6
    found.page.touchscreen.tap(x, y)
    assert "from 0 to 3 possible" in found.page.locator("#tip").inner_text()
    assert found.complaints == []
    context.close()


def test_without_scripts_shares_and_causes_are_there(browser: Any, page: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    shown = context.new_page()
    shown.goto(page.as_uri())
    assert "small: DT_INT8 [6, 8], 97.91% certain, 1 of 48 undecided" in shown.inner_text("main")
    assert "left open by div at part" in shown.inner_text("ul.keys >> nth=0")
    context.close()
