"""Two schedules beside each other: of two tile shapes, releases, chips, or a plan and a dump."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from ascend_kernels.schedule.line_work import line_key, line_work
from ascend_kernels.schedule.schedule import Schedule
from ascend_kernels.schedule.simulated_cycles import STANDINGS, TASKS
from ascend_kernels.schedule.views.schedule_differences import PARTS, differences
from ascend_kernels.schedule.views.task_times import simulated_task_times
from pypto_cast.kernel.reports.task_timeline import timeline_part
from pypto_cast.kernel.reports.ub_picture import ub_part
from pypto_cast.report.notebook import notebook_html
from pypto_cast.report.report import Column, Fact, Report, Table, columns, plain


@dataclass(slots=True)
class _LineSum:
    """The work of a line in all tasks of one run of each body."""

    opcodes: Counter[str] = field(default_factory=Counter)
    copied_bytes: int = 0
    cycles: int | None = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleDiff:
    """Two schedules, compared by the parts of their leaves and tasks and by source line.

    Attributes:
        first, second: the schedules, of any origin.
        first_name, second_name: their names in the report.
    """

    first: Schedule
    second: Schedule
    first_name: str = "first"
    second_name: str = "second"

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that differ: leaves, tasks, operations, order, addresses, peak, flags."""
        return differences(self.first, self.second)

    @property
    def is_equal(self) -> bool:
        """True if no part differs; names of leaves and tensors do not count."""
        return not self.parts

    @property
    def report(self) -> Report:
        """The figures of both, the lines whose work differs, and the pictures of both."""
        found = self.parts
        kernels = dict.fromkeys((self.first.kernel, self.second.kernel))
        verdict = f"they differ in {', '.join(found)}" if found else "no part differs"
        both = (self.first_name, self.first), (self.second_name, self.second)
        return Report(
            kind="schedule-diff",
            title=f"{' and '.join(kernels)}: {verdict}",
            standing=STANDINGS[TASKS],
            facts=(
                Fact(key="first", value=self.first_name, label="first"),
                Fact(key="second", value=self.second_name, label="second"),
                *plain(
                    equal=not found,
                    parts={part: part not in found for part in PARTS},
                    cycles_standing=STANDINGS[TASKS],
                ),
            ),
            tables=(self._figures(), self._lines()),
            notes=(f"{STANDINGS[TASKS][0].upper()}{STANDINGS[TASKS][1:]}.",),
            parts=tuple(
                dataclasses.replace(part, kind=f"{part.kind}-{n}", title=f"{part.title}: {name}")
                for n, (name, schedule) in enumerate(both)
                for part in (ub_part(schedule), *timeline_part(schedule))
            ),
        )

    def _figures(self) -> Table:
        pairs = zip(_figures_of(self.first), _figures_of(self.second), strict=True)
        rows = [
            (name, one, other, None if one is None or other is None else other - one)
            for (name, one), (_, other) in pairs
        ]
        return Table(
            key="figures",
            caption="Figures of one run of each body",
            columns=(
                Column(key="figure", heading="figure", is_name=True),
                *columns(first="first", second="second"),
                Column(key="more", heading="more in\nthe second", spec="+,"),
            ),
            rows=rows,
        )

    def _lines(self) -> Table:
        one, other = _sums(self.first), _sums(self.second)
        rows = []
        for place in sorted({*one, *other}, key=line_key):
            a, b = one.get(place, _LineSum()), other.get(place, _LineSum())
            if a != b:
                rows.append(
                    (
                        *(place, a.opcodes.total(), b.opcodes.total()),
                        *(a.copied_bytes, b.copied_bytes, a.cycles, b.cycles),
                        *(_words(a.opcodes - b.opcodes), _words(b.opcodes - a.opcodes)),
                    )
                )
        return Table(
            key="lines",
            caption="Lines whose work differs, of all tasks of one run of each body",
            columns=columns(
                line="line",
                first_operations="operations\nfirst",
                second_operations="\nsecond",
                first_copied_bytes="bytes moved\nfirst",
                second_copied_bytes="\nsecond",
                first_cycles="cycles\nfirst",
                second_cycles="\nsecond",
                first_alone="more in the first",
                second_alone="more in the second",
            ),
            rows=rows,
        )

    def _repr_html_(self) -> str:
        return notebook_html(self.report)

    def __str__(self) -> str:
        report = self.report
        lines = [report.title, f"  first: {self.first_name}", f"  second: {self.second_name}"]
        for table in report.tables:
            for row in table.texts():
                named = zip((table.columns[at].label for at in table.places), row, strict=True)
                lines.append("  " + ", ".join(f"{label} {text}".strip() for label, text in named))
        return "\n".join(lines)


def _figures_of(schedule: Schedule) -> Iterator[tuple[str, int | None]]:
    work = line_work(schedule.leaves, schedule.bodies)
    ends = [simulated_task_times(schedule, body)[1] for body in schedule.bodies]
    known = [each for each in ends if each is not None]
    yield "leaves", len(schedule.leaves)
    yield "tasks", sum(body.task_count for body in schedule.bodies)
    yield "tile operations", sum(each.operations * each.tasks for each in work)
    yield "bytes moved", sum(each.copied_bytes * each.tasks for each in work)
    yield "cycles", sum(known) if len(known) == len(ends) else None
    yield "UB as allocated, B", schedule.peak_ub_bytes
    yield "UB needed, B", schedule.needed_ub_bytes


def _sums(schedule: Schedule) -> dict[str, _LineSum]:
    found: dict[str, _LineSum] = {}
    for each in line_work(schedule.leaves, schedule.bodies):
        held = found.setdefault(each.place, _LineSum())
        held.opcodes.update({name: count * each.tasks for name, count in each.opcodes})
        held.copied_bytes += each.copied_bytes * each.tasks
        is_known = held.cycles is not None and each.cycles is not None
        held.cycles = (held.cycles or 0) + (each.cycles or 0) * each.tasks if is_known else None
    return found


def _words(opcodes: Counter[str]) -> str:
    return ", ".join(f"{count} x {name}" for name, count in opcodes.items())
