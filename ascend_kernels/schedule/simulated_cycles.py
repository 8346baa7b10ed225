"""Cycles as upstream's simulator counts them: of tile operations, leaves and the tasks of a body.

The figures of operations are those of `cycle_table`, measured from the timelines of pipes that
upstream's wheel writes; a simulator wrote them, and no device.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ascend_kernels.schedule.cycle_table import ROWS
from ascend_kernels.schedule.parts import Body, Leaf, TileOperation

TASKS: Final = "tasks"
"""The model: a task for each leaf instance, on the vector cores, by upstream's simulator."""
LATENCIES: Final = "latencies"
"""The model: the same tasks, by the cycles that upstream's scheduler counts."""
STANDINGS: Final = {
    TASKS: "cycles of the simulator in upstream's release 0.2.0, not of a device",
    LATENCIES: "cycles that the scheduler of upstream's release 0.2.0 counts, not of a device",
}
"""The source of the cycles, by model; it has to stand beside every result."""
HAND_OUT_CYCLES: Final = 200
"""From one task to the next (schedulerCycles in the wheel's _simulate.config.ini)."""
RESOLVE_CYCLES: Final = 390
"""For each task that waited for one that is done (resolveCycles, in the same file)."""
FIRST_CYCLES: Final = 4
"""From the start of a task to its first operation, in all timelines."""
_GAP_CYCLES: Final = 2
"""From the end of an operation to the next of its pipe, or one that reads its result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleForm:
    """The cycles of an opcode and a dtype: `once + sheets * (each + per_kib * KiB of a sheet)`.

    Attributes:
        once, each, per_kib: cycles.
        least_bytes, most_bytes: of the sheets that were measured. Where they are equal the form
            holds for that size alone; else it is continued to others.
    """

    once: float
    each: float
    per_kib: float
    least_bytes: int
    most_bytes: int

    def cycles(self, sheets: int, sheet_bytes: int) -> int | None:
        """The cycles of so many sheets; None of a size for which the form does not hold."""
        return round(self.unrounded(sheets, sheet_bytes)) if self.holds(sheet_bytes) else None

    def unrounded(self, sheets: Any, sheet_bytes: Any) -> Any:
        """The same of ints or of arrays of them, before it is rounded."""
        return self.once + sheets * (self.each + self.per_kib * sheet_bytes / 1024)

    def holds(self, sheet_bytes: Any) -> Any:
        """True of a size for which the form holds; of an array by element."""
        return (self.least_bytes != self.most_bytes) | (sheet_bytes == self.most_bytes)


Forms = Mapping[tuple[str, str], CycleForm]
"""By opcode and dtype."""


def forms_of(rows: Sequence[tuple[str, str, float, float, float, int, int]]) -> Forms:
    """The forms of the rows of a table."""
    return {
        (opcode, dtype): CycleForm(
            once=once, each=each, per_kib=per_kib, least_bytes=least, most_bytes=most
        )
        for opcode, dtype, once, each, per_kib, least, most in rows
    }


FORMS: Final = forms_of(ROWS)


def measured_size(operation: TileOperation) -> tuple[str, int, int] | None:
    """The size that decides the cycles: dtype, sheets, bytes of a sheet; None without a tile in UB.

    The dtype is that of the first operand, the sheet the last two axes of the smallest operand,
    scratch included, with the elements of the first. A tile of one axis counts as one element.
    """
    tiles = [each for each in (*operation.inputs, *operation.outputs) if each.buffer is not None]
    if not tiles:
        return None
    sheets = min(math.prod(each.shape[:-2]) for each in tiles)
    elems = min(math.prod(each.shape[-2:]) if len(each.shape) > 1 else 1 for each in tiles)
    fmt = (*operation.inputs, *operation.outputs)[0].format
    return str(fmt), sheets, elems * fmt.dtype.itemsize


def simulated_cycles(operation: TileOperation, forms: Forms = FORMS) -> int | None:
    """The cycles of a tile operation; None where no form is of its opcode and dtype, or its size.

    A view, and an assembly of parts, take one cycle whatever their size. Without a latency it is no
    operation of upstream's compiler, as in the AscendC program of a cast, and has none.
    """
    if not operation.latency:
        return None
    if operation.opcode in ("VIEW", "ASSEMBLE"):
        return 1
    size = measured_size(operation)
    form = None if size is None else forms.get((operation.opcode, size[0]))
    return None if size is None or form is None else form.cycles(*size[1:])


def leaf_cycles(leaf: Leaf, forms: Forms = FORMS) -> tuple[int | None, frozenset[str]]:
    """The cycles of a task of a leaf, None if operations have none, and the opcodes of those.

    Those of `operation_spans`, and one more.
    """
    spans, missing = operation_spans(leaf, forms)
    if spans is None:
        return None, missing
    return max((end for _, end in spans.values()), default=0) + 1, missing


def operation_spans(
    leaf: Leaf, forms: Forms = FORMS
) -> tuple[dict[int, tuple[int, int]] | None, frozenset[str]]:
    """Start and end of each operation of a leaf by its place, and the opcodes that have no cycles.

    Pipes run side by side. An operation waits for the writers of what it reads and enters the queue
    of its pipe then; flags, barriers and addresses do not count. A leaf of the cube has none.
    """
    places = [place for place, each in enumerate(leaf.operations) if each.flag is None]
    operations = [leaf.operations[place] for place in places]
    cycles = [simulated_cycles(each, forms) for each in operations]
    missing = frozenset(
        each.opcode for each, known in zip(operations, cycles, strict=True) if known is None
    )
    if missing or leaf.core == "AIC":
        return None, missing
    writers: dict[int | None, list[int]] = {}
    readers: list[list[int]] = [[] for _ in operations]
    waits = [0] * len(operations)
    for place, operation in enumerate(operations):
        needed = {
            writer
            for one in operation.inputs
            if one.buffer is not None
            for writer in writers.get(one.buffer, ())
        }
        waits[place] = len(needed)
        for writer in needed:
            readers[writer].append(place)
        for one in operation.outputs:
            writers.setdefault(one.buffer, []).append(place)
    queue = [(FIRST_CYCLES - _GAP_CYCLES, place) for place, count in enumerate(waits) if not count]
    free: dict[str, int] = {}
    spans: dict[int, tuple[int, int]] = {}
    ready = [0] * len(operations)
    while queue:
        due, place = heapq.heappop(queue)
        pipe = operations[place].pipe
        end = max(due, free.get(pipe, 0)) + _GAP_CYCLES + (cycles[place] or 0)
        free[pipe] = end
        spans[places[place]] = end - (cycles[place] or 0), end
        for reader in readers[place]:
            waits[reader] -= 1
            ready[reader] = max(ready[reader], end)
            if not waits[reader]:
                heapq.heappush(queue, (ready[reader], reader))
    return spans, missing


def body_cycles(body: Body, cycles: Sequence[int], cores: int) -> int:
    """The cycles of one run of a body, the end of `task_spans`."""
    return task_spans(body, cycles, cores)[1]


def task_spans(
    body: Body, cycles: Sequence[int], cores: int
) -> tuple[dict[int, tuple[int, int]], int]:
    """Core and start of each task in one run of a body, and the cycle when all results are known.

    Tasks are handed out one after another to cores that are free, as they become ready, and results
    are looked at one after another. The launch is not in it.

    Args:
        body: its tasks.
        cycles: of a task of each leaf of the schedule.
        cores: the number of vector cores.
    """
    waits = [0] * len(body.tasks)
    for task in body.tasks:
        for successor in task.successors:
            waits[successor] += 1
    ready = deque((0, place) for place, count in enumerate(waits) if not count)
    running: list[tuple[int, int]] = []
    free = [(0, core) for core in range(cores)]
    spans: dict[int, tuple[int, int]] = {}
    handed = resolved = 0
    while ready or running:
        start = max(ready[0][0], handed, free[0][0]) if ready and free else None
        if start is not None and (not running or start <= max(running[0][0], resolved)):
            _, place = ready.popleft()
            leaf = body.tasks[place].leaf
            if leaf is not None:
                spans[place] = heapq.heappop(free)[1], start
                handed = start + HAND_OUT_CYCLES
            heapq.heappush(running, (start + (0 if leaf is None else cycles[leaf]), place))
            continue
        end, place = heapq.heappop(running)
        resolved = max(resolved, end)
        if body.tasks[place].leaf is not None:
            heapq.heappush(free, (resolved, spans[place][0]))
        successors = body.tasks[place].successors
        resolved += 0 if successors else RESOLVE_CYCLES  # the end of the body waits for it
        for successor in successors:
            resolved += RESOLVE_CYCLES
            waits[successor] -= 1
            if not waits[successor]:
                ready.append((resolved, successor))
    return spans, resolved
