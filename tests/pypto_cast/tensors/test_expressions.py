"""Expressions of symbols: simpler ones of the same value, and conditions that cannot all hold."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pypto_cast as pypto
from pypto_cast import SatStatus, Symbol, SymbolicScalar

NAMES = ("x", "y", "z")
SYMBOLS: tuple[Any, ...] = tuple(map(Symbol, NAMES))
X, Y, Z = SYMBOLS

VALUES: Mapping[str, Callable[..., int]] = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "neg", "pos")},
    **{name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")},
    **{"min": min, "max": max, "invert": operator.not_},
    **{"and": lambda a, b: a and b, "or": lambda a, b: a or b},
    **dict.fromkeys(("truediv", "floordiv"), operator.floordiv),
    "mod": operator.mod,
}
"""Operators on ints, of divisions for dividends that are not negative."""


def value(expression: Any, where: Mapping[str, int]) -> int:
    """The value of an expression, by Python's operators."""
    if not isinstance(expression, Symbol) or type(expression) is not Symbol:
        return int(expression)
    if not expression.kind:
        return where[expression.name]
    operands = [value(each, where) for each in expression.operands]
    return int(VALUES[expression.kind](*operands))


def numbers(divides: bool) -> st.SearchStrategy[Any]:
    """Expressions; with divisions those that are nowhere negative."""
    leaves = st.sampled_from(SYMBOLS) | st.integers(0, 9)
    names = ["add", "mul", "min", "max"] + (["truediv", "mod"] if divides else ["sub"])

    def longer(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        pair = st.tuples(st.sampled_from(names), inner, inner).filter(
            lambda each: each[0] not in ("truediv", "mod") or (type(each[2]) is int and each[2] > 0)
        )
        made = pair.map(lambda each: Symbol.of(*each))
        return made if divides else made | inner.map(lambda each: Symbol.of("neg", each))

    return st.recursive(leaves, longer, max_leaves=7).filter(lambda each: type(each) is Symbol)


def truths() -> st.SearchStrategy[Any]:
    """Comparisons, and `&`, `|` and `~` of them."""
    kinds = st.sampled_from(("lt", "le", "gt", "ge", "eq", "ne"))
    compared = st.builds(Symbol.of, kinds, numbers(False), numbers(False) | st.integers(-5, 5))
    return st.recursive(
        compared,
        lambda inner: (
            st.builds(Symbol.of, st.sampled_from(("and", "or")), inner, inner)
            | inner.map(lambda each: Symbol.of("invert", each))
        ),
        max_leaves=4,
    )


@given(
    expression=numbers(False) | numbers(True) | truths(),
    given=st.lists(st.integers(0, 50), min_size=3, max_size=3),
)
def test_a_simpler_expression_has_the_same_value(expression: Any, given: list[int]) -> None:
    where = dict(zip(NAMES, given, strict=True))
    simpler = expression.simplify()
    assert isinstance(simpler, SymbolicScalar)
    assert value(simpler, where) == value(expression, where)
    assert str(simpler.simplify()) == str(simpler)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ((5 + X) + 3, "(x+8)"),
        ((X + 3) - Y, "((x-y)+3)"),
        (X * Y + X * Z, "((y+z)*x)"),
        ((X * 6) / 3, "(x*2)"),
        ((X + 6) % 3, "(x%3)"),
        ((X / 0) + 0, "(x/0)"),
        (Symbol.of("truediv", 4, 0) + X, "((4/0)+x)"),
        (~(X < Y) | (Y <= X), "(y<=x)"),
        ((X + Y).min(X + Z), "(x+RUNTIME_Min(y, z))"),
        (pypto.min(pypto.max(X.max(0).min(512) - 16, 0), 16), None),
    ],
)
def test_texts(expression: Any, text: str | None) -> None:
    wanted = text or "RUNTIME_Min(RUNTIME_Max((x-16), 0), 16)"
    assert str(expression.simplify()) == wanted


CONDITIONS = st.lists(
    st.builds(
        Symbol.of,
        st.sampled_from(("lt", "le", "gt", "ge", "eq", "ne")),
        st.builds(
            lambda a, b, c: Symbol.of("add", Symbol.of("mul", X, a), Symbol.of("mul", Y, b)) + c,
            st.integers(-3, 3),
            st.integers(-3, 3),
            st.integers(-4, 4),
        )
        | st.builds(lambda of, by: of % by, st.sampled_from(SYMBOLS[:2]), st.integers(2, 4)),
        st.integers(-6, 6),
    ),
    min_size=1,
    max_size=4,
)


@given(conds=CONDITIONS)
def test_what_can_hold_is_not_refuted(conds: list[Any]) -> None:
    def truncated(a: int, b: int) -> int:
        return a - b * int(a / b)

    places = itertools.product(range(-12, 13), repeat=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(VALUES, "mod", truncated)
        holds = any(all(value(c, {"x": x, "y": y}) for c in conds) for x, y in places)
    found = SymbolicScalar.check(conds)
    assert not (holds and found is SatStatus.UNSAT)


@pytest.mark.parametrize(
    ("conds", "status"),
    [
        ([], SatStatus.SAT),
        ([SymbolicScalar(0)], SatStatus.UNSAT),
        ([X == X, 3], SatStatus.SAT),
        ([X >= 0], SatStatus.UNKNOWN),
        ([2 * X + 2 * Y == 5], SatStatus.UNSAT),
        ([2 * X > 5, 2 * X < 6], SatStatus.UNSAT),
        ([X == Y, Y == 6, X % 4 == 3], SatStatus.UNSAT),
        ([X == Y, Y == 6, X % 4 == 2], SatStatus.SAT),
        ([X == 5, Y == 0, X / Y == 1], SatStatus.UNKNOWN),
        ([X * Y >= 1, X * Y <= 0], SatStatus.UNKNOWN),
        ([2 * X != 3], SatStatus.UNKNOWN),
        ([~(X < Y), X < Y], SatStatus.UNSAT),
        ([(X == 0) & (X == Y) & (X + 1 == Y)], SatStatus.UNSAT),
        ([(X == 0) | (X == Y)], SatStatus.UNKNOWN),
    ],
)
def test_status(conds: list[Any], status: SatStatus) -> None:
    assert SymbolicScalar.check(conds) is status
