"""A kernel's whole tile program, as a value: printable, hashable, written as JSON and read back."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ascend_kernels.schedule.body_runs import body_runs
from ascend_kernels.schedule.consistency import (
    check_body,
    check_leaf,
    check_numbers,
    check_parameters,
    check_steps,
)
from ascend_kernels.schedule.document import from_plain, to_plain, unrepeated, whole_number
from ascend_kernels.schedule.line_work import line_work, place_of
from ascend_kernels.schedule.part_types import check_fields, shown
from ascend_kernels.schedule.parts import (
    Body,
    ControlStep,
    Leaf,
    Parameter,
    Temporary,
    numbers_read,
)
from ascend_kernels.schedule.step_lowering import NotExecutedError, not_executed
from ascend_kernels.schedule.task_lowering import (
    MAX_TEMPORARY_BYTES,
    Lowering,
    check_most,
    open_axes,
)
from ascend_kernels.schedule.unordered_tasks import FirstUnordered
from simulator.machine.memory import SimulatorFault
from simulator.machine.pipes import CopyCompletion, check_completion
from simulator.machine.tasks import TaskMemory, run_tasks
from simulator.machine.tile_opcodes import instructions_inside
from tiling.chips import chip_named
from tiling.grid import Shape

RELEASE: Final = "0.2.0"
"""The release of upstream's compiler whose passes and dumps are known."""
VERSION: Final = 1
"""Of the JSON that `Schedule.to_json` writes."""
DUMP: Final = "upstream's dump"
PLANNER: Final = "planner"
_COLUMNS: Final = 80
"""Of the text that a schedule prints as."""
Array = npt.NDArray[Any]
_REUSE: Final = (
    "upstream's compiler numbers events so, once the wait is issued, and CANN's cceapi_0106 (a set "
    "only sets a bit; two sets of an id need a wait between them) does not say that it has to be "
    "over; that it has to is inferred"
)


class EventReuseWarning(UserWarning):
    """A flag that may be set again before the wait for its last set is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The tile program of a kernel: the operations of each task, and the buffers in UB.

    Attributes:
        kernel: the kernel's name.
        release: the release of upstream's compiler; "" of origin "ascendc".
        chip: the vendor's name of the chip.
        origin: the maker of the schedule: "upstream's dump", "planner", or "ascendc", the program
            of one cast; others are allowed, and no doubt about their flags is left.
        parameters: the tensors of the signature, in its order.
        leaves: the tile programs, each of one core.
        bodies: the tasks, an entry for each loop body, path and unroll factor.
        steps: the control flow over bodies.
        simplified: what was planned by a rule that is applied in part, so that upstream's may be
            another, each with its leaf.

    Raises:
        ValueError: a part refers to another that is not there; names the part.
    """

    kernel: str
    release: str
    chip: str
    origin: str
    parameters: tuple[Parameter, ...]
    leaves: tuple[Leaf, ...]
    bodies: tuple[Body, ...]
    steps: tuple[ControlStep, ...]
    simplified: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        chip_named(self.chip)
        check_parameters(self.parameters)
        for leaf in self.leaves:
            check_leaf(leaf)
        for body in self.bodies:
            check_body(body, self.leaves)
        check_steps(self.steps, len(self.bodies))
        check_numbers(self.parameters, self.numbers_read)

    @property
    def temporaries(self) -> tuple[Temporary, ...]:
        """The tensors in GM through which tasks pass results, of all bodies."""
        return tuple(each for body in self.bodies for each in body.temporaries)

    @property
    def extents(self) -> Mapping[str, tuple[int, ...]]:
        """The extents of the parameters in the call that was planned for, where all are known."""
        found = {}
        for each in self.parameters:
            shape = tuple(x for x in each.planned_shape or each.shape if isinstance(x, int))
            if len(shape) == len(each.shape):
                found[each.name] = shape
        return found

    @property
    def numbers_read(self) -> frozenset[str]:
        """The parameters whose elements are bounds, conditions or offsets."""
        return frozenset(numbers_read(self.bodies, self.steps))

    @property
    def peak_ub_bytes(self) -> int:
        """The end of the highest buffer of any leaf, as allocated."""
        return max((leaf.peak_ub_bytes for leaf in self.leaves), default=0)

    @property
    def needed_ub_bytes(self) -> int:
        """The largest sum of buffers that are alive at once, of any leaf."""
        return max((leaf.needed_ub_bytes for leaf in self.leaves), default=0)

    @property
    def not_executed(self) -> tuple[str, ...]:
        """The leaves that `run` cannot execute and the tensors that it lacks, with the reason."""
        isa = chip_named(self.chip).isa
        leaves = (not_executed(leaf, isa) for leaf in self.leaves)
        unknown = (each.unknown for each in self.temporaries)
        return tuple(filter(None, (self._unknown_flow, *leaves, *unknown)))

    @property
    def _unknown_flow(self) -> str:
        is_unknown = self.leaves and not self.bodies
        return "the control flow is not known: the compiler stopped before it" if is_unknown else ""

    def run(
        self, *arrays: Array, copy_completion: CopyCompletion = "latest", strict: bool = False
    ) -> None:
        """Execute every tile operation of every task; the outputs are written in place.

        Values are those of the operation table, sums in the order of the tiles and of the
        instruction. NaN, infinity and -0 pass as each operation's row says.

        Args:
            arrays: one for each parameter, in their order: C-contiguous, of its format's numpy
                dtype and its shape. Those that are only read are not modified.
            copy_completion: copies complete as late or as early as the flags allow.
            strict: a flag that may be set again before the wait for its last set is over is a
                fault, and no `EventReuseWarning`. Two sets without a wait between them always are.

        Raises:
            SimulatorFault: the hardware does not permit an operation or an order of two, or an
                output element is never written; names task, operation and source line. No output
                is modified.
            NotExecutedError: a leaf of the cube, or one with an opcode that has no row; a loop, a
                condition or an offset that goes by a number which tasks compute; a tensor of which
                the dump does not say where it comes from. After all tasks that do not depend on it
                were executed. No output is modified.
            TypeError: what is no array of numpy, or a masked one; `strict` is no bool.
            ValueError: arrays that the parameters do not take, or one that is written and
                read-only; another `copy_completion`.
        """
        if not isinstance(strict, bool):
            raise TypeError(f"strict is True or False, not {shown(strict)}")
        doubts: list[str] = []
        try:
            self.times_written(
                *arrays, copy_completion=copy_completion, doubt=None if strict else doubts.append
            )
        finally:
            for doubt in doubts:
                warnings.warn(doubt, EventReuseWarning, stacklevel=2)

    def times_written(
        self,
        *arrays: Array,
        copy_completion: CopyCompletion = "latest",
        doubt: Callable[[str], object] | None = None,
        expected: Callable[[str], Array] | None = None,
    ) -> Mapping[str, Array]:
        """Execute as `run` does, and count how often each element of an output is written.

        Args:
            arrays, copy_completion: see `run`.
            doubt: takes the text of each flag that may be set again before the wait for its last
                set is over, once; None: it is a fault.
            expected: gives for the name of an output the elements that the kernel writes, as a
                mask; the others keep what they held. None: all are written.

        Raises:
            SimulatorFault, NotExecutedError, TypeError, ValueError: see `run`.
        """
        if self._unknown_flow:
            count = len(self.leaves)
            raise NotExecutedError(
                f"not executed: {count} of {count} leaves: {'; '.join(self.not_executed)}"
            )
        check_completion(copy_completion)
        doubts: dict[str, None] = {}
        extents = self._extents(arrays)
        memory: dict[str, npt.NDArray[np.uint8]] = {}
        for parameter, array in zip(self.parameters, arrays, strict=True):
            held = np.array(array) if parameter.is_written else np.asarray(array)
            memory[parameter.name] = held.reshape(-1).view(np.uint8)
            if not parameter.is_written:
                memory[parameter.name].flags.writeable = False
        chip = chip_named(self.chip)
        known = {
            parameter.name: array
            for parameter, array in zip(self.parameters, arrays, strict=True)
            if not parameter.is_written
        }
        lowering = self.lowering(extents, known)
        unable = lowering.unable
        tasks = list(lowering.tasks(self.steps, {}))
        if self.origin == PLANNER and expected is None:
            self._check_planned_whole(lowering)
        added = {
            name: math.prod(shape) * fmt.dtype.itemsize
            for name, (fmt, shape) in lowering.tensors.items()
            if name not in memory and name not in lowering.aliases
        }
        check_most(sum(map(abs, added.values())), MAX_TEMPORARY_BYTES, "bytes of temporaries")
        for name, size_bytes in added.items():
            memory[name] = np.zeros(size_bytes, np.uint8)
        unset = {x.name for x in self.parameters if not x.is_read} | set(added)
        gm = TaskMemory(memory, unset)
        is_tolerated = doubt is not None and self.origin in (DUMP, PLANNER)
        noted = doubts.setdefault if is_tolerated else None
        try:
            run_tasks(tasks, gm, chip, copy_completion=copy_completion, doubt=noted)
        finally:
            if doubt is not None:
                for text in doubts:
                    doubt(f"{text}; {_REUSE}")
        if lowering.blocked or lowering.reasons:
            reasons = [*(unable[leaf] for leaf in sorted(lowering.met)), *lowering.reasons]
            raise NotExecutedError(
                f"not executed: {len(lowering.met)} of {len(self.leaves)} leaves, and with them "
                f"{len(lowering.blocked)} of {len(tasks)} tasks: {'; '.join(reasons)}"
            )
        counts = {}
        for parameter, array in zip(self.parameters, arrays, strict=True):
            if parameter.is_written:
                written = gm.times_written(parameter.name)
                counts[parameter.name] = written[:: array.itemsize].reshape(array.shape)
                self._check_whole(parameter, counts[parameter.name], expected)
        for parameter, array in zip(self.parameters, arrays, strict=True):
            if parameter.is_written:
                array.reshape(-1).view(np.uint8)[...] = memory[parameter.name]
        return counts

    def unordered(self, extents: Mapping[str, Shape], arrays: Mapping[str, Array]) -> str:
        """The first two tasks that use the same elements, one of them writing, in any order.

        Args:
            extents: the shape of each parameter.
            arrays: the parameters whose elements are known; a task whose place goes by others is
                left out, as are all behind more tasks than are executed.

        Returns:
            Both operations with their lines; "" without such tasks.
        """
        lowering, order = self.lowering(extents, arrays), FirstUnordered()
        lowering.order = order
        with contextlib.suppress(ValueError):
            for _ in lowering.tasks(self.steps, {}):
                if order.unordered is not None:
                    break
        if order.unordered is None:
            return ""
        memory, *both = order.unordered
        earlier, later = (
            f"{self.leaves[x.leaf].operations[x.operation].opcode} at "
            f"{place_of(self.leaves[x.leaf], x.operation)}"
            for x in both
        )
        did, does = (("writes" if x.is_written else "reads") for x in both)
        name = memory if memory in extents else "a tensor"
        return (
            f"{later} {does} elements of {name} that {earlier} {did} in another task; only a loop "
            "between them with submit_before_loop=True orders the two"
        )

    def lowering(self, extents: Mapping[str, Shape], arrays: Mapping[str, Array]) -> Lowering:
        """The tasks of a call, to be lowered into the machine in the order of execution.

        Args:
            extents: the shape of each parameter.
            arrays: the parameters whose elements are known.
        """
        isa = chip_named(self.chip).isa
        return Lowering(
            isa=isa,
            leaves=self.leaves,
            bodies=self.bodies,
            extents=extents,
            tensors={each.name: (each.format, extents[each.name]) for each in self.parameters},
            open_axes={each.name: open_axes(each.shape) for each in self.parameters},
            arrays=arrays,
            unable={
                place: why
                for place, leaf in enumerate(self.leaves)
                if (why := not_executed(leaf, isa))
            },
        )

    def _check_planned_whole(self, lowering: Lowering) -> None:
        """Refuse a plan that writes an output in part, before anything is executed."""
        for parameter in self.parameters:
            shape = lowering.extents[parameter.name]
            boxes = lowering.written(parameter.name)
            if parameter.is_read or not parameter.is_written or open_axes(parameter.shape):
                continue
            if any(each.spans is None or each.tensor_shape != shape for each in boxes):
                continue  # the counts tell at the end
            is_written = np.zeros(shape, np.bool_)
            for spans in (each.spans for each in boxes if each.spans is not None):
                is_written[tuple(slice(*each) for each in spans)] = True
            if not is_written.all():
                first = np.argwhere(~is_written)[0].tolist()
                raise SimulatorFault(
                    f"{self.kernel} writes {is_written.sum()} of the {is_written.size} elements of "
                    f"{parameter.name}, not that at {first}, so nothing is executed; a call of the "
                    "kernel under options(fidelity='instructions') keeps the others"
                )

    def _check_whole(
        self, parameter: Parameter, counts: Array, expected: Callable[[str], Array] | None
    ) -> None:
        if parameter.is_read or counts.all():
            return
        wanted = np.True_ if expected is None else expected(parameter.name)
        missing = np.argwhere((counts == 0) & wanted)
        if len(missing):
            raise SimulatorFault(
                f"the kernel ends with {len(missing)} elements of {parameter.name} never written, "
                f"the first at {missing[0].tolist()}"
            )

    def _extents(self, arrays: Sequence[Array]) -> Mapping[str, tuple[int, ...]]:
        if len(arrays) != len(self.parameters):
            names = ", ".join(each.name for each in self.parameters)
            raise ValueError(
                f"{self.kernel} takes {len(self.parameters)} arrays ({names}), not {len(arrays)}"
            )
        for parameter, array in zip(self.parameters, arrays, strict=True):
            check_is_array(array, f"{self.kernel}: {parameter.name}")
            if parameter.is_written and not array.flags.writeable:
                raise ValueError(
                    f"{self.kernel}: {parameter.name} is written, and read-only; give a copy"
                )
            fits = len(array.shape) == len(parameter.shape) and all(
                not isinstance(wanted, int) or wanted == extent
                for wanted, extent in zip(parameter.shape, array.shape, strict=True)
            )
            is_contiguous = array.flags.c_contiguous
            if not fits or array.dtype != parameter.format.dtype or not is_contiguous:
                given = (
                    f"{array.dtype} {list(array.shape)}{'' if is_contiguous else ', which is not'}"
                )
                raise ValueError(
                    f"{self.kernel}: {parameter.name} is {_format_and_shape(parameter)}, "
                    f"C-contiguous; given was {given}"
                )
        held = list(zip(self.parameters, arrays, strict=True))
        for (one, first), (other, second) in itertools.combinations(held, 2):
            is_written = one.is_written or other.is_written
            if is_written and np.may_share_memory(first, second):
                raise ValueError(
                    f"{self.kernel}: {one.name} and {other.name} share memory, and one of them is "
                    "written; give a copy"
                )
        return {
            parameter.name: tuple(array.shape)
            for parameter, array in zip(self.parameters, arrays, strict=True)
        }

    def to_json(self) -> str:
        """The schedule as versioned JSON, which `from_json` reads back equal."""
        return json.dumps({"version": VERSION, "schedule": to_plain(self)})

    @staticmethod
    def from_json(text: str) -> Schedule:
        """Read a schedule that `to_json` wrote.

        Raises:
            ValueError: no such JSON, or of another version; names the field.
        """
        try:
            document = json.loads(text, object_pairs_hook=unrepeated, parse_int=whole_number)
            version = document.get("version") if isinstance(document, dict) else None
            if type(version) is not int or version != VERSION:
                raise ValueError(f"no schedule of version {VERSION}")
            if unknown := sorted(document.keys() - {"version", "schedule"}):
                raise ValueError(f"a schedule has no field {shown(unknown[0])}")
            found = from_plain(Schedule, document.get("schedule"), "schedule")
        except RecursionError:
            raise ValueError("the schedule is nested too deeply") from None
        assert isinstance(found, Schedule)
        return found

    def _repr_html_(self) -> str | None:
        """The report for a notebook, which takes the text where there is none."""
        return _RENDERINGS[-1](self) if _RENDERINGS else None

    def __str__(self) -> str:
        passes = f" of release {self.release}" if self.release else ""
        if self.release not in (RELEASE, ""):
            passes += f", by the passes of {RELEASE} and AutoCast's lists of {self.release},"
        lines = [
            f"{self.kernel}: {self.origin}{passes} for {self.chip}",
            f"  UB {self.peak_ub_bytes} B as allocated, {self.needed_ub_bytes} B needed",
        ]
        lines += [f"  simplified: {each}" for each in self.simplified]
        for parameter in self.parameters:
            use = " and ".join(
                word
                for word, holds in (("read", parameter.is_read), ("written", parameter.is_written))
                if holds
            )
            planned = f", here {list(parameter.planned_shape)}" if parameter.planned_shape else ""
            lines.append(f"  {parameter.name}: {_format_and_shape(parameter)}{planned}, {use}")
        lines.append("  by source line, of one task of a leaf:")
        lines += [f"    {each}" for each in line_work(self.leaves, self.bodies)]
        for place, leaf in enumerate(self.leaves):
            lines.append(f"  leaf {place} {leaf.name}, {leaf.core}")
            for index, each in enumerate(leaf.operations):
                flag = each.flag
                between = "" if flag is None else f" {flag.setter}->{flag.waiter} {flag.event_id}"
                lines.append(f"    {index:3} {each.opcode}{between} {each.place}".rstrip())
        runs = body_runs(self.steps, self.extents)
        for place, body in enumerate(self.bodies):
            count = runs.get(place, 0)
            often = "an open number of runs" if count is None else f"{count} runs"
            repeated = "" if count == 1 else f", {often}"
            lines.append(f"  {body.name}: {body.task_count} tasks{repeated}")
        lines.append("  instructions inside the opcodes, of which those run that the tiles need:")
        operations = (each for leaf in self.leaves for each in leaf.operations)
        opcodes = {each.opcode for each in operations if each.flag is None}
        lines += [f"    {each}: {instructions_inside(each)}" for each in sorted(opcodes)]
        return "\n".join(itertools.chain.from_iterable(map(_wrapped, lines)))


def _format_and_shape(parameter: Parameter) -> str:
    """As "FP32 [128, any]", where a length is known only when the kernel runs."""
    shape = ", ".join(str(x) if isinstance(x, int) else "any" for x in parameter.shape)
    return f"{parameter.format} [{shape}]"


def _wrapped(line: str) -> list[str]:
    """A line as the lines of a terminal of 80 columns; a long word stays whole."""
    further = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.wrap(
        line,
        _COLUMNS,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
    )


def check_is_array(array: object, where: str) -> None:
    """Refuse values that are no arrays of numpy, and masked arrays.

    Raises:
        TypeError: names the place.
    """
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
        raise TypeError(
            f"{where} is an array of numpy, without a mask, not a {type(array).__name__}"
        )


_RENDERINGS: Final[list[Callable[[Schedule], str]]] = []


def shown_in_notebooks(rendering: Callable[[Schedule], str]) -> None:
    """Set the HTML of schedules in notebooks, which a package above renders."""
    _RENDERINGS[:] = [rendering]


__all__ = ["VERSION", "NotExecutedError", "Schedule", "check_is_array", "shown_in_notebooks"]
