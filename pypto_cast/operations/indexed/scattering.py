"""Writing by index: scatter, scatter_update, index_put_, and addition in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from pypto_cast.cast.api import cast
from pypto_cast.dtypes.data_types import CastMode, DataType
from pypto_cast.operations.lowering import (
    axis_of,
    check_operand,
    converted_to,
    dtypes_of,
    held_by,
    held_indices,
    index_tensor,
    same_dtype,
    tile_of,
)
from pypto_cast.operations.operation_rows import (
    COPIED,
    FLOATS,
    NUMBERS,
    OperationRow,
    everywhere,
)
from pypto_cast.operations.scalar_operands import converted, flag
from pypto_cast.options.context import current
from pypto_cast.recording import recording
from pypto_cast.recording.buffers import slices
from pypto_cast.recording.recording import replayable_operation, trust
from pypto_cast.tensors import indexing
from pypto_cast.tensors.operators import ElementLike
from pypto_cast.tensors.tensor import Tensor
from simulator import arithmetic
from simulator.arithmetic import (
    ASSUME_GRADUAL_UNDERFLOW,
    ASSUME_RNE,
    ASSUME_SUM_ORDER,
    OPERATIONS,
    Enclosure,
    Fidelity,
)
from simulator.arithmetic.indexed import gather_scatter as writing
from simulator.arithmetic.indexed.running_sums import RunningSums
from simulator.numbers.formats import BF16, FP32, INT8, INT16, FloatFormat, Format
from tiling.plan import ShapeError, TileShapeError

_ROUNDED: Final = (ASSUME_RNE, ASSUME_GRADUAL_UNDERFLOW)
_WHOLE: Final = (
    *(DataType.DT_INT8, DataType.DT_INT16, DataType.DT_INT32, DataType.DT_INT64),
    *(DataType.DT_UINT8, DataType.DT_UINT16, DataType.DT_UINT32, DataType.DT_UINT64),
)
_REDUCTIONS: Final = {"add": "add", "multiply": "mul"}


@OperationRow(
    opcodes={"TT": "SCATTER_ELEMENT", "TTT": "SCATTER"},
    dtypes=everywhere(*FLOATS, *COPIED[3:6], DataType.DT_UINT8),
    index_dtypes=everywhere(DataType.DT_INT32, DataType.DT_INT64),
    added=everywhere(*NUMBERS),
    instruction="scalar stores, adds and multiplications in the order of the index",
    source="pypto tileop/vector/scatter.h: A2/A3 has no vscatter; FP16 and BF16 are added and "
    "multiplied in FP32 and rounded at the end",
    fidelity=Fidelity.ASSUMED,
    assumes=(*_ROUNDED, ASSUME_SUM_ORDER),
    example="pypto.scatter(x, 1, at, 9.0)",
    is_method=True,
)
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor | ElementLike | float,
    *,
    reduce: str | None = None,
) -> Tensor:
    """Write along a dimension: out[i][index[i][j]] = src[i][j] for the last of two.

    Indices are taken one after another; of equal ones the last one's value stays. One that is not
    certain leaves each element open that it may mean.

    Args:
        input: FP32, FP16, BF16, INT8, UINT8, INT16 or INT32; it stays as it is.
        dim: the dimension; a negative one counts from the last.
        index: INT32 or INT64, of as many dimensions, along others no longer than the input.
        src: a tensor of the input's dtype, no shorter than the index; or a number.
        reduce: "add" or "multiply" what is there by it, FP16 and BF16 in FP32; not for 8 bits.

    Returns:
        A tensor of the input's dtype and shape.

    Raises:
        TypeError: other dtypes, or a number that the dtype does not hold.
        ValueError: another `reduce`.
        ShapeError: another number of dimensions, or an index that is longer.
        IndexError: an index outside the input.
        TileShapeError: a tile that cuts the dimension.
    """
    x, where = check_operand("scatter", input), index_tensor("scatter", index)
    axis = axis_of("scatter", dim, x.dim)
    if reduce is not None and (not isinstance(reduce, str) or reduce not in _REDUCTIONS):
        raise ValueError(f'scatter: reduce is "add", "multiply" or None, not {reduce!r}')
    added = dtypes_of("scatter", "added")
    if reduce is not None and x.dtype not in added:
        raise TypeError(f"scatter with reduce takes {', '.join(map(format, added))}, not {x.dtype}")
    source = check_operand("scatter", src) if isinstance(src, Tensor) else None
    if source is not None:
        same_dtype("scatter", x, source)
    _check_fit("scatter", x, where, source, axis)
    tile = tile_of("scatter", tuple(map(int, x.shape)))
    entries = current().vec_tile_shapes
    if tile is not None and entries[axis] < max(x.shape[axis], where.shape[axis]):
        raise TileShapeError(
            f"scatter: a tile holds the whole dimension {axis}; tile shape {list(entries)} has "
            f"{entries[axis]} there, at least {max(x.shape[axis], where.shape[axis])} are needed"
        )
    if reduce is not None and x.dtype in (DataType.DT_FP16, DataType.DT_BF16):
        wide = cast(x, DataType.DT_FP32)
        given = src if source is None else cast(source, DataType.DT_FP32)
        return cast(_scattered(wide, axis, where, given, reduce), x.dtype, CastMode.CAST_RINT)
    return _scattered(x, axis, where, src, reduce)


@OperationRow(
    opcodes={"TT": "SCATTER_ELEMENT", "TTT": "SCATTER"},
    like="scatter",
    example="pypto.scatter_(out, 1, pypto.reshape(at, [2, 1]), 9.0)",
    is_method=True,
)
def scatter_(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor | ElementLike | float,
    *,
    reduce: str | None = None,
) -> Tensor:
    """Scatter in place: the input itself, which takes over the result of `scatter`.

    Args:
        input: a tensor that the kernel writes, of the dtypes below.

    Returns:
        The input.

    Raises:
        TypeError: an input that the kernel does not write, or no kernel.
    """
    found = replayable_operation(scatter)(input, dim, index, src, reduce=reduce)
    input.move(found)
    return input


def _check_fit(name: str, x: Tensor, index: Tensor, source: Tensor | None, axis: int) -> None:
    for most, free in ((x, axis), *([] if source is None else [(source, None)])):
        if index.dim != most.dim or any(
            i > m for k, (i, m) in enumerate(zip(index.shape, most.shape, strict=True)) if k != free
        ):
            raise ShapeError(
                f"{name} along {axis}: an index of {index.shape} does not fit {x.shape}"
                f"{'' if source is None else f' and {source.shape}'}; as many dimensions, no longer"
            )


def _scattered(
    x: Tensor, axis: int, index: Tensor, src: Tensor | ElementLike | float, reduce: str | None
) -> Tensor:
    fmt = x.dtype.number_format
    shape, valid = tuple(map(int, x.shape)), tuple(x.valid_shape)
    held = held_by(x) if 0 not in valid else None
    indices = held_indices("scatter", index, valid[axis])
    if isinstance(src, Tensor):
        given = held_by(src)
        region = [min(a, b) for a, b in zip(index.valid_shape, src.valid_shape, strict=True)]
    else:
        given = converted("scatter", src, x.dtype).enclosure(fmt)
        region = index.valid_shape
    if held is None or indices is None or given is None or 0 in region:
        return Tensor._from_result(shape, x.dtype, data=held, valid=valid)
    region = [r if k == axis else min(r, valid[k]) for k, r in enumerate(region)]
    box = slices((0,) * x.dim, region)
    cause = recording.causes().index_here("scatter")
    sums = None
    if reduce == "add" and ASSUME_SUM_ORDER not in trust("scatter").assumed:
        whole = [valid[axis] if k == axis else each for k, each in enumerate(region)]
        sums = sums_from(held[slices((0,) * x.dim, whole)], fmt)
    result = writing.scatter(
        held,
        indices[box],
        given[box] if isinstance(src, Tensor) else given,
        fmt,
        axis=axis,
        join=None if reduce is None else partial(joined_in_memory, _REDUCTIONS[reduce], fmt, cause),
        sums=sums,
        cause=cause,
        trust=trust("scatter"),
    )
    return Tensor._from_result(shape, x.dtype, data=result, valid=valid)


def joined_in_memory(
    name: str, fmt: Format, cause: int, held: Enclosure, given: Enclosure
) -> Enclosure:
    """An addition or multiplication of the scalar unit, or of memory: integers wrap."""
    if fmt is INT8:
        wide = [_widened(x) for x in (held, given)]
        result = arithmetic.evaluate(OPERATIONS[name], wide, INT16, trust=trust(name), cause=cause)
        return _wrapped(result, cause)
    wide = [converted_to(x, fmt, FP32) if fmt is BF16 else x for x in (held, given)]
    runs_in = FP32 if fmt is BF16 else fmt
    result = arithmetic.evaluate(OPERATIONS[name], wide, runs_in, trust=trust(name), cause=cause)
    # 24 bits make the second rounding harmless.
    return converted_to(result, FP32, BF16) if fmt is BF16 else result


def _widened(x: Enclosure) -> Enclosure:
    """INT8 as INT16."""
    values, held = x.values.astype(np.int16), x.interval
    if held is None:
        return Enclosure(values=values)
    low, high = (end.astype(np.int16) for end in (held.low, held.high))
    return Enclosure(values=values, interval=replace(held, low=low, high=high))


def _wrapped(x: Enclosure, cause: int) -> Enclosure:
    """The low 8 bits of INT16; any, where the ends differ and do not fit."""
    values = x.values.astype(np.int8)
    if x.interval is None:
        return Enclosure(values=values)
    fits = (x.low >= INT8.min) & (x.high <= INT8.max) | (x.low == x.high)
    low, high = (
        np.where(fits, end.astype(np.int8), np.int8(limit))
        for end, limit in ((x.low, INT8.min), (x.high, INT8.max))
    )
    causes = np.where(fits, x.interval.cause, np.uint16(cause))
    interval = arithmetic.Interval(low=low, high=high, may_be_nan=None, cause=causes)
    return Enclosure(values=values, interval=interval)


def sums_from(start: Enclosure, fmt: Format) -> RunningSums | None:
    """The terms of float sums, to be taken up; None for integers, which wrap."""
    return RunningSums(start, fmt) if isinstance(fmt, FloatFormat) else None


@OperationRow(
    opcodes={"TTT": "INDEX_OUTCAST"},
    # Upstream's page names none of 8 bits; its test of mxfp8 and hif8 prologs writes these.
    dtypes=everywhere(*FLOATS, *COPIED[3:6], ascend_950=(DataType.DT_FP8E4M3, DataType.DT_HF8)),
    index_dtypes=everywhere(DataType.DT_INT32, DataType.DT_INT64, DataType.DT_INT16),
    instruction="copy_ubuf_to_gm, a row at a time",
    source="pypto tileop/vector/index_outcast.h: negative indices are left out",
    example="pypto.scatter_update(x, -2, pypto.reshape(row, [1, 2]), y)",
    is_method=True,
)
def scatter_update(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Write rows: out[index[i][j]] = src[i * s + j] of two dimensions, s = index.shape[1].

    Of four, [blocks, rows of a block, 1, columns], the first two count as one, and src is [b, s, 1,
    columns]. A negative index writes nothing. Of equal ones any may be the last.

    Args:
        input: FP32, FP16, BF16, INT32, INT16 or INT8; it stays as it is, assign the result to it.
        dim: -2.
        index: [b, s], INT64, INT32 or INT16.
        src: as many rows as there are indices, of the input's dtype.

    Returns:
        A tensor of the input's dtype and shape.

    Raises:
        TypeError: other dtypes.
        ValueError: another dimension.
        ShapeError: other shapes.
        IndexError: an index beyond the input's rows.
        TileShapeError: a tile that does not hold whole rows, or cuts those of two batches.
    """
    name = "scatter_update"
    x, where = check_operand(name, input, in_gm=True), index_tensor(name, index)
    source = check_operand(name, src)
    same_dtype(name, x, source)
    if dim != -2:
        raise ValueError(f"{name} takes dimension -2, not {dim}")
    shape, rows_of = list(map(int, x.shape)), list(map(int, where.shape))
    wanted = [int(np.prod(rows_of)), shape[-1]] if x.dim == 2 else [*rows_of, 1, shape[-1]]
    if (
        x.dim not in (2, 4)
        or where.dim != 2
        or list(source.shape) != wanted
        or (x.dim == 4 and shape[2] != 1)
    ):
        raise ShapeError(
            f"{name} takes [rows, d], [b, s] and [b * s, d], or [blocks, rows, 1, d], [b, s] and "
            f"[b, s, 1, d]; got {x.shape}, {where.shape} and {source.shape}"
        )
    _check_rows_of_tile(source, rows_of[1])
    held, rows = held_by(x), int(np.prod(x.valid_shape[:-1]))
    indices = held_indices(name, where, rows, least=-(2**63))
    if list(x.valid_shape[1:]) != shape[1:]:
        raise ValueError(f"{name}: of {shape} only {x.valid_shape} hold data; whole rows must")
    if held is None or indices is None or 0 in source.valid_shape:
        return Tensor._from_result(tuple(shape), x.dtype, data=held, valid=tuple(x.valid_shape))
    columns, batches = source.valid_shape[-1], list(rows_of)
    if x.dim == 4:
        batches = source.valid_shape[:2]
        indices = indices[: batches[0], : batches[1]]
    numbers = np.arange(indices.shape[0])[:, None] * batches[1] + np.arange(indices.shape[1])
    is_there = numbers < np.prod(source.valid_shape[:-1])
    given = held_by(source, lambda array: array.reshape((-1, columns))[numbers[is_there]])
    if given is None:
        return Tensor._from_result(tuple(shape), x.dtype, valid=tuple(x.valid_shape))
    flat = indices.map(lambda array: np.broadcast_to(array[is_there][:, None], given.shape))
    fmt = x.dtype.number_format
    result = writing.scatter(
        held.reshape((rows, shape[-1])),
        flat,
        given,
        fmt,
        axis=0,
        in_order=False,
        skips_negative=True,
        cause=recording.causes().index_here(name),
        trust=trust(name),
    )
    valid = tuple(x.valid_shape)
    return Tensor._from_result(tuple(shape), x.dtype, data=result.reshape(valid), valid=valid)


def _check_rows_of_tile(source: Tensor, batch: int) -> None:
    entries = current().vec_tile_shapes
    shape = tuple(map(int, source.shape))
    if tile_of("scatter_update", shape) is None:
        return
    divides = entries[0] % batch == 0 or batch % entries[0] == 0
    if entries[len(shape) - 1] < shape[-1] or (source.dim == 2 and not divides):
        raise TileShapeError(
            f"scatter_update: a tile holds whole rows of {shape[-1]}, and of two dimensions a "
            f"divisor or a multiple of {batch} of them; the tile shape is {list(entries)}"
        )


@OperationRow(
    opcodes={"TTT": "INDEX_PUT"},
    dtypes=everywhere(*COPIED, DataType.DT_INT64, DataType.DT_UINT64),
    index_dtypes=everywhere(*_WHOLE),
    added=everywhere(*NUMBERS),
    instruction="copy_ubuf_to_gm, with atomic addition where it accumulates",
    source="pypto docs/zh/api/operation/pypto-index_put_.md: the result of repeated indices is "
    "open",
    fidelity=Fidelity.BOUNDED,
    assumes=_ROUNDED,
    example="pypto.index_put_(out, [at], x)",
)
def index_put_(
    input: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False
) -> None:
    """Write to the input: input[indices[0][i], indices[1][i], ...] = values[i].

    Where several indices are equal, any of their values may stay; added up, they come in any order.

    Args:
        input: any numbers; accumulating: FP32, FP16, BF16, INT32 or INT16.
        indices: one tensor of integers, of one dimension, for each of the first dimensions.
        values: [as many as indices, the rest of the input's dimensions], of the input's dtype.
        accumulate: add instead.

    Raises:
        TypeError: other dtypes, an input that the kernel does not write, or no kernel.
        ShapeError: other shapes.
        IndexError: an index outside the input.
    """
    name = "index_put_"
    added = dtypes_of(name, "added")
    x, source = check_operand(name, input, in_gm=True), check_operand(name, values)
    same_dtype(name, x, source)
    if not isinstance(indices, (list, tuple)) or not 1 <= len(indices) <= x.dim:
        raise TypeError(f"{name} takes a tuple of 1 to {x.dim} tensors of indices, not {indices!r}")
    where = [index_tensor(name, each) for each in indices]
    accumulate = flag(name, "accumulate", accumulate)
    if accumulate and x.dtype not in added:
        raise TypeError(f"{name} accumulates {', '.join(map(format, added))}, not {x.dtype}")
    shape = tuple(map(int, x.shape))
    rest = shape[len(where) :]
    count = int(source.shape[0])
    if any(list(each.shape) != [count] for each in where) or tuple(source.shape[1:]) != rest:
        raise ShapeError(
            f"{name}: an input of {list(shape)} with {len(where)} tensors of indices takes them as "
            f"[n] and values as {['n', *rest]}; got {[list(each.shape) for each in where]} and "
            f"{source.shape}"
        )
    for each in (x, source, *where):
        if each.valid_shape != list(each.shape):
            raise ValueError(f"{name} takes tensors that hold data everywhere, not {each!r}")
    held, given = held_by(x), held_by(source)
    parts = [held_indices(name, each, shape[k]) for k, each in enumerate(where)]
    if held is None or given is None:
        x.move(Tensor._from_result(shape, x.dtype))
        return
    fmt = x.dtype.number_format
    flat = _flattened([part for part in parts if part is not None], shape)
    leading, width = int(np.prod(shape[: len(where)])), int(np.prod(rest))
    target, cause = held.reshape((leading, width)), recording.causes().index_here(name)
    result = writing.scatter(
        target,
        flat.map(lambda array: np.broadcast_to(array[:, None], (count, width))),
        given.reshape((count, width)),
        fmt,
        axis=0,
        join=partial(joined_in_memory, "add", fmt, cause) if accumulate else None,
        in_order=False,
        sums=sums_from(target, fmt) if accumulate else None,
        cause=cause,
        trust=trust("index_put_"),
    )
    x.move(Tensor._from_result(shape, x.dtype, data=result.reshape(shape)))


def _flattened(parts: Sequence[Enclosure], shape: Sequence[int]) -> Enclosure:
    """One index for several; its candidates hold theirs, for it rises with each of them.

    It has one below 0 where a candidate of theirs lies outside.
    """

    def flat(arrays: Sequence[np.ndarray]) -> np.ndarray:
        found = np.zeros(arrays[0].shape, np.int64)
        for length, array in zip(shape, arrays, strict=False):
            found = found * length + array.astype(np.int64)
        return found

    values = flat([x.values for x in parts])
    if all(x.interval is None for x in parts):
        return Enclosure(values=values)
    outside = np.logical_or.reduce(
        [(x.low < 0) | (x.high >= length) for length, x in zip(shape, parts, strict=False)]
    )
    low, high = flat([x.low for x in parts]), flat([x.high for x in parts])
    causes = [np.where(x.certain(), 0, x.interval.cause) for x in parts if x.interval is not None]
    interval = arithmetic.Interval(
        low=np.where(outside, -1, low),
        high=high,
        may_be_nan=None,
        cause=np.max(causes, axis=0).astype(np.uint16),
    )
    return Enclosure(values=values, interval=interval)


@OperationRow(
    opcodes={"TT": "ATOMIC_RMW"},
    dtypes=everywhere(*NUMBERS),
    lacked_by=("0.2.0",),
    instruction="copy_ubuf_to_gm with atomic addition",
    source="pypto docs/zh/api/operation/pypto-atomic_add.md: the order of additions by several "
    "cores is open",
    fidelity=Fidelity.BOUNDED,
    assumes=_ROUNDED,
    example="pypto.atomic_add(x, [0, 0], out)",
)
def atomic_add(src: Tensor, offsets: Sequence[int], dst: Tensor) -> None:
    """Add a tensor to a part of another in place, as cores may do at the same time.

    From the second addition to an element on, the order is open, and so is the result of floats.

    Args:
        src: FP32, FP16, BF16, INT32 or INT16; integers wrap.
        offsets: where it goes.
        dst: an output of the kernel, or a tensor that it declared, of `src`'s dtype.

    Raises:
        TypeError: other dtypes, or a tensor that the kernel does not write.
        ValueError: a part that does not fit, or of which the kernel has not written all.
    """
    x, target = (check_operand("atomic_add", each, in_gm=True) for each in (src, dst))
    fmt = same_dtype("atomic_add", x, target).number_format
    start = indexing.start_of("offsets", offsets, target.dim)
    valid = indexing.ints("shape", x.valid_shape, target.dim)
    start = indexing.placed(start, valid, tuple(map(int, target.shape)), "dst")
    offset = start.offset
    buffer = target.memory()
    term = held_by(x) if 0 not in valid else None
    if term is None:
        if 0 not in valid:
            target.assemble(Tensor._from_result(valid, x.dtype), offset)
        return
    before = held_by(target.view(valid, offset))
    assert before is not None
    box, cause = slices(offset, valid), recording.causes().index_here("atomic_add")
    total = joined_in_memory("add", fmt, cause, before, term)
    sums = buffer.sums
    if isinstance(fmt, FloatFormat):
        whole = None if sums else buffer.read((0,) * target.dim, buffer.shape)
        sums = sums or (RunningSums(whole, fmt) if whole else None)
        assert sums is not None
        sums.add(box, term)
        total = sums.widened(total, box, trust("atomic_add"), cause)
    buffer.sums = None  # what is assembled is no new start
    target.assemble(Tensor._from_result(valid, x.dtype, data=total), offset)
    buffer.sums = sums
    target.lose(start, valid)
