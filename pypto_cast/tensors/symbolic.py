"""Numbers that upstream knows only when a kernel runs: loop indices and dynamic dimensions."""

from __future__ import annotations

import builtins
import enum
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pypto_cast.recording.causes import STEERED_BY
from pypto_cast.tensors.undecided import UndecidedScalar, followed, undecided


class StatusType(enum.Enum):
    """The marks that an annotation puts in place of a dimension's length."""

    DYN = "DYN"
    DYNAMIC = "DYNAMIC"
    STATIC = "STATIC"

    @property
    def is_dynamic(self) -> bool:
        return self is not StatusType.STATIC


DYN: Final = StatusType.DYN
DYNAMIC: Final = StatusType.DYNAMIC
STATIC: Final = StatusType.STATIC


def _quotient(dividend: int, divisor: int) -> int:
    """The quotient without its fraction: -7 / 2 is -3."""
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def _remainder(dividend: int, divisor: int) -> int:
    """The remainder of that quotient, which has the dividend's sign: -7 % 3 is -1."""
    return dividend - divisor * _quotient(dividend, divisor)


class Operator(NamedTuple):
    """An operator of upstream's scalars: its text and its value, of one or two ints."""

    form: str
    value: Callable[..., int]


OPERATORS: Final[Mapping[str, Operator]] = {
    "add": Operator("({} + {})", operator.add),
    "sub": Operator("({} - {})", operator.sub),
    "mul": Operator("({} * {})", operator.mul),
    "truediv": Operator("({} / {})", _quotient),
    "floordiv": Operator("({} // {})", _quotient),
    "mod": Operator("({} % {})", _remainder),
    "and": Operator("({} & {})", lambda a, b: a != 0 and b != 0),
    "or": Operator("({} | {})", lambda a, b: a != 0 or b != 0),
    "min": Operator("min({}, {})", builtins.min),
    "max": Operator("max({}, {})", builtins.max),
    "lt": Operator("({} < {})", operator.lt),
    "le": Operator("({} <= {})", operator.le),
    "gt": Operator("({} > {})", operator.gt),
    "ge": Operator("({} >= {})", operator.ge),
    "eq": Operator("({} == {})", operator.eq),
    "ne": Operator("({} != {})", operator.ne),
    "lshift": Operator("({} << {})", operator.lshift),
    "rshift": Operator("({} >> {})", operator.rshift),
    "xor": Operator("({} ^ {})", operator.xor),
    "pow": Operator("({} ** {})", operator.pow),
    "neg": Operator("(-{})", operator.neg),
    "pos": Operator("(+{})", operator.pos),
    "invert": Operator("(~{})", operator.not_),
}
"""The operators on numbers of a kernel, by the name that Python gives them.

`/`, `//` and `%` are those of C++; `&`, `|` and `~` are logical and give 0 or 1, as comparisons do.
Upstream lacks `<<`, `>>`, `^` and `**`, which are Python's. Its release 0.2.0 lacks `&` and `|`
too, and divides numbers that are known when it compiles as Python does.

Source: upstream pypto at 883e7dfb0, `python/src/bindings/symbolic_scalar.cpp` and
`framework/src/interface/tensor/symbolic_scalar.h:243`.
"""

_NOT_REFLECTED: Final = frozenset(
    ("min", "max", "lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "invert")
)


def _define_operators(
    of: type, operation: Callable[..., Callable[..., Any]], names: Iterable[str]
) -> None:
    """Give a class methods for some operators, each made by a function of the operator's name."""
    for name in names:
        setattr(of, name if name in ("min", "max") else f"__{name}__", operation(name))
        if name not in _NOT_REFLECTED:
            setattr(of, f"__r{name}__", operation(name, is_reflected=True))


def _expression(name: str, *, is_reflected: bool = False) -> Callable[..., Symbol]:
    def apply(*operands: object) -> Symbol:
        for operand in operands:
            if not isinstance(operand, Symbol) and not hasattr(operand, "__index__"):
                raise TypeError(f"symbols are combined with ints and symbols, not with {operand!r}")
        texts = [getattr(operand, "name", operand) for operand in operands]
        return Symbol(OPERATORS[name].form.format(*(texts[::-1] if is_reflected else texts)))

    return apply


@dataclass(frozen=True, slots=True)
class Symbol:
    """A number that only has a name, or an expression of such; in an annotation a dimension, which
    has the same length wherever it occurs.

    Args:
        name: the name or the expression.
    """

    name: str

    if TYPE_CHECKING:  # the operators are made from a table

        def __getattr__(self, name: str) -> Any: ...
        def __add__(self, other: Symbol | int) -> Symbol: ...
        def __radd__(self, other: Symbol | int) -> Symbol: ...

    def concrete(self) -> int:
        """Raises ValueError: the value is not known."""
        raise ValueError(f"the value of {self.name} is not known: it is only a name")

    __index__ = __bool__ = concrete

    def is_concrete(self) -> bool:
        """False: it has no value."""
        return False

    def as_variable(self) -> None:
        """Mark it as a variable for upstream's compiler; no bit depends on it."""

    def __str__(self) -> str:
        return self.name


_define_operators(Symbol, _expression, OPERATORS.keys() - {"eq", "ne"})  # symbols compare by name


class SymbolicScalar(int):
    """An int that upstream handles as an expression, with upstream's `min` and `max`.

    Here its value is always known. One that is calculated of ints alone is a constant to upstream
    too; what depends on a loop or a dynamic dimension is a `RuntimeScalar`. Its operators are
    upstream's: `/` and `//` drop the fraction, `%` has the sign of the dividend, and `~`, `&`, `|`
    are logical. `SymbolicScalar("name")` has no value and gives a `Symbol`; in a kernel it is 0, as
    upstream's table of symbols starts. `SymbolicScalar("name", 3)` is 3.
    """

    if not TYPE_CHECKING:  # the result is an int, or a Symbol

        def __new__(cls, value, known=None):
            if isinstance(value, str) and known is None:
                return Symbol(value) if STEERED_BY.get() is None else RuntimeScalar(0)
            if isinstance(value, Symbol):
                return value
            if isinstance(value, UndecidedScalar):
                return value.like(cls)
            return super().__new__(cls, operator.index(known if isinstance(value, str) else value))

    if TYPE_CHECKING:  # the operators are made from a table

        def __add__(self, other: int, /) -> SymbolicScalar: ...

        __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = __add__
        __mod__ = __rmod__ = __and__ = __rand__ = __or__ = __ror__ = min = max = __add__

        def __neg__(self) -> SymbolicScalar: ...

        __pos__ = __invert__ = __neg__

    def __divmod__(self, other: int, /) -> tuple[SymbolicScalar, SymbolicScalar]:
        return self // other, self % other

    def __rdivmod__(self, other: int, /) -> tuple[SymbolicScalar, SymbolicScalar]:
        return other // self, other % self

    def concrete(self) -> int:
        """The value as a plain int."""
        return int(self)

    def is_concrete(self) -> bool:
        """True: every value is known here."""
        return True

    def as_variable(self) -> None:
        """Mark it as a variable for upstream's compiler; no bit depends on it."""


def _operation(name: str, *, is_reflected: bool = False) -> Callable[..., Any]:
    def apply(*operands: Any) -> Any:
        if name not in ("min", "max") and not all(isinstance(each, Integral) for each in operands):
            return NotImplemented  # an operator's other operand may know it; a method has none
        return calculated(name, *(operands[::-1] if is_reflected else operands))

    return apply


_define_operators(SymbolicScalar, _operation, OPERATORS)


class RuntimeScalar(SymbolicScalar):
    """A number that upstream knows only when a kernel runs, and what is calculated of it.

    `pypto.view` and `pypto.reshape` tell by it a shape that upstream refuses.
    """


def calculated(name: str, *operands: Any) -> Any:
    """The result of an operator on numbers of a kernel."""
    if undecided(operands) is not None:
        return followed(name, *operands)
    value = OPERATORS[name].value(*map(operator.index, operands))
    varies = any(isinstance(operand, RuntimeScalar) for operand in operands)
    return RuntimeScalar(value) if varies else SymbolicScalar(value)


class LoopIndex(RuntimeScalar):
    """The index that `pypto.loop` gives, which knows the loop's ends."""

    is_first: bool
    is_last: bool

    @classmethod
    def of(cls, index: int, *, is_first: bool, is_last: bool) -> LoopIndex:
        """An index of a loop and whether it is at one of its ends."""
        made = cls(index)
        made.is_first, made.is_last = is_first, is_last
        return made


SymInt = int | SymbolicScalar


def min(a: SymInt | Symbol, b: SymInt | Symbol) -> SymInt | Symbol:
    """The smaller of two ints, loop indices, dimensions or symbols."""
    smaller: SymInt | Symbol = _scalar(a).min(b)
    return smaller


def max(a: SymInt | Symbol, b: SymInt | Symbol) -> SymInt | Symbol:
    """The larger of two ints, loop indices, dimensions or symbols."""
    larger: SymInt | Symbol = _scalar(a).max(b)
    return larger


def _scalar(given: object) -> Any:
    if isinstance(given, Symbol):
        return given
    if isinstance(given, bool) or not hasattr(given, "__index__"):
        raise TypeError(
            f"pypto.min and pypto.max take ints and symbols, not {given!r}; of tensors "
            "take pypto.minimum, maximum, amin or amax"
        )
    return given if isinstance(given, SymbolicScalar) else SymbolicScalar(given)
