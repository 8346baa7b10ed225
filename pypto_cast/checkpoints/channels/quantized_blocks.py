"""Scales and codes of tensors in blocks of whole channels or rows; see `scales`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.checkpoints.casting import Job
from pypto_cast.checkpoints.channels.scales import (
    Floats,
    Quantizing,
    Scales,
    bounded_extremes,
    codes_of,
    extremes,
    restored,
    scales_of,
    widened,
)
from pypto_cast.checkpoints.kinds.reading import Reader, native_codes
from pypto_cast.inspection.cast_report import CastReport, Worst

_WORK_BYTES: Final = 64
"""An element takes while its channel is looked at, in float64 and FP32 copies."""

QuantizedBlock = tuple[npt.NDArray[np.int8], CastReport | None, int, Any, bool]


class ScaleCache:
    """The scales of tensors, each computed by a pass over it when it is first asked for.

    Args:
        source: reads the tensors.
        memory_bytes: what a pass may hold.
    """

    def __init__(self, source: Reader, memory_bytes: int) -> None:
        self._source, self._memory_bytes = source, memory_bytes
        self._found: dict[str, Scales] = {}

    def of(self, job: Job) -> Scales:
        """Scales and zero points of a tensor.

        Raises:
            ValueError: the tensor holds NaN or infinity, or its channels exceed the memory.
        """
        name = job.stored.name
        if name not in self._found:
            self._found[name] = self._computed(job)
        return self._found[name]

    def _computed(self, job: Job) -> Scales:
        quantizing = job.quantizing or Quantizing()
        elems = self._memory_bytes // _WORK_BYTES
        rank = len(job.stored.shape)
        by_rows = quantizing.axis % rank == 0
        row = math.prod(job.stored.shape[1:])
        needed = row if by_rows else job.stored.elems
        if quantizing.needs_whole_channels and needed > elems:
            raise ValueError(
                f"tensor {job.stored.name!r}: scales by {quantizing.rule} need "
                f"{needed * _WORK_BYTES:,} B for whole channels; --memory allows "
                f"{self._memory_bytes:,} B, and --scale absmax needs less"
            )
        if quantizing.needs_whole_channels and not by_rows:
            elems = job.stored.elems
        lows, highs = [], []
        for _, values in _row_blocks(job, self._source, elems):
            if not np.isfinite(values).all():
                raise ValueError(
                    f"tensor {job.stored.name!r} holds NaN or infinity, which have no codes; "
                    f"--exclude {job.stored.name!r} leaves it as it is"
                )
            ends = bounded_extremes if quantizing.needs_whole_channels else _plain
            low, high = ends(values, quantizing)
            lows.append(low)
            highs.append(high)
        if by_rows:
            return scales_of(np.concatenate(lows), np.concatenate(highs), quantizing)
        return scales_of(np.min(lows, axis=0), np.max(highs, axis=0), quantizing)


def quantized_blocks(
    job: Job, scales: Scales, source: Reader, block_elems: int
) -> Callable[[bool], Iterator[QuantizedBlock]]:
    """The codes of a tensor, a block of rows after another.

    Yields, of the function returned:
        Codes, the report or None, how many codes are open, the magnitudes of the source, and
        whether they are the last ones.
    """
    quantizing = job.quantizing or Quantizing()
    by_rows = quantizing.axis % len(job.stored.shape) == 0
    rows = job.stored.shape[0]

    def blocks(with_report: bool) -> Iterator[QuantizedBlock]:
        for first, values in _row_blocks(job, source, block_elems):
            part = _part(scales, slice(first, first + len(values))) if by_rows else scales
            found = codes_of(values, part)
            report = None
            if with_report:
                report = _report(job, values, found.values, part, found.clamped, first)
            field = (values.reshape(-1).view(np.uint32) >> np.uint32(23)).astype(np.uint8)
            histogram = np.bincount(field, minlength=256)
            is_last = first + len(values) == rows
            yield found.values.reshape(-1), report, found.uncertain, histogram, is_last

    return blocks


def _plain(values: Floats, quantizing: Quantizing) -> tuple[Floats, Floats]:
    return extremes(values, quantizing.axis)


def _part(scales: Scales, rows: slice) -> Scales:
    zero = scales.zero_point
    return Scales(scale=scales.scale[rows], zero_point=None if zero is None else zero[rows])


def _row_blocks(job: Job, source: Reader, elems: int) -> Iterator[tuple[int, Floats]]:
    """Blocks of whole rows in FP32, with the number of the first row of each."""
    stored = job.stored
    row = math.prod(stored.shape[1:])
    width = stored.size_bytes // stored.elems
    step = max(1, elems // row)
    for first in range(0, stored.shape[0], step):
        rows = min(step, stored.shape[0] - first)
        held = np.empty(rows * row * width, np.uint8)
        source.read(stored, first * row * width, held)
        codes = native_codes(held, width, is_swapped=stored.is_swapped)
        yield first, widened(stored, codes).reshape(rows, *stored.shape[1:])


def _report(
    job: Job,
    values: Floats,
    codes: npt.NDArray[np.int8],
    scales: Scales,
    clamped: int,
    first: int,
) -> CastReport:
    """Compares weights and codes; a last place is the scale, and clamped codes overflow."""
    after = restored(codes, scales).astype(np.float64)
    before = values.astype(np.float64)
    error = np.abs(after - before)
    ulp = error / scales.scale
    position = int(ulp.argmax())
    index = tuple(int(i) for i in np.unravel_index(position, values.shape))
    nonzero = before != 0
    relative = np.divide(error, np.abs(before), out=np.zeros_like(error), where=nonzero)
    inexact = int(np.count_nonzero(error))
    worst = Worst(
        tensor=job.stored.name,
        index=(index[0] + first, *index[1:]),
        source=float(before[index]),
        result=float(after[index]),
    )
    return CastReport(
        elems=values.size,
        overflows=clamped,
        zeros=int(np.count_nonzero((after == 0) & nonzero)),
        inexact=inexact,
        compared=values.size,
        ulp_max=float(ulp.max()),
        ulp_sum=float(ulp.sum()),
        relative_elems=int(np.count_nonzero(nonzero)),
        relative_max=float(relative.max()),
        relative_sum=float(relative.sum()),
        signal_sum=float(np.square(before).sum()),
        noise_sum=float(np.square(error).sum()),
        worst=worst if inexact else None,
    )
