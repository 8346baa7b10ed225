"""pypto's operations around the cast, on tensors inside and outside kernels.

They are those that a row decorates in these modules; type checkers and editors read them in the
generated stub beside this file.
"""

from typing import Final

from pypto_cast.operations import (
    composites,
    creation,
    elementwise_functions,
    movement,
    padding,
    quantization,
    random_numbers,
    reduction_functions,
    special_functions,
    truth_and_bits,
)
from pypto_cast.operations.cube import convolution, matrix_functions
from pypto_cast.operations.indexed import additions, gathering, scattering, sorting
from pypto_cast.operations.lowering import with_precision_type
from pypto_cast.operations.operation_rows import NO_METHOD_HAS, ROWS, recorded
from pypto_cast.tensors.operators import register_methods

GROUPS: Final = (
    *(elementwise_functions, truth_and_bits, reduction_functions, composites),
    special_functions,
    *(creation, random_numbers, movement, padding, quantization),
    *(gathering, scattering, additions, sorting),
    *(matrix_functions, convolution),
)
"""The modules, in the order of the reference."""

__all__ = sorted(name for name, row in ROWS.items() if not row.is_experimental)
globals().update(
    {name: recorded(name, with_precision_type(name, ROWS[name].function)) for name in __all__}
)
register_methods(
    {name: globals()[name] for name in __all__} | {"one_element": creation.one_element},
    methods=[name for name in __all__ if ROWS[name].is_method],
    without=NO_METHOD_HAS,
)
