"""Two ways to round a whole chunk, each with an entry for every round mode that it knows.

`INTEGRAL` rounds floats to integral values with the FPU's own rounding; `carry` readies codes
for dropping low bits, with integer arithmetic. Both leave only exact operations to do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from simulator.numbers.fast.chunks import ChunkFunction
from simulator.numbers.formats import Codes
from simulator.numbers.rounding import RoundMode


def _half_away(values: Any) -> Any:
    """Round to nearest, ties away from zero: add almost one half outward, then drop the fraction.

    The addend is the float just below 0.5. With 0.5 itself, 0.49999997 + 0.5 would round up to 1;
    with this one it gives the float below 1, while a tie n + 0.5 lands so close below n + 1 that
    the addition itself rounds to it (for n = 0 the sum ends exactly half-way, and n + 1 is even).
    From 2**23 on float32 values are integral and the addition rounds back to them; so it is with
    float64 from 2**52 on.
    """
    word = np.dtype(f"u{values.itemsize}")
    sign = word.type(1 << (8 * word.itemsize - 1))
    below_half = np.nextafter(values.dtype.type(0.5), values.dtype.type(0)).view(word)
    addend = (values.view(word) & sign | below_half).view(values.dtype)
    return np.trunc(values + addend)


INTEGRAL: Final[dict[RoundMode, Callable[[Any], Any]]] = {
    RoundMode.RINT: np.rint,
    RoundMode.ROUND: _half_away,
    RoundMode.FLOOR: np.floor,
    RoundMode.CEIL: np.ceil,
    RoundMode.TRUNC: np.trunc,
}
"""The rounding of float32 and float64 values to integral ones. NaN and infinity stay."""


def carry(mode: RoundMode, dtype: np.dtype[Any], cut: int) -> ChunkFunction | None:
    """Make the function ahead of dropping the `cut` low bits of sign-magnitude codes.

        sign exponent kept... L | G R R R ... R
                                  `--- cut ---'

    A bias below the cut carries into the kept bits exactly where the mode rounds away from zero,
    and a carry out of the fraction runs into the exponent as it should. The low bits are rubbish
    then. To odd, the carry of (dropped bits + all ones), which is 1 if any is set, is ored into the
    last bit; that serves two's complement as well (`round_to_odd`). None for a mode without such a
    bias.
    """
    one, half, ones = (dtype.type(x) for x in (1, 1 << (cut - 1), (1 << cut) - 1))
    shift, signed = dtype.type(cut), np.dtype(f"i{dtype.itemsize}")
    sign_shift = signed.type(8 * dtype.itemsize - 1)

    def spread_sign(codes: Codes) -> Codes:
        spread: Codes = (codes.view(signed) >> sign_shift).view(dtype)
        return spread

    ready: dict[RoundMode, ChunkFunction] = {
        RoundMode.RINT: lambda codes: codes + ((codes >> shift & one) + (half - one)),
        RoundMode.ROUND: lambda codes: codes + half,
        RoundMode.FLOOR: lambda codes: codes + (spread_sign(codes) & ones),
        RoundMode.CEIL: lambda codes: codes + (~spread_sign(codes) & ones),
        RoundMode.TRUNC: lambda codes: codes,
        RoundMode.ODD: round_to_odd(dtype, cut),
    }
    return ready.get(mode)


def round_to_odd(dtype: np.dtype[Any], cut: int) -> ChunkFunction:
    """Make the function ahead of dropping the `cut` low bits to odd; see `carry`."""
    ones = dtype.type((1 << cut) - 1)
    return lambda codes: codes | ((codes & ones) + ones)
