"""The formats of codes with scales, a row each: the casts that make them and their layout in files.

Sources: the layouts are those of the package compressed-tensors (`config.CompressionFormat`,
`quantization.QuantizationArgs`; MX scales: `compressors.mx_utils`); the formats of MX, their groups
of 32 and the exponent of the scale are those of the OCP Microscaling Formats specification 1.0,
sections 5.2, 5.3 and 6.3.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from ascend_kernels.matrix import UnsupportedCastError
from ascend_kernels.program import conversions as conversions_of
from pypto_cast.cast.cast_plan import resolve_cast
from pypto_cast.dtypes.data_types import (
    DT_BF16,
    DT_FP4_E2M1X2,
    DT_FP8E4M3,
    DT_FP8E8M0,
    DT_FP16,
    DT_FP32,
    DT_INT8,
    DT_INT32,
    DT_UINT8,
    CastMode,
    DataType,
    SaturationMode,
)
from pypto_cast.options.context import current
from simulator.numbers.convert import Conversion
from simulator.numbers.formats import IntFormat
from tiling.chips import CHIPS

STRATEGIES: Final = ("channel", "tensor", "block")
"""One scale for each index along an axis, one for all, or one for a square of a matrix."""
BLOCK_ELEMS: Final = 128
"""Rows and columns of such a square, as in the checkpoints of DeepSeek-V3."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CodeFormat:
    """Codes with scales.

    Attributes:
        name: of `--quantize`.
        route: the dtypes of the casts of a quotient, all by RINT; the last is that of the codes.
        low: the least number that a quotient is clamped to.
        high: the greatest, which the largest magnitude of a channel becomes.
        scale: dtype of the scales; E8M0 where they are powers of two.
        group_elems: elements along the last axis that share a scale; 0: a strategy says which do.
        has_zero_points: may have them.
        layout: compressed-tensors' name of the format.
        suffix: ends the name of the codes where two of them share a byte.
    """

    name: str
    route: tuple[DataType, ...]
    low: float
    high: float
    layout: str
    scale: DataType = DT_FP32
    group_elems: int = 0
    has_zero_points: bool = False
    suffix: str = ""

    @property
    def dtype(self) -> DataType:
        """Of the codes."""
        return self.route[-1]

    @property
    def per_byte(self) -> int:
        """Codes in a byte."""
        return 8 // self.dtype.number_format.bits

    @property
    def is_mx(self) -> bool:
        """The scales are powers of two."""
        return self.scale is DT_FP8E8M0

    @property
    def stored_scale(self) -> DataType:
        """The dtype of a file's scales: bytes for E8M0, as compressed-tensors has them."""
        return DT_UINT8 if self.is_mx else self.scale

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of compressed-tensors' QuantizationArgs, but for the strategy."""
        of_codes = self.dtype.number_format
        kind = "int" if isinstance(of_codes, IntFormat) else "float"
        said: dict[str, Any] = {"num_bits": of_codes.bits, "type": kind}
        if self.group_elems:
            said |= {"group_size": self.group_elems}
        if self.is_mx:
            said |= {"scale_dtype": "torch.uint8"}
        return said

    def conversions(self) -> tuple[Conversion, ...]:
        """The casts of a quotient, by the chip of the context.

        Raises:
            UnsupportedCastError: its family has one of them not; the text names a chip that has.
        """
        return _conversions(self, current().chip.isa)


_MX_ELEMS: Final = 32

# fmt: off
CODE_FORMATS: Final[Mapping[str, CodeFormat]] = MappingProxyType({row.name: row for row in (
    CodeFormat(
        name="int8", route=(DT_FP32, DT_INT32, DT_FP16, DT_INT8), low=-128, high=127,
        layout="int-quantized", has_zero_points=True,
    ),
    CodeFormat(
        name="fp8", route=(DT_FP32, DT_FP8E4M3), low=-448, high=448, layout="float-quantized",
    ),
    CodeFormat(
        name="mxfp8", route=(DT_FP32, DT_FP8E4M3), low=-448, high=448, layout="mxfp8-quantized",
        scale=DT_FP8E8M0, group_elems=_MX_ELEMS,
    ),
    CodeFormat(
        name="mxfp4", route=(DT_FP32, DT_BF16, DT_FP4_E2M1X2), low=-6, high=6,
        layout="mxfp4-pack-quantized", scale=DT_FP8E8M0, group_elems=_MX_ELEMS, suffix="_packed",
    ),
)})
"""By the name that asks for it."""
# fmt: on


@functools.cache
def _conversions(codes: CodeFormat, family: str) -> tuple[Conversion, ...]:
    found: list[Conversion] = []
    for src, dst in itertools.pairwise(codes.route):
        try:
            resolution = resolve_cast(
                src, dst, CastMode.CAST_RINT, SaturationMode.ON, family=family
            )
        except UnsupportedCastError:
            other = _chip_of(src, dst)
            raise UnsupportedCastError(
                f"--quantize {codes.name} needs a cast {src} -> {dst}, which {family} has not; "
                f"--chip {other} has it"
            ) from None
        found += conversions_of(resolution)
    return tuple(found)


def _chip_of(src: DataType, dst: DataType) -> str:
    """The first chip of a family that has a cast which some family has."""
    for chip in CHIPS.values():
        try:
            resolve_cast(src, dst, CastMode.CAST_RINT, SaturationMode.ON, family=chip.isa)
        except UnsupportedCastError:
            continue
        return chip.name
    raise AssertionError(f"no chip casts {src} -> {dst}")
