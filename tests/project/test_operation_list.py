"""The list of upstream's operations: all of its pages, each here by its name."""

from __future__ import annotations

import pytest

import pypto_cast as pypto
from docs.generators.operation_tables import TABLES, names

PAGES_OF_UPSTREAM = 134
"""Files pypto-*.md of docs/zh/api/operation at 883e7dfb0."""


def test_the_list_has_as_many_operations_as_upstream_has_pages() -> None:
    listed = names()
    assert len({*listed}) == len(listed) == PAGES_OF_UPSTREAM
    assert len(TABLES["upstream_operations"]().splitlines()) == PAGES_OF_UPSTREAM + 2


def test_each_operation_is_in_its_module() -> None:
    for name in names():
        module, _, plain = name.rpartition(".")
        owner = getattr(pypto, module) if module else pypto
        assert callable(getattr(owner, plain)), name
        if module:
            text = f"upstream's {plain} is in pypto.{module}, here too"
            with pytest.raises(AttributeError, match=text):
                getattr(pypto, plain)
