"""Products of FP16, BF16 and FP32 matrices in FP32: a midpoint in float64 and a bound."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from simulator.arithmetic.computed import unify_nan
from simulator.arithmetic.cube.matrix_operand import (
    PRECISION,
    Doubles,
    FloatBound,
    MatrixOperand,
    Scratch,
    last_bits,
    operand_of,
)
from simulator.arithmetic.cube.product_blocks import ProductBlocks
from simulator.arithmetic.interval import Enclosure, Index, enclosed
from simulator.arithmetic.operation import Array
from simulator.arithmetic.reduction_order import Exponents
from simulator.arithmetic.total_order import Bools
from simulator.arithmetic.trust import (
    ASSUME_CUBE_HF32,
    ASSUME_GRADUAL_UNDERFLOW,
    Causes,
    Trust,
    meeting,
)
from simulator.numbers.formats import FP32, FloatFormat

if TYPE_CHECKING:  # the native executor is loaded when it is first used
    from simulator.arithmetic.native.executor_library import Executor

BLOCK_ELEMS: Final = 1 << 21
"""The most elements of an operand that are held in another format at a time."""
_CACHED_ELEMS: Final = 1 << 18
"""So many elements of an array are in the cache when they are read next."""
_CACHED_ROWS: Final = 256
"""Fewer rows are not multiplied by themselves: to prepare the other matrix anew takes too long."""


def _row_blocks(rows: int, terms: int, columns: int) -> Iterator[slice]:
    """Cut rows into blocks whose sums stay in the cache, where all columns are one span."""
    if terms * columns > BLOCK_ELEMS:
        yield from spans(rows, terms)
        return
    step = max(_CACHED_ROWS, _CACHED_ELEMS // max(1, terms, columns))
    edges = [*range(0, max(1, rows // step) * step, step), rows] if rows else []
    for start, stop in itertools.pairwise(edges):  # the last one takes the rest
        yield slice(start, stop)


def spans(lines: int, terms: int) -> Iterator[slice]:
    """Cut the lines of an operand into blocks."""
    step = max(1, BLOCK_ELEMS // max(1, terms))
    for start in range(0, lines, step):
        yield slice(start, min(lines, start + step))


_LARGEST: Final = float(np.finfo(np.float32).max)
_FAR: Final = 2.0**33
"""A sum of so many times the underflow keeps the side of its row, whatever is rounded."""
_SAMPLE: Final = 32
_FEWER: Final = 8
_MOST_BITS: Final = PRECISION + 1
"""Of a row and a column together: numbers of more have no exact sums of products."""


def multiply_floats(
    result: ProductBlocks,
    index: tuple[int, ...],
    a: Enclosure,
    b: Enclosure,
    bias: Enclosure | None,
    fmt: FloatFormat,
    trust: Trust,
    cause: int,
    executor: Executor | None = None,
    scratch: Scratch | None = None,
) -> None:
    """Multiply [M, K] and [K, N] of a format and add an FP32 bias [1, N].

    An executor finds the ends of what needs no care.
    """
    scratch = Scratch() if scratch is None else scratch
    rows, terms, columns = *a.shape, b.shape[1]
    bound = FloatBound.of(terms, fmt, trust, has_bias=bias is not None)
    addends = trust.without(ASSUME_CUBE_HF32)

    def prepared(along: slice) -> tuple[MatrixOperand, MatrixOperand | None, float]:
        right = operand_of(b[:, along], fmt, 0, trust)
        if bound.is_known:
            bits = np.inf
        else:
            right, bits = replace(right, own_reach=right.reach), _bits_of_columns(right)
        added = None if bias is None else operand_of(bias[:, along], FP32, 0, addends)
        return right, added, bits

    # One product of magnitudes in place of two, where the right matrix adds nothing by itself.
    is_alone = bias is None and b.interval is None and ASSUME_GRADUAL_UNDERFLOW in trust.assumed
    weighs = bound if is_alone and a.interval is not None and not bound.is_known else None
    across_columns = list(spans(columns, terms))
    held = [prepared(across_columns[0])] if len(across_columns) == 1 else None
    for across in _row_blocks(rows, terms, columns):
        left = operand_of(a[across], fmt, 1, trust, executor, scratch, weighs)
        bits_of_rows = np.inf
        if not bound.is_known:
            if left.own_reach is None:
                reach = np.abs(left.values, out=scratch.room("reach", left.values.shape))
                left = replace(left, own_reach=reach)
            if left.exact.any():
                bits_of_rows = _bits_of_rows(left, last_bits(left.middle[:, :_FEWER], 1))
        last = None
        for k, along in enumerate(across_columns):
            right, added, bits = prepared(along) if held is None else held[k]
            if last is None and bits_of_rows + bits <= _MOST_BITS:
                last = last_bits(left.middle, 1)
            block = _Block(
                a=left,
                b=right,
                bias=added,
                bound=bound,
                last=last,
                trust=trust,
                cause=cause,
                executor=executor,
                scratch=scratch,
            )
            block.put(result, (*index, across, along))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    a: MatrixOperand
    b: MatrixOperand
    bias: MatrixOperand | None
    bound: FloatBound
    last: Exponents | None
    trust: Trust
    cause: int
    executor: Executor | None
    scratch: Scratch

    def put(self, result: ProductBlocks, index: Index) -> None:
        a, b, bias, bound = self.a, self.b, self.bias, self.bound
        multiply = self.scratch.product
        product = multiply("products", a.values, b.values)
        if a.weights is not None and self._put_weighed(result, index, product, a.weights):
            return
        parts = self._parts()
        if bound.is_known and not parts and not self._has_line("may_be_nan"):
            # The accumulator starts at +0.
            values = product + (0.0 if bias is None else bias.values)
            known = values.astype(np.float32)
            if self._has_line("outliers"):
                known = self._with_specials(known, values)
            unify_nan(known, FP32)
            result.put(index, Enclosure(values=known))
            return
        middle = product
        if a.radius is not None or b.radius is not None:
            middle = multiply("middles", a.middle, b.middle)
        size = multiply("sizes", a.reach, b.reach)
        if self._put_natively(result, index, (product, middle, size), parts):
            return
        values = product + (0.0 if bias is None else bias.values)
        if bias is not None:
            middle, size = middle + bias.middle, size + bias.reach
        exact = self._is_exact(size)
        own = size * (bound.growth + bound.slack) + bound.underflow
        own[exact] = 0
        radius = own
        for part, _ in parts:
            radius = radius + part * (1 + bound.slack)
        low, high = _inward(middle - radius, middle + radius)
        flags: Bools | None = None
        overflows = ~(size * (1 + bound.growth + bound.slack) + bound.underflow < _LARGEST)
        outliers = self._by_line("outliers") | overflows
        single = values.astype(np.float32)
        if bias is not None:
            # Zeros of either sign may meet; see the accumulator's start.
            low[exact & (size == 0) & np.signbit(bias.raw)] = -0.0
        if outliers.any():
            single = self._with_specials(single, values)
            is_nan = self._by_line("is_nan")
            sure = is_nan | outliers & ~overflows & self._by_line("exact", every=True)
            low = np.where(outliers, np.float32(-np.inf), low)
            high = np.where(outliers, np.float32(np.inf), high)
            settled = np.where(is_nan, np.float32(np.nan), single)
            low, high = (np.where(sure, settled, end) for end in (low, high))
            flags = outliers & ~sure
        named = self._by_line("may_be_nan")
        if named.any():
            flags = named & ~self._by_line("is_nan") | (False if flags is None else flags)
        for each in (single, low, high):
            unify_nan(each, FP32)
        result.put(index, enclosed(single, low, high, flags, self._causes(own, parts)))

    def _put_weighed(
        self, result: ProductBlocks, index: Index, product: Doubles, weights: Doubles
    ) -> bool:
        """Write a block by one product of magnitudes; False where that does not tell all.

        It has no exact line and no sum that may overflow, and each row has a side. That depends on
        all rows of a block. Where the sums of the other way are rounded otherwise, ends may differ
        from its ends in the last place; both ways' ends hold every order of a sum.
        """
        a, b, bound = self.a, self.b, self.bound
        if not product.size or a.exact.any() or self._has_line("outliers"):
            return False
        named = a.sides == 1
        if a.cause is None or a.sides is None or not (a.sides.all() or self.trust.names_choices):
            return False
        heaviest = float(b.reach.sum(axis=0).max())
        if not float(a.reach.max()) * heaviest * (2 + bound.growth + bound.slack) < _LARGEST:
            return False
        total = self.scratch.product("sizes", weights, b.reach)
        if not float(total.min()) > bound.underflow * _FAR:
            return False
        middle = self.scratch.product("middles", a.middle, b.middle)
        cause = np.where(named, a.cause, np.uint16(self.cause))
        cause = meeting(self.trust, cause, a.cause | np.uint16(self.cause))
        cause = np.broadcast_to(cause[:, None], product.shape)
        if self.executor is None:
            radius = total + bound.underflow
            low, high = _inward(middle - radius, middle + radius)
            values = (product + 0.0).astype(np.float32)
            result.put(index, enclosed(values, low, high, None, cause))
            return True
        is_open = self._bound(result, index, (product, middle, total, None, None), None, None)
        if is_open is None:
            return False
        if is_open:
            result.causes_at(index)[...] = cause
            result.open(index, None)
        else:
            result.settle(index)
        return True

    def _put_natively(
        self,
        result: ProductBlocks,
        index: Index,
        sums: tuple[Doubles, Doubles, Doubles],
        parts: list[tuple[Doubles, MatrixOperand]],
    ) -> bool:
        """Write a block natively; False where that cannot be done."""
        a, b = self.a, self.b
        if self.executor is None or self.bias is not None or not sums[0].size:
            return False
        if self._has_line("outliers") or self._has_line("may_be_nan"):
            return False
        exact = None if self.last is None else self._is_exact(sums[2])
        of = {id(operand): part for part, operand in parts}
        causes = a.cause if id(a) in of else None, b.cause if id(b) in of else None
        is_open = self._bound(result, index, (*sums, of.get(id(a)), of.get(id(b))), exact, causes)
        if is_open is None:
            return False
        if is_open:
            own = np.broadcast_to(np.uint16(self.cause), sums[0].shape)
            result.open(index, own if all(x is None for x in causes) else None)
        else:
            result.settle(index)
        return True

    def _bound(
        self,
        result: ProductBlocks,
        index: Index,
        sums: tuple[Doubles, Doubles, Doubles, Doubles | None, Doubles | None],
        exact: Bools | None,
        causes: tuple[Causes | None, Causes | None] | None,
    ) -> bool | None:
        """See `product_bounds.bound`; without causes the third of the sums is the whole error."""
        from simulator.arithmetic.native import product_bounds

        assert self.executor is not None
        bound = self.bound
        growth = bound.growth + bound.slack
        is_whole = causes is None
        left, right = causes or (None, None)
        low, high = result.ends_at(index)
        names = ("product", "middle", "size", "of_left", "of_right")
        return product_bounds.bound(
            self.executor,
            {**dict(zip(names, sums, strict=True)), "exact": exact},
            {
                "exact_rows": self.a.exact,
                "of_zeros": np.where(self.b.exact, 0.0, bound.underflow),
                "left_causes": left,
                "right_causes": right,
            },
            {
                "values": result.values[index],
                "low": low,
                "high": high,
                "causes": None if left is right is None else result.causes_at(index),
            },
            joins_causes=self.trust.names_choices,
            cause=self.cause,
            growth=1.0 if is_whole else growth,
            reach=0.0 if is_whole else 1 + bound.growth + bound.slack,
            factor=1 + bound.slack,
            underflow=bound.underflow,
            largest=_LARGEST,
        )

    def _has_line(self, name: str) -> bool:
        """True if a line of an operand has a property."""
        operands = (self.a, self.b) if self.bias is None else (self.a, self.b, self.bias)
        return any(getattr(x, name).any() for x in operands)

    def _by_line(self, name: str, *, every: bool = False) -> Bools:
        """A property of lines, where any of the operands has it, or every one."""
        join = np.logical_and if every else np.logical_or
        found: Bools = join(getattr(self.a, name)[:, None], getattr(self.b, name)[None, :])
        if self.bias is not None:
            found = join(found, getattr(self.bias, name)[None, :])
        return found

    def _parts(self) -> list[tuple[Doubles, MatrixOperand]]:
        """The radii that the intervals of the operands add."""
        parts: list[tuple[Doubles, MatrixOperand]] = []
        multiply = self.scratch.product
        if self.a.radius is not None:
            parts.append((multiply("of_left", self.a.radius, self.b.reach), self.a))
        if self.b.radius is not None:
            middle = np.abs(self.a.middle, out=self.scratch.room("magnitudes", self.a.middle.shape))
            parts.append((multiply("of_right", middle, self.b.radius), self.b))
        if self.bias is not None and self.bias.radius is not None:
            parts.append((self.bias.radius, self.bias))
        return parts

    def _is_exact(self, size: Doubles) -> Bools:
        """Finds sums that no order rounds: of multiples of a normal number, below 2**24 of it."""
        exact_lines = self._by_line("exact", every=True) & ~self._by_line("outliers")
        nothing: Bools = exact_lines & (size == 0)
        a, b, bias = self.a, self.b, self.bias
        of_a = self.last
        if of_a is None or not exact_lines.any():
            return nothing
        if _bits_of_rows(a, of_a) + _bits_of_columns(b) > _MOST_BITS:
            return nothing
        last = of_a[:, None] + last_bits(b.middle, 0)[None, :]
        if bias is not None:
            last = np.minimum(last, last_bits(bias.middle, 0)[None, :])
        limit = np.ldexp(1.0, np.minimum(last + PRECISION, 1000).astype(np.int32))
        fits = size <= limit
        exact: Bools = nothing | exact_lines & fits & (last >= FP32.emin)
        return exact

    def _causes(self, own: Doubles, parts: list[tuple[Doubles, MatrixOperand]]) -> Causes:
        """Of several causes the one that adds most."""
        widest, causes = own, np.broadcast_to(np.uint16(self.cause), own.shape)
        for part, operand in parts:
            if operand.cause is None:
                continue
            by_row = operand is self.a
            loose = operand.outliers & ~operand.exact | operand.may_be_nan
            lines = (slice(None), None) if by_row else (None, slice(None))
            reach = np.where(loose[lines], np.inf, part)
            of_lines = operand.cause[lines]
            chosen = np.where(reach > widest, of_lines, causes)
            causes = meeting(self.trust, chosen, causes | of_lines)
            widest = np.maximum(reach, widest)
        return causes

    def _with_specials(self, single: Array, finite: Doubles) -> Array:
        """Values where a line holds an infinity or NaN: as IEEE 754 adds them in any order."""
        rows, columns = np.flatnonzero(self.a.outliers), np.flatnonzero(self.b.outliers)
        result = single.copy()
        for i, j in (
            (rows, np.arange(self.b.outliers.size)),
            (np.arange(self.a.outliers.size), columns),
        ):
            if i.size and j.size:
                result[np.ix_(i, j)] = _special(
                    self.a.raw[i], self.b.raw[:, j], finite[np.ix_(i, j)]
                )
        if self.bias is not None and self.bias.outliers.any():
            raw = self.bias.raw.astype(np.float32)
            result = np.where(np.isfinite(raw), result, result + raw)
        return result


def _bits_of_rows(a: MatrixOperand, last: Exponents) -> float:
    """The fewest bits of a row, of which `last` has the last one of all terms or of a few."""
    return _fewest_bits(a.reach.max(axis=1, initial=0.0), last)


def _bits_of_columns(b: MatrixOperand) -> float:
    """The fewest bits that a few terms of a column take."""
    some = b.middle[:_SAMPLE]
    return _fewest_bits(np.abs(some).max(axis=0, initial=0.0), last_bits(some, 0))


def _fewest_bits(reach: Doubles, last: Exponents) -> float:
    """The fewest bits that a line takes which is not zero; infinity where all are."""
    held = np.asarray(reach > 0)
    if not held.any():
        return np.inf
    return float((np.log2(reach[held]) - last[held]).min())


def _inward(low: Doubles, high: Doubles) -> tuple[Array, Array]:
    """The least and the greatest FP32 number between two limits, both zeros where they meet 0."""
    least, most = low.astype(np.float32), high.astype(np.float32)
    _step(least, least < low, 1)
    _step(most, most > high, -1)
    certain = low == high
    least[(least == 0) & ~certain] = -0.0
    most[(most == 0) & (high >= 0) & ~certain] = 0.0
    for end in (least, most):
        end[certain & (end == 0)] = 0.0
    return least, most


def _step(numbers: Array, chosen: Bools, way: int) -> None:
    """Have the next number up or down where it is chosen; no infinity is chosen in its own way."""
    codes = numbers.view(np.int32)
    outward = codes >> 31  # -1 of negative numbers, whose codes fall
    outward |= 1
    outward *= chosen
    if way > 0:
        codes += outward
    else:
        codes -= outward


def _special(a: Doubles, b: Doubles, finite: Doubles) -> Array:
    """Sums with infinite terms: infinite if all are of one sign, else NaN."""
    signs = [np.where(np.isnan(x), 0.0, np.sign(x)) for x in (a, b)]
    infinite = [np.isinf(x) for x in (a, b)]
    of_a, of_b = signs[0] * infinite[0], signs[1] * infinite[1]
    balance = of_a @ signs[1] + (signs[0] - of_a) @ of_b
    count = np.abs(of_a) @ np.abs(signs[1]) + np.abs(signs[0] - of_a) @ np.abs(of_b)
    nothing = np.abs(of_a) @ (b == 0) + (a == 0) @ np.abs(of_b)
    nan = np.isnan(a).any(axis=1, keepdims=True) | np.isnan(b).any(axis=0, keepdims=True)
    nan |= (nothing > 0) | (np.abs(balance) < count)
    found = np.where(count > 0, np.sign(balance) * np.inf, finite)
    return np.where(nan, np.nan, found).astype(np.float32)
