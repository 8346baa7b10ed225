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


def _schedule(folder: Path, leaves: int) -> str:
    """A kernel of as many leaves: each statement has another shape, and other operations."""
    shapes = [(8 * (n % 7 + 1), 64 * (n % 5 + 1)) for n in range(leaves)]
    tensors = ", ".join(f"x{n}: T{n}, y{n}: T{n}" for n in range(leaves))
    lines = [f"T{n} = pypto.Tensor[{list(x)}, pypto.DT_FP32]" for n, x in enumerate(shapes)]
    lines += ["@pypto.frontend.jit", f"def many({tensors}):"]
    lines += ["    pypto.set_vec_tile_shapes(8, 64)"]
    lines += [
        f"    y{n}[:] = {'pypto.exp(' * (n % 3 + 1)}x{n} + {n}.0" + ")" * (n % 3 + 1)
        for n in range(leaves)
    ]
    (folder / "many.py").write_text("\n".join(["import pypto_cast as pypto", *lines, ""]))
    words = ["schedule", f"{folder}/many.py::many", "--html", f"{folder}/schedule.html"]
    assert main(words) == 0
    return (folder / "schedule.html").read_text(encoding="utf-8")


PAGES = {
    "atlas": lambda _: atlas_page(),
    "certainty": _certainty,
    "schedule-of-one-leaf": lambda folder: _schedule(folder, 1),
    "schedule-of-60-leaves": lambda folder: _schedule(folder, 60),
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


def test_labels_of_an_axis_do_not_overlap(opened: OpenedPage) -> None:
    boxes = """() => [...document.querySelectorAll('.ticks')].map(axis => [...axis.children]
        .map(each => each.getBoundingClientRect()).filter(box => box.width)
        .map(box => [box.left, box.right]))"""
    for part in parts_in_turn(opened):
        for axis in opened.page.evaluate(boxes):
            ends = [end for _, end in axis]
            starts = [start for start, _ in axis]
            assert all(map(float.__le__, map(float, ends), map(float, starts[1:]))), (part, axis)


def test_no_table_is_cut_off_on_paper(browser: Any, page: Path) -> None:
    """A4 without margins; a table scrolls on a screen, which paper cannot."""
    context = browser.new_context(viewport={"width": 794, "height": 1123})
    opened = OpenedPage(context.new_page(), page)
    opened.page.emulate_media(media="print")
    hidden = """() => [...document.querySelectorAll('.pypto-cast .scroll')].filter(each =>
        each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).overflowX != 'visible')
        .map(each => each.textContent.slice(0, 80))"""
    assert opened.page.evaluate(hidden) == []
    context.close()


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
