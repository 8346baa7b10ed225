"""A checkpoint, cast tensor by tensor: one of them in memory at a time."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from ascend_kernels.matrix import MATRIX, UnsupportedCastError
from pypto_cast.cast_plan import CastPlan, plan_cast
from pypto_cast.checkpoints.stored import (
    DTYPES,
    STORED_NAMES,
    Checkpoint,
    StoredTensor,
    copy_bytes,
    header_bytes,
    read_values,
    write_values,
)
from pypto_cast.dtypes import CastMode, DataType, SaturationMode, bytes_of
from pypto_cast.inspection.cast_report import CastReport
from pypto_cast.inspection.cast_run import run_planned, without_advice
from pypto_cast.options import options
from pypto_cast.tensors.tensor import Tensor
from tiling.grid import Shape
from tiling.plan import MAX_DIMS, MAX_ELEMS, TileShapeError


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The work on one tensor: a cast or a copy.

    Attributes:
        stored: the tensor in the input.
        result: the tensor in the output; its offset there is not known here and stays the input's.
        shape: as it is cast, folded to 1 to 4 dimensions.
        plan: None if it is copied unchanged.
        tile_shape: set by the user for this number of dimensions; empty: the planner's.
        reason: why it is copied unchanged.
    """

    stored: StoredTensor
    result: StoredTensor
    shape: Shape
    plan: CastPlan | None
    tile_shape: Shape
    reason: str

    @property
    def is_folded(self) -> bool:
        """Cast under another shape than it is stored with."""
        return self.plan is not None and self.shape != self.stored.shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A job done; the report is None for a tensor that was copied."""

    job: Job
    report: CastReport | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointCast:
    """A checkpoint and what to do with each of its tensors, in the order of the output.

    Attributes:
        checkpoint: the input.
        dst: the dtype asked for.
        mode: how to round.
        satmode: what to do with integers out of range.
        jobs: wide elements first, so that every tensor of the output is aligned.
    """

    checkpoint: Checkpoint
    dst: DataType
    mode: CastMode
    satmode: SaturationMode
    jobs: tuple[Job, ...]

    @property
    def largest(self) -> Job | None:
        """The tensor with the most elements of those that are cast; None if none is."""
        cast = [job for job in self.jobs if job.plan is not None]
        return max(cast, key=lambda job: job.stored.elems, default=None)


def plan_checkpoint(
    checkpoint: Checkpoint,
    dst: DataType,
    mode: CastMode = CastMode.CAST_NONE,
    satmode: SaturationMode = SaturationMode.ON,
    tile_shapes: Sequence[Shape] = (),
) -> CheckpointCast:
    """Decide about every tensor, from the header alone.

    What has the dtype already, or cannot be cast to it, stays as it is. A tensor of more than 4
    dimensions is cast folded to 4, a scalar as one dimension; the output has the stored shape.

    Args:
        checkpoint: the input.
        dst: the dtype to cast to.
        mode: how to round.
        satmode: what to do with integers out of range.
        tile_shapes: at most one for each number of dimensions; the planner chooses the others.

    Raises:
        UnsupportedCastError: A2/A3 converts nothing that safetensors stores to `dst`.
        TileShapeError: a tile shape does not go with a tensor of its number of dimensions.
        ValueError: two tile shapes for the same number of dimensions.

    Warns:
        UserWarning: a tile shape that is for no tensor.
    """
    formats = {dtype.format for dtype in STORED_NAMES}
    targets = {to: None for src, to in MATRIX if src in formats and to in formats}
    if dst.format not in targets:
        raise UnsupportedCastError(
            f"nothing in a checkpoint can be cast to {dst}; casts of A2/A3 that safetensors can "
            f"store lead to {', '.join(map(str, targets))}"
        )
    tiles = {len(tile): tile for tile in tile_shapes}
    if len(tiles) < len(tile_shapes):
        raise ValueError("there are two tile shapes for the same number of dimensions")
    jobs = [_job(tensor, dst, mode, satmode, tiles) for tensor in checkpoint.tensors]
    for rank, tile in tiles.items():
        if not any(job.tile_shape for job in jobs if len(job.shape) == rank):
            text = f"tile shape {list(tile)} is not used: no tensor of {rank} dimensions is cast"
            warnings.warn(text, UserWarning, stacklevel=2)
    jobs.sort(key=lambda job: job.result.size_bytes / max(job.result.elems, 1), reverse=True)
    return CheckpointCast(
        checkpoint=checkpoint, dst=dst, mode=mode, satmode=satmode, jobs=tuple(jobs)
    )


def carry_out(work: CheckpointCast, out: BinaryIO | None = None) -> Iterator[Outcome]:
    """Do the jobs one by one, reading and writing one tensor at a time.

    Args:
        work: what to do.
        out: where the new checkpoint goes; None only casts and reports.

    Yields:
        The outcome of each job, once its bytes are written.

    Raises:
        OSError: a file cannot be read or written.
        CheckpointError: the input became shorter after its header was read.

    Warns:
        What `cast` does, apart from tile shapes that the planner chose.
    """
    if out is not None:
        out.write(header_bytes((job.result for job in work.jobs), work.checkpoint.metadata))
    with open(work.checkpoint.path, "rb") as file:
        for job in work.jobs:
            report = None
            if job.plan is not None:
                report = _cast(job.stored, job.shape, job.plan, file, out)
            elif out is not None:
                copy_bytes(job.stored, file, out)
            yield Outcome(job=job, report=report)


def folded(shape: Shape) -> Shape:
    """The shape to cast under: leading dimensions merged down to 4, a scalar as [1]."""
    merged = len(shape) - MAX_DIMS + 1
    if merged > 1:
        return (math.prod(shape[:merged]), *shape[merged:])
    return shape or (1,)


def _job(
    stored: StoredTensor,
    dst: DataType,
    mode: CastMode,
    satmode: SaturationMode,
    tiles: Mapping[int, Shape],
) -> Job:
    src = DTYPES.get(stored.dtype)
    reason = _reason(stored, dst)
    shape = folded(stored.shape)
    if reason or src is None:
        return Job(
            stored=stored, result=stored, shape=shape, plan=None, tile_shape=(), reason=reason
        )
    tile_shape = tiles.get(len(shape), ())
    try:
        with options(vec_tile_shapes=tile_shape):
            plan = plan_cast(shape, src, dst, mode, satmode)
    except TileShapeError as error:
        raise TileShapeError(f"tensor {stored.name!r}: {error}") from error
    result = dataclasses.replace(
        stored, dtype=STORED_NAMES[dst], size_bytes=stored.elems * bytes_of(dst)
    )
    return Job(
        stored=stored, result=result, shape=shape, plan=plan, tile_shape=tile_shape, reason=""
    )


def _reason(stored: StoredTensor, dst: DataType) -> str:
    """Tells in words why a tensor is not cast; empty if it is."""
    src = DTYPES.get(stored.dtype)
    if src is dst:
        return f"already {dst.format}"
    if src is None or not any((src.format, dst.format) == pair for pair in MATRIX):
        return f"{stored.dtype_in_words} -> {dst.format} is no cast of A2/A3"
    if not stored.elems:
        return "empty"
    return f"more than {MAX_ELEMS} elements" if stored.elems > MAX_ELEMS else ""


def _cast(
    stored: StoredTensor, shape: Shape, plan: CastPlan, file: BinaryIO, out: BinaryIO | None
) -> CastReport:
    values = read_values(stored, file).reshape(shape)
    source = Tensor(dtype=DTYPES[stored.dtype], name=stored.name, data=values)
    with without_advice():
        done = run_planned(source, plan)
    if out is not None:
        write_values(done.result.numpy(), out)
    return done.report
