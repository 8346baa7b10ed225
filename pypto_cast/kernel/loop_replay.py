"""Iterations of a loop that carry out the same operations are carried out together.

The first two iterations of a straight body are recorded. Where the second has the operations of
the first, and the boxes that depend on the index lie one below the other along the first axis, the
body runs once for many of those that follow, over boxes as high as theirs together. Its operations
treat each row by itself, so every element has the bits, and the interval, that its own iteration
gives; steps, boxes and origins are recorded for each iteration. The last one runs by itself again,
and leaves Python's names as they would be.

A body that Python steers, that prints, or in which anything else happens is not straight, and is
never carried out so; nor is any while a debugger, a trace function or a monitoring tool watches.
"""

from __future__ import annotations

import contextlib
import functools
import math
import operator
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any, Final, Protocol

from pypto_cast.call_sites import warnings_given
from pypto_cast.kernel.straight_bodies import BY_ELEMENT, BY_ROW, COMPOSED_BY_ROW, is_straight
from pypto_cast.options.context import Options, changed, current
from pypto_cast.recording.buffers import Buffer
from pypto_cast.recording.recording import Recording
from pypto_cast.recording.steps import (
    Call,
    CallSite,
    OperationRecord,
    OperationStep,
    Patch,
    RecordedStep,
)
from pypto_cast.tensors.indexing import box_of
from pypto_cast.tensors.tensor import Tensor
from tiling.grid import Shape

_MOST_ELEMS: Final = 1 << 21
"""Of a tensor that stands for those of several iterations."""
_MOST_TOOLS: Final = 6
"""Tools of sys.monitoring."""


def is_watched(frame: FrameType) -> bool:
    """True if a trace function, a debugger or a monitoring tool follows the lines that run."""
    if sys.gettrace() is not None or frame.f_trace is not None:
        return True
    monitoring: Any = getattr(sys, "monitoring", None)
    return monitoring is not None and any(map(monitoring.get_tool, range(_MOST_TOOLS)))


def replay_of(kernel: Recording, frame: FrameType) -> Replay | None:
    """The replay of the loop that a frame is at; None where its iterations run one by one."""
    is_plain = kernel.executes and kernel.tape is None and kernel.calls is None
    if not is_plain or kernel.journal.is_open or current().fidelity != "fast":
        return None
    return Replay(kernel, frame) if not is_watched(frame) and is_straight(frame) else None


class _Iteration(Protocol):
    """An iteration of a loop."""

    @property
    def position(self) -> str:
        """The loop and the index, for listings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recorded:
    """An iteration that ran by itself: its calls and steps, and if it warned."""

    calls: list[Call]
    steps: list[RecordedStep]
    warned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Write:
    """A box that each iteration writes.

    Attributes:
        first: where that of the first iteration starts.
        extent: its extent.
        origin: the patches of the second one's values, as seen from the box.
    """

    first: Shape
    extent: Shape
    origin: tuple[Patch, ...]

    def start(self, number: int) -> Shape:
        """The place of the box of an iteration."""
        return self.first[0] + number * self.extent[0], *self.first[1:]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Iterations that were carried out together; their records are made when they are asked for.

    It holds no step, for the origins of an array have it: a step may hold results.

    Attributes:
        first: the number of the first one in the loop.
        rounds: the iterations.
        around: the loops around this one.
    """

    first: int
    rounds: Sequence[_Iteration]
    around: tuple[str, ...]

    def all_steps(
        self, steps: Sequence[tuple[RecordedStep, RecordedStep]]
    ) -> Iterator[RecordedStep]:
        """The steps of each iteration.

        Args:
            steps: those of an iteration that ran by itself, each with that of all of them.
        """
        for each in self.rounds:
            loops = (*self.around, each.position)
            for step, whole in steps:
                yield _moved_step(step, whole, loops)

    def parts(self, write: _Write) -> Iterator[tuple[Shape, Shape, Iterator[Patch]]]:
        """The box that each iteration wrote, and its patches."""
        for number, each in enumerate(self.rounds, self.first):
            loops = (*self.around, each.position)
            yield write.start(number), write.extent, _moved(write, number, loops)


class _DiffersError(Exception):
    """The iterations are not carried out together."""


class Replay:
    """A loop in a kernel, while it runs.

    Args:
        kernel: that runs.
        frame: of the loop's body.
    """

    def __init__(self, kernel: Recording, frame: FrameType) -> None:
        self._kernel, self._frame = kernel, frame
        self._recorded: list[_Recorded] = []
        self._counts: list[bool] = []
        self._writes: list[tuple[Buffer[Patch], _Write]] = []
        self._height = self._elems = 1

    @contextlib.contextmanager
    def recorded(self) -> Iterator[None]:
        """Record the iteration that is the body of a `with` statement."""
        kernel, position = self._kernel, len(self._kernel.steps)
        calls: list[Call] = []
        kernel.calls = calls
        try:
            before = warnings_given()
            yield
        finally:
            kernel.calls = None
        warned = warnings_given() > before + 1
        steps = kernel.steps[position:]
        self._recorded.append(_Recorded(calls=calls, steps=steps, warned=warned))

    def runs(self, rounds: Sequence[Any]) -> Iterator[Sequence[Any]]:
        """Share out the iterations after the two that were recorded among runs of the body.

        Args:
            rounds: the iterations, all but the first two and the last.
        """
        count = 1
        if not is_watched(self._frame):
            with contextlib.suppress(_DiffersError):
                self._compare(len(rounds) + 1)
                count = max(1, _MOST_ELEMS // self._elems)
        template = self._recorded[1:]
        self._recorded = [replace(each, calls=[]) for each in template]  # and holds no tensors
        for start in range(0, len(rounds), count):
            yield rounds[start : start + count]

    def options(self) -> Options:
        """The options of iterations together: tiles are no higher than those of one."""
        tile = current().vec_tile_shapes
        if not tile:
            return current()
        return changed(current(), vec_tile_shapes=(min(tile[0], self._height), *tile[1:]))

    @contextlib.contextmanager
    def together(self, rounds: Sequence[_Iteration], first: int) -> Iterator[None]:
        """Carry out iterations at once in the body of a `with` statement, which is their first.

        Args:
            rounds: the iterations.
            first: the number of the first one in the loop.
        """
        kernel, before = self._kernel, len(self._kernel.steps)
        count = len(rounds)
        kernel.box_heights = iter([count if is_moved else 1 for is_moved in self._counts])
        try:
            yield
        finally:
            kernel.box_heights = None
        made = kernel.steps[before:]
        del kernel.steps[before:]
        run = _Run(
            first=first,
            rounds=rounds,
            around=tuple(kernel.loops[:-1]),
        )
        steps = list(zip(self._recorded[0].steps, made, strict=True))
        kernel.steps.extend_later(count * len(made), functools.partial(run.all_steps, steps))
        for buffer, write in self._writes:
            start, extent = write.start(first), write.extent
            whole = count * extent[0], *extent[1:]
            buffer.divide(start, whole, functools.partial(run.parts, write))

    def _compare(self, last: int) -> None:
        """Find the boxes that move from iteration to iteration, and check all else.

        Args:
            last: the number of the last iteration that would be carried out with others.

        Raises:
            _DiffersError: an iteration is not like the other, or rows depend on each other.
        """
        one, other = self._recorded
        _require(len(one.calls) == len(other.calls) and not (one.warned or other.warned))
        _require(len(one.steps) == len(other.steps))
        compared = _Compared(last)
        for first, second in zip(one.calls, other.calls, strict=True):
            compared.add(first, second)
        _require(bool(compared.heights) and len(compared.heights) == 1)
        written = [id(buffer._memory) for buffer, _ in compared.writes]
        _require(len(set(written)) == len(written))  # their order would count
        _require(not set(written) & {id(x._memory) for x in compared.read_buffers})
        self._counts, self._writes = compared.counts, compared.writes
        (self._height,) = compared.heights
        self._elems = compared.elems


def _require(holds: bool) -> None:
    if not holds:
        raise _DiffersError


class _Compared:
    """Two iterations, while their calls are compared one after another.

    Attributes:
        counts: for each box, if it moves.
        writes: the boxes that are written, and the memory that they lie in.
        heights: the first extents of the boxes that move.
        elems: the most elements of a result.
        read_buffers: the memory of the tensors from before the loop that are read.
    """

    def __init__(self, last: int) -> None:
        self._last = last
        self._results: list[tuple[Tensor, Tensor, bool]] = []
        self.counts: list[bool] = []
        self.writes: list[tuple[Buffer[Patch], _Write]] = []
        self.heights: set[int] = set()
        self.elems = 1
        self.read_buffers: list[Buffer[Patch]] = []

    def add(self, one: Call, other: Call) -> None:
        """Compare the next calls.

        Raises:
            _DiffersError: they are not carried out together.
        """
        same = one.operation is other.operation and one.line == other.line
        _require(same and one.settings is other.settings)
        name = str(getattr(one.operation, "__name__", ""))
        if name in ("view", "__getitem__"):
            self._take(name, one, other)
        elif name in ("assemble", "__setitem__"):
            self._put(name, one, other)
        else:
            _require(name in BY_ELEMENT or name in BY_ROW or name in COMPOSED_BY_ROW)
            self._compute(name, one, other)

    def _take(self, name: str, one: Call, other: Call) -> None:
        source: Any = one.arguments[0] if one.arguments else None
        _require(isinstance(source, Tensor) and source is other.arguments[0])
        _require(isinstance(one.result, Tensor) and isinstance(other.result, Tensor))
        self._read(source)
        shape = tuple(one.result._shape)
        _require(shape == other.result._shape and one.result._valid is None)
        viewed = one.result._viewed, other.result._viewed
        _require(all(each is not None and each[1].cause is None for each in viewed))
        starts = [each[1].offset for each in viewed if each is not None]
        if name == "__getitem__":
            _require(not box_of(one.arguments[1], source._shape).dropped)
        self._result(one, other, self._moves(starts, shape, source))

    def _put(self, name: str, one: Call, other: Call) -> None:
        _require(len(one.arguments) == 3 and not one.named)
        if name == "assemble":
            out, value, place = one.arguments
            others = other.arguments[1], other.arguments[2], other.arguments[0]
            starts = [tuple(map(int, each)) for each in (place, others[1])]
        else:
            out, key, value = one.arguments
            others = other.arguments[2], other.arguments[1], other.arguments[0]
            _require(isinstance(out, Tensor))
            boxes = [box_of(each, out._shape) for each in (key, others[1])]
            _require(not any(box.dropped or box.is_open[0] for box in boxes))
            starts = [box.start.offset for box in boxes]
        _require(isinstance(out, Tensor) and out is others[2])
        _require(self._is_moved(value, others[0]) is True)
        shape = value._shape
        if name == "__setitem__":
            _require(boxes[0].extent == boxes[1].extent == shape)
        buffer = out._live()
        _require(buffer is not None and buffer.shape == buffer._memory.shape == out._shape)
        assert buffer is not None
        _require(self._moves(starts, shape, out, counts=name == "__setitem__"))
        origin = others[0].patches()
        self.writes.append((buffer, _Write(first=starts[0], extent=shape, origin=origin)))

    def _compute(self, name: str, one: Call, other: Call) -> None:
        _require(len(one.arguments) == len(other.arguments) and one.named == other.named)
        _require(not any(isinstance(each, Tensor) for each in one.named.values()))
        moved: list[Tensor] = []
        still: list[Tensor] = []
        for x, y in zip(one.arguments, other.arguments, strict=True):
            if isinstance(x, Tensor):
                (moved if self._is_moved(x, y) else still).append(x)
            else:
                _require(type(x) is type(y) and x == y)
        result = one.result
        _require(isinstance(result, Tensor) and isinstance(other.result, Tensor))
        _require(result._shape == other.result._shape and result._valid is None)
        if not moved:
            self._result(one, other, False)
            return
        shape = result._shape
        for x in moved:
            self._require_rows(name, x, shape)
        if name == "softmax":
            given = [*one.arguments[1:], *one.named.values()]
            _require(len(given) == 1 and given[0] in (-1, len(shape) - 1))
        for x in still:
            _require(x._shape == (1, *shape[1:]) and name in BY_ELEMENT)
        self._result(one, other, True)

    def _require_rows(self, name: str, x: Tensor, shape: Shape) -> None:
        """Refuse an operand whose rows are not those of the result."""
        _require(len(x._shape) == len(shape) > 1 and x._shape[0] == shape[0])
        if name in BY_ROW:
            _require(shape == (*x._shape[:-1], 1))
        elif name in COMPOSED_BY_ROW:
            _require(shape == x._shape)

    def _result(self, one: Call, other: Call, is_moved: bool) -> None:
        self.elems = max(self.elems, math.prod(one.result._shape))
        self._results.append((one.result, other.result, is_moved))

    def _is_moved(self, x: object, y: object) -> bool:
        """True if an operand is a result that moves; False if it is the same in all iterations."""
        for first, second, is_moved in self._results:
            if x is first:
                _require(y is second)
                return is_moved
        _require(isinstance(x, Tensor) and x is y and not x._dynamic)
        self._read(x)
        return False

    def _read(self, x: Any) -> None:
        if any(x is first for first, *_ in self._results):
            raise _DiffersError
        _require(x._valid is None and x._moved is None)
        _require(x.uninitialized() is None)
        if (buffer := x._live()) is not None:
            self.read_buffers.append(buffer)

    def _moves(
        self, starts: Sequence[Shape], extent: Shape, whole: Tensor, *, counts: bool = True
    ) -> bool:
        """True if boxes lie one below the other, all of them in a tensor; False if they stay."""
        before, after = starts
        is_moved = before != after
        if is_moved:
            _require(len(extent) > 1 and after == (before[0] + extent[0], *before[1:]))
            end = before[0] + (self._last + 1) * extent[0]
            ends = (end, *(o + e for o, e in zip(before[1:], extent[1:], strict=True)))
            _require(all(a <= b for a, b in zip(ends, whole._shape, strict=True)))
            self.heights.add(extent[0])
        if counts:
            self.counts.append(is_moved)
        return is_moved


def _moved_step(step: RecordedStep, whole: RecordedStep, loops: tuple[str, ...]) -> RecordedStep:
    """The step of another iteration; open where that of all of them is."""
    if not isinstance(step, OperationStep) or not isinstance(whole, OperationStep):
        return replace(step, loops=loops)
    return OperationStep(
        name=step.name,
        result=step.result,
        openness=whole.openness,
        file=step.file,
        line=step.line,
        loops=loops,
        kernel=step.kernel,
    )


def _moved(write: _Write, number: int, loops: tuple[str, ...]) -> Iterator[Patch]:
    """The origin of the elements of the box of an iteration."""
    start = write.start(number)
    for patch in write.origin:
        record: Any = patch.record
        if type(record) is OperationRecord:  # replace() is slow, and each iteration has one
            record = OperationRecord(
                operation=record.operation,
                grid=record.grid,
                core_count=record.core_count,
                file=record.file,
                line=record.line,
                loops=loops,
                kernel=record.kernel,
            )
        elif isinstance(record, CallSite):
            record = replace(record, loops=loops)
        yield Patch(
            offset=tuple(map(operator.add, patch.offset, start)),
            extent=patch.extent,
            record=record,
            start=patch.start,
        )
