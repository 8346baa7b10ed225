"""Conditions on symbols that can hold together or contradict: `SymbolicScalar.check`.

Conditions become rows: sums of symbols with whole factors, each compared with zero. Equalities
take symbols out of all other rows; of what is left the bounds of each sum must not contradict.
Any other expression counts as a symbol of its own, so that UNSAT is always a proof.

Source: upstream pypto at 883e7dfb0, python/tests/ut/interface/test_symbolic_scalar_solver.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pypto_cast.tensors.expression_rules import Expression, simplified, substituted
from pypto_cast.tensors.symbolic import SatStatus, Symbol


class _UnsatisfiableError(Exception):
    """No values meet the rows."""


class _NotAffineError(Exception):
    """A product of symbols, which upstream leaves open."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A sum, `factors` times symbols by their text plus `rest`: "eq" or "ne" or "le" zero."""

    relation: str
    factors: dict[str, int]
    rest: int

    def plus(self, factor: int, other: _Row, times: int) -> _Row:
        """`factor` times this row plus `times` times another one, without factors of 0."""
        names = self.factors.keys() | other.factors.keys()
        sums = {
            name: factor * self.factors.get(name, 0) + times * other.factors.get(name, 0)
            for name in names
        }
        factors = {name: total for name, total in sums.items() if total}
        return _Row(self.relation, factors, factor * self.rest + times * other.rest)

    def tightened(self) -> _Row:
        """The row by the greatest common divisor of its factors.

        Raises:
            _UnsatisfiableError: no integers meet it.
        """
        if not self.factors:
            if not self.is_true():
                raise _UnsatisfiableError
            return self
        by = math.gcd(*self.factors.values())
        if self.relation != "le" and self.rest % by:
            if self.relation == "eq":
                raise _UnsatisfiableError
            return _Row("le", {}, 0)  # it holds: a multiple is no other number
        factors = {name: factor // by for name, factor in self.factors.items()}
        return _Row(self.relation, factors, -(-self.rest // by))

    def is_true(self) -> bool:
        """True if it holds for all values."""
        if self.factors:
            return False
        return {"eq": self.rest == 0, "ne": self.rest != 0, "le": self.rest <= 0}[self.relation]


_RELATIONS: Final = {
    **{"eq": ("eq", 1, 0), "ne": ("ne", 1, 0)},
    **{"le": ("le", 1, 0), "lt": ("le", 1, 1), "ge": ("le", -1, 0), "gt": ("le", -1, 1)},
}
"""By comparison the relation of a row, the sign of its sum and a number added to it."""


def check_conditions(conds: Sequence[Expression]) -> SatStatus:
    """The truth of all conditions at once, of whole numbers without bounds.

    Args:
        conds: comparisons of symbols, `&` of them, and ints, which hold if they are not 0.

    Returns:
        SAT if each holds once equalities that fix a symbol have given it its value, UNSAT if they
        contradict, else UNKNOWN.
    """
    left = list(conds)
    while True:
        try:
            rows, is_open = _rows_of(left)
            if not is_open and all(row.is_true() for row in rows):
                return SatStatus.SAT
            solved, others = _solved([row.tightened() for row in rows])
            _refute(others)
        except _UnsatisfiableError:
            return SatStatus.UNSAT
        fixed = [row for row in solved if len(row.factors) == 1]
        values = {name: -row.rest * sign for row in fixed for name, sign in row.factors.items()}
        before, left = left, [substituted(each, values) for each in left]
        if list(map(str, before)) == list(map(str, left)):
            return SatStatus.UNKNOWN


def _rows_of(conds: Iterable[Expression]) -> tuple[list[_Row], bool]:
    """The rows of conditions, and True if some condition is none."""
    rows, is_open, left = [], False, list(conds)
    while left:
        cond = left.pop()
        if not isinstance(cond, Symbol):
            rows.append(_Row("ne", {}, int(cond)))
        elif cond.kind == "and":
            left += cond.operands
        elif cond.kind in _RELATIONS:
            relation, sign, more = _RELATIONS[cond.kind]
            try:
                first, second = map(_affine, cond.operands)
            except _NotAffineError:
                is_open = True
                continue
            found = first.plus(sign, second, -sign)
            rows.append(_Row(relation, found.factors, found.rest + more))
        elif str(simpler := simplified(cond)) != str(cond):
            left.append(simpler if isinstance(simpler, Symbol) else int(simpler))
        else:
            is_open = True
    return rows, is_open


def _affine(given: Expression) -> _Row:
    """An expression as a sum.

    Raises:
        _NotAffineError: a product of symbols.
    """
    if not isinstance(given, Symbol):
        return _Row("", {}, int(given))
    if given.kind in ("add", "sub"):
        first, second = map(_affine, given.operands)
        return first.plus(1, second, 1 if given.kind == "add" else -1)
    if given.kind in ("neg", "pos"):
        (operand,) = map(_affine, given.operands)
        return _Row("", {}, 0).plus(0, operand, 1 if given.kind == "pos" else -1)
    if given.kind == "mul":
        first, second = map(_affine, given.operands)
        for row, other in ((first, second), (second, first)):
            if not row.factors:
                return _Row("", {}, 0).plus(0, other, row.rest)
        raise _NotAffineError
    simpler = simplified(given) if given.kind else given
    if str(simpler) != str(given):
        return _affine(simpler if isinstance(simpler, Symbol) else int(simpler))
    return _Row("", {str(given): 1}, 0)


def _solved(rows: list[_Row]) -> tuple[list[_Row], list[_Row]]:
    """Equalities that have each taken a symbol out of all other rows, and the other rows.

    Raises:
        _UnsatisfiableError: equalities contradict.
    """
    kept: list[_Row] = []
    while equalities := [row for row in rows if row.relation == "eq" and row.factors]:
        pivot = min(equalities, key=lambda row: min(map(abs, row.factors.values())))
        name = min(pivot.factors, key=lambda each: abs(pivot.factors[each]))
        factor = pivot.factors[name]

        def taken_out(
            row: _Row, name: str = name, factor: int = factor, pivot: _Row = pivot
        ) -> _Row:
            times = row.factors.get(name, 0)
            if not times:
                return row
            sign = 1 if factor > 0 else -1
            return row.plus(abs(factor), pivot, -sign * times).tightened()

        rows = [taken_out(row) for row in rows if row is not pivot]
        kept = [*map(taken_out, kept), pivot]
    return kept, rows


def _refute(rows: Iterable[_Row]) -> None:
    """Look for a sum whose bounds contradict.

    Raises:
        _UnsatisfiableError: there is one.
    """
    least: dict[tuple[tuple[str, int], ...], int] = {}
    greatest: dict[tuple[tuple[str, int], ...], int] = {}
    for row in rows:
        if row.relation != "le" or not row.factors:
            continue
        items = sorted(row.factors.items())
        sign = 1 if items[0][1] > 0 else -1
        key = tuple((name, sign * factor) for name, factor in items)
        if sign > 0:
            greatest[key] = min(greatest.get(key, -row.rest), -row.rest)
        else:
            least[key] = max(least.get(key, row.rest), row.rest)
    if any(least[key] > greatest[key] for key in least.keys() & greatest.keys()):
        raise _UnsatisfiableError
