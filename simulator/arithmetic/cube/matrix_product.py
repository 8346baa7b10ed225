"""The product of matrices, and the interval of every order in which a device may add.

Floats: products and partial sums are taken as FP32 operations in any order, fused or not, each off
by a relative u, 2**-23 (which truncation keeps) or, under ASSUME_CUBE_RNE, 2**-24. After d of them
a term is off by at most (1 + u)**d - 1 (Higham, Accuracy and Stability of Numerical Algorithms,
3.1). The accumulator starts at +0 or at the bias (asc-devkit Mmad.md, cmatrixInitVal), so a sum
that is exactly zero is +0. A sum of multiples of one power of two that stays below 2**24 of it is
exact in every order.

Integers: exact while the sum of magnitudes is below 2**31; beyond it nothing public says whether
the accumulator wraps or clamps. float32 and float64 multiply them where they are exact.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from simulator.arithmetic.casts import cast
from simulator.arithmetic.cube.float_product import (
    BLOCK_ELEMS,
    multiply_floats,
    spans,
)
from simulator.arithmetic.cube.matrix_operand import Doubles, Scratch
from simulator.arithmetic.cube.product_blocks import ProductBlocks
from simulator.arithmetic.evaluation import evaluate, require_default_environment
from simulator.arithmetic.interval import (
    Enclosure,
    Interval,
    enclosed,
    exactly,
    limits,
    with_open_nans,
)
from simulator.arithmetic.operation import Array
from simulator.arithmetic.table import OPERATIONS
from simulator.arithmetic.total_order import greater, is_nan, lesser
from simulator.arithmetic.trust import (
    ASSUME_GRADUAL_UNDERFLOW,
    ASSUME_NAN_PATTERN,
    ASSUME_RNE,
    CHOICES,
    DEFAULT,
    MATMUL,
    Causes,
    Trust,
    cause_along,
    meeting,
    own_cause,
)
from simulator.numbers import float_environment
from simulator.numbers.convert import INF_NAN, SATURATE, Conversion
from simulator.numbers.engines import Engine
from simulator.numbers.formats import (
    BF16,
    FP16,
    FP32,
    FP64,
    INT8,
    INT32,
    FloatFormat,
    Format,
)
from simulator.numbers.rounding import RoundMode

if TYPE_CHECKING:  # the native executor is loaded when it is first used
    from simulator.arithmetic.native.executor_library import Executor

_FORMATS: Final[tuple[Format, ...]] = (INT8, FP16, BF16, FP32, FP64)
_ASSUMED_OF_FLOATS: Final = {*CHOICES.values(), ASSUME_GRADUAL_UNDERFLOW}


@float_environment.quiet()
def matmul(
    a: Enclosure,
    b: Enclosure,
    fmt: Format,
    *,
    bias: Enclosure | None = None,
    trust: Trust = DEFAULT,
    cause: int = 0,
    engine: Engine = "auto",
    threads: int = 1,
) -> Enclosure:
    """Multiply matrices as the cube does.

    Infinities and NaN give what IEEE 754 gives in every order; where a sum of magnitudes can exceed
    the largest FP32 number, anything is possible. INT32 values wrap.

    Args:
        a: [..., M, K]; any strides.
        b: [..., K, N]; leading axes broadcast.
        fmt: of both: INT8, FP16, BF16, FP32, or FP64 for numbers of at most 12 bits under scales,
            whose products FP32 holds.
        bias: INT32 for INT8, else FP32, of a shape that broadcasts to [..., 1, N]; the sum starts
            with it.
        trust: ASSUME_CUBE_RNE, ASSUME_CUBE_HF32 and ASSUME_GRADUAL_UNDERFLOW count.
        cause: the caller's index of this operation.
        engine: "auto" multiplies exact INT8 natively, and finds the ends of floats, where that can
            be; "numpy" never.
        threads: that share native work, at most.

    Returns:
        [..., M, N] in INT32 for INT8, else in FP32.

    Raises:
        ValueError: another format, or shapes that do not fit.
        RuntimeError: this thread does not round to nearest or flushes subnormal numbers.
    """
    from simulator.arithmetic.native import executor_library

    require_default_environment()
    out = INT32 if fmt is INT8 else FP32
    _check(a, b, fmt, bias, out)
    (rows, terms), columns = a.shape[-2:], b.shape[-1]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    wide_a, wide_b = (
        _spread_over(a, (*batch, rows, terms)),
        _spread_over(b, (*batch, terms, columns)),
    )
    wide_bias = None if bias is None else _spread_over(bias, (*batch, 1, columns))
    if isinstance(fmt, FloatFormat):
        cause = own_cause(cause, trust, *_ASSUMED_OF_FLOATS)
    result = ProductBlocks((*batch, rows, columns), out.dtype)
    executor, scratch = executor_library.executor_for(engine), Scratch()
    for index in np.ndindex(batch):
        added = None if wide_bias is None else wide_bias[index]
        if isinstance(fmt, FloatFormat):
            multiply_floats(
                result,
                index,
                wide_a[index],
                wide_b[index],
                added,
                fmt,
                trust,
                cause,
                executor,
                scratch,
            )
        else:
            multiply_integers(
                result,
                index,
                wide_a[index],
                wide_b[index],
                added,
                trust,
                cause,
                executor=executor,
                threads=threads,
            )
    product = result.enclosure()
    if isinstance(out, FloatFormat) and ASSUME_NAN_PATTERN not in trust.assumed:
        product = with_open_nans(product, out, trust, cause)
    return product


def _spread_over(x: Enclosure, shape: tuple[int, ...]) -> Enclosure:
    return x.map(lambda array: np.broadcast_to(array, shape))


def _check(a: Enclosure, b: Enclosure, fmt: Format, bias: Enclosure | None, out: Format) -> None:
    if fmt not in _FORMATS:
        raise ValueError(f"matmul takes {', '.join(map(str, _FORMATS))}, not {fmt}")
    for x, wanted in ((a, fmt), (b, fmt), *(() if bias is None else ((bias, out),))):
        if x.values.dtype != wanted.dtype:
            raise ValueError(f"an operand of matmul has dtype {x.values.dtype}, not {wanted.dtype}")
    if min(len(a.shape), len(b.shape)) < 2 or a.shape[-1] != b.shape[-2]:
        raise ValueError(
            f"matmul takes [..., M, K] and [..., K, N], not {list(a.shape)} and {list(b.shape)}"
        )


Wide = npt.NDArray[np.int64]

_MOST: Final = -INT8.min
_CHUNK: Final = (1 << 24) // _MOST**2
"""Terms of which float32 gives the exact sum in any order: all partial sums are below 2**24."""
_SPARSE: Final = 64
"""If fewer than one element in so many is open, adding up lines beats multiplying matrices."""


def multiply_integers(
    result: ProductBlocks,
    index: tuple[int, ...],
    a: Enclosure,
    b: Enclosure,
    bias: Enclosure | None,
    trust: Trust,
    cause: int,
    *,
    executor: Executor | None = None,
    threads: int = 1,
) -> None:
    """Multiply [M, K] and [K, N] of INT8 and add an INT32 bias [1, N].

    The sum is exact while the sum of magnitudes is below 2**31. Beyond it the values wrap and the
    interval is all of INT32, but for a trust that takes the values as known.
    """
    rows, terms, columns = *a.shape, b.shape[1]
    offset = np.zeros((1, columns), np.int64) if bias is None else bias.values.astype(np.int64)
    ends = (offset, offset) if bias is None else tuple(x.astype(np.int64) for x in _ends(bias))
    heaviest = int(np.maximum(np.abs(ends[0]), np.abs(ends[1])).max(initial=0))
    fits = MATMUL in trust.correctly_rounded or terms * _MOST**2 + heaviest <= INT32.max
    is_exact = all(x is None or x.interval is None for x in (a, b, bias))
    if executor is not None and fits and is_exact and min(rows, terms, columns) > 0:
        from simulator.arithmetic.native import integer_products
        from simulator.arithmetic.remembered_results import remembered

        multiply = functools.partial(integer_products.multiply, executor, threads=threads)
        given = (a.values, b.values)
        exact = remembered(MATMUL, given, lambda: multiply(*given))
        if bias is not None:
            exact = exact + bias.values
        result.put(index, Enclosure(values=exact))
        return
    of_columns = np.full((1, columns), cause, np.uint16)
    for x in (b,) if bias is None else (bias, b):
        of_columns = _cause_of_lines(x, 0, of_columns, trust)
    for across in spans(rows, terms):
        left = a[across]
        for along in spans(columns, terms):
            right = b[:, along]
            exact = _product(left.values, right.values) + offset[:, along]
            low = high = exact
            if bias is not None and bias.interval is not None:
                low, high = (exact - offset[:, along] + end[:, along] for end in ends)
            if left.interval is not None or right.interval is not None:
                below, above = _spread_of(left, right)
                low, high = low + below, high + above
            if not fits:
                size = _product(_magnitude(left), _magnitude(right))
                size += np.maximum(np.abs(ends[0]), np.abs(ends[1]))[:, along]
                unknown = size > INT32.max
                low = np.where(unknown, INT32.min, low)
                high = np.where(unknown, INT32.max, high)
            values, low, high = (each.astype(np.int32) for each in (exact, low, high))
            causes = _cause_of_lines(left, 1, of_columns[:, along], trust)
            result.put((*index, across, along), enclosed(values, low, high, None, causes))


def _ends(x: Enclosure) -> tuple[Array, Array]:
    return x.low, x.high


def _product(a: Array, b: Array) -> Wide:
    """The exact product of matrices of magnitudes up to 128."""
    total = np.zeros((a.shape[0], b.shape[1]), np.int64)
    for start in range(0, a.shape[1], _CHUNK):
        terms = slice(start, start + _CHUNK)
        part = np.matmul(a[:, terms].astype(np.float32), b[terms].astype(np.float32))
        total += part.astype(np.int64)
    return total


def _magnitude(x: Enclosure) -> Array:
    low, high = (np.abs(end.astype(np.int16)) for end in _ends(x))
    return np.maximum(low, high)


def _spread_of(a: Enclosure, b: Enclosure) -> tuple[Wide, Wide]:
    """The products of ends less those of the values, least and greatest; exact in float64.

    Each product has a factor that is 0 but for open elements. Only terms with one are looked at.
    """
    is_open = (a.low != a.high).any(axis=0) | (b.low != b.high).any(axis=1)
    terms = np.flatnonzero(is_open)
    a, b = a[:, terms], b[terms]
    (twice_a, shift_a, gap_a), (twice_b, shift_b, gap_b) = map(_centre_and_gap, (a, b))
    middle = _by_open(shift_a, twice_b + shift_b) + _by_open(shift_b.T, twice_a.T).T
    radius = _by_open(gap_a, np.abs(twice_b + shift_b) + gap_b)
    radius += _by_open(gap_b.T, np.abs(twice_a + shift_a).T).T
    low, high = np.ceil((middle - radius) / 4), np.floor((middle + radius) / 4)
    return low.astype(np.int64), high.astype(np.int64)


def _centre_and_gap(x: Enclosure) -> tuple[Doubles, Doubles, Doubles]:
    """Twice the values, the sum of both ends less that, and the distance of the ends."""
    twice, low, high = 2.0 * x.values, x.low.astype(np.float64), x.high.astype(np.float64)
    return twice, high + low - twice, high - low


def _by_open(a: Doubles, b: Doubles) -> Doubles:
    """The product of matrices of which the left is 0 but for open elements."""
    rows, terms = np.nonzero(a)
    if rows.size * _SPARSE > a.size:
        return _dense(a, b)
    total = np.zeros((a.shape[0], b.shape[1]))
    step = max(1, BLOCK_ELEMS // b.shape[1])
    for first in range(0, rows.size, step):
        some = slice(first, first + step)
        of_rows, starts = np.unique(rows[some], return_index=True)
        addends = a[rows[some], terms[some], None] * b[terms[some]]
        total[of_rows] += np.add.reduceat(addends, starts, axis=0)
    return total


def _dense(a: Doubles, b: Doubles) -> Doubles:
    product: Doubles = a @ b
    return product


def _cause_of_lines(x: Enclosure, axis: int, otherwise: Causes, trust: Trust) -> Causes:
    """The cause of the widest interval of each line that is open, else another."""
    if x.interval is None:
        return otherwise
    gaps = x.high.astype(np.int64) - x.low
    widest = np.expand_dims(gaps.argmax(axis=axis), axis)
    causes = np.broadcast_to(x.interval.cause, gaps.shape)
    found = cause_along(trust, causes, widest, gaps != 0, axis)
    is_open = gaps.any(axis=axis, keepdims=True)
    return np.where(is_open, meeting(trust, found, otherwise), otherwise)


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

    The vendor's script (asc-devkit examples, fixpipe_l0c2gm, gen_data_s322f16.py) clamps to the
    largest FP16 number; a device in INF/NAN mode may give infinity, so both are possible.

    Args:
        sums: INT32.
        scales: FP32 as `scale_of` gives them, of a shape that broadcasts; finite.
        relu: negative sums become +0.
        trust, cause: as for `evaluate`.
    """
    product = _scaled(sums, scales, INT32, relu, trust, cause)
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


def quantised(
    sums: Enclosure,
    scales: Array,
    fmt: Format,
    *,
    relu: bool,
    trust: Trust = DEFAULT,
    cause: int = 0,
) -> Enclosure:
    """Sums in FP32, perhaps the greater of each and zero, times a scale, to the nearest INT8.

    Ties go to even and what lies outside INT8 becomes its nearest end, infinities too: the vendor's
    scripts (asc-devkit examples, fixpipe_co12gm, gen_data_f322s8.py; fixpipe_l0c2gm,
    gen_data_s322s8.py). What NaN becomes is not public: any number.

    Args:
        fmt: of the sums: INT32 or FP32.
        sums, scales, relu, trust, cause: as for `dequantised`.
    """
    product = _scaled(sums, scales, fmt, relu, trust, cause)
    to_integer = Conversion(src=FP32, dst=INT8, mode=RoundMode.RINT, policy=SATURATE)
    rounded = cast((to_integer,), product, trust=trust, cause=cause)
    ends = product.interval or exactly(product.values)
    may_be_nan = is_nan(ends.low, FP32) | is_nan(ends.high, FP32)
    if ends.may_be_nan is not None:
        may_be_nan |= ends.may_be_nan
    own = np.uint16(own_cause(cause, trust))
    known = (rounded.interval or exactly(rounded.values)).cause
    least, most = limits(INT8)
    return enclosed(
        rounded.values,
        np.where(may_be_nan, least, rounded.low),
        np.where(may_be_nan, most, rounded.high),
        None,
        np.where(may_be_nan & (known == 0), own, known),
    )


def _scaled(
    sums: Enclosure, scales: Array, fmt: Format, relu: bool, trust: Trust, cause: int
) -> Enclosure:
    """Sums in FP32, perhaps the greater of each and zero, times scales.

    How INT32 beyond 2**24 and the product are rounded is not public: each may be off by one FP32
    number.
    """
    if fmt is INT32:
        rounded, below, above = (
            cast((Conversion(src=INT32, dst=FP32, mode=mode, policy=INF_NAN),), sums, trust=trust)
            for mode in (RoundMode.RINT, RoundMode.FLOOR, RoundMode.CEIL)
        )
        known = (sums.interval or exactly(sums.values)).cause
        ends = Interval(low=below.low, high=above.high, may_be_nan=None, cause=known)
        sums = Enclosure(values=rounded.values, interval=ends)
    if relu:
        sums = evaluate(OPERATIONS["relu"], (sums,), FP32, trust=trust, cause=cause)
    return evaluate(
        OPERATIONS["mul"],
        (sums, Enclosure(values=scales)),
        FP32,
        trust=trust.without(ASSUME_RNE),
        cause=cause,
    )
