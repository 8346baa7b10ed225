"""Numbers as operands: checked, and converted to the format that an operation runs in."""

from __future__ import annotations

import contextlib
import math
import operator
import reprlib
from dataclasses import dataclass
from typing import Any, Final, SupportsFloat, TypeGuard

import numpy as np

from pypto_cast.dtypes.data_types import DataType
from pypto_cast.error import PyptoError, error_of
from pypto_cast.options.context import current
from pypto_cast.recording import recording
from pypto_cast.tensors.operators import ElementLike, Number
from pypto_cast.tensors.undecided import KernelNumber, UndecidedScalar, value_of
from pypto_cast.unsupported import tolerate
from simulator.arithmetic import Enclosure, Interval
from simulator.arithmetic.interval import unknown
from simulator.arithmetic.operation import Array
from simulator.numbers import float_environment
from simulator.numbers.formats import FP32, FloatFormat, Format, IntFormat

_NUMBERS: Final = (int, float, KernelNumber)
_BEYOND_FP32: Final = (2.0 - 2.0**-24) * 2.0**127
"""The least number that FP32 rounds to infinity."""
_MOST_BITS: Final = 64
"""Of the integers of any dtype."""


def whole_number(name: str, argument: str, value: object) -> int:
    """An argument of an operation that is an int, or a number of a kernel.

    Raises:
        TypeError: none, or a bool.
    """
    if not isinstance(value, bool) and hasattr(value, "__index__"):
        with contextlib.suppress(TypeError):  # arrays have the method, of one element it works
            return operator.index(value)
    raise TypeError(f"{name} takes an int as {argument}, not {reprlib.repr(value)}")


def real_number(name: str, argument: str, value: object) -> float:
    """An argument of an operation that is a number, or one of a kernel; not its text.

    Raises:
        TypeError: none.
    """
    if isinstance(value, np.ndarray | str) or not isinstance(value, SupportsFloat):
        raise TypeError(f"{name} takes a number as {argument}, not {reprlib.repr(value)}")
    return float(value)


def flag(name: str, argument: str, value: object) -> bool:
    """An argument of an operation that is True or False; 1 and 0 are too, as in upstream's binding.

    Raises:
        TypeError: neither.
    """
    if isinstance(value, (bool, np.bool_)) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise TypeError(f"{name}: {argument} must be True or False, not {reprlib.repr(value)}")


@dataclass(frozen=True, slots=True)
class Constant:
    """A number that an instruction takes beside tensors.

    Attributes:
        value: the number.
        operation: whose operand it is.
        alike: what upstream's compiler takes for it, the first of them unless passes part them.
    """

    value: Number | KernelNumber
    operation: str = ""
    alike: tuple[float, ...] = ()

    def enclosure(self, fmt: Format) -> Enclosure:
        """The number in a format; floats come from device code as FP32, rounded once.

        Its interval holds those that upstream's compiler may take in its place.
        """
        given = self.value
        values = _in_format(value_of(given), fmt)
        if not isinstance(given, UndecidedScalar):
            return self._among_close_ones(values, fmt)
        bounds = given.bounds
        if bounds is None or (
            isinstance(fmt, IntFormat) and not fmt.min <= bounds[0] <= bounds[1] <= fmt.max
        ):
            return Enclosure(values=values, interval=unknown(values, fmt, given.cause))
        low, high = (_in_format(end, fmt) for end in bounds)
        cause = np.array(given.cause, np.uint16)
        interval = Interval(low=low, high=high, may_be_nan=None, cause=cause)
        return Enclosure(values=values, interval=interval)

    def _among_close_ones(self, values: Array, fmt: Format) -> Enclosure:
        number = float(values)
        if not isinstance(self.value, float) or not math.isfinite(number):
            return Enclosure(values=values)
        alike, running = {number}, recording.current()
        if self.alike:
            values = _in_format(self.alike[0], fmt)
            alike |= {float(_in_format(each, fmt)) for each in self.alike}
        elif running is not None:
            alike |= running.numbers.others(self.operation, fmt.name, number)
        if len(alike) == 1:
            return Enclosure(values=values)
        low, high = (_in_format(end(alike), fmt) for end in (min, max))
        cause = np.array(recording.causes().index_here(self.operation), np.uint16)
        interval = Interval(low=low, high=high, may_be_nan=None, cause=cause)
        return Enclosure(values=values, interval=interval)


_IN_FORMAT: Final[dict[tuple[int | float, str], Array]] = {}
"""The numbers that operations took, by number and name of the format; no zeros, which are equal."""
_MOST_IN_FORMAT: Final = 1 << 10


def _in_format(number: Any, fmt: Format) -> Array:
    if not (type(number) in (int, float) and number):
        return _rounded(number, fmt)
    found = _IN_FORMAT.get((number, fmt.name))
    if found is None:
        found = _rounded(number, fmt)
        if float_environment.is_default():
            if len(_IN_FORMAT) >= _MOST_IN_FORMAT:
                _IN_FORMAT.clear()
            _IN_FORMAT[number, fmt.name] = found
    return found


def _rounded(number: Any, fmt: Format) -> Array:
    if not isinstance(fmt, FloatFormat):
        return np.array(int(number), fmt.dtype)
    with float_environment.quiet():
        return np.array(number, np.float64).astype(FP32.dtype).astype(fmt.dtype)


def _shown(given: object) -> str:
    return f"{reprlib.repr(given)} ({type(given).__name__})"


def is_element(given: object) -> TypeGuard[ElementLike]:
    """True for an `Element`."""
    return isinstance(getattr(given, "dtype", None), DataType) and hasattr(given, "value")


def number(name: str, given: object, dtype: DataType) -> Constant:
    """A Python number beside a tensor of a dtype, as add, sub, mul and div take it.

    Raises:
        TypeError: no int or float, or a float beside integers.
        OverflowError: an int that the dtype does not hold, or a finite number beyond FP32.
    """
    _warn_of_kernel_number(name, given)
    if not isinstance(given, _NUMBERS):
        raise TypeError(f"{name} takes tensors and Python numbers, not {_shown(given)}")
    if isinstance(given, float) and not isinstance(dtype.format, FloatFormat):
        raise TypeError(
            f"{name}: the float {given} beside a tensor of {dtype}; upstream takes an int there, "
            "or cast the tensor first"
        )
    return _held(name, given, dtype)


def converted(name: str, given: object, dtype: DataType) -> Constant:
    """A number beside a tensor that becomes one of its dtype, as `filling` makes it."""
    _warn_of_kernel_number(name, given)
    return filling(name, given, dtype)


def filling(name: str, given: object, dtype: DataType) -> Constant:
    """A number that fills a tensor of a dtype: floats lose their fraction beside integers.

    Raises:
        TypeError: no int, float or Element.
        OverflowError: beyond an integer dtype, or finite and beyond FP32.
    """
    value = given.value if is_element(given) else given
    if not isinstance(value, _NUMBERS):
        raise TypeError(
            f"{name} takes tensors, Python numbers and pypto.Element, not {_shown(given)}"
        )
    if not isinstance(dtype.format, FloatFormat):
        held = value_of(value)
        if isinstance(held, float) and not math.isfinite(held):
            raise OverflowError(f"{name}: {dtype} does not hold {value}")
        value = math.trunc(value) if isinstance(value, float) else value
    return _held(name, value, dtype)


def integer(name: str, given: object, dtype: DataType) -> Constant:
    """An int beside integers, as the bitwise operations take it.

    Raises:
        TypeError: no int.
        OverflowError: an int that the dtype does not hold.
    """
    _warn_of_kernel_number(name, given)
    if not isinstance(given, (int, KernelNumber)):
        raise TypeError(f"{name} takes tensors and ints, not {_shown(given)}")
    return _held(name, given, dtype)


def real(name: str, given: object, dtype: DataType) -> Constant:
    """A float or an Element, as comparisons take it.

    Raises:
        TypeError: anything else, an int too.
    """
    if isinstance(given, (int, KernelNumber)) and not isinstance(given, bool):
        raise TypeError(f"{name}: upstream compares with floats, not ints; write {given}.0")
    if not isinstance(given, float) and not is_element(given):
        raise TypeError(
            f"{name} compares with tensors, floats and pypto.Element, not with {_shown(given)}"
        )
    return converted(name, given, dtype)


def _warn_of_kernel_number(name: str, given: object) -> None:
    if isinstance(given, KernelNumber):
        tolerate(
            f"{name}: upstream takes no number of a kernel beside a tensor: fill a tensor with it, "
            "as pypto.full does",
            strict=current().strict,
        )


def _in_brief(value: Any, *, is_signed: bool) -> str:
    """The text of a number; of an int beyond every dtype its bits, as it may have many digits."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"{'a negative' if value < 0 else 'an'} int of {value.bit_length()} bits"
    return f"{value}" if is_signed or value >= 0 else f"the negative number {value}"


def _held(name: str, value: Any, dtype: DataType) -> Constant:
    fmt = dtype.format
    if isinstance(fmt, IntFormat) and fmt.bits > 1 and not fmt.min <= value <= fmt.max:
        what = _in_brief(value, is_signed=fmt.min < 0)
        text = f"{name}: {dtype} holds {fmt.min} to {fmt.max}, not {what}"
        raise error_of(PyptoError, OverflowError, text)
    # Asked first, as a comparison of order with NaN traps where exceptions of floats do.
    is_finite = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    if isinstance(fmt, FloatFormat) and is_finite and abs(value) >= _BEYOND_FP32:
        what = f"an int of {value.bit_length()} bits" if isinstance(value, int) else value
        text = f"{name}: a number beside {dtype} is passed as FP32, which does not hold {what}"
        raise error_of(PyptoError, OverflowError, f"{text}; float('inf') is infinity")
    return Constant(value, name)
