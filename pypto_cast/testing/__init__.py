"""Testing kernels: values worth casting, and comparisons that say where results
differ, or cannot be.

`strategies` draws tensors with hypothesis; the fixture `pypto_sim` comes with pytest by itself.
"""

from pypto_cast.testing.bits import BitsDifferError as BitsDifferError
from pypto_cast.testing.bits import Difference as Difference
from pypto_cast.testing.bits import assert_bits_equal as assert_bits_equal
from pypto_cast.testing.bits import differences as differences
from pypto_cast.testing.possible import Impossible as Impossible
from pypto_cast.testing.possible import ImpossibleError as ImpossibleError
from pypto_cast.testing.possible import UndecidedError as UndecidedError
from pypto_cast.testing.possible import assert_certain as assert_certain
from pypto_cast.testing.possible import assert_possible as assert_possible
from pypto_cast.testing.saved_bounds import load_bounds as load_bounds
from pypto_cast.testing.saved_bounds import save_bounds as save_bounds
from pypto_cast.testing.schedule_checks import ScheduleError as ScheduleError
from pypto_cast.testing.schedule_checks import assert_schedule_ok as assert_schedule_ok
from pypto_cast.testing.schedule_checks import unknown_lines as unknown_lines
from pypto_cast.testing.values import boundary_values as boundary_values
from pypto_cast.testing.values import special_values as special_values
