"""All HTML pages have one look, width, keyboard and accessibility; in headless Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from support.devices.certainties import scattered
from support.environment.browser import (
    PAPER,
    OpenedPage,
    browser,
    not_reached,
    opened,
    reached_by_tab,
    scheme,
    size,
)
from support.numbers.codes import SEED

import pypto_cast as pypto
from pypto_cast.cli.main import main
from pypto_cast.kernel.certainty import Certainty
from pypto_cast.report.notebook import fragment
from pypto_cast.report.report import Table, headed
from pypto_cast.routes.atlas_page import atlas_page
from pypto_cast.tuning.report_page import page as tuning_page

__all__ = ["browser", "opened", "scheme", "size"]  # fixtures


def _checkpoint(folder: Path) -> str:
    rng = np.random.default_rng(SEED)
    tensors = {
        f"model.layers.{n}.self_attn.a_projection.weight": np.float32(
            rng.standard_normal((4, 64)) * 10.0 ** rng.integers(-30, 30, (4, 64))
        )
        for n in range(30)
    }
    save_file(tensors, folder / "model.safetensors")
    words = ["checkpoint", folder / "model.safetensors", "--to", "fp16"]
    words += ["-o", folder / "out.safetensors", "--html", folder / "page.html"]
    assert main(list(map(str, words))) == 0
    return (folder / "page.html").read_text(encoding="utf-8")


def _certainty(folder: Path) -> str:
    outputs = (scattered((1000, 700), 0.01, name="large", causes=12),)
    Certainty(outputs=outputs, kernel="quant").html(folder / "page.html")
    return (folder / "page.html").read_text(encoding="utf-8")


PAGES = {
    "atlas": lambda _: atlas_page(),
    "certainty": _certainty,
    "checkpoint": _checkpoint,
    "tune": lambda _: tuning_page(pypto.tune([4096, 4096], pypto.DT_FP16, pypto.DT_INT8)),
    "notebook": lambda _: (
        '<!doctype html><html lang="en"><meta name="viewport" content="width=device-width">'
        '<link rel="icon" href="data:,"><title>A cell</title>'
        '<body style="color-scheme: light dark; margin: 0"><main><h1>A cell</h1>'
        + fragment(Table(caption="x", columns=headed("a", "b"), rows=(("1", "2" * 300),)))
        + "</main></body></html>"
    ),
}


@pytest.fixture(scope="module", params=PAGES)
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    text = PAGES[request.param](folder)
    path = folder / "page.html"
    path.write_text(text, encoding="utf-8")
    return path


def parts_in_turn(opened: OpenedPage) -> Iterator[str]:
    """Opens every tab and every detail that there is by Enter, one after the other."""
    tabs = opened.page.get_by_role("tab").all() or [None]
    for tab in tabs:
        if tab is not None:
            tab.press("Enter")
        for summary in opened.page.locator("summary:visible").all():
            summary.press("Enter")
        assert opened.page.locator("details:not([open])").locator("visible=true").count() == 0
        yield "" if tab is None else tab.inner_text()


def test_a_page_is_small(page: Path) -> None:
    assert page.stat().st_size < 1_000_000


def test_it_has_the_colours_of_the_system_and_the_width_of_the_window(
    opened: OpenedPage, scheme: str
) -> None:
    paper = "getComputedStyle(document.querySelector('.pypto-cast')).backgroundColor"
    assert opened.page.evaluate(paper) == PAPER[scheme]
    for part in parts_in_turn(opened):
        wide, window = opened.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide <= window, part


def test_the_tab_key_reaches_every_control_and_shows_where_it_is(
    browser: Any, page: Path, scheme: str
) -> None:
    context = browser.new_context(color_scheme=scheme)
    opened = OpenedPage(context.new_page(), page)
    reached = reached_by_tab(opened.page)
    assert reached
    assert not_reached(opened.page) == []
    for one in reached:
        assert (one["outlineStyle"], one["outlineWidth"]) == ("solid", "3px"), one
    context.close()


def test_a_control_that_cannot_be_reached_is_noticed(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "bad.html"
    path.write_text("<button style='outline: 0'>a</button><details><summary>b</summary></details>"
                    "<button onfocus='this.blur()'>c</button>")  # fmt: skip
    context = browser.new_context()
    opened = OpenedPage(context.new_page(), path)
    assert [one["outlineStyle"] for one in reached_by_tab(opened.page)] == ["none", "auto"]
    assert [text.startswith("<button onfocus") for text in not_reached(opened.page)] == [True]
    context.close()


@pytest.mark.exhaustive
def test_axe_finds_nothing(opened: OpenedPage) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    ).Axe()
    for part in parts_in_turn(opened):
        found = axe.run(opened.page)
        assert found.violations_count == 0, f"{part}: {found.generate_report()}"


@pytest.mark.exhaustive
def test_axe_finds_what_is_wrong(browser: Any, tmp_path: Path) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    ).Axe()
    path = tmp_path / "bad.html"
    path.write_text("<p style='color: #bbb; background: #fff'>pale</p><img src='data:,'>")
    context = browser.new_context()
    opened = OpenedPage(context.new_page(), path)
    ids = {one["id"] for one in axe.run(opened.page).response["violations"]}
    assert {"color-contrast", "image-alt", "html-has-lang"} <= ids
    context.close()
