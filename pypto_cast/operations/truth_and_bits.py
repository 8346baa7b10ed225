"""pypto's comparisons, logic and operations on bits, with upstream's signatures."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import numpy as np

from pypto_cast.cast.api import cast
from pypto_cast.dtypes.data_types import CastMode, DataType
from pypto_cast.operations.elementwise_functions import selected_bytes
from pypto_cast.operations.elementwise_plan import either, elementwise, with_number
from pypto_cast.operations.lowering import check_operand
from pypto_cast.operations.operation_rows import (
    BF16_IN_FP32,
    BYTES,
    COPIED,
    FLOATS,
    INTEGERS,
    ROWS,
    OperationRow,
    everywhere,
)
from pypto_cast.operations.scalar_operands import integer, real
from pypto_cast.options.releases import RELEASE_NAMES
from pypto_cast.recording import recording
from pypto_cast.recording.recording import trust
from pypto_cast.tensors.operators import ElementLike
from pypto_cast.tensors.tensor import Tensor
from simulator.arithmetic import Enclosure, Fidelity, Interval
from simulator.arithmetic.trust import own_cause
from simulator.numbers import float_environment
from simulator.numbers.formats import Format, IntFormat
from tiling.grid import Shape
from tiling.ub import round_up


def _negating(tile: Shape, fmt: Format) -> int:
    if isinstance(fmt, IntFormat) and fmt.bits > 1:
        return 2048 * fmt.bits // 8
    return round_up(4096 + 4096 * selected_bytes(fmt) + 256 + 8, 32)


def _one_tile(tile: Shape, fmt: Format) -> int:
    return math.prod(tile[:-1]) * round_up(tile[-1] * fmt.bits // 8, 32)


_comparison = partial(
    OperationRow,
    dtypes=everywhere(DataType.DT_FP32, DataType.DT_FP16, ascend_950=(DataType.DT_INT16,)),
    takes={"0.2.0": (DataType.DT_BF16,)},
    cast_to_fp32={"0.2.0": (DataType.DT_BF16,)},  # vector/compare.cpp:33
    opcodes={"TT": "CMP", "TS": "CMPS"},
    scratch=lambda tile, fmt: round_up(4096 // fmt.bits, 32) + 3 * 4096 + 64,
)
_bits = partial(OperationRow, dtypes=everywhere(*INTEGERS), example="pypto.{name}(i, j)")
_SHIFTED: Final = (DataType.DT_INT16, DataType.DT_UINT16)
_shift = partial(
    _bits,
    dtypes=everywhere(*_SHIFTED, ascend_950=tuple(d for d in INTEGERS if d not in _SHIFTED)),
    refuses={  # vector/bitwise_shift.cpp:68
        "0.2.0": tuple(each for each in INTEGERS if each is not DataType.DT_INT16)
    },
    scratch=_one_tile,
)


@_comparison()
def eq(input: Tensor, other: Tensor | float | ElementLike) -> Tensor:
    """BOOL: true where equal; false for NaN."""
    return with_number("eq", input, other, real)


@_comparison()
def ne(input: Tensor, other: Tensor | float | ElementLike) -> Tensor:
    """BOOL: true where less or greater; false for NaN, by the vendor's tables."""
    return with_number("ne", input, other, real)


@_comparison()
def lt(input: Tensor, other: Tensor | float | ElementLike) -> Tensor:
    """BOOL: true where less."""
    return with_number("lt", input, other, real)


@_comparison()
def le(input: Tensor, other: Tensor | float | ElementLike) -> Tensor:
    """BOOL: true where less or equal."""
    return with_number("le", input, other, real)


@_comparison()
def gt(input: Tensor, other: Tensor | float | ElementLike) -> Tensor:
    """BOOL: true where greater."""
    return with_number("gt", input, other, real)


greater = gt
ROWS["greater"] = ROWS["gt"]


@_comparison()
def ge(input: Tensor, other: Tensor | float | ElementLike) -> Tensor:
    """BOOL: true where greater or equal."""
    return with_number("ge", input, other, real)


@OperationRow(
    opcodes={"T": "LOGICALNOT"},
    dtypes=everywhere(*COPIED, DataType.DT_BOOL),
    refuses={"0.2.0": tuple(each for each in INTEGERS if each not in BYTES)},  # vector/math.cpp:80
    run_in_fp32=BF16_IN_FP32,
    scratch=_negating,
    is_method=True,
)
def logical_not(input: Tensor) -> Tensor:
    """BOOL: true where zero; NaN is not."""
    return elementwise("logical_not", input)


@OperationRow(
    opcodes={"TT": "LOGICALAND"},
    dtypes=everywhere(*FLOATS, *INTEGERS[:4], DataType.DT_BOOL),
    run_in_fp32=BF16_IN_FP32,
    scratch=lambda tile, fmt: 32 + 4 * 256 + 128 + 64,
)
def logical_and(input: Tensor, other: Tensor) -> Tensor:
    """BOOL: true where both differ from zero; the dtypes may differ, and NaN is true."""
    tensors = [check_operand("logical_and", x) for x in (input, other)]
    if tensors[0].dtype is not tensors[1].dtype:
        wide = (
            x if x.dtype in (*FLOATS, *BYTES, DataType.DT_BOOL) else cast(x, DataType.DT_FP32)
            for x in tensors  # release 0.2.0 negates no other integers
        )
        tensors = [logical_not(logical_not(x)) for x in wide]
    return elementwise("logical_and", *tensors)


_test = partial(OperationRow, dtypes=everywhere(*FLOATS))


def is_number(x: Tensor) -> Tensor:
    """BOOL: true of all but NaN, of a tensor of FP32, FP16, or BF16, which is cast.

    Upstream compares an element with itself; with the least number a range that has no NaN is one.
    """
    wide = cast(x, DataType.DT_FP32) if x.dtype is DataType.DT_BF16 else x
    return ge(wide, -math.inf)


@_test(
    parts=("ge", "logical_not"),
    opcodes={"T": "ISNAN"},
    lacked_by=("0.2.0",),
)
def isnan(self: Tensor) -> Tensor:
    """BOOL: true of NaN alone.

    Returns:
        A BOOL tensor of the operand's shape.
    """
    return logical_not(is_number(check_operand("isnan", self)))


@_test(
    parts=("abs", "lt"),
    dtypes=everywhere(*COPIED),
    opcodes={"T": "ISFINITE"},
    fidelity=Fidelity.UNKNOWN,
    remark="of FP32 from 65520 on, where upstream's page and source disagree; else exact",
)
def isfinite(self: Tensor) -> Tensor:
    """BOOL: false of infinities and NaN, true of all else; of integers true.

    Upstream casts FP32 to FP16 first, where numbers from 65520 on are infinite, while its page says
    that they are finite: they have the page's value and are undecided.

    Returns:
        A BOOL tensor of the operand's shape.
    """
    x = check_operand("isfinite", self)
    if x.dtype not in FLOATS:
        return _all_true(x)
    wide = cast(x, DataType.DT_FP32) if x.dtype is DataType.DT_BF16 else x
    documented = lt(elementwise("abs", wide), math.inf)
    if x.dtype is not DataType.DT_FP32:
        return documented
    short = cast(wide, DataType.DT_FP16, CastMode.CAST_RINT)
    return _either_of("isfinite", documented, lt(elementwise("abs", short), math.inf))


def _all_true(like: Tensor) -> Tensor:
    shape, valid = tuple(map(int, like.shape)), tuple(like.valid_shape)
    held = like.enclosure() if recording.executes() and 0 not in valid else None
    data = None if held is None else Enclosure(values=np.ones(valid, np.bool_))
    return Tensor._from_result(shape, DataType.DT_BOOL, data=data, valid=valid)


@float_environment.quiet()
def _may_be_nan(held: Enclosure) -> bool:
    flags = None if held.interval is None else held.interval.may_be_nan
    ends = {id(each): each for each in (held.low, held.high)}.values()
    return bool(flags is not None and flags.any()) or any((x != x).any() for x in ends)


def _either_of(name: str, taken: Tensor, other: Tensor) -> Tensor:
    """A BOOL tensor that is open where two readings of the sources differ."""
    held, against = (x.enclosure() if recording.executes() else None for x in (taken, other))
    if held is None or against is None:
        return taken
    ends = [
        (x.interval.low, x.interval.high) if x.interval else (x.values, x.values)
        for x in (held, against)
    ]
    low, high = np.logical_and(ends[0][0], ends[1][0]), np.logical_or(ends[0][1], ends[1][1])
    if np.array_equal(low, high):
        return taken
    cause = np.full(low.shape, own_cause(recording.causes().index_here(name), trust(name)))
    interval = Interval(low=low, high=high, may_be_nan=None, cause=cause.astype(np.uint16))
    data = Enclosure(values=held.values, interval=interval)
    return Tensor._from_result(
        tuple(map(int, taken.shape)),
        DataType.DT_BOOL,
        data=data,
        valid=tuple(taken.valid_shape),
        uninitialized=taken.uninitialized(),
    )


@_test(
    dtypes=everywhere(*FLOATS, *INTEGERS[:3]),
    opcodes={"T": "SIGNBIT"},
    remark="NaN is open between page and source",
    is_method=True,
)
def signbit(a: Tensor) -> Tensor:
    """BOOL: true of negative elements and -0; false of NaN, as upstream's page says.

    Upstream takes the first bit, which NaN may have too: it has the page's value, undecided.
    """
    x = check_operand("signbit", a)
    found = elementwise("signbit", x)
    held = x.enclosure() if x.dtype in FLOATS and recording.executes() else None
    if held is None or not _may_be_nan(held):
        return found
    return _either_of("signbit", found, logical_not(logical_and(logical_not(found), is_number(x))))


@_bits(opcodes={"TT": "BITWISEAND", "TS": "BITWISEANDS"})
def bitwise_and(self: Tensor, other: Tensor | int) -> Tensor:
    """The bits that both have."""
    return with_number("bitwise_and", self, other, integer)


@_bits(opcodes={"TT": "BITWISEOR", "TS": "BITWISEORS"})
def bitwise_or(input1: Tensor, input2: Tensor | int) -> Tensor:
    """The bits that either has."""
    return with_number("bitwise_or", input1, input2, integer)


@_bits(scratch=_one_tile, opcodes={"TT": "BITWISEXOR", "TS": "BITWISEXORS"})
def bitwise_xor(first: Tensor, second: Tensor | int) -> Tensor:
    """The bits that one of both has."""
    return with_number("bitwise_xor", first, second, integer)


@_bits(
    dtypes=everywhere(*INTEGERS, DataType.DT_BOOL),
    opcodes={"T": "BITWISENOT"},
    composed_by=RELEASE_NAMES,
    example="pypto.bitwise_not(i)",
)
def bitwise_not(self: Tensor) -> Tensor:
    """The other bits; of BOOL the other truth."""
    if isinstance(self, Tensor) and self.dtype is DataType.DT_BOOL:
        return logical_not(self)
    return elementwise("bitwise_not", self)


@_shift(
    opcodes={
        "TT": "BITWISELEFTSHIFT",
        "TS": "BITWISELEFTSHIFTS",
        "ST": "SBITWISELEFTSHIFT",
    }
)
def bitwise_left_shift(input: Tensor | int, other: Tensor | int) -> Tensor:
    """Shift INT16 or UINT16 left; a count below 0 or above 16 gives 0.

    Args:
        other: the counts.
    """
    return either("bitwise_left_shift", input, other, integer)


@_shift(
    opcodes={
        "TT": "BITWISERIGHTSHIFT",
        "TS": "BITWISERIGHTSHIFTS",
        "ST": "SBITWISERIGHTSHIFT",
    }
)
def bitwise_right_shift(input: Tensor | int, other: Tensor | int) -> Tensor:
    """Shift INT16 or UINT16 right, INT16 with its sign; a count below 0 or above 16 counts 16.

    Args:
        other: the counts.
    """
    return either("bitwise_right_shift", input, other, integer)
