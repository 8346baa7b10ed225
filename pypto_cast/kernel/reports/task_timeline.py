"""Tasks over cores and pipes as a timeline, one run of each body."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from ascend_kernels.schedule.parts import Body
from ascend_kernels.schedule.schedule import Schedule
from ascend_kernels.schedule.views.task_trace import OperationRun, operation_runs
from pypto_cast.report.figure import PIPE_ROWS, Figure, Mark, Row, timeline_figure
from pypto_cast.report.report import Report
from pypto_cast.report.text_format import plural

_MOST_BODIES: Final = 4
_MOST_CORES: Final = 8
_MOST_MARKS: Final = 4000
"""Of a timeline; beyond it the last cores are left out."""


def timeline_part(schedule: Schedule) -> tuple[Report, ...]:
    """The timelines of bodies whose operations have cycles; nothing where none has."""
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
    runs: dict[int, list[OperationRun]] = defaultdict(list)
    for each in operation_runs(schedule, body):
        runs[each.core].append(each)
    if not runs:
        return None
    end = max(each.end_cycle for held in runs.values() for each in held)
    rows: list[Row] = []
    count = drawn = 0
    for core in sorted(runs)[:_MOST_CORES]:
        marks: dict[str, list[Mark]] = {pipe: [] for pipe in PIPE_ROWS}
        for each in runs[core]:
            if each.pipe in marks:
                marks[each.pipe].append(_mark(each))
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
        summary=f"{plural(body.task_count, 'task')} on {plural(len(runs), 'core')} in {end:,} "
        "cycles",
        caption=f"{drawn} of {plural(len(runs), 'core')} with work drawn; the last operation ends "
        f"at cycle {end:,}.",
    )


def _mark(run: OperationRun) -> Mark:
    operation, cycles = run.operation, run.end_cycle - run.start_cycle
    return Mark(
        left=run.start_cycle,
        width=cycles,
        kind=PIPE_ROWS[run.pipe][0],
        tip=f"{operation.opcode}{operation.at}, task {run.task}, leaf {run.leaf}\n"
        f"from cycle {run.start_cycle:,}, for {cycles:,}",
    )
