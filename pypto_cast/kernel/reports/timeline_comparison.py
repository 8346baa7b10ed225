"""A timeline that upstream wrote, of a device or its simulator, beside ours: tables by task."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ascend_kernels.schedule.reader.timeline_files import read_timeline, task_places
from ascend_kernels.schedule.schedule import Schedule
from ascend_kernels.schedule.simulated_cycles import STANDINGS, TASKS
from ascend_kernels.schedule.views.timeline_differences import (
    SLACK,
    TimelineComparison,
    compare_timeline,
)
from pypto_cast.report.report import Report, Table, columns, plain
from pypto_cast.report.text_format import plural, printable
from tiling.chips import chip_named

_ORIGINS: Final = {
    "device": "of a device",
    "simulator": "of upstream's simulator",
    "trace": "of a device or of upstream's simulator: a trace does not say which",
}


def timeline_beside(
    schedule: Schedule, folder: Path, kernel: str | None, path: Path
) -> TimelineComparison:
    """Read a timeline of a dump's run and compare it with the times of this package.

    Raises:
        DumpError: the timeline, or the run in the dump, cannot be read.
        ValueError: see `compare_timeline`.
    """
    timeline = read_timeline(path, chip_named(schedule.chip).clock_hz)
    return compare_timeline(schedule, task_places(schedule, folder, kernel), timeline)


def comparison_report(schedule: Schedule, compared: TimelineComparison, path: Path) -> Report:
    """Each task or operation with its cycles there and here, and its differences in words."""
    timeline = compared.timeline
    kind = "operation" if timeline.operations else "task"
    count = len(compared.operations or compared.tasks)
    verdict = f"{compared.differing} of {plural(count, kind)} differ"
    if not compared.differing:
        verdict = f"{plural(count, kind)}, none differs"
    return Report(
        kind="timeline-comparison",
        title=f"{schedule.kernel}, {printable(str(path))}: {verdict}",
        standing=STANDINGS[TASKS],
        facts=plain(
            kernel=schedule.kernel,
            timeline=path,
            origin=timeline.origin,
            differing=compared.differing,
            unknown=list(compared.unknown),
            cycles_standing=STANDINGS[TASKS],
        ),
        tables=(_operations(compared) if timeline.operations else _tasks(schedule, compared),),
        notes=(
            *(f"In the timeline and not in the dump: {printable(each)}" for each in _few(compared)),
            f"The timeline is {_ORIGINS[timeline.origin]}; here: {STANDINGS[TASKS]}. "
            f"Up to {SLACK:g} times as long is no difference.",
        ),
    )


def _few(compared: TimelineComparison, most: int = 5) -> list[str]:
    found = list(compared.unknown[:most])
    if len(compared.unknown) > most:
        found.append(f"{len(compared.unknown) - most} more")
    return found


def _tasks(schedule: Schedule, compared: TimelineComparison) -> Table:
    rows = [
        (
            *(".".join(map(str, x.run)), schedule.bodies[x.body].name, x.task, x.leaf),
            *(x.core or None, _rounded(x.start_cycle), _rounded(x.cycles), x.known_cycles),
            ", ".join(x.words),
        )
        for x in compared.tasks
    ]
    return Table(
        key="tasks",
        caption="Tasks, by the order in which the dump numbers them",
        columns=columns(
            run="run",
            body=None,
            task="task",
            leaf="leaf",
            core="core",
            start_cycle="begins\nat cycle",
            cycles="cycles\nthere",
            known_cycles="\nhere",
            differs="differs",
        ),
        rows=rows,
    )


def _operations(compared: TimelineComparison) -> Table:
    rows = [
        (
            *(x.leaf, x.index, x.opcode, x.pipe, x.place, x.runs),
            *(_rounded(x.cycles), x.known_cycles, ", ".join(x.words)),
        )
        for x in compared.operations
    ]
    return Table(
        key="operations",
        caption="Operations of each leaf, over all its tasks",
        columns=columns(
            leaf="leaf",
            index="place",
            opcode="opcode",
            pipe="pipe",
            line="line",
            runs="runs",
            cycles="cycles\nthere",
            known_cycles="\nhere",
            differs="differs",
        ),
        rows=rows,
    )


def _rounded(cycles: float | None) -> int | None:
    return None if cycles is None else round(cycles)
