"""pypto's operations around the cast, on tensors inside and outside kernels.

Each module of operations lists them in its `__all__`; their rows say the rest.
"""

from typing import TYPE_CHECKING, Final

from pypto_cast.operations.composites import *
from pypto_cast.operations.creation import *
from pypto_cast.operations.cube.matrix_functions import *
from pypto_cast.operations.elementwise_functions import *
from pypto_cast.operations.indexed.gathering import *
from pypto_cast.operations.indexed.scattering import *
from pypto_cast.operations.indexed.sorting import *
from pypto_cast.operations.movement import *
from pypto_cast.operations.operation_rows import NO_METHOD_HAS, ROWS
from pypto_cast.operations.padding import *
from pypto_cast.operations.quantization import *
from pypto_cast.operations.reduction_functions import *
from pypto_cast.operations.truth_and_bits import *
from pypto_cast.recording.recording import recorded
from pypto_cast.tensors.operators import register_methods

NAMES: Final = sorted(ROWS.keys() & globals().keys())
"""The operations; the rows besides are those of `pypto.experimental`."""

globals().update({name: recorded(name, globals()[name]) for name in NAMES})
register_methods(
    {name: globals()[name] for name in NAMES},
    methods=[name for name in NAMES if ROWS[name].is_method],
    without=NO_METHOD_HAS,
)

if not TYPE_CHECKING:  # which reads the lists of the modules
    __all__ = NAMES
