"""Upstream's submodules, and the modules of this package that have their names."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

MODULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "experimental": "pypto_cast.upstream.experimental",
        "frontend": "pypto_cast.frontend",
        "operation": "pypto_cast.upstream.operation",
        "platform": "pypto_cast.platform",
        "pypto_impl": "pypto_cast.upstream.pypto_impl",
        "runtime": "pypto_cast.upstream.runtime",
    }
)
"""By upstream's name."""


def name_modules(package: str) -> None:
    """Have Python import them as submodules of a package, without another copy of any."""
    for name, module in MODULES.items():
        sys.modules.setdefault(f"{package}.{name}", importlib.import_module(module))
