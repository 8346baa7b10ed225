"""The control flow of a kernel that is recorded for a schedule, between its calls.

A loop's body runs once for each of its paths, and all of them once more, so that a tensor or a
number that Python's names carry from one iteration to the next is seen. Source: upstream pypto at
tag r0.2.0, framework/src/interface/program/recorder.cpp and
interface/function/function.cpp:160 to 265.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pypto_cast.loading import entry

if TYPE_CHECKING:
    from ascend_kernels.schedule.parts import Scalars
    from ascend_kernels.schedule.scalars import Scalar

_MOST_PATHS: Final = 1 << 8
"""Through a loop's body; ten conditions have more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A tensor that the kernel declares, with its extents."""

    tensor: Any
    shape: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopOpened:
    """A loop begins.

    Attributes:
        name: the loop's.
        variable: its index's.
        begin, end, step: its bounds.
        length: the iterations that are compiled as one body.
        waits: all tasks before it are done first.
    """

    name: str
    variable: str
    begin: Scalar
    end: Scalar
    step: Scalar
    length: int
    waits: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PassOpened:
    """The body begins; `is_path` is False where it only is run once more."""

    is_path: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PassClosed:
    """The body ends; `decisions` are the conditions that it went by, with their outcomes."""

    decisions: tuple[tuple[Scalar, bool], ...]


@dataclass(frozen=True, slots=True)
class LoopClosed:
    """The loop ends."""


@dataclass(slots=True)
class _Decision:
    condition: Scalar
    holds: bool
    is_known: bool


@dataclass(slots=True)
class _Path:
    decisions: list[_Decision] = field(default_factory=list)
    asked: int = 0

    def decide(self, condition: Scalar) -> bool:
        if self.asked == len(self.decisions):
            same = [each.holds for each in self.decisions if each.condition == condition]
            self.decisions.append(_Decision(condition, same[:1] == [True], bool(same)))
        self.asked += 1
        return self.decisions[self.asked - 1].holds

    def advance(self) -> bool:
        """Go to the next path; False if there is none."""
        self.asked = 0
        while self.decisions:
            last = self.decisions[-1]
            if not last.holds and not last.is_known:
                last.holds = True
                return True
            self.decisions.pop()
        return False


@dataclass(slots=True)
class PlanTape:
    """Calls, and marks of control flow between them, in order."""

    events: list[Any] = field(default_factory=list)
    opened: list[LoopOpened] = field(default_factory=list)
    _paths: list[_Path] = field(default_factory=list)

    @property
    def is_in_loop(self) -> bool:
        """True between the begin and the end of a loop's body."""
        return bool(self._paths)

    def declare(self, tensor: object, shape: Scalars) -> None:
        """Keep that the kernel declares a tensor."""
        self.events.append(Declared(tensor=tensor, shape=shape))

    def decide(self, condition: Scalar) -> bool:
        """The outcome of a condition on the path that is recorded."""
        return self._paths[-1].decide(condition)

    def may_never_run(self, error: Exception) -> bool:
        """True if an error may be of a path or an iteration that no run goes through.

        Such is a name that another path assigns, and a place outside a tensor in a loop's body.
        """
        is_place = type(error) in (IndexError, ValueError)
        return isinstance(error, NameError) or (bool(self.opened) and is_place)

    def passes(self, opened: LoopOpened) -> Iterator[None]:
        """Run a loop's body as often as it takes; it is to be run at each yield.

        Raises:
            PlanError: more paths than are planned.
        """
        self.events.append(opened)
        for is_path in (True, False):
            path = _Path()
            for count in itertools.count():
                if count >= _MOST_PATHS:
                    raise entry("PlanError")(
                        f"loop {opened.name}: its body has more than {_MOST_PATHS} paths"
                    )
                self.events.append(PassOpened(is_path=is_path))
                self._paths.append(path)
                self.opened.append(opened)
                yield
                self._paths.pop()
                self.opened.pop()
                decisions = tuple((x.condition, x.holds) for x in path.decisions if not x.is_known)
                self.events.append(PassClosed(decisions=decisions))
                if not path.advance():
                    break
        self.events.append(LoopClosed())
