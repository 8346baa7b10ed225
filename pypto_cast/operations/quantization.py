"""quantize and dequantize, in the steps of pto-isa's TQuant and TDequant.

Sources: pto-isa a2a3/TQuant.hpp, TDequant.hpp; upstream pypto, op/quantization.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from pypto_cast.cast.api import cast
from pypto_cast.dtypes.data_types import CastMode, DataType, SaturationMode, check_dtype
from pypto_cast.operations.elementwise_functions import add, mul, sub
from pypto_cast.operations.lowering import check_operand, check_tensor
from pypto_cast.operations.movement import unsqueeze
from pypto_cast.operations.operation_rows import OperationRow, on_a2_a3
from pypto_cast.tensors.tensor import Tensor
from tiling.plan import ShapeError

_FP32 = DataType.DT_FP32


@OperationRow(
    dtypes=on_a2_a3(_FP32),
    lacked_by=("0.2.0",),
    parts=("mul", "add"),
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
    dtypes=on_a2_a3(DataType.DT_INT8, DataType.DT_INT16),
    lacked_by=("0.2.0",),
    parts=("sub", "mul"),
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
