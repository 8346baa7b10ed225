"""Puts the generated pages and tables into the site; mkdocs.yml names this file."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs.generators.explorer_page import fragment
from docs.generators.generated import PAGES, TABLES
from docs.generators.markdown_text import joined
from docs.generators.operation_pages import with_operations
from docs.generators.table_words import in_chinese

_ROOT: Final = Path(__file__).parents[2]
_LINK: Final = re.compile(r"\[([^\]]+)\]\((\.\./[^)]*)\)")
_EXPLORER: Final = "<!-- explorer -->"
_MARKER: Final = re.compile(r"<!-- table: (\w+) -->")
_FIGURES: Final = re.compile(r"<!-- figures: ([\w.]+) (\d+): (.*) -->")
_TABLE: Final = re.compile(r"(?:^\|.*\|\n)+", re.M)
_PART: Final = re.compile(r"<!-- part: ([\w.]+) ([\w ]+) -->")


def on_config(config: MkDocsConfig) -> None:
    """Lists the operations below the page of their group."""
    config.nav = with_operations(config.nav)


@event_priority(100)  # before the plugin that sorts files by language
def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that no file holds."""
    for path in PAGES:
        files.append(File(path, config.docs_dir, config.site_dir, config.use_directory_urls))
    return files


def on_page_read_source(page: Page, config: MkDocsConfig) -> str | None:
    """Writes a page that no file holds; None lets mkdocs read the file."""
    write = PAGES.get(page.file.src_uri)
    return None if write is None else write()


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fills in tables, joins Chinese lines, names files that a page of the site cannot link."""
    words = in_chinese if str(config.theme["language"]) == "zh" else str
    markdown = _MARKER.sub(lambda found: words(TABLES[found[1]]()), joined(markdown))
    markdown = _PART.sub(lambda found: words(part_of(found[1], found[2])), markdown)
    markdown = _FIGURES.sub(lambda found: figures_of(found[1], int(found[2]), found[3]), markdown)
    folder = Path(config.docs_dir) / Path(page.file.src_uri).parent

    def outside(found: re.Match[str]) -> str:
        target = (folder / found[2].split("#")[0]).resolve()
        if target.is_relative_to(config.docs_dir):
            return found[0]
        return f"`{target.relative_to(_ROOT)}`"

    return _LINK.sub(outside, markdown)


def part_of(page: str, name: str) -> str:
    """The generated part of an English page, which its translation shows too.

    Raises:
        ValueError: the page has no part of that name.
    """
    text = (_ROOT / "docs" / page).read_text(encoding="utf-8")
    start = rf"<!-- (?:generated: {name}|{name}: generated [^>]*) -->\n"
    found = re.search(rf"{start}(.*?)<!-- end(?: of {name})? -->", text, re.S)
    if found is None:
        raise ValueError(f"docs/{page} has no generated part {name!r}")
    return found[1]


def figures_of(page: str, place: int, headings: str) -> str:
    """A table of an English page under the headings of its translation.

    Args:
        page: its path in docs/.
        place: of the table, from 1.
        headings: with bars between.

    Raises:
        ValueError: the page has no such table, or one of another number of columns.
    """
    text = (_ROOT / "docs" / page).read_text(encoding="utf-8")
    tables = _TABLE.findall(text)
    if not 0 < place <= len(tables):
        raise ValueError(f"docs/{page} has {len(tables)} tables; there is no table {place}")
    first, *rows = tables[place - 1].splitlines()
    if first.count("|") != headings.count("|") + 2:
        raise ValueError(f"the columns of table {place} of docs/{page} are {first}, not {headings}")
    return "\n".join((f"| {headings} |", *rows))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Puts the explorer into its page: script and data are no Markdown."""
    if _EXPLORER not in html:
        return html
    return html.replace(_EXPLORER, fragment(str(config.theme["language"])))


@event_priority(-200)  # after the plugin for languages
def on_post_build(config: MkDocsConfig) -> None:
    """Has search without a network, and redirects of old addresses, know every language.

    The script of that search is written before the plugin for languages has put their words into
    the index; redirects are written for the first language alone.
    """
    redirect_translated(Path(config.site_dir), config.plugins["redirects"].config["redirect_maps"])
    index = Path(config.site_dir) / "search" / "search_index.json"
    if index.exists():
        script = f"var __index = {index.read_text(encoding='utf-8')}"
        index.with_suffix(".js").write_text(script, encoding="utf-8")


def redirect_translated(site: Path, moved: Iterable[str]) -> None:
    """Copy the redirects of pages into the Chinese site, whose pages lie in the same order.

    Args:
        site: the folder of the built site.
        moved: former paths of pages in docs/.
    """
    for path in moved:
        written = (site / path).with_suffix(".html")
        target = site / "zh" / written.relative_to(site)
        if written.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(written, target)
