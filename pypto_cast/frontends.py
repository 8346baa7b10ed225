"""The former name of `pypto_cast.dialects`, for one release.

Importing it, or a module below it, gives the module of the new name and a DeprecationWarning.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

from pypto_cast import dialects

_FORMER: Final = f"{__name__}."


class _Renamed(MetaPathFinder, Loader):
    """Imports a module of the former name as the one of the new name, not as a copy of it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname.startswith(_FORMER) else None

    def exec_module(self, module: ModuleType) -> None:
        name = f"{dialects.__name__}.{module.__name__.removeprefix(_FORMER)}"
        sys.modules[module.__name__] = importlib.import_module(name)


warnings.warn(
    "pypto_cast.frontends is called pypto_cast.dialects now; the former name goes with the next "
    "release",
    DeprecationWarning,
    stacklevel=2,
)
sys.meta_path.insert(0, _Renamed())
sys.modules[__name__] = dialects
