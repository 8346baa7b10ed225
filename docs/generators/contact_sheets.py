"""Contact sheets of the built site: one image for each language, width and theme, of all pages.

python -m mkdocs build -d SITE
python -m docs.generators.contact_sheets SITE FOLDER     writes FOLDER/en-phone-light.png and others
"""

from __future__ import annotations

import argparse
import base64
import shutil
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, Final

WIDTHS: Final = {"desktop": 1280, "phone": 390}
THEMES: Final = ("light", "dark")
LANGUAGES: Final = ("en", "zh")
_HEIGHT: Final = 900
_HEAD: Final = 1000
"""Characters in which a page that redirects says so."""
_THUMB: Final = 200
_ACROSS: Final = 10
_FLAGS: Final = ("--no-sandbox", "--disable-gpu")


def pages_of(site: Path, language: str) -> list[Path]:
    """The pages of a language, in the order of their paths, but for redirections."""
    folder = site if language == LANGUAGES[0] else site / language
    others = [site / each for each in LANGUAGES[1:]]
    return [
        path
        for path in sorted(folder.rglob("*.html"))
        if path.name != "404.html"
        and 'http-equiv="refresh"' not in path.read_text(encoding="utf-8")[:_HEAD]
        and (language != LANGUAGES[0] or not any(path.is_relative_to(each) for each in others))
    ]


def sheet(browser: Any, pages: list[Path], width: int, theme: str) -> bytes:
    """One image with the first screen of every page."""
    context = browser.new_context(viewport={"width": width, "height": _HEIGHT}, color_scheme=theme)
    page = context.new_page()
    cells = [_cell(page, path) for path in pages]
    context.close()
    page = browser.new_page(viewport={"width": _ACROSS * (_THUMB + 12), "height": _HEIGHT})
    page.set_content(
        "<style>body{display:flex;flex-wrap:wrap;gap:8px;margin:8px;font:10px sans-serif}"
        f"figure{{margin:0;width:{_THUMB}px}}img{{width:100%;border:1px solid #888}}</style>"
        + "".join(cells)
    )
    image: bytes = page.screenshot(full_page=True)
    page.close()
    return image


def _cell(page: Any, path: Path) -> str:
    page.goto(path.as_uri())
    picture = base64.b64encode(page.screenshot(type="jpeg", quality=60)).decode()
    name = escape("/".join(path.parts[-2:]))
    return (
        f'<figure><img src="data:image/jpeg;base64,{picture}"><figcaption>{name}'
        "</figcaption></figure>"
    )


def sheets(site: Path) -> Iterator[tuple[str, bytes]]:
    """The name and the image of each sheet."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=list(_FLAGS)
        )
        for language in LANGUAGES:
            for name, width in WIDTHS.items():
                for theme in THEMES:
                    image = sheet(browser, pages_of(site, language), width, theme)
                    yield f"{language}-{name}-{theme}.png", image
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m docs.generators.contact_sheets")
    parser.add_argument("site", type=Path)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for name, image in sheets(given.site.resolve()):
        (given.folder / name).write_bytes(image)
        print(given.folder / name)


if __name__ == "__main__":
    main()
