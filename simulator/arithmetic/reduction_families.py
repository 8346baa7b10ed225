"""The orders of reductions by family of chips: a row a family.

Sources: of A2/A3 those of `reduction_order`. Of the 950 pto-isa a5/TRowReduce.hpp, TColSum.hpp,
TRowProd.hpp, TColReduceOps.hpp; asc-devkit ReduceSum.md for the binary tree inside a register.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from simulator.arithmetic import reduction_order
from simulator.arithmetic.interval import Enclosure, enclosed
from simulator.arithmetic.reduction_order import Glue, Join, Order, X, in_lanes, onto, repeats, tree
from simulator.numbers.formats import Format
from tiling.chips import A2_A3, ASCEND_950


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """The orders of a family.

    Attributes:
        row_sum, column_sum: of floats, along the last axis and along others.
        row_product, column_product: of all numbers.
        is_native: the native executor has them.
        starts_at_zero: +0 is added to a sum along the last axis, and to one line alone.
        is_stated: a document states the order of sums inside one repeat.
    """

    row_sum: Order[Any]
    column_sum: Order[Any]
    row_product: Order[Any]
    column_product: Order[Any]
    is_native: bool = False
    starts_at_zero: bool = False
    is_stated: bool = False


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


ORDERS: Final[Mapping[str, Orders]] = MappingProxyType(
    {
        A2_A3: Orders(
            row_sum=reduction_order.row_sum,
            column_sum=reduction_order.column_sum,
            row_product=reduction_order.row_product,
            column_product=reduction_order.column_extreme,
            is_native=True,
        ),
        ASCEND_950: Orders(
            row_sum=row_sum_by_repeats,
            column_sum=column_sum_onto_last,
            row_product=row_product_by_halves,
            column_product=column_product_by_pairs,
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
