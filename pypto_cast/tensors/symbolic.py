"""Numbers that upstream knows only when a kernel runs: loop indices and dynamic dimensions."""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pypto_cast.call_sites import is_called_from_outside
from pypto_cast.loading import entry
from pypto_cast.options.context import current
from pypto_cast.recording.causes import CONTROL_DEPENDENCE
from pypto_cast.recording.recording import current as current_recording
from pypto_cast.recording.recording import is_for_plan, refuse_plan, site_fields
from pypto_cast.recording.steps import CallSite
from pypto_cast.tensors.undecided import (
    COMPARISONS,
    OPERANDS,
    OPERATORS,
    KernelNumber,
    UndecidedScalar,
    followed,
    steer,
    undecided,
    value_of,
)
from pypto_cast.unsupported import tolerate

if TYPE_CHECKING:
    from ascend_kernels.schedule.scalars import Scalar

_VALUES: Final = range(-(2**63), 2**63)


class SatStatus(enum.IntEnum):
    """The truth of a conjunction: it holds, it contradicts itself, or that is not known."""

    SAT = 0
    UNSAT = 1
    UNKNOWN = 2


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


_TEXTS: Final = {
    **{"add": "({}+{})", "sub": "({}-{})", "mul": "({}*{})", "mod": "({}%{})"},
    **dict.fromkeys(("truediv", "floordiv"), "({}/{})"),
    **{"lt": "({}<{})", "le": "({}<={})", "gt": "({}>{})", "ge": "({}>={})"},
    **{"eq": "({}=={})", "ne": "({}!={})", "and": "({}&&{})", "or": "({}||{})"},
    **{"min": "RUNTIME_Min({}, {})", "max": "RUNTIME_Max({}, {})"},
    **{"neg": "(-{})", "pos": "(+{})", "invert": "(!{})"},
}
"""The text of an expression as upstream's `Dump` has it, by operator."""
_ABSORBING: Final = {"and": 0, "or": 1}
"""The truth of one operand that is the result whatever the other is."""


def _expression(name: str, *, is_reflected: bool = False) -> Callable[..., Any]:
    def apply(*operands: object) -> Any:
        if name in current().followed_release.lacks_operators:
            return NotImplemented
        for operand in operands:
            if not isinstance(operand, Symbol) and not hasattr(operand, "__index__"):
                if name in ("eq", "ne"):
                    return NotImplemented
                raise TypeError(f"symbols are combined with ints and symbols, not with {operand!r}")
        ordered: Any = operands[::-1] if is_reflected else operands
        known = [bool(each) for each in ordered if not isinstance(each, Symbol)]
        if name in _ABSORBING and bool(_ABSORBING[name]) in known:
            return SymbolicScalar(_ABSORBING[name])
        return Symbol.of(name, *ordered)

    return apply


@dataclass(frozen=True, slots=True, eq=False)
class Symbol:
    """A number that only has a name, or an expression of such; in an annotation a dimension, which
    has the same length wherever it occurs.

    `==` and `!=` give an expression too, which is true to Python where the names are the same, or
    not the same. `isinstance(symbol, pypto.SymbolicScalar)` is True, as upstream has one class.

    Args:
        name: the name or the expression, in upstream's words.
        kind: the operator of an expression; empty for a name.
        operands: of that operator.
    """

    name: str
    kind: str = ""
    operands: tuple[Symbol | int, ...] = ()

    @staticmethod
    def of(kind: str, *operands: Symbol | int) -> Symbol:
        """The expression of an operator on symbols and ints."""
        held = tuple(x if isinstance(x, Symbol) else operator.index(x) for x in operands)
        text = _TEXTS.get(kind, OPERATORS[kind].form).format(*map(str, held))
        return Symbol(text, kind=kind, operands=held)

    def simplify(self) -> Symbol | SymbolicScalar:
        """A simpler expression of the same value, as upstream's rules have it."""
        simpler: Symbol | SymbolicScalar = entry("simplified")(self)
        return simpler

    if TYPE_CHECKING:  # the operators are made from a table

        def __getattr__(self, name: str) -> Any: ...
        def __add__(self, other: Symbol | int) -> Symbol: ...
        def __radd__(self, other: Symbol | int) -> Symbol: ...

    def concrete(self) -> int:
        """Raises ValueError: the value is not known."""
        raise ValueError(f"the value of {self.name} is not known: it is only a name")

    __index__ = concrete

    def __bool__(self) -> bool:
        if self.kind not in ("eq", "ne"):
            return bool(self.concrete())
        first, second = map(str, self.operands)
        return (first == second) is (self.kind == "eq")

    def __hash__(self) -> int:
        return hash(self.name)

    def is_concrete(self) -> bool:
        """False: it has no value."""
        return False

    def is_symbol(self) -> bool:
        """True of a name, False of an expression."""
        return not self.kind

    def is_expression(self) -> bool:
        """True of an expression, False of a name."""
        return bool(self.kind)

    def is_immediate(self) -> bool:
        """False: it has no value."""
        return False

    def as_variable(self) -> None:
        """Mark it as a variable for upstream's compiler; no bit depends on it."""

    def __str__(self) -> str:
        return self.name


_define_operators(Symbol, _expression, OPERATORS)


class _NumberKind(type):
    """Has symbols count as numbers of the class that upstream has for both."""

    def __instancecheck__(cls, instance: object) -> bool:
        is_symbol = type(instance) is Symbol and cls is SymbolicScalar
        return is_symbol or super().__instancecheck__(instance)


if TYPE_CHECKING:
    _Length = int  # so that it goes wherever a length or an offset goes
else:
    _Length = object


class Extent(int):
    """The part of a dimension that holds data: an int with the methods of upstream's scalars."""

    __slots__ = ()

    def concrete(self) -> int:
        """The value as a plain int."""
        return int(self)

    def is_concrete(self) -> bool:
        """True: every value is known here."""
        return True


class SymbolicScalar(KernelNumber, _Length, metaclass=_NumberKind):
    """A number that upstream handles as an expression, with upstream's `min` and `max`.

    Here its value is always known. One that is calculated of ints alone is a constant to upstream
    too; what depends on a loop or a dynamic dimension is a `RuntimeScalar`. Its operators are
    upstream's: `/` and `//` drop the fraction, `%` has the sign of the dividend, and `~`, `&`, `|`
    are logical. They take ints and bools, numpy's too, and numbers of a kernel; `int(n)` and
    `float(n)` are plain numbers. `SymbolicScalar("name")` has no value and gives a `Symbol`; in a
    kernel it is 0, as upstream's table of symbols starts. `SymbolicScalar("name", 3)` is 3.

    Raises:
        TypeError: no int; an operand of another type, also of `==`.
        OverflowError: a value or a result of more than 64 bits.
    """

    __slots__ = ("_scalar", "_value")
    _scalar: Scalar

    @staticmethod
    def check(conds: Sequence[Symbol | int]) -> SatStatus:
        """SAT if all conditions hold, UNSAT if they contradict; see `expression_conditions`."""
        status: SatStatus = entry("check_conditions")(conds)
        return status

    if not TYPE_CHECKING:  # the result is a number, or a Symbol

        def __new__(cls, value, known=None):
            if isinstance(value, str) and known is None:
                return Symbol(value) if CONTROL_DEPENDENCE.get() is None else RuntimeScalar(0)
            given = known if isinstance(value, str) else value
            if isinstance(given, Symbol):
                return given
            if isinstance(given, UndecidedScalar):
                return given.like(cls)
            made = super().__new__(cls)
            made._value = operator.index(given)
            if made._value not in _VALUES:
                raise OverflowError(f"numbers of a kernel have 64 bits, too few for {made._value}")
            return made

        def __getnewargs__(self):
            return (self._value,)

        def is_symbol(self):
            """False: it has a value."""
            return False

        def is_expression(self):
            """True of a number that upstream knows only when the kernel runs."""
            return isinstance(self, RuntimeScalar)

        def is_immediate(self):
            """True of a constant."""
            return not isinstance(self, RuntimeScalar)

        def simplify(self):
            """The number itself: its value is known, and an expression of it needs no terms."""
            return self

        def concrete(self):
            if is_for_plan() and hasattr(self, "_scalar"):
                from ascend_kernels.schedule.scalars import text

                refuse_plan(text(self._scalar), "it is known only when the kernel runs")
            return self._value

        def __array__(self, dtype=None, copy=None):
            return np.array(self.concrete(), dtype)

        def __int__(self):
            return self.concrete() if is_called_from_outside() else self._value

        __index__ = __int__

        def __float__(self):
            return float(int(self))

        def __bool__(self):
            if hasattr(self, "_scalar") and is_called_from_outside():
                return decided(self._scalar)
            return self._value != 0

        def __hash__(self):
            return hash(self._value)

        def __repr__(self):
            return repr(self._value)

        def __format__(self, form):
            return format(self._value, form)

    if TYPE_CHECKING:  # the operators are made from a table

        def __add__(self, other: int, /) -> SymbolicScalar: ...

        __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = __add__
        __mod__ = __rmod__ = __and__ = __rand__ = __or__ = __ror__ = min = max = __add__

        def __neg__(self) -> SymbolicScalar: ...

        __pos__ = __invert__ = __neg__


class RuntimeScalar(SymbolicScalar):
    """A number that upstream knows only when a kernel runs, or a result calculated of one.

    `pypto.view` and `pypto.reshape` tell by it a shape that upstream refuses.
    """

    __slots__ = ()

    def in_any_run(self, scalar: Scalar) -> None:
        """Have it be an expression too, where the kernel is recorded for a schedule."""
        if is_for_plan() and not isinstance(scalar, int):
            self._scalar = scalar


def read_from_data(scalar: Scalar) -> RuntimeScalar:
    """A number of a tensor, for which 0 stands where the kernel is recorded for a schedule."""
    from ascend_kernels.schedule.scalars import text

    running = current_recording()
    assert running is not None
    assert running.tape is not None
    running.tape.stood_for = running.tape.stood_for or (
        f"{text(scalar)} {CallSite(**site_fields()).place}"
    )
    number = RuntimeScalar(0)
    number.in_any_run(scalar)
    return number


def scalar_of(number: int) -> Scalar:
    """A number as a schedule has it: an expression, or an int where it is known."""
    if isinstance(number, Symbol) or not isinstance(number, SymbolicScalar):
        return operator.index(number)
    found: Scalar = getattr(number, "_scalar", _plain(number))
    return found


def are_known(given: Any) -> bool:
    """True if no number in nested lists is known only when the kernel runs."""
    if isinstance(given, (list, tuple)):
        return all(map(are_known, given))
    return not (isinstance(given, SymbolicScalar) and hasattr(given, "_scalar"))


def check_extents(extents: Iterable[int]) -> None:
    """Refuse a part whose extents vary, where the kernel is recorded for a schedule.

    Raises:
        PlanError: names the extent, with the line of the caller.
    """
    if not is_for_plan():
        return
    from ascend_kernels.schedule.scalars import constant, text

    for each in map(scalar_of, extents):
        if constant(each) is None:
            reason = "is known only when the kernel runs; pypto.view takes it as valid_shape"
            refuse_plan("part", f"its extent {text(each)} {reason}")


def decided(condition: Scalar) -> bool:
    """The outcome of a condition on the path that is recorded for a schedule.

    Raises:
        PlanError: a condition outside loops, or in a body of several iterations.
    """
    from ascend_kernels.schedule.scalars import text

    running = current_recording()
    assert running is not None
    assert running.tape is not None
    name = f"condition {text(condition)}"
    if not running.tape.is_in_loop:
        refuse_plan(name, "a condition outside loops is not planned")
    if running.tape.opened[-1].length > 1:
        refuse_plan(name, "a condition in an unrolled loop is not planned")
    return running.tape.decide(condition)


def declare(tensor: object, shape: Iterable[object]) -> None:
    """Keep that the kernel declares a tensor, where it is recorded for a schedule.

    Raises:
        PlanError: a length that is read from data; 0 stands for it, which would be planned.
    """
    running = current_recording()
    if running is not None and running.tape is not None:
        from ascend_kernels.schedule.scalars import elements_read, text

        lengths = [
            scalar_of(x)
            for x in shape
            if isinstance(x, (int, SymbolicScalar)) and not isinstance(x, Symbol)
        ]
        for each in lengths:
            if any(elements_read(each)):
                refuse_plan("tensor", f"its length {text(each)} is read from data")
        running.tape.declare(tensor, tuple(lengths))


class DynamicShape(list[SymbolicScalar]):
    """Dimensions of which upstream learns some when a kernel runs.

    Comparing them with a list is refused there ("Not concrete value"); it warns here.
    """

    __slots__ = ()
    __hash__ = None

    def __getitem__(self, key: Any) -> Any:
        found = list.__getitem__(self, key)
        if isinstance(key, slice) and any(isinstance(e, RuntimeScalar) or e < 0 for e in found):
            return DynamicShape(found)
        return found

    def __eq__(self, other: object) -> bool:
        _warn_of_comparison()
        return list.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        _warn_of_comparison()
        return list.__ne__(self, other)


def _warn_of_comparison() -> None:
    tolerate(
        "upstream compares no shape with a dynamic dimension: compare the other dimensions, as in "
        "x.shape[1] == 64",
        strict=current().strict,
    )


_REFUSING: Final = frozenset(("min", "max", "eq", "ne"))
"""Methods, which have no reflected one, and comparisons that Python would answer by identity."""


def _operation(name: str, *, is_reflected: bool = False) -> Callable[..., Any]:
    row = OPERATORS[name]

    def apply(*operands: Any) -> Any:
        if name in current().followed_release.lacks_operators:
            return NotImplemented
        if any(type(each) is Symbol for each in operands):
            return _expression(name, is_reflected=is_reflected)(*operands)
        if len(operands) > 2 or not all(isinstance(each, OPERANDS) for each in operands):
            if name not in _REFUSING:
                return NotImplemented  # the other operand may know the operator
            text = row.form.format(*map(repr, operands))
            raise TypeError(f"{text}: a number of a kernel goes with ints and other such numbers")
        if not row.is_upstreams:
            tolerate(
                f"upstream's numbers of a kernel have no {row.form.format('n', 'm')[1:-1]}: "
                "calculate it of plain ints",
                strict=current().strict,
            )
        elif isinstance(operands[-1], np.generic) and not (is_reflected or name in COMPARISONS):
            tolerate(
                f"upstream's numbers of a kernel take no {type(operands[-1]).__name__} on their "
                "right: make it an int, int(...)",
                strict=current().strict,
            )
        return calculated(name, *(operands[::-1] if is_reflected else operands))

    return apply


_define_operators(SymbolicScalar, _operation, OPERATORS)
_define_operators(UndecidedScalar, _operation, OPERATORS)


def calculated(name: str, *operands: Any) -> Any:
    """The result of an operator on numbers of a kernel."""
    row = OPERATORS[name]
    function = row.value
    varies = any(isinstance(operand, RuntimeScalar) for operand in operands)
    kind = RuntimeScalar if varies else SymbolicScalar
    first = undecided(operands)
    is_open = any(hasattr(operand, "_scalar") for operand in operands)
    if is_open and not row.is_upstreams:
        refuse_plan(f"a number by {name}", "upstream has no such operator")
    try:
        value = kind(function(*(_plain(value_of(operand)) for operand in operands)))
    except (ArithmeticError, ValueError):
        if first is not None:
            steer(first)  # another member may give a result
        if not is_open:
            raise
        value = kind(0)  # the iteration that is recorded may be one that never runs
    if is_open:
        scalars = [*map(scalar_of, operands)]
        if name in ("min", "max"):  # a known one is last in dumps
            scalars.sort(key=lambda each: isinstance(each, int))
        value._scalar = (_SCALARS.get(name, name), *scalars)
    return value if first is None else followed(name, value, operands)


_SCALARS: Final = {"truediv": "div", "floordiv": "div", "invert": "not"}
"""The operators that a schedule has under another name."""


def _plain(number: Any) -> int:
    value: int = getattr(number, "_value", number)
    return int(value)


class LoopIndex(RuntimeScalar):
    """The index that `pypto.loop` gives, which knows the loop's ends."""

    __slots__ = ("is_first", "is_last")

    is_first: RuntimeScalar
    is_last: RuntimeScalar

    @classmethod
    def of(cls, index: int, *, is_first: bool, is_last: bool) -> LoopIndex:
        """An index of a loop, first or last of it or neither."""
        made = cls(index)
        made.is_first, made.is_last = RuntimeScalar(is_first), RuntimeScalar(is_last)
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
    return given if isinstance(given, KernelNumber) else SymbolicScalar(operator.index(given))
