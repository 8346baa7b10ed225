"""The kernels of examples/kernels, a second time: on a device that may be off.

Inputs are arrays by name; BF16 numbers are codes there and in the results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from support.devices.other_device import Device, Held, from_bf16

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]


def int8_per_token(device: Device, x: Array) -> Arrays:
    rows = device.hold(from_bf16(x))
    scale = device.hold(127) / abs(rows).amax()
    back = device.hold(1) / scale
    return {"codes": _int8(rows * scale), "scales": back.values}


def int8_per_channel(device: Device, weight: Array) -> Arrays:
    held = device.hold(weight)
    most = abs(held).amax(0).maximum(1e-12)
    codes = _int8(held * (device.hold(127) / most))
    return {"codes": codes, "scales": (most / 127.0).values[0]}


def int8_per_group(device: Device, weight: Array) -> Arrays:
    groups = device.hold(from_bf16(weight).reshape(-1, 64))
    most = abs(groups).amax().maximum(1e-6)
    codes = _int8(groups * (device.hold(127) / most))
    with np.errstate(over="ignore"):
        scales = (most / 127.0).values.astype(np.float16)
    return {"codes": codes.reshape(weight.shape), "scales": scales.reshape(len(weight), -1)}


def uint8_per_group(device: Device, x: Array) -> Arrays:
    groups = device.hold(x.reshape(-1, 32))
    least = groups.amin().minimum(0.0)
    most = groups.amax().maximum(1e-12)
    scale = device.hold(255) / (most - least)
    zeros = (least * scale * -1.0).rounded()
    codes = (groups * scale + zeros).to_integers(0, 255).astype(np.uint8)
    return {"codes": codes.reshape(x.shape), "zero_points": zeros.values[:, 0]}


def dequantise(device: Device, sums: Array, of_rows: Array, of_columns: Array) -> Arrays:
    return {"out": (device.hold(sums) * of_rows * of_columns).to_bf16()}


def rms_norm_quantise(device: Device, x: Array, gamma: Array) -> Arrays:
    wide = device.hold(from_bf16(x))
    squares = (wide * wide * (1 / 512)).sum()
    normed = wide / (squares + 1e-6).sqrt() * from_bf16(gamma)
    most = abs(normed).amax()
    return {
        "codes": _int8(normed * (device.hold(127) / most)),
        "scales": (most / 127.0).values,
    }


def layer_norm(device: Device, x: Array, gamma: Array, beta: Array) -> Arrays:
    wide = device.hold(from_bf16(x))
    centred = wide - wide.sum() / 128
    variance = (centred * centred).sum() / 128
    out = centred / (variance + 1e-5).sqrt() * from_bf16(gamma) + from_bf16(beta)
    return {"out": out.to_bf16()}


def rope(device: Device, x: Array, cos: Array, sin: Array) -> Arrays:
    left, right = (device.hold(from_bf16(half)) for half in np.split(x, 2, -1))
    c, s = from_bf16(cos), from_bf16(sin)
    turned = [left * c - right * s, right * c + left * s]
    return {"out": np.concatenate([each.to_bf16() for each in turned], -1)}


def attention_weights(device: Device, scores: Array) -> Arrays:
    scaled = device.hold(scores) * 0.125
    powers = (scaled - scaled.amax()).exp()
    return {"weights": (powers / powers.sum()).to_bf16()}


def swiglu(device: Device, gate: Array, up: Array) -> Arrays:
    wide = device.hold(from_bf16(gate))
    return {"out": (wide * wide.sigmoid() * from_bf16(up)).to_bf16()}


def adamw_bf16(
    device: Device, weight: Array, gradient: Array, first: Array, second: Array, step: int
) -> Arrays:
    rate, decay, beta1, beta2 = 1e-2, 0.1, 0.9, 0.999
    old, slope = device.hold(from_bf16(weight)), device.hold(from_bf16(gradient))
    m = device.hold(first) * beta1 + slope * (1 - beta1)
    v = device.hold(second) * beta2 + slope * slope * (1 - beta2)
    change = m / (1 - beta1**step) / ((v / (1 - beta2**step)).sqrt() + 1e-8) * rate
    new = old * (1 - rate * decay) - change
    return {"weight": new.to_bf16(), "first": m.values, "second": v.values}


def qat_forward(device: Device, weight: Array, scale: Array) -> Arrays:
    step = device.hold(scale).maximum(1e-6)
    level = _level(device.hold(from_bf16(weight)) / step)
    return {"out": (level * step).to_bf16()}


def qat_backward(device: Device, weight: Array, scale: Array, gradient: Array) -> Arrays:
    slope = device.hold(from_bf16(gradient))
    ratio = device.hold(from_bf16(weight)) / device.hold(scale).maximum(1e-6)
    inside = ratio.where_between(-8, 7)
    return {
        "of_weight": (slope * inside).to_bf16(),
        "of_scale": (slope * (_level(ratio) - ratio * inside)).sum().values,
    }


def _int8(x: Held) -> Array:
    return x.to_integers(-128, 127).astype(np.int8)


def _level(ratio: Held) -> Held:
    return ratio.rounded().maximum(-8.0).minimum(7.0)


# --- Inputs --------------------------------------------------------------------------------------


class Inputs:
    """Numbers to put into a kernel.

    Args:
        seed: of the chance.
        tame: ordinary numbers alone; else rows of all magnitudes, some of which hold cancelling
            pairs, infinities, NaN, subnormal numbers or zeros of both signs.
    """

    def __init__(self, seed: int, *, tame: bool) -> None:
        self._rng, self._tame = np.random.default_rng(seed), tame

    def fp32(self, *shape: int) -> Array:
        """FP32 numbers."""
        rng = self._rng
        x = rng.standard_normal(shape).astype(np.float32)
        if self._tame:
            return x
        rows = (*shape[:-1], 1)
        x *= np.float32(2) ** rng.integers(-6, 7, rows).astype(np.float32)
        extreme = rng.integers(0, 8, rows) == 0
        far = np.ldexp(x.astype(np.float64), rng.integers(-149, 127, rows))
        with np.errstate(over="ignore"):
            x = np.where(extreme, far.astype(np.float32), x)
        cancels = rng.integers(0, 4, rows) == 0
        x = np.where(cancels, np.where(np.arange(shape[-1]) % 2, -np.roll(x, 1, -1), x), x)
        x = np.where(
            rng.integers(0, 8, rows) == 0, np.rint(x.astype(np.float64) * 8) / 16, x
        )  # ties
        pool = np.float32([0.0, -0.0, 1e-45, -3e-39, 3.4e38, np.inf, -np.inf, np.nan])
        kinds = pool[rng.integers(0, len(pool), rows)]
        rare = (rng.integers(0, 3, rows) == 0) & (rng.integers(0, 8, shape) == 0)
        everywhere = rng.integers(0, 16, rows) == 0
        return np.where(rare | everywhere, kinds, x).astype(np.float32)

    def bf16(self, *shape: int) -> Array:
        """Codes of BF16 numbers."""
        return (self.fp32(*shape).view(np.uint32) >> 16).astype(np.uint16)

    def integers(self, *shape: int) -> Array:
        """INT32 numbers of all magnitudes."""
        drawn = self._rng.integers(-(2**31), 2**31, shape)
        return (drawn >> self._rng.integers(0, 31, shape)).astype(np.int32)

    def positive(self, *shape: int) -> Array:
        """Numbers from 2**-5 to 2**5; tame ones from 1/4 to 1."""
        if self._tame:
            return self._rng.uniform(0.25, 1, shape).astype(np.float32)
        return (np.float32(2) ** self._rng.uniform(-5, 5, shape)).astype(np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A kernel of examples/kernels.

    Attributes:
        module: its file.
        kernel: its name.
        reference: its formula; what it takes besides the device has the kernel's names.
        inputs: makes those.
        outputs: the dtypes and shapes of the outputs that are no inputs.
        constants: what is no tensor.
    """

    module: str
    kernel: str
    reference: Callable[..., Arrays]
    inputs: Callable[[Inputs], Arrays]
    outputs: Mapping[str, tuple[str, tuple[int, ...]]]
    constants: Mapping[str, int]


def _example(
    reference: Callable[..., Arrays],
    inputs: Callable[[Inputs], Arrays],
    *,
    module: str = "",
    constants: Mapping[str, int] | None = None,
    **outputs: tuple[str, tuple[int, ...]],
) -> Example:
    name = reference.__name__
    return Example(
        module=module or name,
        kernel=name,
        reference=reference,
        inputs=inputs,
        outputs=outputs,
        constants=constants or {},
    )


EXAMPLES: Final = (
    _example(
        int8_per_token,
        lambda give: {"x": give.bf16(16, 256)},
        codes=("int8", (16, 256)),
        scales=("float32", (16, 1)),
    ),
    _example(
        int8_per_channel,
        lambda give: {"weight": give.fp32(128, 64).T.copy()},
        codes=("int8", (64, 128)),
        scales=("float32", (128,)),
    ),
    _example(
        int8_per_group,
        lambda give: {"weight": give.bf16(128, 64).reshape(16, 512)},
        codes=("int8", (16, 512)),
        scales=("float16", (16, 8)),
    ),
    _example(
        uint8_per_group,
        lambda give: {"x": give.fp32(128, 32).reshape(16, 256)},
        codes=("uint8", (16, 256)),
        zero_points=("float32", (128,)),
    ),
    _example(
        dequantise,
        lambda give: {
            "sums": give.integers(16, 128),
            "of_rows": give.fp32(16, 1),
            "of_columns": give.positive(1, 128),
        },
        out=("bfloat16", (16, 128)),
    ),
    _example(
        rms_norm_quantise,
        lambda give: {"x": give.bf16(16, 512), "gamma": give.bf16(512)},
        codes=("int8", (16, 512)),
        scales=("float32", (16, 1)),
    ),
    _example(
        layer_norm,
        lambda give: {
            "x": give.bf16(16, 128),
            "gamma": give.bf16(1, 128),
            "beta": give.bf16(1, 128),
        },
        out=("bfloat16", (16, 128)),
    ),
    _example(
        rope,
        lambda give: {"x": give.bf16(16, 128), "cos": give.bf16(16, 64), "sin": give.bf16(16, 64)},
        out=("bfloat16", (16, 128)),
    ),
    _example(
        attention_weights,
        lambda give: {"scores": give.fp32(16, 128)},
        weights=("bfloat16", (16, 128)),
    ),
    _example(
        swiglu,
        lambda give: {"gate": give.bf16(16, 256), "up": give.bf16(16, 256)},
        out=("bfloat16", (16, 256)),
    ),
    _example(
        adamw_bf16,
        lambda give: {
            "weight": give.bf16(16, 256),
            "gradient": give.bf16(16, 256),
            "first": give.fp32(16, 256),
            "second": np.abs(give.fp32(16, 256)),
        },
        constants={"step": 3},
    ),
    _example(
        qat_forward,
        lambda give: {"weight": give.bf16(16, 128), "scale": give.positive(16, 1)},
        module="qat",
        out=("bfloat16", (16, 128)),
    ),
    _example(
        qat_backward,
        lambda give: {
            "weight": give.bf16(16, 128),
            "scale": give.positive(16, 1),
            "gradient": give.bf16(16, 128),
        },
        module="qat",
        of_weight=("bfloat16", (16, 128)),
        of_scale=("float32", (16, 1)),
    ),
)
