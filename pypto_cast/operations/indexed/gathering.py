"""Reading by index: gather, index_select, and rows of paged caches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from pypto_cast.dtypes.data_types import DataType
from pypto_cast.operations.lowering import (
    axis_of,
    check_memory_of,
    check_operand,
    check_tensor,
    held_by,
    held_indices,
    index_tensor,
    tile_of,
)
from pypto_cast.operations.movement import moved
from pypto_cast.operations.operation_rows import COPIED, FLOATS, OperationRow, everywhere
from pypto_cast.operations.scalar_operands import flag, whole_number
from pypto_cast.recording import recording
from pypto_cast.recording.buffers import Uninitialized, slices
from pypto_cast.tensors.tensor import Tensor
from simulator.arithmetic import Enclosure
from simulator.arithmetic.indexed import gather_scatter as reading
from simulator.arithmetic.indexed.gather_scatter import Positions
from simulator.numbers.formats import BOOL
from tiling.grid import Shape
from tiling.plan import ShapeError, check_shape
from tiling.ub import ElementBits

_reading = partial(
    OperationRow,
    dtypes=everywhere(*COPIED),
    index_dtypes=everywhere(DataType.DT_INT32, DataType.DT_INT64),
    instruction="copy_gm_to_ubuf, a row at a time",
)


@_reading(
    dtypes=everywhere(*(d for d in COPIED if d.number_format.bits > 8)),
    instruction="vgather; scalar copies for INT64 indices",
    source="pypto tileop/vector/gather.h: TgatherElement",
    opcodes={"TT": "GATHER_ELEMENT"},
    example="pypto.gather(x, 1, at)",
    is_method=True,
)
def gather(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Read along a dimension: out[i][j] = input[i][index[i][j]] for the last of two.

    An index that is not certain gives the hull of the elements that it may mean.

    Args:
        input: FP32, FP16, BF16 or integers of 16 or 32 bits.
        dim: the dimension; a negative one counts from the last.
        index: INT32 or INT64, of as many dimensions, along others no longer than the input.

    Returns:
        A tensor of the input's dtype and the index's shape.

    Raises:
        TypeError: other dtypes.
        ShapeError: another number of dimensions, or an index that is longer.
        IndexError: an index outside the input.
        TileShapeError: too few entries, or a tile beyond UB.
    """
    x, where = check_operand("gather", input), index_tensor("gather", index)
    axis = axis_of("gather", dim, x.dim)
    shape, extents = tuple(map(int, where.shape)), list(map(int, x.shape))
    if where.dim != x.dim or any(
        s > e for k, (s, e) in enumerate(zip(shape, extents, strict=True)) if k != axis
    ):
        raise ShapeError(
            f"gather along {axis}: an index of {list(shape)} does not fit {x.shape}; as many "
            "dimensions, along others no longer"
        )
    _check_tile("gather", shape, x, where, axis)
    valid = [min(a, b) for a, b in zip(where.valid_shape, x.valid_shape, strict=True)]
    valid[axis] = where.valid_shape[axis]
    indices = held_indices("gather", where, x.valid_shape[axis])
    if indices is not None and 0 not in valid:
        indices = indices[slices((0,) * x.dim, valid)]
    region = [x.valid_shape[k] if k == axis else valid[k] for k in range(x.dim)]
    return _read(x, indices, axis, tuple(region), shape, tuple(valid))


@OperationRow(
    remark="bits are copied",
    source="pypto operation/vector/indexing.cpp: GatherMask",
    dtypes=everywhere(*(d for d in COPIED if d not in (DataType.DT_INT8, DataType.DT_UINT8))),
    opcodes={"T": "GATHER_MASK"},
    example="pypto.gathermask(pypto.concat([x, x], -1), 1)",
    is_method=True,
)
def gathermask(self: Tensor, pattern_mode: int) -> Tensor:
    """Elements of the last axis at a fixed pattern.

    Args:
        pattern_mode: 1 and 2: the first, second of every two; 3 to 6: the first to fourth of every
            four; 7: all.

    Returns:
        A tensor of the input's dtype, so much shorter along the last axis.

    Raises:
        TypeError: a pattern that is no int.
        ValueError: another pattern, or a tensor that holds data in a part of its last axis only.
        ShapeError: a last axis of no whole number of pairs, or of fours.
    """
    x = check_operand("gathermask", self)
    if type(pattern_mode) is not int:
        raise TypeError(f"gathermask takes an int as pattern_mode, not {pattern_mode!r}")
    if not 1 <= pattern_mode <= 7:
        raise ValueError(f"gathermask: pattern_mode {pattern_mode}; 1 to 7 are there")
    from simulator.arithmetic.indexed.by_place import pattern  # loaded when first used

    taken = pattern(pattern_mode)
    step = taken.step
    shape, valid = tuple(map(int, x.shape)), tuple(x.valid_shape)
    if shape[-1] % step:
        raise ShapeError(f"gathermask: the last axis of {list(shape)} is no multiple of {step}")
    if valid[-1] != shape[-1]:
        raise ValueError(f"gathermask: the last axis of {list(shape)} holds data in {valid[-1]}")
    ends = (shape[-1] // step,)
    return moved(x, shape[:-1] + ends, valid[:-1] + ends, lambda array: array[..., taken].copy())


@_reading(
    opcodes={"TT": "GATHER"},
    dtypes=everywhere(
        *COPIED,
        ascend_950=(DataType.DT_FP8E4M3, DataType.DT_FP8E5M2, DataType.DT_FP8E8M0),
    ),
    source="pypto tileop/vector/gather.h: Tgather",
    example="pypto.index_select(x, 0, row)",
)
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Read whole slices: the dimension is replaced by those of the index.

    Args:
        input: FP32, FP16, BF16 or integers of up to 32 bits.
        dim: the dimension; a negative one counts from the last.
        index: INT32 or INT64, of one or two dimensions.

    Returns:
        A tensor of the input's dtype.

    Raises:
        TypeError: other dtypes.
        ShapeError: an index of more dimensions, or a result of more than four.
        IndexError: an index outside the input.
        TileShapeError: too few entries, or a tile beyond UB.
    """
    name = "index_select"
    x, where = check_operand(name, input), index_tensor(name, index)
    axis = axis_of(name, dim, x.dim)
    if where.dim > 2:
        raise ShapeError(f"{name} takes an index of one or two dimensions, not {where.shape}")

    def replaced(lengths: list[int], by: list[int]) -> Shape:
        return tuple(map(int, (*lengths[:axis], *by, *lengths[axis + 1 :])))

    shape = replaced(list(x.shape), list(where.shape))
    check_shape(shape, ElementBits(src=8, dst=8))
    _check_tile(name, shape, x, where, None)
    valid = replaced(x.valid_shape, where.valid_shape)
    indices = held_indices(name, where, x.valid_shape[axis])
    count = int(np.prod(where.valid_shape))
    if indices is not None:
        indices = indices.reshape(tuple(count if k == axis else 1 for k in range(x.dim)))
    return _read(x, indices, axis, tuple(x.valid_shape), shape, valid)


@_reading(
    opcodes={"TTT": "GATHER_IN_UB"},
    source="pypto tileop/vector/gather.h: TgatherInUB reads from the start of the view on, in "
    "the tensor that is viewed",
    is_experimental=True,
)
def gather_in_ub(
    param: Tensor, indices: Tensor, block_table: Tensor, block_size: int, axis: int
) -> Tensor:
    """Read rows of a paged cache by the position of tokens.

    A view is read from its start on, also beyond its last row, as upstream does.

    Args:
        param: [rows, columns], the cache, or a view of it.
        indices: [1, tokens], INT32 or INT64.
        block_table: [1, blocks], INT32: the block of the cache that holds each block of tokens.
        block_size: tokens of a block.
        axis: -2.

    Raises:
        TypeError: other dtypes, or a block size that is no int.
        ShapeError: other shapes.
        ValueError: another axis, or a block size below 1.
        IndexError: a token beyond the table, or a block beyond the cache.
        TileShapeError: too few entries, or a tile beyond UB.
    """
    name = "gather_in_ub"
    if whole_number(name, "axis", axis) != -2:
        raise ValueError(f"{name} takes axis -2, not {axis}")
    return _paged(name, param, indices, block_table, block_size, None)


@_reading(
    opcodes={"TTT": "GATHER_IN_L1"},
    dtypes=everywhere(*FLOATS, DataType.DT_INT8),
    instruction="copy_gm_to_cbuf, a row at a time",
    is_experimental=True,
    source="pypto operation_impl.cpp: GatherInL1; the layout in L1 is the cube's",
)
def gather_in_l1(
    src: Tensor,
    indices: Tensor,
    block_table: Tensor,
    block_size: int,
    size: int,
    is_b_matrix: bool,
    is_trans: bool,
) -> Tensor:
    """Read the first columns of rows of a paged cache, for a matmul.

    Args:
        src, indices, block_table, block_size: as for `gather_in_ub`; FP32, FP16, BF16 or INT8.
        size: columns.
        is_b_matrix, is_trans: how the matmul takes the result; no bit depends on them.

    Raises:
        TypeError, ShapeError, IndexError: as for `gather_in_ub`.
        ValueError: a block size below 1, or more columns than there are.
    """
    name = "gather_in_l1"
    flag(name, "is_b_matrix", is_b_matrix)
    flag(name, "is_trans", is_trans)
    columns = whole_number(name, "size", size)
    return _paged(name, src, indices, block_table, block_size, columns)


def _paged(
    name: str, param: Tensor, index: Tensor, table: Tensor, block_size: int, columns: int | None
) -> Tensor:
    x, where = check_operand(name, param, in_gm=True), index_tensor(name, index, in_gm=True)
    pages = check_tensor(name, table, [DataType.DT_INT32], in_gm=True)
    for given, lengths in ((x, None), (where, 1), (pages, 1)):
        if given.dim != 2 or (lengths is not None and given.shape[0] != lengths):
            raise ShapeError(
                f"{name} takes a cache of [rows, columns], indices of [1, tokens] and a table of "
                f"[1, blocks]; got {x.shape}, {where.shape} and {pages.shape}"
            )
    length = whole_number(name, "block_size", block_size)
    width = int(x.shape[1]) if columns is None else columns
    if length < 1 or not 1 <= width <= x.shape[1]:
        raise ValueError(
            f"{name}: a block has 1 token or more and a row 1 to {x.shape[1]} columns; got "
            f"{block_size} and {width}"
        )
    shape = (int(where.shape[1]), width)
    valid = (where.valid_shape[1], min(x.valid_shape[1], width))
    if columns is None:  # the cube's tiles decide in L1
        _check_tile(name, shape, x, where, None)
    blocks = held_by(pages)
    tokens = held_indices(name, where, pages.valid_shape[1] * length)
    cache = x.from_its_start()
    if blocks is None or tokens is None or 0 in valid:
        return Tensor._from_result(shape, x.dtype, valid=valid)
    rows, first = cache.valid_shape[0], blocks.values.reshape(-1).astype(np.int64)

    def place(token: Positions) -> Positions:
        block = np.clip(token // length, 0, first.size - 1)
        row = first[block] * length + token % length
        outside = (token < 0) | (token >= first.size * length) | (row < 0) | (row >= rows)
        return np.where(outside, -1, row)

    found = place(tokens.values.astype(np.int64))
    if (found < 0).any():
        at = tuple(map(int, np.argwhere(found < 0)[0]))
        token = int(tokens.values[at])
        raise IndexError(
            f"{name}: index {token} at {list(at)} is in block {first[token // length]} of the "
            f"cache, which has {rows} rows of blocks of {length}; a device would read elsewhere"
        )
    region = (rows, valid[1])
    indices = tokens.reshape((valid[0], 1))
    result = _read(cache, indices, 0, region, shape, valid, place)
    if blocks.interval is None:
        return result
    cause = int(blocks.interval.cause.flat[0])
    if (blocks.low < 0).any() or (blocks.high.astype(np.int64) >= rows // length).any():
        recording.record_control_dependence(cause)  # it raises for some of the blocks
    return result.made_unknown(cause)


def _check_tile(name: str, shape: Shape, x: Tensor, index: Tensor, axis: int | None) -> None:
    """Refuses a tile beyond UB; along `axis` the input is not cut."""
    tile = tile_of(name, shape)
    bits, index_bits = max(8, x.dtype.number_format.bits), index.dtype.number_format.bits
    if tile is None:
        return
    check_memory_of(name, tile, [(shape, bits), (tuple(map(int, index.shape)), index_bits)])
    if axis is not None:
        whole = tuple(int(x.shape[k]) if k == axis else tile[k] for k in range(x.dim))
        check_memory_of(name, whole, [(whole, bits), (tile, bits), (tile, index_bits)])


def _read(
    x: Tensor,
    indices: Enclosure | None,
    axis: int,
    region: Shape,
    shape: Shape,
    valid: Shape,
    place: Callable[[Positions], Positions] | None = None,
) -> Tensor:
    """Read the region of a tensor at indices, with its marks of uninitialized elements."""
    held = x.enclosure() if recording.executes() else None
    if held is None or indices is None or 0 in valid:
        return Tensor._from_result(shape, x.dtype, valid=valid)
    box = slices((0,) * x.dim, region)
    result = reading.gather(held[box], indices, x.dtype.number_format, axis=axis, place=place)
    uninitialized: Uninitialized | None = x.uninitialized()
    if uninitialized is not None:
        mask = Enclosure(values=uninitialized.mask[box])
        read = reading.gather(mask, indices, BOOL, axis=axis, place=place)
        uninitialized = uninitialized.masked(read.high.reshape(valid))
    return Tensor._from_result(
        shape, x.dtype, data=result.reshape(valid), valid=valid, uninitialized=uninitialized
    )
