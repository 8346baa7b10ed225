"""Tensors with more in them than they are made of: pad, fillpad, one_hot.

Sources: upstream pypto, framework/src/interface/operation/vector/pad.cpp and math.cpp, op/other.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from pypto_cast.dtypes.data_types import DataType
from pypto_cast.operations.lowering import (
    check_memory_of,
    check_operand,
    held_by,
    held_indices,
    index_tensor,
    tile_of,
)
from pypto_cast.operations.operation_rows import COPIED, OperationRow, everywhere
from pypto_cast.operations.scalar_operands import Constant, converted, number, whole_number
from pypto_cast.options.context import current
from pypto_cast.recording.buffers import slices
from pypto_cast.tensors.indexing import ints
from pypto_cast.tensors.tensor import Tensor
from simulator.arithmetic import Enclosure, Interval, join_arrays
from simulator.arithmetic.interval import unknown
from simulator.numbers.formats import INT64, FloatFormat
from tiling.grid import Shape
from tiling.plan import ShapeError, TileShapeError, check_shape
from tiling.ub import ElementBits

_padding = partial(
    OperationRow,
    dtypes=everywhere(*COPIED),
    remark="bits are copied, the number is rounded once",
)


@_padding(opcodes={"T": "PAD"}, example="pypto.pad(x, [0, 1, 0, 0])")
def pad(x: Tensor, padding: Sequence[int], mode: str = "constant", value: float = 0) -> Tensor:
    """Lengthen the last two dimensions by a number, to the right and below.

    Args:
        x: FP32, FP16, BF16 or integers of up to 32 bits, with data everywhere.
        padding: [0, right] of one dimension, [0, right, 0, below] of more.
        mode: "constant".
        value: the number, rounded to the dtype; an int beside integers.

    Raises:
        TypeError: another dtype, a float beside integers, or a padding that is no list of ints.
        ValueError: another mode or padding, or a tensor that holds data in a part only.
        OverflowError: an int that the dtype does not hold.
        TileShapeError: too few entries, or a tile beyond UB.
    """
    given = check_operand("pad", x)
    wanted = 2 if given.dim == 1 else 4
    amounts = ints("padding", padding, wanted)
    if amounts[::2] != (0,) * (wanted // 2):
        raise ValueError(
            f"pad: upstream pads right and below, [0, right] or [0, right, 0, below], not {padding}"
        )
    filling = _filling("pad", given, mode, value)
    shape, valid = list(map(int, given.shape)), given.valid_shape
    if shape != valid:
        raise ValueError(f"pad: of {shape} only {valid} hold data; pypto.fillpad fills the rest")
    for axis, amount in zip((-1, -2), amounts[1::2], strict=False):
        shape[axis] += amount
    check_shape(tuple(shape), ElementBits(src=8, dst=8))
    return _filled("pad", given, tuple(shape), filling)


@_padding(opcodes={"T": "FILLPAD"}, is_method=True)
def fillpad(x: Tensor, mode: str = "constant", value: float = 0) -> Tensor:
    """Fill the part of a tensor of one or two dimensions that holds no data with a number.

    Args:
        x, mode, value: as for `pad`; the tensor may hold data in a part.

    Raises:
        TypeError, ValueError, OverflowError, TileShapeError: as for `pad`.
        ShapeError: more than two dimensions.
    """
    given = check_operand("fillpad", x)
    if given.dim > 2:
        raise ShapeError(f"fillpad takes one or two dimensions, not {given.shape}")
    filling = _filling("fillpad", given, mode, value)
    return _filled("fillpad", given, tuple(map(int, given.shape)), filling)


def _filling(name: str, x: Tensor, mode: str, value: float) -> Constant:
    if not isinstance(mode, str) or mode != "constant":
        raise ValueError(f'{name}: upstream has the mode "constant", not {mode!r}')
    if isinstance(value, float) and isinstance(x.dtype.format, FloatFormat):
        return converted(name, value, x.dtype)
    return number(name, value, x.dtype)


def _filled(name: str, x: Tensor, shape: Shape, filling: Constant) -> Tensor:
    fmt = x.dtype.number_format
    bits = max(8, fmt.bits)
    operands = [(tuple(map(int, x.shape)), bits), (shape, bits)]
    check_memory_of(name, tile_of(name, shape), operands)
    held = held_by(x) if 0 not in x.valid_shape else None
    if held is None and 0 not in x.valid_shape:
        return Tensor._from_result(shape, x.dtype)
    box = slices((0,) * x.dim, x.valid_shape)

    def fill(arrays: Sequence[np.ndarray]) -> np.ndarray:
        whole = np.broadcast_to(arrays[0], shape).copy()
        if len(arrays) > 1:
            whole[box] = arrays[1]
        return whole

    parts = [filling.enclosure(fmt), *([] if held is None else [held])]
    return Tensor._from_result(shape, x.dtype, data=join_arrays(fill, parts))


@OperationRow(
    index_dtypes=everywhere(
        *(DataType.DT_INT8, DataType.DT_INT16, DataType.DT_INT32, DataType.DT_INT64)
    ),
    opcodes={"T": "ONEHOT"},
    instruction="vector_dup 0, scalar stores of 1",
    source="pypto tileop/vector/onehot.h",
    example="pypto.one_hot(row, 32)",
)
def one_hot(input: Tensor, num_classes: int) -> Tensor:
    """INT64: 1 at the place that each element names along a new last dimension, else 0.

    Args:
        input: INT8, INT16, INT32 or INT64, of up to three dimensions.
        num_classes: the length of the new dimension.

    Returns:
        An INT64 tensor of the input's shape and one more dimension.

    Raises:
        TypeError: another dtype, or a number of classes that is no int.
        ValueError: no class.
        ShapeError: four dimensions.
        IndexError: an element that is no class.
        TileShapeError: a tile that does not hold all classes, or is beyond UB.
    """
    x = index_tensor("one_hot", input)
    count = whole_number("one_hot", "num_classes", num_classes)
    if count < 1:
        raise ValueError(f"one_hot: the number of classes is 1 or more, not {num_classes}")
    shape, valid = (*map(int, x.shape), count), (*x.valid_shape, count)
    check_shape(shape, ElementBits(src=8, dst=8))
    entries, tile = current().vec_tile_shapes, tile_of("one_hot", shape)
    if tile is not None and entries[x.dim] != count:
        raise TileShapeError(
            f"one_hot: entry {x.dim} of tile shape {list(entries)} must be the {count} classes"
        )
    check_memory_of("one_hot", tile, [(shape, 64)])
    held = held_indices("one_hot", x, count)
    if held is None:
        return Tensor._from_result(shape, DataType.DT_INT64, valid=valid)
    classes = np.arange(count)
    values = (held.values[..., None] == classes).astype(np.int64)
    if held.interval is None:
        return Tensor._from_result(shape, DataType.DT_INT64, data=values, valid=valid)
    outside = (held.low < 0) | (held.high >= count)
    low, high = (end[..., None].astype(np.int64) for end in (held.low, held.high))
    interval = Interval(
        low=((low == high) & (low == classes)).astype(np.int64),
        high=((low <= classes) & (classes <= high)).astype(np.int64),
        may_be_nan=None,
        cause=np.broadcast_to(held.interval.cause[..., None], values.shape),
    )
    if outside.any():  # a device would write there, into whatever it is
        interval = unknown(values, INT64, int(held.interval.cause[outside][0]))
    data = Enclosure(values=values, interval=interval)
    return Tensor._from_result(shape, DataType.DT_INT64, data=data, valid=valid)
