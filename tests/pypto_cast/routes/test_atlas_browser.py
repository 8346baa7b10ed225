"""The atlas of routes in a real browser: headless Chromium, driven by Playwright."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.environment.browser import OpenedPage, browser

from pypto_cast.routes.atlas_page import atlas_page
from simulator.numbers.rounding import RoundMode

__all__ = ["browser"]  # a fixture


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("atlas") / "atlas.html"
    path.write_text(atlas_page(), encoding="utf-8")
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_pair_shows_its_routes_in_the_mode_that_is_chosen(
    browser: Any, page: Path, scheme: str
) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    opened = OpenedPage(context.new_page(), page)
    view = opened.page
    assert view.inner_text("#pair h2") == "FP32 to FP16, CAST_RINT"
    view.locator('button[data-pair="INT32 BF16"]').press("Enter")
    assert view.get_attribute('button[data-pair="INT32 BF16"]', "class") == "differs"
    assert "differs on 2,944 of" in view.inner_text("#pair")
    assert view.locator("#pair svg rect").count() > 10
    for mode in list(RoundMode)[1 : list(RoundMode).index(RoundMode.TRUNC) + 1]:
        view.locator("#mode").press("ArrowDown")
        assert view.input_value("#mode") == mode.name
    assert view.get_attribute('button[data-pair="INT32 BF16"]', "class") == "exact"
    assert "INT32 -> FP32 CAST_TRUNC -> BF16 CAST_TRUNC" in view.inner_text("#pair")
    assert view.evaluate("document.documentElement.scrollWidth") <= 390
    assert opened.complaints == []
    assert opened.requests == [page.as_uri()]
    context.close()
