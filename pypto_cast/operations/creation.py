"""Tensors made of numbers: full, zeros, ones, arange.

Sources: upstream pypto, python/pypto/op/creation.py and
framework/src/interface/operation/vector/{tensor_transformation,indexing}.cpp.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Final

import numpy as np

from pypto_cast.dtypes.data_types import DataType, check_dtype
from pypto_cast.operations.lowering import check_memory_of, converted_to, dtypes_of, tile_of
from pypto_cast.operations.operation_rows import COPIED, OperationRow, everywhere
from pypto_cast.operations.scalar_operands import filling
from pypto_cast.recording import recording
from pypto_cast.tensors.indexing import ints
from pypto_cast.tensors.operators import ElementLike, Number
from pypto_cast.tensors.tensor import Tensor
from pypto_cast.tensors.undecided import KernelNumber
from simulator.numbers.formats import BF16, FP32, INT32
from tiling.grid import Shape
from tiling.plan import check_shape
from tiling.ub import ElementBits

_LEAST_STEP: Final = 1e-8


def one_element(value: object, dim: int) -> Tensor:
    """An INT32 number in so many dimensions, as an assignment to an element writes it."""
    if isinstance(value, bool) or not isinstance(value, int | KernelNumber):
        raise TypeError(f"a single element is assigned an int, not {value!r}")
    number = filling("an assigned element", value, DataType.DT_INT32).enclosure(INT32)
    shape = (1,) * dim
    return Tensor._from_result(shape, DataType.DT_INT32, data=number.reshape(shape))


@recording.replayable
@OperationRow(
    dtypes=everywhere(*COPIED, DataType.DT_BOOL),
    remark="one number, rounded once",
    opcodes={"S": "VEC_DUP"},
    example="pypto.full([2, 2], 0.5, pypto.DT_FP32)",
)
def full(
    size: Sequence[int],
    fill_value: Number | ElementLike,
    dtype: DataType,
    *,
    valid_shape: Sequence[int] | None = None,
) -> Tensor:
    """Make a tensor of one number, rounded once to the nearest from FP32 in BF16 and FP16.

    Args:
        fill_value: the number.

    Raises:
        TypeError: a dtype that upstream does not fill, or no number.
        OverflowError: a number that an integer dtype does not hold.
        ShapeError: a shape that no operation takes.
    """
    filled = dtypes_of("full")
    if check_dtype(dtype) not in filled:
        raise TypeError(f"full makes {', '.join(map(format, filled))}, not {dtype}")
    shape = _size("full", size)
    valid = shape if valid_shape is None else ints("valid_shape", valid_shape, len(shape))
    if any(v > s for v, s in zip(valid, shape, strict=True)):
        raise ValueError(f"full: valid_shape {list(valid)} exceeds {list(shape)}")
    from simulator.arithmetic.native.operation_nodes import is_deferring  # loaded when first used

    constant = filling("full", fill_value, dtype)
    fmt = dtype.number_format
    check_memory_of("full", tile_of("full", shape), [(shape, max(fmt.bits, 8))])
    if 0 in valid:
        return Tensor._from_result(shape, dtype, valid=valid)
    value = constant.enclosure(FP32 if fmt is BF16 else fmt)
    if fmt is BF16:
        value = converted_to(value, FP32, BF16)
    if is_deferring():  # whoever takes it only reads it
        data = value.map(lambda number: np.broadcast_to(number, valid))
    else:
        data = value.map(lambda number: np.full(valid, number))
    return Tensor._from_result(shape, dtype, data=data, valid=valid)


@OperationRow(like="full", example="pypto.zeros(2, 2, dtype=pypto.DT_FP32)")
def zeros(*size: int | Sequence[int], dtype: DataType | None = None) -> Tensor:
    """Make a tensor of zeros, FP32 unless a dtype is given."""
    return _of("zeros", 0, size, dtype)


@OperationRow(like="full", example="pypto.ones(2, 2, dtype=pypto.DT_FP32)")
def ones(*size: int | Sequence[int], dtype: DataType | None = None) -> Tensor:
    """Make a tensor of ones, FP32 unless a dtype is given."""
    return _of("ones", 1, size, dtype)


def _of(
    name: str, value: int, size: tuple[int | Sequence[int], ...], dtype: DataType | None
) -> Tensor:
    entries = size[0] if len(size) == 1 and isinstance(size[0], (list, tuple)) else size
    shape = _size(name, entries)
    return full(shape, value, DataType.DT_FP32 if dtype is None else dtype)


@OperationRow(
    opcodes={"S": "RANGE"},
    remark="INT32; FP32 in the steps of upstream's range, each rounded to the nearest",
    example="pypto.arange(4)",
)
def arange(*bounds: Number) -> Tensor:
    """Make a tensor of evenly spaced numbers: INT32 of ints, FP32 if any bound is a float.

    FP32 numbers are not start + i * step everywhere: the first 8 of a tile are, then blocks of 8
    and repeats of 64 are added to, as upstream's range does.

    Args:
        bounds: stop; or start and stop; or start, stop and step. The stop is not included.

    Raises:
        TypeError: another number of bounds, or no numbers.
        ValueError: a step of 0, or no element.
        OverflowError: a bound beyond INT32 or FP32.
    """
    if not 1 <= len(bounds) <= 3 or not all(
        isinstance(b, (int, float, KernelNumber)) for b in bounds
    ):
        raise TypeError(f"arange takes (stop), (start, stop) or (start, stop, step), not {bounds}")
    bounds = tuple(b if isinstance(b, float) else int(b) for b in bounds)
    if not all(math.isfinite(b) for b in bounds if isinstance(b, float)):
        raise ValueError(f"arange takes finite bounds, not {bounds}")
    start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    dtype = DataType.DT_FP32 if any(isinstance(b, float) for b in bounds) else DataType.DT_INT32
    for bound in (start, stop, step):
        filling("arange", bound, dtype)
    if math.fabs(step) < _LEAST_STEP:
        raise ValueError(f"arange: the step {step} is 0, or counts as it")
    length = math.ceil((stop - start) / step)
    if length < 1:
        raise ValueError(f"arange: nothing lies between {start} and {stop} in steps of {step}")
    shape = _size("arange", [length])
    tile = tile_of("arange", shape)
    extent = length if tile is None else tile[0]
    from simulator.arithmetic.indexed.by_place import spaced  # loaded when first used

    fmt = dtype.number_format
    tiles = [spaced(start, step, k, min(extent, length - k), fmt) for k in range(0, length, extent)]
    return Tensor._from_result(shape, dtype, data=np.concatenate(tiles))


def _size(name: str, size: object) -> Shape:
    if not isinstance(size, (list, tuple)) or any(not hasattr(s, "__index__") for s in size):
        raise TypeError(f"{name} takes a size of ints, not {size!r}")
    shape = tuple(s.concrete() if isinstance(s, KernelNumber) else operator.index(s) for s in size)
    check_shape(shape, ElementBits(src=8, dst=8), name)
    return shape
