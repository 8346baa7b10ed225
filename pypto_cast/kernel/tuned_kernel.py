"""Ranked tile shapes of a kernel, as a value and as a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from ascend_kernels.schedule.simulated_cycles import STANDINGS
from pypto_cast.report.notebook import notebook_html
from pypto_cast.report.report import (
    Column,
    Fact,
    Report,
    Table,
    Words,
    columns,
    json_text,
    plain,
    said,
)
from pypto_cast.report.text_format import plural, printable
from tiling.grid import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCandidate:
    """Tile shapes of all calls, as planned.

    Attributes:
        rank: by cycles, from 1 on.
        varied: the line whose tile shape was varied; None: those of several lines.
        tiles: the tile shape that each line sets.
        cycles: of all bodies, one after another, by the model that ranks.
        least_cycles: those that no plan goes below.
        tasks, leaves, busy_cores: of one run of each body.
        moved_bytes: between GM and UB, in one run of each body.
        pipe, pipe_cycles: the pipe with most work, and its cycles in all tasks.
        peak_ub_bytes, needed_ub_bytes: of the leaf that takes most.
        reason: its place, against the runner-up or the best.
    """

    rank: int
    varied: int | None
    tiles: Mapping[int, Shape]
    cycles: int
    least_cycles: int
    tasks: int
    leaves: int
    busy_cores: int
    moved_bytes: int
    pipe: str
    pipe_cycles: int
    peak_ub_bytes: int
    needed_ub_bytes: int
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedKernel:
    """Ranked tile shapes of a kernel.

    Attributes:
        kernel, chip, release: that it was planned for.
        model: that ranks: "tasks", or "latencies" where an opcode has no cycles by it.
        files: of the lines that set tile shapes.
        best: the tile shape of each line that sets one.
        candidates: that fit, the best first.
        present: the kernel as it stands; None where it does not fit.
        looked_at: candidates that were looked at; with `left` they are all.
        combinations: of the tile shapes of all calls, of which candidates vary one at a time.
        planned, excluded, not_fitting: of those looked at, which they add up to; the cycles of
            excluded ones are not below the best ones, by a bound.
        left: candidates that were not looked at, as time was over.
        notes: on the search.
    """

    kernel: str
    chip: str
    release: str
    model: str
    files: Mapping[int, str]
    best: Mapping[int, Shape]
    candidates: tuple[KernelCandidate, ...]
    present: KernelCandidate | None
    looked_at: int
    combinations: int
    planned: int
    excluded: int
    not_fitting: int
    left: int = 0
    notes: tuple[str, ...] = ()

    @property
    def standing(self) -> str:
        """The model that ranks, with its source."""
        return standing_of(self.model)

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines to paste, each with its place in a comment."""
        return tuple(
            f"pypto.set_vec_tile_shapes({', '.join(map(str, tile))})"
            f"  # {printable(PurePath(self.files[line]).name)}:{line}"
            for line, tile in self.best.items()
        )

    @property
    def report(self) -> Report:
        """The candidates, the lines to paste, and how many were looked at."""
        keys = [each for each in KernelCandidate.__dataclass_fields__ if each != "tiles"]
        headings = {
            **dict.fromkeys(keys),
            **{"rank": "", "cycles": "cycles", "tasks": "tasks", "busy_cores": "cores"},
            **{"peak_ub_bytes": "UB B"},
        }
        table = Table(
            key="candidates",
            caption=f"{self.kernel} by its tile shapes; {self.standing}",
            columns=(
                *columns(rank=""),
                Column(key="tiles", heading="tile shapes"),
                *columns(**{key: name for key, name in headings.items() if key != "rank"}),
            ),
            rows=[_cells(each, keys) for each in self.candidates],
        )
        return Report(
            kind="tune-kernel",
            title=f"{self.kernel}: {plural(len(self.candidates), 'candidate')}",
            standing=self.standing,
            tables=(table,),
            totals=(
                *plain(kernel=self.kernel, chip=self.chip, release=self.release),
                *plain(best=_by_line(self.best), lines=list(self.lines)),
                *plain(present_cycles=None if self.present is None else self.present.cycles),
                *plain(looked_at=self.looked_at, combinations=self.combinations),
                *plain(planned=self.planned, excluded=self.excluded),
                *plain(not_fitting=self.not_fitting, left=self.left, model=self.model),
                *(said(f"place {each.rank}", each.reason) for each in self.candidates[:3]),
                said("best", "\n".join(self.lines)),
                said("as it stands", self._present),
                said("search", self._counted),
                said("notes", "\n".join(self.notes)),
                Fact(key="not_measured", value=self.standing, label="rests on"),
            ),
        )

    @property
    def _present(self) -> str:
        return "does not fit" if self.present is None else f"{self.present.cycles:,} cycles"

    @property
    def _counted(self) -> str:
        count = self.looked_at + self.left
        varied = ""
        if self.combinations > count:
            varied = (
                "; calls are varied one at a time, and all together they have "
                f"{self.combinations:,} combinations"
            )
        return (
            f"{self.looked_at:,} of {plural(count, 'candidate')} looked at: "
            f"{self.planned:,} planned, {self.excluded:,} excluded by a bound of their cycles, "
            f"{self.not_fitting:,} not planned or too large for UB; {self.left:,} left{varied}"
        )

    def to_json(self) -> str:
        """The figures as JSON; "report_kind" is "tune-kernel"."""
        return json_text(self.report)

    def __str__(self) -> str:
        return "\n  ".join(
            (
                f"{self.kernel}: {plural(len(self.candidates), 'candidate')}; as it stands "
                f"{self._present}",
                *self.lines,
                *(
                    f"{each.rank:>3}  {each.cycles:>10,} cycles  {tiles_text(each.tiles)}: "
                    f"{each.reason}"
                    for each in self.candidates
                ),
                self._counted,
                *self.notes,
                self.standing,
            )
        )

    def _repr_html_(self) -> str:
        return notebook_html(self.report)


def _cells(each: KernelCandidate, keys: Sequence[str]) -> tuple[object, ...]:
    first, *rest = (getattr(each, key) for key in keys)
    return first, Words(value=_by_line(each.tiles), text=tiles_text(each.tiles)), *rest


def tiles_text(tiles: Mapping[int, Shape]) -> str:
    return ", ".join(f"line {line}: {list(tile)}" for line, tile in tiles.items())


def _by_line(tiles: Mapping[int, Shape]) -> dict[str, list[int]]:
    return {str(line): list(tile) for line, tile in tiles.items()}


def standing_of(model: str) -> str:
    """The model that ranks, with its source."""
    return f"model {model}: {STANDINGS[model]}"
