"""The page of names: what it says of numpy, torch and pypto is there."""

from __future__ import annotations

import importlib
import re
from functools import reduce
from types import ModuleType

import numpy as np
import pytest

import pypto_cast as pypto
from docs.generators.name_pages import page, rows

_IS_NAME = re.compile(r"[\w.]+")
_METHODS = ("astype", "copy", "to", "expand", "index_put")
"""Names that are methods of an array or a tensor."""


def _has(package: ModuleType, name: str) -> bool:
    missing = object()
    found = reduce(lambda owner, part: getattr(owner, part, missing), name.split("."), package)
    return found is not missing


def test_names_of_numpy_and_pypto_are_there() -> None:
    for of_numpy, _, name in rows():
        assert hasattr(pypto, name)
        if _IS_NAME.fullmatch(of_numpy) and of_numpy not in _METHODS:
            assert _has(np, of_numpy), of_numpy


def test_names_of_torch_are_there() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    importlib.import_module("torch.nn.functional")
    for _, of_torch, _ in rows():
        if _IS_NAME.fullmatch(of_torch) and of_torch not in _METHODS:
            assert _has(torch, of_torch), of_torch


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_links_every_operation(language: str) -> None:
    shown = page(language)
    assert "| `arctan2` | `atan2` | [atan2](operations/atan2.md) |" in shown
    assert "| `astype` | `to` | `cast` |" in shown
