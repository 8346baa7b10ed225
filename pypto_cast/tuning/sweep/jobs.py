"""A job of a sweep: one tile search with all that its result depends on."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from pypto_cast.dask_pool import code_version
from pypto_cast.dtypes.data_types import CastMode, DataType, SaturationMode
from pypto_cast.tuning.records import Record, asked_fields, record_of
from pypto_cast.tuning.tune import tune
from tiling.cost import COST_SETS, DEFAULT_COST_SET, STARTUP_RULE, CostParameters, figure_names
from tiling.grid import Shape
from tiling.ranking import Objective

Figures = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepJob:
    """One call of `tune`. It can be pickled, and two jobs are equal if their results are.

    Attributes:
        shape: the tensor's.
        src: the dtype to cast from.
        dst: the dtype to cast to.
        mode: as for `cast`; one that the pair lacks becomes its default, and a note says so.
        satmode: as for `cast`.
        chip: the vendor's name.
        objective: as for `tune`.
        top: candidates in the result.
        max_tiles: as for `tune`.
        cost_set: name of the set that ranks.
        figures: all of its figures, so that a result is not taken for that of another set.
        code: `code_version()` of whoever made the job.
    """

    shape: Shape
    src: DataType
    dst: DataType
    mode: CastMode
    satmode: SaturationMode
    chip: str
    objective: Objective
    top: int
    max_tiles: int
    cost_set: str
    figures: Figures
    code: str

    @property
    def key(self) -> str:
        """SHA-256 of the job as canonical JSON, by which its result is found again."""
        said = {**asked_fields(self), "figures": dict(self.figures), "code": self.code}
        text = json.dumps(said, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def __str__(self) -> str:
        return (
            f"{list(self.shape)} {self.src} -> {self.dst}, {self.mode.name}, "
            f"satmode {self.satmode.name}, {self.chip}"
        )


def evaluate(job: SweepJob) -> Record:
    """Carry a job out, in any process that has the same code.

    Raises:
        RuntimeError: the code here is not that of whoever made the job.
    """
    if job.code != code_version():
        raise RuntimeError(
            f"this worker runs pypto-cast {code_version()}, the sweep {job.code}; install the same "
            "one on all machines"
        )
    found = tune(
        job.shape,
        job.src,
        job.dst,
        chip=job.chip,
        mode=job.mode,
        satmode=job.satmode,
        objective=job.objective,
        top=job.top,
        max_tiles=job.max_tiles,
        cost_set=_parameters(job),
    )
    return record_of(job.key, found)


def figures_of(parameters: CostParameters) -> Figures:
    """All figures of a set, in its order."""
    return tuple((name, getattr(parameters, name)) for name in (*figure_names(), STARTUP_RULE))


def _parameters(job: SweepJob) -> CostParameters:
    """The set, made anew from its figures: its table of sources cannot be pickled."""
    if job.cost_set in COST_SETS:
        return COST_SETS[job.cost_set]
    return DEFAULT_COST_SET.replaced(job.cost_set, **dict(job.figures))
