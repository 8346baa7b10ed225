"""A kernel's tasks over GM: each a tile program on a core of its own, ordered by its predecessors.

Cores run side by side: a task knows another to be done only where it is one of its predecessors, or
one of theirs. What one task writes, another may read or write only in that order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from simulator.machine.isa import PipeBarrier, SetFlag, WaitFlag
from simulator.machine.memory import Bytes, GlobalMemory, Region, SimulatorFault, UbRange
from simulator.machine.pipes import CopyCompletion, Fault, Scheduler, check_completion
from simulator.machine.tile_core import TileCore, overlapping
from simulator.machine.tile_steps import TileStep
from tiling.chips import Chip

TileInstruction = TileStep | SetFlag | WaitFlag | PipeBarrier


@dataclass(frozen=True, slots=True, kw_only=True)
class TileTask:
    """One task.

    Attributes:
        name: for messages.
        after: the tasks that are done before, by their place in the order of execution.
        program: its instructions, in the order of issue.
        buffers: the parts of UB that it uses, each with the first and the last instruction of its
            life; from the first on it holds garbage.
        where: names an instruction by its index, with its source line.
    """

    name: str
    after: tuple[int, ...]
    program: Sequence[TileInstruction]
    buffers: Sequence[tuple[UbRange, int, int]]
    where: Callable[[int], str]

    def issued(self) -> Iterable[TileInstruction | UbRange]:
        """The instructions and, where its life begins, each buffer."""
        births: dict[int, list[UbRange]] = {}
        for buffer, first, _ in self.buffers:
            births.setdefault(first, []).append(buffer)
        for index, instruction in enumerate(self.program):
            yield from births.get(index, ())
            yield instruction


class TaskMemory(GlobalMemory):
    """GM that tasks share: which one wrote or read each byte last, and how often it was written.

    Args:
        tensors: the bytes of each; those that are read-only may not be written.
        unset: tensors that hold garbage until a task writes them.
    """

    def __init__(self, tensors: Mapping[str, Bytes], unset: Iterable[str] = ()) -> None:
        super().__init__(tensors)
        self._unset = frozenset(unset)
        self._done: list[int] = []
        self._last: dict[str, npt.NDArray[np.int32]] = {}
        self._seen: dict[str, npt.NDArray[np.int32]] = {}
        self._reader_sets: list[frozenset[int]] = [frozenset()]
        self._sets: dict[frozenset[int], int] = {frozenset(): 0}
        self._counts: dict[str, npt.NDArray[np.uint16]] = {}
        for name, memory in tensors.items():
            if memory.flags.writeable:
                self._last[name] = np.zeros(memory.size, np.int32)
                self._counts[name] = np.zeros(memory.size, np.uint16)

    def begin(self, after: Iterable[int]) -> int:
        """Start the next task, which begins when others are done; its number."""
        known = 0
        for other in after:
            known |= self._done[other] | 1 << other
        self._done.append(known)
        return len(self._done) - 1

    def times_written(self, tensor: str) -> npt.NDArray[np.uint16]:
        """Counts how often each byte of a tensor was written."""
        return self._counts.get(tensor, np.zeros(self.tensors[tensor].size, np.uint16))

    def read(self, region: Region, core: int) -> Bytes:
        tensor = region.space.removeprefix("gm.")
        memory = self.tensors[tensor]
        if tensor in self._unset and tensor not in self._last:
            at = (region.space, region.start)
            raise SimulatorFault(f"reads {region}, but {region.space} is said not to be read", at)
        if tensor in self._last:
            last = region.view(self._last[tensor])
            if tensor in self._unset and not last.all():
                at = region.first(last == 0)
                raise SimulatorFault(f"reads byte {at[1]} of {region.space}, never written", at)
            self._check(region, last, core, "reads", "wrote", lambda number: (number - 1,))
            if tensor not in self._seen:  # of most outputs no task reads any byte
                self._seen[tensor] = np.zeros(memory.size, np.int32)
            seen = region.view(self._seen[tensor])
            for number in _distinct(seen):
                seen[seen == number] = self._set_of(self._reader_sets[number] | {core})
        return region.view(memory).view(np.uint8)

    def write(self, region: Region, values: Bytes, core: int) -> None:
        tensor = region.space.removeprefix("gm.")
        if tensor not in self._last:
            raise SimulatorFault(
                f"writes {region}, but gm.{tensor} is read-only", (region.space, region.start)
            )
        last, readers = region.view(self._last[tensor]), self._seen.get(tensor)
        self._check(region, last, core, "writes", "wrote", lambda number: (number - 1,))
        if readers is not None:
            seen, sets = region.view(readers), self._reader_sets
            self._check(region, seen, core, "writes", "read", lambda number: sets[number])
            seen[...] = 0
        last[...] = core + 1
        counts = region.view(self._counts[tensor]).view(np.uint16)
        counts += np.uint16(1)
        region.view(self.tensors[tensor])[...] = values

    def _check(
        self,
        region: Region,
        record: npt.NDArray[np.generic],
        core: int,
        verb: str,
        did: str,
        tasks: Callable[[int], Iterable[int]],
    ) -> None:
        for number in _distinct(record):
            for task in tasks(number) if number else ():
                if task != core and not self._done[core] >> task & 1:
                    at = region.first(np.asarray(record == number))
                    raise SimulatorFault(
                        f"{verb} byte {at[1]} of {region.space}, which task {task} {did}; no data "
                        f"orders task {task} before task {core}",
                        at,
                    )

    def _set_of(self, tasks: frozenset[int]) -> int:
        if tasks not in self._sets:
            self._sets[tasks] = len(self._reader_sets)
            self._reader_sets.append(tasks)
        return self._sets[tasks]


def run_tasks(
    tasks: Iterable[TileTask],
    memory: TaskMemory,
    chip: Chip,
    *,
    copy_completion: CopyCompletion = "latest",
    doubt: Callable[[str], object] | None = None,
) -> None:
    """Run tasks in an order in which each comes after its predecessors.

    Args:
        tasks: each after those that it follows.
        memory: GM.
        chip: sizes and limits.
        copy_completion: copies complete as late or as early as the flags allow.
        doubt: takes the text of a flag that may be set again too early, see `Scheduler`; None: it
            is a fault.

    Raises:
        SimulatorFault: naming task, operation, source line and what is wrong with it.
        ValueError: an unknown completion of copies.
    """
    from simulator.arithmetic.native.operation_nodes import at_once  # loaded when first used

    check_completion(copy_completion)
    for task in tasks:
        number = memory.begin(task.after)
        try:
            for one, other, index in overlapping(task.buffers):
                raise Fault(
                    index,
                    f"buffers {one.name} (ub+{one.offset_bytes}..{one.stop}) and {other.name} "
                    f"(ub+{other.offset_bytes}..{other.stop}) overlap while both are alive",
                )
            core = TileCore(number, chip, memory)
            noted = None if doubt is None else partial(_note, doubt, task)
            scheduler = Scheduler(
                core, copy_completion, task.where, noted, isa=chip.isa, scalar_accesses=True
            )
            with at_once():
                scheduler.run(task.issued())
        except Fault as fault:
            text = f"task {number} ({task.name}), {task.where(fault.index)}: {fault}"
            raise SimulatorFault(text, fault.at) from None


def _note(doubt: Callable[[str], object], task: TileTask, fault: Fault) -> None:
    doubt(f"{task.name}, {task.where(fault.index)}: {fault}")


def _distinct(record: npt.NDArray[np.generic]) -> list[int]:
    """The numbers of a record; mostly one, where `np.unique` would hash each byte's."""
    first = record.flat[0]
    return [int(first)] if (record == first).all() else np.unique(record).tolist()
