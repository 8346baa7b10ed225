"""OpenVINO's Convert as its core evaluates it: the conversions that ConvertPromoteTypes makes.

Its number classes know only their neighbours, so a number climbs to a type that holds both ends and
descends from there, rounding at every step:

    f8e4m3 ─┐
            ├─ f16 ─┐
    f8e5m2 ─┘       ├─ f32 ── f64          integers reach f16, bf16 and f8 by way of f32
             bf16 ──┘

Three neighbours are converted by instructions instead, which round as IEEE 754 says. Integers go to
integers by their low bits, and to boolean by "not zero". Measured with openvino 2026.4.1 on x86-64.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.dialects.openvino.nan_payloads import Payload, carry_nan
from pypto_cast.dialects.openvino.number_classes import (
    bfloat16_of,
    float16_of,
    float_of_bfloat16,
    float_of_float16,
)
from pypto_cast.options.context import current
from simulator.numbers import elementwise, result_memory
from simulator.numbers.convert import (
    INF_NAN,
    SATURATE,
    WRAP,
    Conversion,
    Overflow,
    Policy,
    codes_of,
    values_of,
)
from simulator.numbers.formats import (
    BF16,
    E4M3FN,
    E5M2,
    FP16,
    FP32,
    FP64,
    INT32,
    Codes,
    FloatFormat,
    Format,
    IntFormat,
)
from simulator.numbers.rounding import RoundMode

_PIECE_ELEMS: Final = 1 << 16

_SIGNED_NAN: Final = Policy(
    name="OPENVINO_E4M3",
    overflow=Overflow.IEEE,
    keeps_inf=True,
    keeps_nan=True,
    keeps_nan_sign=True,
)
"""Out of range is NaN, for E4M3 has no infinity."""

Step = Callable[[Codes, Codes], None]
"""(source codes, destination codes): 1-D, contiguous, equally long."""


def _rounded(src: Format, dst: Format, policy: Policy = INF_NAN) -> Step:
    """One rounding to nearest even, by the numerical core; its tables are made when first used."""
    chain = (Conversion(src=src, dst=dst, mode=RoundMode.RINT, policy=policy),)
    return lambda codes, out: elementwise.kernel(chain, engine=current().converter)(codes, out)


def _with_nan(src: FloatFormat, dst: FloatFormat, payload: Payload) -> Step:
    """The same between floats, with OpenVINO's NaNs."""
    to_nearest = _rounded(src, dst)

    def run(codes: Codes, out: Codes) -> None:
        to_nearest(codes, out)
        carry_nan(codes, src, out, dst, payload)

    return run


_WIDER: Final[Mapping[Format, Format]] = MappingProxyType(
    {E4M3FN: FP16, E5M2: FP16, FP16: FP32, BF16: FP32, FP32: FP64}
)

_NEIGHBOURS: Final[Mapping[tuple[Format, Format], Step]] = MappingProxyType(
    {
        (E4M3FN, FP16): _with_nan(E4M3FN, FP16, Payload.NONE),
        (E5M2, FP16): _with_nan(E5M2, FP16, Payload.CUT),
        (FP16, FP32): float_of_float16,
        (BF16, FP32): float_of_bfloat16,
        (FP32, FP64): _with_nan(FP32, FP64, Payload.QUIET),
        (FP64, FP32): _with_nan(FP64, FP32, Payload.QUIET),
        (FP32, BF16): bfloat16_of,
        (FP32, FP16): float16_of,
        (FP16, E5M2): _with_nan(FP16, E5M2, Payload.CUT),
        (FP16, E4M3FN): _rounded(FP16, E4M3FN, _SIGNED_NAN),
    }
)

_INSTRUCTIONS: Final[Mapping[tuple[Format, Format], Step]] = MappingProxyType(
    {
        (FP16, FP32): _with_nan(FP16, FP32, Payload.QUIET),
        (FP32, FP16): _with_nan(FP32, FP16, Payload.QUIET),
        (BF16, FP16): _with_nan(BF16, FP16, Payload.QUIET),
        (INT32, FP16): _rounded(INT32, FP16, SATURATE),
    }
)


def convert(values: npt.NDArray[Any], src: Format, dst: Format) -> npt.NDArray[Any]:
    """Convert an array as `Convert.evaluate` does, bit for bit.

    Floats: to nearest, ties to even, at every step of the way (see the module), but bf16 as
    `bfloat16_of` says; out of range infinity, in f8e4m3 NaN, and i32 to f16 clamps to +-65504. -0
    stays -0. NaN keeps its sign and the upper bits of its payload; from f16, bf16 and f32 to f8e5m2
    one without any there becomes infinity, and in bf16 see `bfloat16_of`. Integers: the low bits.
    To boolean: not zero.

    Args:
        values: any shape, contiguous, of the dtype of `src`; not modified.
        src: source format.
        dst: destination format; that of floats is a float, for promotion asks for nothing else.

    Returns:
        A new array of the same shape, of the dtype of `dst`.
    """
    if src is dst:
        return values.copy()
    codes = codes_of(values, src).reshape(-1)
    out = result_memory.empty(codes.size, dst.code_dtype)
    steps = _route(src, dst)

    def convert_span(span: slice) -> None:
        for start in range(span.start, span.stop, _PIECE_ELEMS):
            stop = min(start + _PIECE_ELEMS, span.stop)
            piece = codes[start:stop]
            for step, fmt in steps:
                converted = np.empty(piece.size, fmt.code_dtype)
                step(piece, converted)
                piece = converted
            out[start:stop] = piece

    elementwise.share(convert_span, codes.size, current().threads)
    return values_of(out, dst).reshape(values.shape)


@cache
def _route(src: Format, dst: Format) -> tuple[tuple[Step, Format], ...]:
    """The steps from one format to another, each with the format it leads to."""
    if (src, dst) in _INSTRUCTIONS:
        return ((_INSTRUCTIONS[src, dst], dst),)
    if isinstance(dst, IntFormat):
        return ((_rounded(src, dst, WRAP), dst),)
    if isinstance(src, IntFormat):
        entry = dst if dst is FP64 else FP32
        return ((_rounded(src, entry), entry), *_between_floats(entry, dst))
    return _between_floats(src, dst)


def _between_floats(src: Format, dst: Format) -> tuple[tuple[Step, Format], ...]:
    up, down = [src], [dst]
    for way in (up, down):
        while way[-1] in _WIDER:
            way.append(_WIDER[way[-1]])
    meeting = next(fmt for fmt in up if fmt in down)
    stops = [*up[: up.index(meeting) + 1], *reversed(down[: down.index(meeting)])]
    return tuple((_NEIGHBOURS[near, far], far) for near, far in itertools.pairwise(stops))
