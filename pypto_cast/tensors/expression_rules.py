"""Simpler expressions of symbols: `SymbolicScalar.simplify`.

A rule is an expression, a simpler one, and a condition on its constants. Rules that divide hold of
dividends that are not negative, and those of `&`, `|` and `~` of truths, as upstream's are.

Source: upstream pypto at 883e7dfb0, python/tests/ut/interface/test_symbolic_scalar_simplify.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pypto_cast.tensors.symbolic import Symbol, SymbolicScalar
from pypto_cast.tensors.undecided import OPERATORS

_COMMUTATIVE: Final = frozenset(("add", "mul", "min", "max", "and", "or", "eq", "ne"))
_A: Final[Any] = Symbol("a")
_B: Final[Any] = Symbol("b")
_C: Final[Any] = Symbol("c")
_K: Final[Any] = Symbol("k")
_L: Final[Any] = Symbol("l")
_M: Final[Any] = Symbol("m")
_N: Final[Any] = Symbol("n")
_CONSTANTS: Final = frozenset("klmn")
"""Names that stand for an int alone."""
_ALWAYS: Final = 1


@dataclass(frozen=True, slots=True)
class _Rule:
    """An expression, a simpler one of equal value, and an expression that must not be zero."""

    before: Symbol
    after: Symbol | int
    where: Symbol | int = _ALWAYS


_RULES: Final = (
    _Rule(Symbol.of("neg", -_A), _A),
    _Rule(-(_A - _B), _B - _A),
    _Rule(+_A, _A),
    _Rule(~(~_A), _A),
    _Rule(~(_A < _B), _B <= _A),
    _Rule(~(_A <= _B), _B < _A),
    _Rule(~(_A == _B), _A != _B),
    _Rule(~(_A != _B), _A == _B),
    _Rule(~(_A & _B), ~_A | ~_B),
    _Rule(~(_A | _B), ~_A & ~_B),
    _Rule(_A + 0, _A),
    _Rule((_A + _K) + _L, _A + (_K + _L)),
    _Rule((_A - _B) + _B, _A),
    _Rule(_A + _A, _A * 2),
    _Rule(_A * _B + _A * _C, (_B + _C) * _A),
    _Rule(_A.min(_B) + _A.max(_B), _A + _B),
    _Rule(_A - 0, _A),
    _Rule(_A - _A, 0),
    _Rule((_A + _B) - _B, _A),
    _Rule(_A - (_A + _B), -_B),
    _Rule((_A - _B) - (_A - _C), _C - _B),
    _Rule((_A - _B) - (_C - _B), _A - _C),
    _Rule((_A + _K) - _L, _A + (_K - _L)),
    _Rule((_A - _K) - _L, _A - (_K + _L)),
    _Rule((_A + _K) - _B, (_A - _B) + _K),
    _Rule(_A * 0, 0),
    _Rule(_A * 1, _A),
    _Rule((_A * _K) * _L, _A * (_K * _L)),
    _Rule(_A.min(_B) * _A.max(_B), _A * _B),
    _Rule(_A / 1, _A),
    _Rule((_A * _K) / _L, _A * (_K / _L), (_L > 0) & (_K % _L == 0)),
    _Rule((_A / _K) / _L, _A / (_K * _L), (_K > 0) & (_L > 0)),
    _Rule((_A * _K) % _L, 0, (_L > 0) & (_K % _L == 0)),
    _Rule((_A + _K) % _L, _A % _L, (_L > 0) & (_K % _L == 0)),
    _Rule(_A.min(_A), _A),
    _Rule(_A.min(_K).min(_L), _A.min(_K.min(_L))),
    _Rule(_A.max(_B).min(_B), _B),
    _Rule(_A.max(_A), _A),
    _Rule(_A.max(_K).max(_L), _A.max(_K.max(_L))),
    _Rule(_A.min(_B).max(_B), _B),
    _Rule((_A.min(_K) - _L).max(_M).min(_N), (_A - _L).max(_M).min(_N), _K - _L >= _N),
    _Rule((_A.max(_K) - _L).max(_M), (_A - _L).max(_M), _K - _L <= _M),
    _Rule((_A + _B).min(_A + _C), _A + _B.min(_C)),
    _Rule((_A + _B).max(_A + _C), _A + _B.max(_C)),
    _Rule(_A == _A, 1),
    _Rule(_A != _A, 0),
    _Rule(_A > _B, _B < _A),
    _Rule(_A >= _B, _B <= _A),
    _Rule(_A < _A, 0),
    _Rule(_A <= _A, 1),
    _Rule(_A + _B == _A + _C, _B == _C),
    _Rule(_A + _B != _A + _C, _B != _C),
    _Rule(_A + _B < _A + _C, _B < _C),
    _Rule(_A + _B <= _A + _C, _B <= _C),
    _Rule(_A & _A, _A),
    _Rule(Symbol.of("and", _A, _K), _A, _K != 0),
    _Rule(_A & ~_A, 0),
    _Rule(_A & (_A | _B), _A),
    _Rule(_A | _A, _A),
    _Rule(Symbol.of("or", _A, _K), _A, _K == 0),
    _Rule(_A | ~_A, 1),
    _Rule(_A | (_A & _B), _A),
)
_BY_KIND: Final[Mapping[str, Sequence[_Rule]]] = {
    kind: [rule for rule in _RULES if rule.before.kind == kind] for kind in OPERATORS
}

Expression = Symbol | int
Names = Mapping[str, Expression]


def simplified(given: Symbol) -> Symbol | SymbolicScalar:
    """The simplest expression that rules lead to; an int of the kernel where they leave one."""
    found = _simplified(given)
    return found if isinstance(found, Symbol) else SymbolicScalar(found)


def substituted(given: Expression, values: Names) -> Expression:
    """An expression with others in place of some names."""
    if not isinstance(given, Symbol):
        return given
    if not given.kind:
        return values.get(given.name, given)
    return _made(given.kind, [substituted(each, values) for each in given.operands])


def _simplified(given: Expression) -> Expression:
    if not isinstance(given, Symbol) or not given.kind:
        return given
    operands = tuple(map(_simplified, given.operands))
    made = _made(given.kind, operands)
    if not isinstance(made, Symbol):
        return made
    for rule in _BY_KIND[given.kind]:
        for names in _matches(rule.before, made, {}):
            if substituted(rule.where, names) == 1:
                return _simplified(substituted(rule.after, names))
    return made


def _made(kind: str, operands: Sequence[Expression]) -> Expression:
    """An operator on operands: an int of ints, else an expression with constants on the right."""
    if not any(isinstance(each, Symbol) for each in operands):
        try:
            return int(OPERATORS[kind].value(*operands))
        except ArithmeticError:
            return Symbol.of(kind, *operands)
    if kind in _COMMUTATIVE and not isinstance(operands[0], Symbol):
        operands = operands[::-1]
    return Symbol.of(kind, *operands)


def _matches(pattern: Expression, given: Expression, names: Names) -> Iterator[Names]:
    """Every way in which an expression is an instance of a pattern."""
    if not isinstance(pattern, Symbol):
        if not isinstance(given, Symbol) and pattern == given:
            yield names
    elif not pattern.kind:
        held = names.get(pattern.name)
        if held is None:
            if (pattern.name in _CONSTANTS) <= (not isinstance(given, Symbol)):
                yield {**names, pattern.name: given}
        elif str(held) == str(given):
            yield names
    elif isinstance(given, Symbol) and given.kind == pattern.kind:
        orders = [given.operands]
        if pattern.kind in _COMMUTATIVE:
            orders.append(given.operands[::-1])
        for operands in orders:
            partial: list[Names] = [names]
            for inner, operand in zip(pattern.operands, operands, strict=True):
                partial = [more for each in partial for more in _matches(inner, operand, each)]
            yield from partial
