"""The commands in the order of the help, by group, and the meaning of exit code 1 of each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

GROUPS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "Casts": ("cast", "explain", "compare", "matrix", "route", "trace"),
        "Kernels": ("run", "certainty", "schedule", "compile", "check-schedule"),
        "Sources": ("operations", "lint"),
        "Tile shapes": ("tune", "sweep"),
        "Models": ("checkpoint",),
        "Results and devices": ("diff", "judge", "verify", "device-check", "facts"),
    }
)
"""By heading; each command is the function `run_NAME` of its module."""

COMMANDS: Final = tuple(name for names in GROUPS.values() for name in names)

FOUND: Final[Mapping[str, str]] = MappingProxyType(
    {
        "run": "the program raised; an exit code of its own is that of the command",
        "schedule": "--against or --timeline differs, or --fail-over-ub and it does not fit",
        "check-schedule": "a guard or a result differs",
        "lint": "there are findings",
        "checkpoint": "a dry run would refuse a tensor",
        "diff": "a tensor is neither equal nor wholly a cast of the other, or, with --bounds, an "
        "element is outside",
        "judge": "an element is outside the possible results, or without a kernel the standard "
        "fails",
        "verify": "the engine differs from the definition, or from a certificate",
        "device-check": "a fact differs",
    }
)
"""Exit code 1, of the commands that have it; 0 is done, 2 an error, with one line on stderr."""


def exit_codes(name: str) -> str:
    """The line on exit codes in the help of a command."""
    found = f"1: {FOUND[name]}; " if name in FOUND else ""
    return f"Exit codes: 0: done; {found}2: an error, one line on stderr."
