"""The engines that convert arrays to the same bits: compiled loops, and numpy everywhere."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from types import FrameType
from typing import Final, Literal, get_args

from simulator.numbers.native import library
from simulator.numbers.native.library import Native, NativeAbsentError

Engine = Literal["auto", "native", "numpy"]
"""The engine asked for; "auto" is the fastest that is there."""
ENGINES: Final[tuple[Engine, ...]] = get_args(Engine)

_PACKAGES: Final = ("tiling", "simulator", "ascend_kernels", "pypto_cast")
"""A warning points at the first line outside of them."""
_WARNED: Final[dict[str, object]] = {}


class EngineWarning(UserWarning):
    """The engine asked for cannot run here; the numpy engine went on, with the same bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineInUse:
    """The engine that runs where "auto" is asked for.

    Attributes:
        name: "native" or "numpy".
        instructions: what the native engine is compiled for, such as "avx2"; empty for numpy.
        reason: why not the native engine, or not its fastest instructions; empty if nothing here
            is faster.
    """

    name: Literal["native", "numpy"]
    instructions: str
    reason: str

    def __str__(self) -> str:
        named = f"{self.name} ({self.instructions})" if self.instructions else self.name
        return f"{named}: {self.reason}" if self.reason else named


def in_use() -> EngineInUse:
    """The engine that runs, and the reason for not a better one; loads the library, once."""
    found = library.find()
    if not isinstance(found, Native):
        return EngineInUse(name="numpy", instructions="", reason=str(found))
    fastest = found.levels[-1]
    chosen = "" if found.level == fastest else f"{library.LEVEL_VARIABLE} forbids {fastest}"
    return EngineInUse(name="native", instructions=found.level, reason=chosen)


def native_for(engine: Engine) -> Native | None:
    """The library that an engine calls, or None, where numpy converts.

    Warns:
        EngineWarning: "native" cannot run, or, once in a process for each reason, "auto" finds a
            library that is damaged or of other sources.
    """
    if engine == "numpy":
        return None
    found = library.find()
    if isinstance(found, Native):
        return found
    reason, mine = str(found), object()
    is_worth_telling = engine == "native" or not isinstance(found, NativeAbsentError)
    # setdefault() is atomic: of threads that meet here one warns.
    if is_worth_telling and (engine == "native" or _WARNED.setdefault(reason, mine) is mine):
        text = f"engine 'native' cannot run, 'numpy' goes on: {reason}"
        warnings.warn(text, EngineWarning, stacklevel=_level_of_caller())
    return None


def _level_of_caller() -> int:
    """The stack level of the code outside, for a warning of the function that calls this."""
    frame: FrameType | None = sys._getframe(1)
    level = 0
    while frame is not None:
        level += 1
        if frame.f_globals.get("__name__", "").partition(".")[0] not in _PACKAGES:
            break
        frame = frame.f_back
    return level
