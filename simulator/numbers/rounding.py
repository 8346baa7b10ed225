"""The round modes and the one rounding routine.

Rounding works on sign and magnitude. A mode answers a single question, whether the kept magnitude
grows by one unit, from four facts:

    kept bits ........ L | G R R R ... R        L  last kept bit ("odd")
                         ^                      G  first dropped bit ("guard")
                      the cut                   R  any bit after it ("sticky")

Source of the six rules: the pypto.cast document, "rounding"; ODD is von Neumann rounding (an
inexact result is made odd), not "ties to odd".
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
_AwayRule = Callable[[Bools, Bools, Bools, Bools], Any]


class RoundMode(enum.Enum):
    """The rules that round a value between two representable ones."""

    RINT = "to nearest, ties to even"
    ROUND = "to nearest, ties away from zero"
    FLOOR = "toward minus infinity"
    CEIL = "toward plus infinity"
    TRUNC = "toward zero"
    ODD = "inexact results become odd (von Neumann)"

    __hash__ = object.__hash__  # the one of Enum is Python code

    def __str__(self) -> str:
        return self.name


_AWAY_FROM_ZERO: Final[dict[RoundMode, _AwayRule]] = {
    RoundMode.RINT: lambda guard, sticky, odd, negative: guard & (sticky | odd),
    RoundMode.ROUND: lambda guard, sticky, odd, negative: guard,
    RoundMode.FLOOR: lambda guard, sticky, odd, negative: negative & (guard | sticky),
    RoundMode.CEIL: lambda guard, sticky, odd, negative: ~negative & (guard | sticky),
    RoundMode.TRUNC: lambda guard, sticky, odd, negative: np.zeros_like(guard),
    RoundMode.ODD: lambda guard, sticky, odd, negative: ~odd & (guard | sticky),
}


def rounds_away(
    mode: RoundMode, *, guard: Bools, sticky: Bools, odd: Bools, negative: Bools
) -> Bools:
    """Tell where `mode` adds one unit to the kept magnitude."""
    away: Bools = _AWAY_FROM_ZERO[mode](guard, sticky, odd, negative)
    return away


def round_significand(
    significand: npt.NDArray[np.uint64],
    shift: npt.NDArray[np.int64],
    negative: Bools,
    mode: RoundMode,
) -> npt.NDArray[np.uint64]:
    """Drop `shift` low bits of each significand, rounding by `mode`; exact when `shift` <= 0.

    Args:
        significand: magnitudes, any shape.
        shift: destination quantum minus source exponent, same shape. Negative shifts append zeros;
            bits that leave the 64-bit word at the top are lost (the caller knows where).
        negative: sign of each value, same shape.
        mode: the rule.

    Returns:
        The kept magnitudes, in units of the destination's quantum. A carry may add one bit.
    """
    # No source has a bit at or above 62 where 63 or more are dropped, so 63 stands for all.
    right = np.clip(shift, 0, 63).astype(np.uint64)
    left = np.clip(-shift, 0, 63).astype(np.uint64)
    kept = (significand >> right) << left
    one = np.uint64(1)
    unit = one << right
    dropped = significand & (unit - one)
    half = unit >> one
    away = rounds_away(
        mode,
        guard=(dropped & half) != 0,
        sticky=(dropped & ~half) != 0,
        odd=(kept & one) != 0,
        negative=negative,
    )
    return kept + away
