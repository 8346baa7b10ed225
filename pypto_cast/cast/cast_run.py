"""One cast to look at: carried out, with plan and report; or its program against the clock."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from ascend_kernels.program import TileProgram, lower
from pypto_cast.cast.api import cast
from pypto_cast.cast.cast_plan import CastPlan, is_unchanged, known_formats, plan_cast
from pypto_cast.cast.cast_report import CastReport, report
from pypto_cast.dtypes.data_types import CastMode, DataType, SaturationMode
from pypto_cast.tensors.tensor import Tensor
from simulator.traces.trace import Timeline, TraceEvent, timeline, trace
from tiling.cost import CostParameters
from tiling.plan import TileShapeWarning


@dataclass(frozen=True, slots=True, kw_only=True)
class CastRun:
    """A cast that has been carried out.

    Attributes:
        result: the tensor that `cast` gave.
        plan: None if the input came back as it was, having the dtype already.
        report: the counts and errors of the numbers.
    """

    result: Tensor
    plan: CastPlan | None
    report: CastReport


def run(source: Tensor, dst: DataType, mode: CastMode, satmode: SaturationMode) -> CastRun:
    """Cast a tensor with values, and report on it. Raises and warns as `cast`."""
    result = cast(source, dst, mode, satmode)
    plan = None
    if not is_unchanged(source.dtype, dst, mode):
        plan = plan_cast(tuple(source.shape), source.dtype, dst, mode, satmode)  # the one of `cast`
    formats = known_formats(source.dtype, result.dtype)
    told = report(source.numpy(), result.numpy(), *formats, name=source.name)
    return CastRun(result=result, plan=plan, report=told)


@contextlib.contextmanager
def without_advice() -> Iterator[None]:
    """Leave the advice to set a tile shape in a kernel to kernels; the report has its own."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "no tile shape is set", TileShapeWarning)
        yield


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
