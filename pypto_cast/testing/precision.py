"""Figures of a result beside a golden: last places, relative errors, and acceptance standards.

The standards compare numbers with a tolerance; `possible` says whether a device can give them.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from ascend_kernels.routing.value_ranks import is_nan, ranks_of
from pypto_cast.dtypes.data_types import dtype_of_numpy
from pypto_cast.testing.bits import array_under_test, dtype_under_test, pieces
from pypto_cast.testing.layouts import layout_of
from simulator.numbers import float_environment
from simulator.numbers.convert import codes_of, in_numpy
from simulator.numbers.formats import (
    BF16,
    E4M3FN,
    FP16,
    FP32,
    HF8,
    Codes,
    FloatFormat,
    Format,
)

Standard = Literal["bits", "2.1:L0", "2.1:L1", "2.1:L2", "community"]
STANDARDS: Final[tuple[Standard, ...]] = get_args(Standard)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallValues:
    """Values that standard 2.1 judges by their absolute error.

    Attributes:
        below: magnitudes of the precise result below this are small.
        error: an absolute error above this counts.
    """

    below: float
    error: float


SMALL_VALUES: Final[Mapping[Format, SmallValues]] = MappingProxyType(
    {
        FP16: SmallValues(below=2.0**-11, error=2.0**-16),
        BF16: SmallValues(below=2.0**-8, error=2.0**-16),
        FP32: SmallValues(below=2.0**-14, error=2.0**-30),
        HF8: SmallValues(below=2.0**-4, error=2.0**-6),
        E4M3FN: SmallValues(below=2.0**-4, error=2.0**-6),
    }
)
"""Documented: upstream's public python/tests/st/operator/pg/compare_2_1.py at 883e7dfb0, whose
uint8 is HiF8."""
MOST_RATIOS: Final[Mapping[Standard, tuple[float, float, float]]] = MappingProxyType(
    {"2.1:L0": (10.0, 2.0, 2.0), "2.1:L1": (5.0, 1.5, 1.5), "2.1:L2": (2.0, 1.2, 1.2)}
)
"""Of MARE, MERE and RMSE, the result's by the golden's: ordinary, important and key operators.
Documented: as `SMALL_VALUES`."""
_MOST_SMALL_RATIO: Final = 2.0
COMMUNITY: Final[Mapping[Format, float]] = MappingProxyType(
    {FP16: 2.0**-10, BF16: 2.0**-7, FP32: 2.0**-13}
)
"""t of MERE < t and MARE < 10 t. Standing: read on a page of a fork alone, no document of the
vendor's says it."""
_COMMUNITY_MARE: Final = 10.0
_TINY: Final = 1e-7
"""Added to the magnitude that a relative error is divided by, as the public source does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Errors of an array against a golden, in float64.

    Elements that are the same NaN or infinity in both do not count; where one alone is no number
    the error is infinite.

    Attributes:
        mare: the largest relative error of the values that are not small.
        mere: the mean of these.
        rmse: the root of the mean square of their errors.
        small_wrong: small values with too large an absolute error.
    """

    mare: float
    mere: float
    rmse: float
    small_wrong: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A result beside a golden.

    Attributes:
        elems: elements of each.
        equal: those with the same bits, or NaN in both.
        nans: those that are NaN in one alone.
        by_ulp: of the others, how many are so many last places apart: by the largest number of a
            class, 1, 2, 4, 8 and so on; -0 lies one below +0.
        errors: beside the golden; None: no float dtype.
    """

    elems: int
    equal: int
    nans: int
    by_ulp: Mapping[int, int]
    errors: Errors | None

    @property
    def differing(self) -> int:
        """Elements with other bits."""
        return self.elems - self.equal

    def ulp_rows(self) -> Iterator[tuple[str, int]]:
        """The classes of last places in words, and their counts."""
        yield "0", self.equal
        for most, count in sorted(self.by_ulp.items()):
            least = most // 2 + 1
            yield (f"{most:,}" if least == most else f"{least:,} to {most:,}"), count
        if self.nans:
            yield "NaN in one alone", self.nans


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """The verdict of a standard.

    Attributes:
        standard: its name.
        passes: what is asked for holds.
        text: the figures, each with the most that is allowed.
    """

    standard: Standard
    passes: bool
    text: str

    def __str__(self) -> str:
        return f"{self.standard}: {'passes' if self.passes else 'fails'}; {self.text}"


_OBSERVER: Final[ContextVar[Callable[[int], None] | None]] = ContextVar(
    "pypto_cast_compared_pieces", default=None
)


@contextlib.contextmanager
def pieces_observed(observer: Callable[[int], None]) -> Iterator[None]:
    """Call a function with the elements of each piece that is compared in the body."""
    token = _OBSERVER.set(observer)
    try:
        yield
    finally:
        _OBSERVER.reset(token)


def tell_observer(elems: int) -> None:
    """Hand the elements of a piece to the observer of `pieces_observed`, if there is one."""
    observer = _OBSERVER.get()
    if observer is not None:
        observer(elems)


def compared(result: Any, golden: Any) -> Comparison:
    """Count last places between a result and a golden, and their errors.

    Args:
        result: a pypto tensor, a numpy array or a torch tensor; not modified.
        golden: the same, of its dtype and shape.

    Raises:
        TypeError: no arrays, or other dtypes.
        ValueError: another shape; the text says of one that is transposed or padded.
    """
    ours, theirs = _pair(result, golden, "golden")
    fmt = dtype_of_numpy(ours.dtype).number_format
    equal = nans = 0
    by_ulp: dict[int, int] = {}
    for a, b in pieces(ours, theirs):
        same, one, apart = _last_places(codes_of(a, fmt), codes_of(b, fmt), fmt)
        equal, nans = equal + same, nans + one
        tell_observer(apart.size + same + one)
        # The class of d is the next power of two: 1, 2, 3 to 4, 5 to 8.
        exponents, counts = np.unique(
            np.frexp((apart - np.uint64(1)).astype(np.float64))[1], return_counts=True
        )
        for exponent, count in zip(exponents.tolist(), counts.tolist(), strict=True):
            by_ulp[1 << exponent] = by_ulp.get(1 << exponent, 0) + count
    errors = errors_of(ours, theirs) if isinstance(fmt, FloatFormat) else None
    return Comparison(elems=ours.size, equal=equal, nans=nans, by_ulp=by_ulp, errors=errors)


def _last_places(a: Codes, b: Codes, fmt: Format) -> tuple[int, int, npt.NDArray[np.uint64]]:
    """Equal ones, those of which one is NaN, and the distances of the others."""
    nan_a, nan_b = is_nan(a, fmt), is_nan(b, fmt)
    both, one = nan_a & nan_b, nan_a ^ nan_b
    others = (a != b) & ~(nan_a | nan_b)
    x, y = ranks_of(a[others], fmt), ranks_of(b[others], fmt)
    apart = np.where(x > y, x - y, y - x)
    return int(np.count_nonzero((a == b) | both)), int(np.count_nonzero(one)), apart


@float_environment.quiet()
def errors_of(result: npt.NDArray[Any], golden: npt.NDArray[Any]) -> Errors:
    """The errors of a float array, by the limits of its dtype for small values.

    A dtype without such limits has no small values.

    Args:
        result: of a float dtype.
        golden: of its shape, of any float dtype.
    """
    limits = SMALL_VALUES.get(
        dtype_of_numpy(result.dtype).number_format, SmallValues(below=0.0, error=0.0)
    )
    mare = total = squares = 0.0
    count = small_wrong = 0
    for parts in pieces(result, golden):
        x, g = (
            in_numpy(part, dtype_of_numpy(part.dtype).number_format).astype(np.float64)
            if part.dtype.names is not None
            else part.astype(np.float64)
            for part in parts
        )
        tell_observer(x.size)
        numbers = np.isfinite(x) & np.isfinite(g)
        odd = ~numbers & ~((x == g) | (np.isnan(x) & np.isnan(g)))
        if odd.any():
            mare = total = squares = math.inf
        x, g = x[numbers], g[numbers]
        error, magnitude = np.abs(x - g), np.abs(g)
        small = magnitude < limits.below
        small_wrong += int(np.count_nonzero(error[small] > limits.error))
        error, magnitude = error[~small], magnitude[~small]
        relative = error / (magnitude + _TINY)
        mare = max(mare, float(relative.max(initial=0.0)))
        total += float(relative.sum())
        squares += float(np.square(error).sum())
        count += error.size
    whole = max(count, 1)
    return Errors(
        mare=mare, mere=total / whole, rmse=math.sqrt(squares / whole), small_wrong=small_wrong
    )


def accepted(standard: Standard, result: Any, golden: Any, precise: Any = None) -> Acceptance:
    """The verdict of an acceptance standard.

    Args:
        standard: "bits": every bit is the golden's, or NaN in both. "community": MERE < t and MARE
            < 10 t beside the golden. "2.1:L0", "2.1:L1", "2.1:L2": the errors of the result beside
            the precise one are at most so many times those of the golden, and of small values at
            most twice as many are wrong.
        result: what is judged.
        golden: a reference of its dtype and shape.
        precise: of its shape in a wider dtype, as FP32 or float64; "2.1" needs it.

    Raises:
        TypeError: no arrays, dtypes that differ, or a dtype that the standard has no limits for.
        ValueError: an unknown standard, "2.1" without a precise result, or another shape.
    """
    if standard not in STANDARDS:
        raise ValueError(f"standard is one of {', '.join(STANDARDS)}; got {standard!r}")
    ours, theirs = _pair(result, golden, "golden")
    if standard == "bits":
        differing = compared(ours, theirs).differing
        text = f"{differing:,} of {ours.size:,} elements have other bits"
        return Acceptance(standard=standard, passes=not differing, text=text)
    fmt = dtype_of_numpy(ours.dtype).number_format
    limits = COMMUNITY if standard == "community" else SMALL_VALUES
    if fmt not in limits:
        known = ", ".join(map(str, limits))
        raise TypeError(f"standard {standard} has limits for {known}; the result is {fmt}")
    if standard == "community":
        errors, t = errors_of(ours, theirs), COMMUNITY[fmt]
        return Acceptance(
            standard=standard,
            passes=errors.mere < t and errors.mare < _COMMUNITY_MARE * t,
            text=f"MERE {errors.mere:.3g}, less than {t:.3g} is asked for; MARE {errors.mare:.3g}, "
            f"less than {_COMMUNITY_MARE * t:.3g}",
        )
    if precise is None:
        raise ValueError(
            f"standard {standard} holds the errors of the result against those of the golden, "
            "both beside a more precise one: give precise, as of float64"
        )
    truth = array_under_test(precise, "precise")
    _check_shape(ours, truth, "precise")
    mine, other = errors_of(ours, truth), errors_of(theirs, truth)
    ratios = {
        name: _ratio(getattr(mine, name), getattr(other, name), SMALL_VALUES[fmt].below)
        for name in ("mare", "mere", "rmse")
    }
    small = mine.small_wrong / max(other.small_wrong, 1)
    allowed = dict(zip(ratios, MOST_RATIOS[standard], strict=True))
    told = [f"{name.upper()} {ratios[name]:.3g} of at most {allowed[name]:g}" for name in ratios]
    told.append(f"small values {small:.3g} of at most {_MOST_SMALL_RATIO:g}")
    return Acceptance(
        standard=standard,
        passes=small <= _MOST_SMALL_RATIO and all(ratios[n] <= allowed[n] for n in ratios),
        text="times the golden's errors: " + ", ".join(told),
    )


def _ratio(mine: float, other: float, least: float) -> float:
    """As the public source has it: any result passes where the golden's own error is no number."""
    if not math.isfinite(other):
        return 1.0
    return mine / max(other, least) if math.isfinite(mine) else math.inf


def _pair(result: Any, golden: Any, label: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    ours, theirs = array_under_test(result, "result"), array_under_test(golden, label)
    names = [dtype_under_test(ours, "result"), dtype_under_test(theirs, label)]
    if names[0] != names[1]:
        raise TypeError(f"the result has dtype {names[0]}, the {label} {names[1]}")
    _check_shape(ours, theirs, label)
    return ours, theirs


def _check_shape(ours: npt.NDArray[Any], theirs: npt.NDArray[Any], label: str) -> None:
    if ours.shape == theirs.shape:
        return
    have, want = list(ours.shape), list(theirs.shape)
    layout = layout_of(ours, theirs.shape, lambda array: equal_share(array, theirs))
    if layout:
        raise ValueError(f"the result has shape {have}, the {label} {want}; it is {layout}")
    hint = ""
    if len(have) == len(want):
        if sorted(have) == sorted(want):
            hint = "; one may be transposed"
        elif all(a >= b for a, b in zip(have, want, strict=True)):
            hint = f"; it may be padded: its first {want} elements would do"
    elif ours.size == theirs.size:
        hint = "; one may be reshaped"
    raise ValueError(f"the result has shape {have}, the {label} {want}{hint}")


def equal_share(ours: npt.NDArray[Any], theirs: npt.NDArray[Any]) -> float:
    """The share of elements with the same bits, or NaN in both; of no elements 1."""
    if ours.dtype != theirs.dtype or not ours.size:
        return float(ours.dtype == theirs.dtype)
    return compared(ours, theirs).equal / ours.size
