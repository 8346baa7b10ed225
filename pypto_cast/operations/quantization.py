"""quantize and dequantize, in the steps of pto-isa's TQuant and TDequant; quant_mx of the 950.

Sources: pto-isa a2a3/TQuant.hpp, TDequant.hpp; upstream pypto, op/quantization.py; of quant_mx its
docs/zh/api/operation/pypto-quant_mx.md, vector/quantization.cpp and the texts that
`simulator.arithmetic.microscaling` names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.cast.api import cast
from pypto_cast.cast.cast_plan import rest_on_readings
from pypto_cast.dtypes.data_types import (
    CastMode,
    DataType,
    DequantScaleRoundingMode,
    SaturationMode,
    check_dtype,
)
from pypto_cast.operations.elementwise_functions import add, mul, sub
from pypto_cast.operations.lowering import (
    axis_of,
    check_operand,
    check_tensor,
    converted_to,
    held_by,
    tile_of,
)
from pypto_cast.operations.movement import unsqueeze
from pypto_cast.operations.operation_rows import FLOATS, OperationRow, everywhere, on_950
from pypto_cast.options import context as options
from pypto_cast.recording.recording import trust
from pypto_cast.tensors.tensor import Tensor
from simulator.arithmetic import Enclosure
from simulator.corrections import E2M1_NAN
from simulator.numbers.formats import E2M1, FP32, FloatFormat
from tiling.grid import Shape
from tiling.plan import ShapeError, TileShapeError

_FP32 = DataType.DT_FP32


@OperationRow(
    dtypes=everywhere(_FP32),
    lacked_by=("0.2.0",),
    parts=("mul", "add"),
    opcodes={"TT": "QUANTIZE_SYM", "TTT": "QUANTIZE_ASYM"},
    example="pypto.quantize(x, y[:, 0:1].reshape([2]), pypto.DT_INT8, -1)",
)
def quantize(
    input: Tensor,
    scale: Tensor,
    otype: DataType,
    axis: int,
    zero_points: Tensor | None = None,
) -> Tensor:
    """Multiply by scales, add zero points and cast by FP32, INT32, FP16 to 8 bits, clamped.

    Args:
        input: FP32.
        scale: FP32, without the axis along which it is the same.
        otype: DT_INT8; DT_UINT8 with zero points.
        axis: the last (-1: a scale for each row) or the one before (-2: for each column).
        zero_points: FP32 as `scale`, or none.

    Returns:
        A tensor of `otype`; each of the three casts rounds to the nearest, ties to even.

    Raises:
        TypeError: other dtypes.
        ShapeError: scales of another shape.
        ValueError: another axis.
    """
    x = check_operand("quantize", input)
    wanted = DataType.DT_INT8 if zero_points is None else DataType.DT_UINT8
    if check_dtype(otype) is not wanted:
        raise TypeError(
            f"quantize gives {wanted} {'without' if zero_points is None else 'with'} zero_points, "
            f"not {otype}"
        )
    factors = _along("quantize", x, scale, axis)
    offsets = None if zero_points is None else _along("quantize", x, zero_points, axis)
    scaled = mul(x, factors)
    if offsets is not None:
        scaled = add(scaled, offsets)
    for dtype in (DataType.DT_INT32, DataType.DT_FP16, otype):
        scaled = cast(scaled, dtype, CastMode.CAST_RINT, SaturationMode.ON)
    return scaled


@OperationRow(
    dtypes=everywhere(DataType.DT_INT8, DataType.DT_INT16),
    lacked_by=("0.2.0",),
    parts=("sub", "mul"),
    opcodes={"TT": "DEQUANTIZE", "TTT": "DEQUANTIZE"},
    example="pypto.dequantize(i, y[:, 0:1].reshape([2]), pypto.DT_FP32, -1)",
)
def dequantize(
    input: Tensor,
    scale: Tensor,
    otype: DataType,
    axis: int,
    zero_points: Tensor | None = None,
) -> Tensor:
    """Cast to FP32, subtract zero points and multiply by scales.

    Args:
        input: INT8 or INT16.
        scale: FP32, without the axis along which it is the same.
        otype: DT_FP32.
        axis: as for `quantize`.
        zero_points: FP32 as `scale`, or none.

    Returns:
        An FP32 tensor of the input's shape.

    Raises:
        TypeError: other dtypes.
        ShapeError: scales of another shape.
        ValueError: another axis.
    """
    x = check_operand("dequantize", input)
    if check_dtype(otype) is not _FP32:
        raise TypeError(f"dequantize gives DT_FP32, not {otype}")
    factors = _along("dequantize", x, scale, axis)
    offsets = None if zero_points is None else _along("dequantize", x, zero_points, axis)
    if x.dtype is DataType.DT_INT8:
        x = cast(x, DataType.DT_FP16)
    wide = cast(x, _FP32)
    return mul(wide if offsets is None else sub(wide, offsets), factors)


def _along(name: str, x: Tensor, values: Tensor, axis: int) -> Tensor:
    check_tensor(name, values, [_FP32])
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise TypeError(f"{name}: the axis is an int, not {axis!r}")
    last = axis - x.dim if axis >= 0 else axis
    if last not in (-1, -2) or -last > x.dim:
        raise ValueError(f"{name} takes the last axis or the one before, not {axis} of {x.dim}")
    if x.dim == 1:
        wanted: Sequence[int] = [1]
    else:
        wanted = [int(s) for k, s in enumerate(x.shape) if k - x.dim != last]
    if list(values.shape) != list(wanted):
        raise ShapeError(f"{name}: scales and zero points have shape {wanted}, not {values.shape}")
    return values if x.dim == 1 else unsqueeze(values, last)


_PAIR_ELEMS: Final = 64
"""Elements of two blocks, whose scales stand side by side."""
_ROW_BYTES: Final = 256
_QUANTISED: Final[Mapping[DataType, tuple[DataType, ...]]] = {
    DataType.DT_FP8E4M3: FLOATS,
    DataType.DT_FP4_E2M1X2: FLOATS[1:],
}
"""The dtypes of the input by that of the codes."""


@OperationRow(
    dtypes=on_950(*FLOATS),
    lacked_by=("0.2.0",),
    remark="by upstream's golden, which its test compares with the device by equality",
    example="pypto.quant_mx(pypto.full([2, 64], 3.5, pypto.DT_FP32), performance_mode=False)",
    is_method=True,
)
def quant_mx(
    input: Tensor,
    quant_dtype: DataType = DataType.DT_FP8E4M3,
    mode: DequantScaleRoundingMode = DequantScaleRoundingMode.ROUND_DOWN,
    axis: int = -1,
    performance_mode: bool = True,
) -> tuple[Tensor, Tensor]:
    """Quantise to MX: every 32 elements along an axis share a power of two, the scale.

    An element is divided by its scale and rounded once, to the nearest, ties to even, and clamped;
    -0 stays -0. With M the greatest magnitude of a block, L the largest number of the destination
    and P the largest power of two up to it, the scale is the largest power of at most M / P
    (ROUND_DOWN, OCP) or the least one of at least M / L (ROUND_UP, NV), between 2**-127 and 2**127;
    of zeros 2**-127. NaN gives the scale NaN, and NaN to the whole block, which in FP4 is
    +0, or by the reading nan-e2m1 the largest number.
    Infinity counts as 2**128 in ROUND_DOWN and gives the scale 2**127 in ROUND_UP; it becomes the
    largest number of its sign.

    Args:
        input: FP32, FP16 or BF16.
        quant_dtype: DT_FP8E4M3; DT_FP4_E2M1X2 of FP16 and BF16.
        mode: pypto.ROUND_DOWN or pypto.ROUND_UP, of the scale.
        axis: the last one, or the one before.
        performance_mode: along the last axis True takes rows of whole 256 B and False rows of
            whole 64 elements; it changes no bit.

    Returns:
        The codes, in the input's shape, and scales in DT_FP8E8M0: [..., ceil(n / 64), 2] along the
        last axis, [..., m / 64, n, 2] along the one before.

    Raises:
        TypeError: other dtypes or arguments.
        ShapeError: a length that upstream refuses.
        ValueError: another axis, or rows before the last that hold data in no whole 64.
        TileShapeError: a tile of another number of entries, or that divides rows or blocks.
    """
    x = check_operand("quant_mx", input)
    if check_dtype(quant_dtype) not in _QUANTISED:
        raise TypeError(f"quant_mx gives {', '.join(map(format, _QUANTISED))}, not {quant_dtype}")
    if x.dtype not in _QUANTISED[quant_dtype]:
        known = ", ".join(map(format, _QUANTISED[quant_dtype]))
        raise TypeError(f"quant_mx to {quant_dtype} takes {known}, not {x.dtype}; cast it first")
    if not isinstance(mode, DequantScaleRoundingMode):
        raise TypeError(f"quant_mx: mode is pypto.ROUND_DOWN or pypto.ROUND_UP, not {mode!r}")
    if not isinstance(performance_mode, bool):
        raise TypeError(f"quant_mx: performance_mode is True or False, not {performance_mode!r}")
    from_last = axis_of("quant_mx", axis, x.dim) - x.dim
    if from_last not in (-1, -2):
        raise ValueError(f"quant_mx takes the last axis or the one before, not {axis} of {x.dim}")
    shape, valid = tuple(map(int, x.shape)), tuple(x.valid_shape)
    is_last = from_last == -1
    _check_extents(shape, x.dtype, quant_dtype, is_last, performance_mode)
    if not is_last and valid[-2] % _PAIR_ELEMS:
        raise ValueError(
            f"quant_mx: of {valid[-2]} rows that hold data, blocks along axis -2 take whole "
            f"{_PAIR_ELEMS}"
        )
    scale_shape, scale_valid = (_scales_of(each, is_last) for each in (shape, valid))
    held = held_by(x) if 0 not in valid else None
    if held is None:
        codes, scales = None, None
    else:
        codes, scales = _quantised(held, x.dtype, quant_dtype, mode, is_last)
    return (
        Tensor._from_result(shape, quant_dtype, data=codes, valid=valid),
        Tensor._from_result(scale_shape, DataType.DT_FP8E8M0, data=scales, valid=scale_valid),
    )


def _scales_of(shape: Shape, is_last: bool) -> Shape:
    if is_last:
        return (*shape[:-1], -(-shape[-1] // _PAIR_ELEMS), 2)
    return (*shape[:-2], shape[-2] // _PAIR_ELEMS, shape[-1], 2)


def _units(dtype: DataType, quant_dtype: DataType, is_last: bool, in_rows: bool) -> dict[int, int]:
    """The elements of which an axis has a whole number, by axis."""
    if is_last:
        return {-1: 8 * _ROW_BYTES // dtype.number_format.bits if in_rows else _PAIR_ELEMS}
    of_codes = {-1: _PAIR_ELEMS} if quant_dtype.number_format.bits < 8 else {}
    return {-2: _PAIR_ELEMS, **of_codes}


def _check_extents(
    shape: Shape, dtype: DataType, quant_dtype: DataType, is_last: bool, in_rows: bool
) -> None:
    """Refuse lengths and tiles that divide blocks, or rows where they are taken whole.

    Raises:
        ShapeError: a length, with its unit.
        TileShapeError: an entry of the tile shape, or their number.
    """
    units = _units(dtype, quant_dtype, is_last, in_rows)
    for axis, unit in units.items():
        if shape[axis] % unit:
            raise ShapeError(
                f"quant_mx of {dtype} to {quant_dtype} along axis {-1 if is_last else -2}: axis "
                f"{axis} of {list(shape)} must be a multiple of {unit}; pad it to "
                f"{-(-shape[axis] // unit) * unit}"
            )
    if tile_of("quant_mx", shape, exact_rank=True) is None:
        return
    tile = options.current().vec_tile_shapes
    if is_last and in_rows and tile[-1] != shape[-1]:
        raise TileShapeError(
            f"quant_mx in performance mode takes whole rows: the last entry of tile shape "
            f"{list(tile)} must be {shape[-1]}, or performance_mode False"
        )
    for axis, unit in () if is_last else units.items():
        if tile[axis] % unit:
            raise TileShapeError(
                f"quant_mx to {quant_dtype} along axis -2: entry {axis} of tile shape "
                f"{list(tile)} must be a multiple of {unit}"
            )


def _quantised(
    held: Enclosure,
    dtype: DataType,
    quant_dtype: DataType,
    mode: DequantScaleRoundingMode,
    is_last: bool,
) -> tuple[Enclosure, Enclosure]:
    """Codes and scales of valid elements; beyond the end of a row stand zeros."""
    from simulator.arithmetic.microscaling import (  # loaded when first used
        BLOCK_ELEMS,
        ScaleRounding,
        quantised_blocks,
    )

    dst = quant_dtype.number_format
    assert isinstance(dst, FloatFormat)
    rest_on_readings("quant_mx", (E2M1_NAN.name,) if dst is E2M1 else ())
    rounding = (
        ScaleRounding.DOWN if mode is DequantScaleRoundingMode.ROUND_DOWN else ScaleRounding.UP
    )
    wide = held if dtype is _FP32 else converted_to(held, dtype.number_format, FP32)
    lines = wide if is_last else wide.map(lambda array: np.swapaxes(array, -1, -2))
    shape, length = lines.shape, lines.shape[-1]
    whole = -(-length // _PAIR_ELEMS) * _PAIR_ELEMS

    def in_blocks(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        padding = [(0, 0)] * (len(shape) - 1) + [(0, whole - length)]
        return np.pad(array, padding).reshape(*shape[:-1], -1, BLOCK_ELEMS)

    codes, scales = quantised_blocks(
        lines.map(in_blocks),
        dst,
        rounding,
        trust=trust("quant_mx"),
        corrections=options.current().corrections,
    )
    codes = codes.map(lambda array: array.reshape(*shape[:-1], whole)[..., :length])
    scales = scales.map(lambda array: array.reshape(*shape[:-1], -1, 2))
    if is_last:
        return codes, scales
    return (
        codes.map(lambda array: np.ascontiguousarray(np.swapaxes(array, -1, -2))),
        scales.map(lambda array: np.ascontiguousarray(np.swapaxes(array, -2, -3))),
    )
