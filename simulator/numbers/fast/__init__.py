"""The conversions of `convert.py`, fast: the same code for every code, or no fast path at all.

Few mechanisms serve all pairs: a table for sources of up to 16 bits; the library's own cast where
it is the conversion; rounding to integral values in units of the destination's last place; cutting
low bits off a code, or rounding them to odd until a table holds the rest. What NaN, infinity and
overflow become is asked of the definition.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from simulator.numbers.convert import Conversion, Overflow
from simulator.numbers.fast.floats import from_float, to_integral
from simulator.numbers.fast.integers import cast_by_numpy, from_wide_int
from simulator.numbers.fast.narrow import to_narrow_float
from simulator.numbers.fast.pieces import Kernel, Step, in_pieces
from simulator.numbers.fast.truncation import truncate
from simulator.numbers.fast.truth import to_bool
from simulator.numbers.formats import FP32, Codes, FloatFormat, Format, IntFormat

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
    step = _step(conversion)
    return None if step is None else in_pieces(step)


def _step(conversion: Conversion) -> Step | None:
    src, dst, mode, policy = conversion.src, conversion.dst, conversion.mode, conversion.policy
    step: Step | None = None
    if conversion.is_integral:
        step = to_integral(mode) if src is FP32 else None
    elif isinstance(dst, FloatFormat) and policy.overflow is Overflow.WRAP:
        return None
    elif isinstance(src, FloatFormat):
        step = (
            to_bool(src, dst)
            or truncate(src, dst, mode, policy)
            or from_float(src, dst, mode, policy)
        )
    else:
        step = cast_by_numpy(src, dst, mode, policy)
    if step is None and src.bits <= TABLE_BITS:
        return _look_up(conversion.define, src)
    if step is None and isinstance(src, IntFormat):
        step = from_wide_int(src, dst, mode, policy)
    if step is None and not conversion.is_integral:
        step = to_narrow_float(src, dst, mode, policy)
    return step


def look_up(convert_all: Callable[[Codes], Codes], src: Format) -> Kernel:
    """Make a kernel that looks every code up in a table of all of them.

    Args:
        convert_all: what the table is made with, once.
        src: a format of at most 16 bits.
    """
    return in_pieces(_look_up(convert_all, src))


def _look_up(convert_all: Callable[[Codes], Codes], src: Format) -> Step:
    """The table has an entry for every word, so no index is out of range; "wrap" is the mode of
    `take` that neither buffers its output nor compares with both ends.
    """
    table = convert_all(np.arange(1 << max(src.bits, 8), dtype=src.code_dtype))

    def run(codes: Codes, out: Codes, index: npt.NDArray[np.intp]) -> None:
        np.copyto(index, codes, casting="unsafe")
        np.take(table, index, out=out, mode="wrap")

    return Step(run=run, scratch=(np.dtype(np.intp),))
