"""pypto.conv: a convolution as the product of a matrix of patches and one of weights.

Sources: upstream pypto, python/pypto/op/conv.py, docs/zh/api/operation/pypto-conv.md and
framework/src/interface/operation/conv_operation_impl.cpp.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from pypto_cast.dtypes.data_types import DataType, check_dtype
from pypto_cast.operations.lowering import (
    check_tensor,
    converted_to,
    dtypes_of,
    held_by,
)
from pypto_cast.operations.operation_rows import FLOATS, OperationRow, everywhere
from pypto_cast.recording import recording
from pypto_cast.recording.recording import trust
from pypto_cast.tensors.tensor import Tensor
from simulator import arithmetic
from simulator.arithmetic import OPERATIONS, Enclosure, Fidelity
from simulator.arithmetic.operation import Array
from simulator.numbers.formats import FP32
from tiling.grid import Shape
from tiling.plan import MOST_DIMS, ShapeError

_LONGEST: Final = 1_000_000
_STEPS: Final = range(1, 64)
_PADDING: Final = range(256)
_GROUPS: Final = range(1, 65536)
_LONGEST_KERNEL: Final = 255
_LARGEST_KERNEL: Final = 65535
_BLOCK_BYTES: Final = 32
_NAMES: Final = ("bias_tensor", "scale", "scale_tensor", "relu_type")
_BIAS: Final[Mapping[DataType, DataType]] = {
    DataType.DT_FP16: DataType.DT_FP16,
    DataType.DT_BF16: DataType.DT_FP32,
    DataType.DT_FP32: DataType.DT_FP32,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """The steps of a kernel over a feature map, one entry for each axis that it moves along."""

    strides: Shape
    paddings: tuple[tuple[int, int], ...]
    dilations: Shape
    groups: int


@OperationRow(
    opcodes={"TT": "A_MUL_B"},
    dtypes=everywhere(*FLOATS),
    fidelity=Fidelity.BOUNDED,
    remark="products are summed in FP32 in an order that is not public, as those of matrices: "
    "[Products of matrices](../operations.md#products-of-matrices)",
    example="pypto.conv(pypto.reshape(x, [1, 1, 6]), pypto.reshape(y, [1, 1, 6]), "
    "pypto.DT_FP32, [1], [2, 2], [1])",
)
def conv(
    input_conv: Tensor,
    weight: Tensor,
    out_dtype: DataType,
    strides: list[int],
    paddings: list[int],
    dilations: list[int],
    *,
    groups: int = 1,
    transposed: bool = False,
    output_paddings: list[int] | None = None,
    extend_params: dict[str, Any] | None = None,
) -> Tensor:
    """Convolve feature maps with kernels along one, two or three axes.

    Each result is a sum of products in FP32, in an order that is not public: it is certain where
    every order gives it. Padding is 0, so that an infinite weight there gives NaN. The sum is
    rounded once to the dtype, to the nearest.

    Args:
        input_conv: [N, C, W], [N, C, H, W] or [N, C, D, H, W], with data everywhere.
        weight: [Cout, C / groups, ...] with as many axes, of the same dtype.
        out_dtype: the dtype of the operands.
        strides, dilations: one of 1 to 63 for each axis.
        paddings: two of 0 to 255 for each axis, before and after it, smaller than the kernel.
        groups: of the channels, 1 to 65535; both channel counts are multiples.
        transposed: False; upstream does not transpose.
        output_paddings: None or empty; they belong to `transposed`.
        extend_params: a dict of bias_tensor ([Cout], of the dtype; FP32 beside BF16) and relu_type
            (ConvReLuType); scale and scale_tensor for none. It is not modified.

    Returns:
        [N, Cout, ...] of the operands' dtype.

    Raises:
        TypeError: dtypes that upstream refuses, or arguments of other types.
        ValueError: numbers out of their ranges, scales, or a transposed convolution.
        ShapeError: other dimensions, channels that do not fit, or a kernel beyond the padded map.
        NpuError: in a kernel of RunMode.NPU.
    """
    taken = dtypes_of("conv")
    x, kernels = (
        check_tensor("conv", each, taken, most_dims=MOST_DIMS) for each in (input_conv, weight)
    )
    if x.dtype is not kernels.dtype:
        raise TypeError(f"conv takes one dtype, not {x.dtype} and {kernels.dtype}; cast one")
    if check_dtype(out_dtype) is not x.dtype:
        raise TypeError(f"conv of {x.dtype} gives {x.dtype}, not {out_dtype}; cast the result")
    if not 3 <= x.dim <= MOST_DIMS or kernels.dim != x.dim:
        raise ShapeError(
            f"conv takes maps and kernels of 3 to {MOST_DIMS} dimensions, as many each; got "
            f"{x.shape} and {kernels.shape}"
        )
    _check_switches(transposed, output_paddings)
    shape, extents = tuple(map(int, x.shape)), tuple(map(int, kernels.shape))
    window = _window(shape, extents, strides, paddings, dilations, groups)
    _check_kernel(x.dtype, extents, window)
    moved = _moved_over(shape, extents, window)
    bias, relu = _extended(extend_params, x.dtype, extents[0])
    for each in (x, kernels):
        if list(each.valid_shape) != list(each.shape):
            raise ValueError(f"conv takes tensors that hold data everywhere, not {each!r}")
    return _convolved(x, kernels, window, (shape[0], extents[0], *moved), bias, relu=relu)


def _check_switches(transposed: object, output_paddings: object) -> None:
    if not isinstance(transposed, bool):
        raise TypeError(f"conv: transposed must be True or False, not {transposed!r}")
    if transposed:
        raise ValueError("conv: upstream has no transposed convolution yet; transposed=False")
    if output_paddings is not None and not isinstance(output_paddings, list):
        raise TypeError(f"conv: output_paddings must be a list, not {output_paddings!r}")
    if output_paddings:
        raise ValueError("conv: output_paddings belong to a transposed convolution; leave them out")


def _numbers(name: str, given: object, count: int, allowed: range) -> Shape:
    if not isinstance(given, list) or not all(type(each) is int for each in given):
        raise TypeError(f"conv: {name} must be a list of ints, not {given!r}")
    if len(given) != count:
        raise ValueError(f"conv: {name} has {len(given)} entries; {count} are needed here")
    if any(each not in allowed for each in given):
        raise ValueError(
            f"conv: {name} must be {allowed.start} to {allowed.stop - 1} each, not {given}"
        )
    return tuple(given)


def _window(
    shape: Shape,
    extents: Shape,
    strides: object,
    paddings: object,
    dilations: object,
    groups: object,
) -> _Window:
    axes = len(shape) - 2
    flat = _numbers("paddings", paddings, 2 * axes, _PADDING)
    if type(groups) is not int:
        raise TypeError(f"conv: groups must be an int, not {groups!r}")
    if groups not in _GROUPS:
        raise ValueError(f"conv: groups must be 1 to {_GROUPS.stop - 1}, not {groups}")
    if shape[1] != extents[1] * groups or extents[0] % groups:
        raise ShapeError(
            f"conv: {groups} groups of a map {list(shape)} take kernels [Cout, {shape[1]} / "
            f"groups, ...] with Cout a multiple of {groups}; got {list(extents)}"
        )
    return _Window(
        strides=_numbers("strides", strides, axes, _STEPS),
        paddings=tuple(zip(flat[::2], flat[1::2], strict=True)),
        dilations=_numbers("dilations", dilations, axes, _STEPS),
        groups=groups,
    )


def _check_kernel(dtype: DataType, extents: Shape, window: _Window) -> None:
    kernel, bits = extents[2:], dtype.number_format.bits
    last = kernel[-2:]
    if max(last) > _LONGEST_KERNEL:
        raise ShapeError(f"conv takes kernels of up to {_LONGEST_KERNEL}; got {list(kernel)}")
    block = _BLOCK_BYTES * 8 // bits
    if math.prod(last) * block > _LARGEST_KERNEL:
        raise ShapeError(
            f"conv: a kernel {list(kernel)} times {block} elements of 32 B is more than "
            f"{_LARGEST_KERNEL}"
        )
    for sides, length in zip(window.paddings, kernel, strict=True):
        if max(sides) >= length:
            raise ValueError(
                f"conv: paddings must be smaller than the kernel; {list(sides)} beside {length}"
            )


def _moved_over(shape: Shape, extents: Shape, window: _Window) -> Shape:
    """The places of the kernel along each axis."""
    found = []
    for length, kernel, stride, sides, dilation in zip(
        shape[2:], extents[2:], window.strides, window.paddings, window.dilations, strict=True
    ):
        room = length + sum(sides) - dilation * (kernel - 1) - 1
        found.append(room // stride + 1 if room >= 0 else 0)
    if min(found) < 1 or max((*shape, *extents, *found)) > _LONGEST:
        raise ShapeError(
            f"conv: a kernel {list(extents)} over {list(shape)} gives {found} places; each length "
            f"is 1 to {_LONGEST}"
        )
    return tuple(found)


def _extended(given: object, dtype: DataType, count: int) -> tuple[Tensor | None, bool]:
    """The bias and whether negative sums become 0."""
    if given is None:
        return None, False
    if not isinstance(given, dict):
        raise TypeError(f"conv: extend_params must be a dict, not {given!r}")
    if unknown := [key for key in given if key not in _NAMES]:
        raise TypeError(f"conv: extend_params takes {', '.join(_NAMES)}, not {unknown}")
    if given.get("scale", 0.0) != 0.0 or given.get("scale_tensor") is not None:
        raise ValueError(
            "conv: upstream's page has no quantised convolution yet; leave out scale and "
            "scale_tensor"
        )
    relu = getattr(given.get("relu_type"), "name", "NO_RELU" if "relu_type" not in given else None)
    if relu not in ("NO_RELU", "RELU"):
        raise TypeError(f"conv: relu_type must be a pypto.ConvReLuType, not {given['relu_type']!r}")
    bias = given.get("bias_tensor")
    if bias is None:
        return None, relu == "RELU"
    row = check_tensor("conv: bias_tensor", bias, [_BIAS[dtype]])
    if list(map(int, row.shape)) != [count] or list(row.valid_shape) != [count]:
        raise ShapeError(f"conv: bias_tensor has shape [{count}], not {list(row.shape)}")
    return row, relu == "RELU"


def _convolved(
    x: Tensor, kernels: Tensor, window: _Window, shape: Shape, bias: Tensor | None, *, relu: bool
) -> Tensor:
    fmt = x.dtype.number_format
    held, weights = held_by(x), held_by(kernels)
    added = None if bias is None else held_by(bias)
    if held is None or weights is None or (bias is not None and added is None):
        return Tensor._from_result(shape, x.dtype, valid=shape)
    if added is not None and bias is not None:
        added = converted_to(added.reshape((1, shape[1])), bias.dtype.number_format, FP32)
    from simulator.arithmetic.cube import matmul  # loaded when first used

    cause = recording.causes().index_here("conv")
    inner, outer = weights.shape[1], shape[1] // window.groups
    parts = []
    for group in range(window.groups):
        channels = slice(group * inner, (group + 1) * inner)
        columns = slice(group * outer, (group + 1) * outer)
        patches = held[:, channels].map(lambda array: _patches(array, weights.shape, window))
        matrix = weights[columns].map(lambda array: array.reshape(array.shape[0], -1).T)
        parts.append(
            matmul(
                patches,
                matrix,
                fmt,
                bias=None if added is None else added[:, columns],
                trust=trust("conv"),
                cause=cause,
            )
        )
    sums = arithmetic.join_arrays(lambda arrays: np.concatenate(arrays, -1), parts)
    if relu:
        sums = arithmetic.evaluate(
            OPERATIONS["relu"], (sums,), FP32, trust=trust("conv"), cause=cause
        )
    result = sums if fmt is FP32 else converted_to(sums, FP32, fmt)
    return Tensor._from_result(shape, x.dtype, data=_in_channels(result, shape), valid=shape)


def _in_channels(x: Enclosure, shape: Shape) -> Enclosure:
    """[N, places, Cout] as [N, Cout, ...]."""
    return x.map(lambda array: np.ascontiguousarray(np.swapaxes(array, 1, 2)).reshape(shape))


def _patches(array: Array, extents: Sequence[int], window: _Window) -> Array:
    """[N, C, ...] as [N, places, C times the elements of a kernel]; 0 or false in the padding."""
    padded = np.pad(np.array(array), ((0, 0), (0, 0), *window.paddings))
    axes = len(window.strides)
    reach = tuple(
        dilation * (length - 1) + 1
        for dilation, length in zip(window.dilations, extents[2:], strict=True)
    )
    seen = np.lib.stride_tricks.sliding_window_view(padded, reach, tuple(range(2, 2 + axes)))
    every = (slice(None), slice(None))
    places = tuple(slice(None, None, stride) for stride in window.strides)
    taken = tuple(slice(None, None, dilation) for dilation in window.dilations)
    chosen = np.moveaxis(seen[(*every, *places, *taken)], 1, 1 + axes)
    count = math.prod(chosen.shape[1 : 1 + axes])
    return np.ascontiguousarray(chosen).reshape(chosen.shape[0], count, -1)
