"""The three ways to compute FakeConvert: OpenVINO's core, its CPU plugin, and correctly rounded.

Each takes a piece: codes of the data, their format, the 8-bit format, and scale and shift widened
to float32 (as long as the piece, or one for all; no shift is None). Each gives codes of the data's
format.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final

import numpy as np

from pypto_cast.dialects.openvino.arithmetic import Floats, compute
from pypto_cast.dialects.openvino.nan_payloads import Payload, carry_nan
from pypto_cast.dialects.openvino.number_classes import (
    bfloat16_of,
    float16_of,
    float_of_bfloat16,
    float_of_float16,
)
from pypto_cast.options.context import current
from simulator.numbers import elementwise, fast
from simulator.numbers.convert import (
    INF_NAN,
    SATURATE,
    SATURATE_KEEP_NAN,
    Conversion,
    Policy,
    convert,
)
from simulator.numbers.formats import BF16, E4M3FN, E5M2, FP16, FP32, Codes, FloatFormat
from simulator.numbers.rounding import RoundMode

Numerics = Callable[[Codes, FloatFormat, FloatFormat, Floats, Floats | None], Codes]
Kernel = Callable[[Codes, Codes], None]

# --- "reference" --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _NumberClass:
    """The arithmetic of OpenVINO in f16 and bf16: float32, narrowed after every operation.

    Attributes:
        widen: its codes to FP32 codes, exactly.
        narrow: FP32 codes to its codes.
        commutes: of two NaNs, sums and products hand on the second, as 2026.4.1 is compiled.
    """

    widen: Kernel
    narrow: Kernel
    commutes: bool = False


_NUMBER_CLASSES: Final[Mapping[FloatFormat, _NumberClass]] = MappingProxyType(
    {
        FP16: _NumberClass(widen=float_of_float16, narrow=float16_of, commutes=True),
        BF16: _NumberClass(widen=float_of_bfloat16, narrow=bfloat16_of),
    }
)

_NO_SHIFT: Final = np.zeros(1, np.float32)


def reference(
    codes: Codes, fmt: FloatFormat, float8: FloatFormat, scale: Floats, shift: Floats | None
) -> Codes:
    """OpenVINO's core: arithmetic in the type of the data, to float16, and there a table.

    An absent shift is +0, which is subtracted and added all the same.
    """
    commuted = fmt is not FP32 and _NUMBER_CLASSES[fmt].commutes
    if shift is None:
        shift = _NO_SHIFT

    def rounded(values: Floats) -> Floats:
        return values if fmt is FP32 else widened(_narrowed(values, fmt), fmt)

    values = rounded(compute(np.multiply, widened(codes, fmt), scale, commuted=commuted))
    values = rounded(compute(np.subtract, values, shift))
    values = _emulated(values, float8)
    values = rounded(compute(np.add, values, shift, commuted=commuted))
    return _narrowed(compute(np.divide, values, scale), fmt)


def widened(codes: Codes, fmt: FloatFormat) -> Floats:
    """The float32 numbers of 1-D codes of f16, bf16 or f32; exact, NaNs with their payload.

    A new array, or a view of codes that are of f32.
    """
    if fmt is FP32:
        return codes.view(np.float32)
    words = np.empty(codes.size, FP32.code_dtype)
    _NUMBER_CLASSES[fmt].widen(codes, words)
    return words.view(np.float32)


def _narrowed(values: Floats, fmt: FloatFormat) -> Codes:
    if fmt is FP32:
        return values.view(FP32.code_dtype)
    codes = np.empty(values.size, fmt.code_dtype)
    _NUMBER_CLASSES[fmt].narrow(values.view(FP32.code_dtype), codes)
    return codes


def _emulated(values: Floats, float8: FloatFormat) -> Floats:
    """Round to float16, and there to what the 8-bit format holds."""
    halves = _narrowed(values, FP16)
    words = np.empty(values.size, FP32.code_dtype)
    _emulation(float8)(halves, words)
    return words.view(np.float32)


@cache
def _emulation(float8: FloatFormat) -> Kernel:
    """FP16 codes to the FP32 codes of the emulated numbers, by a table of all."""

    def emulate_all(halves: Codes) -> Codes:
        words = np.empty(halves.size, FP32.code_dtype)
        float_of_float16(_EMULATIONS[float8](halves), words)
        return words

    return fast.look_up(emulate_all, FP16)


def _emulate_e5m2(halves: Codes) -> Codes:
    """Nearest, ties to even, gradual; beyond, and infinity, +-57344; NaN keeps two payload bits."""
    float8s = convert(halves, FP16, E5M2, RoundMode.RINT, SATURATE_KEEP_NAN)
    carry_nan(halves, FP16, float8s, E5M2, Payload.CUT)
    emulated = convert(float8s, E5M2, FP16, RoundMode.RINT, INF_NAN)
    carry_nan(float8s, E5M2, emulated, FP16, Payload.CUT)
    return emulated


_FP16_SIGN: Final = np.uint16(FP16.sign_code)
_LEAST_E4M3: Final = np.float16(2.0**E4M3FN.min_quantum)
_CUT_BITS: Final = FP16.man_bits - E4M3FN.man_bits


def _emulate_e4m3(halves: Codes) -> Codes:
    """Nearest, ties to even, to four significant bits; then cut to E4M3's last place.

    What is smaller than the least number of E4M3 becomes +0 before it could be rounded up; what is
    beyond the largest, infinity and NaN too, +-448 by its sign.
    """
    signs = halves & _FP16_SIGN
    magnitudes = halves ^ signs
    odd = magnitudes >> np.uint16(_CUT_BITS) & np.uint16(1)
    below_half = np.uint16((1 << (_CUT_BITS - 1)) - 1)
    four_bits = (magnitudes + below_half + odd) >> np.uint16(_CUT_BITS) << np.uint16(_CUT_BITS)
    float8s = convert(four_bits, FP16, E4M3FN, RoundMode.TRUNC, SATURATE)
    emulated = convert(float8s, E4M3FN, FP16, RoundMode.RINT, INF_NAN)
    largest = convert(np.array(E4M3FN.max_code, np.uint8), E4M3FN, FP16, RoundMode.RINT, INF_NAN)
    emulated = np.where(magnitudes >= largest, largest, emulated) | signs
    small = magnitudes < _LEAST_E4M3.view(np.uint16)
    return np.where(small, np.uint16(0), emulated)


_EMULATIONS: Final[Mapping[FloatFormat, Callable[[Codes], Codes]]] = MappingProxyType(
    {E4M3FN: _emulate_e4m3, E5M2: _emulate_e5m2}
)

# --- "plugin" and "rne" ---------------------------------------------------------------------------


def plugin(
    codes: Codes, fmt: FloatFormat, float8: FloatFormat, scale: Floats, shift: Floats | None
) -> Codes:
    """OpenVINO's CPU plugin: float32, clamped, through float16, times the reciprocal of the scale.

    Its float16 is the core's class. A NaN is clamped too, to the most negative number. The result
    is rounded once to its type.
    """
    values = _moved(codes, fmt, scale, shift)
    largest = np.array(float8.max_code, float8.code_dtype).view(float8.dtype).astype(np.float32)
    np.fmax(values, -largest, out=values)
    np.minimum(values, largest, out=values)
    halves = _narrowed(values, FP16)
    values = _converted(halves, (FP16, float8, FP32), INF_NAN)
    reciprocal = compute(np.divide, _ONE, scale)
    return _result(compute(np.multiply, _moved_back(values, shift), reciprocal), fmt)


def rne(
    codes: Codes, fmt: FloatFormat, float8: FloatFormat, scale: Floats, shift: Floats | None
) -> Codes:
    """The operation's order, in float32, with one rounding to the 8-bit format, which saturates.

    Beyond its largest number that number, for infinity too; NaN stays NaN. The result is rounded
    once to its type.
    """
    values = _moved(codes, fmt, scale, shift)
    words = values.view(FP32.code_dtype)
    values = _converted(words, (FP32, float8, FP32), SATURATE_KEEP_NAN)
    return _result(compute(np.divide, _moved_back(values, shift), scale), fmt)


_ONE: Final = np.ones(1, np.float32)


def _moved(codes: Codes, fmt: FloatFormat, scale: Floats, shift: Floats | None) -> Floats:
    values = compute(np.multiply, widened(codes, fmt), scale)
    return values if shift is None else compute(np.subtract, values, shift)


def _moved_back(values: Floats, shift: Floats | None) -> Floats:
    return values if shift is None else compute(np.add, values, shift)


def _converted(codes: Codes, formats: tuple[FloatFormat, ...], policy: Policy) -> Floats:
    chain = tuple(
        Conversion(src=near, dst=far, mode=RoundMode.RINT, policy=policy)
        for near, far in itertools.pairwise(formats)
    )
    words = np.empty(codes.size, FP32.code_dtype)
    elementwise.kernel(chain, engine=current().converter)(codes, words)
    return words.view(np.float32)


def _result(values: Floats, fmt: FloatFormat) -> Codes:
    words = values.view(FP32.code_dtype)
    if fmt is FP32:
        return words
    conversion = Conversion(src=FP32, dst=fmt, mode=RoundMode.RINT, policy=INF_NAN)
    codes = np.empty(values.size, fmt.code_dtype)
    elementwise.kernel((conversion,), engine=current().converter)(words, codes)
    return codes
