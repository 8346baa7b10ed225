"""Loads the package and the rooms on its core when first used; refuses files that shadow it.

Where Python would import a `tiling.py` of the user's own instead of the package beside this one,
nothing is loaded: the error names the file. Until then nothing of ours but this module is imported,
for a project that has such a file and never uses this package, but has it installed, is to go on.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import os
import os.path
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import MappingProxyType, ModuleType
from typing import Any, Final

# Python refuses its first import once the main thread has ended, when another one may go on and be
# the first to use this package.
importlib.import_module("concurrent.futures.thread")

_ROOMS: Final = ("tiling", "simulator", "ascend_kernels")
_HOME: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_FOLDERS: Final = tuple(os.path.join(_HOME, name, "") for name in ("pypto_cast", *_ROOMS))
_PACKAGE: Final = sys.modules["pypto_cast"]
_ALONE: Final = tuple(
    f"pypto_cast.{name}"
    for name in (
        *("loading", "call_sites", "former_names", "pytest_plugin", "__main__"),
        *("cli", "cli.__main__", "cli.command_list", "cli.main"),
    )
)
"""Modules whose import loads nothing else first."""
ENTRIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Candidate": "tiling.ranking",
        "ChainCheck": "pypto_cast.routes.chain_checks",
        "EventReuseWarning": "ascend_kernels.schedule.schedule",
        "FitChange": "pypto_cast.kernel.fit",
        "FitReport": "pypto_cast.kernel.fit",
        "NotExecutedError": "ascend_kernels.schedule.schedule",
        "PlanError": "ascend_kernels.schedule.planner.tiles.tile_graph",
        "Route": "pypto_cast.routes.cast_routes",
        "RouteError": "pypto_cast.routes.cast_routes",
        "RouteStep": "pypto_cast.routes.cast_routes",
        "Routes": "pypto_cast.routes.cast_routes",
        "Schedule": "ascend_kernels.schedule.schedule",
        "ScheduleDiff": "pypto_cast.kernel.reports.schedule_diff",
        "TaskEstimate": "pypto_cast.kernel.task_estimate",
        "TunedCast": "pypto_cast.tuning.tune",
        "TunedKernel": "pypto_cast.kernel.tuned_kernel",
        "TuningResult": "tiling.ranking",
        "UBOverflow": "ascend_kernels.schedule.planner.ub_overflow",
        "UBOverflowError": "ascend_kernels.schedule.planner.ub_overflow",
        "ValueTrace": "pypto_cast.kernel.value_trace",
        "Verdict": "ascend_kernels.routing.chain_check",
        "certainty_page": "pypto_cast.kernel.reports.certainty_page",
        "certainty_tables": "pypto_cast.kernel.reports.certainty_page",
        "check_chain": "pypto_cast.routes.chain_checks",
        "check_conditions": "pypto_cast.tensors.expression_conditions",
        "fit_report": "pypto_cast.kernel.fit",
        "model_of_file": "pypto_cast.device.device_model",
        "notebook_html": "pypto_cast.report.notebook",
        "pass_verify_print": "pypto_cast.upstream.pass_verify",
        "pass_verify_save": "pypto_cast.upstream.pass_verify",
        "read_schedule": "pypto_cast.upstream.schedule_reader",
        "routes": "pypto_cast.routes.cast_routes",
        "simplified": "pypto_cast.tensors.expression_rules",
        "trace_values": "pypto_cast.kernel.value_trace",
        "tune": "pypto_cast.tuning.tune",
        "tune_kernel": "pypto_cast.tuning.kernel_search",
    }
)
"""The module of each name that stands on the core."""
_SUBMODULES: Final = ("dialects", "testing")
"""Packages of functions that the user calls; loaded when they are named."""
_OF_THE_HOUSE: Final = (
    *("certainty_page", "certainty_tables", "check_conditions", "model_of_file"),
    *("notebook_html", "simplified", "tune_kernel"),
)
"""Entries that are no names of the package."""


class ShadowedPackageError(ImportError):
    """Python finds a file or folder of the user in place of a package of this one."""


def check_shadowing() -> None:
    """Compare where Python finds the packages with where they are; none is imported.

    One that is loaded is looked for too: sys.path may have grown since, and a module of the user
    that stands first there now would not be what its `import` gives.

    Raises:
        ShadowedPackageError: another file or folder has the name of one; the text names it.
    """
    for name in _ROOMS:
        loaded = sys.modules.get(name)
        now = importlib.util.find_spec(name) if loaded is None else loaded.__spec__
        for spec in filter(None, (now, PathFinder.find_spec(name))):
            own = os.path.join(_HOME, name)
            folders = list(spec.submodule_search_locations or ())
            if os.path.realpath(own) not in map(os.path.realpath, folders):
                found = spec.origin or folders[0]
                raise ShadowedPackageError(
                    f"{found} shadows the package {name!r} of pypto_cast, {own}: Python finds it "
                    "first on sys.path; rename it, or start Python from another folder",
                    name=name,
                    path=found,
                )


def are_own(folders: Sequence[str]) -> bool:
    """True if folders of modules are all inside the packages of this one."""
    return all(f"{folder}{os.sep}".startswith(_FOLDERS) for folder in folders)


def ask_first(finder: importlib.abc.MetaPathFinder) -> None:
    """Insert a finder of modules before all others, but behind the one that loads the package."""
    sys.meta_path.insert(0 if are_loaded() else 1 + sys.meta_path.index(_FIRST_USE), finder)


def are_loaded() -> bool:
    """True once the package was used: before, nothing can be an object of its own."""
    return _FIRST_USE not in sys.meta_path


def load() -> None:
    """Load the package: its names become those of `pypto_cast.interface`.

    Raises:
        ShadowedPackageError: a file or folder of the user has the name of one of its packages.
    """
    check_shadowing()
    if not are_loaded():
        sys.meta_path.remove(_FIRST_USE)
    _LOADING.add(threading.get_ident())
    try:
        interface = importlib.import_module("pypto_cast.interface")
    finally:
        _LOADING.discard(threading.get_ident())
    upstream = importlib.import_module("pypto_cast.upstream.import_alias")
    upstream.name_modules("pypto_cast")
    _, missing = upstream.module_getattr("pypto_cast")
    names = {name: x for name, x in vars(interface).items() if name[0].isalpha()}
    public = [name for name in ENTRIES if name not in _OF_THE_HOUSE]

    def missing_name(name: str) -> Any:
        if name in _SUBMODULES:
            return importlib.import_module(f"{_PACKAGE.__name__}.{name}")
        return entry(name) if name in public else missing(name)

    listed = sorted([*names, *public])
    vars(_PACKAGE).update(names, __all__=listed, __getattr__=missing_name)


def name_when_used(name: str) -> Any:
    """The `__getattr__` of the package until it is loaded.

    Raises:
        AttributeError: what loads it asks for a submodule, which Python then imports.
        ShadowedPackageError: as `load`.
    """
    is_special = name.startswith("__") and name != "__all__"
    if is_special or threading.get_ident() in _LOADING:
        raise AttributeError(f"module {_PACKAGE.__name__!r} has no attribute {name!r}")
    load()
    return getattr(_PACKAGE, name)


def names_when_used() -> list[str]:
    """The `__dir__` of the package: its public names and those that Python gives modules."""
    load()
    names: Sequence[str] = vars(_PACKAGE)["__all__"]
    return [*names, *(name for name in vars(_PACKAGE) if name.startswith("__"))]


def entry(name: str) -> Any:
    """The object of a name; Python's own lock of imports makes it the same in every thread."""
    return getattr(importlib.import_module(ENTRIES[name]), name)


class _Package(ModuleType):
    """A package whose names stay where Python binds a submodule: `options` is a function too."""

    def __setattr__(self, name: str, value: object) -> None:
        held = vars(self).get(name, value)
        is_kept = name in ENTRIES or not isinstance(held, ModuleType)
        if not isinstance(value, ModuleType) or not is_kept:
            super().__setattr__(name, value)


class _FirstUse(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads the package before any other module of it, and then gives that as it is."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        is_ours = fullname.startswith("pypto_cast.") and fullname not in _ALONE
        return ModuleSpec(fullname, self) if is_ours else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        load()
        module = importlib.import_module(spec.name)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


_LOADING: Final[set[int]] = set()
"""Threads that load the package."""
_FIRST_USE: Final = _FirstUse()
sys.meta_path.insert(0, _FIRST_USE)
_PACKAGE.__class__ = _Package
