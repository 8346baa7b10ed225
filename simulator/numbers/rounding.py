"""The round modes, the one rounding routine, and the codes at which rounding decides.

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
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from simulator.numbers.formats import Codes, FloatFormat, Format, assert_never

Bools = npt.NDArray[np.bool_]


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


def rounds_away(
    mode: RoundMode, *, guard: Bools, sticky: Bools, odd: Bools, negative: Bools
) -> Bools:
    """The elements where `mode` adds one unit to the kept magnitude."""
    match mode:
        case RoundMode.RINT:
            return guard & (sticky | odd)
        case RoundMode.ROUND:
            return guard
        case RoundMode.FLOOR:
            return negative & (guard | sticky)
        case RoundMode.CEIL:
            return ~negative & (guard | sticky)
        case RoundMode.TRUNC:
            return np.zeros_like(guard)
        case RoundMode.ODD:
            return ~odd & (guard | sticky)
        case _:
            assert_never(mode)


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


def boundary_codes(fmt: Format) -> Codes:
    """The codes of a format at which rounding decides, ascending and without repetition.

    Every cut through every exponent is there, with the bits around it set. Whatever the last place
    of the destination is, some cut lies there; the dropped bits then run through nothing, the
    least, just below half, half, just above half, and the most. So the neighbourhoods of
    representable values and midpoints are there for every destination, unseen.

    For formats of at most 16 bits these are all there are; wider ones give some 10^5 codes: zeros,
    infinities, NaNs of both signs, subnormal numbers, limits and powers of two with their
    neighbours, and the bits around every cut.
    """
    if fmt.bits <= 16:
        return np.arange(1 << fmt.bits, dtype=fmt.code_dtype)
    if isinstance(fmt, FloatFormat):
        fractions = np.array(list(set(_around_cuts(fmt.man_bits))), np.uint64)
        fields = np.arange(1 << fmt.exp_bits, dtype=np.uint64) << np.uint64(fmt.man_bits)
        exact = np.bitwise_or.outer(fields, fractions).reshape(-1)
    else:
        magnitudes = {
            1 << length | rest for length in range(fmt.bits) for rest in _around_cuts(length)
        }
        exact = np.array([0, *magnitudes], np.uint64)
    word = (1 << fmt.bits) - 1
    near = np.concatenate([exact - np.uint64(1), exact, exact + np.uint64(1)])
    flipped = near ^ np.uint64(1 << (fmt.bits - 1)) if isinstance(fmt, FloatFormat) else -near
    codes = np.sort(np.concatenate([near, flipped]) & np.uint64(word))
    # np.unique of newer numpy hashes, which takes 70 times as long here.
    is_new = np.append(True, codes[1:] != codes[:-1])
    distinct: Codes = codes[is_new].astype(fmt.code_dtype)
    return distinct


def _around_cuts(width: int) -> Iterator[int]:
    """Fractions of `width` bits: some kept bits, then dropped bits on, below and above half."""
    for dropped in range(width + 1):
        half = 1 << dropped >> 1
        kept_ones = (1 << (width - dropped)) - 1
        for kept in {0, 1 & kept_ones, kept_ones, kept_ones // 3, kept_ones // 3 << 1 & kept_ones}:
            for rest in {0, 1, half - 1, half, half + 1, (1 << dropped) - 1}:
                if 0 <= rest < 1 << dropped:
                    yield kept << dropped | rest
