"""The trace of a cast: its program against the clock, without a value of the tensor."""

from __future__ import annotations

import dataclasses
import itertools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from ascend_kernels.program import TileProgram, lower
from pypto_cast.cast.cast_plan import CastPlan, plan_cast
from pypto_cast.dtypes.data_types import CastMode, DataType, SaturationMode
from pypto_cast.tensors.tensor import Tensor
from simulator.traces.trace import Timeline, TraceEvent, timeline, trace
from tiling.cost import CostParameters


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedCast:
    """A cast to look at.

    Attributes:
        plan: what it will do.
        program: how the cores do it.
        parameters: what it is taken to cost.
        cores: those to look at.
    """

    plan: CastPlan
    program: TileProgram
    parameters: CostParameters
    cores: tuple[int, ...]

    def events(self) -> Iterator[TraceEvent]:
        """The events of one core after the other."""
        return itertools.chain.from_iterable(
            trace(self.program, core, self.parameters) for core in self.cores
        )

    def with_cores(self, cores: tuple[int, ...]) -> TracedCast:
        """The same with these of its cores."""
        return dataclasses.replace(self, cores=cores)

    def timeline(self) -> Timeline:
        """All events, added up."""
        return timeline(self.events())


def trace_cast(
    tensor: Tensor,
    dst: DataType,
    mode: CastMode,
    satmode: SaturationMode,
    parameters: CostParameters,
) -> TracedCast:
    """Plan the cast of a tensor in this context, on all cores that have work.

    Args:
        tensor: only its shape and dtype are read.
        dst: the dtype to cast to; not the tensor's.
        mode: how to round.
        satmode: the result of integers out of range.
        parameters: the cost set.

    Raises:
        ShapeError, TileShapeError, UnsupportedCastError, CastModeError: as `cast`.

    Warns:
        As `cast`.
    """
    plan = plan_cast(tuple(tensor.shape), tensor.dtype, dst, mode, satmode)
    for category, text in plan.diagnostics:
        warnings.warn(text, category, stacklevel=2)
    program = lower(plan.tiles, plan.resolution)
    return TracedCast(plan=plan, program=program, parameters=parameters, cores=tuple(program.cores))
