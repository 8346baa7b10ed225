"""The conversions of `convert.py`, fast: the same code for every code, or no fast path at all.

Few mechanisms serve all pairs: a table for sources of up to 16 bits; the library's own cast where
it is the conversion; rounding to integral values; cutting low bits off a code, or rounding them to
odd until a table holds the rest. The definition serves NaN, infinity and overflow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

import numpy as np

from simulator.numbers.convert import Conversion, Overflow
from simulator.numbers.fast.floats import to_float, to_int, to_integral
from simulator.numbers.fast.integers import to_int_or_exact, to_rounded_float
from simulator.numbers.fast.pieces import Kernel, Step, in_pieces
from simulator.numbers.formats import Codes, FloatFormat, Format, IntFormat

__all__ = ["TABLE_BITS", "Kernel", "kernel", "look_up"]

TABLE_BITS: Final = 16
"""The widest source that is looked up in a table of all its codes."""


@cache
def kernel(conversion: Conversion) -> Kernel | None:
    """Find the fast path of a conversion.

    NaN, infinity, -0, subnormal numbers and overflow become what the definition makes of them,
    under every mode and policy that has a path.

    Returns:
        A function (source codes, destination codes) of 1-D contiguous arrays of equal length that
        do not overlap, safe to run in several threads; or None, where only the definition serves.
    """
    src, dst = conversion.src, conversion.dst
    if isinstance(dst, FloatFormat) and conversion.policy.overflow is Overflow.WRAP:
        return None
    step = _step(src, dst, conversion)
    if step is None and src.bits <= TABLE_BITS:
        return look_up(conversion.define, src)
    return None if step is None else in_pieces(step)


def _step(src: Format, dst: Format, conversion: Conversion) -> Step | None:
    if conversion.is_integral:
        return to_integral(conversion)
    if isinstance(src, IntFormat):
        step = to_int_or_exact(src, conversion)
        if step is None and src.bits > TABLE_BITS and isinstance(dst, FloatFormat):
            step = to_rounded_float(src, dst, conversion)
        return step
    if isinstance(dst, IntFormat):
        return to_int(src, dst, conversion)
    return to_float(src, dst, conversion)


def look_up(convert_all: Callable[[Codes], Codes], src: Format) -> Kernel:
    """Make a kernel that looks every code up in a table of all of them.

    Args:
        convert_all: what the table is made with, once.
        src: a format of at most 16 bits.
    """
    # An entry for every word, so no index is out of range; this mode of `take` compares with none.
    table = convert_all(np.arange(1 << max(src.bits, 8), dtype=src.code_dtype))
    return in_pieces(lambda codes: table.take(codes, mode="wrap"))
