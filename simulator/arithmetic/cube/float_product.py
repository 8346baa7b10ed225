"""Products of FP16, BF16 and FP32 matrices in FP32: a midpoint in float64 and a bound.

An operand is prepared by line: a line is a row of the left matrix or a column of the right one, the
terms of one sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from simulator.arithmetic.computed import as_fp32, unify_nan
from simulator.arithmetic.cube.product_blocks import ProductBlocks
from simulator.arithmetic.interval import Enclosure, Index, enclosed
from simulator.arithmetic.operation import Array
from simulator.arithmetic.reduction_order import NO_BITS, Exponents, last_bit
from simulator.arithmetic.total_order import Bools, same_code
from simulator.arithmetic.trust import (
    ASSUME_CUBE_HF32,
    ASSUME_CUBE_RNE,
    ASSUME_GRADUAL_UNDERFLOW,
    MATMUL,
    Causes,
    Trust,
    cause_along,
    meeting,
)
from simulator.numbers.formats import BF16, FP16, FP32, FP64, FloatFormat

if TYPE_CHECKING:  # the native executor is loaded when it is first used
    from simulator.arithmetic.native.executor_library import Executor

Doubles = npt.NDArray[np.float64]

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
    for start, stop in zip(edges, edges[1:], strict=False):  # the last one takes the rest
        yield slice(start, stop)


def spans(lines: int, terms: int) -> Iterator[slice]:
    """Cut the lines of an operand into blocks."""
    step = max(1, BLOCK_ELEMS // max(1, terms))
    for start in range(0, lines, step):
        yield slice(start, min(lines, start + step))


_HF32_MAN_BITS: Final = 11
_CLEARLY: Final = 1 + 2.0**-30
"""No rounding of float64 turns an order of numbers that are so far apart, in relation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixOperand:
    """A block of whole lines; infinities and NaN are 0 in `middle`, `radius` and `values`.

    Attributes:
        values: the values computed here.
        middle: of each interval; the same object as `values` where all are exact.
        radius: at least the distance of both ends from it; None where all are exact.
        own_reach: the greatest magnitude; None where that is the values'.
        exact: by line, one code is possible for each element.
        outliers: by line, an element may be infinite or NaN.
        may_be_nan: by line, an element may be NaN; those that are NaN for sure do not count.
        is_nan: by line, an element is NaN for sure.
        cause: by line, of the widest interval; None where all are exact.
        raw: values with infinities and NaN, for lines that are outliers.
        weights: what each element adds to the error of a sum, for one of the other matrix; None:
            not asked for, or not by itself.
        sides: by row, see `_with_weights`; None without weights.
    """

    values: Doubles
    middle: Doubles
    radius: Doubles | None
    own_reach: Doubles | None
    exact: Bools
    outliers: Bools
    may_be_nan: Bools
    is_nan: Bools
    cause: Causes | None
    raw: Doubles
    weights: Doubles | None = None
    sides: npt.NDArray[np.uint8] | None = None

    @property
    def reach(self) -> Doubles:
        """The greatest magnitude."""
        return np.abs(self.values) if self.own_reach is None else self.own_reach


class Scratch:
    """Memory of the sums of one block after the other, for first touch costs as much as a sum."""

    def __init__(self) -> None:
        self._held: dict[str, Doubles] = {}

    def room(self, name: str, shape: tuple[int, ...]) -> Doubles:
        """An array of any content, in the memory of the last one of that name."""
        elems = math.prod(shape)
        held = self._held.get(name)
        if held is None or held.size < elems:
            held = self._held[name] = np.empty(elems)
        return held[:elems].reshape(shape)

    def product(self, name: str, a: Doubles, b: Doubles) -> Doubles:
        """The product of matrices."""
        return np.matmul(a, b, out=self.room(name, (a.shape[0], b.shape[1])))


def operand_of(
    x: Enclosure,
    fmt: FloatFormat,
    axis: int,
    trust: Trust,
    executor: Executor | None = None,
    scratch: Scratch | None = None,
    bound: FloatBound | None = None,
) -> MatrixOperand:
    """Prepare a block.

    Args:
        x: two dimensions, values of `fmt`.
        fmt: FP16, BF16, FP32 or FP64.
        axis: that the terms of a sum lie along.
        trust: ASSUME_CUBE_HF32 rounds FP32; without ASSUME_GRADUAL_UNDERFLOW subnormal elements may
            be zero.
        executor: prepares rows of FP32 with intervals, where it can.
        scratch: the memory of the result.
        bound: rows get weights, where no line is an outlier.
    """
    rounds = fmt is FP32 and ASSUME_CUBE_HF32 in trust.assumed
    if scratch is not None and executor is not None and fmt is FP32 and not rounds:
        found = _natively(executor, x, fmt, trust, scratch, bound)
        if found is not None:
            return found
    room = None if scratch is None else scratch.room("values", x.shape)
    values = _in_float64(x.values, fmt, rounds, room)
    if x.interval is None:
        low = high = values
    else:
        low, high = (_in_float64(end, fmt, rounds) for end in (x.low, x.high))
    if ASSUME_GRADUAL_UNDERFLOW not in trust.assumed:
        low, high = _with_flushed(low, high, 2.0**fmt.emin)
    none = np.zeros(values.shape[1 - axis], np.bool_)
    reach = None if low is high else np.maximum(np.abs(low), np.abs(high))
    raw, strange = values, None
    outliers: Bools = none
    is_nan: Bools = none
    flags: Bools = none
    is_narrow = reach is None and fmt in (BF16, FP16)
    whole = values if reach is None else reach
    if not (_are_codes_finite(x.values, fmt) if is_narrow else _are_finite(whole)):
        reach = np.abs(values) if reach is None else reach
        strange = ~np.isfinite(reach)
        outliers = np.asarray(strange.any(axis=axis))
        is_nan = np.asarray(np.isnan(low).any(axis=axis))
        was_exact = low is high
        high, reach = (np.where(strange, 0.0, part) for part in (high, reach))
        # A finite number may have an infinite end: it stays among the values computed here.
        values = high if was_exact else np.where(np.isfinite(raw), raw, 0.0)
        low = high if was_exact else np.where(strange, 0.0, low)
    exact = MatrixOperand(
        values=values,
        middle=values,
        radius=None,
        own_reach=reach,
        exact=~none,
        outliers=outliers,
        may_be_nan=none,
        is_nan=is_nan,
        cause=None,
        raw=raw,
    )
    if low is high:
        return exact
    middle = (low + high) / 2
    # The factor covers the rounding of the difference.
    radius = np.maximum(high - middle, middle - low) * (1 + 2.0**-51)
    settled, cause = radius == 0, None
    if x.interval is not None:
        settled &= same_code(x.low, x.high)
        widest = radius if strange is None else np.where(strange, np.inf, radius)
        if x.interval.may_be_nan is not None:
            flags = np.asarray(x.interval.may_be_nan.any(axis=axis))
            settled &= ~x.interval.may_be_nan
            widest = np.where(x.interval.may_be_nan, np.inf, widest)
        at = np.where(settled, -1.0, widest).argmax(axis=axis)
        of_lines = np.moveaxis(np.broadcast_to(x.interval.cause, radius.shape), axis, 0)
        is_open = np.moveaxis(~settled, axis, 0)
        cause = cause_along(trust, of_lines, at[None], is_open, 0)[0]
    found = replace(
        exact,
        middle=middle,
        radius=radius,
        exact=np.asarray(settled.all(axis=axis)),
        may_be_nan=flags,
        cause=cause,
    )
    is_plain = strange is None and not flags.any()
    return found if bound is None or not is_plain else _with_weights(found, radius, bound)


def _with_weights(x: MatrixOperand, radius: Doubles, bound: FloatBound) -> MatrixOperand:
    """Rows with weights, and with their sides.

    The error of a sum has two parts: its own, of all magnitudes, and that of the intervals. A side
    is 1 if in all terms of a row the second part is clearly the greater one, 2 if it is clearly the
    lesser, else 0.
    """
    own = x.reach * (bound.growth + bound.slack)
    sides = np.zeros(radius.shape[0], np.uint8)
    sides[(radius * _CLEARLY <= own).all(axis=1)] = 2
    sides[(radius >= own * _CLEARLY).all(axis=1)] = 1
    return replace(x, weights=own + radius * (1 + bound.slack), sides=sides)


def _natively(
    executor: Executor,
    x: Enclosure,
    fmt: FloatFormat,
    trust: Trust,
    scratch: Scratch,
    bound: FloatBound | None,
) -> MatrixOperand | None:
    """Rows with intervals; None without one, or where an element may be infinite or NaN."""
    from simulator.arithmetic.native import product_bounds

    ends = x.interval
    if ends is None or ends.may_be_nan is not None or not x.values.size:
        return None
    is_one = not any(ends.cause.strides)
    names = ("values", "middle", "radius", "reach", *(() if bound is None else ("weights",)))
    found = product_bounds.prepared(
        executor,
        x.values,
        ends.low,
        ends.high,
        None if is_one else ends.cause,
        {name: scratch.room(name, x.shape) for name in names},
        least=0.0 if ASSUME_GRADUAL_UNDERFLOW in trust.assumed else 2.0**fmt.emin,
        growth=0.0 if bound is None else bound.growth + bound.slack,
        factor=0.0 if bound is None else 1 + bound.slack,
        joins_causes=trust.names_choices,
    )
    if found is None:
        return None
    exact = found["exact"]
    none = np.zeros(exact.shape, np.bool_)
    if not is_one:
        cause = found["cause"]
    elif trust.names_choices:
        cause = ends.cause[:, 0] * ~exact
    else:
        cause = ends.cause[:, 0]
    return MatrixOperand(
        values=found["values"],
        middle=found["middle"],
        radius=found["radius"],
        own_reach=found["reach"],
        exact=exact,
        outliers=none,
        may_be_nan=none,
        is_nan=none,
        cause=cause,
        raw=found["values"],
        weights=found.get("weights"),
        sides=found.get("sides"),
    )


def last_bits(numbers: Doubles, axis: int) -> Exponents:
    """By line, the exponent of the least bit set in any finite number; `NO_BITS` for zeros."""
    found: Exponents = last_bit(numbers).min(axis, initial=NO_BITS)
    return found


def _with_flushed(low: Doubles, high: Doubles, least: float) -> tuple[Doubles, Doubles]:
    positive = (low > 0) & (low < least)
    negative = (high < 0) & (high > -least)
    if not (positive.any() or negative.any()):
        return low, high
    return np.where(positive, 0.0, low), np.where(negative, -0.0, high)


def _in_float64(
    values: Array, fmt: FloatFormat, rounds: bool, out: Doubles | None = None
) -> Doubles:
    """Numbers of a format in float64, perhaps in given memory."""
    if values.ndim == 2 and values.T.flags.c_contiguous and not values.flags.c_contiguous:
        return _in_float64(values.T, fmt, rounds).T
    values = np.ascontiguousarray(values)
    if fmt is FP64:
        return values
    if fmt is BF16:
        return _wide_bf16(values)
    single = as_fp32(values, fmt)
    single = _hf32(single) if rounds else single
    if out is None:
        return single.astype(np.float64)
    np.copyto(out, single)
    return out


_PIECE_ELEMS: Final = 1 << 15


def _wide_bf16(values: Array) -> Doubles:
    """The numbers of BF16, which are the upper halves of FP32's, piece by piece in the cache."""
    found = np.empty(values.shape, np.float64)
    codes, flat = values.reshape(-1).view(np.uint16), found.reshape(-1)
    for start in range(0, flat.size, _PIECE_ELEMS):
        piece = codes[start : start + _PIECE_ELEMS].astype(np.uint32)
        piece <<= np.uint32(16)
        flat[start : start + _PIECE_ELEMS] = piece.view(np.float32)
    return found


def _are_codes_finite(values: Array, fmt: FloatFormat) -> bool:
    """True if no number of a format of 16 bits is infinite or NaN."""
    magnitudes = values.view(np.uint16) & np.uint16(fmt.sign_code - 1)
    return fmt.inf_code is not None and int(magnitudes.max(initial=0)) < fmt.inf_code


def _are_finite(values: Doubles) -> bool:
    return bool(np.isfinite(values.max(initial=0.0)) and np.isfinite(values.min(initial=0.0)))


def _hf32(values: Array) -> Array:
    """Round FP32 to 11 mantissa bits, to nearest, ties to even; infinity and NaN stay."""
    dropped = FP32.man_bits - _HF32_MAN_BITS
    codes = values.view(np.uint32)
    half, unit = np.uint32((1 << dropped - 1) - 1), np.uint32(1)
    rounded = codes + half + (codes >> np.uint32(dropped) & unit)
    rounded &= ~np.uint32((1 << dropped) - 1)
    kept: Array = np.where(np.isfinite(values), rounded, codes).view(np.float32)
    return kept


_LARGEST: Final = float(np.finfo(np.float32).max)
_FAR: Final = 2.0**33
"""So many times what underflow adds, no rounding and no underflow turns the sides of a row."""
_LEAST_NORMAL: Final = 2.0**FP32.emin
_PRECISION: Final = FP32.man_bits + 1
_SAMPLE: Final = 32
_FEWER: Final = 8
_MOST_BITS: Final = _PRECISION + 1
"""Of a row and a column together: numbers of more have no exact sums of products."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatBound:
    """The limits of a sum of products in any order.

    Attributes:
        growth: (1 + u)**d - 1, for d operations that a term goes through at most.
        slack: relative, of the float64 arithmetic that computes the bound.
        underflow: absolute: each product and each partial sum may be flushed to zero.
        is_known: a device is supposed to give our values for exact operands.
    """

    growth: float
    slack: float
    underflow: float
    is_known: bool = False

    @staticmethod
    def of(terms: int, fmt: FloatFormat, trust: Trust, *, has_bias: bool) -> FloatBound:
        """The bound for sums of products of two `fmt` numbers, and a bias.

        The product of two numbers of at most 12 bits has 24 and is exact in FP32.
        """
        if MATMUL in trust.correctly_rounded:
            return FloatBound(
                growth=2.0**-_PRECISION, slack=0, underflow=_LEAST_NORMAL, is_known=True
            )
        unit = 2.0**-_PRECISION if ASSUME_CUBE_RNE in trust.assumed else 2.0 ** (1 - _PRECISION)
        rounds_products = fmt is FP32 and ASSUME_CUBE_HF32 not in trust.assumed
        depth = terms - 1 + has_bias + rounds_products
        growth = float(np.expm1(depth * np.log1p(unit)) * (1 + 2.0**-40))
        return FloatBound(
            growth=growth,
            slack=(terms + 8) * 2.0**-51,
            underflow=2 * (terms + 1) * _LEAST_NORMAL * (1 + growth),
        )


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

        It has no exact line and no sum that may overflow, and each row has a side.
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
        elif self._bound(result, index, (product, middle, total, None, None), None, None):
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
        is_open = self._bound(
            result, index, (*sums, of.get(id(a)), of.get(id(b))), exact, causes
        )
        if is_open is None:
            return False
        if is_open:
            own = np.broadcast_to(np.uint16(self.cause), sums[0].shape)
            result.open(index, own if causes == (None, None) else None)
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
        limit = np.ldexp(1.0, np.minimum(last + _PRECISION, 1000).astype(np.int32))
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
