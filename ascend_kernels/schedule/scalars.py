"""Numbers of a schedule that are known when the kernel runs: extents, offsets, loop bounds.

A scalar is an int, or (operator, operand, ...). Beside arithmetic there are ("symbol", name), a
loop's variable; ("extent", parameter, axis); ("valid", access, axis), the valid extent of the tile
that a copy of the task moves; and ("clamp", valid, offset, shape), the valid extent of a view.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

Scalar = int | str | tuple["Scalar", ...]
MAX_NESTED: Final = 100
"""Of scalars, and of loops: whoever walks them does so by recursion."""

_FUNCTIONS: Final[Mapping[str, Callable[..., int]]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": lambda a, b: _truncated(a, b),
    "mod": lambda a, b: a - b * _truncated(a, b),
    "neg": operator.neg,
    "pos": operator.pos,
    "not": lambda a: int(not a),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The numbers that scalars are made of while a kernel runs.

    Attributes:
        symbols: loop variables.
        extents: of each parameter.
        valid: the valid extents of each access of the task.
    """

    symbols: Mapping[str, int] = field(default_factory=dict)
    extents: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    valid: tuple[tuple[int, ...], ...] = ()


def evaluate(scalar: Scalar, values: Values) -> int:
    """The number of a scalar; division truncates, as in C.

    Raises:
        ValueError: it depends on something unknown, or divides by zero.
    """
    if isinstance(scalar, int):
        return scalar
    try:
        match scalar:
            case ("symbol", str(name)):
                return values.symbols[name]
            case ("extent", str(name), int(axis)):
                return values.extents[name][axis]
            case ("valid", int(access), int(axis)):
                return values.valid[access][axis]
            case (str(name), *operands) if name in _FUNCTIONS:
                return _FUNCTIONS[name](*(evaluate(each, values) for each in operands))
    except (KeyError, IndexError, ZeroDivisionError, TypeError) as error:
        raise ValueError(f"{text(scalar)} cannot be evaluated: {error!r}") from None
    raise ValueError(f"{text(scalar)} is not known before the kernel runs on a device")


def text(scalar: Scalar) -> str:
    """A scalar as it would be called."""
    match scalar:
        case ("symbol", str(name)):
            return name
        case (str(name), *operands):
            return f"{name}({', '.join(map(text, operands))})"
    return str(scalar)


def _truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient
