"""Open results that wait: the parts of an interval as nodes, computed together when one is read."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from simulator.arithmetic.interval import Enclosure, Interval, Rests
from simulator.arithmetic.native.node_program import (
    HAS_CERTAIN,
    IS_OPEN,
    NEEDS_CARE,
    Deferred,
    Node,
    compute_all,
    compute_rows,
)
from simulator.arithmetic.operation import Array
from simulator.arithmetic.total_order import Bools

_RESTS: Final[Mapping[int, str]] = MappingProxyType({1: "rests8", 2: "rests16", 4: "rests"})
"""By the bytes of an element, the choices that it rests on."""
Part = Node | Array


class Openness:
    """The openness of a result: True if any element is open, known at the first call.

    It keeps the result only as long as that is not known.
    """

    __slots__ = ("__weakref__", "_known", "_parts")

    def __init__(self, parts: Parts) -> None:
        self._parts: Parts | None = parts
        self._known = False

    def settle(self, is_open: bool) -> None:
        """Take note of it."""
        self._known, self._parts = is_open, None

    def take_note(self) -> None:
        """Give up the result, if a program has found by now whether it is open."""
        finding = None if self._parts is None else self._parts.finding()
        if finding is not None:
            self.settle(finding)

    def __call__(self) -> bool:
        if self._parts is not None:
            finding = self._parts.finding()
            self.settle(self._parts.computed().interval is not None if finding is None else finding)
        return self._known


@dataclass(slots=True, kw_only=True, eq=False)
class Parts:
    """The parts of an open result that is not computed yet.

    Attributes:
        values, low, high: of one shape.
        cause: of each element, or one element that stands for all.
        checks: those that all rules hold, of operations before this one; its own is the last.
        again: evaluates the operation by numpy.
        found: the result.
        fell_back: numpy evaluated it.
        certain_rows: by row, False: none of its elements is certain; None: not known.
    """

    values: Part
    low: Part
    high: Part
    cause: Part
    checks: tuple[Node, ...]
    again: Callable[[], Enclosure]
    found: Enclosure | None = None
    fell_back: bool = False
    certain_rows: Bools | None = None
    _openness: weakref.ref[Openness] | None = None

    @property
    def openness(self) -> Openness:
        """The one of the result, which those who ask for it hold: it may hold this."""
        known = self._asked_for()
        if known is None:
            known = Openness(self)
            self._openness = weakref.ref(known)
            if self.found is not None:
                known.settle(self.found.interval is not None)
            elif self.checks:
                self.checks[-1].holder = self._openness
        return known

    def _asked_for(self) -> Openness | None:
        return None if self._openness is None else self._openness()

    def finding(self) -> bool | None:
        """True if any element is open; None where no program has found that yet."""
        if self.found is not None or self._needs_care():
            return None
        if self.checks and self.checks[-1].findings & IS_OPEN:  # perhaps of some elements alone
            return True
        return None if any(x.array is None for x in self.checks) else False

    def nodes(self) -> list[Node]:
        """Everything that is computed together."""
        parts = (self.values, self.low, self.high, self.cause, *self.checks)
        return [x for x in parts if isinstance(x, Node)]

    def computed(self) -> Enclosure:
        """The result, with an interval where some element is open."""
        if self.found is None:
            if not self._needs_care():
                from simulator.arithmetic.native import clear_roundings

                if not clear_roundings.settle(self):
                    compute_all(self.nodes(), {})
            if self.found is not None:  # its program made whoever holds it take note
                return self.found
            if self._needs_care():
                found = self.again()
                self.found = Enclosure(values=found.values, interval=found.interval)
                self.fell_back = True
            else:
                values, low, high, cause = map(
                    _array, (self.values, self.low, self.high, self.cause)
                )
                is_exact = not self.checks[-1].findings & IS_OPEN
                held = Interval(
                    low=low, high=high, may_be_nan=None, cause=np.broadcast_to(cause, values.shape)
                )
                self.found = Enclosure(values=values, interval=None if is_exact else held)
                marks = self.checks[-1].marks
                if marks is not None:
                    self.certain_rows = (marks & HAS_CERTAIN).astype(np.bool_)
            found = self.found
            self.again = lambda: found  # holds no operand, and not itself
            self.checks = ()
            if (known := self._asked_for()) is not None:
                known.settle(self.found.interval is not None)
        return self.found

    def take_note(self) -> None:
        """Give up the operands, if other results' programs have computed all parts by now."""
        if all(x.array is not None for x in self.nodes()) and not self._needs_care():
            self.computed()

    def rests(self, low: Array, high: Array, in_force: int, rows: Bools | None) -> Rests | None:
        """See `Enclosure.rests`."""
        executed = [x for x in (self.low, self.high) if isinstance(x, Node) and x.array is None]
        kind = _RESTS.get(self.low.dtype.itemsize)
        if self.found is not None or not executed or kind is None:
            return None
        given = (low, high, self.cause, np.array([in_force], np.uint16), self.low, self.high)
        lead = executed[0]
        node = Node(
            lead.executor, kind, given, low.shape, np.dtype(np.uint16), threads=lead.threads
        )
        from simulator.arithmetic.native import clear_roundings

        few = None if self._needs_care() else clear_roundings.rests(self, node)
        if few is not None:
            return None if few[1] & NEEDS_CARE else few[0]
        waiting = [x for x in self.checks if x.array is None]
        layout = node.shape[:-1], node.columns
        here = [x for x in waiting if (x.shape[:-1], x.columns) == layout]
        beside = [x for x in waiting if (x.shape[:-1], x.columns) != layout]
        compute_all(beside, {})
        found = None if self._needs_care() else compute_rows(node, here, rows)
        return None if found is None or found[1] & NEEDS_CARE else Rests(bits=found[0])

    def _needs_care(self) -> bool:
        return any(x.findings & NEEDS_CARE for x in self.checks)


def _array(part: Part) -> Array:
    return part.computed() if isinstance(part, Node) else part


class DeferredInterval(Enclosure):
    """An enclosure whose values and interval are computed when either is first read."""

    __slots__ = ("__weakref__", "parts")
    parts: Parts

    def __init__(self, parts: Parts, *, is_held: bool = True) -> None:
        object.__setattr__(self, "parts", parts)
        for x in parts.nodes() if is_held else ():
            if not x.checks:
                x.holder = weakref.ref(self)

    def __getattr__(self, name: str) -> Array | Interval | None:
        if name not in ("values", "interval"):
            raise AttributeError(name)
        found = self.parts.computed()
        object.__setattr__(self, "values", found.values)
        object.__setattr__(self, "interval", found.interval)
        return found.values if name == "values" else found.interval

    def take_note(self) -> None:
        self.parts.take_note()

    @property
    def openness(self) -> Callable[[], bool]:
        return self.parts.openness

    @property
    def is_pending(self) -> bool:
        return self.parts.found is None

    @property
    def certain_rows(self) -> Bools | None:
        return self.parts.certain_rows

    def own_values(self) -> Array:
        node = self.parts.values
        is_made_now = self.is_pending and isinstance(node, Node) and node.array is None
        values = self.values
        return values if is_made_now and not self.parts.fell_back else values.copy()

    def rests(self, low: Array, high: Array, in_force: int, rows: Bools | None) -> Rests | None:
        return self.parts.rests(low, high, in_force, rows)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.parts.values.shape

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return self.parts.values.dtype


def unheld(x: Enclosure) -> Enclosure:
    """The same enclosure for somebody who does not need it computed unless it is read."""
    if isinstance(x, DeferredInterval) and x.is_pending:
        return DeferredInterval(x.parts, is_held=False)
    if isinstance(x, Deferred) and x.node.array is None:
        found = Deferred.__new__(Deferred)
        object.__setattr__(found, "node", x.node)
        object.__setattr__(found, "interval", None)
        return found
    return x


def are_covered(operands: Sequence[Enclosure]) -> bool:
    """True if operands have intervals without NaN, and one of them has an interval."""
    found = False
    for x in operands:
        if isinstance(x, DeferredInterval) and x.is_pending:
            found = True
        elif x.interval is not None:
            if x.interval.may_be_nan is not None:
                return False
            found = True
    return found
