"""The reference: every public name is on the page of one group, and the navigation has them all."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from support.environment.sources import ROOT

import pypto_cast
from docs.generators.api_pages import GROUPS, PAGES, Entry, documented, entries_of, group_of
from pypto_cast import operations

INDEX = "reference/pypto_cast.md"


def homes(page: str) -> list[str]:
    return re.findall(r"^::: (\S+)$", PAGES[page](), re.M)


def test_every_name_is_on_one_page_and_in_the_index() -> None:
    counts = Counter(home for page in PAGES for home in homes(page))
    assert set(counts.values()) == {1}
    entries = documented(pypto_cast)
    assert {entry.home for entry in entries} <= set(counts)
    assert all(f"`{entry.name}`" in PAGES[INDEX]() for entry in entries)
    assert {"Tensor", "cast", "jit", "tune"} <= {entry.name for entry in entries}
    assert not {entry.name for entry in entries} & set(operations.__all__)


def test_names_stand_in_the_order_of_their_use() -> None:
    for group in GROUPS:
        names = [entry.name for entry in entries_of(group)]
        assert names[: len(group.names)] == list(group.names)
    assert homes("reference/operations.md")[0] == "pypto_cast.cast.api.cast"


def test_the_navigation_has_the_groups_in_their_order() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r'^      - "?([^":]+)"?: (reference/\w+\.md)$', text, re.M)
    assert listed[1:] == [("pypto_cast", INDEX), *((g.title, g.page) for g in GROUPS)]
    for group in GROUPS:
        assert re.search(rf'^            "?{group.title}"?: [^a-z]', text, re.M)


def test_a_name_of_a_room_without_a_group_is_refused() -> None:
    with pytest.raises(LookupError, match="thing of pypto_cast"):
        group_of(Entry(name="thing", home="pypto_cast.attic.thing", text=""))
    entry = Entry(name="thing", home="pypto_cast.tensors_of_another.thing", text="")
    with pytest.raises(LookupError):
        group_of(entry)
