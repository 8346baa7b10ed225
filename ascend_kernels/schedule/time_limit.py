"""A moment from which on no plan of a schedule goes on.

A short file because passes all over the planner ask for it, and nothing else belongs to it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar

_UNTIL: ContextVar[float | None] = ContextVar("until", default=None)


class OutOfTimeError(Exception):
    """A plan was given up, as its time is over; nothing is known of the plan."""


@contextlib.contextmanager
def planned_until(moment: float | None) -> Iterator[None]:
    """Give up plans in the body of a `with` statement that are not done by a moment.

    Args:
        moment: in seconds as `time.time` gives them, which mean the same in all processes; None:
            plans take as long as they take.
    """
    token = _UNTIL.set(moment)
    try:
        yield
    finally:
        _UNTIL.reset(token)


def check_time() -> None:
    """Give up a plan whose time is over; passes call it, and loops over tasks.

    Raises:
        OutOfTimeError: so.
    """
    until = _UNTIL.get()
    if until is not None and time.time() > until:
        raise OutOfTimeError("the time of the plan is over")


__all__ = ["OutOfTimeError", "check_time", "planned_until"]
