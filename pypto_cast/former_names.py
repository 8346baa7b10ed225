"""The former names of modules and classes for one release: each gives the new one, and warns."""

from __future__ import annotations

import importlib
import os.path
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

from pypto_cast.call_sites import warn_at

_PACKAGE: Final = __name__.partition(".")[0]
_INSIDE: Final = (
    os.path.dirname(os.path.abspath(__file__)) + os.sep,
    os.path.dirname(importlib.__file__) + os.sep,
    "<frozen importlib",
)
MOVED: Final = {
    "names": "dtypes.names",
    "upstream.enumerations": "dtypes.data_types",
    "wording": "report.text_format",
    "pages.arrangement": "report.figure",
    "pages.figure": "report.figure",
    "pages.markup": "report.page",
    "pages.notebook_tables": "report.notebook",
    "pages.atlas_page": "routes.atlas_page",
    "pages.certainty_page": "kernel.reports.certainty_page",
    "pages.checkpoint_page": "checkpoints.checkpoint_report",
    "upstream.hints": "options.hints",
    "upstream.releases": "options.releases",
    "operations.indexed.indexed_rows": "operations.lowering",
    "kernel.recording": "recording.recording",
    "kernel.steps": "recording.steps",
    "kernel.causes": "recording.causes",
    "kernel.tally": "recording.tally",
    "kernel.trusted": "recording.recording",
    "kernel.origins": "recording.steps",
    "kernel.other_release": "kernel.choices",
    "kernel.output_certainty": "recording.output_certainty",
    "tensors.annotations": "tensors.arguments",
    "tensors.buffers": "recording.buffers",
    "tensors.box_map": "recording.buffers",
    "recording.box_map": "recording.buffers",
    "kernel.signature": "kernel.kernel_source",
    "kernel.what_if": "kernel.certainty",
    "files": "tensors.array_files",
    "api": "cast.api",
    "cast_plan": "cast.cast_plan",
    "inspection.cast_report": "cast.cast_report",
    "inspection.cast_run": "cast.cast_run",
    "inspection.cast_trace": "cast.cast_run",
    "inspection.explanation": "cast.explanation",
    "inspection.float_meter": "cast.cast_report",
    "kernel.npu": "cast.npu",
    "cast_routes": "routes.cast_routes",
    "upstream.refusals": "unsupported",
    "upstream.tolerance": "unsupported",
    "report.markup": "report.page",
    "report.notebook_tables": "report.notebook",
    "checkpoints.checkpoint_page": "checkpoints.checkpoint_report",
    "cli.text": "report.terminal",
    "cli.checkpoint_text": "checkpoints.checkpoint_report",
}
"""Former names of modules, and the module that took over, with those of the names that are left."""
FOLDERS: Final = ("inspection", "pages")
"""Packages that are gone."""
SPLIT: Final = {"dtypes": "dtypes.data_types", "options": "options.context"}
"""Former modules whose name a package has now, and the module that has their names."""
RENAMED: Final = {
    "dialects.Difference": "dialects.DialectDifference",
    "dialects.paddle.Rule": "dialects.paddle.PromotionRule",
}
"""Former names of classes in a package."""


def _warn(former: str, name: str) -> None:
    """Warn at the line outside this package that imports; Python's own frames do not count."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame = frame.f_back
    is_now = f"{_PACKAGE}.{former} is {_PACKAGE}.{name} now"
    text = f"{is_now}; the former name goes with the next release"
    warn_at((frame.f_code.co_filename, frame.f_lineno), frame, text, DeprecationWarning)


class _Former(MetaPathFinder, Loader):
    """Imports a module of a former name as the one of the new name, not as a copy of it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.partition(".")
        if package == _PACKAGE and (name in MOVED or name in FOLDERS):
            return ModuleSpec(fullname, self, is_package=name in FOLDERS)
        return None

    def exec_module(self, module: ModuleType) -> None:
        former = module.__name__.partition(".")[2]
        if former in MOVED:
            _warn(former, MOVED[former])
            sys.modules[module.__name__] = importlib.import_module(f"{_PACKAGE}.{MOVED[former]}")


def names_of(package: str) -> Callable[[str], Any]:
    """The `__getattr__` of a package that has former names, or the name of a former module."""
    former = package.partition(".")[2]

    def find(name: str) -> Any:
        was = f"{former}.{name}"
        if was in RENAMED:
            _warn(was, RENAMED[was])
            return getattr(sys.modules[package], RENAMED[was].rpartition(".")[2])
        module = importlib.import_module(f"{_PACKAGE}.{SPLIT[former]}") if former in SPLIT else None
        if name.startswith("__") or not hasattr(module, name):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        _warn(former, SPLIT[former])
        return getattr(module, name)

    return find


sys.meta_path.append(_Former())
