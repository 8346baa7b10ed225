"""The orders in which a tile's elements are joined, and the reach of a sum in no known order.

The orders are those of pto-isa's instruction sequences. A repeat is the 256 B that an instruction
takes at once; its elements are lanes. The functions take arrays or `Enclosure`s alike, whose last
two axes are groups of lanes, and join whole groups.
Sources: pto-isa a2a3/TRowReduceOps.hpp, TRowSum.hpp, TRowProd.hpp, TColSum.hpp, TColReduceOps.hpp;
a5/TRowReduce.hpp, TColSum.hpp, TRowProd.hpp, TColReduceOps.hpp; asc-devkit ReduceRepeat.md,
ReduceDataBlock.md and ReduceSum.md for the tree inside a repeat.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from simulator.arithmetic.interval import Bounds, Enclosure, Index, enclosed
from simulator.arithmetic.operation import Array
from simulator.arithmetic.total_order import Bools, outward
from simulator.arithmetic.trust import ASSUME_GRADUAL_UNDERFLOW, ASSUME_RNE, Trust
from simulator.numbers.convert import values_of
from simulator.numbers.formats import FloatFormat, Format
from tiling.chips import A2_A3, ASCEND_950

REPEAT_BYTES: Final = 256
BLOCK_BYTES: Final = 32


class Lanes(Protocol):
    """An array, as far as an order looks at it."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, index: Any, /) -> Any: ...

    def reshape(self, shape: tuple[int, ...], /) -> Any: ...


X = TypeVar("X", bound=Lanes)
Join = Callable[[X, X], X]
Glue = Callable[[Sequence[X], int], X]
Order = Callable[[X, int, Join[X], Glue[X]], X]
"""(rows of n elements or groups, elements a repeat, join, concatenate) -> the last axis, or the
axis of groups, cut to one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiles:
    """Tiles of an axis that are added to each other before the rest is reduced.

    Attributes:
        extent: elements of a tile along the axis; the last one may be shorter.
        joins: pairs of tiles in the order in which the second is added to the first.
    """

    extent: int
    joins: tuple[tuple[int, int], ...]


def tree(x: X, join: Join[X], glue: Glue[X]) -> X:
    """Join neighbouring lanes, then neighbouring results, and so on; an odd one waits its turn.

    Lanes that a mask leaves out take no part.
    """
    while (lanes := x.shape[-1]) > 1:
        even = lanes // 2 * 2
        joined = join(x[..., 0:even:2], x[..., 1:even:2])
        x = joined if even == lanes else glue((joined, x[..., even:]), -1)
    return x


def row_sum(x: X, repeat: int, join: Join[X], glue: Glue[X]) -> X:
    """Sum rows: repeats pairwise, the odd one and the tail onto the first, then the tree."""
    groups, tail = repeats(x, repeat)
    if groups is None:
        return tree(x, join, glue)
    count = groups.shape[-2]
    pairs = count // 2
    if pairs:
        held = join(groups[..., 0 : 2 * pairs : 2, :], groups[..., 1 : 2 * pairs : 2, :])
        if count % 2:
            held = onto(held, 0, groups[..., -1, :], join, glue)
    else:
        held = groups
    if tail is not None:
        held = onto(held, 0, tail, join, glue)
    while pairs > 1:
        odd = held[..., pairs - 1, :] if pairs % 2 else None
        pairs //= 2
        held = join(held[..., 0 : 2 * pairs : 2, :], held[..., 1 : 2 * pairs : 2, :])
        if odd is not None:
            held = onto(held, pairs - 1, odd, join, glue)
    first: X = held[..., 0, :]
    return tree(first, join, glue)


def row_extreme(x: X, repeat: int, join: Join[X], glue: Glue[X]) -> X:
    """Join the repeats of rows one after another, the tail before the third; lanes remain."""
    groups, tail = repeats(x, repeat)
    if groups is None:
        return x
    count = groups.shape[-2]
    held = groups[..., 0:1, :]
    if count > 1:
        held = join(held, groups[..., 1:2, :])
    if tail is not None:
        held = onto(held, 0, tail, join, glue)
    for group in range(2, count):
        held = join(held, groups[..., group : group + 1, :])
    lanes: X = held[..., 0, :]
    return lanes


def row_sum_of_integers(x: X, repeat: int, join: Join[X], glue: Glue[X]) -> X:
    """Add the blocks of rows one after another; lanes remain, which the scalar unit adds."""
    block = BLOCK_BYTES * repeat // REPEAT_BYTES
    held: X = x[..., :block]
    for start in range(block, x.shape[-1], block):
        held = in_lanes(held, x[..., start : start + block], join, glue)
    return held


def in_lanes(held: X, more: X, join: Join[X], glue: Glue[X]) -> X:
    """Join lanes onto the first lanes of others; the rest stays."""
    lanes = more.shape[-1]
    added = join(held[..., :lanes], more)
    return glue((added, held[..., lanes:]), -1) if lanes < held.shape[-1] else added


def row_product(x: X, repeat: int, join: Join[X], glue: Glue[X]) -> X:
    """Multiply the blocks of rows one after another, then the lanes of the result."""
    lanes = row_sum_of_integers(x, repeat, join, glue)
    held: X = lanes[..., 0:1]
    for lane in range(1, lanes.shape[-1]):
        held = join(held, lanes[..., lane : lane + 1])
    return held


def column_sum(x: X, repeat: int, join: Join[X], glue: Glue[X]) -> X:
    """Join neighbouring groups, an odd one onto the first, until one is left."""
    while (count := x.shape[-2]) > 1:
        even = count // 2 * 2
        held = join(x[..., 0:even:2, :], x[..., 1:even:2, :])
        x = onto(held, 0, x[..., -1, :], join, glue) if count % 2 else held
    return x


def column_extreme(x: X, repeat: int, join: Join[X], glue: Glue[X]) -> X:
    """Join groups one after another."""
    held: X = x[..., 0:1, :]
    for group in range(1, x.shape[-2]):
        held = join(held, x[..., group : group + 1, :])
    return held


def repeats(x: X, repeat: int) -> tuple[X | None, X | None]:
    """Cut rows into full repeats and a tail; no repeats where one instruction takes the row."""
    elems = x.shape[-1]
    if elems <= repeat:
        return None, None
    count = elems // repeat
    full = x[..., : count * repeat].reshape((*x.shape[:-1], count, repeat))
    return full, x[..., count * repeat :] if elems % repeat else None


def onto(held: X, group: int, more: X, join: Join[X], glue: Glue[X]) -> X:
    """Join lanes onto the first lanes of one group."""
    first = in_lanes(held[..., group, :], more, join, glue)
    parts = [held[..., :group, :], first[..., None, :], held[..., group + 1 :, :]]
    return glue([part for part in parts if part.shape[-2]], -2)


def row_sum_by_repeats(x: X, repeat: int, join: Join[X], glue: Glue[X]) -> X:
    """Sum each repeat of rows as a tree, and add the sums one after another, the tail last."""
    groups, tail = repeats(x, repeat)
    if groups is None:
        return tree(x, join, glue)
    sums = tree(groups, join, glue)
    held: X = sums[..., 0, :]
    for group in range(1, sums.shape[-2]):
        held = join(held, sums[..., group, :])
    return held if tail is None else join(held, tree(tail, join, glue))


def column_sum_onto_last(x: X, repeat: int, join: Join[X], glue: Glue[X]) -> X:
    """Join neighbouring groups, an odd one onto the last pair, until one is left."""
    while (count := x.shape[-2]) > 1:
        even = count // 2 * 2
        held = join(x[..., 0:even:2, :], x[..., 1:even:2, :])
        x = onto(held, even // 2 - 1, x[..., -1, :], join, glue) if count % 2 else held
    return x


def row_product_by_halves(x: X, repeat: int, join: Join[X], glue: Glue[X]) -> X:
    """Multiply the repeats of rows one after another, then the upper half of lanes onto the lower.

    Lanes that a short row lacks are ones.
    """
    held: X = x[..., :repeat]
    for start in range(repeat, x.shape[-1], repeat):
        held = in_lanes(held, x[..., start : start + repeat], join, glue)
    while repeat > 1:
        repeat //= 2
        if held.shape[-1] > repeat:
            held = in_lanes(held[..., :repeat], held[..., repeat:], join, glue)
    return held


def column_product_by_pairs(x: X, repeat: int, join: Join[X], glue: Glue[X]) -> X:
    """Join the groups behind the first in pairs, and each pair onto the first; an odd one last."""
    held: X = x[..., 0:1, :]
    count = x.shape[-2]
    for group in range(1, count - 1, 2):
        pair = join(x[..., group : group + 1, :], x[..., group + 1 : group + 2, :])
        held = join(held, pair)
    return join(held, x[..., count - 1 :, :]) if count % 2 == 0 else held


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """The orders of a family.

    Attributes:
        row_sum, column_sum: of floats, along the last axis and along others.
        row_product, column_product: of all numbers.
        native: the names that the native executor has for reductions along the last axis.
        starts_at_zero: +0 is added to a sum along the last axis, and to one line alone.
        is_stated: a document states the order of sums inside one repeat.
    """

    row_sum: Order[Any]
    column_sum: Order[Any]
    row_product: Order[Any]
    column_product: Order[Any]
    native: Mapping[str, str]
    starts_at_zero: bool = False
    is_stated: bool = False


ORDERS: Final[Mapping[str, Orders]] = MappingProxyType(
    {
        A2_A3: Orders(
            row_sum=row_sum,
            column_sum=column_sum,
            row_product=row_product,
            column_product=column_extreme,
            native=MappingProxyType({"sum": "sum", "prod": "prod"}),
        ),
        ASCEND_950: Orders(
            row_sum=row_sum_by_repeats,
            column_sum=column_sum_onto_last,
            row_product=row_product_by_halves,
            column_product=column_product_by_pairs,
            native=MappingProxyType({"sum": "sum_by_repeats", "prod": "prod_by_halves"}),
            starts_at_zero=True,
            is_stated=True,
        ),
    }
)
"""By `Chip.isa`."""


def onto_zero(found: Enclosure, fmt: Format) -> Enclosure:
    """A sum to which +0 is added: -0 becomes +0."""
    zero = fmt.dtype.type(0)
    if found.interval is None:
        return Enclosure(values=found.values + zero)
    ends = found.interval
    values, low, high = found.values + zero, ends.low + zero, ends.high + zero
    return enclosed(values, low, high, ends.may_be_nan, ends.cause)


Exponents = npt.NDArray[np.int64]
NO_BITS: Final = 1 << 10
"""The exponent of the last bit of zero: above that of any product of two numbers."""


def last_bit(numbers: Array) -> Exponents:
    """The exponent of the least bit set of finite float64 numbers; `NO_BITS` of zeros."""
    codes = np.ascontiguousarray(numbers).view(np.int64)
    stored = (codes >> 52) & 0x7FF
    significand = codes & ((1 << 52) - 1) | np.where(stored > 0, np.int64(1) << 52, np.int64(0))
    least = significand & -significand
    position = (least.astype(np.float64).view(np.int64) >> 52) - 1023
    exponents = np.maximum(stored, 1) - 1075 + position
    return np.where(significand == 0, np.int64(NO_BITS), exponents)


def is_unrounded(magnitude: Array, last: Exponents, fmt: FloatFormat) -> Bools:
    """Finds sums that no order rounds: of multiples of a power of two, below 2**p of it.

    It is a normal number, so that no partial sum is subnormal.

    Args:
        magnitude: the sum of the terms' magnitudes, in float64.
        last: the least exponent of a bit of theirs.
        fmt: the format in which the device adds, of precision p.
    """
    limit = np.ldexp(1.0, np.minimum(last + fmt.man_bits + 1, 1000).astype(np.int32))
    return np.asarray((magnitude <= np.minimum(limit, _largest(fmt))) & (last >= fmt.emin))


def _largest(fmt: FloatFormat) -> float:
    return float(values_of(np.array([fmt.max_code], fmt.code_dtype), fmt)[0])


def order_bound(low: Array, high: Array, axis: int, fmt: FloatFormat, trust: Trust) -> Bounds:
    """The reach of a float sum in any order of its terms.

    A sum of n terms is off by at most ((1 + u)**(n - 1) - 1) times the sum of their magnitudes,
    where u is half an ulp if each step rounds to nearest, and as many ulp more as it may be off
    otherwise, one if that is not known (Higham, Accuracy and Stability of Numerical Algorithms,
    4.2). Additions of subnormal numbers are exact; if the device flushes them, each term and each
    step may lose one.

    Args:
        low, high: ends of the terms.
        axis: of the terms.
        fmt: their format.
        trust: what is taken for granted.

    Returns:
        Bounds with one element along the axis, and NaN as possible where a term is infinite or a
        partial sum may overflow.
    """
    shape = list(low.shape)
    shape[axis] = 1
    lower, upper, magnitude = (np.empty(shape, np.float64) for _ in range(3))
    for index in row_pieces(low.shape, axis):
        ends = [end[index].astype(np.float64) for end in (low, high)]
        greater = np.maximum(*map(np.abs, ends))
        for terms, out in zip((*ends, greater), (lower, upper, magnitude), strict=True):
            out[index] = _sum_by_halves(terms, axis)
    return reach(lower, upper, magnitude, low.shape[axis], fmt, trust)


def _sum_by_halves(terms: npt.NDArray[np.float64], axis: int) -> npt.NDArray[np.float64]:
    """Add the second half of an axis to the first, and so on; an odd one in the middle waits.

    The order is that of the native executor, so that both have one bound.

    Args:
        terms: overwritten.
        axis: becomes one element.
    """
    held = np.moveaxis(terms, axis, -1)
    count = held.shape[-1]
    while count > 1:
        half = count // 2
        held[..., :half] += held[..., count - half : count]
        count -= half
    return np.moveaxis(held[..., :1], -1, axis)


def row_pieces(shape: tuple[int, ...], axis: int) -> Iterator[Index]:
    """Cut an array along its first axis into pieces that stay in the cache, unless that is reduced.

    Args:
        shape: of the array.
        axis: that is reduced.
    """
    if axis % len(shape) == 0:
        yield (...,)
        return
    step = max(1, _PIECE_ELEMS // max(1, math.prod(shape[1:])))
    for start in range(0, shape[0], step):
        yield (slice(start, start + step),)


def slabs(shape: tuple[int, ...], last: bool) -> Iterator[Index]:
    """Cut an array beside its reduced axis into slabs that stay in the cache."""
    if last:
        step = max(1, _SLAB_ELEMS // shape[-1])
        for start in range(0, shape[0], step):
            yield (slice(start, start + step),)
        return
    step = max(_LEAST_LANES, _SLAB_ELEMS // shape[-2])
    for outer in range(shape[0]):
        for start in range(0, shape[-1], step):
            yield (slice(outer, outer + 1), slice(None), slice(start, start + step))


_PIECE_ELEMS: Final = 1 << 15
_SLAB_ELEMS: Final = 1 << 16
_LEAST_LANES: Final = 64


def reach(
    low: Array, high: Array, magnitude: Array, terms: int | Array, fmt: FloatFormat, trust: Trust
) -> Bounds:
    """The bound of `order_bound`, of sums that are there already.

    Args:
        low, high: sums of the terms' ends, in float64.
        magnitude: the sum of their magnitudes.
        terms: how many they are.
        fmt: the format in which the device adds.
        trust: what is taken for granted.
    """
    off = magnitude * growth_of(terms, fmt, trust)
    if ASSUME_GRADUAL_UNDERFLOW not in trust.assumed:
        off = off + underflow_of(terms, fmt)
    outliers = ~(magnitude + off < _largest(fmt))
    lower, upper = (
        np.where(outliers, limit, end).astype(fmt.dtype)
        for limit, end in ((-np.inf, low - off), (np.inf, high + off))
    )
    lower, upper = (
        np.where(end == 0, zero, end).astype(fmt.dtype)
        for end, zero in ((lower, -0.0), (upper, 0.0))
    )
    lower, upper = outward(lower, upper, 1, fmt, (None, None))
    return Bounds(low=lower, high=upper, nan=outliers if outliers.any() else None)


def growth_of(terms: int | Array, fmt: FloatFormat, trust: Trust) -> Any:
    """The greatest error of a sum in any order, by the sum of its terms' magnitudes."""
    half_ulp = 2.0 ** -(fmt.man_bits + 1)
    ulps = trust.measured.get(("add", fmt), int(ASSUME_RNE not in trust.assumed))
    unit = (1 + 2 * ulps) * half_ulp
    # The last term covers the float64 arithmetic of the bound itself.
    return np.expm1((terms - 1) * np.log1p(unit)) + terms * 2.0**-50


def underflow_of(terms: int | Array, fmt: FloatFormat) -> Any:
    """The greatest error of a sum each of whose terms and steps may be flushed to zero."""
    return 2 * terms * 2.0**fmt.emin
