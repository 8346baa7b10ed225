"""Ways in which a call of an operation may be carried out otherwise: one row each.

Every way takes the call of a site and gives the tensor that stands for its result. A way that a
call does not have raises TypeError or ValueError, as the operation itself does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ascend_kernels.matrix import MATRIX, UnsupportedCastError
from pypto_cast.cast.api import cast
from pypto_cast.dtypes.data_types import CastMode, DataType, SaturationMode, numpy_dtype
from pypto_cast.operations.lowering import is_widened
from pypto_cast.options.context import current
from pypto_cast.recording.suppositions import Alternative, Site, SiteCall
from pypto_cast.report.text_format import printable
from pypto_cast.tensors.tensor import Tensor
from simulator.arithmetic import Enclosure
from simulator.arithmetic.interval import Interval
from simulator.arithmetic.total_order import is_nan
from simulator.numbers import float_environment
from simulator.numbers.formats import FloatFormat, Format

_Array = npt.NDArray[Any]
_Move = Callable[[_Array], _Array]
_FLOATS: Final = (DataType.DT_FP16, DataType.DT_BF16, DataType.DT_FP32)
_UNSIGNED: Final[Mapping[DataType, DataType]] = {
    DataType.DT_INT8: DataType.DT_UINT8,
    DataType.DT_INT16: DataType.DT_UINT16,
    DataType.DT_INT32: DataType.DT_UINT32,
}
_OTHER_SIGN: Final = {**_UNSIGNED, **{u: s for s, u in _UNSIGNED.items()}}
_SATMODES: Final = (
    (SaturationMode.OFF, "no saturation"),
    (SaturationMode.ON, "saturation"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way to carry out the calls of a site.

    Attributes:
        text: in words; the place of the site is said after it.
        alternative: gives the result.
    """

    text: str
    alternative: Alternative


@dataclass(frozen=True, slots=True, kw_only=True)
class WayRow:
    """A kind of ways.

    Attributes:
        kind: its name.
        exclusive: two of them cannot hold of one site at once.
        ways: those that the calls of a site have, by the first of them and its result.
    """

    kind: str
    exclusive: bool = False
    ways: Callable[[SiteCall, Tensor], Iterator[Way]]


def place_of(site: Site) -> str:
    """The place of a site in words: `at kernel.py:5`."""
    return f"at {printable(Path(site.place[0]).name)}:{site.place[1]}"


# --- Casts ---------------------------------------------------------------------------------------


def _modes(call: SiteCall, result: Tensor) -> Iterator[Way]:
    rule = _rule(call, result)
    if rule is None:
        return
    own = call.arguments.arguments["mode"].round_mode or rule.default
    for mode in rule.modes:
        if mode is not own:
            yield Way(text=f"CAST_{mode}", alternative=_given(mode=CastMode[f"CAST_{mode}"]))


def _saturations(call: SiteCall, result: Tensor) -> Iterator[Way]:
    rule = _rule(call, result)
    if rule is None or not rule.off:
        return
    for satmode, text in _SATMODES:
        if call.arguments.arguments["satmode"] is not satmode:
            yield Way(text=text, alternative=_given(satmode=satmode))


def _rule(call: SiteCall, result: Tensor) -> Any:
    """The row of the matrix of a cast; None of another operation, or of a pair without one."""
    src = call.site.dtypes[0] if call.site.dtypes else None
    if call.site.operation != "cast" or src is None or None in (src.format, result.dtype.format):
        return None
    pair = src.number_format, result.dtype.number_format
    return MATRIX[current().chip.isa].get(pair)


def _given(**changed: Any) -> Alternative:
    def again(call: SiteCall, /) -> Any:
        return call.plainly(**changed)

    return again


def _through(call: SiteCall, result: Tensor) -> Iterator[Way]:
    rules = MATRIX[current().chip.isa]
    if _rule(call, result) is None:
        return
    src, dst = call.site.dtypes[0], result.dtype
    for via in DataType:
        if via in (src, dst) or via.format is None:
            continue
        steps = (src.number_format, via.number_format), (via.number_format, dst.number_format)
        if all(step in rules for step in steps):
            yield Way(
                text=f"rounding through {via.format} first", alternative=partial(_rounded_by, via)
            )


def _rounded_by(via: DataType, call: SiteCall, /) -> Any:
    return call.plainly(input=cast(call.arguments.arguments["input"], via))


# --- Precision -----------------------------------------------------------------------------------


def _lower(call: SiteCall, result: Tensor) -> Iterator[Way]:
    if result.dtype not in _FLOATS or call.site.operation == "cast":
        return
    if result.dtype is not DataType.DT_FP32 and is_widened(call.site.operation, result.dtype):
        yield Way(
            text=f"the result of {call.site.operation} rounded to {result.dtype.format}",
            alternative=_without_hidden,
        )
    for shorter in (DataType.DT_FP16, DataType.DT_BF16):
        if result.dtype is DataType.DT_FP32:
            yield Way(
                text=f"{call.site.operation} in {shorter.format}",
                alternative=partial(_in_dtype, shorter),
            )
            yield Way(
                text=f"the result of {call.site.operation} kept in {shorter.format}",
                alternative=partial(_rounded_to, shorter),
            )


def _in_dtype(dtype: DataType, call: SiteCall, /) -> Any:
    """The operation on its float operands and result rounded to a dtype."""
    operands = {
        name: _there_and_back(x, dtype) if x.dtype is DataType.DT_FP32 else x
        for name, x in call.operands().items()
    }
    return _there_and_back(call.plainly(**operands), dtype)


def _rounded_to(dtype: DataType, call: SiteCall, /) -> Any:
    return _there_and_back(call.plainly(), dtype)


def _without_hidden(call: SiteCall, /) -> Any:
    """The result as its dtype holds it, without the FP32 values that the next operation takes."""
    plain = call.plainly()
    held = plain.enclosure()
    if held is None:
        raise ValueError("a result without elements holds none")
    return _holding(plain, held)


def _there_and_back(x: Tensor, dtype: DataType) -> Tensor:
    return cast(cast(x, dtype, CastMode.CAST_RINT), x.dtype, CastMode.CAST_RINT)


def _higher(call: SiteCall, result: Tensor) -> Iterator[Way]:
    operands = call.operands()
    for name, x in operands.items():
        wide = call.sources.get(name)
        if wide is not None and wide.dtype is DataType.DT_FP32 and x.dtype in _FLOATS:
            which = "the operand" if len(operands) == 1 else name
            yield Way(
                text=f"{which} of {call.site.operation} kept in FP32",
                alternative=partial(_kept_wide, name),
            )


def _kept_wide(name: str, call: SiteCall, /) -> Any:
    """The operation on the FP32 values that its operand was cast from, rounded once at the end."""
    wide = call.sources.get(name)
    if wide is None:
        raise ValueError("no cast gave this operand")
    narrow = call.arguments.arguments[name].dtype
    if call.site.operation == "cast":
        if call.arguments.arguments["dtype"] is wide.dtype:
            return wide
        try:
            return call.plainly(**{name: wide})
        except UnsupportedCastError:  # rounded to odd between, it is rounded once for all that
            return call.plainly(**{name: cast(wide, narrow, CastMode.CAST_ODD)})
    others = {
        other: cast(x, wide.dtype)
        for other, x in call.operands().items()
        if other != name and x.dtype is narrow
    }
    return cast(call.plainly(**others, **{name: wide}), narrow, CastMode.CAST_RINT)


# --- Sums ----------------------------------------------------------------------------------------

_MOST_TERMS: Final = 1 << 22
"""Products of a matmul that are held at once."""


def _one_by_one(x: _Array) -> _Array:
    total = x[..., 0].copy()
    for k in range(1, x.shape[-1]):
        total = total + x[..., k]
    return total


def _backwards(x: _Array) -> _Array:
    return _one_by_one(x[..., ::-1])


def _pairwise(x: _Array) -> _Array:
    """Neighbours first, then neighbouring sums; an odd one waits its turn."""
    while x.shape[-1] > 1:
        even = x.shape[-1] // 2 * 2
        joined = x[..., 0:even:2] + x[..., 1:even:2]
        x = np.concatenate((joined, x[..., even:]), -1)
    return x[..., 0]


def _halves(x: _Array) -> _Array:
    """The second half onto the first, again and again."""
    while x.shape[-1] > 1:
        half = (x.shape[-1] + 1) // 2
        first = x[..., :half].copy()
        first[..., : x.shape[-1] - half] += x[..., half:]
        x = first
    return x[..., 0]


def _rounded_once(x: _Array) -> _Array:
    """Float64 holds sums of FP32 values of like size exactly enough to round them once."""
    return np.asarray(x.astype(np.float64).sum(-1)).astype(x.dtype)


_ORDERS: Final[tuple[tuple[str, _Move, npt.DTypeLike | None], ...]] = (
    ("one after the other", _one_by_one, None),
    ("one after the other from the end", _backwards, None),
    ("by pairs of neighbours", _pairwise, None),
    ("by halves", _halves, None),
    ("in float64, rounded once", _rounded_once, None),
    ("in FP16, one after the other", _one_by_one, np.float16),
    ("in BF16, one after the other", _one_by_one, numpy_dtype(DataType.DT_BF16)),
)
"""Words, the sum of the last axis, and the dtype that it is summed in; None: the operand's own.
All rise with each element, as rounded sums do: so an interval's ends give the ends of the sum."""


def _orders(call: SiteCall, result: Tensor) -> Iterator[Way]:
    ordered = _ORDERED.get(call.site.operation)
    if ordered is None:
        return
    for text, order, within in _ORDERS:
        yield Way(text=f"sums {text}", alternative=partial(ordered, order, within))


@float_environment.quiet()
def _ordered(order: _Move, within: npt.DTypeLike | None, call: SiteCall, /) -> Any:
    (operand,) = call.operands().values()
    plain = call.plainly()
    held = operand.enclosure()
    if held is None or operand.dtype.number_format.dtype.kind != "f":
        raise ValueError("only sums of numbers have an order")
    axes = [k for k, (a, b) in enumerate(zip(held.shape, plain.shape, strict=False)) if a != b]
    if len(axes) != 1 or len(held.shape) != len(plain.shape):
        raise ValueError("only sums that keep the axis are tried")

    def total(x: _Array) -> _Array:
        rows = np.moveaxis(x, axes[0], -1).astype(within or x.dtype)
        return np.expand_dims(order(rows).astype(x.dtype), axes[0])

    return _holding(
        plain, _by_ends(held, total, lambda nan: np.asarray(nan.any(axes[0], keepdims=True)))
    )


@float_environment.quiet()
def _ordered_products(order: _Move, within: npt.DTypeLike | None, call: SiteCall, /) -> Any:
    """A product of matrices whose terms are FP32 numbers, summed in an order."""
    given = call.arguments.arguments
    plain = call.plainly()
    a, b = (_terms(given[name]) for name in ("input", "mat2"))
    a = np.swapaxes(a, -1, -2) if given["a_trans"] else a
    b = b if given["b_trans"] else np.swapaxes(b, -1, -2)
    if given["extend_params"]:
        raise ValueError("only products without a bias and a scale are tried")
    if math.prod(plain.shape) * a.shape[-1] > _MOST_TERMS:
        raise ValueError(f"a product of more than {_MOST_TERMS:,} terms is not summed otherwise")
    terms = a[..., :, None, :] * b[..., None, :, :]
    total = order(terms.astype(within or terms.dtype)).astype(np.float32)
    if total.shape != tuple(plain.shape):
        raise ValueError("only whole matrices are tried")
    summed = Tensor._from_result(
        total.shape, DataType.DT_FP32, plain.name, Enclosure(values=total), patches=plain.patches()
    )
    is_wide = plain.dtype is DataType.DT_FP32
    return summed if is_wide else cast(summed, plain.dtype, CastMode.CAST_RINT)


def _terms(x: Tensor) -> _Array:
    """The elements of a matrix as FP32.

    Raises:
        ValueError: no floats, or some that are open: products do not rise with their factors.
    """
    held = x.enclosure()
    if held is None or held.interval is not None or x.dtype not in _FLOATS:
        raise ValueError("only products of known floats are summed otherwise")
    return held.values.astype(np.float32)


_ORDERED: Final[Mapping[str, Callable[..., Any]]] = {
    "sum": _ordered,
    "matmul": _ordered_products,
}
"""By operation that sums: an alternative of an order and the dtype that it sums in."""


# --- Numbers -------------------------------------------------------------------------------------


def _flushed(x: _Array, fmt: Format) -> _Array:
    """Subnormal numbers become zeros of their sign."""
    if not isinstance(fmt, FloatFormat):
        return x
    least = np.ldexp(1.0, fmt.min_quantum + fmt.man_bits)
    wide = x.astype(np.float64)
    return np.where(np.abs(wide) < least, np.copysign(0.0, wide), wide).astype(x.dtype)


def _without_nan(x: _Array, fmt: Format) -> _Array:
    return np.where(is_nan(x, fmt), np.zeros((), x.dtype), x)


def _mapped_by(
    change: Callable[[_Array, Format], _Array], operands: bool, call: SiteCall, /
) -> Any:
    """The operation with its float results changed, and its operands where that is asked."""

    def by_ends(held: Enclosure, fmt: Format) -> Enclosure:
        return _by_ends(held, lambda part: change(part, fmt), lambda nan: nan)

    @float_environment.quiet()
    def changed(x: Any) -> Any:
        is_one = isinstance(x, Tensor) and x.dtype in _FLOATS and x.enclosure() is not None
        return _changed(x, by_ends) if is_one else x

    given = {name: changed(x) for name, x in call.operands().items()} if operands else {}
    return changed(call.plainly(**given))


EVERYWHERE: Final = (
    Way(
        text="subnormal results flushed to zero everywhere",
        alternative=partial(_mapped_by, _flushed, False),
    ),
    Way(
        text="subnormal operands and results flushed to zero everywhere",
        alternative=partial(_mapped_by, _flushed, True),
    ),
)
"""Ways of all sites at once."""


def _nans(call: SiteCall, result: Tensor) -> Iterator[Way]:
    if result.dtype in _FLOATS:
        yield Way(
            text=f"0 for NaN results of {call.site.operation}",
            alternative=partial(_mapped_by, _without_nan, False),
        )


def _signs(call: SiteCall, result: Tensor) -> Iterator[Way]:
    for name, x in call.operands().items():
        other = _OTHER_SIGN.get(x.dtype)
        if other is not None:
            yield Way(
                text=f"{name} of {call.site.operation} read as {other.format}",
                alternative=partial(_read_as, name, other),
            )


def _read_as(name: str, dtype: DataType, call: SiteCall, /) -> Any:
    x = call.arguments.arguments[name]
    held = x.enclosure()
    if held is None or held.interval is not None:
        raise ValueError("only known codes are read otherwise")
    data = Enclosure(values=held.values.view(numpy_dtype(dtype)))
    codes = Tensor._from_result(tuple(map(int, x.shape)), dtype, x.name, data)
    return call.plainly(**{name: codes})


# --- Places --------------------------------------------------------------------------------------


def _transposed(x: _Array) -> _Array:
    """Memory that holds the last two axes in the other order, read as this shape."""
    return np.swapaxes(x, -1, -2).reshape(x.shape)


def _half_swapped(x: _Array) -> _Array:
    return np.roll(x, x.shape[-1] // 2, -1)


def _interleaved(x: _Array) -> _Array:
    half = math.ceil(x.shape[-1] / 2)
    order = np.argsort(np.r_[np.arange(half) * 2, np.arange(x.shape[-1] - half) * 2 + 1])
    return x[..., order]


def _deinterleaved(x: _Array) -> _Array:
    return np.concatenate((x[..., 0::2], x[..., 1::2]), -1)


_PERMUTATIONS: Final[tuple[tuple[str, int, _Move], ...]] = (
    ("transposed", 2, _transposed),
    ("with its last axis reversed", 1, lambda x: x[..., ::-1]),
    ("with its rows reversed", 2, lambda x: x[..., ::-1, :]),
    ("with its halves exchanged", 1, _half_swapped),
    ("with its halves interleaved", 1, _interleaved),
    ("with its even elements before its odd ones", 1, _deinterleaved),
)
"""Words, the axes that it needs, and the move."""


def _permutations(call: SiteCall, result: Tensor) -> Iterator[Way]:
    operands = call.operands()
    for name, x in operands.items():
        for text, axes, move in _PERMUTATIONS:
            if len(x.shape) >= axes:
                yield Way(
                    text=f"{name} of {call.site.operation} {text}",
                    alternative=partial(_moved, name, move),
                )
    names = list(operands)
    if len(names) == 2 and operands[names[0]].dtype is operands[names[1]].dtype:
        yield Way(
            text=f"the operands of {call.site.operation} exchanged",
            alternative=partial(_exchanged, names[0], names[1]),
        )


def _moved(name: str, move: _Move, call: SiteCall, /) -> Any:
    def moved(held: Enclosure, fmt: Format) -> Enclosure:
        return held.map(lambda array: np.ascontiguousarray(move(np.ascontiguousarray(array))))

    return call.plainly(**{name: _changed(call.arguments.arguments[name], moved)})


def _exchanged(first: str, second: str, call: SiteCall, /) -> Any:
    given = call.arguments.arguments
    return call.plainly(**{first: given[second], second: given[first]})


# --- The table -----------------------------------------------------------------------------------

WAYS: Final = (
    WayRow(kind="round mode", exclusive=True, ways=_modes),
    WayRow(kind="saturation", exclusive=True, ways=_saturations),
    WayRow(kind="double rounding", exclusive=True, ways=_through),
    WayRow(kind="lower precision", exclusive=True, ways=_lower),
    WayRow(kind="higher precision", ways=_higher),
    WayRow(kind="order of sums", exclusive=True, ways=_orders),
    WayRow(kind="NaN", ways=_nans),
    WayRow(kind="sign", ways=_signs),
    WayRow(kind="permutation", ways=_permutations),
)
"""The ways of one site, in the order in which they are tried."""


def _by_ends(x: Enclosure, change: _Move, nans: _Move) -> Enclosure:
    """A rising function of values and ends; causes are lost."""
    values = change(x.values)
    if x.interval is None:
        return Enclosure(values=values)
    nan = x.interval.may_be_nan
    return Enclosure(
        values=values,
        interval=Interval(
            low=change(x.interval.low),
            high=change(x.interval.high),
            may_be_nan=None if nan is None else nans(nan),
            cause=np.zeros(values.shape, x.interval.cause.dtype),
        ),
    )


def _changed(x: Tensor, change: Callable[[Enclosure, Format], Enclosure]) -> Tensor:
    """A tensor with its elements changed, and the FP32 values that they were rounded from."""
    held, hidden = x.enclosure(), x.hidden()
    if held is None:
        raise ValueError("a tensor without elements has none to change")
    wide = None if hidden is None else change(hidden, DataType.DT_FP32.number_format)
    return _holding(x, change(held, x.dtype.number_format), wide)


def _holding(x: Tensor, held: Enclosure, hidden: Enclosure | None = None) -> Tensor:
    """A tensor as another one, which holds other elements and these hidden ones."""
    return Tensor._from_result(
        tuple(map(int, x.shape)),
        x.dtype,
        x.name,
        held,
        valid=tuple(map(int, x.valid_shape)),
        patches=x.patches(),
        hidden=hidden,
    )
