"""The floating-point environment of a thread: rounding direction, flushing, and traps.

Another library may have changed it (`fesetround`, torch's `set_flush_denormal`, `feenableexcept`),
and a thread takes it over from the one that creates it. A fast path leaves rounding to the
floating-point unit and is right in the default environment only. A trap ends the process at the
first NaN or overflow that the unit meets.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Iterator
from typing import Final

import numpy as np

_ONE: Final = 1.0
_TINY: Final = sys.float_info.epsilon / 4
_LEAST_NORMAL: Final = sys.float_info.min


_SAVED_BYTES: Final = 64
"""At least the size of fenv_t: 32 B on x86-64, 8 B on AArch64."""


def _traps() -> ctypes.CDLL | None:
    """The library that tells and changes the traps; None where no function sets them."""
    if sys.platform != "linux":
        return None
    try:
        library = ctypes.CDLL("libm.so.6")
    except OSError:  # another C library than GNU's
        return None
    return library if hasattr(library, "fegetexcept") else None


_TRAPS: Final = _traps()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Neither trap nor warn of floating-point exceptions, in a `with` body or a decorated function.

    The environment of this thread is afterwards what it was, its flags included.
    """
    with np.errstate(all="ignore"):
        if _TRAPS is None or not _TRAPS.fegetexcept():
            yield
            return
        saved = ctypes.create_string_buffer(_SAVED_BYTES)
        _TRAPS.feholdexcept(saved)
        try:
            yield
        finally:
            _TRAPS.fesetenv(saved)


def is_default() -> bool:
    """This thread rounds to nearest, ties to even, and keeps subnormal numbers.

    Upward, 1 plus a quarter of a unit is more than 1; downward and toward zero, 1 less that is less
    than 1. A flushed result or operand makes 0 of half the least normal number. Python's own floats
    know no error settings, and one mode serves all widths: on x86-64 MXCSR, on AArch64 FPCR. These
    operations are inexact or subnormal, so a thread with traps is asked while it is `quiet`.
    """
    if _TRAPS is not None and _TRAPS.fegetexcept():
        with quiet():
            return is_default()
    return _ONE + _TINY == _ONE == _ONE - _TINY and _LEAST_NORMAL / 2 * _ONE > 0
