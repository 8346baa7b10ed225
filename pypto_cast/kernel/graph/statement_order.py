"""Another order of a kernel's statements, over the calls that were recorded of it."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath
from typing import Any, Final

from pypto_cast.kernel.graph.loop_runs import CALL_ORDER
from pypto_cast.recording.steps import Call
from pypto_cast.tensors.tensor import Tensor

_WRITES: Final = ("assemble", "__setitem__", "move")
Statement = tuple[Any, ...]
"""Calls of one source line, one after another; or a mark of control flow alone."""


def statements(events: Sequence[Any]) -> list[Statement]:
    """The events of a recording by source line, in order."""

    def key(numbered: tuple[int, Any]) -> object:
        number, event = numbered
        return (event.file, event.line) if isinstance(event, Call) else number

    return [
        tuple(event for _, event in held) for _, held in itertools.groupby(enumerate(events), key)
    ]


def statement_place(group: Statement) -> str:
    """The line of a statement, as "softmax.py:12"; "" of a mark of control flow."""
    first = group[0]
    return f"{PurePath(first.file).name}:{first.line}" if isinstance(first, Call) else ""


def _is_fixed(group: Statement) -> bool:
    """No statement may pass it: control flow, and writes to parts of tensors."""
    return any(not isinstance(x, Call) or x.operation.__name__ in _WRITES for x in group)


def _reads(group: Statement) -> set[int]:
    found: set[int] = set()
    for call in group:
        for each in (*call.arguments, *call.named.values()):
            several = each if isinstance(each, (list, tuple)) else (each,)
            found |= {id(x) for x in several if isinstance(x, Tensor)}
    return found


def _goal(groups: Sequence[Statement], place: int, *, is_earlier: bool) -> int:
    """The place that a group gets: behind its operands, or before its first reader."""
    own = groups[place]
    if _is_fixed(own):
        return place
    made, read = {id(x.result) for x in own}, _reads(own)
    goal = place
    if is_earlier:
        while goal and not _is_fixed(groups[goal - 1]):
            if read & {id(x.result) for x in groups[goal - 1]}:
                break
            goal -= 1
        return goal
    while goal + 1 < len(groups) and not _is_fixed(groups[goal + 1]):
        if made & _reads(groups[goal + 1]):
            break
        goal += 1
    return goal


def moved_beside(groups: Sequence[Statement], place: str, *, is_earlier: bool) -> str:
    """The line beside which a line comes if it is moved; "" if it stays."""
    for number, group in enumerate(groups):
        if statement_place(group) == place:
            goal = _goal(groups, number, is_earlier=is_earlier)
            beside = goal - 1 if is_earlier else goal + 1
            if goal != number and 0 <= beside < len(groups):
                return statement_place(groups[beside])
    return ""


def moved(events: Sequence[Any], place: str, *, is_earlier: bool) -> list[Any]:
    """The events with the statements of a line moved; see `moved_beside`."""
    groups = statements(events)
    numbers = [number for number, group in enumerate(groups) if statement_place(group) == place]
    for number in numbers if is_earlier else reversed(numbers):
        goal = _goal(groups, number, is_earlier=is_earlier)
        groups.insert(goal, groups.pop(number))
    return [event for group in groups for event in group]


@contextlib.contextmanager
def taken_in_order(order: Callable[[Sequence[Any]], Sequence[Any]]) -> Iterator[None]:
    """Another order of a recording's events in the body of a `with` statement."""
    token = CALL_ORDER.set(order)
    try:
        yield
    finally:
        CALL_ORDER.reset(token)
