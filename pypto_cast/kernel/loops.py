"""Control flow of a kernel: loop, loop_unroll, cond."""

from __future__ import annotations

import dis
import inspect
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from types import FrameType
from typing import TYPE_CHECKING, Final, overload

from pypto_cast.call_sites import Place
from pypto_cast.options.context import Options, Scope, current
from pypto_cast.recording import recording
from pypto_cast.tensors.symbolic import LoopIndex, SymbolicScalar, decided, scalar_of

if TYPE_CHECKING:
    from pypto_cast.kernel.loop_replay import Replay
    from pypto_cast.recording.recording import Recording

LEAST_ROUNDS: Final = 6
"""Loops of fewer iterations run one by one."""
_INDEX: Final = "idx"
"""The name of an index that is given none; upstream numbers these."""


def loop(
    *bounds: int,
    name: str = "loop",
    idx_name: str = _INDEX,
    submit_before_loop: bool = False,
    parallel: bool = False,
    unroll_list: Sequence[int] | None = None,
    idx: object = None,
) -> Iterator[LoopIndex]:
    """Run the body of a `for` statement for each index, as `range` does.

    A tile shape set in the body holds until its end. An iterator that outlives the function it was
    iterated in, as one does that a kept exception refers to, restores nothing when it is collected.

    Args:
        bounds: stop; or start and stop; or start, stop and step. The step is positive.
        name: for listings, as in "rows idx=3".
        idx_name: the same for the index.
        submit_before_loop: when upstream hands work to the cores; the bits are the same.
        parallel: upstream may then run iterations at the same time; the bits are the same.
        unroll_list: how many iterations upstream compiles as one body, the most first. A BF16 or
            FP16 result keeps its FP32 value from one of them to the next; no other bit depends on
            it.
        idx: taken, and ignored, as upstream's kernels give it.

    Returns:
        The indices, as ints with `min` and `max`.

    Raises:
        TypeError: bounds that are no ints, or another number of them than 1 to 3.
        ValueError: a step or a length below 1.
    """
    if not 1 <= len(bounds) <= 3 or any(not hasattr(bound, "__index__") for bound in bounds):
        raise TypeError(f"loop takes (stop), (start, stop) or (start, stop, step), not {bounds}")
    _check_lengths(unroll_list or ())
    start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    if recording.is_for_plan():
        planned = _planned(
            name, idx_name, (start, stop, step), unroll_list or (), submit_before_loop
        )
        return _run(planned)
    indices = range(*map(int, bounds))
    _check_step(indices.step)
    rounds = _Rounds(indices, name, idx_name, _copies(len(indices), unroll_list or ()))
    return _run(rounds, rounds if len(indices) >= LEAST_ROUNDS and not unroll_list else None)


def _check_lengths(unroll_list: Sequence[int]) -> None:
    if any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in unroll_list):
        raise ValueError(f"unroll_list holds positive ints, not {list(unroll_list)}")


def _check_step(step: int) -> None:
    if step < 1:
        raise ValueError(f"the step of a loop is positive, not {step}")


def _copies(count: int, unroll_list: Sequence[int]) -> tuple[range, ...]:
    """The iterations before which a copy of the body that upstream compiles as one starts."""
    starts, start = [range(1)], 0
    for length in sorted({1, *unroll_list}, reverse=True):
        stop = count - (count - start) % length
        starts.append(range(start + length, stop + 1, length))
        start = stop
    return tuple(starts)


@dataclass(frozen=True, slots=True)
class _Round:
    """An iteration: its name in listings, if a copy of the body starts or ends, and its index.

    The index is made when the body runs: for most of those that are carried out together it never
    is.
    """

    index: Callable[[], LoopIndex]
    position: str
    opens: bool
    closes: bool


def _same(index: LoopIndex) -> LoopIndex:
    return index


class _Rounds(Sequence[_Round]):
    """Iterations of a loop over known indices, each of them made when it is asked for.

    Args:
        indices: of the loop.
        name, idx_name: for listings.
        starts: the iterations before which a copy of the body starts.
        own: the numbers of these iterations in the loop; all unless given.
    """

    def __init__(
        self,
        indices: range,
        name: str,
        idx_name: str,
        starts: tuple[range, ...],
        own: range | None = None,
    ) -> None:
        self._given = indices, name, idx_name, starts
        self._own = range(len(indices)) if own is None else own

    def __len__(self) -> int:
        return len(self._own)

    @overload
    def __getitem__(self, place: int) -> _Round: ...

    @overload
    def __getitem__(self, place: slice) -> _Rounds: ...

    def __getitem__(self, place: int | slice) -> _Round | _Rounds:
        indices, name, idx_name, starts = self._given
        if isinstance(place, slice):
            return _Rounds(*self._given, self._own[place])
        at = self._own[place]
        found = partial(LoopIndex.of, indices[at], is_first=not at, is_last=at == len(indices) - 1)
        opens, closes = (any(each in part for part in starts) for each in (at, at + 1))
        return _Round(found, f"{name} {idx_name}={indices[at]}", opens, closes)


def _planned(
    name: str, variable: str, bounds: Sequence[int], unroll_list: Sequence[int], waits: bool
) -> Iterator[_Round]:
    """The first iteration, once for each path through the body, as upstream records it.

    With `unroll_list`, so many from the first on for each factor (recorder.cpp, BeginLoopFunction).
    """
    from ascend_kernels.schedule.scalars import calculation, minus, plus
    from pypto_cast.recording.plan_tape import LoopOpened

    kernel = recording.current()
    assert kernel is not None
    assert kernel.tape is not None
    first, stop, stride = (scalar_of(each) for each in bounds)
    lengths = sorted({*(unroll_list or (1,))}, reverse=True)
    if not isinstance(stride, int):
        recording.refuse_plan(f"loop {name}", "a step known only when the kernel runs")
        return
    if lengths != [1] and (first != 0 or lengths[-1] != 1):
        recording.refuse_plan(f"loop {name}", "unroll_list without 1, or from a begin but 0")
    around = [each.variable for each in kernel.tape.opened]
    if variable == _INDEX:
        variable += f"_{len(around)}" * (variable in around)
    if variable in around:
        recording.refuse_plan(f"loop {name}", f"a loop around it has the index {variable} too")
    begin = first
    _check_step(stride)
    for length in lengths:
        leap = stride * length
        rounds = calculation("div", minus(stop, begin), leap)
        end = stop if length == 1 else plus(begin, calculation("mul", rounds, leap))
        opened = LoopOpened(
            name=name,
            variable=variable,
            begin=begin,
            end=end,
            step=leap,
            length=length,
            waits=waits,
        )
        for _ in kernel.tape.passes(opened):
            for copy in range(length):
                found = LoopIndex.of(
                    operator.index(bounds[0]) + copy * stride, is_first=False, is_last=False
                )
                scalar = plus(("symbol", variable), copy * stride)
                found.in_any_run(scalar)
                found.is_first.in_any_run(("eq", scalar, first))
                found.is_last.in_any_run(("ge", scalar, minus(stop, stride)))
                is_last = copy == length - 1
                yield _Round(partial(_same, found), f"{name} {variable}", not copy, is_last)
        begin = end


_Taken = tuple[_Round, AbstractContextManager[None], Options | None]
"""An iteration, the context that its body runs in, and its options, unless they are the current."""


def _one_by_one(rounds: Iterable[_Round]) -> Iterator[_Taken]:
    for each in rounds:
        yield each, nullcontext(), None


def _replayed(rounds: Sequence[_Round], replay: Replay) -> Iterator[_Taken]:
    """The iterations in their order; of several that are carried out together, the first."""
    for each in rounds[:2]:
        yield each, replay.recorded(), None
    number = 2
    for together in replay.runs(rounds[2:-1]):
        if len(together) == 1:
            yield from _one_by_one(together)
        else:
            yield together[0], replay.together(together, number), replay.options()
        number += len(together)
    yield from _one_by_one(rounds[-1:])


def _replay(kernel: Recording, frame: FrameType) -> Replay | None:
    from pypto_cast.kernel.loop_replay import replay_of  # loaded with the first longer loop

    return replay_of(kernel, frame)


def _run(
    rounds: Iterable[_Round], replayable: Sequence[_Round] | None = None
) -> Iterator[LoopIndex]:
    kernel, taken = recording.current(), _one_by_one(rounds)
    if kernel is not None:
        kernel.loops_at.update(_statements(sys._getframe(1)))
        replay = None if replayable is None else _replay(kernel, sys._getframe(1))
        if replayable is not None and replay is not None:
            taken = _replayed(replayable, replay)
    for each, together, options in taken:
        within: AbstractContextManager[None] = nullcontext()
        if kernel is not None:
            within = kernel.in_loop(each.position, opens=each.opens, closes=each.closes)
        body = id(sys._getframe(1))
        scope = Scope(options or current())
        with within, scope, together:
            try:
                yield each.index()
            except GeneratorExit:
                if not _is_running(body):
                    scope.abandon()
                raise


def _statements(frame: FrameType | None) -> Iterator[Place]:
    """The `for` statements that take an index now, whatever hands it on to them."""
    while frame is not None:
        code = frame.f_code
        if dis.opname[code.co_code[frame.f_lasti]] == "FOR_ITER":
            yield code.co_filename, frame.f_lineno
        frame = frame.f_back if code.co_flags & inspect.CO_GENERATOR else None


def _is_running(frame_id: int) -> bool:
    """True if a frame is among those that called this one."""
    frame = sys._getframe(1)
    while id(frame) != frame_id:
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return True


def loop_unroll(
    *bounds: int,
    unroll_list: Sequence[int] = (1,),
    name: str = "loop",
    idx_name: str = _INDEX,
    submit_before_loop: bool = False,
    parallel: bool = False,
    idx: object = None,
) -> Iterator[tuple[LoopIndex, int]]:
    """Run the body for stretches of the range, the longest first.

    Args:
        bounds: as for `loop`.
        unroll_list: lengths of the stretches, in steps; 1 is always among them.
        name, idx_name, submit_before_loop, parallel, idx: as for `loop`.

    Returns:
        Pairs of the first index of a stretch and its length; the body does the whole stretch. The
        length is counted in indices, as upstream's present compiler gives it; in steps in
        `pypto.function`, outside kernels and in kernels of `jit(new_ir=False)`.

    Raises:
        TypeError, ValueError: as for `loop`; or a length below 1.
    """
    _check_lengths(unroll_list)
    kernel = recording.current()
    whole = range(*(int(bound) for bound in bounds))
    start, stop, step = whole.start, whole.stop, whole.step
    stretches = []
    for length in sorted({1, *unroll_list}, reverse=True):
        end = stop - (stop - whole.start) % (step * length)
        part = loop(start, end, step * length, name=name, idx_name=idx_name)
        count = length * step if kernel is not None and kernel.new_ir else length
        stretches.append(zip(part, repeat(count), strict=False))
        start = max(start, end)
    return chain.from_iterable(stretches)


def is_loop_begin(index: LoopIndex) -> SymbolicScalar:
    """1 at the first iteration of a loop, 0 at others.

    Raises:
        TypeError: not an index of `pypto.loop`.
    """
    return _checked(index).is_first


def is_loop_end(index: LoopIndex) -> SymbolicScalar:
    """1 at the last iteration of a loop, 0 at others.

    Raises:
        TypeError: not an index of `pypto.loop`.
    """
    return _checked(index).is_last


def cond(condition: int, file: str | None = None, lineno: int | None = None) -> bool:
    """The condition of an `if` statement, as upstream wants it wrapped outside `jit`."""
    if recording.is_for_plan() and not isinstance(scalar_of(condition), int):
        return decided(scalar_of(condition))
    return bool(condition)


def _checked(index: object) -> LoopIndex:
    if not isinstance(index, LoopIndex):
        raise TypeError(f"this takes the index of a pypto.loop, not {index!r}")
    return index
