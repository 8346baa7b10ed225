"""A device that may be off: step by step in float64, each step rounded once, then moved.

Nothing of the project is imported. Without chance it is the device that this library assumes, so
its results are references to compare bits with; with chance it is another one that keeps to the
bounds, whose results must lie in every interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
from support.devices.sum_orders import column_sum, row_sum

Array = npt.NDArray[Any]
BLOCK = 8
"""Elements of FP32 in 32 B."""
REPEAT = 64
"""Elements of FP32 that one instruction reduces."""

FAR_POWERS = {np.float32: (-110.2, 95.6), np.float16: (-23.5, 18.0)}
"""Beyond these e**x lies far outside the positive numbers of the format."""

_ERRORS = {"div": 1, "sqrt": 1, "exp": 2, "log": 2}
BY_TRUST: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "default": _ERRORS,
        "documented": {**_ERRORS, "add": 1, "sub": 1, "mul": 1},
        "ieee": {"exp": 2, "log": 2},
    }
)
"""ULPs by operation that each choice of what to trust leaves open."""


def order_of(values: Array) -> Array:
    """Integers in the order of the numbers, -0 below +0."""
    if np.issubdtype(values.dtype, np.integer) or values.dtype == np.bool_:
        return values.astype(np.int64)
    codes = np.ascontiguousarray(values).view(f"i{values.itemsize}").astype(np.int64)
    codes = codes.reshape(values.shape)
    return np.where(codes < 0, -(codes & np.int64(2 ** (8 * values.itemsize - 1) - 1)) - 1, codes)


def is_possible(values: Array, low: Array, high: Array, may_be_nan: Array | None) -> Array:
    """True where values lie in an interval, in total order; NaN is a class."""
    values, low, high = np.broadcast_arrays(values, low, high)
    between = (order_of(low) <= order_of(values)) & (order_of(values) <= order_of(high))
    if np.issubdtype(values.dtype, np.integer) or values.dtype == np.bool_:
        return between
    flagged = np.zeros(values.shape, bool) if may_be_nan is None else may_be_nan
    undefined = np.isnan(low)
    return np.where(np.isnan(values), undefined | flagged, between & ~undefined)


def nudged(rng: np.random.Generator, values: Array, ulps: int, settled: Array) -> Array:
    """Move results by up to `ulps` codes, but not through zero."""
    order = order_of(values)
    moved = order + rng.integers(-ulps, ulps + 1, order.shape)
    moved = np.where(order >= 0, np.maximum(moved, 0), np.minimum(moved, -1))
    moved = np.clip(moved, *order_of(np.array([-np.inf, np.inf], values.dtype)))
    sign = np.int64(1) << (8 * values.itemsize - 1)
    codes = np.where(moved < 0, (-(moved + 1)) | sign, moved).astype(f"u{values.itemsize}")
    return np.where(np.isnan(values) | settled, values, codes.view(values.dtype))


def unrounded(name: str, operands: list[Array], result: Array) -> Array:
    """Finds sums, differences and products that are exact: float64 drops nothing of them."""
    if name not in ("add", "sub", "mul"):
        return np.zeros(result.shape, bool)
    a, b = (x.astype(np.float64) for x in operands)
    if name == "mul":
        return np.asarray(a * b == result)
    b = -b if name == "sub" else b
    total = a + b
    part = total - a
    dropped = (a - (total - part)) + (b - part)
    return np.asarray((total == result) & (dropped == 0))


def with_flushed(rng: np.random.Generator, values: Array) -> Array:
    """Replace some subnormal numbers by the zero of their sign."""
    tiny = (np.abs(values) < np.finfo(values.dtype).smallest_normal) & ~np.isnan(values)
    chosen = tiny & (rng.integers(0, 2, values.shape) == 0)
    return np.where(chosen, np.copysign(values.dtype.type(0), values), values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device of one make.

    Attributes:
        rng: the chance that moves results; None: no result is moved.
        ulps: by operation, how far.
        keeps_order: sums add in the order of the instructions, and subnormal numbers are kept.
        dtype: of its numbers, FP32 or FP16.
    """

    rng: np.random.Generator | None = None
    ulps: Mapping[str, int] = field(default_factory=dict)
    keeps_order: bool = True
    dtype: Any = np.float32

    @staticmethod
    def of_trust(trust: str, seed: int, dtype: Any = np.float32) -> Device:
        """A device that keeps to all that a choice trusts, and errs in everything else."""
        return Device(
            rng=np.random.default_rng(seed),
            ulps=BY_TRUST[trust],
            keeps_order=trust != "documented",
            dtype=dtype,
        )

    def hold(self, values: Any) -> Held:
        """Numbers on this device, rounded to its format."""
        with np.errstate(over="ignore"):
            return Held(np.asarray(values).astype(self.dtype), self)

    def run(self, name: str, function: Callable[..., Array], *operands: Any) -> Held:
        """One instruction: exact operands, one rounding, the error of this device."""
        given = [x if isinstance(x, Held) else self.hold(x) for x in operands]
        values = [self._flushed(x.values) for x in given]
        with np.errstate(all="ignore"):
            result = np.asarray(function(*(x.astype(np.float64) for x in values)))
            result = result.astype(self.dtype)
        if self.rng is not None and (most := self.ulps.get(name, 0)):
            settled = np.zeros(result.shape, bool)
            for x in values:  # the vendor's tables give these results
                settled = settled | (x == 0) | ~np.isfinite(x)
            with np.errstate(all="ignore"):
                settled = settled | unrounded(name, values, result)
            if name == "exp":
                least, most_power = FAR_POWERS[self.dtype]
                settled = settled | (values[0] < least) | (values[0] > most_power)
            result = nudged(self.rng, result, most, settled)
        return Held(self._flushed(result), self)

    def _flushed(self, values: Array) -> Array:
        if self.rng is None or self.keeps_order:
            return values
        return with_flushed(self.rng, values)


@dataclass(frozen=True, slots=True)
class Held:
    """Numbers on a device, with the operators that it has instructions for."""

    values: Array
    device: Device

    def __add__(self, other: Any) -> Held:
        return self.device.run("add", np.add, self, other)

    def __sub__(self, other: Any) -> Held:
        return self.device.run("sub", np.subtract, self, other)

    def __mul__(self, other: Any) -> Held:
        return self.device.run("mul", np.multiply, self, other)

    def __truediv__(self, other: Any) -> Held:
        return self.device.run("div", np.divide, self, other)

    def __abs__(self) -> Held:
        return Held(np.abs(self.values), self.device)

    def __getitem__(self, index: Any) -> Held:
        return Held(self.values[index], self.device)

    def sqrt(self) -> Held:
        """The root."""
        return self.device.run("sqrt", np.sqrt, self)

    def exp(self) -> Held:
        """The exponential, by the C library."""
        return self.device.run("exp", _exp, self)

    def sigmoid(self) -> Held:
        """1 / (exp(-x) + 1)."""
        return self.device.hold(1) / ((self * -1.0).exp() + 1.0)

    def rounded(self) -> Held:
        """The nearest integral values, ties to even; every zero is +0."""
        return Held(np.rint(self.values) + self.device.dtype(0), self.device)

    def maximum(self, other: Any) -> Held:
        """The greater; +0 of both zeros, NaN wins."""
        return self._chosen(other, lambda a, b: a >= b)

    def minimum(self, other: Any) -> Held:
        """The lesser; -0 of both zeros, NaN wins."""
        return self._chosen(other, lambda a, b: a <= b)

    def amax(self, axis: int = -1) -> Held:
        """The greatest along an axis, which stays."""
        return self._reduced(axis, Held.maximum)

    def amin(self, axis: int = -1) -> Held:
        """The least along an axis, which stays."""
        return self._reduced(axis, Held.minimum)

    def sum(self, axis: int = -1) -> Held:
        """The sum along an axis, which stays and is one tile."""
        lanes = self._lanes(axis)
        if self.device.rng is not None and not self.device.keeps_order:
            total = _in_any_order(lanes, self.device.rng)
        else:
            last = axis % self.values.ndim == self.values.ndim - 1
            total = row_sum(lanes, REPEAT) if last else column_sum(lanes)
        return Held(np.expand_dims(total.values, axis), self.device)

    def prod(self, axis: int = -1) -> Held:
        """The product along an axis, which stays and is one tile."""
        lanes = self._lanes(axis)
        if self.device.rng is not None and not self.device.keeps_order:
            total = _in_any_order(lanes, self.device.rng, Held.__mul__)
        elif axis % self.values.ndim != self.values.ndim - 1:
            total = lanes[0]
            for lane in lanes[1:]:
                total = total * lane
        else:  # blocks of 8 one after another, then their lanes
            held = lanes[:BLOCK]
            for place, lane in enumerate(lanes[BLOCK:]):
                held[place % BLOCK] = held[place % BLOCK] * lane
            total = held[0]
            for lane in held[1:]:
                total = total * lane
        return Held(np.expand_dims(total.values, axis), self.device)

    def cumprod(self) -> Held:
        """The product of all elements up to each along the last axis, of one tile."""
        lanes = self._lanes(-1)
        if self.device.rng is not None and not self.device.keeps_order:
            parts = [
                _in_any_order(lanes[: k + 1], self.device.rng, Held.__mul__)
                for k in range(len(lanes))
            ]
        else:
            parts, distance = list(lanes), 1
            held = list(lanes)
            while distance < len(lanes):
                joined = [a * b for a, b in zip(held, held[distance:], strict=False)]
                parts = parts[:distance] + joined
                held = held[:distance] + [each + 0.0 for each in joined]
                distance *= 2
        return Held(np.stack([each.values for each in parts], -1), self.device)

    def where_between(self, least: float, most: float) -> Held:
        """1 where a number lies between two, else 0; NaN lies nowhere."""
        inside = (self.values >= least) & (self.values <= most)
        return self.device.hold(inside)

    def to_integers(self, least: int, most: int) -> Array:
        """The nearest integers, ties to even, clamped; NaN gives 0."""
        whole = np.where(np.isnan(self.values), 0, np.rint(self.values.astype(np.float64)))
        return np.clip(whole, least, most).astype(np.int64)

    def to_bf16(self) -> Array:
        """The codes of the nearest BF16 numbers, ties to even; NaN is 0x7FFF."""
        codes = self.values.view(np.uint32).astype(np.uint64)
        codes = (codes + 0x7FFF + (codes >> 16 & 1)) >> 16
        return np.where(np.isnan(self.values), 0x7FFF, codes).astype(np.uint16)

    def _chosen(self, other: Any, keeps: Callable[[Array, Array], Array]) -> Held:
        a, b = np.broadcast_arrays(
            self.values, (other if isinstance(other, Held) else self.device.hold(other)).values
        )
        taken = np.where(keeps(order_of(a), order_of(b)), a, b)
        nan = np.isnan(a) | np.isnan(b)
        return Held(np.where(nan, self.device.dtype(np.nan), taken), self.device)

    def _lanes(self, axis: int) -> list[Held]:
        return [Held(lane, self.device) for lane in np.moveaxis(self.values, axis, 0)]

    def _reduced(self, axis: int, join: Callable[[Held, Held], Held]) -> Held:
        first, *others = self._lanes(axis)
        for lane in others:
            first = join(first, lane)
        return Held(np.expand_dims(first.values, axis), self.device)


def _in_any_order(
    lanes: list[Held],
    rng: np.random.Generator,
    join: Callable[[Held, Held], Held] = Held.__add__,
) -> Held:
    """Join two neighbours anywhere, after a shuffle, until one is left."""
    held = [lanes[k] for k in rng.permutation(len(lanes))]
    while len(held) > 1:
        k = int(rng.integers(0, len(held) - 1)) if len(held) > 2 else 0
        held[k : k + 2] = [join(held[k], held[k + 1])]
    return held[0]


def _exp(x: Array) -> Array:
    flat = [math.exp(min(float(value), 709.0)) for value in x.ravel()]
    return np.array(flat).reshape(x.shape)


def from_bf16(codes: Array) -> Array:
    """The FP32 numbers of BF16 codes."""
    return (codes.astype(np.uint32) << 16).view(np.float32)
