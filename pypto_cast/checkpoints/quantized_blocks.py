"""Scales and codes of tensors, a block after another in the order of the file; see `scales`.

A tensor is taken as [outer, channels, inner], the axis of its channels between those before and
those behind. A block is a part of it that lies in one stretch, of few elements, whatever the shape.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.cast.cast_report import CastReport, Worst
from pypto_cast.checkpoints.casting import Job, Outcome
from pypto_cast.checkpoints.code_formats import BLOCK_ELEMS, STRATEGIES
from pypto_cast.checkpoints.reading import Bytes, Reader, exponents, native_codes
from pypto_cast.checkpoints.scales import (
    Floats,
    Quantizing,
    Scales,
    bounded_extremes,
    codes_of,
    extremes,
    last_places,
    restored,
    scales_of,
    subnormals,
    widened,
)
from pypto_cast.checkpoints.stored import DTYPES
from simulator.machine.memory import packed
from simulator.numbers.formats import BF16
from tiling.grid import Shape

_BLOCK_ELEMS: Final = 1 << 15
"""Elements of a block; intervals and report take some 600 B for each meanwhile."""
_WORK_BYTES: Final = 128
"""An element takes while its channel is looked at as a whole: 64 in float64 and FP32 copies, and as
much again is left to the blocks of casts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Box:
    """Elements that lie in one stretch.

    Attributes:
        start: the first of them, in row-major order.
        first_channel: the first channel.
        shape: outer, channels and inner.
        is_first: nothing before is of these channels.
    """

    start: int
    first_channel: int
    shape: Shape
    is_first: bool

    @property
    def elems(self) -> int:
        return math.prod(self.shape)

    @property
    def channels(self) -> slice:
        return slice(self.first_channel, self.first_channel + self.shape[1])


@dataclass(frozen=True, slots=True)
class _Band:
    """Elements that lie in one stretch as [outer, channels, inner]; no other band has its channels.

    Attributes:
        start: the first of them, in row-major order of the tensor.
        first_channel: the first channel.
    """

    start: int
    first_channel: int
    outer: int
    channels: int
    inner: int

    def boxes(self, elems: int, *, whole_channels: bool = False) -> Iterator[_Box]:
        """All elements in order, so many at a time or fewer; or whole channels, at least one."""
        counts = self.outer, self.channels, self.inner
        axis = 0 if self.channels * self.inner <= elems else 1 if self.inner <= elems else 2
        if whole_channels:
            axis = min(axis, 1)
        step = max(1, elems // math.prod(counts[axis + 1 :]))
        for outer in np.ndindex(counts[:axis]):
            for first in range(0, counts[axis], step):
                at = (*outer, first, *(0,) * (2 - axis))
                count = min(step, counts[axis] - first)
                yield _Box(
                    start=self.start + (at[0] * self.channels + at[1]) * self.inner + at[2],
                    first_channel=self.first_channel + at[1],
                    shape=(*(1,) * axis, count, *counts[axis + 1 :]),
                    is_first=at[0] == at[2] == 0,
                )


def _bands(shape: Shape, quantizing: Quantizing) -> Iterator[_Band]:
    """The bands of a tensor: rows of squares of a matrix, and else the tensor as one."""
    if quantizing.is_by_blocks:
        rows, columns = shape
        across = columns // BLOCK_ELEMS
        for number, row in enumerate(range(0, rows, BLOCK_ELEMS)):
            high = min(BLOCK_ELEMS, rows - row)
            yield _Band(row * columns, number * across, high, across, BLOCK_ELEMS)
        return
    channels = math.prod(quantizing.scale_shape(shape))
    before = math.prod(shape[: quantizing.axis % len(shape)]) if quantizing.has_channels else 1
    yield _Band(0, 0, before, channels, math.prod(shape) // (before * channels))


class ChannelRanges:
    """The ends of the range of each channel, found by a pass over a tensor that is asked for.

    They are kept for the next pass in a file, 8 B a channel.

    Args:
        source: reads the tensors.
        memory_bytes: of the run.
        kept: an empty file of bytes.
    """

    def __init__(self, source: Reader, memory_bytes: int, kept: IO[bytes]) -> None:
        self._source, self._memory_bytes, self._ends = source, memory_bytes, kept
        self._found: dict[str, int] = {}
        self._size_bytes = 0

    def scales(self, job: Job, channels: slice) -> Scales:
        """Scales and zero points of some channels of a tensor, [1, channels, 1].

        Raises:
            ValueError: the tensor holds NaN or infinity, or its channels exceed the memory.
        """
        place = self._found.get(job.stored.name)
        if place is None:
            place, self._size_bytes = self._size_bytes, self._size_bytes + 8 * _channels(job)
            self._find(job, place)
            self._found[job.stored.name] = place
        return scales_of(*self._kept(place, channels), job.quantizing or Quantizing())

    def _find(self, job: Job, place: int) -> None:
        quantizing = job.quantizing or Quantizing()
        whole = quantizing.needs_whole_channels
        for box in self._boxes(job, quantizing):
            values = _read(job, self._source, box)
            if not np.isfinite(values).all():
                raise ValueError(
                    f"tensor {job.stored.name!r} holds NaN or infinity, which have no codes; "
                    f"--exclude {job.stored.name!r} leaves it as it is"
                )
            if whole:
                of_axis = dataclasses.replace(quantizing, strategy=STRATEGIES[0], axis=1)
                low, high = bounded_extremes(values, of_axis)
            else:
                low, high = extremes(values, 1)
            if not box.is_first:
                least, most = self._kept(place, box.channels)
                low, high = np.minimum(low, least), np.maximum(high, most)
            self._ends.seek(place + 8 * box.first_channel)
            self._ends.write(np.stack([low, high], axis=-1).tobytes())

    def _boxes(self, job: Job, quantizing: Quantizing) -> Iterator[_Box]:
        """The parts whose ends are looked for: of whole channels, where the rule needs them."""
        whole = quantizing.needs_whole_channels
        for band in _bands(job.stored.shape, quantizing):
            elems = _BLOCK_ELEMS
            if whole:
                needed = band.inner * (1 if band.outer == 1 else band.outer * band.channels)
                if needed * _WORK_BYTES > self._memory_bytes:
                    raise ValueError(
                        f"tensor {job.stored.name!r}: scales by {quantizing.rule} need "
                        f"{needed * _WORK_BYTES:,} B for whole channels; --memory allows "
                        f"{self._memory_bytes:,} B, and --scale absmax needs less"
                    )
                if band.outer > 1:
                    elems = needed
            yield from band.boxes(elems, whole_channels=whole)

    def _kept(self, place: int, channels: slice) -> tuple[Floats, Floats]:
        self._ends.seek(place + 8 * channels.start)
        held = self._ends.read(8 * (channels.stop - channels.start))
        ends = np.frombuffer(held, np.float32).reshape(1, -1, 1, 2)
        return ends[..., 0], ends[..., 1]


def scale_blocks(job: Job, ranges: ChannelRanges) -> Iterator[Scales]:
    """The scales of a tensor, some after others."""
    count = _channels(job)
    for first in range(0, count, _BLOCK_ELEMS):
        yield ranges.scales(job, slice(first, min(first + _BLOCK_ELEMS, count)))


def quantized_blocks(
    job: Job, ranges: ChannelRanges, source: Reader, *, with_report: bool, with_histogram: bool
) -> Iterator[tuple[Bytes, Outcome]]:
    """The codes of a tensor, a block after another, with the findings on each."""
    bands = _bands(job.stored.shape, job.quantizing or Quantizing())
    for box in itertools.chain.from_iterable(band.boxes(_BLOCK_ELEMS) for band in bands):
        scales = ranges.scales(job, box.channels)
        values = _read(job, source, box)
        found = codes_of(values, scales)
        report = against = histogram = None
        if with_report:
            measured = found.values, scales, found.clamped, box.start
            report = against = _report(job, values, *measured)
            if DTYPES[job.stored.dtype].format is not BF16:
                narrowed = values.astype(BF16.dtype).astype(np.float32)
                # Numbers of FP32 beyond BF16's stay.
                against = _report(job, np.where(np.isfinite(narrowed), narrowed, values), *measured)
        if with_histogram:
            histogram = exponents(values)
        yield (
            packed(found.values.reshape(-1).view(np.uint8), scales.codes.dtype.number_format),
            Outcome(
                job=job,
                report=report,
                against_bf16=against,
                uncertain=found.uncertain,
                histogram=histogram,
            ),
        )


def _channels(job: Job) -> int:
    """The number of scales of a tensor."""
    return math.prod((job.quantizing or Quantizing()).scale_shape(job.stored.shape))


def _read(job: Job, source: Reader, box: _Box) -> Floats:
    """A block in FP32."""
    stored = job.stored
    width = stored.size_bytes // stored.elems
    held = np.empty(box.elems * width, np.uint8)
    source.read(stored, box.start * width, held)
    codes = native_codes(held, width, is_swapped=stored.is_swapped)
    return widened(stored, codes).reshape(box.shape)


def _report(
    job: Job,
    values: Floats,
    codes: npt.NDArray[Any],
    scales: Scales,
    clamped: int,
    start: int,
) -> CastReport:
    """Compares weights and codes; a last place is that of the code, and clamped codes overflow."""
    after = restored(codes, scales).astype(np.float64)
    before = values.astype(np.float64)
    error = np.abs(after - before)
    numbers = codes.astype(np.float32)
    places = last_places(numbers, scales.codes)
    ulp = np.ldexp(error / scales.scale, -places.astype(np.int32))
    position = int(ulp.argmax())
    at = np.unravel_index(position, values.shape)
    index = tuple(int(i) for i in np.unravel_index(start + position, job.stored.shape))
    nonzero = before != 0
    relative = np.divide(error, np.abs(before), out=np.zeros_like(error), where=nonzero)
    inexact = int(np.count_nonzero(error))
    worst = Worst(
        tensor=job.stored.name,
        index=index,
        source=float(before[at]),
        result=float(after[at]),
    )
    return CastReport(
        elems=values.size,
        overflows=clamped,
        subnormals=subnormals(numbers, scales.codes),
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
