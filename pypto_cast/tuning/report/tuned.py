"""A tuning result with the cast that it is for, so that its best can be planned and run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ascend_kernels.matrix import Resolution
from ascend_kernels.program import TileProgram, lower
from ascend_kernels.vector_work import vector_work
from pypto_cast.cast_plan import resolved
from pypto_cast.dtypes import CastMode, DataType, SaturationMode
from pypto_cast.tuning.tune import CostSet, tune
from tiling.cost import DEFAULT_COST_SET
from tiling.loads import Job
from tiling.plan import TilePlan, plan
from tiling.ranking import Objective, TuningResult
from tiling.search import MAX_TILES


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedCast:
    """A cast and its ranked tile shapes.

    Attributes:
        src: the dtype to cast from.
        dst: the dtype to cast to.
        mode: the mode asked for.
        satmode: the satmode asked for.
        resolution: the cast as A2/A3 carries it out.
        result: the ranked tile shapes.
    """

    src: DataType
    dst: DataType
    mode: CastMode
    satmode: SaturationMode
    resolution: Resolution
    result: TuningResult

    @property
    def job(self) -> Job:
        found = self.result
        return Job(
            shape=found.shape, bits=found.bits, work=vector_work(self.resolution), chip=found.chip
        )

    @property
    def plan(self) -> TilePlan:
        """The plan of the best tile shape."""
        found = self.result
        return plan(found.shape, found.best, found.bits, found.chip)

    @property
    def program(self) -> TileProgram:
        """What the cores run under that plan."""
        return lower(self.plan, self.resolution)

    @property
    def title(self) -> str:
        """The cast in a line: shape, formats, the mode that applies."""
        rule, mode = self.resolution.rule, self.resolution.mode
        words = [f"{list(self.result.shape)}: {rule.src} -> {rule.dst}"]
        if mode is not None:
            words.append(f"CAST_{mode}")
        if self.satmode is SaturationMode.OFF and rule.off:
            words.append("SaturationMode.OFF")
        return ", ".join(words)


def tuned(
    shape: Sequence[int],
    src: DataType,
    dst: DataType,
    *,
    chip: str,
    mode: CastMode = CastMode.CAST_NONE,
    satmode: SaturationMode = SaturationMode.ON,
    objective: Objective = "time",
    top: int = 10,
    max_tiles: int = MAX_TILES,
    cost_set: CostSet = DEFAULT_COST_SET,
) -> TunedCast:
    """Rank the tile shapes of a cast; arguments and errors are those of `pypto_cast.tune`."""
    result = tune(
        shape,
        src,
        dst,
        chip=chip,
        mode=mode,
        satmode=satmode,
        objective=objective,
        top=top,
        max_tiles=max_tiles,
        cost_set=cost_set,
    )
    return TunedCast(
        src=src,
        dst=dst,
        mode=mode,
        satmode=satmode,
        resolution=resolved(src, dst, mode, satmode),
        result=result,
    )
