"""OpenVINO's Convert as its core evaluates it: the conversions that ConvertPromoteTypes makes.

Its number classes, float16 and bfloat16, are made of a float32 and turn back into one, rounding
differently from IEEE 754; no other conversion is their own. So a number climbs to a type that holds
both ends and descends from there, rounding at every step:

    f8e4m3 ─┐
            ├─ f16 ─┐
    f8e5m2 ─┘       ├─ f32 ── f64          integers reach f16, bf16 and f8 by way of f32
             bf16 ──┘

Three neighbours are converted by instructions instead, which round as IEEE 754 says. NaNs keep
their sign, and as much of their payload as fits. Integers go to integers by their low bits, and to
boolean by "not zero". Measured with openvino 2026.4.1 on x86-64: all codes that rounding can tell
apart.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.options.context import current
from simulator.numbers import elementwise, result_memory
from simulator.numbers.convert import (
    INF_NAN,
    SATURATE,
    WRAP,
    Conversion,
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


class Payload(enum.Enum):
    """The fraction bits of a NaN that are kept. Measured with openvino 2026.4.1 on x86-64."""

    CUT = "the upper bits, in software: where they are zero, that is infinity"
    QUIET = "the upper bits and the quiet bit, as the processor's instructions do"
    NONE = "the quiet bit alone"


def has_nan(codes: Codes, fmt: FloatFormat) -> bool:
    """True if any code is a NaN; two reductions.

    As signed integers only positive floats are positive, as unsigned ones negative floats are the
    largest; both orders follow the magnitude.
    """
    least = _last_number(fmt) + 1
    signed = codes.view(f"i{codes.itemsize}")
    return codes.size > 0 and bool(
        np.maximum.reduce(signed) >= least or np.maximum.reduce(codes) >= fmt.sign_code + least
    )


def carry_nan(
    codes: Codes, src: FloatFormat, out: Codes, dst: FloatFormat, payload: Payload
) -> None:
    """Rewrite the NaNs of a conversion's result as OpenVINO writes them.

    Args:
        codes: source codes, 1-D.
        src: their format.
        out: destination codes, changed where the source is a NaN.
        dst: their format, one with infinities.
        payload: what is kept of the fraction.
    """
    if not has_nan(codes, src):
        return
    where = np.flatnonzero((codes & codes.dtype.type(src.sign_code - 1)) > _last_number(src))
    nans = codes[where].astype(np.uint64)
    negative = nans & np.uint64(src.sign_code) != 0
    fraction = nans & np.uint64((1 << src.man_bits) - 1)
    narrowing = src.man_bits - dst.man_bits
    if narrowing > 0:
        fraction >>= np.uint64(narrowing)
    else:
        fraction <<= np.uint64(-narrowing)
    quiet = np.uint64(1 << (dst.man_bits - 1))
    if payload is Payload.NONE:
        fraction = np.full_like(fraction, quiet)
    elif payload is Payload.QUIET:
        fraction |= quiet
    exponent = np.uint64((1 << dst.exp_bits) - 1 << dst.man_bits)
    sign = np.where(negative, np.uint64(dst.sign_code), np.uint64(0))
    out[where] = (sign | exponent | fraction).astype(out.dtype)


def _last_number(fmt: FloatFormat) -> int:
    """The magnitude above which codes are NaNs."""
    return fmt.max_code if fmt.inf_code is None else fmt.inf_code


def _rounded(src: Format, dst: Format, policy: Policy = INF_NAN) -> elementwise.Loop:
    """One rounding to nearest even, by the numerical core; its tables are made when first used."""
    chain = (Conversion(src=src, dst=dst, mode=RoundMode.RINT, policy=policy),)
    return lambda codes, out: elementwise.loop(chain, engine=current().converter)(codes, out)


def _with_nan(src: FloatFormat, dst: FloatFormat, payload: Payload) -> elementwise.Loop:
    """The same between floats, with OpenVINO's NaNs."""
    to_nearest = _rounded(src, dst)

    def run(codes: Codes, out: Codes) -> None:
        to_nearest(codes, out)
        carry_nan(codes, src, out, dst, payload)

    return run


_TO_FP16: Final = _rounded(FP32, FP16)
_DROPPED_BITS: Final = FP32.man_bits - FP16.man_bits
_CARRYING: Final = np.uint32((1 << FP32.man_bits) - (1 << (_DROPPED_BITS - 1)))
"""The fractions that rounding to float16's 11 significant bits carries to the next power of two."""
_MAGNITUDE: Final = np.uint32(FP32.sign_code - 1)
_NEXT_POWER: Final = np.uint32(1 << FP32.man_bits)
_DOUBLED_BELOW: Final = np.uint32((FP16.emin - 1 + FP32.bias) << FP32.man_bits)
"""2**-15: a value below that carries does not reach float16's smallest normal number."""

_BF16_BITS: Final = np.uint32(FP32.bits - BF16.bits)
_LAST_KEPT: Final = np.uint32(1 << (FP32.bits - BF16.bits))


def float16_of(words: Codes, out: Codes) -> None:
    """Make float16 codes of float32 codes, to nearest, ties to even.

    Beyond the largest number infinity; -0 and subnormal numbers are kept; a NaN keeps its sign and
    the upper ten bits of its payload (one without any of them, which arithmetic never gives, ends
    in Convert as the infinity it becomes here).

    One fault: a number whose 11-bit rounding carries to the next power of two while float16 has
    only a subnormal number for it comes out twice as large (7.9999 * 2**-24 gives 2**-20), because
    the carry raises the exponent for the second, gradual rounding too.

    Args:
        words: FP32 codes, 1-D, contiguous.
        out: FP16 codes, as many.
    """
    _TO_FP16(words, out)
    carrying = words & _CARRYING == _CARRYING
    np.logical_and(carrying, words & _MAGNITUDE < _DOUBLED_BELOW, out=carrying)
    if carrying.any():
        where = np.flatnonzero(carrying)
        doubled = np.empty(where.size, out.dtype)
        _TO_FP16(words[where] + _NEXT_POWER, doubled)
        out[where] = doubled
    carry_nan(words, FP32, out, FP16, Payload.CUT)


def bfloat16_of(words: Codes, out: Codes) -> None:
    """Make bfloat16 codes of float32 codes: half a unit is added only to an odd last place.

        sign exponent kkkkkkL | G ddddddddddddddd      L = 0: cut;  L = 1: + half, then cut

    So 1.005 becomes 1.0, and 1 + 3 * 2**-8 becomes 1 + 2**-6 as usual. -0 and subnormal numbers are
    kept, the largest numbers overflow to infinity. A NaN is treated as if it were a number: it
    keeps its sign and the upper bits of its payload, or becomes infinity where those are zero; with
    the upper eight fraction bits set it becomes a zero of the other sign.

    Args:
        words: FP32 codes, 1-D, contiguous.
        out: BF16 codes, as many.
    """
    half = (words & _LAST_KEPT) >> np.uint32(1)
    half += words
    half >>= _BF16_BITS
    np.copyto(out, half, casting="unsafe")


_PIECE_ELEMS: Final = 1 << 16

_SIGNED_NAN: Final = replace(INF_NAN, name="OPENVINO_E4M3", keeps_nan_sign=True)
"""Out of range is NaN, for E4M3 has no infinity."""

_WIDER: Final[Mapping[Format, Format]] = {
    E4M3FN: FP16,
    E5M2: FP16,
    FP16: FP32,
    BF16: FP32,
    FP32: FP64,
}

FLOATS: Final = frozenset({*_WIDER, *_WIDER.values()})
"""The floats that its conversions are known for."""

_NEIGHBOURS: Final[Mapping[tuple[Format, Format], elementwise.Loop]] = {
    (E4M3FN, FP16): _with_nan(E4M3FN, FP16, Payload.NONE),
    (E5M2, FP16): _with_nan(E5M2, FP16, Payload.CUT),
    (FP16, FP32): _with_nan(FP16, FP32, Payload.CUT),
    (BF16, FP32): _with_nan(BF16, FP32, Payload.CUT),
    (FP32, FP64): _with_nan(FP32, FP64, Payload.QUIET),
    (FP64, FP32): _with_nan(FP64, FP32, Payload.QUIET),
    (FP32, BF16): bfloat16_of,
    (FP32, FP16): float16_of,
    (FP16, E5M2): _with_nan(FP16, E5M2, Payload.CUT),
    (FP16, E4M3FN): _rounded(FP16, E4M3FN, _SIGNED_NAN),
}

_INSTRUCTIONS: Final[Mapping[tuple[Format, Format], elementwise.Loop]] = {
    (FP16, FP32): _with_nan(FP16, FP32, Payload.QUIET),
    (FP32, FP16): _with_nan(FP32, FP16, Payload.QUIET),
    (BF16, FP16): _with_nan(BF16, FP16, Payload.QUIET),
    (INT32, FP16): _rounded(INT32, FP16, SATURATE),
}


def neighbour(codes: Codes, src: FloatFormat, dst: FloatFormat) -> Codes:
    """Codes of one type as those of its neighbour, as OpenVINO's number classes turn into it."""
    if src is dst:
        return codes
    out = np.empty(codes.size, dst.code_dtype)
    _NEIGHBOURS[src, dst](codes, out)
    return out


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

    Raises:
        TypeError: a float without a known rule.
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
def _route(src: Format, dst: Format) -> tuple[tuple[elementwise.Loop, Format], ...]:
    """The steps from one format to another, each with the format it leads to."""
    if (src, dst) in _INSTRUCTIONS:
        return ((_INSTRUCTIONS[src, dst], dst),)
    if isinstance(dst, IntFormat):
        return ((_rounded(src, dst, WRAP), dst),)
    if isinstance(src, IntFormat):
        entry = dst if dst is FP64 else FP32
        return ((_rounded(src, entry), entry), *_between_floats(entry, dst))
    return _between_floats(src, dst)


def _between_floats(src: Format, dst: Format) -> tuple[tuple[elementwise.Loop, Format], ...]:
    for fmt in (src, dst):
        if fmt not in FLOATS:
            raise TypeError(f"no rule is known here for OpenVINO's conversions from or to {fmt}")
    up, down = [src], [dst]
    for way in (up, down):
        while way[-1] in _WIDER:
            way.append(_WIDER[way[-1]])
    meeting = next(fmt for fmt in up if fmt in down)
    stops = [*up[: up.index(meeting) + 1], *reversed(down[: down.index(meeting)])]
    return tuple((_NEIGHBOURS[near, far], far) for near, far in itertools.pairwise(stops))
