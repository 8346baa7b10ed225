"""The list of upstream's operations: all of its pages, each carried out here or refused by name."""

from __future__ import annotations

import pytest

import pypto_cast as pypto
from docs.generators.operation_tables import TABLES, names
from pypto_cast.missing_names import ON_950

PAGES_OF_UPSTREAM = 134
"""Files pypto-*.md of docs/zh/api/operation at 883e7dfb0."""


def test_the_list_has_as_many_operations_as_upstream_has_pages() -> None:
    listed = names()
    assert len({*listed}) == len(listed) == PAGES_OF_UPSTREAM
    assert len(TABLES["upstream_operations"]().splitlines()) == PAGES_OF_UPSTREAM + 2


def test_an_operation_is_here_or_of_the_950_alone() -> None:
    for name in names():
        plain = name.removeprefix("experimental.")
        if plain in ON_950:
            with pytest.raises(AttributeError, match="950 alone"):
                getattr(pypto, plain)
            continue
        owner = pypto.experimental if plain != name else pypto
        assert callable(getattr(owner, plain)), name
