"""The way out of the cube's accumulator: INT32 to FP16 by a scale."""

from __future__ import annotations

import functools
from typing import Final

import numpy as np

from simulator.arithmetic.casts import cast
from simulator.arithmetic.evaluation import evaluate
from simulator.arithmetic.interval import Enclosure, Interval, enclosed, exactly
from simulator.arithmetic.operation import Array
from simulator.arithmetic.table import OPERATIONS
from simulator.arithmetic.total_order import greater, lesser
from simulator.arithmetic.trust import ASSUME_RNE, DEFAULT, Trust, meeting
from simulator.numbers.convert import INF_NAN, SATURATE, Conversion
from simulator.numbers.formats import FP16, FP32, INT32
from simulator.numbers.rounding import RoundMode

SCALE_MAN_BITS: Final = 10
"""Bits of a scale's fraction that count (asc-devkit, quantisation on the way out: 1, 8, 10)."""


def scale_of(scales: Array) -> Array:
    """FP32 scales without the bits that the device does not read."""
    dropped = FP32.man_bits - SCALE_MAN_BITS
    kept: Array = (scales.view(np.uint32) >> np.uint32(dropped) << np.uint32(dropped)).view(
        np.float32
    )
    return kept


def dequantised(
    sums: Enclosure, scales: Array, *, relu: bool, trust: Trust = DEFAULT, cause: int = 0
) -> Enclosure:
    """INT32 to FP32, perhaps the greater of it and zero, times a scale, to FP16.

    How INT32 beyond 2**24 and the product are rounded is not public: each may be off by one FP32
    number. The vendor's script (asc-devkit examples, fixpipe_l0c2gm, gen_data_s322f16.py) clamps to
    the largest FP16 number; a device in INF/NAN mode may give infinity, so both are possible.

    Args:
        sums: INT32.
        scales: FP32 as `scale_of` gives them, of a shape that broadcasts; finite.
        relu: negative sums become +0.
        trust, cause: as for `evaluate`.
    """
    rounded, below, above = (
        cast((Conversion(src=INT32, dst=FP32, mode=mode, policy=INF_NAN),), sums, trust=trust)
        for mode in (RoundMode.RINT, RoundMode.FLOOR, RoundMode.CEIL)
    )
    known = (sums.interval or exactly(sums.values)).cause
    limits = Interval(low=below.low, high=above.high, may_be_nan=None, cause=known)
    wide = Enclosure(values=rounded.values, interval=limits)
    if relu:
        wide = evaluate(OPERATIONS["relu"], (wide,), FP32, trust=trust, cause=cause)
    product = evaluate(
        OPERATIONS["mul"],
        (wide, Enclosure(values=scales)),
        FP32,
        trust=trust.without(ASSUME_RNE),
        cause=cause,
    )
    clamped, unclamped = (
        cast(
            (Conversion(src=FP32, dst=FP16, mode=RoundMode.RINT, policy=policy),),
            product,
            trust=trust,
            cause=cause,
        )
        for policy in (SATURATE, INF_NAN)
    )
    ends = product.interval or exactly(product.values)
    causes = (x.interval.cause for x in (clamped, unclamped) if x.interval is not None)
    return enclosed(
        clamped.values,
        lesser(clamped.low, unclamped.low, FP16),
        greater(clamped.high, unclamped.high, FP16),
        None,
        functools.reduce(functools.partial(meeting, trust), causes, ends.cause),
    )
