"""Scalars of a dump: prefix lists, and the argument list of a task that they refer to.

Source: upstream pypto at tag r0.2.0, framework/src/interface/tensor/symbolic_scalar.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ascend_kernels.schedule.scalars import Scalar

_OPERATORS: Final = (
    *("pos", "neg", "not", "add", "sub", "mul", "div", "mod", "eq", "ne", "lt", "le", "gt", "ge"),
    *("min", "max", "call", "min", "max"),
)
_CALL, _COUNTED = 16, (17, 18)


class Resolve:
    """The meaning of symbols and functions, with the argument list of a task if there is one."""

    def __init__(self, arguments: Sequence[Sequence[Any]] = ()) -> None:
        self._arguments = arguments

    def __call__(self, name: str, operands: tuple[Scalar, ...]) -> Scalar:
        match name, operands:
            case "", (str(symbol),):
                return symbol if symbol.startswith("ARG_") else ("symbol", symbol)
            case "RUNTIME_GetInputShapeDim", (str(argument), int(axis)):
                return "extent", argument.removeprefix("ARG_"), axis
            case "RUNTIME_GetViewValidShapeDim", (_, _, _):
                return "clamp", *operands
            case "RUNTIME_COA_GET_PARAM_OFFSET", (int(_), int(base), int(axis)):
                return self.argument(base + 1 + axis)
            case "RUNTIME_COA_GET_PARAM_VALID_SHAPE", (int(dims), int(base), int(axis)):
                return self.argument(base + 1 + 3 * dims + axis)
        return name, *operands

    def argument(self, place: int) -> Scalar:
        """An entry of the task's argument list."""
        if not 0 <= place < len(self._arguments):
            raise ValueError(f"argument {place} of {len(self._arguments)} is asked for")
        return self.read(self._arguments[place])

    def read(self, given: Sequence[Any]) -> Scalar:
        """A scalar from its whole prefix list."""
        items = iter(given)
        try:
            return scalar(items, self)
        except StopIteration:
            raise ValueError(f"the scalar {str(given)[:60]} is cut short") from None


def scalar(items: Iterator[Any], resolve: Resolve) -> Scalar:
    """Read one scalar from its prefix list."""
    kind = next(items)
    if kind == 0:
        return int(next(items))
    if kind == 1:
        return resolve("", (str(next(items)),))
    if kind != 2:
        raise ValueError(f"a scalar begins with {kind!r}")
    number = int(next(items))
    if not 0 <= number < len(_OPERATORS):
        raise ValueError(f"scalar operator {number} is not known")
    if number == _CALL:
        count = int(next(items))
        if next(items) != 1:
            raise ValueError("a call names no function")
        name = str(next(items))
        return resolve(name, tuple([scalar(items, resolve) for _ in range(count - 1)]))
    count = int(next(items)) if number in _COUNTED else (1 if number < 3 else 2)
    # Lists: the end of the items ends a comprehension, but is an error inside a generator.
    return _OPERATORS[number], *[scalar(items, resolve) for _ in range(count)]
