"""pypto's comparisons, logic and operations on bits, with upstream's signatures."""

from __future__ import annotations

from pypto_cast.dtypes.data_types import DataType
from pypto_cast.operations.elementwise_functions import either, with_number
from pypto_cast.operations.lowering import check_tensor, elementwise
from pypto_cast.operations.operation_rows import ROWS
from pypto_cast.operations.scalar_operands import ElementLike, integer, real
from pypto_cast.tensors.tensor import Tensor


def eq(input: Tensor, other: Tensor | float | ElementLike) -> Tensor:
    """BOOL: true where equal; false for NaN."""
    return with_number("eq", input, other, real)


def ne(input: Tensor, other: Tensor | float | ElementLike) -> Tensor:
    """BOOL: true where less or greater; false for NaN, by the vendor's tables."""
    return with_number("ne", input, other, real)


def lt(input: Tensor, other: Tensor | float | ElementLike) -> Tensor:
    """BOOL: true where less."""
    return with_number("lt", input, other, real)


def le(input: Tensor, other: Tensor | float | ElementLike) -> Tensor:
    """BOOL: true where less or equal."""
    return with_number("le", input, other, real)


def gt(input: Tensor, other: Tensor | float | ElementLike) -> Tensor:
    """BOOL: true where greater."""
    return with_number("gt", input, other, real)


greater = gt


def ge(input: Tensor, other: Tensor | float | ElementLike) -> Tensor:
    """BOOL: true where greater or equal."""
    return with_number("ge", input, other, real)


def logical_not(input: Tensor) -> Tensor:
    """BOOL: true where zero; NaN is not."""
    return elementwise("logical_not", input)


def logical_and(input: Tensor, other: Tensor) -> Tensor:
    """BOOL: true where both differ from zero; the dtypes may differ, and NaN is true."""
    tensors = [check_tensor("logical_and", x, ROWS["logical_and"].dtypes) for x in (input, other)]
    if tensors[0].dtype is not tensors[1].dtype:
        tensors = [logical_not(logical_not(x)) for x in tensors]
    return elementwise("logical_and", *tensors)


def bitwise_and(self: Tensor, other: Tensor | int) -> Tensor:
    """The bits that both have."""
    return with_number("bitwise_and", self, other, integer)


def bitwise_or(input1: Tensor, input2: Tensor | int) -> Tensor:
    """The bits that either has."""
    return with_number("bitwise_or", input1, input2, integer)


def bitwise_xor(first: Tensor, second: Tensor | int) -> Tensor:
    """The bits that one of both has."""
    return with_number("bitwise_xor", first, second, integer)


def bitwise_not(self: Tensor) -> Tensor:
    """The other bits; of BOOL the other truth."""
    if isinstance(self, Tensor) and self.dtype is DataType.DT_BOOL:
        return logical_not(self)
    return elementwise("bitwise_not", self)


def bitwise_left_shift(input: Tensor | int, other: Tensor | int) -> Tensor:
    """Shift INT16 or UINT16 left; a count below 0 or above 16 gives 0."""
    return either("bitwise_left_shift", input, other, integer)


def bitwise_right_shift(input: Tensor | int, other: Tensor | int) -> Tensor:
    """Shift INT16 or UINT16 right, INT16 with its sign; a count below 0 or above 16 counts 16."""
    return either("bitwise_right_shift", input, other, integer)
