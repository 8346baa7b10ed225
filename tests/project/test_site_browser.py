"""The built site in Chromium: every page in both languages, widths and themes, and on paper."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.environment.browser import browser
from support.environment.sources import ROOT

from docs.generators.contact_sheets import (
    LANGUAGES,
    SCHEMES,
    THEMES,
    WIDTHS,
    pages_of,
    screens,
    sheets,
)

__all__ = ["browser"]  # a fixture

FAULTS = (ROOT / "tests/support/environment/page_faults.js").read_text(encoding="utf-8")
PARTS = 15
"""Of the pages of a language, each a test of its own, which a loaded machine ends in its time."""
BAD = """<!doctype html><body style="background: #fff">
<p style="color: #999">faint</p>
<p style="width: 40px; overflow: hidden; white-space: nowrap">text that is cut at its end</p>
<svg width="40" height="20"><text x="-5" y="15">left</text></svg>
<p style="width: 3000px">wide</p>
<p>well</p>"""


def faults_of(page: Any) -> list[str]:
    found: list[str] = page.evaluate(FAULTS)
    return found


def test_each_fault_is_found(browser: Any) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.set_content(BAD)
    found = [fault.partition(":")[0] for fault in faults_of(page)]
    assert found == ["scrolls sideways", "cut", "contrast 2.85", "cut"]
    page.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed")
    named = os.environ.get("PYPTO_CAST_TEST_SITE")
    if named is not None:
        return Path(named)
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(words, cwd=ROOT, env=environment, check=True)
    return folder


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_page_has_a_fault(site: Path, browser: Any, language: str, part: int) -> None:
    page = browser.new_page()
    found: dict[str, list[str]] = {}
    pages = pages_of(site, language)[part::PARTS]
    for path in pages:
        for width, theme in screens(page, path):
            assert page.evaluate("document.body.dataset.mdColorScheme") == SCHEMES[theme]
            assert page.evaluate("innerWidth") == WIDTHS[width]
            if faults := faults_of(page):
                found[f"{path.relative_to(site)} {width}-{theme}"] = faults
    page.close()
    assert pages
    assert found == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(PARTS))
def test_pages_on_paper_cut_no_code(site: Path, browser: Any, part: int) -> None:
    page = browser.new_page(viewport={"width": 720, "height": 1000})
    page.emulate_media(media="print")
    cut = """() => [...document.querySelectorAll("pre > code, table")]
        .filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
        .map((e) => e.textContent.slice(0, 60))"""
    found: dict[str, list[str]] = {}
    for path in pages_of(site, "en")[part::PARTS]:
        page.goto(path.as_uri())
        if wide := page.evaluate(cut):
            found[path.name] = wide
    page.close()
    assert found == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("language", LANGUAGES)
def test_an_old_address_leads_to_its_page(site: Path, browser: Any, language: str) -> None:
    """As deep in the site of each language, and to the place on the page."""
    folder = site if language == LANGUAGES[0] else site / language
    configured = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    moved = re.findall(r"^        (\S+)\.md: (\S+)\.md$", configured, re.M)
    assert len(moved) == 12
    page = browser.new_page()
    for old, new in moved:
        target = (folder / f"{new}.html").as_uri()
        page.goto(f"{(folder / f'{old}.html').as_uri()}#x")
        page.wait_for_url(f"{target}#x")
        assert page.locator("html").get_attribute("lang") == language
    page.close()


@pytest.mark.exhaustive
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_cheat_sheet_is_one_page_of_paper(site: Path, browser: Any, language: str) -> None:
    (path,) = (each for each in pages_of(site, language) if each.name == "cheat_sheet.html")
    page = browser.new_page()
    page.goto(path.as_uri())
    printed = page.pdf(format="A4")
    page.close()
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1


@pytest.mark.exhaustive
@pytest.mark.parametrize("language", LANGUAGES)
def test_search_without_a_network_finds_words(site: Path, browser: Any, language: str) -> None:
    page = browser.new_page()
    start = next(each for each in pages_of(site, language) if each.name == "index.html")
    page.goto(start.as_uri())
    field = page.locator(".md-search__input").first
    field.fill("saturation" if language == "en" else "饱和")
    field.press("End")  # the page asks when a key comes up, or a moment after it has the focus
    page.wait_for_selector(".md-search-result__item", timeout=60_000)
    page.close()


def test_a_contact_sheet_has_each_page(tmp_path: Path, browser: Any) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.html").write_text(f"<h1>{name}</h1>", encoding="utf-8")
    moved = '<meta http-equiv="refresh" content="0; url=a.html">'
    (tmp_path / "moved.html").write_text(moved, encoding="utf-8")
    pages = pages_of(tmp_path, "en")
    assert [path.name for path in pages] == ["a.html", "b.html"]
    found = dict(sheets(browser, pages))
    assert [*found] == [f"{width}-{theme}" for theme in THEMES for width in WIDTHS]
    assert all(image.startswith(b"\x89PNG") for image in found.values())
    assert len({*found.values()}) == 2  # the widths; a page without a palette has one theme
