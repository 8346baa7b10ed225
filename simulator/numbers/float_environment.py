"""The floating-point environment of a thread: rounding direction, and flushing subnormal numbers.

Another library may have changed it (`fesetround`, or torch's `set_flush_denormal`), and a thread
takes it over from the one that creates it. A fast path leaves rounding to the floating-point unit
and is right in the default environment only.
"""

from __future__ import annotations

import sys
from typing import Final

_ONE: Final = 1.0
_TINY: Final = sys.float_info.epsilon / 4
_LEAST_NORMAL: Final = sys.float_info.min


def is_default() -> bool:
    """Tell whether this thread rounds to nearest, ties to even, and keeps subnormal numbers.

    Upward, 1 plus a quarter of a unit is more than 1; downward and toward zero, 1 less that is less
    than 1. A flushed result or operand makes 0 of half the least normal number. Python's own floats
    know no error settings, and one mode serves all widths: on x86-64 MXCSR, on AArch64 FPCR.
    """
    return _ONE + _TINY == _ONE == _ONE - _TINY and _LEAST_NORMAL / 2 * _ONE > 0
