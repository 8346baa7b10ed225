"""Products of INT8 matrices in INT32: float32 and float64 multiply where they are exact."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from simulator.arithmetic.cause_codes import Causes, cause_along, meeting
from simulator.arithmetic.cube.matrix_operand import Doubles
from simulator.arithmetic.cube.product_blocks import BLOCK_ELEMS, ProductResult, spans
from simulator.arithmetic.interval import Quantity
from simulator.arithmetic.operation import Array
from simulator.arithmetic.trust import MATMUL, Trust
from simulator.numbers.formats import INT8, INT32

Wide = npt.NDArray[np.int64]

_MOST: Final = -INT8.min
_CHUNK: Final = (1 << 24) // _MOST**2
"""Terms of which float32 gives the exact sum in any order: all partial sums are below 2**24."""
_SPARSE: Final = 64
"""Where fewer than one element in so many is open, adding up lines beats multiplying matrices."""


def multiply_integers(
    result: ProductResult,
    index: tuple[int, ...],
    a: Quantity,
    b: Quantity,
    bias: Quantity | None,
    trust: Trust,
    cause: int,
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
            result.put(
                (*index, across, along),
                exact.astype(np.int32),
                low.astype(np.int32),
                high.astype(np.int32),
                cause=_cause_of_lines(left, 1, of_columns[:, along], trust),
            )


def _ends(x: Quantity) -> tuple[Array, Array]:
    return x.low, x.high


def _product(a: Array, b: Array) -> Wide:
    """The exact product of matrices of magnitudes up to 128."""
    total = np.zeros((a.shape[0], b.shape[1]), np.int64)
    for start in range(0, a.shape[1], _CHUNK):
        terms = slice(start, start + _CHUNK)
        part = np.matmul(a[:, terms].astype(np.float32), b[terms].astype(np.float32))
        total += part.astype(np.int64)
    return total


def _magnitude(x: Quantity) -> Array:
    low, high = (np.abs(end.astype(np.int16)) for end in _ends(x))
    return np.maximum(low, high)


def _spread_of(a: Quantity, b: Quantity) -> tuple[Wide, Wide]:
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


def _centre_and_gap(x: Quantity) -> tuple[Doubles, Doubles, Doubles]:
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


def _cause_of_lines(x: Quantity, axis: int, otherwise: Causes, trust: Trust) -> Causes:
    """The cause of the widest interval of each line that is open, else another."""
    if x.interval is None:
        return otherwise
    gaps = x.high.astype(np.int64) - x.low
    widest = np.expand_dims(gaps.argmax(axis=axis), axis)
    causes = np.broadcast_to(x.interval.cause, gaps.shape)
    found = cause_along(trust, causes, widest, gaps != 0, axis)
    is_open = gaps.any(axis=axis, keepdims=True)
    return np.where(is_open, meeting(trust, found, otherwise), otherwise)
