"""Names of the rooms that stand on the core: a room is loaded when one of them is first used."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

ENTRIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Candidate": "tiling.ranking",
        "Route": "pypto_cast.routes.cast_routes",
        "RouteError": "pypto_cast.routes.cast_routes",
        "Routes": "pypto_cast.routes.cast_routes",
        "RouteStep": "pypto_cast.routes.cast_routes",
        "routes": "pypto_cast.routes.cast_routes",
        "TuningResult": "tiling.ranking",
        "TunedCast": "pypto_cast.tuning.tune",
        "Verdict": "ascend_kernels.routing.verdict",
        "tune": "pypto_cast.tuning.tune",
        "model_of_file": "pypto_cast.device.device_model",
    }
)
"""The module of each name."""


def entry(name: str) -> Any:
    """The object of a name; Python's own lock of imports makes it the same in every thread."""
    return getattr(importlib.import_module(ENTRIES[name]), name)
