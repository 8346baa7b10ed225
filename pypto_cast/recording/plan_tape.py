"""The control flow of a kernel that is recorded for a schedule, between its calls.

A loop's body runs once for each of its paths, once more for the first, and once more for all, so
that a tensor or a number that Python's names carry from one iteration to the next is seen. Where it
runs once more, and where a loop is shortened, the loops in it go once through their paths.
Source: upstream pypto at tag r0.2.0, framework/src/interface/program/recorder.cpp and
interface/function/function.cpp:160 to 265.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pypto_cast.loading import entry

if TYPE_CHECKING:
    from ascend_kernels.schedule.parts import Scalars
    from ascend_kernels.schedule.scalars import Scalar

_MOST_PATHS: Final = 1 << 8
"""Through a loop's body; ten conditions have more."""
LoopPlace = tuple[int, ...]
"""The number of a loop in the pass around it, after those of the loops around."""


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
    """Calls, and marks of control flow between them, in order.

    Attributes:
        events: them.
        opened: the loops around the next of them.
        shortened: a loop whose body runs a number of times only, and that number.
        stood_for: the first number read from data, for which 0 stands here, with its line; "" if
            none is.
    """

    events: list[Any] = field(default_factory=list)
    opened: list[LoopOpened] = field(default_factory=list)
    shortened: tuple[LoopPlace, int] | None = None
    stood_for: str = ""
    _paths: list[_Path] = field(default_factory=list)
    _counts: list[int] = field(default_factory=lambda: [0])
    _reruns: int = 0

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

    def why_never(self, error: Exception) -> str:
        """The reason for which an error may be of no run; "" without one.

        It is of a path or an iteration that none goes through, as a name that another path of a
        loop assigns, and a place outside a tensor in a loop's body; or a number that is read from
        data has another value there.
        """
        if isinstance(error, NameError):
            is_of_path = any(isinstance(each, LoopOpened) for each in self.events)
        else:
            is_of_path = bool(self.opened) and type(error) in (IndexError, ValueError)
        if is_of_path:
            return ", on one path"
        is_other = not self.stood_for or isinstance(error, (NameError, entry("PlanError")))
        return "" if is_other else f"; 0 stands for {self.stood_for}, which is read from data"

    def passes(self, opened: LoopOpened) -> Iterator[None]:
        """Run a loop's body as often as it takes; it is to be run at each yield.

        Raises:
            PlanError: more paths than are planned.
        """
        place, most = self.shortened or ((), 0)
        is_rerun = self._reruns > 0 or self.shortened is not None
        passes = _passes(opened.name, is_repeated=not is_rerun)
        self.events.append(opened)
        for is_path, path in itertools.islice(
            passes, most if place == tuple(self._counts) else None
        ):
            self.events.append(PassOpened(is_path=is_path))
            self._paths.append(path)
            self.opened.append(opened)
            self._counts.append(0)
            self._reruns += not is_path
            yield
            self._reruns -= not is_path
            self._paths.pop()
            self.opened.pop()
            self._counts.pop()
            decisions = tuple((x.condition, x.holds) for x in path.decisions if not x.is_known)
            self.events.append(PassClosed(decisions=decisions))
        self._counts[-1] += 1
        self.events.append(LoopClosed())


def _passes(name: str, *, is_repeated: bool) -> Iterator[tuple[bool, _Path]]:
    """The runs of a body: if it is its path's first, and the path."""
    repeats = ((False, 1), (False, _MOST_PATHS)) if is_repeated else ()
    for is_path, most in ((True, _MOST_PATHS), *repeats):
        path = _Path()
        for _ in range(most):
            yield is_path, path
            if not path.advance():
                break
        else:
            if is_path:
                raise entry("PlanError")(f"loop {name}: its body has more than {_MOST_PATHS} paths")


def placed(events: Sequence[Any]) -> Iterator[tuple[LoopPlace, Any]]:
    """Events with the place that a loop has there, or would have."""
    counts = [0]
    for event in events:
        if isinstance(event, PassClosed):
            counts.pop()
        yield tuple(counts), event
        if isinstance(event, PassOpened):
            counts.append(0)
        elif isinstance(event, LoopClosed):
            counts[-1] += 1


def first_passes(events: Iterable[Any]) -> Iterator[Any]:
    """Events but those of passes that only run a body once more."""
    reruns: list[bool] = []
    for event in events:
        if isinstance(event, PassOpened):
            reruns.append(not event.is_path)
        if not any(reruns):
            yield event
        if isinstance(event, PassClosed) and reruns:  # the events may be those of one pass
            reruns.pop()
