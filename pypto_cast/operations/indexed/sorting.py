"""Order: topk, argsort, sort32, argmax, argmin, and sums along a dimension."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pypto_cast.cast.api import cast
from pypto_cast.dtypes.data_types import CastMode, DataType, TopKAlgo
from pypto_cast.operations.lowering import (
    as_one,
    axis_of,
    check_memory_of,
    check_operand,
    held_by,
    is_cast_inside,
    of_release,
    operand_values,
    tile_of,
)
from pypto_cast.operations.movement import interleaved, without_axis
from pypto_cast.operations.operation_rows import FLOATS, NUMBERS, OperationRow, everywhere
from pypto_cast.operations.scalar_operands import flag, whole_number
from pypto_cast.options.context import current
from pypto_cast.recording import recording
from pypto_cast.recording.recording import trust
from pypto_cast.tensors.tensor import Tensor
from simulator.arithmetic import (
    ASSUME_GRADUAL_UNDERFLOW,
    ASSUME_RNE,
    ASSUME_STABLE_SORT,
    ASSUME_SUM_ORDER,
    Enclosure,
    Fidelity,
)
from simulator.arithmetic.indexed.running_sums import prefix_scan
from simulator.arithmetic.interval import Interval, join_arrays
from simulator.numbers.formats import FP32, INT32
from tiling.plan import TileShapeError

if TYPE_CHECKING:
    from simulator.arithmetic.indexed.sort import Sorted

_ordering = partial(OperationRow, fidelity=Fidelity.ASSUMED, assumes=(ASSUME_STABLE_SORT,))
_extreme_row = partial(
    _ordering,
    dtypes=everywhere(*FLOATS),
    lacked_by=("0.2.0",),
    instruction="vcmax or vcmin with the index, vcmp and vsel, on FP32",
    composed_by=("head",),
    source="pypto tileop/vector/reduce.h; asc-devkit ReduceMax.md: the smallest index",
    example="pypto.{name}(x, -1)",
    is_method=True,
)

_BLOCK = 32
"""Elements that vbitsort sorts at once."""
_INFINITE_BITS = 0x7F800000
"""The least unsigned integer whose bits are no finite FP32 number."""


@_ordering(
    opcodes={"T": "TOPK"},
    dtypes=everywhere(DataType.DT_FP32),
    instruction="vbitsort, vmrgsort, vreducev2",
    source="pypto tileop/vector/sort.h; pto-isa a2a3/TSort32.hpp, TMrgSort.hpp",
    example="pypto.topk(x, 2)",
    is_method=True,
)
def topk(
    input: Tensor,
    k: int,
    dim: int | None = None,
    largest: bool = True,
    algo: TopKAlgo = TopKAlgo.MERGE_SORT,
) -> tuple[Tensor, Tensor]:
    """The greatest or least elements of each row in order, and INT32 indices of where they are.

    Equal elements come in the order of their indices (ASSUME_STABLE_SORT). Where elements are not
    certain, an index has all as candidates that may stand there. NaN: the row may come out in any
    order. Of a row that holds data in fewer than k elements, so many are valid.

    Args:
        input: FP32.
        k: how many, no more than a row of a tile.
        dim: the last dimension.
        largest: False for the least.
        algo: MERGE_SORT; the other exists on the 950 only.

    Returns:
        Two tensors, k long along the last dimension: values, and INT32 indices.

    Raises:
        TypeError: another dtype, or a k that is no int.
        ValueError: another dimension or algorithm, or a k that a row does not have.
        TileShapeError: a tile whose rows are shorter than k.
    """
    x = check_operand("topk", input)
    if algo is not TopKAlgo.MERGE_SORT:
        raise ValueError(f"topk: A2 and A3 have TopKAlgo.MERGE_SORT, not {algo}")
    axis = x.dim - 1
    if dim is not None and axis_of("topk", dim, x.dim) != axis:
        raise ValueError(f"topk takes the last dimension, not {dim}")
    shape = tuple(map(int, x.shape))
    count, descending = whole_number("topk", "k", k), flag("topk", "largest", largest)
    if not 1 <= count <= shape[-1]:
        raise ValueError(f"topk: k is 1 to {shape[-1]}, the length of a row, not {k}")
    tile = tile_of("topk", shape)
    if tile is not None and count > current().vec_tile_shapes[axis]:
        raise TileShapeError(
            f"topk: the last entry of tile shape {list(current().vec_tile_shapes)} is less than "
            f"k = {count}"
        )
    after, valid = (*shape[:-1], count), (*x.valid_shape[:-1], min(count, x.valid_shape[-1]))
    held = held_by(x) if 0 not in valid else None
    if held is None:
        dtypes = (x.dtype, DataType.DT_INT32)
        values, indices = (Tensor._from_result(after, dtype, valid=valid) for dtype in dtypes)
        return values, indices
    found = _sorted("topk", held, valid[-1], descending=descending)
    return (
        Tensor._from_result(after, x.dtype, data=found.values, valid=valid),
        Tensor._from_result(after, DataType.DT_INT32, data=found.indices, valid=valid),
    )


@_ordering(
    opcodes={"T": "SORT"},
    dtypes=everywhere(*FLOATS[:2]),
    instruction="vbitsort, vmrgsort, vreducev2, on FP32",
    source="pypto docs/zh/api/operation/pypto-argsort.md: stable",
)
def argsort(input: Tensor, dim: int | None = None, descending: bool = False) -> Tensor:
    """INT32 indices that put elements in order along a dimension; as `topk` says.

    Args:
        input: FP32 or FP16.
        dim: the dimension; the last one if not given.
        descending: the greatest first.

    Returns:
        An INT32 tensor of the input's shape.

    Raises:
        TypeError: another dtype.
        ValueError: a dimension that is not there, or the first of four.
        TileShapeError: a tile with no multiple of 32 elements along it.
    """
    x, descending = check_operand("argsort", input), flag("argsort", "descending", descending)
    axis = axis_of("argsort", -1 if dim is None else dim, x.dim)
    if x.dim == 4 and axis == 0:
        raise ValueError("argsort: upstream does not sort along the first of four dimensions")
    shape, valid = tuple(map(int, x.shape)), tuple(x.valid_shape)
    entries = current().vec_tile_shapes
    if tile_of("argsort", shape) is not None and entries[axis] % _BLOCK:
        raise TileShapeError(
            f"argsort: entry {axis} of tile shape {list(entries)} must be a multiple of {_BLOCK}"
        )
    held = held_by(cast(x, DataType.DT_FP32)) if 0 not in valid else None
    if held is None:
        return Tensor._from_result(shape, DataType.DT_INT32, valid=valid)
    rows = held.map(lambda array: np.moveaxis(array, axis, -1))
    found = _sorted("argsort", rows, valid[axis], descending=descending).indices
    back = found.map(lambda array: np.moveaxis(array, -1, axis))
    return Tensor._from_result(shape, DataType.DT_INT32, data=back, valid=valid)


@_ordering(
    opcodes={"T": "BITSORT"},
    dtypes=everywhere(DataType.DT_FP32),
    instruction="vbitsort",
    source="pypto op/comparison.py; tileop/vector/sort.h: TBitSort; pto-isa TSort32.hpp",
)
def sort32(input: Tensor, index: int | None = None) -> Tensor:
    """Sort each 32 elements of the last dimension, the greatest first; each beside its index.

    An index comes as the bits of an unsigned 32-bit integer. A row is not cut into tiles; as for
    the rest, see `topk`.

    Args:
        input: FP32.
        index: of the first element of a row, which the others count on from; 0 if not given.

    Returns:
        An FP32 tensor, twice as long along the last dimension: element and index by turns.

    Raises:
        TypeError: another dtype, or an index that is no int.
        ValueError: a negative index, or one whose bits are no finite FP32 number.
        TileShapeError: rows beyond UB.
    """
    x = check_operand("sort32", input)
    first = 0 if index is None else whole_number("sort32", "index", index)
    shape, valid = tuple(map(int, x.shape)), tuple(x.valid_shape)
    if not 0 <= first <= _INFINITE_BITS - shape[-1]:
        raise ValueError(f"sort32: the index of the first element is {first}; its bits are FP32's")
    tile = tile_of("sort32", shape)
    if tile is not None:
        whole = (*tile[:-1], shape[-1])
        check_memory_of("sort32", whole, [(shape, 32), *[((*shape[:-1], 2 * shape[-1]), 32)] * 2])
    held = held_by(x) if 0 not in valid else None
    parts: tuple[Enclosure | None, ...] = (None, None)
    if held is not None:
        parts = _groups(held, first)
    values, places = (Tensor._from_result(shape, x.dtype, data=p, valid=valid) for p in parts)
    return interleaved(values, places)


def _groups(rows: Enclosure, first: int) -> tuple[Enclosure, Enclosure]:
    """Values of each group in order, and the bits of their indices."""
    values, places = [], []
    for start in range(0, rows.shape[-1], _BLOCK):
        group = rows[..., start : start + _BLOCK]
        found = _sorted("sort32", group, group.shape[-1], descending=True)
        values.append(found.values)
        places.append(_as_fp32(found.indices, first + start))
    along = partial(np.concatenate, axis=-1)
    return join_arrays(along, values), join_arrays(along, places)


def _as_fp32(places: Enclosure, first: int) -> Enclosure:
    """INT32 from a first one on, whose bits are read as FP32; of none below 0 the order stays."""
    interval = places.interval
    values, low, high = (
        (each + np.int32(first)).view(np.float32)
        for each in (places.values, places.low, places.high)
    )
    if interval is not None:
        interval = Interval(
            low=low, high=high, may_be_nan=interval.may_be_nan, cause=interval.cause
        )
    return Enclosure(values=values, interval=interval)


@_extreme_row(opcodes={"T": "ROWARGMAX_SINGLE"})
def argmax(input: Tensor, dim: int = -1, keepdim: bool = False) -> Tensor:
    """INT32 index of the greatest element along a dimension, the first of equal ones; see `topk`.

    Returns:
        An INT32 tensor without the dimension; with `keepdim` it has one element.

    Raises:
        TypeError: another dtype than FP32, FP16 and BF16.
        ValueError: a dimension that is not there.
        TileShapeError: too few entries, or a tile beyond UB.
    """
    return _extreme("argmax", input, dim, keepdim)


@_extreme_row(like="argmax", opcodes={"T": "ROWARGMIN_SINGLE"})
def argmin(input: Tensor, dim: int = -1, keepdim: bool = False) -> Tensor:
    """INT32 index of the least element along a dimension; as `argmax`."""
    return _extreme("argmin", input, dim, keepdim)


def _extreme(name: str, input: Tensor, dim: int, keepdim: bool) -> Tensor:
    x = check_operand(name, input)
    axis, shape = axis_of(name, dim, x.dim), list(map(int, x.shape))
    if not isinstance(keepdim, bool):
        raise TypeError(f"{name}: keepdim must be True or False, not {keepdim!r}")
    tile = tile_of(name, tuple(shape))
    kept = list(shape)
    kept[axis] = 1
    check_memory_of(name, tile, [(tuple(shape), 32), (tuple(kept), 64)])
    if x.dtype is DataType.DT_FP16:  # a cast that upstream writes
        x = cast(x, DataType.DT_FP32)
    return without_axis(extreme(name, x, axis), axis, keepdim=keepdim)


@recording.replayable
def extreme(name: str, x: Tensor, axis: int) -> Tensor:
    """The index of the greatest or least element along an axis, which keeps one element."""
    kept, valid = list(map(int, x.shape)), list(x.valid_shape)
    kept[axis] = 1
    held = operand_values(x, FP32) if 0 not in valid else None
    valid[axis] = min(valid[axis], 1)
    data = None
    if held is not None:
        rows = held.map(lambda array: np.moveaxis(array, axis, -1))
        found = _sorted(name, rows, 1, descending=name == "argmax").indices
        data = found.map(lambda array: np.moveaxis(array, -1, axis))
    return Tensor._from_result(tuple(kept), DataType.DT_INT32, data=data, valid=tuple(valid))


def _sorted(name: str, rows: Enclosure, count: int, *, descending: bool) -> Sorted:
    from simulator.arithmetic.indexed.sort import sort  # loaded when first used

    cause = recording.causes().index_here(name)
    return sort(rows, count, descending=descending, trust=trust(name), cause=cause)


@OperationRow(
    dtypes=everywhere(*NUMBERS),
    cast_to_fp32={"0.2.0": (DataType.DT_INT16,)},  # vector/math.cpp:669
    instruction="vadd of tiles shifted by 1, 2, 4, ... elements",
    source="pypto tileop/vector/cum_operation.h; pypto math.cpp: FP16 and BF16 run in FP32, "
    "integers in INT32",
    fidelity=Fidelity.ASSUMED,
    assumes=(ASSUME_RNE, ASSUME_GRADUAL_UNDERFLOW, ASSUME_SUM_ORDER),
    opcodes={"T": "CUM_SUM"},
    example="pypto.cumsum(x, 1)",
    is_method=True,
)
def cumsum(input: Tensor, dim: int) -> Tensor:
    """The sum of all elements up to each along a dimension; its bits depend on the tile shape.

    FP16 and BF16 are added in FP32 and rounded at the end. INT16 and INT32 are added in INT32,
    which wraps, and give INT64; release 0.2.0 adds INT16 in FP32, and each element to the sum of
    all before in its tile.

    Returns:
        A tensor of the input's shape and dtype; INT64 of integers.

    Raises:
        TypeError: another dtype.
        ValueError: a dimension that is not there.
        TileShapeError: too few entries, or a tile beyond UB.
    """
    x = check_operand("cumsum", input)
    is_float = x.dtype not in (DataType.DT_INT16, DataType.DT_INT32)
    in_fp32 = is_float or is_cast_inside("cumsum", x.dtype)
    in_turn = of_release("cumsum", x.dtype, getattr, "sums_in_turn")
    with as_one():
        if x.dtype is not DataType.DT_INT32:
            wide = cast(x, DataType.DT_FP32)
            wide = wide if in_fp32 else cast(wide, DataType.DT_INT32, CastMode.CAST_TRUNC)
        else:
            wide = x
        given = x.dtype if is_float else DataType.DT_INT64
        return _running("cumsum", x, wide, dim, given, in_turn)


@OperationRow(
    dtypes=everywhere(*FLOATS),
    lacked_by=("0.2.0",),
    instruction="vmul of tiles shifted by 1, 2, 4, ... elements",
    source="pypto tileop/vector/cum_operation.h; pypto math.cpp: FP16 and BF16 run in FP32",
    fidelity=Fidelity.ASSUMED,
    assumes=(ASSUME_RNE, ASSUME_GRADUAL_UNDERFLOW, ASSUME_SUM_ORDER),
    opcodes={"T": "CUM_PROD"},
    example="pypto.cumprod(x, 1)",
    is_method=True,
)
def cumprod(input: Tensor, dim: int) -> Tensor:
    """The product of all elements up to each along a dimension; its bits depend on the tile shape.

    FP16 and BF16 are multiplied in FP32 and rounded at the end. A partial product of -0 that is
    multiplied again counts as +0, but in tensors of one dimension.

    Returns:
        A tensor of the input's shape and dtype.

    Raises:
        TypeError: another dtype.
        ValueError: a dimension that is not there.
        TileShapeError: too few entries, or a tile beyond UB.
    """
    x = check_operand("cumprod", input)
    with as_one():
        return _running("cumprod", x, cast(x, DataType.DT_FP32), dim, x.dtype, False)


def _running(
    name: str, x: Tensor, wide: Tensor, dim: int, result: DataType, in_turn: bool
) -> Tensor:
    """Sums or products of the elements up to each, cast to the dtype of the result."""
    axis, shape = axis_of(name, dim, x.dim), tuple(map(int, x.shape))
    tile = tile_of(name, shape)
    is_float = wide.dtype is DataType.DT_FP32
    check_memory_of(
        name, tile, [(shape, 32), (shape, result.number_format.bits if not is_float else 32)]
    )
    held = held_by(wide) if 0 not in x.valid_shape else None
    if held is None:
        return Tensor._from_result(shape, result, valid=tuple(x.valid_shape))
    joined = prefix_scan(
        held,
        FP32 if is_float else INT32,
        step="add" if name == "cumsum" else "mul",
        axis=axis,
        extent=shape[axis] if tile is None else tile[axis],
        trust=trust(name),
        cause=recording.causes().index_here(name),
        by_scalars=x.dim == 1,
        in_turn=in_turn,
        engine=current().converter,
        threads=current().threads,
    )
    data = Tensor._from_result(shape, wide.dtype, data=joined, valid=tuple(x.valid_shape))
    return cast(data, result)
