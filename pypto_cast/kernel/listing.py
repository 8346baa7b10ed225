"""Lists the casts of a kernel, their plans and programs, and their estimated cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from ascend_kernels.program import TileProgram
from pypto_cast.options.context import current
from pypto_cast.recording.steps import CastRecord, RecordedStep
from pypto_cast.report.notebook import notebook_html
from pypto_cast.report.report import Column, Fact, Report, Table, columns, headed, plain, said
from pypto_cast.report.text_format import plural
from simulator.traces.trace import timeline, trace
from tiling.cost import CostParameters, cost_set
from tiling.plan import TilePlan

if TYPE_CHECKING:
    from ascend_kernels.schedule.schedule import Schedule

_Step = TypeVar("_Step", bound=RecordedStep)
Cost: TypeAlias = str | CostParameters | None
_LOOP: Final = "loop"
"""The model of an estimate: casts alone, each a kernel whose cores loop over tiles."""
_OTHER_MODEL: Final = (
    "model tasks, a task for each tile, counts all operations and may rank tile shapes otherwise: "
    "estimate(..., model='tasks')"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelProgram:
    """The casts of one call of a kernel, in the order they ran, and the operations around them.

    Iterating it gives their tile programs; its text lists each different one once. A program reads
    the part of a tensor that a view shows as its `gm.x`, and writes its whole `gm.y`. Upstream's
    compiler may join casts that hand data on; here each is a program of its own.

    Attributes:
        kernel: the kernel's name.
        casts: what ran, with the line it stands in.
        steps: the same, and the operations around them.
    """

    kernel: str
    casts: tuple[CastRecord, ...]
    steps: tuple[RecordedStep, ...] = ()

    def __len__(self) -> int:
        return len(self.casts)

    def __iter__(self) -> Iterator[TileProgram]:
        return (cast.program for cast in self.casts)

    def __getitem__(self, index: int) -> TileProgram:
        return self.casts[index].program

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """The AscendC program of each cast as a schedule, of origin "ascendc".

        A task a core, which loops over its tiles; `Kernel.schedule` has a task a tile.

        Raises:
            ValueError: casts of INT4, or under `options(inf_nan_mode=False)`.
        """
        from ascend_kernels.schedule.cast_schedule import cast_schedule
        from pypto_cast.kernel.reports.schedule_report import with_notebook

        return tuple(
            with_notebook(cast_schedule(each.program, PurePath(each.file).name, each.line))
            for each in self.casts
        )

    @property
    def plans(self) -> tuple[TilePlan, ...]:
        """The tile plan of each cast."""
        return tuple(cast.program.plan for cast in self.casts)

    def __str__(self) -> str:
        alike = _counted(self.steps or self.casts)
        programs = sum(isinstance(step, CastRecord) for step, _ in alike)
        head = f"kernel {self.kernel}: {len(self.casts)} casts, {programs} different programs"
        operations = len(self.steps or self.casts) - len(self.casts)
        lines = [f"{head}, {operations} operations" if operations else head]
        for step, count in alike:
            lines.append(f"  {count} x {step}" if count > 1 else f"  {step}")
            if isinstance(step, CastRecord):
                lines += [f"    {line}" for line in str(step.program).splitlines()]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The estimated cost of the casts of a call of a kernel; its other operations have none.

    Attributes:
        kernel: the kernel's name.
        parameters: the cost set; its `sources` say what each figure rests on.
        casts: each cast with the cycles from its start until its last core is done.
        uncounted: the number of operations that are no casts.
    """

    kernel: str
    parameters: CostParameters
    casts: tuple[tuple[CastRecord, float], ...]
    uncounted: int = 0

    @property
    def operations(self) -> int:
        """The number of operations, casts among them."""
        return len(self.casts) + self.uncounted

    @property
    def cycles(self) -> float:
        """All casts one after the other; the launch comes on top. NaN of a kernel without casts."""
        if not self.casts:
            return math.nan
        return sum(cycles for _, cycles in self.casts)

    @property
    def seconds(self) -> float:
        """The time of `cycles` at the clock of the cost set; NaN likewise."""
        return self.cycles / self.parameters.clock_hz

    @property
    def report(self) -> Report:
        """The sum, and a row for each different cast; cycles of the cost set's clock."""
        cycles_of = {id(cast): cycles for cast, cycles in self.casts}
        rows = []
        for cast, count in _counted([cast for cast, _ in self.casts]):
            plan, resolution = cast.program.plan, cast.program.resolution
            mode = None if resolution.mode is None else f"CAST_{resolution.mode}"
            rows.append(
                (
                    *(str(resolution.rule.src), str(resolution.rule.dst), mode),
                    *(list(plan.shape), list(plan.tile_shape), count, cycles_of[id(cast)]),
                    *(cast.file, cast.line, f"{PurePath(cast.file).name}:{cast.line}"),
                )
            )
        known = self.cycles if self.casts else None
        shown = columns(src="from", dst="to", mode="mode", shape="shape", tile_shape="tile shape")
        return Report(
            kind="estimate",
            title=f"kernel {self.kernel}",
            standing=self.parameters.standing,
            facts=(
                *plain(kernel=self.kernel, not_measured=self.parameters.standing),
                Fact(key="cost_set", value=self.parameters.name, label="cost set"),
                Fact(key="cycles", value=known, label="cycles", spec=",.0f"),
                Fact(
                    key="microseconds",
                    value=known and 1e6 * self.seconds,
                    label="us",
                    spec=",.2f",
                ),
                Fact(key="operations", value=self.operations, label="operations"),
            ),
            tables=(
                Table(
                    key="casts",
                    caption=f"Casts of {self.kernel}, estimated and never measured",
                    columns=(
                        *shown,
                        Column(key="count", heading="times"),
                        Column(key="cycles", heading="cycles", spec=",.0f"),
                        *columns(file=None, line=None),
                        *headed("at"),
                    ),
                    rows=rows,
                ),
            ),
            totals=(
                said("model", "loop: casts alone, each a kernel whose cores loop over tiles"),
                said("other model", _OTHER_MODEL),
            ),
        )

    def _repr_html_(self) -> str:
        return notebook_html(self.report)

    def __str__(self) -> str:
        known = f"{self.cycles:.0f} cycles, {self.seconds * 1e6:.2f} us"
        if not self.casts:
            known = "no estimate"
        if self.uncounted or not self.casts:
            known += f", casts only: {len(self.casts)} of {plural(self.operations, 'operation')}"
        lines = [
            f"kernel {self.kernel}: {known}, model loop, cost set {self.parameters} (estimated, "
            "never measured)"
        ]
        cycles_of = {id(cast): cycles for cast, cycles in self.casts}
        for cast, count in _counted([cast for cast, _ in self.casts]):
            lines.append(f"  {count} x {cycles_of[id(cast)]:.0f} cycles: {cast}")
        return "\n".join((*lines, f"  {_OTHER_MODEL}"))


def checked_model(model: str | None, cost: Cost) -> str:
    """The model of an estimate; None is "loop".

    Raises:
        ValueError: no such model, or a cost set for the model "tasks".
    """
    from ascend_kernels.schedule.simulated_cycles import TASKS

    if model not in (None, TASKS, _LOOP):
        raise ValueError(f"unknown model {model!r}; known: {TASKS}, {_LOOP}")
    if model == TASKS and cost is not None:
        raise ValueError(f"the model {TASKS} takes no cost set, here {cost}; {_LOOP!r} does")
    return model or _LOOP


def estimated(program: KernelProgram, cost: Cost) -> Estimate:
    """Trace every different program once and add up."""
    chosen = current().cost_set if cost is None else cost
    parameters = cost_set(chosen) if isinstance(chosen, str) else chosen
    cycles: dict[TileProgram, float] = {}
    for tile_program in program:
        if tile_program not in cycles:
            cycles[tile_program] = _makespan_cycles(tile_program, parameters)
    return Estimate(
        kernel=program.kernel,
        parameters=parameters,
        casts=tuple((cast, cycles[cast.program]) for cast in program.casts),
        uncounted=len(program.steps) - len(program.casts),
    )


def _makespan_cycles(program: TileProgram, parameters: CostParameters) -> float:
    cores = (timeline(trace(program, core, parameters)) for core in program.cores)
    return max(core.makespan_cycles for core in cores)


def _counted(steps: Sequence[_Step]) -> list[tuple[_Step, int]]:
    """The first step of each program or operation and line, and how often it ran."""
    first: dict[tuple[object, str, int], _Step] = {}
    count: Counter[tuple[object, str, int]] = Counter()
    for step in steps:
        what = step.program if isinstance(step, CastRecord) else (step.name, step.result)
        key = (what, step.file, step.line)
        first.setdefault(key, step)
        count[key] += 1
    return [(step, count[key]) for key, step in first.items()]
