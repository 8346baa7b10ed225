"""Records the steps of a running kernel: its casts and operations, and the boxes they wrote."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from ascend_kernels.program import TileProgram
from pypto_cast.call_sites import WARNED, Place, caller
from pypto_cast.dtypes.data_types import DataType, dtype_of_numpy
from pypto_cast.loading import entry
from pypto_cast.options import context as options
from pypto_cast.recording import tally
from pypto_cast.recording.buffers import Buffer, Journal
from pypto_cast.recording.causes import CONTROL_DEPENDENCE, Cause, CauseTable, assumed_exact
from pypto_cast.recording.close_numbers import CloseNumbers
from pypto_cast.recording.output_certainty import CertaintyCounts, OutputCertainty
from pypto_cast.recording.output_writing import check_memory, held_by, write_back
from pypto_cast.recording.steps import (
    Call,
    CallSite,
    CastRecord,
    OperationStep,
    Patch,
    Patches,
    RecordedStep,
    StepList,
    operation_origin,
    origin,
    tree_map,
)
from pypto_cast.unsupported import tolerate
from simulator.arithmetic import CHOICES, EXACT, TRUSTS, Trust, stated_for
from simulator.arithmetic.interval import Enclosure, Interval, exactly, unknown
from simulator.arithmetic.trust import ASSUMPTIONS, NAMED_CHOICES, NAMING_CHOICES, Assumption
from tiling.grid import Grid, Shape

if TYPE_CHECKING:
    from pypto_cast.recording.plan_tape import PlanTape

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
Asked = Callable[[str, Enclosure], OutputCertainty | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A whole assignment that moved a tensor, which upstream leaves without content.

    Attributes:
        kernel, segment, loops: of the recording then; what a loop's body moved is back after it.
        line: of the assignment.
    """

    kernel: object
    segment: object
    loops: tuple[str, ...]
    line: int

    def lasts(self, running: Recording) -> bool:
        """Return True if the tensor is still without content."""
        if self.kernel is not running.identity or len(self.loops) > len(running.loops):
            return False
        same = all(a is b for a, b in zip(self.loops, running.loops, strict=False))
        return same or self.segment is running.segment


OUTSIDE: Final = CauseTable()
"""The operations outside kernels."""
_OUTER_SEGMENT: Final = object()


@dataclass(slots=True, kw_only=True)
class Recording:
    """A kernel that runs: its casts, and its memory, written back only if it succeeds.

    Attributes:
        kernel: its name.
        executes: False if it runs only to see which casts there are.
        bounds: True if it finds, beside the values, what a device may give instead.
        by_documents: what a device may give is found by public texts alone, whatever is trusted.
        asked: by documents, gives an output, by its name and what holds it, or leaves it.
        assumed: the assumptions that were made so far.
        new_ir: upstream compiles it from its source, as it does kernels of `jit` by default.
        steps: the casts and the operations around them so far.
        loops: the loops it is in, with their index.
        loops_at: the lines of the `for` statements that were loops of a kernel.
        buffers: the memory of every tensor it may write.
        declared: those of the tensors that the kernel declared, by tensor; they end with it.
        causes: the operations whose results are not certain; by documents none.
        control_dependence: the causes of undecided numbers that conditions and loops went by.
        segment: stands for the stretch of operations that upstream compiles as one function; a
            loop's body is another, and so is what follows it.
        calls: the calls of operations so far, where they are kept to be made again with values.
        unread: the elements that a `function` computed with before they had values; None: refused.
        tape: keeps calls for a schedule, those inside a call too, before it; None of other runs.
        journal: undoes what a kernel that this one calls wrote, unless that succeeds.
        identity: stands for this recording in what outlives it.
        release_dependence: operations that another release refuses or differs in, with the dtype.
        doubts_release: one of them took no choice for granted, the release neither.
        reading_dependence: by name of a reading, an operation resting on it, and if it doubts it.
        plan: plans the schedule of the outermost kernel; None where it is recorded for that.
        refusal: the reason for which none is planned; None where one is, "" if not tried.
        numbers: the float operands, some of which upstream's compiler takes for one.
        box_heights: by how much the next boxes are higher, where iterations are carried out
            together; None elsewhere.
    """

    kernel: str
    executes: bool = True
    bounds: bool = False
    by_documents: bool = False
    asked: Asked | None = None
    assumed: frozenset[Assumption] = frozenset()
    new_ir: bool = False
    steps: StepList[RecordedStep] = field(default_factory=StepList)
    loops: list[str] = field(default_factory=list)
    loops_at: set[Place] = field(default_factory=set)
    buffers: list[Buffer[Patch]] = field(default_factory=list)
    declared: dict[object, Buffer[Patch]] = field(default_factory=dict)
    causes: CauseTable = field(default_factory=lambda: CauseTable(OUTSIDE.all()))
    control_dependence: list[int] = field(default_factory=list)
    segment: object = field(default_factory=object)
    calls: list[Call] | None = None
    unread: list[str] | None = None
    tape: PlanTape | None = None
    journal: Journal = field(default_factory=Journal)
    identity: object = field(default_factory=object)
    release_dependence: dict[Cause, DataType] = field(default_factory=dict)
    doubts_release: bool = False
    reading_dependence: dict[str, tuple[Cause, bool]] = field(default_factory=dict)
    plan: Callable[[], object] | None = None
    refusal: str | None = ""
    numbers: CloseNumbers = field(default_factory=CloseNumbers)
    box_heights: Iterator[int] | None = None

    def __post_init__(self) -> None:
        if self.tape is not None:
            self.calls = self.tape.events
        if self.by_documents:
            self.causes = CauseTable(is_kept=False)

    @property
    def records(self) -> list[CastRecord]:
        """The casts so far."""
        return [step for step in self.steps if isinstance(step, CastRecord)]

    def count(self, outputs: Sequence[OutputCertainty] = ()) -> None:
        """Count the steps and results, if a tally is open."""
        if tally.is_counting():
            casts = len(self.records)
            found = sum((output.counts for output in outputs), CertaintyCounts())
            tally.count(
                self.kernel,
                self.plan,
                casts=casts,
                operations=len(self.steps) - casts,
                certain=found.certain,
                by_choices=found.by_choices,
                undecided=found.undecided,
            )

    def parameter(
        self,
        name: str,
        array: npt.NDArray[Any],
        owner: object,
        interval: Interval | None = None,
    ) -> Buffer[Patch]:
        """The buffer of an array, the same one whenever the array comes again.

        Args:
            name: of the parameter.
            array: over the memory of `owner`.
            owner: what the user handed in.
            interval: what a device may give instead, of a tensor that was computed outside.
        """
        for buffer in self.buffers:
            if buffer.is_of(array):
                buffer.names += (name,)
                return buffer
        if interval is not None and self.by_documents:  # no choice closes it
            interval = replace(interval, cause=np.zeros_like(interval.cause))
        made: Buffer[Patch] = Buffer(
            name,
            array.shape,
            home=array,
            interval=interval if self.bounds else None,
            owner=owner,
            is_given=True,
            journal=self.journal,
        )
        self.buffers.append(made)
        return made

    def local(self, name: str, shape: Shape, *, is_given: bool = False) -> Buffer[Patch]:
        """A buffer for a tensor that the kernel declares, or that is given without values."""
        made: Buffer[Patch] = Buffer(name, shape, is_given=is_given, journal=self.journal)
        self.buffers.append(made)
        return made

    def declare(self, tensor: object, buffer: Buffer[Patch]) -> None:
        """Have a tensor that the kernel declared in a buffer."""
        before = self.declared.get(tensor)
        self.declared[tensor] = buffer
        if before is None:
            self.journal.record(functools.partial(self.declared.pop, tensor))
        else:
            self.journal.record(functools.partial(self.declared.__setitem__, tensor, before))

    @contextlib.contextmanager
    def in_loop(self, position: str, *, opens: bool = True, closes: bool = True) -> Iterator[None]:
        """Casts of the body stand in a loop, at this index.

        Args:
            position: the loop and the index.
            opens: what upstream compiles as one function starts here.
            closes: it ends after this iteration.
        """
        depth = len(self.loops)
        self.loops.append(position)
        if opens:
            self.segment = object()
        try:
            yield
        finally:
            # A loop that was abandoned is left late, when another may stand in its place.
            if depth < len(self.loops) and self.loops[depth] is position:
                del self.loops[depth:]
            if closes:
                self.segment = object()

    def changed(self) -> list[Buffer[Patch]]:
        """The parameters that were written.

        Raises:
            ValueError: one of them shares memory with another parameter or with itself.
        """
        changed = [buffer for buffer in self.buffers if buffer.is_changed]
        for buffer in changed:
            check_memory(buffer, self.buffers)
        return changed

    def outputs(self, besides: Iterable[str] = ()) -> tuple[OutputCertainty, ...]:
        """The parameters that were written, and those of these names, in their order.

        Raises:
            ValueError: see `changed`.
        """
        changed, names = self.changed(), frozenset(besides)
        return tuple(
            self.certainty_of(buffer)
            for buffer in self.buffers
            if buffer in changed or (buffer.home is not None and names & set(buffer.names))
        )

    def held(self, name: str) -> Buffer[Patch]:
        """The memory of a parameter."""
        return next(x for x in self.buffers if x.home is not None and name in x.names)

    def commit(self) -> list[Buffer[Patch]]:
        """Write every changed parameter back, all or none.

        Returns:
            The parameters that changed.

        Raises:
            ValueError: one of them shares memory with another parameter or with itself.
        """
        changed = self.changed()
        write_back(changed)
        return changed

    def certainty_of(self, output: Buffer[Patch]) -> OutputCertainty:
        """The values of an output, and those that a device may give instead.

        Any, where an undecided number steered the kernel: another way may have written there. By
        documents the causes are the choices that would close the open elements.
        """
        held = held_by(output, self.causes)
        known = self.asked(output.name, held) if self.asked else None
        if known is not None and not self.control_dependence:
            return known
        # They may lie in an array of the user's; those of a run by documents are compared at once.
        values = held.values if self.by_documents else held.own_values()
        interval, dtype = held.interval or exactly(values), dtype_of_numpy(values.dtype)
        if self.control_dependence:
            interval = unknown(values, dtype.number_format, self.control_dependence[0])
        return OutputCertainty(
            name=output.name,
            aliases=output.names[1:],
            dtype=dtype,
            values=values,
            low=interval.low,
            high=interval.high,
            may_be_nan=interval.may_be_nan,
            cause=interval.cause,
            causes=self.causes.all(),
            nearest=self._nearest(output),
            named_choices=NAMED_CHOICES,
            writes=output.writes,
            certain_rows=None if self.control_dependence else held.certain_rows,
        )

    def _nearest(self, output: Buffer[Patch]) -> Cause | None:
        """The last operation with an open result, up to the step that wrote the output last."""
        places = {(patch.record.file, patch.record.line) for patch in output.patches}
        wrote = [k for k, step in enumerate(self.steps) if (step.file, step.line) in places]
        until = wrote[-1] + 1 if wrote else len(self.steps)
        for step in reversed(self.steps[:until]):
            if isinstance(step, OperationStep) and step.is_open:
                return Cause(operation=step.name, file=step.file, line=step.line)
        return None

    def moved_here(self) -> Moved:
        """The move of a tensor by the code that runs now."""
        return Moved(
            kernel=self.identity,
            segment=self.segment,
            loops=tuple(self.loops),
            line=caller()[1],
        )

    @contextlib.contextmanager
    def undone_on_error(self) -> Iterator[None]:
        """Undo the effects of the body if it raises."""
        steps, loops, buffers = len(self.steps), len(self.loops), len(self.buffers)
        self.segment = object()
        try:
            with self.journal.undone_on_error():
                yield
        except BaseException:
            del self.steps[steps:], self.loops[loops:]  # what steered to the error, steered
            del self.buffers[buffers:]
            raise
        finally:
            self.segment = object()


_CURRENT: Final[ContextVar[Recording | None]] = ContextVar("pypto_cast_kernel", default=None)


current: Final[Callable[[], Recording | None]] = _CURRENT.get
"""The kernel that runs in this context, if one does."""


@contextlib.contextmanager
def running(recording: Recording) -> Iterator[Recording]:
    """Make a recording the current one for the body of a `with` statement.

    Native operations wait meanwhile: what a kernel reads stays as it is while it runs.
    """
    from simulator.arithmetic.native.operation_nodes import deferring  # loaded when first used

    token, steering = _CURRENT.set(recording), CONTROL_DEPENDENCE.set(recording.control_dependence)
    warned = WARNED.set(set(WARNED.get() or ()) if recording.tape else set())
    try:
        with deferring():
            yield recording
    finally:
        _CURRENT.reset(token)
        CONTROL_DEPENDENCE.reset(steering)
        WARNED.reset(warned)
        recording.plan = None  # its context has the recording


def causes() -> CauseTable:
    """The table of causes that intervals made here refer to."""
    recording = current()
    return OUTSIDE if recording is None else recording.causes


def is_for_plan() -> bool:
    """True where the running kernel is recorded to plan its schedule."""
    running = current()
    return running is not None and running.tape is not None


def plan_refusal() -> str | None:
    """The reason for which no schedule decides on the room in UB here; "" outside kernels.

    None where a schedule decides that: the kernel's is planned, or the kernel is recorded for it.
    """
    running = current()
    if running is None or (running.plan is None and running.tape is None):
        return ""
    if running.refusal == "" and running.plan is not None:
        try:
            running.plan()
            running.refusal = None
        except (TypeError, ValueError) as error:
            running.refusal = str(error)
    return running.refusal if running.tape is None else None


def refuse_plan(what: str, reason: str) -> None:
    """Refuse a construct that is not planned, where the kernel is recorded for a schedule.

    Raises:
        PlanError: names it, with the line of the caller.
    """
    if is_for_plan():
        raise entry("PlanError")(f"{what} {CallSite(**site_fields()).place}: {reason}")


def segment() -> object:
    """The stretch of operations that upstream compiles as one function; `is` compares two."""
    recording = current()
    return _OUTER_SEGMENT if recording is None else recording.segment


def executes() -> bool:
    """Return True if casts compute values here; not in a kernel that runs only to be listed."""
    recording = current()
    return recording is None or recording.executes


def trust(name: str) -> Trust:
    """The assumptions of this context for an operation; all for values alone, none by documents."""
    running, context = current(), options.current()
    is_exact = assumed_exact(name) or (running is not None and not running.bounds)
    by_documents = running is not None and running.by_documents and not is_exact
    key = id(context), name, is_exact, by_documents
    known = _TRUSTS.get(key)
    if known is None:
        if len(_TRUSTS) >= _MOST_TRUSTS:
            _TRUSTS.clear()
        found = _trust_of(context, name, is_exact=is_exact, by_documents=by_documents)
        known = _TRUSTS[key] = context, found
    chosen = known[1]
    if is_exact:
        return chosen
    if running is not None and not by_documents and not chosen.assumed <= running.assumed:
        running.assumed |= chosen.assumed
    return chosen


_TRUSTS: Final[dict[tuple[int, str, bool, bool], tuple[options.Options, Trust]]] = {}
"""By the identity of the options, which are kept."""
_MOST_TRUSTS: Final = 1 << 12


def _trust_of(context: options.Options, name: str, *, is_exact: bool, by_documents: bool) -> Trust:
    chosen = NAMING_CHOICES if by_documents else EXACT if is_exact else TRUSTS[context.trust]
    if not by_documents:
        for choice in context.assume:
            chosen = chosen.also(CHOICES[choice])
    if is_exact:
        return chosen
    if context.facts is not None:
        chosen = context.facts.trusting(chosen)
    return stated_for(chosen, context.chip.isa, name)


def cast_cause(trust: Trust) -> int:
    """The cause of a cast that is asked for here; 0 where no choice leaves one open."""
    return 0 if trust.assumed >= ASSUMPTIONS else causes().index_here("cast")


def warn_moved(moved: Moved | None, label: str) -> bool:
    """Warn that a tensor is read which upstream moved away; return True if it did.

    Raises:
        UpstreamRefusalError: under `options(strict=True)`.

    Warns:
        UpstreamRefusalWarning: otherwise.
    """
    recording = current()
    if moved is None or recording is None or not moved.lasts(recording):
        return False
    tolerate(
        f"{label} is read after the assignment of line {moved.line} moved it: upstream leaves it "
        "empty there and fails; read what was assigned to, or write out[0:] = value, which copies",
        strict=options.current().strict,
    )
    return True


def record_release_dependence(name: str, dtype: DataType) -> None:
    """Keep that another release carries out an operation otherwise, in the running kernel."""
    recording = current()
    if recording is not None:
        recording.release_dependence[Cause.here(name)] = dtype
        recording.doubts_release |= options.current().trust == "documented"


def site_fields(place: Place | None = None) -> dict[str, Any]:
    """The fields of a `CallSite`: of the code that runs now, or of a place in the same loops."""
    recording = current()
    file, line = place or caller()
    if recording is None:
        return {"file": file, "line": line}
    return {"file": file, "line": line, "loops": (*recording.loops,), "kernel": recording.kernel}


def record_cast(program: TileProgram) -> Patches:
    """Record a cast, in the running kernel if there is one; at the call of an operation if inside.

    Returns:
        The origin of the elements of its output.
    """
    recording, record = current(), CastRecord(program=program, **site_fields())
    if recording is not None:
        recording.steps.append(record)
    else:
        tally.count("", casts=1)
    return origin(record, program.plan.shape)


def record_operation(cause: int, grid: Grid, core_count: int) -> Patches:
    """The origin of the elements of an operation's output.

    Args:
        cause: the operation, as `causes` numbers it.
        grid: the tiles of its output.
        core_count: the cores that share them.
    """
    recording = current()
    if recording is not None and recording.by_documents:
        return ()  # nobody asks who wrote what
    asked = causes().cause(cause)
    place = asked.file, asked.line
    if recording is None:
        return operation_origin(asked.operation, grid, core_count, *place)
    loops = (*recording.loops,)
    return operation_origin(asked.operation, grid, core_count, *place, loops, recording.kernel)


def replayable(
    operation: Callable[_Arguments, _Result], *, steers: bool = False
) -> Callable[_Arguments, _Result]:
    """An operation whose calls are kept, where the recording keeps them, once they succeed.

    What it calls itself is kept only where the recording keeps parts.

    Args:
        operation: the function.
        steers: it may raise for some of the values that a device may have: where it raises and an
            operand is open, that steers the kernel, which may catch the error.
    """

    @functools.wraps(operation)
    def call(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        recording = current()
        if recording is None:
            return operation(*arguments, **named)
        kept, segment = recording.calls, recording.segment
        recording.calls = kept if recording.tape is not None else None
        try:
            result = operation(*arguments, **named)
        except Exception:
            if steers:
                record_steering(arguments, named)
            raise
        finally:
            recording.calls = kept
        if kept is not None:
            kept.append(
                Call(
                    operation=operation,
                    arguments=tree_map(arguments, lambda value: value),
                    named=tree_map(named, lambda value: value),
                    result=result,
                    settings=options.current(),
                    segment=segment,
                    **site_fields(),
                )
            )
        return result

    return call


def record_steering(arguments: Sequence[object], named: Mapping[str, object]) -> None:
    """Keep the cause of the first open operand of a call that raised in the running kernel."""
    found: list[int | None] = []
    tree_map((arguments, named), lambda value: found.append(getattr(value, "open_cause", None)))
    record_control_dependence(next((c for c in found if c is not None), None))


def replayable_operation(
    operation: Callable[_Arguments, _Result],
) -> Callable[_Arguments, _Result]:
    """A `replayable` operation that may raise for some of the values that a device may have."""
    return replayable(operation, steers=True)


def record_control_dependence(cause: int | None) -> None:
    """Keep the cause of an open number that decides the way of the running kernel."""
    if cause is not None and (recording := current()) is not None:
        recording.control_dependence.append(cause)
