"""Number conversion on Ascend A2/A3 and 950 NPUs, bit for bit, on any CPU.

>>> import pypto_cast as pypto
>>> x = pypto.tensor([2], pypto.DT_FP32, data=[2.0, 3.0])
>>> pypto.cast(x, pypto.DT_FP16, mode=pypto.CAST_RINT)

The names stand in `pypto_cast.interface`, which is loaded when the first of them is used: the
plugin of pytest imports this package in every project, whatever that calls its own modules.
"""

from typing import TYPE_CHECKING

from pypto_cast import former_names as former_names
from pypto_cast import loading as loading

__version__ = "0.1.0"

if TYPE_CHECKING:
    from pypto_cast import dialects as dialects
    from pypto_cast import testing as testing
    from pypto_cast.dtypes.data_types import *
    from pypto_cast.interface import *
    from pypto_cast.operations import *
else:
    __getattr__, __dir__ = loading.name_when_used, loading.names_when_used
