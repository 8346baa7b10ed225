"""INT8 codes of weights: the scale of each channel, the codes, and the codes left open.

    scale, symmetric:    s = c / 127,          z = 0          c: the largest magnitude to hold
    scale, asymmetric:   s = (h - l) / 255,    z = RINT(-128 - l / s)    l <= 0 <= h
    code:                FP32 quotient x / s, plus z in FP32, then FP32 -> INT32 by RINT -> FP16 ->
                         INT8, clamped to -128..127, each as A2/A3 casts it

`absmax` takes the extremes for c, or l and h; `percentile:99.9` what 99.9 % of the magnitudes do
not exceed; `mse` of 80 shortenings of the extremes that with the least sum of squared errors.

The device divides within a bound and not to the last bit (`simulator.arithmetic`), so the code of a
quotient near the middle between two integers is open; such codes are counted.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ascend_kernels.program import conversions as conversions_of
from pypto_cast.cast.cast_plan import resolve_cast
from pypto_cast.checkpoints.stored import DTYPES, StoredTensor
from pypto_cast.dtypes.data_types import CastMode, DataType, SaturationMode
from pypto_cast.report.text_format import plural
from simulator import arithmetic
from simulator.numbers.convert import Conversion
from simulator.numbers.formats import FP32, FloatFormat
from tiling.grid import Shape

Floats = npt.NDArray[np.float32]
_MAX_CODE: Final = 127
_MIN_CODE: Final = -128
_ROUTE: Final = (DataType.DT_FP32, DataType.DT_INT32, DataType.DT_FP16, DataType.DT_INT8)
_LEAST_SCALE: Final = np.float32(2.0**-126)
"""A scale is a normal number, so that no quotient of a weight by its scale exceeds the range."""
_SHORTENINGS: Final = tuple(1 - step / 100 for step in range(80))
CODED_DTYPES: Final = tuple(
    name
    for name, dtype in DTYPES.items()
    if isinstance(dtype.format, FloatFormat) and dtype.format.bits > 8
)
"""safetensors' names of the dtypes that become codes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantizing:
    """The rule by which scales come about.

    Attributes:
        axis: the channels lie along it; -1 is the last one.
        rule: "absmax", "percentile" or "mse".
        percent: of "percentile".
        symmetric: without zero points.
        dims: numbers of dimensions of the tensors that become codes.
    """

    axis: int = 0
    rule: str = "absmax"
    percent: float = 100.0
    symmetric: bool = True
    dims: tuple[int, ...] = (2,)

    def refusal(self, stored: StoredTensor) -> str:
        """The reason why a tensor does not become codes; empty if it does."""
        rank = len(stored.shape)
        if stored.dtype not in CODED_DTYPES:
            return f"{stored.dtype_in_words} has no INT8 codes"
        if rank not in self.dims:
            return f"{plural(rank, 'dimension')}, and --dims takes {self.dims_text}"
        if not self.has_axis(rank):
            return f"no axis {self.axis}"
        return "stored by columns, which no scales are computed of" if stored.is_fortran else ""

    @property
    def dims_text(self) -> str:
        """`2 or 3`."""
        return " or ".join(map(str, self.dims))

    def has_axis(self, rank: int) -> bool:
        """Tensors of so many dimensions have the axis."""
        return -rank <= self.axis < rank

    def scale_shape(self, shape: Shape) -> Shape:
        """The shape of the scales, with 1 along the axes that share one."""
        axis = self.axis % len(shape)
        return tuple(extent if k == axis else 1 for k, extent in enumerate(shape))

    @property
    def is_by_rows(self) -> bool:
        """Has the scales that the layout knows: one a row of a matrix."""
        return self.dims == (2,) and self.axis in (0, -2)

    @property
    def needs_whole_channels(self) -> bool:
        """Does not follow from the extremes of parts of a channel."""
        return self.rule != "absmax"


def quantizing_of(
    dtype: str,
    axis: int = 0,
    scale: str = "absmax",
    *,
    symmetric: bool = True,
    dims: tuple[int, ...] = (2,),
) -> Quantizing:
    """Read how scales are asked for: `absmax`, `percentile:99.9` or `mse`.

    Raises:
        ValueError: another dtype than INT8, another scale, or no number of dimensions.
    """
    for rank in dims:
        if rank < 1:
            raise ValueError(f"--dims is a number of dimensions, at least 1, not {rank}")
    if dtype.lower().removeprefix("dt_") != "int8":
        raise ValueError(f"--quantize makes int8 codes, not {dtype!r}")
    rule, colon, percent = scale.partition(":")
    try:
        share = float(percent) if colon else 100.0
    except ValueError:
        share = math.nan
    known = rule == "percentile" if colon else rule in ("absmax", "mse")
    if not known or not 0 < share <= 100:
        raise ValueError(f"--scale is absmax, percentile:99.9 or mse, not {scale!r}")
    return Quantizing(axis=axis, rule=rule, percent=share, symmetric=symmetric, dims=dims)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scales:
    """Scales and zero points of one tensor, in the shape that broadcasts over it."""

    scale: Floats
    zero_point: Floats | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Codes:
    """INT8 codes, the number of them that A2/A3's division leaves open, and their values."""

    values: npt.NDArray[np.int8]
    uncertain: int
    clamped: int


def extremes(values: Floats, axis: int) -> tuple[Floats, Floats]:
    """The least and the greatest of each channel, with 1 along the other axes."""
    others = tuple(k for k in range(values.ndim) if k != axis % values.ndim)
    return values.min(axis=others, keepdims=True), values.max(axis=others, keepdims=True)


def bounded_extremes(values: Floats, quantizing: Quantizing) -> tuple[Floats, Floats]:
    """The ends of the range that the codes of each channel are to hold, of whole channels."""
    low, high = extremes(values, quantizing.axis)
    if quantizing.rule == "percentile":
        return _percentiles(values, quantizing)
    if quantizing.rule == "mse":
        return _least_error(values, low, high, quantizing)
    return low, high


def scales_of(low: Floats, high: Floats, quantizing: Quantizing) -> Scales:
    """Scales and zero points of channels with these ends; computed in FP32."""
    if quantizing.symmetric:
        return Scales(scale=_usable(np.maximum(-low, high), _MAX_CODE), zero_point=None)
    low, high = np.minimum(low, 0), np.maximum(high, 0)
    # Halves first: the difference of the ends may exceed FP32.
    scale = _usable(high / 2 - low / 2, (_MAX_CODE - _MIN_CODE) / 2)
    zero = np.clip(np.rint(_MIN_CODE - low / scale), _MIN_CODE, _MAX_CODE)
    return Scales(scale=scale, zero_point=zero.astype(np.float32))


def codes_of(values: Floats, scales: Scales) -> Codes:
    """The codes of weights, and how many of them are open.

    Args:
        values: any shape; NaN and infinity are not among them.
        scales: of a shape that broadcasts.
    """
    operands = [
        arithmetic.Enclosure(values=values),
        arithmetic.Enclosure(values=np.broadcast_to(scales.scale, values.shape)),
    ]
    quotient = arithmetic.evaluate(arithmetic.OPERATIONS["div"], operands, FP32)
    if scales.zero_point is not None:
        zero = arithmetic.Enclosure(values=np.broadcast_to(scales.zero_point, values.shape))
        quotient = arithmetic.evaluate(arithmetic.OPERATIONS["add"], [quotient, zero], FP32)
    found = arithmetic.cast(route(), quotient)
    codes = found.values.reshape(values.shape)
    rounded = np.rint(quotient.values)
    return Codes(
        values=codes,
        uncertain=codes.size - int(np.count_nonzero(found.certain())),
        clamped=int(np.count_nonzero((rounded < _MIN_CODE) | (rounded > _MAX_CODE))),
    )


def restored(codes: npt.NDArray[np.int8], scales: Scales) -> Floats:
    """The numbers that codes stand for: (code - zero point) * scale, in FP32."""
    wide = codes.astype(np.float32)
    if scales.zero_point is not None:
        wide = wide - scales.zero_point
    return wide * scales.scale


@functools.cache
def route() -> tuple[Conversion, ...]:
    """FP32 -> INT32 by RINT -> FP16 -> INT8, clamped."""
    steps: list[Conversion] = []
    for src, dst in itertools.pairwise(_ROUTE):
        resolution = resolve_cast(src, dst, CastMode.CAST_RINT, SaturationMode.ON)
        steps += conversions_of(resolution)
    return tuple(steps)


def widened(stored: StoredTensor, values: npt.NDArray[np.generic]) -> Floats:
    """Values of a float format in FP32, which holds all of them."""
    fmt = DTYPES[stored.dtype].format
    return values.view(fmt.dtype if fmt is not None else values.dtype).astype(np.float32)


def _usable(extent: npt.NDArray[Any], codes: float) -> Floats:
    """The scale at which so many codes hold an extent, a quotient in FP32.

    It is 1 for a channel of zeros, whose codes are 0, and else no subnormal number.
    """
    scale = np.divide(extent, codes, dtype=np.float32)
    usable = np.where(extent == 0, np.float32(1), np.maximum(scale, _LEAST_SCALE))
    return usable.astype(np.float32)


def _percentiles(values: Floats, quantizing: Quantizing) -> tuple[Floats, Floats]:
    others = tuple(k for k in range(values.ndim) if k != quantizing.axis % values.ndim)
    upper, lower = quantizing.percent, 100 - quantizing.percent
    if quantizing.symmetric:
        most = _percentile(np.abs(values), upper, others)
        return -most, most
    return _percentile(values, lower, others), _percentile(values, upper, others)


def _percentile(values: Floats, percent: float, axes: tuple[int, ...]) -> Floats:
    # An element of the channel, so that no interpolation has to be agreed on.
    found = np.percentile(values, percent, axis=axes, keepdims=True, method="nearest")
    return np.asarray(found, np.float32)


def _least_error(
    values: Floats, low: Floats, high: Floats, quantizing: Quantizing
) -> tuple[Floats, Floats]:
    others = tuple(k for k in range(values.ndim) if k != quantizing.axis % values.ndim)
    best = np.full(low.shape, np.inf)
    ends = low, high
    for share in _SHORTENINGS:
        shorter = low * np.float32(share), high * np.float32(share)
        scales = scales_of(*shorter, quantizing)
        zero = np.float32(0) if scales.zero_point is None else scales.zero_point
        codes = np.clip(np.rint(values / scales.scale + zero), _MIN_CODE, _MAX_CODE)
        held = (codes - zero).astype(np.float64) * scales.scale
        error = np.square(held - values)
        total = error.sum(axis=others, keepdims=True)
        better = total < best
        best = np.where(better, total, best)
        ends = np.where(better, shorter[0], ends[0]), np.where(better, shorter[1], ends[1])
    return ends
