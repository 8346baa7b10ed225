"""Carries out the work on a checkpoint, block by block, in memory that is set aside once.

One thread reads and writes, in the order of the output; the others cast and measure. So the result
does not depend on their number, and no more blocks exist than there are slots for them.
"""

from __future__ import annotations

import contextlib
import functools
import re
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np

from pypto_cast.cast.cast_report import CastReport, Reporter
from pypto_cast.checkpoints.casting import CheckpointCast, Item, Job, Outcome, Part
from pypto_cast.checkpoints.quantized_blocks import (
    ChannelRanges,
    quantized_blocks,
    scale_blocks,
)
from pypto_cast.checkpoints.reading import (
    Bytes,
    Reader,
    exponents,
    file_bytes,
    native_codes,
)
from pypto_cast.checkpoints.sinks import Sink, items_of
from pypto_cast.checkpoints.stored import DTYPES
from pypto_cast.dtypes.data_types import numpy_dtype
from pypto_cast.options.context import Options, current
from simulator import corrections
from simulator.numbers.convert import in_numpy
from simulator.numbers.formats import BF16, FloatFormat, Format

DEFAULT_MEMORY_BYTES: Final = 256 << 20
LEAST_MEMORY_BYTES: Final = 1 << 20
_MOST_BLOCK_ELEMS: Final = 1 << 18
"""Larger blocks would leave the caches between being read and being written."""
_SLOT_BYTES: Final = 16
"""An element of a block takes at most, before and after."""
_KEPT_SHARE: Final = 8
"""Of the memory the ends of channels take at most one part in so many; the rest is on disk."""
_CODE_BITS: Final = 8
"""Results of at most so many are held against BF16 too."""
_INLINE_ELEMS: Final = 1 << 14
"""Smaller blocks are not worth handing to a thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of a run, and the measurements that it takes.

    Attributes:
        memory_bytes: of all blocks together.
        jobs: threads.
        with_report: measure what the casts did.
        with_histogram: count the magnitudes too.
    """

    memory_bytes: int = DEFAULT_MEMORY_BYTES
    jobs: int = 1
    with_report: bool = True
    with_histogram: bool = False

    def __post_init__(self) -> None:
        if self.memory_bytes < LEAST_MEMORY_BYTES:
            raise ValueError(
                f"a memory of {self.memory_bytes:,} B is less than a cast needs, "
                f"{LEAST_MEMORY_BYTES:,} B"
            )
        if self.jobs < 1:
            raise ValueError(f"the number of jobs is at least 1, not {self.jobs}")
        most = self.memory_bytes // (2 * _SLOT_BYTES) - 1
        if self.jobs > most:
            raise ValueError(
                f"{self.jobs:,} jobs have no element each in a memory of {self.memory_bytes:,} B; "
                f"at most {most:,} have one"
            )

    @property
    def slots(self) -> int:
        """Blocks that exist at a time."""
        return 1 if self.jobs == 1 else self.jobs + 1

    @property
    def block_elems(self) -> int:
        """Elements of a block, a power of two."""
        room = self.memory_bytes // (2 * self.slots * _SLOT_BYTES)
        return min(_MOST_BLOCK_ELEMS, 1 << (room.bit_length() - 1))


class _Slot:
    """Memory of one block."""

    def __init__(self, elems: int) -> None:
        self.source: Bytes = np.empty(elems * _SLOT_BYTES // 2, np.uint8)
        self.result: Bytes = np.empty(elems * _SLOT_BYTES // 2, np.uint8)
        self._reporters: dict[tuple[Format, Format], Reporter] = {}

    def reporter(self, src: Format, dst: Format) -> Reporter:
        """A reporter of this slot, whose scratch memory no other thread uses meanwhile."""
        if (src, dst) not in self._reporters:
            self._reporters[src, dst] = Reporter(src, dst)
        return self._reporters[src, dst]


def execute_jobs(
    work: CheckpointCast, sink: Sink | None = None, limits: Limits | None = None
) -> Iterator[Outcome]:
    """Do the jobs one after another.

    Args:
        work: what to do.
        sink: where the new checkpoint goes; None only casts and reports.
        limits: memory, threads and reports; those of `Limits` unless given.

    Yields:
        The outcome of each job, once all of its bytes are written.

    Raises:
        OSError: a file cannot be read or written.
        CheckpointError: the input became shorter after its header was read, or is damaged.
        ValueError: values that no scale goes with, or channels beyond the memory.
    """
    bounds = limits or Limits()
    items = list(sink.items) if sink is not None else items_of(work.jobs)
    written = {item.job.stored.name for item in items}
    with (
        contextlib.closing(Reader(work.checkpoint)) as source,
        tempfile.SpooledTemporaryFile(bounds.memory_bytes // _KEPT_SHARE) as kept,
        contextlib.ExitStack() as stack,
    ):
        pool = None
        if bounds.jobs > 1:
            pool = ThreadPoolExecutor(bounds.jobs, thread_name_prefix="pypto_cast_checkpoint")
            stack.callback(pool.shutdown, cancel_futures=True)
        ranges = ChannelRanges(source, bounds.memory_bytes, kept)
        run = _Run(source, ranges, sink, bounds, pool)
        for item in items:
            yield from run.add(item)
        yield from run.finish()
        for job in work.jobs:
            if job.stored.name not in written:
                yield Outcome(job=job)


Block = tuple[Bytes, Outcome]
"""A finished block: its bytes in the output, and the findings on them."""


class _Run:
    """The blocks that are under way, in the order of the output."""

    def __init__(
        self,
        source: Reader,
        ranges: ChannelRanges,
        sink: Sink | None,
        limits: Limits,
        pool: ThreadPoolExecutor | None,
    ) -> None:
        self._source, self._sink, self._limits, self._pool = source, sink, limits, pool
        self._free = [_Slot(limits.block_elems) for _ in range(limits.slots)]
        self._pending: deque[tuple[Item, Future[Block], _Slot | None]] = deque()
        self._ranges = ranges
        self._item: Item | None = None
        self._sum: Outcome | None = None
        self._context = current()

    def add(self, item: Item) -> Iterator[Outcome]:
        """Work on a tensor of the output."""
        job = item.job
        if job.quantizing is not None:
            for part in self._quantized(item):
                yield from self._enqueue(item, _done(part))
            return
        if self._sink is None and (not job.is_cast or not self._limits.with_report):
            yield from self._enqueue(item, _done((np.empty(0, np.uint8), Outcome(job=job))))
            return
        width = job.stored.size_bytes // max(job.stored.elems, 1) if job.is_cast else 1
        elems = job.stored.elems if job.is_cast else job.stored.size_bytes
        step = self._limits.block_elems * (1 if job.is_cast else _SLOT_BYTES // 2)
        act = _caster(job, self._limits, self._context) if job.is_cast else None
        for start in range(0, max(elems, 1), step):
            count = min(step, elems - start)
            while not self._free:
                yield from self.drain(len(self._pending) - 1)
            slot = self._free.pop()
            held = slot.source[: count * width]
            self._source.read(job.stored, start * width, held)
            if act is None:
                block = _done((held, Outcome(job=job)))
            else:
                block = self._submit(act, slot, held, start)
            yield from self._enqueue(item, block, slot)

    def drain(self, most: int) -> Iterator[Outcome]:
        """Write blocks until at most so many are under way."""
        while len(self._pending) > most:
            item, pending, slot = self._pending.popleft()
            data, outcome = pending.result()
            if item is not self._item:
                yield from self._ended()
                self._item = item
                if self._sink is not None:
                    self._sink.begin(item)
            if self._sink is not None:
                self._sink.write(data)
            if slot is not None:
                self._free.append(slot)
            self._sum = outcome if self._sum is None else self._sum + outcome

    def finish(self) -> Iterator[Outcome]:
        """Write all blocks."""
        yield from self.drain(0)
        yield from self._ended()

    def _ended(self) -> Iterator[Outcome]:
        """The outcome of the job whose last block was written."""
        if self._sum is not None and self._item is not None and self._item.part is Part.WHOLE:
            yield self._sum
        self._sum = None

    def _submit(self, act: _Act, slot: _Slot, held: Bytes, start: int) -> Future[Block]:
        if self._pool is None or held.size < _INLINE_ELEMS:
            return _done(act(slot, held, start))
        future: Future[Block] = Future()
        turn = deque([act])

        def work() -> None:
            # Taken once: a thread that starts too late finds nothing.
            try:
                chosen = turn.pop()
            except IndexError:
                return
            try:
                future.set_result(chosen(slot, held, start))
            except BaseException as error:
                future.set_exception(error)

        try:
            self._pool.submit(work)
        except RuntimeError:  # no thread can be started: while the process ends, or by its limits
            work()
        return future

    def _enqueue(
        self, item: Item, block: Future[Block], slot: _Slot | None = None
    ) -> Iterator[Outcome]:
        self._pending.append((item, block, slot))
        yield from self.drain(self._limits.slots - 1)

    def _quantized(self, item: Item) -> Iterator[Block]:
        job, limits = item.job, self._limits
        if item.part is Part.WHOLE:
            yield from quantized_blocks(
                job,
                self._ranges,
                self._source,
                with_report=limits.with_report,
                with_histogram=limits.with_histogram,
            )
            return
        for scales in scale_blocks(job, self._ranges):
            data = scales.stored
            if item.part is Part.ZERO_POINT and scales.zero_point is not None:
                data = scales.zero_point.astype(np.int8)
            codes = data.reshape(-1).view(f"u{data.itemsize}")
            yield file_bytes(codes), Outcome(job=job)


_Act = Callable[[_Slot, Bytes, int], Block]


def _caster(job: Job, limits: Limits, context: Options) -> _Act:
    """The cast of a block of a tensor: codes, report and histogram."""
    kernel = corrections.loop(
        job.conversions, context.corrections, exact=context.exact, engine=context.converter
    )
    src, dst = job.conversions[0].src, job.conversions[-1].dst
    source_dtype = numpy_dtype(DTYPES[job.stored.dtype])
    shape = tuple(reversed(job.stored.shape)) if job.stored.is_fortran else job.stored.shape

    def act(slot: _Slot, held: Bytes, start: int) -> Block:
        codes = native_codes(held, src.code_dtype.itemsize, is_swapped=job.stored.is_swapped)
        width = dst.code_dtype.itemsize
        result = slot.result[: codes.size * width].view(dst.code_dtype)
        kernel(codes, result)
        report = against = histogram = None
        if limits.with_report:
            measured = functools.partial(
                Reporter.report,
                result=result.view(dst.dtype),
                shape=shape or (1,),
                start=start,
                name=job.stored.name,
            )
            report = measured(slot.reporter(src, dst), codes.view(source_dtype))
            if dst.bits <= _CODE_BITS and isinstance(src, FloatFormat):
                against = report
                if src is not BF16:
                    narrowed = codes.view(source_dtype).astype(BF16.dtype)
                    against = measured(slot.reporter(BF16, dst), narrowed)
        if limits.with_histogram:
            histogram = exponents(in_numpy(codes.view(source_dtype), src))
        found = Outcome(job=job, report=report, against_bf16=against, histogram=histogram)
        return file_bytes(result), found

    return act


def _done(block: Block) -> Future[Block]:
    future: Future[Block] = Future()
    future.set_result(block)
    return future


_NUMBER: Final = re.compile(r"(?<![^._])\d+(?![^._])")


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorGroup:
    """Tensors of one kind, or of one layer, that were changed.

    Attributes:
        name: of a kind with * for the numbers; of a layer up to its number.
        tensors: how many.
        report: of all of them.
        against_bf16: of those that have one.
        uncertain: codes that the device may give otherwise.
    """

    name: str
    tensors: int
    report: CastReport
    against_bf16: CastReport
    uncertain: int


def by_kind(outcomes: Iterable[Outcome]) -> tuple[TensorGroup, ...]:
    """The kinds in the order in which they occur: `layer.11.weight` is of `layer.*.weight`."""
    return _grouped(outcomes, lambda name: _NUMBER.sub("*", name))


def by_layer(outcomes: Iterable[Outcome]) -> tuple[TensorGroup, ...]:
    """The layers likewise: `layer.11.weight` is of `layer.11`; without a number a name is one."""

    def layer(name: str) -> str:
        number = _NUMBER.search(name)
        return name if number is None else name[: number.end()]

    return _grouped((one for one in outcomes if one.against_bf16 is not None), layer)


def _grouped(
    outcomes: Iterable[Outcome], group_of: Callable[[str], str]
) -> tuple[TensorGroup, ...]:
    found: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.report is not None:
            found.setdefault(group_of(outcome.job.stored.name), []).append(outcome)
    return tuple(
        TensorGroup(
            name=name,
            tensors=len(same),
            report=sum((one.report for one in same if one.report), CastReport()),
            against_bf16=sum((one.against_bf16 for one in same if one.against_bf16), CastReport()),
            uncertain=sum(one.uncertain or 0 for one in same),
        )
        for name, same in found.items()
    )


def worst_first(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Outcomes with reports: overflow before all else, then the least signal to noise."""

    def rank(outcome: Outcome) -> tuple[int, float]:
        report = outcome.report or CastReport()
        snr = report.snr_db
        return -report.overflows, float("inf") if snr is None else snr

    return sorted((one for one in outcomes if one.report is not None), key=rank)
