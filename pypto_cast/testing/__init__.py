"""Testing kernels: values worth casting, and comparisons that say where results
differ, or cannot be.

`strategies` draws tensors with hypothesis; the fixture `pypto_sim` comes with pytest by itself.
"""

from pypto_cast.testing.bits import BitsDifferError, Difference, assert_bits_equal, differences
from pypto_cast.testing.fit_checks import FitError, assert_fits
from pypto_cast.testing.judgement import JudgedOutput, Judgement, judge
from pypto_cast.testing.possible import (
    Impossible,
    ImpossibleError,
    UndecidedError,
    assert_certain,
    assert_possible,
)
from pypto_cast.testing.saved_bounds import load_bounds, save_bounds
from pypto_cast.testing.schedule_checks import (
    ScheduleError,
    assert_schedule_ok,
    unknown_lines,
)
from pypto_cast.testing.values import boundary_values, special_values

__all__ = [
    "BitsDifferError",
    "Difference",
    "FitError",
    "Impossible",
    "ImpossibleError",
    "JudgedOutput",
    "Judgement",
    "ScheduleError",
    "UndecidedError",
    "assert_bits_equal",
    "assert_certain",
    "assert_fits",
    "assert_possible",
    "assert_schedule_ok",
    "boundary_values",
    "differences",
    "judge",
    "load_bounds",
    "save_bounds",
    "special_values",
    "unknown_lines",
]
