"""This package under upstream's name, and its modules under those of upstream.

`as_pypto` is for files that say `import pypto`. Upstream's submodules are modules of this package.

A missing name of upstream raises the package's own message, in an import too. Python has its own
message for a failed `from package import name`, unless an import of the submodule of that name,
which it tries before, raises. So the modules with names of upstream are packages without files, and
a finder after all others raises.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final, NoReturn

from pypto_cast.missing_names import unknown_name

NAME: Final = "pypto"
_OURS: Final = "pypto_cast"
_DISPLAY_NAMES: Final[dict[str, str]] = {}
"""Names in messages of the modules whose missing names are reported, by module."""


def module_getattr(module: str) -> tuple[list[str], Callable[[str], NoReturn]]:
    """The `__path__` and the `__getattr__` of a module that stands for one of upstream's."""
    name = module.rpartition(".")[2]
    displayed = name if name == _OURS else f"{_OURS}.{name}"
    _DISPLAY_NAMES[module] = _DISPLAY_NAMES[displayed] = displayed

    def missing(name: str) -> NoReturn:
        raise AttributeError(unknown_name(name, displayed, _names_of(module)))

    return [], missing


def _names_of(module: str) -> Sequence[str]:
    """The names that a module offers, without its own imports if it lists those names."""
    found = sys.modules[module]
    return [*(vars(found).get("__all__") or dir(found))]


class _MissingNameFinder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        owner, _, name = fullname.rpartition(".")
        if owner in _DISPLAY_NAMES and not name.startswith("__"):
            # Not the full name: with that, Python would take the name for an optional submodule.
            text = unknown_name(name, _DISPLAY_NAMES[owner], _names_of(owner))
            raise ModuleNotFoundError(text, name=name)
        return None


sys.meta_path.append(_MissingNameFinder())


MODULES: Final[Mapping[str, str]] = {
    "error": "pypto_cast.error",
    "experimental": "pypto_cast.upstream.experimental",
    "frontend": "pypto_cast.frontend",
    "operation": "pypto_cast.upstream.operation",
    "platform": "pypto_cast.platform",
    "pypto_impl": "pypto_cast.upstream.pypto_impl",
    "runtime": "pypto_cast.upstream.runtime",
    "symbolic_scalar": "pypto_cast.tensors.symbolic",
}
"""By upstream's name."""


def name_modules(package: str) -> None:
    """Have Python import them as submodules of a package, without another copy of any."""
    for name, module in MODULES.items():
        sys.modules.setdefault(f"{package}.{name}", importlib.import_module(module))


class InstalledPyptoError(ImportError):
    """Upstream's own pypto is there, and would be hidden."""


class InstalledPyptoWarning(UserWarning):
    """Upstream's own pypto is there, and is hidden for a while, as was asked."""


class _PyptoFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
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
            text = unknown_name(name, _OURS, (*MODULES, *dir(sys.modules[_OURS])))
            raise ModuleNotFoundError(text, name=fullname)
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
        InstalledPyptoError: pypto is installed; pass replace_installed=True to hide it.

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
    finder = _PyptoFinder()
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
