"""The runs of operations of a recorded kernel that are compiled by themselves, and their steps."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ascend_kernels.schedule.parts import (
    Barrier,
    Branch,
    ControlStep,
    Loop,
    Renewal,
    Run,
    Scalars,
)
from ascend_kernels.schedule.planner.tiles.tile_graph import PlanError
from ascend_kernels.schedule.scalars import Scalar, calculation
from pypto_cast.call_sites import silenced
from pypto_cast.operations.scalar_operands import Constant
from pypto_cast.recording.plan_tape import (
    Declared,
    LoopOpened,
    LoopPlace,
    PassClosed,
    PassOpened,
    PlanTape,
    first_passes,
    placed,
)
from pypto_cast.recording.steps import Call
from pypto_cast.tensors.symbolic import SymbolicScalar, scalar_of
from pypto_cast.tensors.tensor import Tensor
from tiling.grid import Shape

if TYPE_CHECKING:
    from pypto_cast.recording.recording import Recording

CALL_ORDER: Final[ContextVar[Callable[[Sequence[Any]], Sequence[Any]]]] = ContextVar(
    "pypto_cast_call_order", default=lambda events: events
)
"""The order in which the events of a recording are taken: another one to try it."""
Place = tuple[int, ...]
"""The passes through bodies that something stands in, the outermost first."""
_Path = tuple[tuple[tuple[Scalar, bool], ...], tuple[ControlStep, ...]]
"""The conditions of a path with their outcomes, and its steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledRun:
    """Calls that are compiled as one function.

    Attributes:
        calls: them.
        name: of the loop, with the iterations that a body has, the path, and the place in it.
        place: the passes that they stand in.
    """

    calls: Sequence[Call]
    name: str
    place: Place

    @property
    def operations(self) -> Iterator[Call]:
        """The calls but the assembles that assignments to whole tensors carry out."""
        for call, following in zip(self.calls, [*self.calls[1:], None], strict=True):
            if not (
                call.operation.__name__ == "assemble"
                and following is not None
                and following.operation.__name__ in ("__setitem__", "move")
                and following.arguments[0] is call.arguments[0]
                and following.arguments[-1] is call.arguments[1]
            ):
                yield call


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """The runs of a kernel.

    Attributes:
        runs: in the order of the recording.
        steps: the control flow over them, by their place.
        declared: the tensors that the kernel declares; a renewal says where, by their place here.
    """

    runs: Sequence[CalledRun]
    steps: tuple[ControlStep, ...]
    declared: Sequence[Declared]


def runs_of(events: Sequence[Any]) -> Runs:
    """The runs of a recording.

    Raises:
        PlanError: a loop that is left before its end, or a tensor that goes from one iteration to
            another by a name of Python.
    """
    reader = _Events(CALL_ORDER.get()(events))
    steps = reader.block("", ())
    if reader.is_cut:
        (loop, *_) = (each for each in reversed(events) if isinstance(each, LoopOpened))
        places = ["", *(f" {each.place}" for each in events if isinstance(each, Call))]
        raise PlanError(
            f"loop {loop.name}{places[-1]}: a loop that is left by break or return is not planned"
        )
    return Runs(runs=reader.runs, steps=steps, declared=reader.declared)


def recorded_for_plan(record: Callable[[PlanTape], Recording]) -> Recording:
    """A recording of a kernel whose operations after a loop are the same for any iterations of it.

    What follows a loop is compared with the same where the body runs once, and never.

    Args:
        record: records the kernel.

    Raises:
        PlanError: what the body assigns to names of Python is used after the loop.
    """
    recorded = record(PlanTape())
    events = recorded.calls or []
    followed = {
        (*place[:-1], before)
        for place, event in placed(events)
        if isinstance(event, (Call, LoopOpened))
        for before in range(place[-1])
    }
    if followed:
        runs_of(events)  # what it refuses it says better
    for loop, most in itertools.product(sorted(followed), (0, 1)):
        try:
            with silenced():
                other = record(PlanTape(shortened=(loop, most))).calls or []
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            other = []
        once, again = (_outside(each, loop) for each in (events, other))
        for before, after in itertools.zip_longest(once, again):
            if before != after:
                name = next(x.name for at, x in placed(events) if at == loop and _opens(x))
                where = next((f" {x[0]}" for x in (before, after) if x and x[0]), "")
                raise PlanError(
                    f"loop {name}: what follows it{where} depends on what its body gave a name of "
                    "Python, a number or its index, which is not planned; calculate it of shapes"
                )
    return recorded


def _opens(event: object) -> bool:
    return isinstance(event, LoopOpened)


def _outside(events: Sequence[Any], loop: LoopPlace) -> Iterator[tuple[str, Any]]:
    """The events but those of the passes through a loop, as values."""
    kept = [
        event
        for place, event in placed(events)
        if place[: len(loop)] != loop
        or (place == loop and not isinstance(event, (PassOpened, PassClosed)))
    ]
    return _Events(kept).described(range(len(kept)), lambda tensor: tensor.name)


class Slots:
    """The tensors that runs of a kernel pass on to others, by number.

    Attributes:
        read: those that a run takes, with the first operation that does.
        partial: those that a run writes a part of.
    """

    def __init__(self, declared: Sequence[Declared]) -> None:
        self._tensors = [each.tensor for each in declared]
        self._shapes = [each.shape for each in declared]
        self._numbers = {id(each): k for k, each in enumerate(self._tensors)}
        self.read: dict[int, str] = {}
        self.partial: set[int] = set()
        self._given: dict[tuple[int, Place], Scalars] = {}

    def number(self, tensor: Tensor) -> int:
        """The number of a tensor."""
        if id(tensor) not in self._numbers:
            self._numbers[id(tensor)] = len(self._tensors)
            self._tensors.append(tensor)
        return self._numbers[id(tensor)]

    def tensor(self, number: int) -> Tensor:
        """The tensor of a number."""
        found: Tensor = self._tensors[number]
        return found

    def extents(self, number: int, shape: Shape) -> Scalars:
        """The extents of a tensor where some are known only when the kernel runs, else ()."""
        found = self._shapes[number] if number < len(self._shapes) else ()
        is_open = len(found) == len(shape) and not all(isinstance(each, int) for each in found)
        return found if is_open else ()

    def give(self, extents: Mapping[int, Scalars], place: Place) -> None:
        """Keep the extents that hold data of tensors, by their id, which a run at a place gives."""
        self._given.update(((each, place), found) for each, found in extents.items())

    def viewed(self, tensor: Tensor, place: Place) -> Scalars:
        """The extents of a tensor to a view in a run at a place; () are those that it has else.

        A view has those of the value that the tensor was last given in a pass around it, in none
        beside it; an operation that reads the tensor itself takes all of it. So do dumps of the
        wheel.
        """
        around = ((id(tensor), place[:end]) for end in range(len(place), -1, -1))
        return next((self._given[each] for each in around if each in self._given), ())

    def steps(self, given: Sequence[ControlStep]) -> tuple[ControlStep, ...]:
        """Steps in which only those slots are renewed that are written in parts."""
        made: list[ControlStep] = []
        for step in given:
            match step:
                case Renewal(slots=slots):
                    new = tuple(each for each in slots if each in self.partial & self.read.keys())
                    made += [Renewal(slots=new)] if new else []
                case Loop(steps=inner):
                    made.append(replace(step, steps=self.steps(inner)))
                case Branch(steps=inner, otherwise=others):
                    held, failed = self.steps(inner), self.steps(others)
                    made.append(replace(step, steps=held, otherwise=failed))
                case _:
                    made.append(step)
        return tuple(made)


class _Events:
    """The events of a recording, read from the first on."""

    def __init__(self, events: Sequence[Any]) -> None:
        self._events = events
        self._next = 0
        self._passes = itertools.count()
        self._homes: dict[int, Place] = {}
        self.runs: list[CalledRun] = []
        self.declared: list[Declared] = []

    @property
    def is_at_end(self) -> bool:
        return self._next >= len(self._events)

    @property
    def is_cut(self) -> bool:
        """True if the last loop has no end."""
        return self._next > len(self._events)

    def block(self, name: str, place: Place, *, is_path: bool = True) -> tuple[ControlStep, ...]:
        """Read until the end of a body, or of the kernel."""
        steps: list[ControlStep] = []
        parts = itertools.count()
        new = []
        while not self.is_at_end:
            event = self._events[self._next]
            if isinstance(event, LoopOpened):
                self._next += 1
                next(parts)
                steps += self._loop(event, place, is_path=is_path)
            elif isinstance(event, Declared):
                self._next += 1
                self._homes[id(event.tensor)] = place
                new.append(len(self.declared))
                self.declared.append(event)
            elif isinstance(event, Call):
                for calls in self._stretches(place):
                    part = next(parts)
                    steps.append(Run(body=len(self.runs)))
                    if is_path:
                        named = f"{name}_{part}".lstrip("_")
                        self.runs.append(CalledRun(calls=calls, name=named, place=place))
            else:
                break
        return (Renewal(slots=tuple(new)), *steps)

    def _loop(self, opened: LoopOpened, place: Place, *, is_path: bool) -> tuple[ControlStep, ...]:
        paths: list[_Path] = []
        passes: tuple[list[range], list[range]] = [], []
        while isinstance(event := self._event(), PassOpened):
            name = f"{opened.name}_Unroll{opened.length}_PATH{len(paths)}"
            inner, first = (*place, next(self._passes)), self._next
            steps = self.block(name, inner, is_path=is_path and event.is_path)
            if isinstance(closed := self._event(), PassClosed) and event.is_path:
                paths.append((closed.decisions, steps))
            passes[event.is_path].append(range(first, self._next))
        if not is_path or self.is_cut:
            return ()
        self._check_passes(opened, passes)
        found = Loop(
            variable=opened.variable,
            begin=opened.begin,
            end=opened.end,
            step=opened.step,
            steps=_branches(paths, 0),
        )
        return (Barrier(), found) if opened.waits else (found,)

    def _check_passes(self, opened: LoopOpened, passes: tuple[list[range], list[range]]) -> None:
        """Refuse a body that is another when it runs again."""
        repeated, paths = passes
        for events in itertools.zip_longest(repeated, (*paths[:1], *paths), fillvalue=range(0)):
            again, once = (self.described(each) for each in events)
            for before, after in itertools.zip_longest(once, again):
                if before != after:
                    where = next((f" {x[0]}" for x in (after, before) if x and x[0]), "")
                    raise PlanError(
                        f"loop {opened.name}: what its body does{where} is not the same in each "
                        "iteration: a number or a tensor that a name of Python takes from one to "
                        "the next, or that a call changes in place, is not planned; calculate it "
                        "of the index, or change it outside of the loop"
                    )

    def described(
        self, events: range, outer: Callable[[Tensor], object] = id
    ) -> Iterator[tuple[str, Any]]:
        """The place of each event with the rest of it, tensors made in them by their order.

        Passes that only run the body of a loop among them once more are left out.

        Args:
            events: which.
            outer: gives what stands for a tensor that none of them made.
        """
        made: dict[int, int] = {}
        for event in first_passes(map(self._events.__getitem__, events)):
            if isinstance(event, Call):
                given = _described((event.arguments, event.named), made, outer)
                tile = tuple(event.settings.vec_tile_shapes or ())
                yield event.place, (event.operation.__name__, event.place, tile, given)
                made.setdefault(id(event.result), len(made))
            elif isinstance(event, Declared):
                made.setdefault(id(event.tensor), len(made))
                yield "", event.shape
            else:
                yield "", event

    def _event(self) -> Any:
        self._next += 1
        return None if self._next > len(self._events) else self._events[self._next - 1]

    def _stretches(self, place: Place) -> Iterator[list[Call]]:
        """The calls up to the next mark, by the segment that they stand in."""
        found: list[Call] = []
        for event in itertools.islice(self._events, self._next, None):
            if not isinstance(event, Call):
                break
            self._check_names(event, place)
            found.append(event)
            self._next += 1
        for _, calls in itertools.groupby(found, key=lambda call: id(call.segment)):
            yield list(calls)

    def _check_names(self, call: Call, place: Place) -> None:
        tensors = list(_tensors((call.arguments, call.named)))
        for each in tensors:
            home = self._homes.get(id(each), ())
            if home != place[: len(home)]:
                raise PlanError(
                    f"{call.name} {call.place}: a tensor that a name takes from one "
                    "iteration to another, or out of a loop; write it to a tensor declared before "
                    "the loop, as in total[:] = total + part"
                )
        if isinstance(call.result, Tensor) and all(call.result is not each for each in tensors):
            self._homes.setdefault(id(call.result), place)


def _tensors(given: Any) -> Iterator[Tensor]:
    if isinstance(given, Tensor):
        yield given
    elif isinstance(given, (list, tuple)):
        for each in given:
            yield from _tensors(each)
    elif isinstance(given, dict):
        yield from _tensors(tuple(given.values()))


def _described(given: Any, made: Mapping[int, int], outer: Callable[[Tensor], object]) -> Any:
    """Arguments as values: a tensor by its place in a pass, numbers as a schedule has them."""
    match given:
        case Tensor():
            return made.get(id(given), (outer(given),))
        case Mapping():
            return tuple((name, _described(each, made, outer)) for name, each in given.items())
        case list() | tuple():
            return tuple(_described(each, made, outer) for each in given)
        case slice():
            return _described((given.start, given.stop, given.step), made, outer)
        case Constant():
            return _described(given.value, made, outer)
        case SymbolicScalar():
            return scalar_of(given)
    return repr(given)


def _branches(paths: Sequence[_Path], depth: int) -> tuple[ControlStep, ...]:
    """The steps of paths that agree on the first decisions."""
    if len(paths) == 1:
        return paths[0][1]
    condition = paths[0][0][depth][0]
    held, failed = (
        _branches([each for each in paths if each[0][depth][1] is holds], depth + 1)
        for holds in (True, False)
    )
    if not held:
        return (Branch(condition=calculation("not", condition), steps=failed),) if failed else ()
    return (Branch(condition=condition, steps=held, otherwise=failed),)
