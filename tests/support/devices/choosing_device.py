"""A device that chooses otherwise wherever the project's rules are chosen, in exact fractions.

Nothing of the project is imported. Elements are codes; a program on them is exact arithmetic, one
rounding a step, and the device's own choices. Without any it is the device that is assumed.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Floats:
    """A binary format: width, fraction bits, least exponent of a normal number."""

    bits: int
    man_bits: int
    emin: int

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def inf(self) -> int:
        return self.sign - (1 << self.man_bits)

    @property
    def one_nan(self) -> int:
        return self.sign - 1


FP32, FP16, BF16 = Floats(32, 23, -126), Floats(16, 10, -14), Floats(16, 7, -126)


def is_nan(code: int, fmt: Floats) -> bool:
    return code & (fmt.sign - 1) > fmt.inf


def number(code: int, fmt: Floats) -> Fraction:
    """The value of a finite code."""
    magnitude = code & (fmt.sign - 1)
    field, fraction = magnitude >> fmt.man_bits, magnitude & ((1 << fmt.man_bits) - 1)
    significand = fraction | (bool(field) << fmt.man_bits)
    value = Fraction(significand) * Fraction(2) ** (max(field, 1) - 1 + fmt.emin - fmt.man_bits)
    return -value if code & fmt.sign else value


def integral(value: Fraction, mode: str) -> int:
    """An integer next to a fraction."""
    low = math.floor(value)
    if value == low:
        return low
    toward_zero = low if value > 0 else low + 1
    return {
        "RINT": round(value),
        "FLOOR": low,
        "CEIL": low + 1,
        "TRUNC": toward_zero,
        "AWAY": low + 1 if value > 0 else low,
        "ODD": toward_zero if toward_zero % 2 else toward_zero + (1 if value > 0 else -1),
    }[mode]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoosingDevice:
    """A device and its choices.

    Attributes:
        flushes: arithmetic takes and gives zero for subnormal numbers.
        flushes_casts: casts do.
        rounding: how sums, differences and products are rounded.
        overflow: of casts: "IEEE", "largest" or "infinity", whatever the mode.
        saturates: CTRL[48] = 0.
        loses_zero_sign: FP16 to FP32 gives +0 for -0.
        odd_underflows: CAST_ODD gives 0 below the smallest subnormal number.
        other_nan: a NaN has one bit of its fraction and a sign.
        order: the order of a sum's terms; None: as they come, in a tree.
    """

    flushes: bool = False
    flushes_casts: bool = False
    rounding: str = "RINT"
    overflow: str = "IEEE"
    saturates: bool = False
    loses_zero_sign: bool = False
    odd_underflows: bool = False
    other_nan: bool = False
    order: int | None = None

    @staticmethod
    def somehow(seed: int) -> ChoosingDevice:
        """A device that makes any of the choices."""
        chance = random.Random(seed)
        flips = {
            field.name: chance.random() < 0.5
            for field in dataclasses.fields(ChoosingDevice)
            if field.type == "bool"
        }
        return ChoosingDevice(
            **flips,
            rounding=chance.choice(["RINT", "TRUNC", "AWAY"]),
            overflow=chance.choice(["IEEE", "largest", "infinity"]),
            order=chance.choice([None, seed]),
        )

    def nan(self, fmt: Floats) -> int:
        """The code of a NaN."""
        return fmt.sign | fmt.inf | 1 << fmt.man_bits - 1 if self.other_nan else fmt.one_nan

    def arithmetic(self, name: str, a: int, b: int) -> int:
        """The sum, difference or product of two FP32 codes."""
        fmt = FP32
        a, b = (self._zero_if_subnormal(x, fmt) if self.flushes else x for x in (a, b))
        if is_nan(a, fmt) or is_nan(b, fmt):
            return self.nan(fmt)
        if name == "sub":
            return self.arithmetic("add", a, b ^ fmt.sign)
        magnitudes = [x & (fmt.sign - 1) for x in (a, b)]
        if name == "mul":
            sign = (a ^ b) & fmt.sign
            if fmt.inf in magnitudes:
                return self.nan(fmt) if 0 in magnitudes else sign | fmt.inf
            exact = number(a, fmt) * number(b, fmt)
        else:
            sign = a & b & fmt.sign
            if fmt.inf in magnitudes:
                infinite = [x for x, m in zip((a, b), magnitudes, strict=True) if m == fmt.inf]
                return infinite[0] if len(set(infinite)) == 1 else self.nan(fmt)
            exact = number(a, fmt) + number(b, fmt)
        code = self._rounded(exact, sign, fmt, self.rounding, "IEEE")
        return self._zero_if_subnormal(code, fmt) if self.flushes else code

    def total(self, codes: Sequence[int]) -> int:
        """The sum of FP32 codes."""
        held = list(codes)
        if self.order is not None:
            random.Random(self.order).shuffle(held)
        total = held[0]
        for code in held[1:]:
            total = self.arithmetic("add", total, code)
        return total

    def cast(self, code: int, src: Floats, dst: Floats, mode: str) -> int:
        """A code in another float format."""
        if is_nan(code, src):
            return 0 if self._saturates(dst) else self.nan(dst)
        sign = dst.sign if code & src.sign else 0
        if code & (src.sign - 1) == src.inf:
            return sign | (dst.inf - 1 if self._saturates(dst) else dst.inf)
        value = number(code, src)
        tiny = Fraction(2) ** max(src.emin, dst.emin)
        if self.flushes_casts and abs(value) < tiny:
            value = Fraction(0)
        if self.odd_underflows and mode == "ODD" and value:
            value *= abs(value) >= Fraction(2) ** (dst.emin - dst.man_bits)
        if self.loses_zero_sign and (src, dst, value) == (FP16, FP32, 0):
            return 0
        overflow = "largest" if self._saturates(dst) else self.overflow
        return self._rounded(value, sign, dst, mode, overflow)

    def to_int32(self, code: int, src: Floats, mode: str) -> int:
        """A float's code as an INT32 number, clamped."""
        if is_nan(code, src):
            return 0
        if code & (src.sign - 1) == src.inf:
            return -(2**31) if code & src.sign else 2**31 - 1
        value = number(code, src)
        if self.flushes_casts and abs(value) < Fraction(2) ** src.emin:
            value = Fraction(0)
        return min(max(integral(value, mode), -(2**31)), 2**31 - 1)

    def integers(self, name: str, a: int, b: int) -> int:
        """The sum, difference or product of two INT32 numbers."""
        exact = {"add": a + b, "sub": a - b, "mul": a * b}[name]
        if self.saturates:
            return min(max(exact, -(2**31)), 2**31 - 1)
        return (exact + 2**31) % 2**32 - 2**31

    def greater(self, a: int, b: int) -> int:
        """The greater of two FP32 codes, +0 of both zeros; NaN wins."""
        if is_nan(a, FP32) or is_nan(b, FP32):
            return self.nan(FP32)
        return max(a, b, key=_order)

    def _saturates(self, dst: Floats) -> bool:
        return self.saturates and dst.bits == 16

    def _zero_if_subnormal(self, code: int, fmt: Floats) -> int:
        return code & fmt.sign if code & (fmt.sign - 1) < 1 << fmt.man_bits else code

    def _rounded(self, value: Fraction, sign: int, fmt: Floats, mode: str, overflow: str) -> int:
        if value == 0:
            return sign
        negative = value < 0
        exponent = max(_exponent(abs(value)), fmt.emin)
        quantum = Fraction(2) ** (exponent - fmt.man_bits)
        kept = abs(integral(value / quantum, mode))
        if kept >> fmt.man_bits + 1:
            kept, exponent = kept >> 1, exponent + 1
        code = (exponent - fmt.emin << fmt.man_bits) + kept
        if code >= fmt.inf:
            away = {"RINT": True, "AWAY": True, "FLOOR": negative, "CEIL": not negative}
            to_inf = away.get(mode, False) if overflow == "IEEE" else overflow == "infinity"
            code = fmt.inf if to_inf else fmt.inf - 1
        return code | (fmt.sign if negative else 0)


def _exponent(value: Fraction) -> int:
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return exponent if value >= Fraction(2) ** exponent else exponent - 1


def _order(code: int) -> int:
    return -(code & 0x7FFFFFFF) - 1 if code & 0x80000000 else code
