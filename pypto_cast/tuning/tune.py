"""Ranks the tile shapes of a cast by estimated cost, with reasons and the range over cost sets."""

from __future__ import annotations

import dataclasses
import operator
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, SupportsIndex

from ascend_kernels.matrix import Resolution
from ascend_kernels.program import TileProgram, lower
from ascend_kernels.vector_work import element_bits, vector_work
from pypto_cast.cast.cast_plan import resolve_cast
from pypto_cast.dtypes.data_types import (
    CastMode,
    DataType,
    SaturationMode,
    check_choice,
    check_dtype,
)
from pypto_cast.options.context import current
from pypto_cast.report.notebook import notebook_html, plan_table
from pypto_cast.report.report import Column, Report, Table, columns, plain, said
from pypto_cast.report.text_format import plural, printable
from pypto_cast.tensors.tensor import Tensor
from pypto_cast.tuning.records import candidate_fields, request_fields, result_fields
from tiling import cost
from tiling import ranking as tuner
from tiling.chips import chip_named
from tiling.cost import NOT_MEASURED, CostParameters
from tiling.cost_file import read_cost_set
from tiling.grid import Shape
from tiling.loads import Job
from tiling.plan import ShapeError, TilePlan, plan
from tiling.ranking import Candidate, Objective, TuningResult
from tiling.search import MAX_TILES

_HIDDEN: Final = dict.fromkeys(
    (
        *("low_cycles", "high_cycles", "busy_cores", "is_double_buffered", "warnings", "reason"),
        *("cycles_by_set", "pipe_cycles"),
    )
)
CANDIDATE_COLUMNS: Final = (
    Column(key="rank", heading=""),
    Column(key="tile_shape", heading="tile shape"),
    Column(key="cycles", heading="cycles", spec=",.0f"),
    Column(heading="range"),
    Column(key="microseconds", heading="us", spec=",.2f"),
    Column(key="gb_per_second", heading="GB/s", spec=",.0f"),
    Column(key="bound_share", heading="bound", spec=".0%"),
    Column(key="limit", heading="limit"),
    Column(key="tile_count", heading="tiles"),
    Column(key="ub_bytes", heading="UB B"),
    Column(key="tail_waste", heading="outside", spec=".1%"),
    *columns(**_HIDDEN),
)


def candidate_cells(candidate: Candidate) -> tuple[object, ...]:
    """A row under `CANDIDATE_COLUMNS`; the range is over all cost sets."""
    cost = candidate.estimate
    fields = {
        **candidate_fields(candidate),
        "": f"{cost.low_cycles:,.0f} to {cost.high_cycles:,.0f}",
        "cycles_by_set": dict(cost.cycles_by_set),
        "pipe_cycles": {str(pipe): cycles for pipe, cycles in cost.pipe_cycles.items()},
    }
    return tuple(fields[column.key] for column in CANDIDATE_COLUMNS)


CostSet = str | os.PathLike[str] | CostParameters


@dataclass(frozen=True, slots=True, kw_only=True)
class CastJob(Job):
    """A job of the tuner with the cast that it is for.

    Attributes:
        src: the dtype to cast from.
        dst: the dtype to cast to.
        mode: the mode asked for.
        satmode: the satmode asked for.
        resolution: the cast as A2/A3 carries it out.
    """

    src: DataType
    dst: DataType
    mode: CastMode
    satmode: SaturationMode
    resolution: Resolution


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedCast(TuningResult):
    """Ranked tile shapes of a cast, the best of which can be planned and run."""

    job: CastJob

    @property
    def plan(self) -> TilePlan:
        """The plan of the best tile shape."""
        return plan(self.shape, self.best, self.bits, self.chip)

    @property
    def program(self) -> TileProgram:
        """The instructions of the cores under that plan."""
        return lower(self.plan, self.job.resolution)

    @property
    def title(self) -> str:
        """The cast in a line: shape, formats, the mode that applies."""
        rule = self.job.resolution.rule
        mode = self.job.resolution.mode
        words = [f"{list(self.shape)}: {rule.src} -> {rule.dst}"]
        if mode is not None:
            words.append(f"CAST_{mode}")
        if self.job.satmode is SaturationMode.OFF and rule.off:
            words.append("SaturationMode.OFF")
        return ", ".join(words)

    @property
    def report(self) -> Report:
        """The question and the result; cycles by cost set, time in us, bytes."""
        first, name = self.candidates[0], printable(self.parameters.name)
        best = first.estimate
        call = f"pypto.set_vec_tile_shapes({', '.join(map(str, self.best))})"
        views = [
            {
                "cost_set": view.cost_set,
                "best": list(view.best),
                "best_cycles": view.best_cycles,
                "chosen_cycles": view.chosen_cycles,
            }
            for view in self.views.values()
        ]
        table = Table(
            key="candidates",
            caption=f"{self.title}, by cost set {self.parameters.name}; {NOT_MEASURED}",
            columns=CANDIDATE_COLUMNS,
            rows=[candidate_cells(candidate) for candidate in self.candidates],
        )
        return Report(
            kind="tune",
            title=f"{self.title}, {plural(self.legal_count, 'legal tile shape')}",
            standing=self.parameters.standing,
            tables=(table,),
            totals=(
                *plain(**request_fields(self), best=list(self.best), **result_fields(self)),
                *plain(not_measured=self.parameters.standing, views=views),
                said("best", f"{call}: {first.reason}"),
                said(
                    "time",
                    f"{best.microseconds:,.2f} us, {best.cycles:,.0f} cycles; "
                    f"{best.low_cycles:,.0f} to {best.high_cycles:,.0f} cycles over all cost sets; "
                    f"{best.gb_per_second:,.0f} GB/s, {best.bound_share:.0%} of the bound",
                ),
                said("chip", f"{self.chip}, {first.busy_cores} of {first.vector_cores} cores busy"),
                said("warnings", "\n".join(first.warnings)),
                said("choice", printable(self.stability)),
                said("notes", "\n".join(map(printable, self.notes))),
                said(
                    "cost set",
                    f"{name}, objective {self.objective}; {printable(self.parameters.standing)}",
                ),
            ),
        )

    def _repr_html_(self) -> str:
        return notebook_html(self.report, plan_table(self.plan))


def tune(
    x_or_shape: Tensor | Sequence[SupportsIndex],
    src: DataType,
    dst: DataType,
    *,
    chip: str | None = None,
    mode: CastMode | None = None,
    satmode: SaturationMode = SaturationMode.ON,
    objective: Objective = "time",
    top: int = 10,
    max_tiles: int = MAX_TILES,
    cost_set: CostSet | None = None,
) -> TunedCast:
    """Rank the legal tile shapes of a cast by estimated cost.

    `pypto.set_vec_tile_shapes(*pypto.tune(x, pypto.DT_FP32, pypto.DT_FP16).best)` sets the best
    one; it is also what the planner takes where none is set. No value is computed and no figure was
    measured: the result names its cost set and gives the range over all of them.

    Args:
        x_or_shape: a tensor, of which shape and dtype count, or its shape: 1 to 4 positive ints.
        src: the dtype to cast from.
        dst: the dtype to cast to.
        chip: the vendor's name, such as "Ascend910B3"; None takes that of the context, which is
            this one if none was set.
        mode: as for `cast`; None is CAST_NONE.
        satmode: as for `cast`. OFF takes more vector work on some pairs.
        objective: "time" for the fewest cycles; "ub" for the least UB among the tile shapes that
            take at most 5 % more; "robust" for the tile shape that is least bad over all sets: at
            worst the least slower than a set's own best. The planner takes that one.
        top: candidates to return, at least 1.
        max_tiles: tile shapes that make so many tiles or more are left out; upstream advises
            against 18000. If all do, none is left out, and a note says so.
        cost_set: the name of a set, a TOML file (`tiling.cost_file` shows one), or a set; None
            takes what `options(facts=...)` measured, or the default set.

    Raises:
        TypeError: an argument of the wrong type, or a tensor of another dtype than `src`.
        UnsupportedCastError: A2/A3 does not convert this pair.
        CastModeError: the pair lacks the mode, under `options(strict=True)`.
        ShapeError: no cast takes the shape.
        ValueError: an unknown chip, objective, cost set; `top` or `max_tiles` below 1; a file that
            is no cost set.
        OSError: a file that cannot be read.

    Source: figures of the cost sets as each of them says; legality from upstream pypto's documents.
    """
    check_dtype(src)
    check_dtype(dst)
    mode = CastMode.CAST_NONE if mode is None else mode
    check_choice("mode", mode, CastMode)
    check_choice("satmode", satmode, SaturationMode)
    shape = _shape_of(x_or_shape, src)
    planned_for = current().chip if chip is None else chip_named(chip)
    resolution = resolve_cast(src, dst, mode, satmode, family=planned_for.isa)
    job = CastJob(
        src=src,
        dst=dst,
        mode=mode,
        satmode=satmode,
        resolution=resolution,
        shape=shape,
        bits=element_bits(resolution),
        work=vector_work(resolution, current().controls),
        chip=planned_for,
    )
    result = tuner.tune(
        job,
        parameters=_parameters(cost_set),
        objective=objective,
        top=top,
        max_tiles=max_tiles,
    )
    said = tuple(text for _, text in resolution.diagnostics)
    ranked = {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
    return TunedCast(**{**ranked, "job": job, "notes": said + result.notes})


def _shape_of(x_or_shape: object, src: DataType) -> Shape:
    if isinstance(x_or_shape, Tensor):
        if x_or_shape.dtype is not src:
            raise TypeError(f"the tensor is {x_or_shape.dtype}, and src says {src}")
        entries: Sequence[object] = x_or_shape.shape
    elif isinstance(x_or_shape, Sequence) and not isinstance(x_or_shape, (str, bytes)):
        entries = x_or_shape
    else:
        raise TypeError(
            f"tune takes a pypto Tensor or a shape such as [1024, 512], not {x_or_shape!r}"
        )
    shape = tuple(map(_extent, entries))
    if any(extent < 1 for extent in shape):
        raise ShapeError(f"a tile shape needs every length of the tensor; shape {list(shape)}")
    return shape


def _extent(entry: object) -> int:
    if isinstance(entry, bool) or not isinstance(entry, SupportsIndex):
        raise TypeError(f"a shape is 1 to 4 positive ints; got {entry!r}")
    return operator.index(entry)


def _parameters(given: CostSet | None) -> CostParameters:
    if given is None:
        return current().cost_set
    if isinstance(given, CostParameters):
        return given
    if isinstance(given, str):
        return cost.cost_set(given)
    if isinstance(given, os.PathLike):
        return read_cost_set(Path(given))
    raise TypeError(f"cost_set must be a name, a path or a set, not {given!r}")
