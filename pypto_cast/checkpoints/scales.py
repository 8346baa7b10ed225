"""Codes of weights: the scale of each channel, the codes, and the codes left open.

    scale, symmetric:    s = c / high,         z = 0          c: the largest magnitude to hold
    scale, asymmetric:   s = (h - l) / 255,    z = RINT(-128 - l / s)    l <= 0 <= h
    scale, MX:           s = 2 ** (floor(log2(c)) - floor(log2(high))), no further than E8M0 goes
    code:                FP32 quotient x / s, plus z in FP32, clamped to low..high, then the casts
                         of `code_formats`, as the chip of the context casts

`absmax` takes the extremes for c, or l and h; `percentile:99.9` what 99.9 % of the magnitudes do
not exceed; `mse` of 80 shortenings of the extremes that with the least sum of squared errors.

The device divides within a bound and not to the last bit (`simulator.arithmetic`), so the code of a
quotient near the middle between two codes is open; such codes are counted. A quotient by a power of
two is exact. A channel of zeros has the scale 1, of MX the least one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.checkpoints.code_formats import (
    BLOCK_ELEMS,
    CODE_FORMATS,
    STRATEGIES,
    CodeFormat,
)
from pypto_cast.checkpoints.stored import DTYPES, StoredTensor
from pypto_cast.report.text_format import plural
from simulator import arithmetic
from simulator.numbers.convert import in_numpy
from simulator.numbers.formats import FP32, FloatFormat, IntFormat
from tiling.grid import Shape

Floats = npt.NDArray[np.float32]
_ASYMMETRIC_CODES: Final = 255
_LEAST_SCALE: Final = np.float32(2.0**-126)
"""A scale is a normal number, so that no quotient of a weight by its scale exceeds the range."""
_LEAST_EXPONENT: Final = -127
"""Of E8M0, whose greatest is 127."""
_SHORTENINGS: Final = tuple(1 - step / 100 for step in range(80))
CODED_DTYPES: Final = tuple(
    name
    for name, dtype in DTYPES.items()
    if isinstance(dtype.format, FloatFormat) and dtype.format.bits > 8
)
"""safetensors' names of the dtypes that become codes. Floats of a byte do not: a file may hold
scales for them, which would not be applied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantizing:
    """The rule by which scales come about.

    Attributes:
        codes: their format.
        strategy: one of `STRATEGIES`: the elements that share a scale, unless the format says it.
        axis: the channels lie along it; -1 is the last one.
        rule: "absmax", "percentile" or "mse".
        percent: of "percentile".
        symmetric: without zero points.
        dims: numbers of dimensions of the tensors that become codes.
    """

    codes: CodeFormat = CODE_FORMATS["int8"]
    strategy: str = STRATEGIES[0]
    axis: int = 0
    rule: str = "absmax"
    percent: float = 100.0
    symmetric: bool = True
    dims: tuple[int, ...] = (2,)

    def refusal(self, stored: StoredTensor) -> str:
        """The reason why a tensor does not become codes; empty if it does."""
        rank = len(stored.shape)
        if stored.dtype not in CODED_DTYPES:
            return f"{stored.dtype_in_words} has no {self.codes.dtype.format} codes"
        if rank not in self.dims:
            return f"{plural(rank, 'dimension')}, and --dims takes {self.dims_text}"
        if not self.has_axis(rank):
            return f"no axis {self.axis}"
        if self.is_by_blocks and rank != 2:
            return f"{plural(rank, 'dimension')}, and blocks are of matrices"
        if stored.shape[-1] % self.shared_elems:
            return (
                f"{stored.shape[-1]} elements along the last axis are no multiple of the "
                f"{self.shared_elems} that share a scale"
            )
        return "stored by columns, which no scales are computed of" if stored.is_fortran else ""

    @property
    def has_channels(self) -> bool:
        """A scale is of an index along an axis."""
        return self.strategy == STRATEGIES[0]

    @property
    def is_by_blocks(self) -> bool:
        """A scale is of a square of a matrix."""
        return self.strategy == "block"

    @property
    def shared_elems(self) -> int:
        """The last axis is a multiple of so many."""
        return self.codes.group_elems or (BLOCK_ELEMS if self.is_by_blocks else 1)

    @property
    def described(self) -> str:
        """`INT8 with symmetric scales along axis 0`."""
        zero = f"{'' if self.symmetric else 'a'}symmetric "
        where = {
            "channel": f"{zero}scales along axis {self.axis}",
            "tensor": f"{'a' if self.symmetric else 'an'} {zero}scale for each tensor",
            "block": f"{zero}scales of {BLOCK_ELEMS} x {BLOCK_ELEMS} elements",
            "group": f"scales of {self.codes.group_elems} elements",
        }
        return f"{self.codes.dtype.format} with {where[self.strategy]}"

    @property
    def dims_text(self) -> str:
        """`2 or 3`."""
        return " or ".join(map(str, self.dims))

    def has_axis(self, rank: int) -> bool:
        """Tensors of so many dimensions have the axis."""
        return -rank <= self.axis < rank

    def scale_shape(self, shape: Shape) -> Shape:
        """The shape of the scales, with 1 along the axes whose elements share one."""
        if self.strategy == "tensor":
            return (1,)
        if self.strategy == "block":
            return -(-shape[0] // BLOCK_ELEMS), shape[1] // BLOCK_ELEMS
        if self.strategy == "group":
            return (*shape[:-1], shape[-1] // self.codes.group_elems)
        axis = self.axis % len(shape)
        return tuple(extent if k == axis else 1 for k, extent in enumerate(shape))

    @property
    def is_known(self) -> bool:
        """Has the scales that the layout knows: of matrices, and of channels one a row."""
        return self.dims == (2,) and (self.strategy != "channel" or self.axis in (0, -2))

    @property
    def needs_whole_channels(self) -> bool:
        """Does not follow from the extremes of parts of a channel."""
        return self.rule != "absmax"


def quantizing_of(
    codes: str,
    axis: int = 0,
    scale: str = "absmax",
    *,
    strategy: str = STRATEGIES[0],
    symmetric: bool = True,
    dims: tuple[int, ...] = (2,),
) -> Quantizing:
    """Read how scales are asked for: `absmax`, `percentile:99.9` or `mse`.

    Raises:
        ValueError: codes, a scale or a strategy that there are not, zero points or another strategy
            or axis where the codes have none, or no number of dimensions.
        UnsupportedCastError: the chip of the context has not the casts of the codes.
    """
    for rank in dims:
        if rank < 1:
            raise ValueError(f"--dims is a number of dimensions, at least 1, not {rank}")
    chosen = CODE_FORMATS.get(codes.lower().removeprefix("dt_"))
    if chosen is None:
        raise ValueError(f"--quantize makes {', '.join(CODE_FORMATS)} codes, not {codes!r}")
    if strategy not in STRATEGIES:
        raise ValueError(f"--strategy is {', '.join(STRATEGIES)}, not {strategy!r}")
    if not (symmetric or chosen.has_zero_points):
        raise ValueError(f"{chosen.name} codes have no zero points; leave --asymmetric away")
    if chosen.group_elems:
        if strategy != STRATEGIES[0] or axis not in (0, -1):
            raise ValueError(
                f"{chosen.name} has a scale for each {chosen.group_elems} elements of the last "
                "axis; leave --strategy and --axis away"
            )
        strategy = "group"
    elif strategy != STRATEGIES[0] and axis:
        raise ValueError(f"--axis {axis} is of channels; --strategy {strategy} has none")
    rule, colon, percent = scale.partition(":")
    try:
        share = float(percent) if colon else 100.0
    except ValueError:
        share = math.nan
    known = rule == "percentile" if colon else rule in ("absmax", "mse")
    if not known or not 0 < share <= 100:
        raise ValueError(f"--scale is absmax, percentile:99.9 or mse, not {scale!r}")
    if chosen.is_mx and rule != "absmax":
        raise ValueError(f"{chosen.name} has scales by absmax alone, not by {rule}")
    chosen.conversions()
    return Quantizing(
        codes=chosen,
        strategy=strategy,
        axis=-1 if chosen.group_elems else axis,
        rule=rule,
        percent=share,
        symmetric=symmetric,
        dims=dims,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scales:
    """Scales and zero points of one tensor, in the shape that broadcasts over it."""

    codes: CodeFormat
    scale: Floats
    zero_point: Floats | None = None

    @property
    def stored(self) -> npt.NDArray[Any]:
        """The scales as a file has them: of MX the exponents with 127 added, a byte each."""
        if not self.codes.is_mx:
            return self.scale
        _, exponents = np.frexp(self.scale)
        return (exponents - 1 - _LEAST_EXPONENT).astype(np.uint8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Codes:
    """Codes in numpy's dtype of their format, and how many the device's division leaves open."""

    values: npt.NDArray[Any]
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
    codes = quantizing.codes
    if codes.is_mx:
        return Scales(codes=codes, scale=_power_of_two(np.maximum(-low, high), codes.high))
    if quantizing.symmetric:
        return Scales(codes=codes, scale=_usable(np.maximum(-low, high), codes.high))
    low, high = np.minimum(low, 0), np.maximum(high, 0)
    # Halves first: the difference of the ends may exceed FP32.
    scale = _usable(high / 2 - low / 2, _ASYMMETRIC_CODES / 2)
    zero = np.clip(np.rint(codes.low - low / scale), codes.low, codes.high)
    return Scales(codes=codes, scale=scale, zero_point=zero.astype(np.float32))


def codes_of(values: Floats, scales: Scales) -> Codes:
    """The codes of weights, and how many of them are open.

    Args:
        values: any shape; NaN and infinity are not among them.
        scales: of a shape that broadcasts.
    """
    codes = scales.codes
    quotient = arithmetic.Enclosure(values=values)

    def applied(name: str, *operands: Floats | np.float32) -> arithmetic.Enclosure:
        others = (np.broadcast_to(one, values.shape) for one in operands)
        enclosed = [quotient, *(arithmetic.Enclosure(values=one) for one in others)]
        return arithmetic.evaluate(arithmetic.OPERATIONS[name], enclosed, FP32)

    # The reciprocal of a power of two is exact, and so is the product with it.
    inverse = np.reciprocal(scales.scale)
    quotient = applied("mul", inverse) if codes.is_mx else applied("div", scales.scale)
    if scales.zero_point is not None:
        quotient = applied("add", scales.zero_point)
    rounded = _rounded(quotient.values, codes)
    clamped = int(np.count_nonzero((rounded < codes.low) | (rounded > codes.high)))
    quotient = applied("clip", np.float32(codes.low), np.float32(codes.high))
    found = arithmetic.cast(codes.conversions(), quotient)
    return Codes(
        values=found.values.reshape(values.shape),
        uncertain=values.size - int(np.count_nonzero(found.certain())),
        clamped=clamped,
    )


def restored(codes: npt.NDArray[Any], scales: Scales) -> Floats:
    """The numbers that codes stand for: (code - zero point) * scale, in FP32."""
    wide = codes.astype(np.float32)
    if scales.zero_point is not None:
        wide = wide - scales.zero_point
    return wide * scales.scale


def widened(stored: StoredTensor, values: npt.NDArray[np.generic]) -> Floats:
    """Values of a float format in FP32, which holds all of them."""
    fmt = DTYPES[stored.dtype].number_format
    return in_numpy(values.view(fmt.dtype), fmt).astype(np.float32)


def _usable(extent: npt.NDArray[Any], codes: float) -> Floats:
    """The scale at which so many codes hold an extent, a quotient in FP32.

    It is 1 for a channel of zeros, whose codes are 0, and else no subnormal number.
    """
    scale = np.divide(extent, codes, dtype=np.float32)
    usable = np.where(extent == 0, np.float32(1), np.maximum(scale, _LEAST_SCALE))
    return usable.astype(np.float32)


def _power_of_two(extent: Floats, high: float) -> Floats:
    """The power of two by which an extent has the exponent of `high`, within E8M0."""
    _, exponents = np.frexp(extent)
    _, of_high = math.frexp(high)
    apart = np.where(extent == 0, _LEAST_EXPONENT, exponents - of_high)
    within = np.clip(apart, _LEAST_EXPONENT, -_LEAST_EXPONENT).astype(np.int32)
    return np.asarray(np.ldexp(np.float32(1), within), np.float32)


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


def _rounded(quotients: Floats, codes: CodeFormat) -> Floats:
    """The nearest numbers that a format without bounds has, by arithmetic of numpy alone."""
    last_place = np.ldexp(np.float32(1), last_places(quotients, codes).astype(np.int32))
    return np.asarray(np.rint(quotients / last_place) * last_place, np.float32)


def last_places(numbers: Floats, codes: CodeFormat) -> npt.NDArray[np.int64]:
    """The exponents of the last places of numbers in the format of codes; of 0 the least one."""
    fmt = codes.dtype.number_format
    if isinstance(fmt, IntFormat):
        return np.zeros(numbers.shape, np.int64)
    _, exponents = np.frexp(numbers)
    return fmt.quanta(np.where(numbers == 0, np.int32(fmt.emin), exponents - 1))


def subnormals(numbers: Floats, codes: CodeFormat) -> int:
    """The number of those that are subnormal in the format of codes; of integers none is."""
    fmt = codes.dtype.number_format
    if isinstance(fmt, IntFormat):
        return 0
    small = (numbers != 0) & (np.abs(numbers) < 2.0**fmt.emin)
    return int(np.count_nonzero(small))


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
        codes = quantizing.codes
        rounded = _rounded(values / scales.scale + zero, codes)
        held = np.clip(rounded, codes.low, codes.high).astype(np.float64) - zero
        held *= scales.scale
        error = np.square(held - values)
        total = error.sum(axis=others, keepdims=True)
        better = total < best
        best = np.where(better, total, best)
        ends = np.where(better, shorter[0], ends[0]), np.where(better, shorter[1], ends[1])
    return ends
