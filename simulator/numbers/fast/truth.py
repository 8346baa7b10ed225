"""Fast steps from floats to BOOL, which is "not zero" whatever else the code says."""

from __future__ import annotations

import numpy as np

from simulator.numbers.fast.pieces import Step
from simulator.numbers.formats import BOOL, FP32, FP64, Codes, FloatFormat, Format


def to_bool(src: FloatFormat, dst: Format) -> Step | None:
    """Find the step of a conversion to BOOL; formats without a -0 have none.

    The FPU compares what numpy has a type for: NaN is not equal to zero. Elsewhere the sign is
    shifted out and the rest compared as an integer.
    """
    if dst is not BOOL or not src.has_negative_zero or src.bits < src.code_dtype.itemsize * 8:
        return None
    return _unequal(src) if src in (FP64, FP32) else _unsigned(src)


def _unequal(src: FloatFormat) -> Step:
    zero = np.array(0, src.dtype)

    def run(codes: Codes, out: Codes) -> None:
        np.not_equal(codes.view(src.dtype), zero, out=out.view(BOOL.dtype))

    return Step(run=run, single_pass=True)


def _unsigned(src: FloatFormat) -> Step:
    one, zero = np.array(1, src.code_dtype), np.array(0, src.code_dtype)

    def run(codes: Codes, out: Codes, magnitude: Codes) -> None:
        np.left_shift(codes, one, out=magnitude)
        np.not_equal(magnitude, zero, out=out.view(BOOL.dtype))

    return Step(run=run, scratch=(src.code_dtype,))
