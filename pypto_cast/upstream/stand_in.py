"""`as_pypto`: this package under upstream's name, for files that say `import pypto`."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.util
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

from pypto_cast.unsupported import unknown_name
from pypto_cast.upstream.modules import name_modules

NAME: Final = "pypto"
_OURS: Final = "pypto_cast"


class InstalledPyptoError(ImportError):
    """Upstream's own pypto is there, and would be hidden."""


class InstalledPyptoWarning(UserWarning):
    """Upstream's own pypto is there, and is hidden for a while, as was asked."""


class _StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives this package under upstream's name once that is imported, from when on its defaults
    hold, and says of submodules that they are not here; before a finder of files looks.
    """

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """This package."""
        self._own_spec = sys.modules[_OURS].__spec__
        return sys.modules[_OURS]

    def exec_module(self, module: ModuleType) -> None:
        """Name its submodules; it has run already."""
        module.__spec__ = self._own_spec
        name_modules(NAME)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == NAME:
            return ModuleSpec(NAME, self)
        if fullname.startswith(f"{NAME}."):
            name = fullname.removeprefix(f"{NAME}.")
            raise ModuleNotFoundError(unknown_name(name, _OURS), name=fullname)
        return None


@contextlib.contextmanager
def as_pypto(*, replace_installed: bool = False) -> Iterator[ModuleType]:
    """Have `import pypto`, and imports of its submodules, give this package.

    This holds for the whole process, as Python's modules do, until the end of the `with` statement;
    then they are as before. What was imported inside keeps this package. From the first such import
    until the end a cast that names no satmode follows upstream's default, OFF, unless
    `options(satmode="seed")` is set.

    Args:
        replace_installed: hide a pypto that is installed or imported, with a warning.

    Returns:
        This package.

    Raises:
        InstalledPyptoError: there is one, and it is not to be hidden.

    Warns:
        InstalledPyptoWarning: it is hidden.
    """
    ours = sys.modules[_OURS]
    found = _installed()
    if found is not None:
        if not replace_installed:
            raise InstalledPyptoError(
                f"pypto is installed here ({found}); pypto_cast does not take its name unless "
                "asked: as_pypto(replace_installed=True), pypto-cast run --replace-installed, "
                "pytest --pypto-replace-installed"
            )
        text = f"pypto_cast stands for the pypto that is installed here ({found})"
        warnings.warn(text, InstalledPyptoWarning, stacklevel=3)
    before = _taken_out()
    finder = _StandIn()
    sys.meta_path.insert(0, finder)
    try:
        yield ours
    finally:
        sys.meta_path.remove(finder)
        _taken_out()
        sys.modules.update(before)


def _taken_out() -> dict[str, ModuleType]:
    """Remove the modules of that name, and return them."""
    names = [name for name in sys.modules if name == NAME or name.startswith(f"{NAME}.")]
    return {name: sys.modules.pop(name) for name in names}


def _installed() -> str | None:
    """Finds another pypto; None if there is none. A folder without `__init__.py` is none."""
    loaded = sys.modules.get(NAME)
    if loaded is not None and loaded.__name__ == _OURS:
        return None
    spec = importlib.util.find_spec(NAME) if loaded is None else loaded.__spec__
    if spec is None and loaded is None:
        return None
    origin = getattr(spec, "origin", None) or getattr(loaded, "__file__", None)
    return origin if origin is not None or loaded is None else repr(loaded)
