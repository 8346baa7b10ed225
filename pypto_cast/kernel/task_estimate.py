"""The cycles of a call of a kernel by the model "tasks": a task for each tile, on its cores."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from ascend_kernels.schedule.schedule import Schedule
from ascend_kernels.schedule.simulated_cycles import STANDINGS, TASKS, leaf_cycles
from ascend_kernels.schedule.views.task_times import ScheduleCycles, schedule_cycles
from pypto_cast.report.notebook import notebook_html
from pypto_cast.report.report import Column, Fact, Report, Table, columns, plain
from pypto_cast.report.text_format import plural

_OTHER_MODEL: Final = (
    "the model loop, a kernel of casts whose cores loop over tiles, may rank tile shapes otherwise"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEstimate:
    """The estimated cycles of all tasks of a call, as upstream's simulator counts them.

    Attributes:
        schedule: the tasks.
        total: its cycles, and the opcodes that have none.
    """

    schedule: Schedule
    total: ScheduleCycles

    @classmethod
    def of(cls, schedule: Schedule) -> TaskEstimate:
        """The estimate of a schedule."""
        return cls(schedule=schedule, total=schedule_cycles(schedule))

    @property
    def model(self) -> str:
        """The name of the model, "tasks"."""
        return self.total.model

    @property
    def cycles(self) -> int | None:
        """From the first task until the last result is known; None if an operation has none."""
        return self.total.cycles

    @property
    def report(self) -> Report:
        """The sum, and a row for each leaf."""
        total = self.total
        tasks = Counter(task.leaf for body in self.schedule.bodies for task in body.tasks)
        rows = []
        for place, leaf in enumerate(self.schedule.leaves):
            cycles, missing = leaf_cycles(leaf)
            rows.append((leaf.name, tasks[place], cycles, ", ".join(sorted(missing)) or None))
        return Report(
            kind="task-estimate",
            title=f"kernel {self.schedule.kernel}, model {self.model}",
            standing=STANDINGS[TASKS],
            facts=(
                *plain(kernel=self.schedule.kernel, model=self.model),
                Fact(key="cycles", value=total.cycles, label="cycles", spec=",.0f"),
                Fact(key="tasks", value=total.tasks, label="tasks"),
                Fact(key="cores", value=total.cores, label="vector cores"),
                Fact(
                    key="not_estimated",
                    value=", ".join(total.not_estimated) or None,
                    label="not estimated",
                ),
            ),
            tables=(
                Table(
                    key="leaves",
                    caption="Leaves, and the cycles of one task of each",
                    columns=(
                        Column(key="leaf", heading="leaf", is_name=True),
                        *columns(tasks="tasks of\none iteration"),
                        Column(key="cycles", heading="cycles", spec=",.0f"),
                        *columns(not_estimated="not estimated"),
                    ),
                    rows=rows,
                ),
            ),
            notes=(f"{STANDINGS[TASKS][0].upper()}{STANDINGS[TASKS][1:]}; {_OTHER_MODEL}.",),
        )

    def _repr_html_(self) -> str:
        return notebook_html(self.report)

    def __str__(self) -> str:
        total = self.total
        known = f"{total.cycles:,} cycles" if total.cycles is not None else "not estimated: "
        known += ", ".join(total.not_estimated)
        return (
            f"kernel {self.schedule.kernel}: {known}, model {self.model}, "
            f"{plural(total.tasks, 'task')} on {total.cores} vector cores ({STANDINGS[TASKS]}; "
            f"{_OTHER_MODEL})"
        )
