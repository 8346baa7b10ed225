"""The pages of the API, one a package: the names that mkdocstrings reads the docstrings of."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from types import MappingProxyType, ModuleType
from typing import Final

import pypto_cast
from pypto_cast import dialects, operations, testing
from pypto_cast.dialects import onnx, openvino, paddle
from simulator import ascendc

ROOMS: Final = ("tiling", "simulator", "ascend_kernels", "pypto_cast")
_OWN_PAGES: Final = frozenset(operations.__all__)
"""Operations, which stand in the pages of operations."""


def documented(module: ModuleType) -> list[tuple[str, str]]:
    """Each public name of a module that has a docstring of its own, and where it is defined."""
    found = []
    for name in sorted(getattr(module, "__all__", dir(module)), key=str.lower):
        value = getattr(module, name)
        is_documentable = inspect.isclass(value) or inspect.isfunction(value)
        if name.startswith("_") or name in _OWN_PAGES or not is_documentable:
            continue
        if value.__module__.split(".")[0] in ROOMS and inspect.getdoc(value):
            found.append((name, f"{value.__module__}.{value.__qualname__}"))
    return found


def _page(*modules: ModuleType) -> str:
    """The page of some modules; a name that the package itself has stands on the package's page."""
    elsewhere = set() if pypto_cast in modules else {home for _, home in documented(pypto_cast)}
    homes = dict.fromkeys(home for module in modules for _, home in documented(module))
    title = f"# {', '.join(module.__name__ for module in modules)}"
    found = [home for home in homes if home not in elsewhere and "<locals>" not in home]
    return "\n\n".join((title, *(f"::: {home}" for home in found))) + "\n"


PAGES: Final = MappingProxyType[str, Callable[[], str]](
    {
        "reference/pypto_cast.md": partial(_page, pypto_cast),
        "reference/testing.md": partial(_page, testing),
        "reference/dialects.md": partial(_page, dialects, onnx, openvino, paddle),
        "reference/ascendc.md": partial(_page, ascendc),
    }
)
