"""Names of upstream's that are missing end in the package's own words, imports of them too.

Python words a failed `from package import name` itself, unless an import of the submodule of that
name, which it tries before, raises something else. So the modules with upstream's names stand as
packages without files, and a finder after all others raises.
"""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final, NoReturn

from pypto_cast.unsupported import unknown_name

ROOT: Final = "pypto_cast"
_SPOKEN: Final[dict[str, str]] = {}
"""What messages call the modules that speak for missing names, by their names."""


def names_of(module: str) -> tuple[list[str], Callable[[str], NoReturn]]:
    """The `__path__` and the `__getattr__` of a module that stands for one of upstream's."""
    name = module.rpartition(".")[2]
    spoken = name if name == ROOT else f"{ROOT}.{name}"
    _SPOKEN[module] = _SPOKEN[spoken] = spoken

    def missing(name: str) -> NoReturn:
        raise AttributeError(unknown_name(name, spoken))

    return [], missing


class _AbsentFinder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        owner, _, name = fullname.rpartition(".")
        if owner in _SPOKEN and not name.startswith("__"):
            # Not the full name: with that, Python would take the name for an optional submodule.
            raise ModuleNotFoundError(unknown_name(name, _SPOKEN[owner]), name=name)
        return None


sys.meta_path.append(_AbsentFinder())
