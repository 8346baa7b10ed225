"""Rows beside the matrix: conversions that vector instructions make, with casts among them.

UINT16, UINT32, UINT64 and BOOL are cast by no instruction of A2/A3. Their codes lie in registers as
those of another format of their width, and clamps and shifts do the rest. Types of A2/A3, from CANN
asc-devkit: Maxs, Mins and Muls take int16_t, half, int32_t, float; ShiftLeft and ShiftRight
int16_t, uint16_t, int32_t, uint32_t; And int16_t, uint16_t; Select half, float; Compare half, float
(int32_t for equality alone). None takes 64-bit integers, so nothing clamps INT64 at 0 and nothing
tells a UINT64 from 2^63 on from a negative INT64.

BOOL is the byte 1 or 0. It is "not zero", as the definition and numpy have it: NaN is true.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ascend_kernels.matrix import MATRIX, CastStep, ScalarStep, resolve
from simulator.machine.isa import ScalarOp
from simulator.numbers import formats as f
from simulator.numbers.formats import Format
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3

WorkStep = CastStep | ScalarStep

STORAGE_FORMATS: Final[Mapping[Format, Format]] = {
    f.UINT16: f.INT16,
    f.UINT32: f.INT32,
    f.UINT64: f.INT64,
    f.BOOL: f.UINT8,
}
"""The format as which instructions of A2/A3 see the codes of one that they do not have."""
_STORAGE_FORMATS: Final = {A2_A3: STORAGE_FORMATS}


def storage_format(fmt: Format, family: str = A2_A3) -> Format:
    """The format as which the instructions of a family see a format's codes."""
    return _STORAGE_FORMATS.get(family, {}).get(fmt, fmt)


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorRow:
    """A conversion by vector instructions.

    Attributes:
        src: source format.
        dst: destination format.
        modes: those that a caller can choose from; none where nothing is rounded.
        work: the instructions; a cast that `takes_mode` has the caller's.
        suffix: what sets it apart from a row of the matrix of the same pair, in words.
        family: the instructions.
    """

    src: Format
    dst: Format
    work: tuple[WorkStep, ...]
    modes: tuple[RoundMode, ...] = ()
    suffix: str = ""
    family: str = A2_A3

    def __str__(self) -> str:
        return f"{self.src} -> {self.dst}"


def _scalar(op: ScalarOp, fmt: Format, scalar: float) -> ScalarStep:
    return ScalarStep(op=op, format=fmt, scalar=scalar)


def _cast(
    src: Format, dst: Format, mode: RoundMode | None = None, *, saturate: bool = True
) -> CastStep:
    (step,) = resolve(A2_A3, src, dst, mode, saturate=saturate).casts
    return dataclasses.replace(step, takes_mode=False)


def _not_negative(fmt: Format) -> ScalarStep:
    return _scalar(ScalarOp.MAXS, fmt, 0)


_M5: Final = MATRIX[A2_A3][f.FP32, f.INT64].modes
_TO_BYTE: Final = _cast(f.FP16, f.UINT8, RoundMode.RINT)
_INT32_TO_BOOL: Final = (_cast(f.INT32, f.FP16, RoundMode.RINT), _TO_BYTE)
_INT16_TO_BOOL: Final = (_cast(f.INT16, f.FP16, RoundMode.RINT), _TO_BYTE)


def _shifts(fmt: Format, bits: int) -> tuple[WorkStep, ...]:
    """Clears the highest bits."""
    return (
        _scalar(ScalarOp.SHIFT_LEFT, fmt, bits),
        _scalar(ScalarOp.SHIFT_RIGHT, fmt, bits),
    )


def _truth_of_16_bits(src: Format) -> VectorRow:
    """The magnitude's code, at most 1."""
    work = (*_shifts(f.UINT16, 1), _scalar(ScalarOp.MINS, f.INT16, 1), *_INT16_TO_BOOL)
    return VectorRow(src=src, dst=f.BOOL, work=work)


_SMALLEST: Final = 2.0**-24
"""The smallest subnormal number of FP16."""
_HALF_WAY_BACK: Final = 2.0**12

VECTOR_ROWS: Final = (
    # The lowest 16 bits of an INT32 are all that a UINT16 has: the sign is shifted out.
    VectorRow(
        src=f.UINT16,
        dst=f.INT32,
        work=(
            _cast(f.INT16, f.FP32),
            _cast(f.FP32, f.INT32, RoundMode.RINT),
            *_shifts(f.UINT32, 16),
        ),
    ),
    # Right below 2^31; nothing can be done to the others but copying them.
    VectorRow(src=f.UINT32, dst=f.INT32, work=(_scalar(ScalarOp.MINS, f.INT32, f.INT32.max),)),
    # Right below 2^63.
    VectorRow(src=f.UINT64, dst=f.INT64, work=()),
    VectorRow(src=f.BOOL, dst=f.FP16, work=(_cast(f.UINT8, f.FP16),)),
    VectorRow(src=f.INT16, dst=f.UINT16, work=(_not_negative(f.INT16),)),
    VectorRow(
        src=f.INT32,
        dst=f.UINT16,
        work=(
            _not_negative(f.INT32),
            _scalar(ScalarOp.MINS, f.INT32, f.UINT16.max),
            _cast(f.INT32, f.INT16, saturate=False),
        ),
    ),
    VectorRow(src=f.INT32, dst=f.UINT32, work=(_not_negative(f.INT32),)),
    # The largest INT64, of infinities, has the low bits of the largest UINT32.
    VectorRow(
        src=f.FP32,
        dst=f.UINT32,
        modes=_M5,
        work=(
            _not_negative(f.FP32),
            CastStep(src=f.FP32, dst=f.INT64, takes_mode=True),
            _cast(f.INT64, f.INT32, saturate=False),
        ),
    ),
    VectorRow(
        src=f.INT32,
        dst=f.UINT64,
        work=(_not_negative(f.INT32), _cast(f.INT32, f.INT64)),
    ),
    VectorRow(
        src=f.FP32,
        dst=f.UINT64,
        modes=_M5,
        work=(_not_negative(f.FP32), CastStep(src=f.FP32, dst=f.INT64, takes_mode=True)),
    ),
    VectorRow(
        src=f.FP32,
        dst=f.BOOL,
        work=(*_shifts(f.UINT32, 1), _scalar(ScalarOp.MINS, f.INT32, 1), *_INT32_TO_BOOL),
    ),
    _truth_of_16_bits(f.FP16),
    _truth_of_16_bits(f.BF16),
    # -1, 0 or 1, and of that the lowest bit.
    VectorRow(
        src=f.INT32,
        dst=f.BOOL,
        work=(
            _scalar(ScalarOp.MAXS, f.INT32, -1),
            _scalar(ScalarOp.MINS, f.INT32, 1),
            *_shifts(f.UINT32, 31),
            *_INT32_TO_BOOL,
        ),
    ),
    # Scaled so that the last place of subnormal FP16 is 1: the cast rounds to integers, by CAST_ODD
    # too, which no cast to an integer has.
    VectorRow(
        src=f.FP32,
        dst=f.FP16,
        modes=(RoundMode.ODD,),
        suffix="scaled",
        work=(
            _scalar(ScalarOp.MULS, f.FP32, _SMALLEST),
            CastStep(src=f.FP32, dst=f.FP16, takes_mode=True),
            _scalar(ScalarOp.MULS, f.FP16, _HALF_WAY_BACK),
            _scalar(ScalarOp.MULS, f.FP16, _HALF_WAY_BACK),
        ),
    ),
)
