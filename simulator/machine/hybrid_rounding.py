"""CAST_HYBRID of the 950, to HF8: bits of the source itself decide how most of it is rounded.

Exponents of -3 to 3, whose numbers have three bits of fraction, are rounded half away from zero.
Elsewhere the dropped bits are compared with the last bits of the fraction: if they are not less,
the magnitude grows by one unit.

    FP32   the first 14 dropped bits >= the last 14 bits
    FP16   the first 2 dropped bits  >= the last bit and a 1

So it is in CANN asc-devkit, Cast of the Reg vector API, and in its encoder (examples, matmul_fp8,
hif8.py). By both an exact FP32 number such as 16 grows too: none of its dropped bits is less than
none of the last ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from simulator.numbers.convert import Policy, bit_length, pack, unpack
from simulator.numbers.formats import FP16, HF8, Codes, Format
from simulator.numbers.rounding import RoundMode

Significands = npt.NDArray[np.uint64]

_HALF_AWAY: Final = 3
"""The largest magnitude of an exponent that is rounded half away from zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridRounding:
    """The conversion by CAST_HYBRID.

    Attributes:
        src: FP32 or FP16.
        policy: what becomes of NaN, infinity and overflow.
    """

    src: Format
    policy: Policy

    def run(self, codes: Codes, out: Codes) -> None:
        """Convert codes of the source to codes of HF8.

        NaN, infinity and overflow become what the policy makes of them; below 2**-23 is zero.
        """
        value = unpack(codes, self.src)
        leading = value.exponent + bit_length(value.significand) - 1
        quantum = HF8.quanta(leading)
        dropped = quantum - value.exponent
        bits = np.where(np.abs(leading) <= _HALF_AWAY, 1, self._compared_bits)
        first = _shifted(value.significand, dropped - bits) & _ones(bits)
        last = np.where(bits == 1, np.uint64(1), self._last(value.significand))
        grows = (first >= last) & (leading >= HF8.emin - 1)
        kept = _shifted(value.significand, dropped) + grows
        rounded = replace(value, significand=kept, exponent=quantum)
        out[:] = pack(rounded, HF8, RoundMode.ROUND, self.policy)

    @property
    def _compared_bits(self) -> int:
        """Dropped bits that are compared."""
        return 2 if self.src is FP16 else 14

    def _last(self, significand: Significands) -> Significands:
        """The last bits of the fraction, of FP16 the last one and a 1."""
        if self.src is FP16:
            return (significand & np.uint64(1)) << np.uint64(1) | np.uint64(1)
        return significand & _ones(self._compared_bits)


def _ones(bits: Any) -> Significands:
    ones: Significands = (np.uint64(1) << np.asarray(bits).astype(np.uint64)) - np.uint64(1)
    return ones


def _shifted(significand: Significands, places: npt.NDArray[np.int64]) -> Significands:
    """Significands without so many low bits, of which there are fewer than 64; or longer ones."""
    right, left = (np.clip(each, 0, 63).astype(np.uint64) for each in (places, -places))
    return significand >> right << left
