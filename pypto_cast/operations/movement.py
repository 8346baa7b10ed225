"""Operations that move elements: the same bits and intervals elsewhere.

A hidden FP32 value ends here: what is moved is the 16-bit tensor. Sources: upstream pypto,
framework/src/interface/operation/vector/{tensor_transformation,permute,unary}.cpp.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.dtypes.data_types import DataType
from pypto_cast.error import FeError, ParserError, error_of
from pypto_cast.operations.lowering import (
    axis_of,
    check_copied_rows,
    check_memory_of,
    check_operand,
    check_repeated,
    check_tensor,
    held_by,
    same_dtype,
    tile_of,
)
from pypto_cast.operations.operation_rows import COPIED, OperationRow, everywhere, on_950
from pypto_cast.options import context as options
from pypto_cast.recording import recording
from pypto_cast.recording.buffers import slices
from pypto_cast.recording.recording import trust
from pypto_cast.tensors.indexing import ints
from pypto_cast.tensors.symbolic import RuntimeScalar
from pypto_cast.tensors.tensor import Tensor
from simulator.arithmetic import Enclosure, Interval, join_arrays
from simulator.arithmetic.interval import exactly, permuted, unknown
from simulator.numbers.formats import Format
from tiling.grid import Shape
from tiling.plan import ShapeError, TileShapeError, check_shape
from tiling.ub import ElementBits, round_up

_moving = partial(OperationRow, remark="bits are copied")
_SMALL_FLOATS: Final = (
    *(DataType.DT_FP8E4M3, DataType.DT_FP8E5M2, DataType.DT_FP8E8M0),
    DataType.DT_HF8,
)
_Array = npt.NDArray[Any]
_SWAPPED_IN_4D: Final = ((0, 2), (1, 2), (1, 3), (2, 3))


@recording.replayable
@_moving(example="pypto.reshape(x, [3, 2])", opcodes={"T": "RESHAPE"})
def reshape(
    input: Tensor,
    shape: Sequence[int],
    *,
    valid_shape: Sequence[int] | None = None,
    inplace: bool = False,
) -> Tensor:
    """Give the elements another shape, in row-major order of the whole shape.

    Args:
        input: any dtype.
        shape: plain ints, one of which may be -1.
        valid_shape: the part that holds data; all of it unless given. As many elements as the
            input holds are those, in their order.
        inplace: in a kernel the result is the same memory: what is written to either, both have,
            and outputs get it. The shape may depend on a loop or a dynamic dimension. A view has no
            memory of its own: its elements are copied.

    Raises:
        TypeError: no ints; or, not in place, one that depends on a loop or a dynamic dimension, as
            upstream says.
        ShapeError: another number of elements.
        ValueError: a result with elements that the input does not hold, or a valid shape in place.
    """
    if not isinstance(inplace, bool):
        raise TypeError(f"reshape: inplace must be True or False, not {inplace!r}")
    if inplace and valid_shape is not None:
        text = "Reshape(Inplace=true) is not supported for tensors derived from dynamic view"
        raise error_of(FeError, ValueError, f"{text}, as a valid_shape is; leave one out")
    entries = _entries(shape, inplace=inplace)
    x = check_tensor("reshape", input, in_gm=inplace)
    before, held = tuple(map(int, x.shape)), tuple(x.valid_shape)
    after = _reshaped(before, entries)
    if inplace and (seen := x.window(after)) is not None:
        return seen
    valid = after if valid_shape is None else ints("valid_shape", valid_shape, len(after))
    if any(v > s for v, s in zip(valid, after, strict=True)):
        raise ValueError(f"reshape: valid_shape {list(valid)} exceeds {list(after)}")
    if before == after and held == valid:  # upstream drops it, so a hidden FP32 value goes on
        data, uninitialized = _held(x), x.uninitialized()
        return Tensor._from_result(
            after, x.dtype, data=data, valid=valid, hidden=x.hidden(), uninitialized=uninitialized
        )
    if math.prod(held) == math.prod(valid):
        return moved(x, after, valid, lambda array: array.reshape(valid))

    def spread(array: _Array, rest: object) -> _Array:
        whole = np.full(before, rest, array.dtype)
        whole[slices((0,) * len(before), held)] = array
        return whole.reshape(after)[slices((0,) * len(after), valid)]

    unknown = spread(np.zeros(held, np.bool_), True)
    if unknown.any() and recording.current() is None:
        raise ValueError(
            f"reshape: of {list(before)} only {list(held)} hold data; the valid_shape "
            f"{list(valid)} of {list(after)} takes others too"
        )
    spread_out = moved(x, after, valid, lambda array: spread(array, 0))
    return spread_out.partly_uninitialized(unknown)


def _entries(shape: object, *, inplace: bool) -> list[int]:
    if not isinstance(shape, (list, tuple)) or not shape:
        raise TypeError(f"reshape takes a shape of ints, not {shape!r}")
    known = [int(s) if inplace and isinstance(s, RuntimeScalar) else s for s in shape]
    if any(isinstance(s, (RuntimeScalar, bool)) or not hasattr(s, "__index__") for s in known):
        text = f"reshape() requires integer shape when using non-inplace reshape, not {known}"
        raise error_of(ParserError, TypeError, text)
    return list(map(operator.index, known))


def _reshaped(before: Shape, shape: Sequence[int]) -> Shape:
    entries, count = list(shape), math.prod(before)
    if entries.count(-1) == 1:
        rest = -math.prod(entries)
        entries[entries.index(-1)] = count // rest if rest > 0 and count % rest == 0 else 0
    if min(entries) < 1 or math.prod(entries) != count:
        raise ShapeError(f"reshape: {list(before)} has {count} elements, not {list(shape)}")
    check_shape(tuple(entries), ElementBits(src=8, dst=8), "reshape")
    return tuple(entries)


@_moving(example="pypto.unsqueeze(x, 0).shape", is_method=True)
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Insert a dimension of length 1; a negative one counts from behind the last.

    Args:
        input: any dtype.
        dim: the place of the new dimension.

    Raises:
        ValueError: a dimension that the result does not have.
    """
    x = check_tensor("unsqueeze", input)
    axis = axis_of("unsqueeze", dim, x.dim + 1)
    shape, valid = list(map(int, x.shape)), x.valid_shape
    shape.insert(axis, 1)
    valid.insert(axis, 1)
    return reshape(x, shape, valid_shape=valid)


def without_axis(reduced: Tensor, axis: int, *, keepdim: bool) -> Tensor:
    """A reduction without the axis that it left with one element, unless that is kept."""
    if keepdim or reduced.dim == 1:
        return reduced
    valid = _without(reduced.valid_shape, axis)
    return reshape(reduced, _without(list(map(int, reduced.shape)), axis), valid_shape=valid)


@_moving(
    dtypes=everywhere(*COPIED, ascend_950=_SMALL_FLOATS),
    example="pypto.transpose(x, 0, 1)",
    is_method=True,
)
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Exchange two dimensions; of four dimensions those that upstream exchanges.

    Args:
        dim0: one dimension; a negative one counts from the last.
        dim1: the other.

    Raises:
        TypeError: a dtype that upstream does not transpose.
        ValueError: dimensions that are not there, or that upstream does not exchange.
        TileShapeError: a tile shape of another number of entries than dimensions, or beyond UB.
    """
    x = check_operand("transpose", input)
    first, second = sorted(axis_of("transpose", dim, x.dim) for dim in (dim0, dim1))
    shape = tuple(map(int, x.shape))
    if first == second or shape[first] == shape[second] == 1:
        return x
    if x.dim == 4 and (first, second) not in _SWAPPED_IN_4D:
        raise ValueError(
            f"transpose: upstream exchanges {_SWAPPED_IN_4D} of four dimensions, not "
            f"{(first, second)}"
        )
    fmt = x.dtype.number_format
    after = _exchanged(shape, first, second)
    takes_rows = second == x.dim - 1  # otherwise whole rows are copied out of UB: one operand
    check_memory_of(
        "transpose",
        tile_of("transpose", shape, exact_rank=True),
        [(shape, fmt.bits)] * (1 + takes_rows),
        lambda extents: _transposing(extents, fmt) if takes_rows else 0,
    )
    valid = _exchanged(tuple(x.valid_shape), first, second)
    return moved(x, after, valid, lambda array: array.swapaxes(first, second))


def _transposing(tile: Shape, fmt: Format) -> int:
    rows = round_up(tile[-2], 32 if fmt.bits == 8 else 16)
    return math.prod(tile[:-2]) * rows * round_up(tile[-1] * fmt.bits // 8, 32)


def _exchanged(shape: Shape, first: int, second: int) -> Shape:
    entries = list(shape)
    entries[first], entries[second] = entries[second], entries[first]
    return tuple(entries)


@_moving(
    dtypes=everywhere(*COPIED, DataType.DT_BOOL, DataType.DT_INT64, ascend_950=_SMALL_FLOATS),
    lacked_by=("0.2.0",),
    opcodes={"T": "PERMUTE"},
    example="pypto.permute(x, [1, 0])",
    is_method=True,
)
def permute(input: Tensor, perm: Sequence[int]) -> Tensor:
    """Put the dimensions in another order.

    Args:
        perm: each dimension once, from 0; the first of the result comes first.

    Raises:
        TypeError: no list of ints.
        ValueError: a dimension that is not there, twice or missing.
        TileShapeError: more UB than there is.
    """
    x = check_operand("permute", input)
    if not isinstance(perm, (list, tuple)) or not all(type(axis) is int for axis in perm):
        raise TypeError(f"permute takes a list of ints, not {perm!r}")
    if sorted(perm) != list(range(x.dim)):
        raise ValueError(f"permute: {list(perm)} is no order of dimensions 0 to {x.dim - 1}")
    before = tuple(map(int, x.shape))
    after, valid = (tuple(given[axis] for axis in perm) for given in (before, x.valid_shape))
    check_memory_of("permute", tile_of("permute", after), [(after, _bits(x)), (after, _bits(x))])
    return moved(x, after, valid, lambda array: permuted(array, perm))


_bytes_row = partial(_moving, lacked_by=("0.2.0",))
_PACKED: Final = (*COPIED, DataType.DT_INT64)


@_bytes_row(dtypes=everywhere(*_PACKED), opcodes={"T": "PACK"})
def pack(input: Tensor) -> Tensor:
    """The bytes of all elements on one axis, the lowest of each first, as UINT8.

    A byte of an undecided element may be any.

    Returns:
        A UINT8 tensor of one axis.

    Raises:
        ValueError: a tensor that holds data in a part of it only.
    """
    x = check_operand("pack", input)
    shape = tuple(map(int, x.shape))
    if tuple(x.valid_shape) != shape:
        raise ValueError(f"pack: of {list(shape)} only {list(x.valid_shape)} hold data")
    size = x.dtype.number_format.dtype.itemsize
    return _read_as("pack", x, DataType.DT_UINT8, math.prod(shape) * size)


@_bytes_row(
    dtypes=everywhere(DataType.DT_UINT8),
    opcodes={"T": "UNPACK"},
    example="pypto.unpack(pypto.pack(x), pypto.DT_FP16)",
)
def unpack(input: Tensor, dtype: DataType) -> Tensor:
    """Elements of a dtype, of bytes on one axis, the lowest of each first.

    An element with an undecided byte may be any.

    Args:
        input: UINT8, of one axis.

    Returns:
        A tensor of one axis and the dtype.

    Raises:
        TypeError: a dtype that upstream does not unpack to.
        ShapeError: more than one axis, or bytes that make no whole number of elements.
        ValueError: a tensor that holds data in a part of it only.
    """
    x = check_operand("unpack", input)
    if not isinstance(dtype, DataType) or dtype not in _PACKED:
        raise TypeError(f"unpack gives {', '.join(map(format, _PACKED))}, not {dtype}")
    shape, size = tuple(map(int, x.shape)), dtype.number_format.dtype.itemsize
    if len(shape) != 1 or shape[0] % size:
        raise ShapeError(f"unpack takes one axis of whole elements of {size} B; got {list(shape)}")
    if tuple(x.valid_shape) != shape:
        raise ValueError(f"unpack: of {list(shape)} only {list(x.valid_shape)} hold data")
    return _read_as("unpack", x, dtype, shape[0] // size)


def _read_as(name: str, x: Tensor, dtype: DataType, count: int) -> Tensor:
    """The same bytes as elements of another dtype on one axis; each of them open or exact."""
    held, fmt = _held(x), dtype.number_format
    if held is None:
        return Tensor._from_result((count,), dtype, valid=(count,))

    def spread(given: _Array, join: np.ufunc = np.logical_or) -> _Array:
        """The flag or cause of each element, for each of the others that has a byte of it."""
        flat = given.reshape(-1)
        if count >= flat.size:
            return flat.repeat(count // flat.size)
        return np.asarray(join.reduce(flat.reshape(count, -1), axis=1))

    values = np.ascontiguousarray(held.values).reshape(-1).view(fmt.dtype)
    data = Enclosure(values=values)
    if held.interval is not None:
        is_open = spread(~held.certain())
        ends, exact = unknown(values, fmt, 0), exactly(values)
        causes = np.broadcast_to(held.interval.cause, held.shape)
        interval = Interval(
            low=np.where(is_open, ends.low, exact.low),
            high=np.where(is_open, ends.high, exact.high),
            may_be_nan=None if ends.may_be_nan is None else is_open,
            cause=spread(causes, np.bitwise_or if trust(name).names_choices else np.maximum),
        )
        data = Enclosure(values=values, interval=interval)
    whole = x.uninitialized()
    left = whole and whole.masked(spread(whole.mask))
    return Tensor._from_result((count,), dtype, data=data, valid=(count,), uninitialized=left)


@_moving(
    example="pypto.concat([x, y], 0)",
    least_dims={"0.2.0": 2},  # vector/tensor_transformation.cpp, CheckCat
)
def concat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Put tensors one behind the other along a dimension.

    Args:
        tensors: two or more of one dtype, alike in all other dimensions.
        dim: the dimension; a negative one counts from the last.

    Returns:
        A new tensor, as long along `dim` as all of them together.

    Raises:
        TypeError: no list of tensors of one dtype.
        ShapeError: other dimensions that differ.
        ValueError: a tensor that is not the last and holds data along only a part of `dim`.
        TileShapeError: a tile whose rows are not whole 32 B blocks.
    """
    if not isinstance(tensors, (list, tuple)) or not tensors:
        raise TypeError(f"concat takes a list of tensors, not {tensors!r}")
    first = check_tensor("concat", tensors[0])
    axis = axis_of("concat", dim, first.dim)
    if first.dtype in (DataType.DT_BOOL, DataType.DT_INT4):
        raise TypeError(f"concat takes no {first.dtype}")
    for x in tensors:
        if check_tensor("concat", x).dtype is not first.dtype:
            raise TypeError(f"concat takes one dtype, not {first.dtype} and {x.dtype}; cast one")
        if _without(x.shape, axis) != _without(first.shape, axis):
            raise ShapeError(f"concat along {axis}: {x.shape} differs from {first.shape} elsewhere")
        if _without(x.valid_shape, axis) != _without(first.valid_shape, axis):
            raise ValueError(
                f"concat along {axis}: one holds data in {first.valid_shape}, one in "
                f"{x.valid_shape}"
            )
        if x is not tensors[-1] and x.valid_shape[axis] != x.shape[axis]:
            raise ValueError(
                f"concat along {axis}: {x.shape} holds data only in {x.valid_shape}, and another "
                "tensor follows"
            )
        check_copied_rows("concat", tuple(map(int, x.shape)), _bits(x))
    shape, valid = list(map(int, first.shape)), first.valid_shape
    shape[axis] = sum(int(x.shape[axis]) for x in tensors)
    valid[axis] = sum(x.valid_shape[axis] for x in tensors)
    parts = [_held(x) for x in tensors]
    given = [part for part in parts if part is not None]
    if len(given) < len(parts) or 0 in valid:
        return Tensor._from_result(tuple(shape), first.dtype, valid=tuple(valid))
    whole = join_arrays(lambda arrays: np.concatenate(arrays, axis), given)
    joined = Tensor._from_result(tuple(shape), first.dtype, data=whole, valid=tuple(valid))
    found = [x.uninitialized() for x in tensors]
    masks = [
        np.zeros(tuple(x.valid_shape), np.bool_) if part is None else part.mask
        for x, part in zip(tensors, found, strict=True)
    ]
    return joined.partly_uninitialized(np.concatenate(masks, axis), next(filter(None, found), None))


@_moving(is_method=True)
def clone(input: Tensor) -> Tensor:
    """Copy a tensor.

    Args:
        input: any dtype.

    Raises:
        TileShapeError: a tile whose rows are not whole 32 B blocks, or that exceeds UB.
    """
    x = check_tensor("clone", input)
    shape = tuple(map(int, x.shape))
    check_copied_rows("clone", shape, _bits(x))
    return moved(x, shape, tuple(x.valid_shape), np.array)


@recording.replayable
@_moving(
    dtypes=everywhere(*COPIED, DataType.DT_BOOL),
    example="pypto.expand_clone(pypto.amax(x, -1, True), [2, 3])",
    opcodes={"T": "EXPAND"},
    is_method=True,
)
def expand_clone(
    input: Tensor, shape: Sequence[int], *, valid_shape: Sequence[int] | None = None
) -> Tensor:
    """Repeat a tensor along dimensions of length 1.

    Args:
        input: FP32, FP16, BF16, integers of up to 32 bits or BOOL.
        shape: as many dimensions; equal, or longer where the input has 1.
        valid_shape: the part that holds data; by default that of the input, repeated.

    Raises:
        TypeError: a dtype that upstream does not expand.
        ShapeError: a shape that the input cannot be repeated to.
        ValueError: a valid shape beyond what holds data.
    """
    x = check_operand("expand_clone", input)
    after = ints("shape", shape, len(shape) if isinstance(shape, (list, tuple)) else 0)
    before = tuple(map(int, x.shape))
    if len(after) != x.dim or any(b not in (1, a) for b, a in zip(before, after, strict=True)):
        raise ShapeError(
            f"expand_clone: {list(before)} does not expand to {list(after)}; as many dimensions, "
            "each equal or from 1"
        )
    check_shape(after, ElementBits(src=8, dst=8), "expand_clone")
    check_repeated("expand_clone", x.dtype, before, after)
    tile = tile_of("expand_clone", after)
    check_memory_of("expand_clone", tile, [(before, _bits(x)), (after, _bits(x))])
    most = tuple(
        v if b == a else a * min(v, 1) for b, a, v in zip(before, after, x.valid_shape, strict=True)
    )
    valid = most if valid_shape is None else ints("valid_shape", valid_shape, len(after))
    if any(v > m for v, m in zip(valid, most, strict=True)):
        raise ValueError(f"expand_clone: valid_shape {list(valid)} exceeds {list(most)}")
    box = slices((0,) * len(after), valid)
    return moved(x, after, valid, lambda array: np.broadcast_to(array, most)[box].copy())


_pairing = partial(
    OperationRow,
    remark="bits are copied",
    dtypes=on_950(*COPIED),
    lacked_by=("0.2.0",),
)


@_pairing(example="pypto.interleave(u, v)")
def interleave(input: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Elements of two tensors by turns along the last axis: the first and the second half of them.

    Args:
        input: gives the first of each pair; its last axis has an even length.
        other: gives the second, of the same dtype and shape.

    Returns:
        Two tensors of the operands' shape and dtype.

    Raises:
        TypeError: another dtype, or two.
        ShapeError: shapes that differ, or an odd last axis.
        ValueError: a tensor that holds data in a part of its last axis only.
        TileShapeError: a tile of another number of entries, or that divides the last axis.
    """
    a, b = _pair("interleave", input, other)
    count = int(a.shape[-1])
    return _halves(interleaved(a, b), slice(0, count), slice(count, None))


@_pairing(example="pypto.deinterleave(u)")
def deinterleave(input: Tensor, other: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Elements at even and at odd places of the last axis, of one tensor or of two side by side.

    Args:
        input: its last axis has an even length.
        other: what follows it, of the same dtype and shape; None: nothing.

    Returns:
        Two tensors; of one operand each is half as long along the last axis.

    Raises:
        TypeError: another dtype, or two.
        ShapeError: shapes that differ, or an odd last axis.
        ValueError: a tensor that holds data in a part of its last axis only.
        TileShapeError: a tile of another number of entries; of two operands one that divides the
            last axis, of one a last entry that is odd.
    """
    name = "deinterleave"
    if other is None:
        x = _whole_rows(name, input)
        if tile_of(name, tuple(map(int, x.shape)), exact_rank=True) is not None:
            last = options.current().vec_tile_shapes[-1]
            if last % 2:
                raise TileShapeError(
                    f"{name}: the last entry of the tile shape must be even, not {last}"
                )
    else:
        a, b = _pair(name, input, other)
        x = _beside(a, b, lambda arrays: np.concatenate(arrays, -1))
    return _halves(x, slice(0, None, 2), slice(1, None, 2))


def interleaved(a: Tensor, b: Tensor) -> Tensor:
    """The elements of two tensors of one dtype and shape by turns along the last axis."""

    def by_turns(arrays: Sequence[_Array]) -> _Array:
        whole = np.stack(arrays, axis=-1)
        return whole.reshape(*whole.shape[:-2], -1)

    return _beside(a, b, by_turns)


def _beside(a: Tensor, b: Tensor, move: Callable[[Sequence[_Array]], _Array]) -> Tensor:
    shape, valid = ((*given[:-1], 2 * int(given[-1])) for given in (a.shape, a.valid_shape))
    held = [held_by(x) for x in (a, b)]
    parts = [part for part in held if part is not None]
    data = join_arrays(move, parts) if len(parts) == 2 and 0 not in valid else None
    return Tensor._from_result(tuple(map(int, shape)), a.dtype, data=data, valid=tuple(valid))


def _halves(x: Tensor, *halves: slice) -> tuple[Tensor, Tensor]:
    shape, valid = tuple(map(int, x.shape)), tuple(x.valid_shape)
    half = shape[-1] // 2
    first, second = (
        moved(x, (*shape[:-1], half), (*valid[:-1], half), partial(_strided, at=each))
        for each in halves
    )
    return first, second


def _strided(array: _Array, at: slice) -> _Array:
    return np.ascontiguousarray(array[..., at])


def _whole_rows(name: str, operand: object) -> Tensor:
    x = check_operand(name, operand)
    last = int(x.shape[-1])
    if last % 2:
        raise ShapeError(f"{name}: the last axis of {list(map(int, x.shape))} has an odd length")
    if x.valid_shape[-1] != last:
        raise ValueError(
            f"{name}: the last axis of {list(map(int, x.shape))} holds data in {x.valid_shape[-1]}"
        )
    return x


def _pair(name: str, input: object, other: object) -> tuple[Tensor, Tensor]:
    a, b = (_whole_rows(name, x) for x in (input, other))
    same_dtype(name, a, b)
    if list(a.shape) != list(b.shape) or a.valid_shape != b.valid_shape:
        raise ShapeError(f"{name} takes two tensors of one shape, not {a.shape} and {b.shape}")
    shape = tuple(map(int, a.shape))
    tile = tile_of(name, shape, exact_rank=True)
    if tile is not None and options.current().vec_tile_shapes[-1] != shape[-1]:
        raise TileShapeError(
            f"{name} takes rows whole: the last entry of tile shape "
            f"{list(options.current().vec_tile_shapes)} must be {shape[-1]}"
        )
    check_memory_of(name, tile, [(shape, a.dtype.number_format.bits)] * 4)
    return a, b


def moved(x: Tensor, shape: Shape, valid: Shape, move: Callable[[_Array], _Array]) -> Tensor:
    """The elements of a tensor as a function of arrays moves them, with all that belongs to them.

    Args:
        x: any tensor.
        shape, valid: of the result.
        move: the elements of the valid shape, and flags and causes of their intervals, likewise.
    """
    held = x.enclosure() if recording.executes() else None
    if held is None or 0 in valid:
        return Tensor._from_result(shape, x.dtype, valid=valid)
    uninitialized = x.uninitialized()
    left = uninitialized and uninitialized.masked(move(uninitialized.mask))
    return Tensor._from_result(shape, x.dtype, data=held.map(move), valid=valid, uninitialized=left)


def _held(x: Tensor) -> Enclosure | None:
    return x.enclosure() if recording.executes() else None


def _bits(x: Tensor) -> int:
    return max(8, x.dtype.number_format.bits)


def _without(shape: Sequence[int], axis: int) -> list[int]:
    return [length for k, length in enumerate(shape) if k != axis]
