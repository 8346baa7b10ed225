"""The conversions of `convert.py`, fast: the same code for every code, or no fast path at all.

Few mechanisms serve all pairs: a table for sources of up to 16 bits; the library's own cast where
it is the conversion; rounding to integral values; cutting low bits off a code, or rounding them to
odd until a table holds the rest. The definition serves NaN, infinity and overflow; it serves
everything for a round mode or an overflow rule that the mechanisms do not know.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

import numpy as np

from simulator.numbers.convert import Conversion, Overflow
from simulator.numbers.fast.chunks import ChunkFunction, Loop, in_chunks
from simulator.numbers.fast.floats import to_float, to_int, to_integral
from simulator.numbers.fast.integers import to_int_or_exact, to_rounded_float
from simulator.numbers.formats import Codes, FloatFormat, Format, IntFormat

__all__ = ["TABLE_BITS", "Loop", "look_up", "loop"]

TABLE_BITS: Final = 16
"""The widest source that is looked up in a table of all its codes."""
_OVERFLOWS: Final = frozenset({Overflow.IEEE, Overflow.SATURATE, Overflow.WRAP})
"""The rules that the mechanisms know."""


@cache
def loop(conversion: Conversion) -> Loop | None:
    """The fast path of a conversion.

    NaN, infinity, -0, subnormal numbers and overflow become what the definition makes of them,
    under every mode and policy that has a path.

    Returns:
        A function (source codes, destination codes) of 1-D contiguous arrays of equal length that
        do not overlap, safe to run in several threads; or None, where only the definition serves.
    """
    src, dst = conversion.src, conversion.dst
    overflow = conversion.policy.overflow
    if isinstance(dst, FloatFormat) and overflow is Overflow.WRAP:
        return None
    function = _function(src, dst, conversion) if overflow in _OVERFLOWS else None
    if function is None and src.bits <= TABLE_BITS:
        return look_up(conversion.reference, src)
    return None if function is None else in_chunks(function)


def _function(src: Format, dst: Format, conversion: Conversion) -> ChunkFunction | None:
    if conversion.is_integral:
        return to_integral(conversion)
    if isinstance(src, IntFormat):
        function = to_int_or_exact(src, conversion)
        if function is None and src.bits > TABLE_BITS and isinstance(dst, FloatFormat):
            function = to_rounded_float(src, dst, conversion)
        return function
    if isinstance(dst, IntFormat):
        return to_int(src, dst, conversion)
    return to_float(src, dst, conversion)


def look_up(convert_all: Callable[[Codes], Codes], src: Format) -> Loop:
    """Make a loop that looks every code up in a table of all of them.

    Args:
        convert_all: what the table is made with, once.
        src: a format of at most 16 bits.
    """
    # An entry for every word, so no index is out of range; this mode of `take` compares with none.
    table = convert_all(np.arange(1 << max(src.bits, 8), dtype=src.code_dtype))
    return in_chunks(lambda codes: table.take(codes, mode="wrap"))
