"""The trace of a cast: its program against the clock, without a value of the tensor."""

from __future__ import annotations

import dataclasses
import itertools
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ascend_kernels.program import TileProgram, lower
from pypto_cast.cast_plan import CastPlan, planned
from pypto_cast.cli.files import read_tensor
from pypto_cast.dtypes import CastMode, DataType, SaturationMode
from simulator.numbers.formats import FP32
from simulator.traces.timeline import Timeline, timeline
from simulator.traces.trace import TraceEvent, trace
from tiling.cost import CostParameters
from tiling.plan import TileShapeWarning


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

    def first(self, number: int) -> TracedCast:
        """The same with at most so many of its cores."""
        return dataclasses.replace(self, cores=self.cores[:number])

    def timeline(self) -> Timeline:
        """All events, added up."""
        return timeline(self.events())


def traced(
    source: Path,
    held: DataType | None,
    dst: DataType,
    mode: CastMode,
    satmode: SaturationMode,
    parameters: CostParameters,
    cores: str | None,
) -> TracedCast:
    """Plan the cast of a .npy file in this context; only its shape and dtype are read.

    Args:
        source: the file.
        held: what its codes are, where .npy cannot say it.
        dst: the dtype to cast to.
        mode: how to round.
        satmode: what to do with integers out of range.
        parameters: the cost set.
        cores: those to look at, as in `0-3,8`; None: all that have work.

    Raises:
        OSError, TypeError, ValueError: what reading the file, planning the cast and `cores_named`
            raise; a cast that changes nothing.

    Warns:
        What `cast` does.
    """
    tensor = read_tensor(source, held)
    if tensor.dtype is dst and (dst.format is not FP32 or mode is CastMode.CAST_NONE):
        raise ValueError(f"{source} is {dst} already: there is nothing to trace")
    plan = planned(tuple(tensor.shape), tensor.dtype, dst, mode, satmode)
    for category, text in plan.resolution.diagnostics:
        warnings.warn(text, category, stacklevel=2)
    for text in plan.tiles.diagnostics:
        warnings.warn(text, TileShapeWarning, stacklevel=2)
    program = lower(plan.tiles, plan.resolution)
    busy = program.cores
    return TracedCast(
        plan=plan,
        program=program,
        parameters=parameters,
        cores=tuple(busy) if cores is None else cores_named(cores, busy),
    )


def cores_named(text: str, busy: range) -> tuple[int, ...]:
    """`0-3,8` as (0, 1, 2, 3, 8), each core once, in order.

    Raises:
        ValueError: no list of cores, or one of them has no work; the text says which have.
    """
    found: set[int] = set()
    for entry in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", entry, re.ASCII)
        if match is None:
            raise ValueError(f"cores are numbers and ranges, as in 0-3,8; got {text!r}")
        first, last = int(match[1]), int(match[2] or match[1])
        if first > last or last >= busy.stop:
            raise ValueError(
                f"no cores {entry.strip()!r} in this cast: cores 0 to {busy.stop - 1} have work"
            )
        found.update(range(first, last + 1))
    return tuple(sorted(found))
