"""Numbers of operations that no text of upstream's compiler has, so that one call's serve another.

The text is that by which it compares operations and tile programs (`recording.close_numbers`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pypto_cast.dtypes.data_types import DataType
from pypto_cast.operations.elementwise_plan import elementwise
from pypto_cast.operations.lowering import as_one, converted_to, operand_values, runs_in, wraps
from pypto_cast.operations.operation_rows import ROWS
from pypto_cast.operations.scalar_operands import Constant
from pypto_cast.options import context as options
from pypto_cast.recording import recording
from pypto_cast.recording.recording import trust
from pypto_cast.tensors.tensor import Tensor
from simulator import arithmetic
from simulator.arithmetic import Enclosure, Interval
from simulator.numbers.formats import BOOL


def choice(condition: Tensor, branches: Sequence[Tensor | Constant], dtype: DataType) -> Tensor:
    """The steps of `where` of checked branches; upstream may take others for two numbers."""
    values = [x.value for x in branches if isinstance(x, Constant)]
    numbers = [x for x in values if isinstance(x, (int, float))]
    if len(numbers) < len(branches):
        return elementwise("where", condition, *branches, dtype=dtype)

    def compute(*given: float) -> Tensor:
        constants = (Constant(each, "where") for each in given)
        return elementwise("where", condition, *constants, dtype=dtype)

    return of_numbers(
        "where", dtype, [x if isinstance(x, float) else int(x) for x in numbers], compute
    )


def of_numbers(
    name: str, dtype: DataType, numbers: Sequence[float], compute: Callable[..., Tensor]
) -> Tensor:
    """A result of numbers that upstream's compiler compares by no text (`CloseNumbers.untold`).

    The values are those of the numbers as written. What the same call gives with the numbers of
    another one of the kernel is in the intervals.

    Args:
        name: of the operation.
        dtype: of the result.
        numbers: those of the call.
        compute: gives the result of numbers.
    """
    result, running = compute(*numbers), recording.current()
    if running is None or not running.bounds:
        return result
    for others in running.numbers.untold(name, dtype.number_format.name, numbers):
        with as_one():
            result = _either(name, result, compute(*others))
    return result


def _either(name: str, x: Tensor, y: Tensor) -> Tensor:
    """The values of a tensor, open to those of another of its shape and dtype."""
    dtype, fmt = x.dtype, runs_in(name, x.dtype)
    values, others = operand_values(x, fmt), operand_values(y, fmt)
    if values is None or others is None:
        return x
    cause = recording.causes().index_here(name)
    no, yes = (np.broadcast_to(BOOL.dtype.type(each), values.shape) for each in (0, 1))
    causes = np.broadcast_to(np.uint16(cause), values.shape)
    open_choice = Interval(low=no, high=yes, may_be_nan=None, cause=causes)
    given = [Enclosure(values=yes, interval=open_choice), values, others]
    for step in ROWS["where"].steps:
        given = [
            arithmetic.evaluate(
                step,
                given,
                fmt,
                trust=trust(name),
                inf_nan_mode=wraps(fmt),
                cause=cause,
                engine=options.current().converter,
                threads=options.current().threads,
            )
        ]
    (found,) = given
    return Tensor._from_result(
        tuple(x.shape),
        dtype,
        data=found if fmt is dtype.number_format else converted_to(found, fmt, dtype.number_format),
        valid=tuple(x.valid_shape),
        patches=x._patches,
        uninitialized=x._uninitialized,
        hidden=None if x.hidden() is None else found,
    )
