"""A schedule as a report: its source lines, its buffers in UB over time, its tasks on cores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ascend_kernels.schedule.body_runs import body_runs
from ascend_kernels.schedule.line_work import LineWork, buffer_owner, line_work
from ascend_kernels.schedule.schedule import Schedule, shown_in_notebooks
from ascend_kernels.schedule.simulated_cycles import STANDINGS, TASKS, leaf_cycles
from ascend_kernels.schedule.views.task_times import simulated_task_times
from pypto_cast.kernel.reports.task_timeline import timeline_part
from pypto_cast.kernel.reports.ub_picture import ub_part
from pypto_cast.report.page import notebook_with_figures
from pypto_cast.report.report import Column, Fact, Report, Table, Words, columns, headed, plain
from pypto_cast.report.text_format import plural
from tiling.chips import chip_named


def figures(schedule: Schedule) -> dict[str, Any]:
    """The figures of a schedule that every command shows."""
    return {
        "kernel": schedule.kernel,
        "leaves": len(schedule.leaves),
        "tasks": sum(body.task_count for body in schedule.bodies),
        "peak_ub_bytes": schedule.peak_ub_bytes,
        "needed_ub_bytes": schedule.needed_ub_bytes,
    }


def counted(said: Mapping[str, Any]) -> str:
    """The counts of `figures` in words."""
    return f"{plural(said['leaves'], 'leaf', 'leaves')}, {plural(said['tasks'], 'task')}"


def schedule_report(schedule: Schedule) -> Report:
    """The report of a schedule; its figures are on the page.

    Args:
        schedule: of any origin. Where operations are not estimated there is no timeline.
    """
    found, runs = figures(schedule), body_runs(schedule.steps, schedule.extents)
    counts = [runs.get(place, 0) for place in range(len(schedule.bodies))]
    in_all = None
    if None not in counts:
        pairs = zip(schedule.bodies, counts, strict=True)
        in_all = sum(body.task_count * (count or 0) for body, count in pairs)
    missing = ", ".join(sorted(set().union(*(leaf_cycles(x)[1] for x in schedule.leaves))))
    ub_bytes = chip_named(schedule.chip).ub_bytes
    return Report(
        kind="schedule",
        title=f"{schedule.kernel}: {counted(found)}",
        standing=STANDINGS[TASKS],
        facts=(
            *plain(kernel=schedule.kernel),
            Fact(key="origin", value=schedule.origin, label="origin"),
            Fact(key="release", value=schedule.release or None, label="release"),
            Fact(key="chip", value=schedule.chip, label="chip"),
            Fact(
                key="simplified", value="; ".join(schedule.simplified) or None, label="simplified"
            ),
            Fact(key="leaves", value=found["leaves"], label="leaves"),
            Fact(key="tasks", value=found["tasks"], label="tasks, of one iteration"),
            Fact(key="tasks_in_all", value=in_all, label="tasks, in all"),
            Fact(key="peak_ub_bytes", value=found["peak_ub_bytes"], label="UB as allocated, B"),
            Fact(key="needed_ub_bytes", value=found["needed_ub_bytes"], label="UB needed, B"),
            Fact(key="not_estimated", value=missing or None, label="not estimated"),
            Fact(key="ub_bytes", value=ub_bytes, label="UB of the chip, B"),
            *plain(
                cycles_standing=STANDINGS[TASKS],
                lines=lambda: _line_rows(schedule),
                buffers=lambda: list(_buffer_rows(schedule)),
            ),
        ),
        tables=(_lines_table(schedule), _most_alive(schedule), _bodies_table(schedule, counts)),
        notes=(f"{STANDINGS[TASKS][0].upper()}{STANDINGS[TASKS][1:]}.",),
        parts=(ub_part(schedule), *timeline_part(schedule)),
    )


def _lines_table(schedule: Schedule) -> Table:
    alike: dict[tuple[object, ...], list[LineWork]] = {}
    for each in line_work(schedule.leaves, schedule.bodies):
        work = each.place, each.opcodes, each.copied, each.cycles
        alike.setdefault(work, []).append(each)
    rows = [
        (
            *(held[0].place, _leaves([each.leaf for each in held]), held[0].operations),
            *(_copied(held[0]), _cycles(held[0].cycles), sum(each.tasks for each in held)),
            held[0].opcode_list,
        )
        for held in alike.values()
    ]
    return Table(
        caption="By source line, of one task of a leaf; inserted copies at the line they serve",
        columns=(
            *headed("line", "leaf", "tile\noperations", "bytes\nmoved", "cycles", "tasks"),
            Column(heading="opcodes", is_minor=True),
        ),
        rows=rows,
    )


def _cycles(known: int | None) -> int | Words:
    return Words(value=None, text="not estimated") if known is None else known


def _copied(work: LineWork) -> int | Words:
    most = Words(value=work.copied_bytes, text=f"at most {work.copied_bytes:,}")
    return most if work.is_most else work.copied_bytes


def _leaves(places: list[int]) -> int | str:
    """The number of a leaf; of several their numbers, those in a row as `0 to 3`."""
    if len(places) == 1:
        return places[0]
    spans: list[list[int]] = []
    for each in places:
        if spans and each == spans[-1][-1] + 1:
            spans[-1] = [spans[-1][0], each]
        else:
            spans.append([each])
    return ", ".join(" to ".join(map(str, each)) for each in spans)


def _line_rows(schedule: Schedule) -> list[dict[str, object]]:
    return [
        {
            "line": each.place,
            "leaf": each.leaf,
            "operations": each.operations,
            "opcodes": each.opcode_list,
            "copied_bytes": each.copied_bytes,
            "cycles": each.cycles,
            "tasks": each.tasks,
        }
        for each in line_work(schedule.leaves, schedule.bodies)
    ]


def _buffer_rows(schedule: Schedule) -> Iterator[dict[str, object]]:
    for number, leaf in enumerate(schedule.leaves):
        for place, each in enumerate(leaf.ub_buffers):
            opcode, line = buffer_owner(leaf, place)
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
    if worst is None or not worst.ub_buffers:
        return Table(columns=headed("address"), rows=())
    moment = max(sorted({each.first for each in worst.ub_buffers}), key=worst.live_bytes)
    alive = [
        (each, *buffer_owner(worst, place))
        for place, each in enumerate(worst.ub_buffers)
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
        times, end = simulated_task_times(schedule, body)
        cores = len({each.core for each in times if each.end_cycle > each.start_cycle})
        rows.append((body.name, body.task_count, count, cores if times else None, _cycles(end)))
    return Table(
        key="bodies",
        caption="One run of each body, and how often it runs",
        columns=(
            Column(key="body", heading="body", is_name=True),
            *columns(tasks="tasks", runs="runs", cores="cores", cycles="cycles of\none run"),
        ),
        rows=rows,
    )


def with_notebook(schedule: Schedule) -> Schedule:
    """The schedule itself; from now on a notebook shows the report of any."""
    shown_in_notebooks(lambda each: notebook_with_figures(schedule_report(each)))
    return schedule
