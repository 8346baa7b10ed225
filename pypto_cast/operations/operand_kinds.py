"""Operations on two operands of which one may be a number."""

from __future__ import annotations

from collections.abc import Callable

from pypto_cast.cast.api import cast
from pypto_cast.dtypes.data_types import DataType
from pypto_cast.operations.by_release import is_cast_inside
from pypto_cast.operations.lowering import check_tensor, elementwise
from pypto_cast.operations.operation_rows import ROWS
from pypto_cast.operations.scalar_operands import Constant
from pypto_cast.tensors.tensor import Tensor

Reading = Callable[[str, object, DataType], Constant]
"""(operation, number, dtype of the tensor) -> the number as the instruction gets it."""


def with_number(name: str, input: object, other: object, reading: Reading) -> Tensor:
    """Carry out an operation whose second operand may be a number."""
    x = check_tensor(name, input, ROWS[name].dtypes)
    operand = other if isinstance(other, Tensor) else reading(name, other, x.dtype)
    if is_cast_inside(name, x.dtype) and getattr(operand, "dtype", x.dtype) is x.dtype:
        wide = (
            cast(each, DataType.DT_FP32) if isinstance(each, Tensor) else each
            for each in (x, operand)
        )
        return elementwise(name, *wide)
    return elementwise(name, x, operand)


def either(name: str, input: object, other: object, reading: Reading) -> Tensor:
    """Carry out an operation either of whose operands may be a number, but not both."""
    given = next((x for x in (input, other) if isinstance(x, Tensor)), None)
    x = check_tensor(name, input if given is None else given, ROWS[name].dtypes)
    operands = (
        each if isinstance(each, Tensor) else reading(name, each, x.dtype)
        for each in (input, other)
    )
    return elementwise(name, *operands)
