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
SCHEMES: Final = {"light": "default", "dark": "slate"}
"""The palettes of the site."""
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


def screens(page: Any, path: Path) -> Iterator[tuple[str, str]]:
    """Load a page once, and show it in every width and theme; yields the two names."""
    page.goto(path.as_uri())
    page.add_style_tag(content="* { transition: none !important; animation: none !important }")
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        page.evaluate(
            "(name) => document.querySelector(`input[data-md-color-scheme=${name}]`)?.click()",
            SCHEMES[theme],
        )
        for width, pixels in WIDTHS.items():
            page.set_viewport_size({"width": pixels, "height": _HEIGHT})
            yield width, theme


def sheets(browser: Any, pages: list[Path]) -> Iterator[tuple[str, bytes]]:
    """For each width and theme their names and one image with the first screen of every page."""
    cells: dict[str, list[str]] = {}
    page = browser.new_page()
    for path in pages:
        name = escape("/".join(path.parts[-2:]))
        for screen in screens(page, path):
            cells.setdefault("-".join(screen), []).append(_cell(page, name))
    page.close()
    for screen_name, found in cells.items():
        yield screen_name, _image(browser, found)


def _cell(page: Any, name: str) -> str:
    picture = base64.b64encode(page.screenshot(type="jpeg", quality=60)).decode()
    return (
        f'<figure><img src="data:image/jpeg;base64,{picture}"><figcaption>{name}'
        "</figcaption></figure>"
    )


def _image(browser: Any, cells: list[str]) -> bytes:
    page = browser.new_page(viewport={"width": _ACROSS * (_THUMB + 12), "height": _HEIGHT})
    page.set_content(
        "<style>body{display:flex;flex-wrap:wrap;gap:8px;margin:8px;font:10px sans-serif}"
        f"figure{{margin:0;width:{_THUMB}px}}img{{width:100%;border:1px solid #888}}</style>"
        + "".join(cells)
    )
    image: bytes = page.screenshot(full_page=True)
    page.close()
    return image


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m docs.generators.contact_sheets")
    parser.add_argument("site", type=Path)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=list(_FLAGS)
        )
        for language in LANGUAGES:
            for name, image in sheets(browser, pages_of(given.site.resolve(), language)):
                path = given.folder / f"{language}-{name}.png"
                path.write_bytes(image)
                print(path)
        browser.close()


if __name__ == "__main__":
    main()
