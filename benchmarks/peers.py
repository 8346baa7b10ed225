"""The same conversions by other libraries, as their users would write them.

`astype` is numpy's or ml_dtypes' own cast: round to nearest, integers undefined or wrapped out of
range. `numpy_equivalent` is the shortest numpy expression that gives this project's values (NaN 0,
clamped, rounded by the mode); None where no short one exists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pypto_cast.dialects.onnx.types import type_of_dtype
from simulator.numbers.formats import (
    BF16,
    E4M3FN,
    E5M2,
    FP32,
    FP64,
    HF8,
    INT64,
    FloatFormat,
    Format,
    IntFormat,
)
from simulator.numbers.rounding import RoundMode

Array = npt.NDArray[Any]
Peer = Callable[[], object]

_TO_INTEGRAL: dict[RoundMode, Callable[[Array], Array]] = {
    RoundMode.RINT: np.rint,
    RoundMode.FLOOR: np.floor,
    RoundMode.CEIL: np.ceil,
    RoundMode.TRUNC: np.trunc,
    RoundMode.ROUND: lambda x: np.trunc(x) + np.trunc(2 * (x - np.trunc(x))),
}


def astype(values: Array, dst: Format) -> Peer:
    """The library's own cast."""
    return lambda: values.astype(dst.dtype)


def numpy_equivalent(values: Array, src: Format, dst: Format, mode: RoundMode) -> Peer | None:
    """The same values in plain numpy."""
    if isinstance(src, FloatFormat) and isinstance(dst, IntFormat):
        to_integral = _TO_INTEGRAL.get(mode)
        return None if to_integral is None else _float_to_int(values, dst, to_integral)
    if src is dst:
        return None if mode is RoundMode.ODD else lambda: _TO_INTEGRAL[mode](values) + 0.0
    if isinstance(src, IntFormat) and isinstance(dst, IntFormat):
        low, high = max(src.min, dst.min), min(src.max, dst.max)
        return lambda: np.clip(values, low, high).astype(dst.dtype)
    if mode is RoundMode.RINT:
        return astype(values, dst)
    return _directed(values, src, dst, mode)


def _float_to_int(values: Array, dst: IntFormat, to_integral: Callable[[Array], Array]) -> Peer:
    def run() -> Array:
        integral = to_integral(values)
        integral = np.where(np.isnan(integral), integral.dtype.type(0), integral)
        if dst is INT64:
            inside = np.clip(integral, -(2.0**63), np.nextafter(np.float32(2.0**63), np.float32(0)))
            return np.where(integral >= 2.0**63, dst.max, inside.astype(np.int64))
        wide = integral.astype(np.float64) if dst.bits > 16 else integral
        return np.clip(wide, dst.min, dst.max).astype(dst.dtype)

    return run


def _directed(values: Array, src: Format, dst: Format, mode: RoundMode) -> Peer | None:
    """Round to nearest, then step back where that went to the wrong side."""
    wide = FP64.dtype if src.bits < 64 else np.dtype(np.longdouble)
    wide = src.dtype if src is FP32 else wide
    wrong: dict[RoundMode, Callable[[Array, Array], Array]] = {
        RoundMode.FLOOR: lambda back, exact: back > exact,
        RoundMode.CEIL: lambda back, exact: back < exact,
        RoundMode.TRUNC: lambda back, exact: np.abs(back) > np.abs(exact),
    }
    target = {RoundMode.FLOOR: -np.inf, RoundMode.CEIL: np.inf, RoundMode.TRUNC: 0.0}
    if mode not in wrong:
        return None
    toward = np.array(target[mode]).astype(dst.dtype)

    def run() -> Array:
        nearest = values.astype(dst.dtype)
        steps_back = wrong[mode](nearest.astype(wide), values.astype(wide, copy=False))
        return np.where(steps_back, np.nextafter(nearest, toward), nearest)

    return run


def torch_to(values: Array, src: Format, dst: Format) -> Peer | None:
    """torch's `.to`, on one thread; None without torch, the dtype, or anything to convert."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    target = getattr(torch, dst.dtype.name, None)
    if target is None or src is dst or min(src.bits, dst.bits) < 8:
        return None
    tensor = torch_tensor(values)
    return lambda: tensor.to(target)


def torch_tensor(values: Array) -> Any:
    """The values as a tensor of torch, without a copy."""
    import torch

    if values.dtype == BF16.dtype:
        return torch.from_numpy(values.view(np.int16)).view(torch.bfloat16)
    if values.dtype in (E4M3FN.dtype, E5M2.dtype):
        return torch.from_numpy(values.view(np.uint8)).view(getattr(torch, values.dtype.name))
    return torch.from_numpy(values)


def en_dtypes_cast(values: Array, src: Format, dst: Format) -> Peer | None:
    """en_dtypes' own cast from or to HF8; None without it, or of other formats."""
    if HF8 not in (src, dst):
        return None
    try:
        import en_dtypes
    except ImportError:
        return None
    hifloat8 = np.dtype(en_dtypes.hifloat8)
    if dst is HF8:
        return lambda: values.astype(hifloat8)
    held = values.view(np.uint8).view(hifloat8)
    return lambda: held.astype(dst.dtype)


def onnxruntime_cast(values: Array, dst: Format) -> Peer | None:
    """onnxruntime's Cast on one thread; None without it, or where numpy cannot feed it."""
    try:
        import onnxruntime
        from onnx import helper
    except ImportError:
        return None
    if values.dtype.kind == "V" or dst.bits < 8:
        return None
    source = helper.np_dtype_to_tensor_dtype(values.dtype)
    target = int(type_of_dtype(dst.dtype))
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=target)],
        "cast",
        [helper.make_tensor_value_info("x", source, values.shape)],
        [helper.make_tensor_value_info("y", target, values.shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    binding = session.io_binding()
    binding.bind_cpu_input("x", values)
    binding.bind_output("y")
    return lambda: session.run_with_iobinding(binding)
