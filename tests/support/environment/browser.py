"""Pages in headless Chromium, driven by Playwright."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("there is no chromium", allow_module_level=True)

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield started
        started.close()


class OpenedPage:
    """A page that keeps what the browser complained of, and what it asked for."""

    def __init__(self, page: Any, path: Path) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda said: self.complaints.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(path.as_uri())


def reached_by_tab(page: Any) -> list[dict[str, Any]]:
    """The elements that the Tab key reaches, from the start of the page, with their outlines."""
    reached: list[dict[str, Any]] = []
    page.evaluate("document.activeElement.blur()")
    while True:
        page.keyboard.press("Tab")
        found = page.evaluate(
            """() => {
                const element = document.activeElement;
                if (element === document.body || element.dataset.reached) return null;
                element.dataset.reached = "yes";
                const { outlineStyle, outlineWidth } = getComputedStyle(element);
                return { html: element.outerHTML.slice(0, 120), outlineStyle, outlineWidth };
            }"""
        )
        if found is None:
            return reached
        reached.append(found)


def not_reached(page: Any) -> list[str]:
    """The controls in sight that `reached_by_tab` did not come to."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("a[href], button, select, summary, [tabindex='0']")]
            .filter((e) => e.checkVisibility() && !e.dataset.reached && e.tabIndex >= 0)
            .map((e) => e.outerHTML.slice(0, 120))"""
    )
    return found


# --- Fixtures: the `page` of a test module under every size and colour scheme ---------------------

SIZES = {"desktop": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}
PAPER = {"light": "rgb(255, 255, 255)", "dark": "rgb(16, 19, 22)"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(params=SIZES)
def size(request: pytest.FixtureRequest) -> Any:
    return SIZES[request.param]


@pytest.fixture(params=PAPER)
def scheme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def opened(browser: Any, page: Path, size: Any, scheme: str) -> Iterator[OpenedPage]:
    """The page, which complains of nothing and asks for no other file."""
    context = browser.new_context(viewport=size, color_scheme=scheme)
    found = OpenedPage(context.new_page(), page)
    yield found
    assert found.complaints == []
    assert found.requests == [page.as_uri()]
    context.close()
