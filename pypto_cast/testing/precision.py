"""Figures of a result beside a golden: last places, relative errors, and acceptance standards.

The standards compare numbers with a tolerance; `possible` says whether a device can give them.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from ascend_kernels.routing.value_ranks import is_nan, ranks_of
from pypto_cast.dtypes.data_types import dtype_of_numpy
from pypto_cast.testing.bits import array_under_test, dtype_under_test, pieces, shape_under_test
from pypto_cast.testing.layouts import layout_of
from simulator.numbers import float_environment
from simulator.numbers.convert import codes_of, in_numpy
from simulator.numbers.formats import (
    BF16,
    E4M3FN,
    E5M2,
    FP16,
    FP32,
    HF8,
    Codes,
    FloatFormat,
    Format,
)

Standard = Literal["bits", "2.1:L0", "2.1:L1", "2.1:L2", "community", "mixed"]
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
_NONE_SMALL: Final = SmallValues(below=0.0, error=0.0)
COMMUNITY: Final[Mapping[Format, float]] = MappingProxyType(
    {FP16: 2.0**-10, BF16: 2.0**-7, FP32: 2.0**-13, E4M3FN: 2.0**-3, E5M2: 2.0**-2}
)
"""t of MERE < t and MARE < 10 t, of all elements. Documented: the vendor's public cann/opbase,
docs/zh/ops_precision_standard/experimental_standard.md at 3e629665; its HiFLOAT32 is no dtype."""
_COMMUNITY_MARE: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedTolerance:
    """Limits of standard "mixed" for a dtype.

    Attributes:
        relative, absolute: an element may be off by absolute + relative * |golden|.
        largest: no element may be off by more.
    """

    relative: float
    absolute: float
    largest: float


MIXED: Final[Mapping[Format, MixedTolerance]] = MappingProxyType(
    {
        FP16: MixedTolerance(relative=2.0**-9, absolute=2.0**-9, largest=0.1),
        BF16: MixedTolerance(relative=2.0**-6, absolute=2.0**-6, largest=1.0),
        FP32: MixedTolerance(relative=2.0**-10, absolute=2.0**-16, largest=0.01),
        E4M3FN: MixedTolerance(relative=2.0**-2, absolute=2.0**-4, largest=4.0),
        E5M2: MixedTolerance(relative=2.0**-1, absolute=2.0**-3, largest=8.0),
    }
)
"""Documented: ops-test-kit's mix_tolerance, ttk/core_modules/comparison/resolve.py at 36750932,
which reads the document's "1e-1 or 32 * ULP" as the larger one, the ULP that of 1. The document
itself, opbase's mixed_tolerance_standard.md at 233ee24c, has others, relative and absolute alike:
2^-10 of FP16, 2^-7 of BF16, 2^-13 of FP32, 2^-3 of E4M3, 2^-2 of E5M2."""
_LEAST_MATCHED: Final = 99
"""Percent of the elements."""
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


_PASSES: Final[Mapping[Standard, int]] = MappingProxyType(
    {"bits": 0, "community": 1, "mixed": 1, **dict.fromkeys(MOST_RATIOS, 2)}
)
"""Passes of a standard over all elements, beside those of `compared`."""


def elems_to_compare(results: Iterable[npt.NDArray[Any]], standard: Standard) -> int:
    """The elements that the observer is told of where arrays are judged by goldens."""
    passes = 1 + _PASSES.get(standard, 0)
    return sum(array.size * (passes + _has_errors(array)) for array in results)


def _has_errors(array: npt.NDArray[Any]) -> bool:
    try:
        return isinstance(dtype_of_numpy(array.dtype).number_format, FloatFormat)
    except TypeError:
        return False  # it is refused where it is judged


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
    errors = errors_of(ours, theirs) if _has_errors(ours) else None
    return Comparison(elems=ours.size, equal=equal, nans=nans, by_ulp=by_ulp, errors=errors)


def _last_places(a: Codes, b: Codes, fmt: Format) -> tuple[int, int, npt.NDArray[np.uint64]]:
    """Equal ones, those of which one is NaN, and the distances of the others."""
    nan_a, nan_b = is_nan(a, fmt), is_nan(b, fmt)
    both, one = nan_a & nan_b, nan_a ^ nan_b
    others = (a != b) & ~(nan_a | nan_b)
    x, y = ranks_of(a[others], fmt), ranks_of(b[others], fmt)
    apart = np.where(x > y, x - y, y - x)
    return int(np.count_nonzero((a == b) | both)), int(np.count_nonzero(one)), apart


def errors_of(result: npt.NDArray[Any], golden: npt.NDArray[Any]) -> Errors:
    """The errors of a float array, by the limits of its dtype for small values.

    A dtype without such limits has no small values.

    Args:
        result: of a float dtype.
        golden: of its shape, of any float dtype.
    """
    fmt = dtype_of_numpy(result.dtype).number_format
    return _errors(result, golden, SMALL_VALUES.get(fmt, _NONE_SMALL))


@float_environment.quiet()
def _errors(
    result: npt.NDArray[Any],
    golden: npt.NDArray[Any],
    limits: SmallValues,
    *,
    is_reference: bool = False,
) -> Errors:
    """The errors by limits.

    A reference's errors are those of the public source where it is no number, because an infinite
    one lets every result pass: none of a precise NaN and of a small NaN, and a small infinity is
    a wrong small value.
    """
    mare = total = squares = 0.0
    count = small_wrong = 0
    for x, g in _float64_pieces(result, golden):
        small = np.abs(g) < limits.below
        numbers, odd = _numbers(x, g)
        if is_reference:
            small_wrong += int(np.count_nonzero(np.isinf(x) & small))
            odd &= ~(small | np.isnan(g))
        if odd.any():
            mare = total = squares = math.inf
        error, magnitude, small = np.abs(x - g)[numbers], np.abs(g)[numbers], small[numbers]
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


def _float64_pieces(*arrays: npt.NDArray[Any]) -> Iterator[tuple[npt.NDArray[np.float64], ...]]:
    """Parts of float arrays of one shape as float64; the observer is told of each."""
    for parts in pieces(*arrays):
        yield tuple(
            in_numpy(part, dtype_of_numpy(part.dtype).number_format).astype(np.float64)
            if part.dtype.names is not None
            else part.astype(np.float64)
            for part in parts
        )
        tell_observer(parts[0].size)


def _numbers(
    x: npt.NDArray[np.float64], g: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """True where both are finite, and where one is not and the other is not the same."""
    numbers = np.isfinite(x) & np.isfinite(g)
    return numbers, ~numbers & ~((x == g) | (np.isnan(x) & np.isnan(g)))


def accepted(
    standard: Standard,
    result: Any,
    golden: Any,
    precise: Any = None,
    *,
    comparison: Comparison | None = None,
) -> Acceptance:
    """The verdict of an acceptance standard.

    Args:
        standard: "bits": every bit is the golden's, or NaN in both. "community": MERE < t and MARE
            < 10 t. "mixed": 99 % of the elements are within the tolerance, and none is far off.
            "2.1:L0", "2.1:L1", "2.1:L2": the errors of the result beside the precise one are at
            most so many times those of the golden, and of small values at most twice as many are
            wrong. As the public source, but in float64, and stricter where it compares nothing: a
            result that alone is NaN or infinite at a small value, or is not NaN where the precise
            one is, fails; and an infinity that all three share lets no other element pass, where
            the source's own error is NaN.
        result: what is judged.
        golden: a reference of its dtype and shape.
        precise: of its shape in a wider dtype, as FP32 or float64; "2.1" needs it, "community" and
            "mixed" take it for the golden.
        comparison: of the result and the golden, if it is known; else "bits" makes it.

    Raises:
        TypeError: no arrays, dtypes that differ, or a dtype that the standard has no limits for.
        ValueError: an unknown standard, "2.1" without a precise result, or another shape.
    """
    if standard not in STANDARDS:
        raise ValueError(f"standard is one of {', '.join(STANDARDS)}; got {standard!r}")
    ours, theirs = _pair(result, golden, "golden")
    if standard == "bits":
        differing = (comparison or compared(ours, theirs)).differing
        text = f"{differing:,} of {ours.size:,} elements have other bits"
        return Acceptance(standard=standard, passes=not differing, text=text)
    fmt = dtype_of_numpy(ours.dtype).number_format
    limits = _LIMITS.get(standard, SMALL_VALUES)
    if fmt not in limits:
        known = ", ".join(map(str, limits))
        raise TypeError(f"standard {standard} has limits for {known}; the result is {fmt}")
    if precise is None and standard in MOST_RATIOS:
        raise ValueError(
            f"standard {standard} holds the errors of the result against those of the golden, "
            "both beside a more precise one: give precise, as of float64"
        )
    truth = theirs
    if precise is not None:
        truth = array_under_test(precise, "precise")
        shapes = shape_under_test(result), shape_under_test(precise)
        _check_shape(ours, truth, "precise", *shapes)
    if standard == "community":
        return _community(ours, truth, COMMUNITY[fmt])
    if standard == "mixed":
        return _mixed(ours, truth, MIXED[fmt])
    small_values = SMALL_VALUES[fmt]
    mine = _errors(ours, truth, small_values)
    other = _errors(theirs, truth, small_values, is_reference=True)
    ratios = {
        name: _ratio(getattr(mine, name), getattr(other, name), small_values.below)
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


_LIMITS: Final[Mapping[Standard, Mapping[Format, object]]] = MappingProxyType(
    {"community": COMMUNITY, "mixed": MIXED}
)
"""The dtypes of standards without small values."""


def _community(result: npt.NDArray[Any], golden: npt.NDArray[Any], t: float) -> Acceptance:
    errors = _errors(result, golden, _NONE_SMALL)
    return Acceptance(
        standard="community",
        passes=errors.mere < t and errors.mare < _COMMUNITY_MARE * t,
        text=f"MERE {errors.mere:.3g}, less than {t:.3g} is asked for; MARE {errors.mare:.3g}, "
        f"less than {_COMMUNITY_MARE * t:.3g}",
    )


@float_environment.quiet()
def _mixed(
    result: npt.NDArray[Any], golden: npt.NDArray[Any], limits: MixedTolerance
) -> Acceptance:
    matched, largest = 0, 0.0
    for x, g in _float64_pieces(result, golden):
        numbers, odd = _numbers(x, g)
        error = np.abs(x - g)[numbers]
        within = error <= limits.absolute + limits.relative * np.abs(g)[numbers]
        matched += int(np.count_nonzero(within)) + int(np.count_nonzero(~numbers & ~odd))
        largest = max(largest, math.inf if odd.any() else float(error.max(initial=0.0)))
    enough = 100 * matched >= _LEAST_MATCHED * result.size
    return Acceptance(
        standard="mixed",
        passes=enough and largest <= limits.largest,
        text=f"{matched:,} of {result.size:,} elements within {limits.absolute:.3g} + "
        f"{limits.relative:.3g} |golden|, {_LEAST_MATCHED} % are asked for; the largest "
        f"error {largest:.3g} of at most {limits.largest:g}",
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
    _check_shape(ours, theirs, label, shape_under_test(result), shape_under_test(golden))
    return ours, theirs


def _check_shape(
    ours: npt.NDArray[Any],
    theirs: npt.NDArray[Any],
    label: str,
    have: list[int],
    want: list[int],
) -> None:
    """Refuse another shape, by the shapes that were given."""
    if ours.shape == theirs.shape:
        return
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
