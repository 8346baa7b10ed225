"""The reference: every public name is on the page of one group, and the navigation has them all."""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from types import ModuleType

import pytest
from support.environment.sources import ROOT

import pypto_cast
from ascend_kernels.schedule import parts
from docs.generators.api_pages import (
    GROUPS,
    PAGES,
    Entry,
    documented,
    entries_of,
    group_of,
    sentence_zh,
)
from docs.generators.api_words import SENTENCES_ZH
from docs.generators.error_words import GROUPS as ERROR_GROUPS
from pypto_cast import operations
from pypto_cast.dialects import onnx

INDEX = "reference/pypto_cast.md"


ENGLISH = [page for page in PAGES if not page.endswith(".zh.md")]


def homes(page: str) -> list[str]:
    return re.findall(r"^::: (\S+)$", PAGES[page](), re.M)


@pytest.mark.slow
def test_every_name_is_on_one_page_and_in_the_index() -> None:
    counts = Counter(home for page in ENGLISH for home in homes(page))
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


def test_the_chinese_pages_have_the_names_and_link_their_english_documentation() -> None:
    """An error has its sentence on the page of errors, so that none is written twice."""
    entries = [entry for group in GROUPS for entry in entries_of(group)]
    errors = {name for *_, classes in ERROR_GROUPS for name in classes}
    worded = {entry.name for entry in entries if entry.name.rpartition(".")[2] not in errors}
    assert worded == {*SENTENCES_ZH}
    for group in GROUPS:
        page = PAGES[group.page.replace(".md", ".zh.md")]()
        path = group.page.replace(".md", ".html")
        linked = re.findall(rf'^\| <a href="\.\./\.\./{path}#([\w.]+)">', page, re.M)
        assert linked == homes(group.page)
        assert all(f"`{entry.name}`" in page for entry in entries_of(group))
    with pytest.raises(LookupError, match="thing has no Chinese sentence"):
        sentence_zh(Entry(name="thing", home="pypto_cast.thing", text=""))


def test_the_page_of_schedules_has_every_part() -> None:
    kinds = [kind for _, kind in inspect.getmembers(parts, inspect.isclass)]
    own = {f"{parts.__name__}.{x.__name__}" for x in kinds if x.__module__ == parts.__name__}
    (group,) = (each for each in GROUPS if each.title == "Schedules")
    assert own == {name for name in group.names if name.startswith(parts.__name__)}
    assert [entry.name for entry in entries_of(group)] == list(group.names)


def _listed(*titles: str) -> list[ModuleType]:
    return [module for each in GROUPS if each.title in titles for module in each.modules]


@pytest.mark.parametrize("module", _listed("Models", "Testing", "AscendC's objects"), ids=str)
def test_a_star_import_gives_the_documented_names_and_no_submodule(module: ModuleType) -> None:
    bound: dict[str, object] = {}
    exec(f"from {module.__name__} import *", bound)
    submodules = {name for name, value in bound.items() if isinstance(value, ModuleType)}
    assert submodules == ({"backend", "reference"} if module is onnx else set())
    body = ast.parse(inspect.getsource(module)).body
    imports = [each for each in body if isinstance(each, ast.ImportFrom)]
    own = [each for each in imports if str(each.module).startswith(f"{module.__name__}.")]
    assert own
    assert {alias.name for each in own for alias in each.names} <= bound.keys()
    assert "names_of" not in bound


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
