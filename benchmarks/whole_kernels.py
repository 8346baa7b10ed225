"""Kernels as they are written, and the same operations in torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import torch

import pypto_cast as pypto
from pypto_cast.kernel.jit import Kernel
from simulator.numbers.formats import BF16, FP32, Format

TOKENS, HIDDEN = 4096, 5120
_BETA1, _BETA2, _RATE, _DECAY, _EPSILON = 0.9, 0.999, 1e-3, 0.01, 1e-8

_D = pypto.STATIC
_Bf16 = pypto.Tensor([_D, _D], pypto.DT_BF16)
_Fp32 = pypto.Tensor([_D, _D], pypto.DT_FP32)
_Int8 = pypto.Tensor([_D, _D], pypto.DT_INT8)


def _quantised(x: pypto.Tensor) -> tuple[pypto.Tensor, pypto.Tensor]:
    scale = pypto.div(pypto.amax(pypto.abs(x), -1, True), 127.0)
    codes = pypto.cast(pypto.div(x, scale), pypto.DT_INT32, pypto.CastMode.CAST_RINT)
    half = pypto.cast(codes, pypto.DT_FP16)
    return pypto.cast(half, pypto.DT_INT8, pypto.CastMode.CAST_RINT, pypto.SaturationMode.ON), scale


def _torch_quantised(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    scale = x.abs().amax(-1, keepdim=True) / 127.0
    codes = (x / scale).round().to(torch.int32)
    return codes.to(torch.float16).round().to(torch.int8), scale


@pypto.jit
def int8_per_token(x: _Bf16, out: _Int8, scales: _Fp32) -> None:
    """A scale for each token, and INT8 codes."""
    out[:], scales[:] = _quantised(pypto.cast(x, pypto.DT_FP32))


def torch_int8_per_token(x: torch.Tensor, out: torch.Tensor, scales: torch.Tensor) -> None:
    """The peer of `int8_per_token`."""
    out[:], scales[:] = _torch_quantised(x.float())


@pypto.jit
def softmax(x: _Fp32, out: _Fp32) -> None:
    """Along rows."""
    out[:] = pypto.softmax(x, -1)


def torch_softmax(x: torch.Tensor, out: torch.Tensor) -> None:
    """The peer of `softmax`, in the same steps."""
    powers = torch.exp(x - x.amax(-1, keepdim=True))
    out[:] = powers / powers.sum(-1, keepdim=True)


@pypto.jit
def rms_norm_int8(
    x: _Bf16, gamma: pypto.Tensor([_D], pypto.DT_BF16), out: _Int8, scales: _Fp32
) -> None:
    """rms_norm, then INT8 per token."""
    normed = pypto.rms_norm(pypto.cast(x, pypto.DT_FP32), pypto.cast(gamma, pypto.DT_FP32))
    out[:], scales[:] = _quantised(normed)


def torch_rms_norm_int8(
    x: torch.Tensor, gamma: torch.Tensor, out: torch.Tensor, scales: torch.Tensor
) -> None:
    """The peer of `rms_norm_int8`, in the same steps."""
    wide = x.float()
    root = torch.sqrt((wide * wide * (1.0 / HIDDEN)).sum(-1, keepdim=True) + 1e-6)
    normed = wide * torch.ones_like(root) / root * gamma.float()
    out[:], scales[:] = _torch_quantised(normed)


@pypto.jit
def swiglu(gate: _Bf16, up: _Bf16, out: _Bf16) -> None:
    """gate * sigmoid(gate) * up."""
    wide = pypto.cast(gate, pypto.DT_FP32)
    gated = pypto.mul(pypto.mul(wide, pypto.sigmoid(wide)), pypto.cast(up, pypto.DT_FP32))
    out[:] = pypto.cast(gated, pypto.DT_BF16)


def torch_swiglu(gate: torch.Tensor, up: torch.Tensor, out: torch.Tensor) -> None:
    """The peer of `swiglu`, in the same steps."""
    wide = gate.float()
    below = torch.exp(wide * -1.0) + 1.0
    sigmoid = torch.ones_like(below) / below
    out[:] = (wide * sigmoid * up.float()).to(torch.bfloat16)


@pypto.jit
def adamw(p: _Bf16, g: _Bf16, m: _Bf16, v: _Bf16, new_p: _Bf16, new_m: _Bf16, new_v: _Bf16) -> None:
    """A step of AdamW, all of it BF16, whose operations run in FP32."""
    first = m * _BETA1 + g * (1 - _BETA1)
    second = v * _BETA2 + g * g * (1 - _BETA2)
    step = first * (1 / (1 - _BETA1)) / (pypto.sqrt(second * (1 / (1 - _BETA2))) + _EPSILON)
    new_p[:] = p * (1 - _RATE * _DECAY) - step * _RATE
    new_m[:] = first
    new_v[:] = second


def torch_adamw(*tensors: torch.Tensor) -> None:
    """The peer of `adamw`, in float32 between its inputs and its outputs."""
    p, g, m, v = (x.float() for x in tensors[:4])
    first = m * _BETA1 + g * (1 - _BETA1)
    second = v * _BETA2 + g * g * (1 - _BETA2)
    step = first * (1 / (1 - _BETA1)) / (torch.sqrt(second * (1 / (1 - _BETA2))) + _EPSILON)
    new_p, new_m, new_v = tensors[4:]
    new_p[:] = p * (1 - _RATE * _DECAY) - step * _RATE
    new_m[:] = first
    new_v[:] = second


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeKernel:
    """A kernel, its peer, and what both take.

    Attributes:
        name: for tables.
        ours, torch: called with the inputs, then the outputs.
        inputs: format and shape of each.
        results: torch dtype and shape of each output.
        positive: positions of inputs that are not negative.
    """

    name: str
    ours: Kernel
    torch: Callable[..., None]
    inputs: tuple[tuple[Format, tuple[int, ...]], ...]
    results: tuple[tuple[torch.dtype, tuple[int, ...]], ...]
    positive: tuple[int, ...] = ()

    def outputs(self) -> list[Any]:
        """Arrays for the outputs."""
        return [torch.zeros(shape, dtype=dtype) for dtype, shape in self.results]


_ALL: Final = (TOKENS, HIDDEN)
_CODES: Final = ((torch.int8, _ALL), (torch.float32, (TOKENS, 1)))
KERNELS: Final = (
    WholeKernel(
        name="int8_per_token",
        ours=int8_per_token,
        torch=torch_int8_per_token,
        inputs=((BF16, _ALL),),
        results=_CODES,
    ),
    WholeKernel(
        name="rms_norm_int8",
        ours=rms_norm_int8,
        torch=torch_rms_norm_int8,
        inputs=((BF16, _ALL), (BF16, (HIDDEN,))),
        results=_CODES,
    ),
    WholeKernel(
        name="softmax",
        ours=softmax,
        torch=torch_softmax,
        inputs=((FP32, (4096, 2048)),),
        results=((torch.float32, (4096, 2048)),),
    ),
    WholeKernel(
        name="swiglu",
        ours=swiglu,
        torch=torch_swiglu,
        inputs=((BF16, (4096, 2048)),) * 2,
        results=((torch.bfloat16, (4096, 2048)),),
    ),
    WholeKernel(
        name="adamw",
        ours=adamw,
        torch=torch_adamw,
        inputs=((BF16, (2048, 2048)),) * 4,
        results=((torch.bfloat16, (2048, 2048)),) * 3,
        positive=(3,),
    ),
)
