"""A schedule as a report: its source lines, its buffers in UB over time, its tasks on cores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ascend_kernels.schedule.parts import (
    COPIES,
    OUTWARD,
    Body,
    Buffer,
    Leaf,
    TileOperand,
    TileOperation,
)
from ascend_kernels.schedule.schedule import Schedule
from ascend_kernels.schedule.task_times import body_runs, leaf_times, task_times
from pypto_cast.report.figure import (
    CORE_COLORS,
    PIPE_ROWS,
    Figure,
    Mark,
    Row,
    round_ticks,
    timeline_figure,
)
from pypto_cast.report.report import Column, Fact, Report, Table, columns, headed, plain
from pypto_cast.report.text_format import plural
from tiling.chips import chip_named

_STANDING: Final = (
    "cycles are those that upstream's scheduler counts, by the bytes of a tile alone, and a task "
    "takes the core that is free first"
)
_INSERTED: Final = "inserted by a pass"
_MOST_LEAVES: Final = 8
_MOST_BODIES: Final = 4
_MOST_CORES: Final = 8
_MOST_MARKS: Final = 4000
"""Of a timeline; beyond it the last cores are left out."""
_UB_PX: Final = 260


def figures(schedule: Schedule) -> dict[str, Any]:
    """The figures of a schedule that every command shows."""
    return {
        "kernel": schedule.kernel,
        "leaves": len(schedule.leaves),
        "tasks": sum(len(body.tasks) for body in schedule.bodies),
        "peak_ub_bytes": schedule.peak_ub_bytes,
        "needed_ub_bytes": schedule.needed_ub_bytes,
    }


def counted(said: Mapping[str, Any]) -> str:
    """The counts of `figures` in words."""
    return f"{plural(said['leaves'], 'leaf', 'leaves')}, {plural(said['tasks'], 'task')}"


def schedule_report(schedule: Schedule) -> Report:
    """The report of a schedule; its figures are on the page.

    Args:
        schedule: of any origin. Where operations have no cycles there is no timeline.
    """
    found, runs = figures(schedule), body_runs(schedule.steps)
    counts = [runs.get(place, 0) for place in range(len(schedule.bodies))]
    in_all = None
    if None not in counts:
        pairs = zip(schedule.bodies, counts, strict=True)
        in_all = sum(len(body.tasks) * (count or 0) for body, count in pairs)
    ub_bytes = chip_named(schedule.chip).ub_bytes
    return Report(
        kind="schedule",
        title=f"{schedule.kernel}: {counted(found)}",
        standing=_STANDING,
        facts=(
            *plain(kernel=schedule.kernel),
            Fact(key="origin", value=schedule.origin, label="origin"),
            Fact(key="release", value=schedule.release or None, label="release"),
            Fact(key="chip", value=schedule.chip, label="chip"),
            Fact(key="leaves", value=found["leaves"], label="leaves"),
            Fact(key="tasks", value=found["tasks"], label="tasks, of one iteration"),
            Fact(key="tasks_in_all", value=in_all, label="tasks, in all"),
            Fact(key="peak_ub_bytes", value=found["peak_ub_bytes"], label="UB as allocated, B"),
            Fact(key="needed_ub_bytes", value=found["needed_ub_bytes"], label="UB needed, B"),
            Fact(key="ub_bytes", value=ub_bytes, label="UB of the chip, B"),
            *plain(cycles_standing=_STANDING, buffers=lambda: list(_buffer_rows(schedule))),
        ),
        tables=(_lines_table(schedule), _most_alive(schedule), _bodies_table(schedule, counts)),
        notes=(f"{_STANDING[0].upper()}{_STANDING[1:]}; none is measured.",),
        parts=(_ub_part(schedule), *_timeline_part(schedule)),
    )


def _place(leaf: Leaf, operation: TileOperation) -> str:
    """The line that an operation serves; of an inserted copy in the line that reads its tile."""
    if operation.place or operation.flag is not None:
        return operation.place
    held = {each.buffer for each in (*operation.inputs, *operation.outputs)} - {None}
    users = [
        each.place
        for each in leaf.operations
        if each.place and held & {one.buffer for one in (*each.inputs, *each.outputs)}
    ]
    if not users:
        return _INSERTED
    return users[-1] if operation.opcode in OUTWARD else users[0]


def _tile_bytes(operand: TileOperand) -> int:
    """The valid bytes of a tile; padding counts where the extents are open."""
    known = [each for each in operand.valid_shape if isinstance(each, int)]
    shape = operand.shape if len(known) < len(operand.valid_shape) else known
    return math.prod(shape) * operand.format.dtype.itemsize if operand.shape else 0


def _copied_bytes(operation: TileOperation) -> int:
    if operation.opcode not in COPIES:
        return 0
    return sum(map(_tile_bytes, (*operation.inputs, *operation.outputs)))


def _lines_table(schedule: Schedule) -> Table:
    tasks = Counter(task.leaf for body in schedule.bodies for task in body.tasks)
    rows: list[tuple[str, int, int, str, int, int | None, int]] = []
    for number, leaf in enumerate(schedule.leaves):
        by_line: dict[str, list[TileOperation]] = {}
        for each in leaf.operations:
            if each.flag is None:
                by_line.setdefault(_place(leaf, each), []).append(each)
        for line, held in by_line.items():
            opcodes = Counter(each.opcode for each in held)
            named = ", ".join(f"{n} x {name}" if n > 1 else name for name, n in opcodes.items())
            # Without the cycles of one operation their sum is not known.
            cycles = sum(each.latency for each in held) if all(x.latency for x in held) else None
            copied = sum(map(_copied_bytes, held))
            rows.append((line, number, len(held), named, copied, cycles, tasks[number]))
    rows.sort(key=lambda row: (row[1], _line_key(row[0])))
    return Table(
        key="lines",
        caption="By source line, of one task of a leaf; inserted copies at the line they serve",
        columns=columns(
            line="line",
            leaf="leaf",
            operations="tile\noperations",
            opcodes="opcodes",
            copied_bytes="bytes\nmoved",
            cycles="cycles",
            tasks="tasks",
        ),
        rows=rows,
    )


def _line_key(place: str) -> tuple[str, int]:
    file, _, line = place.rpartition(":")
    return file, int(line) if line.isdecimal() else 0


def _owner(leaf: Leaf, place: int) -> tuple[str, str]:
    """Opcode and line of the operation that a buffer was allocated for."""
    operation = leaf.operations[leaf.buffers[place].first]
    return operation.opcode, _place(leaf, operation)


def _buffer_rows(schedule: Schedule) -> Iterator[dict[str, object]]:
    for number, leaf in enumerate(schedule.leaves):
        for place, each in enumerate(leaf.buffers):
            opcode, line = _owner(leaf, place)
            yield {
                "leaf": number,
                "address": each.address,
                "bytes": each.size_bytes,
                "first": each.first,
                "last": each.last,
                "opcode": opcode,
                "line": line,
            }


def _most_alive(schedule: Schedule) -> Table:
    """The buffers of the leaf that needs most, at the moment when most bytes are alive."""
    worst = max(schedule.leaves, key=lambda each: each.needed_ub_bytes, default=None)
    if worst is None or not worst.buffers:
        return Table(columns=headed("address"), rows=())
    moment = max(sorted({each.first for each in worst.buffers}), key=worst.live_bytes)
    alive = [
        (each, *_owner(worst, place))
        for place, each in enumerate(worst.buffers)
        if each.first <= moment <= each.last
    ]
    alive.sort(key=lambda row: row[0].address)
    at = worst.operations[moment]
    return Table(
        caption=f"Buffers alive when most UB is needed: at {at.opcode}{at.at} of leaf "
        f"{schedule.leaves.index(worst)}",
        columns=headed("address", "bytes", "written by", "line", "operations"),
        rows=[
            (each.address, each.size_bytes, opcode, line, f"{each.first} to {each.last}")
            for each, opcode, line in alive
        ],
    )


def _bodies_table(schedule: Schedule, counts: list[int | None]) -> Table:
    rows = []
    for body, count in zip(schedule.bodies, counts, strict=True):
        times = task_times(schedule, body)
        cores = len({each.core for each in times if each.end_cycle > each.start_cycle})
        end = max((each.end_cycle for each in times), default=None)
        rows.append((body.name, len(body.tasks), count, cores if times else None, end))
    return Table(
        key="bodies",
        caption="One run of each body, and how often it runs",
        columns=(
            Column(key="body", heading="body", is_name=True),
            *columns(tasks="tasks", runs="runs", cores="cores", cycles="cycles of\none run"),
        ),
        rows=rows,
    )


def _ub_part(schedule: Schedule) -> Report:
    shown = sorted(
        range(len(schedule.leaves)), key=lambda each: -schedule.leaves[each].needed_ub_bytes
    )[:_MOST_LEAVES]
    ub_bytes = chip_named(schedule.chip).ub_bytes
    left = len(schedule.leaves) - len(shown)
    more = f" The {plural(left, 'leaf', 'leaves')} that need less are left out." if left else ""
    return Report(
        kind="ub",
        title="UB over time",
        lead=f"A bar is a buffer: its height and place are its bytes and address of {ub_bytes:,} "
        f"B, address 0 at the foot; from its first operation to its last. Colours repeat.{more}",
        figures=tuple(
            each
            for number in shown
            if schedule.leaves[number].buffers
            for each in _ub_figures(number, schedule.leaves[number], ub_bytes)
        ),
    )


def _ub_figures(number: int, leaf: Leaf, ub_bytes: int) -> tuple[Figure, Figure]:
    at = leaf.operation_columns
    extent = max(at) + 1
    peak, needed = leaf.peak_ub_bytes, leaf.needed_ub_bytes
    whole = max(ub_bytes, peak)
    bars = tuple(
        _buffer_mark(leaf, place, each, whole, at) for place, each in enumerate(leaf.buffers)
    )
    line = Mark(left=0, width=extent, kind="range", foot=peak / whole)
    sums = [0] * extent
    for index, column in enumerate(at):
        sums[column] = max(sums[column], leaf.live_bytes(index))
    alive = tuple(
        Mark(
            left=column,
            width=1,
            kind="beyond" if each == needed else "normal",
            height=each / whole,
            tip=f"{each:,} B alive",
        )
        for column, each in enumerate(sums)
    )
    axis, name = "operations in the order of issue, without flags", f"Leaf {number}"
    allocated = f"{peak:,} B as allocated (the line)"
    return (
        Figure(
            rows=(Row(marks=(*bars, line)),),
            extent=extent,
            axis=axis,
            ticks=round_ticks(extent),
            height_px=_UB_PX,
            title=f"{name}: buffers",
            summary=f"{name}: {plural(len(bars), 'buffer')}, {allocated}",
            caption=f"{allocated} of {ub_bytes:,} B.",
        ),
        Figure(
            rows=(Row(marks=alive),),
            extent=extent,
            axis=axis,
            ticks=round_ticks(extent),
            height_px=80,
            title=f"{name}: bytes alive",
            summary=f"{name}: at most {needed:,} B are alive at once",
            caption=f"{needed:,} B are needed: the most that is alive at once.",
        ),
    )


def _buffer_mark(leaf: Leaf, place: int, each: Buffer, whole: int, at: tuple[int, ...]) -> Mark:
    opcode, line = _owner(leaf, place)
    return Mark(
        left=at[each.first],
        width=at[each.last] - at[each.first] + 1,
        kind=f"core-{place % CORE_COLORS}",
        foot=each.address / whole,
        height=each.size_bytes / whole,
        text=line.rpartition(":")[2] if line != _INSERTED else "",
        tip=f"{opcode}, {line}\n{each.size_bytes:,} B from {each.address:,}\n"
        f"operations {each.first} to {each.last}",
    )


def _timeline_part(schedule: Schedule) -> tuple[Report, ...]:
    drawn = [_timeline(schedule, body) for body in schedule.bodies[:_MOST_BODIES]]
    found = tuple(each for each in drawn if each is not None)
    if not found:
        return ()
    left = len(schedule.bodies) - len(drawn)
    more = f" {plural(left, 'further body', 'further bodies')} are left out." if left else ""
    return (
        Report(
            kind="timeline",
            title="Tasks over cores and pipes",
            lead=f"One run of each body: a row a pipe of a core, a bar an operation.{more}",
            figures=found,
        ),
    )


def _timeline(schedule: Schedule, body: Body) -> Figure | None:
    times = task_times(schedule, body)
    end = max((each.end_cycle for each in times), default=0)
    if not end:
        return None
    by_leaf = [leaf_times(leaf) for leaf in schedule.leaves]
    rows: list[Row] = []
    count = 0
    cores = sorted({each.core for each in times if each.end_cycle > each.start_cycle})
    drawn = 0
    for core in cores[:_MOST_CORES]:
        marks: dict[str, list[Mark]] = {pipe: [] for pipe in PIPE_ROWS}
        for time in times:
            place = body.tasks[time.task].leaf
            if time.core != core or place is None:
                continue
            for each in by_leaf[place]:
                operation = schedule.leaves[place].operations[each.index]
                is_wait = operation.opcode == "SYNC_DST"
                if each.pipe in marks and (operation.flag is None or is_wait):
                    start, cycles = each.start_cycle, each.end_cycle - each.start_cycle
                    words = f"{operation.opcode}{operation.at}, task {time.task}, leaf {place}"
                    marks[each.pipe].append(
                        Mark(
                            left=time.start_cycle + start,
                            width=cycles,
                            kind="wait" if is_wait else PIPE_ROWS[each.pipe][0],
                            tip=f"{words}\nfrom cycle {time.start_cycle + start:,}, for {cycles:,}",
                        )
                    )
        count += sum(map(len, marks.values()))
        if drawn and count > _MOST_MARKS:
            break
        drawn += 1
        rows += [Row(label=f"{core} {pipe}", marks=tuple(held)) for pipe, held in marks.items()]
    return timeline_figure(
        tuple(rows),
        end,
        "cycles from the start of the body",
        height_px=18,
        is_beside=True,
        title=body.name,
        summary=f"{plural(len(body.tasks), 'task')} on {plural(len(cores), 'core')} in {end:,} "
        "cycles",
        caption=f"{drawn} of {plural(len(cores), 'core')} with work drawn; {end:,} cycles.",
    )
