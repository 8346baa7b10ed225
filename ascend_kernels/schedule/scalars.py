"""Numbers of a schedule that are known when the kernel runs: extents, offsets, loop bounds.

A scalar is an int, or (operator, operand, ...). Beside arithmetic there are ("symbol", name), a
loop's variable; ("extent", parameter, axis); ("data", parameter, index, ...), an element of it;
("valid", access, axis), the valid extent of the tile that a copy of the task moves; and ("clamp",
valid, offset, shape), the valid extent of a view.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from simulator.machine.memory import SimulatorFault
from tiling.grid import quotient, remainder

Scalar = int | str | tuple["Scalar", ...]
MAX_NESTED: Final = 100
"""Of scalars, and of loops: whoever walks them does so by recursion."""

_FUNCTIONS: Final[Mapping[str, Callable[..., int]]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": quotient,
    "mod": remainder,
    "neg": operator.neg,
    "pos": operator.pos,
    "not": lambda a: int(not a),
    "and": lambda a, b: int(a != 0 and b != 0),
    "or": lambda a, b: int(a != 0 or b != 0),
    "eq": lambda a, b: int(a == b),
    "ne": lambda a, b: int(a != b),
    "lt": lambda a, b: int(a < b),
    "le": lambda a, b: int(a <= b),
    "gt": lambda a, b: int(a > b),
    "ge": lambda a, b: int(a >= b),
    "min": min,
    "max": max,
    "clamp": lambda valid, offset, shape: max(0, min(valid - offset, shape)),
}
OPERATORS: Final = frozenset(_FUNCTIONS)
_OPERANDS: Final = {
    **dict.fromkeys(_FUNCTIONS, (2, 2)),
    **dict.fromkeys(("neg", "pos", "not"), (1, 1)),
    **dict.fromkeys(("min", "max"), (2, 1 << 10)),
    "clamp": (3, 3),
}
"""The fewest and the most operands of each operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The numbers that scalars are made of while a kernel runs.

    Attributes:
        symbols: loop variables.
        extents: of each parameter.
        valid: the valid extents of each access of the task.
        arrays: the parameters whose elements are known before any task runs.
    """

    symbols: Mapping[str, int] = field(default_factory=dict)
    extents: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    valid: tuple[tuple[int, ...], ...] = ()
    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)


class UnknownNumberError(ValueError):
    """A number that is not known before the kernel runs on a device."""


def evaluate(scalar: Scalar, values: Values) -> int:
    """The number of a scalar; division truncates, as in C.

    Raises:
        UnknownNumberError: it depends on what tasks compute, or on a name that nothing defines.
        SimulatorFault: it reads outside a parameter, or divides by zero.
    """
    if isinstance(scalar, int):
        return scalar
    try:
        match scalar:
            case ("symbol", str(name)):
                return values.symbols[name]
            case ("extent", str(name), int(axis)):
                return values.extents[name][axis]
            case ("data", str(name), *indices) if name in values.arrays:
                return _element(name, [evaluate(each, values) for each in indices], values)
            case ("valid", int(access), int(axis)):
                return values.valid[access][axis]
            case (str(name), *operands) if name in _FUNCTIONS:
                return _FUNCTIONS[name](*(evaluate(each, values) for each in operands))
    except (KeyError, IndexError):
        raise UnknownNumberError(
            f"{text(scalar)} is no variable of a loop around it, and no extent here"
        ) from None
    except ZeroDivisionError:
        raise SimulatorFault(f"{text(scalar)} divides by zero") from None
    raise UnknownNumberError(f"{text(scalar)} is not known before the kernel runs on a device")


def check_operands(scalar: Scalar) -> None:
    """Refuse an operator with too few or too many operands.

    Raises:
        ValueError: names both.
    """
    match scalar:
        case (str(name), *operands) if name in _OPERANDS:
            least, most = _OPERANDS[name]
            if not least <= len(operands) <= most:
                raise ValueError(f"{text(scalar)} has {len(operands)} operands, not {least}")


def calculation(name: str, *operands: Scalar) -> Scalar:
    """An operator on scalars, worked out where all of them are known."""
    for each in operands:
        if not isinstance(each, int):
            return name, *operands
    return _FUNCTIONS[name](*operands)


def plus(a: Scalar, b: Scalar) -> Scalar:
    """A sum without a zero, a known operand last."""
    if a == 0 or b == 0:
        return b if a == 0 else a
    return calculation("add", b, a) if isinstance(a, int) else calculation("add", a, b)


def total(scalars: Iterable[Scalar]) -> Scalar:
    """The sum of scalars."""
    found: Scalar = 0
    for each in scalars:
        found = plus(found, each)
    return found


def minus(a: Scalar, b: Scalar) -> Scalar:
    """A difference, without a zero."""
    return a if b == 0 else calculation("sub", a, b)


def clamped(valid: Scalar, offset: Scalar, shape: int) -> Scalar:
    """The valid extent of a view, worked out where all is known.

    Source: upstream pypto at tag r0.2.0, framework/src/interface/tensor/logical_tensor.cpp:498,
    GetViewValidShapeDim.
    """
    return calculation("clamp", valid, offset, shape)


def constant(scalar: Scalar) -> int | None:
    """The number of a polynomial that does not vary; None of one that does, or of no polynomial."""
    names = sorted(_variables(scalar), key=repr)
    if None in names:
        return None
    found = set()
    for k in range(_POINTS):
        values = {name: (k + 1) * (place + 3) ** 2 for place, name in enumerate(names)}
        found.add(_polynomial(scalar, values))
    return found.pop() if len(found) == 1 else None


def distance(a: Scalar, b: Scalar) -> int | None:
    """The difference of two numbers; None of two that are not equally far apart in any run."""
    return 0 if a == b else constant(minus(a, b))


_POINTS: Final = 8
_OF_POLYNOMIALS: Final = ("add", "sub", "mul", "neg", "pos")


def _variables(scalar: Scalar) -> set[Scalar | None]:
    match scalar:
        case int():
            return set()
        case ("symbol" | "extent", *_):
            return {scalar}
        case (str(name), *operands) if name in _OF_POLYNOMIALS:
            return set().union(*map(_variables, operands))
    return {None}


def _polynomial(scalar: Scalar, values: Mapping[Scalar | None, int]) -> int:
    match scalar:
        case (str(name), *operands) if name in _OF_POLYNOMIALS:
            return _FUNCTIONS[name](*(_polynomial(each, values) for each in operands))
    return scalar if isinstance(scalar, int) else values[scalar]


def elements_read(scalar: Scalar) -> Iterator[tuple[str, int]]:
    """The parameters whose elements a scalar reads, with how many dimensions."""
    match scalar:
        case ("data", str(name), *indices):
            yield name, len(indices)
    for each in scalar if isinstance(scalar, tuple) else ():
        yield from elements_read(each)


def text(scalar: Scalar) -> str:
    """A scalar as it would be called."""
    match scalar:
        case ("symbol", str(name)):
            return name
        case ("data", str(name), *indices):
            return f"{name}[{', '.join(map(text, indices))}]"
        case (str(name), *operands):
            return f"{name}({', '.join(map(text, operands))})"
    return str(scalar)


def _element(name: str, index: list[int], values: Values) -> int:
    """A number that the control flow reads, INT32, from a parameter that no task writes."""
    array = values.arrays[name]
    if len(index) != array.ndim or array.dtype != np.int32:
        raise ValueError(f"{name}{index} is read as INT32; it is {array.dtype} {list(array.shape)}")
    if any(not 0 <= place < extent for place, extent in zip(index, array.shape, strict=True)):
        raise SimulatorFault(f"reads {name}{index}, which has {list(array.shape)} elements")
    return int(array[tuple(index)])
