"""All pages and tables that are generated: the path or the marker of each, and its generator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from docs.generators import (
    api_pages,
    change_page,
    command_page,
    device_tables,
    error_pages,
    fidelity_tables,
    lint_tables,
    name_pages,
    notebook_page,
    operation_pages,
    operation_tables,
)

PAGES: Final[Mapping[str, Callable[[], str]]] = {
    **operation_pages.PAGES,
    **api_pages.PAGES,
    **name_pages.PAGES,
    **command_page.PAGES,
    **change_page.PAGES,
    **error_pages.PAGES,
    **notebook_page.PAGES,
}
"""Pages by their path in docs/."""

TABLES: Final[Mapping[str, Callable[[], str]]] = {
    **device_tables.TABLES,
    **fidelity_tables.TABLES,
    **lint_tables.TABLES,
    **operation_tables.TABLES,
}
"""Tables by the name that a page gives in `<!-- table: NAME -->`."""
