"""Fast steps to narrow floats, from FP64, FP32 and wide integers, by way of rounding to odd.

Cutting low bits off a code and making the last kept bit odd if any of them was set loses nothing
that matters, provided two more bits are kept than the destination has: guard and sticky. So what is
left is rounded as the code itself would be, in any mode; and as few bits are left that a table can
hold them all, or that FP32 holds the number.

    code   s eeeeeeee kkkkk | ddd ... d        d dropped
    odd    s eeeeeeee kkkkx                    x = last k, or 1 if any d is set

NaN stays NaN and infinity infinity: only a NaN has fraction bits to make a sticky bit of.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from simulator.numbers.convert import Overflow, Policy, convert
from simulator.numbers.fast.floats import from_float
from simulator.numbers.fast.fold import fold, unsigned_to_double
from simulator.numbers.fast.pieces import Step
from simulator.numbers.formats import (
    BF16,
    FP16,
    FP32,
    FP64,
    INT64,
    UINT64,
    Codes,
    FloatFormat,
    Format,
    IntFormat,
)
from simulator.numbers.rounding import RoundMode

Words = npt.NDArray[np.uint64]

_NARROW_BITS: Final = 8
_TIE: Final = np.iinfo(np.int32).min
"""What the low half 0x8000 is as the upper half of a word, nothing below it."""
_EXACT: Final = 1 << (FP32.man_bits + 1)
"""FP32 holds all integers up to here."""
_UPPER_HALF: Final = np.array(16, np.uint32)


def to_narrow_float(src: Format, dst: Format, mode: RoundMode, policy: Policy) -> Step | None:
    """Find the step from FP64, FP32 or an integer of 32 or 64 bits to a float of up to 16 bits."""
    if not isinstance(dst, FloatFormat) or dst.bits > 16 or policy.overflow is Overflow.WRAP:
        return None
    if isinstance(src, IntFormat):
        step = _from_int(src, dst, mode, policy) if src.bits >= 32 else None
    else:
        step = _from_float(src, dst, mode, policy)
    # numpy's own cast from UINT64 takes longer than all of that step.
    if dst is BF16 and step is not None and src is not UINT64:
        return _mending_ties(src, step, policy)
    return step


def _from_float(src: FloatFormat, dst: FloatFormat, mode: RoundMode, policy: Policy) -> Step | None:
    if src in (FP64, FP32) and dst.bits <= _NARROW_BITS:
        return _by_table(src, dst, mode, policy)
    return _through_fp32(dst, mode, policy) if src is FP64 else None


def _by_table(src: FloatFormat, dst: FloatFormat, mode: RoundMode, policy: Policy) -> Step:
    # As fine as two bits below the last place of the destination, for subnormal sources too.
    kept = max(dst.man_bits, src.emin - dst.min_quantum) + 2
    cut = src.man_bits - kept
    every = np.arange(1 << (src.bits - cut), dtype=src.code_dtype) << src.code_dtype.type(cut)
    table = convert(every, src, dst, mode, policy)
    dropped = np.array((1 << cut) - 1, src.code_dtype)
    shift = np.array(cut, src.code_dtype)
    index_dtype = np.dtype(np.intp)

    def run(codes: Codes, out: Codes, odd: Codes, *index: npt.NDArray[np.intp]) -> None:
        # The carry of (dropped bits + all ones) is 1 if any is set.
        np.bitwise_and(codes, dropped, out=odd)
        np.add(odd, dropped, out=odd)
        np.bitwise_or(odd, codes, out=odd)
        np.right_shift(odd, shift, out=odd)
        if index:
            np.copyto(index[0], odd, casting="unsafe")
        np.take(table, index[0] if index else odd.view(index_dtype), out=out, mode="wrap")

    widens = src.code_dtype.itemsize != index_dtype.itemsize
    return Step(run=run, scratch=(src.code_dtype, *([index_dtype] if widens else [])))


def _through_fp32(dst: FloatFormat, mode: RoundMode, policy: Policy) -> Step | None:
    """From FP64: keep so few bits, the last one odd, that FP32 holds them, and go on from there.

    To nearest only. FP32 does not hold what is smaller than 2**-137, but neither is that anything
    but zero in FP16 and BF16; nor what overflows, which becomes infinity in both.
    """
    to_infinity = policy.overflow is Overflow.IEEE and policy.keeps_inf
    if mode is not RoundMode.RINT or dst not in (FP16, BF16) or not to_infinity:
        return None
    narrowing = from_float(FP32, dst, mode, policy)
    if narrowing is None:
        return None
    cut = FP64.man_bits - dst.man_bits - 2
    dropped = np.array((1 << cut) - 1, np.uint64)
    kept = np.array(-1 << cut, np.int64).view(np.uint64)

    def run(codes: Words, out: Codes, odd: Words, wide: Codes, *scratch: npt.NDArray[Any]) -> None:
        np.bitwise_and(codes, dropped, out=odd)
        np.add(odd, dropped, out=odd)
        np.bitwise_or(odd, codes, out=odd)
        np.bitwise_and(odd, kept, out=odd)
        np.copyto(wide.view(FP32.dtype), odd.view(FP64.dtype), casting="unsafe")
        narrowing.run(wide, out, *scratch)

    return Step(run=run, scratch=(FP64.code_dtype, FP32.code_dtype, *narrowing.scratch))


def _mending_ties(src: Format, single: Step, policy: Policy) -> Step:
    """To BF16 by two library casts, through FP32, and by `single` where that may round twice.

    The second rounding goes astray only where the first one ends on a tie: then the low half of the
    FP32 code is 0x8000, which in a number picked at random it is once in 65536 times.
    """
    second = from_float(FP32, BF16, RoundMode.RINT, policy)
    assert second is not None
    narrowing = second

    def mend(codes: Codes, out: Codes, wide: Codes) -> None:
        np.left_shift(wide, _UPPER_HALF, out=wide)
        halves = wide.view(np.int32)
        if np.minimum.reduce(halves) == _TIE:
            where = np.flatnonzero(halves == _TIE)
            few = np.empty(where.size, out.dtype)
            single.run(codes[where], few, *(np.empty(where.size, t) for t in single.scratch))
            out[where] = few

    def run(codes: Codes, out: Codes, wide: Codes, *scratch: npt.NDArray[Any]) -> None:
        np.copyto(wide.view(FP32.dtype), codes.view(src.dtype), casting="unsafe")
        narrowing.run(wide, out, *scratch)
        mend(codes, out, wide)

    def run_int(codes: Codes, out: Codes, wide: Codes) -> None:
        values = codes.view(src.dtype)
        np.copyto(out.view(BF16.dtype), values, casting="unsafe")
        if values.max() > _EXACT or values.min() < -_EXACT:
            np.copyto(wide.view(FP32.dtype), values, casting="unsafe")
            mend(codes, out, wide)

    if isinstance(src, IntFormat):
        return Step(run=run_int, scratch=(FP32.code_dtype,))
    return Step(run=run, scratch=(FP32.code_dtype, *narrowing.scratch))


def _from_int(src: IntFormat, dst: FloatFormat, mode: RoundMode, policy: Policy) -> Step | None:
    """Convert to FP64 first: exactly up to 32 bits; of larger integers with an odd last bit."""
    narrowing = _from_float(FP64, dst, mode, policy)
    if narrowing is None or dst is FP16:
        return None

    def run(codes: Codes, out: Codes, double: Codes, *scratch: npt.NDArray[Any]) -> None:
        doubles = double.view(FP64.dtype)
        if src is UINT64:
            unsigned_to_double(codes, doubles, scratch[0], double)
        else:
            source = codes.view(src.dtype)
            if src is INT64:
                source = fold(source, scratch[0].view(INT64.dtype), double.view(INT64.dtype))
            np.copyto(doubles, source, casting="unsafe")
        narrowing.run(double, out, *scratch)

    return Step(run=run, scratch=(FP64.code_dtype, *narrowing.scratch))
