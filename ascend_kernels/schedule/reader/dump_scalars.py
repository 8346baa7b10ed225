"""Scalars of a dump: prefix lists, and the argument list of a task that they refer to.

Source: upstream pypto at tag r0.2.0, framework/src/interface/tensor/symbolic_scalar.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ascend_kernels.schedule.scalars import OPERATORS, Scalar

_OPERATORS: Final = (
    *("pos", "neg", "not", "add", "sub", "mul", "div", "mod", "eq", "ne", "lt", "le", "gt", "ge"),
    *("min", "max", "call", "min", "max"),
)
_CALL, _COUNTED = 16, (17, 18)
CALLED: Final[Mapping[str, str]] = {
    "RUNTIME_GetViewValidShapeDim": "clamp",
    "RUNTIME_GetInputShapeDim": "extent",
    "RUNTIME_IsLoopBegin": "eq",
    "RUNTIME_IsLoopEnd": "ge",
    **{f"RUNTIME_GetInputDataInt32Dim{dims}": "data" for dims in range(1, 5)},
    **{f"RUNTIME_{name.capitalize()}": name for name in OPERATORS},
}
"""The scalar's operator of each function of the control flow."""


class Resolve:
    """The meaning of symbols and functions, with the argument list of a task if there is one."""

    def __init__(self, arguments: Sequence[Sequence[Any]] = ()) -> None:
        self._arguments = arguments

    def __call__(self, name: str, operands: tuple[Scalar, ...]) -> Scalar:
        match name, operands:
            case "", (str(symbol),):
                return symbol_of(symbol)
            case "RUNTIME_COA_GET_PARAM_OFFSET", (int(_), int(base), int(axis)):
                return self.argument(base + 1 + axis)
            case "RUNTIME_COA_GET_PARAM_VALID_SHAPE", (int(dims), int(base), int(axis)):
                return self.argument(base + 1 + 3 * dims + axis)
        return CALLED.get(name, name), *operands

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


def symbol_of(name: str) -> Scalar:
    """A name: a parameter's, or a loop's variable."""
    if name.startswith("ARG_"):
        return name.removeprefix("ARG_")
    return "symbol", name.removeprefix("VALUE_")


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
