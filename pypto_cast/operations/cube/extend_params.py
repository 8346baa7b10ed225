"""Arguments of `matmul` beside its matrices: a bias, scales, ReLU.

Source: upstream pypto, python/pypto/op/matmul.py and
framework/src/interface/operation/cube_operation_impl.cpp (CheckBiasParam, CheckFixpipeParam).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.dtypes.data_types import DataType, ReLuType, TransMode
from pypto_cast.operations.lowering import check_tensor, converted_to, operand_values
from pypto_cast.tensors.tensor import Tensor
from simulator.arithmetic import Enclosure
from simulator.numbers.formats import FP32, FloatFormat
from tiling.grid import Shape
from tiling.plan import ShapeError

_LEAST_SCALE: Final = 1e-6
_LARGEST_SCALE: Final = float(np.finfo(np.float32).max)
_SHIFT_BIT: Final = 36
_OFFSET_BITS: Final = 0x1FF << 37
_SIGN_BIT: Final = 46
_BIAS: Final[Mapping[DataType, tuple[DataType, ...]]] = {
    DataType.DT_INT8: (DataType.DT_INT32,),
    DataType.DT_FP16: (DataType.DT_FP32, DataType.DT_FP16),
    DataType.DT_BF16: (DataType.DT_FP32,),
    DataType.DT_FP32: (DataType.DT_FP32,),
    **dict.fromkeys(
        (DataType.DT_FP8E5M2, DataType.DT_FP8E4M3, DataType.DT_FP4_E2M1X2),
        (DataType.DT_FP16, DataType.DT_BF16, DataType.DT_FP32),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendParams:
    """The dict `extend_params`, checked.

    Attributes:
        bias: what every sum of a column starts with.
        scale: of the whole matrix; 0 if there is none.
        scales: a 64-bit word for each column.
        relu: negative results become zero.
    """

    bias: Tensor | None = None
    scale: float = 0.0
    scales: Tensor | None = None
    relu: bool = False

    @property
    def is_scaled(self) -> bool:
        """A scale is given; upstream takes one below 0.000001 for none."""
        return abs(self.scale) > _LEAST_SCALE or self.scales is not None

    @property
    def is_empty(self) -> bool:
        """Nothing is asked for."""
        return self.bias is None and not self.is_scaled and not self.relu


def checked_params(given: object, dtype: DataType, shape: Shape) -> ExtendParams:
    """Read `extend_params`.

    Args:
        given: None or a dict; it is not modified.
        dtype: of the matrices.
        shape: of the result.

    Raises:
        TypeError: no dict, an unknown key, or a value of another type.
        ValueError: a rounding of FP32 operands, which A2/A3 does not have, or a scale that is no
            finite number.
        ShapeError: a bias or scales that are no row of as many columns.
    """
    if given is None:
        return ExtendParams()
    if not isinstance(given, dict):
        raise TypeError(f"matmul: extend_params must be a dict, not {given!r}")
    known = ("bias_tensor", "scale", "scale_tensor", "relu_type", "trans_mode")
    if unknown := [key for key in given if key not in known]:
        raise TypeError(f"matmul: extend_params takes {', '.join(known)}, not {unknown}")
    if given.get("trans_mode", TransMode.CAST_NONE) is not TransMode.CAST_NONE:
        raise ValueError(
            f"matmul: trans_mode {given['trans_mode']!r} rounds FP32 operands, which A2/A3 does not"
        )
    relu = given.get("relu_type", ReLuType.NO_RELU)
    if not isinstance(relu, ReLuType):
        raise TypeError(f"matmul: relu_type must be a pypto.ReLuType, not {relu!r}")
    scale = given.get("scale", 0.0)
    if isinstance(scale, bool) or not isinstance(scale, (int, float)):
        raise TypeError(f"matmul: scale must be a float, not {scale!r}")
    if not abs(scale) <= _LARGEST_SCALE:
        raise ValueError(f"matmul: scale must be a finite FP32 number, not {scale!r}")
    return ExtendParams(
        bias=_row("bias_tensor", given.get("bias_tensor"), _BIAS[dtype], shape, most_dims=3),
        scale=float(scale),
        scales=_row(
            "scale_tensor",
            given.get("scale_tensor"),
            (DataType.DT_UINT64, DataType.DT_INT64),
            shape,
            most_dims=4,
        ),
        relu=relu is ReLuType.RELU,
    )


def _row(
    name: str, x: object, dtypes: Sequence[DataType], shape: Shape, *, most_dims: int
) -> Tensor | None:
    if x is None:
        return None
    row = check_tensor(f"matmul: {name}", x, dtypes)
    extents = tuple(map(int, row.shape))
    batch = extents[:-2]
    takes_batch = 2 < len(shape) <= most_dims
    fits = len(extents) in ((2, len(shape)) if takes_batch else (2,))
    fits = fits and extents[-2:] == (1, shape[-1])
    if not fits or any(have not in (1, want) for have, want in zip(batch, shape, strict=False)):
        raise ShapeError(
            f"matmul: {name} of a result {list(shape)} has shape [1, {shape[-1]}]"
            + (f" or {[*shape[:-2], 1, shape[-1]]}" if takes_batch else "")
            + f", not {list(extents)}"
        )
    return row


def bias_enclosure(params: ExtendParams, columns: int) -> Enclosure | None:
    """The bias as the accumulator takes it: FP16 widened; None where there is none or no values."""
    if params.bias is None:
        return None
    fmt = params.bias.dtype.number_format
    held = operand_values(params.bias, fmt)
    if held is None:
        return None
    held = held[..., :columns]
    return (
        converted_to(held, fmt, FP32) if isinstance(fmt, FloatFormat) and fmt is not FP32 else held
    )


def scale_factors(params: ExtendParams, columns: int, out_dtype: DataType) -> npt.NDArray[Any]:
    """The factors of the columns in FP32, without the bits that the device does not read.

    Raises:
        ValueError: a word that asks for a shift, that holds no finite number, or for INT8 one that
            asks for an unsigned result or an offset.
    """
    from simulator.arithmetic.cube import scale_of  # loaded when first used

    if params.scales is None:
        return scale_of(np.array([[params.scale]], np.float32))
    fmt = params.scales.dtype.number_format
    held = operand_values(params.scales, fmt)
    assert held is not None
    words = np.ascontiguousarray(held.values[..., :columns]).view(np.uint64)
    if (words >> np.uint64(_SHIFT_BIT) & np.uint64(1)).any():
        raise ValueError(
            f"matmul: a word of scale_tensor has bit {_SHIFT_BIT} set, which shifts sums before "
            "they are scaled; clear it"
        )
    if out_dtype is DataType.DT_INT8:
        if not (words >> np.uint64(_SIGN_BIT) & np.uint64(1)).all():
            raise ValueError(
                f"matmul: a word of scale_tensor has bit {_SIGN_BIT} clear, which makes the result "
                "unsigned; torch_npu.npu_trans_quant_param sets it"
            )
        if (words & np.uint64(_OFFSET_BITS)).any():
            raise ValueError(
                "matmul: a word of scale_tensor has an offset in bits 37 to 45, which upstream "
                "does not document; clear them"
            )
    factors = scale_of((words & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.float32))
    if not np.isfinite(factors).all():
        raise ValueError("matmul: the low 32 bits of each word of scale_tensor are an FP32 number")
    return factors


def undecided_scale(params: ExtendParams, columns: int) -> int | None:
    """The cause of a word of scale_tensor that a device may give otherwise; None: all are certain.

    Such a word is an INT64 with an interval, and the FP32 number in its low bits may be any.
    """
    held = None
    if params.scales is not None:
        held = operand_values(params.scales, params.scales.dtype.number_format)
    if held is None or held.interval is None:
        return None
    words = held[..., :columns]
    undecided = ~words.certain()
    assert words.interval is not None
    return int(words.interval.cause[undecided][0]) if undecided.any() else None
