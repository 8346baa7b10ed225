"""Sorts programs for the machine before they run into those a guard must report, and the others.

It judges the list of instructions alone and shares no code with the guards. The order of events is
a closure over a graph of starts and ends of instructions; bounds are intervals; bytes that reach GM
are traced back, from each copy to GM to the instructions that made them.
"""

from __future__ import annotations

import functools
import graphlib
import heapq
import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from simulator.machine.isa import (
    And,
    AndRepeat,
    Cast,
    CastRepeat,
    DataCopy,
    DataCopyPad,
    Duplicate,
    GmAddress,
    Instruction,
    Pipe,
    PipeBarrier,
    RestoreCtrl,
    SetCtrl,
    SetDeqScale,
    SetFlag,
    UbAddress,
    VectorScalar,
    WaitFlag,
)
from simulator.machine.memory import UbRange
from simulator.numbers.formats import FP16, INT16, INT32

Bytes = npt.NDArray[np.int64]
Item = Instruction | UbRange
"""An instruction, or a buffer that is allocated."""

LINE: Final = 32
REPEAT: Final = 256
UB_BYTES: Final = 196608


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A program as it is judged.

    Attributes:
        bodies: of each core, what it issues in order.
        layouts: the buffers of each core.
        sizes: bytes of each tensor in GM.
        outputs: the tensors that may be written.
        restores: the program must leave CTRL as it found it.
    """

    bodies: Sequence[Sequence[Item]]
    layouts: Sequence[Sequence[UbRange]]
    sizes: Mapping[str, int]
    outputs: tuple[str, ...]
    restores: bool


@dataclass(frozen=True, kw_only=True)
class OperandBytes:
    """Bytes in the order of their elements, and the address that the instruction names."""

    space: str
    address: int
    offsets: Bytes
    bits: int

    @functools.cached_property
    def low(self) -> int:
        return int(self.offsets.min())

    @functools.cached_property
    def high(self) -> int:
        return int(self.offsets.max()) + 1


@dataclass(frozen=True, kw_only=True)
class Touched:
    """The operands of an instruction.

    Attributes:
        target: the bytes that it writes.
        sources: the bytes that it reads.
        random: of the bytes that it writes, those whose value nobody knows.
        wrong: a limit of the instruction that its operands break.
    """

    target: OperandBytes | None = None
    sources: tuple[OperandBytes, ...] = ()
    random: Bytes = field(default_factory=lambda: np.empty(0, np.int64))
    wrong: str = ""


class _Illegal(Exception):
    pass


def reason(listing: Listing) -> str:
    """The reason why a guard must report a program; empty if it is a legal one."""
    try:
        for core, body in enumerate(listing.bodies):
            _judge_core(body, listing.layouts[core], listing)
        _judge_gm(listing)
    except _Illegal as found:
        return str(found)
    return ""


def _require(condition: bool, why: str) -> None:
    if not condition:
        raise _Illegal(why)


def _judge_core(body: Sequence[Item], layout: Sequence[UbRange], listing: Listing) -> None:
    code = [each for each in body if not isinstance(each, UbRange)]
    touched = [touch(each) for each in code]
    for each in touched:
        _require(not each.wrong, "operand")
        for operand in (each.target, *each.sources):
            if operand is not None:
                _judge_bounds(operand, layout, listing)
        if each.target is not None and each.target.space != "ub":
            _require(each.target.space in listing.outputs, "bounds")
    _judge_registers(code, listing.restores)
    order, before = _closure(code)
    _judge_races(touched, before)
    _judge_garbage(body, code, touched, order)


# --- Operands, from the documents --------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def touch(instruction: Instruction) -> Touched:
    """The bytes that an instruction reads and writes."""
    match instruction:
        case DataCopy() | DataCopyPad():
            return _touch_copy(instruction)
        case Cast() | VectorScalar() | Duplicate() | And():
            return _touch_counted(instruction)
        case CastRepeat() | AndRepeat():
            return _touch_repeats(instruction)
    return Touched()


def _touch_counted(work: Cast | VectorScalar | Duplicate | And) -> Touched:
    """The destination, then the sources, of so many elements each."""
    match work:
        case Cast():
            given = [(work.dst, work.dst_format.bits), (work.src, work.src_format.bits)]
        case VectorScalar():
            given = [(work.dst, work.format.bits), (work.src, work.format.bits)]
        case Duplicate():
            given = [(work.dst, INT16.bits)]
        case And():
            given = [(each, INT16.bits) for each in (work.dst, work.src0, work.src1)]
    if work.count < 0 or any(work.count * bits % 8 for _, bits in given):
        return Touched(wrong="count")
    if work.count == 0:
        return Touched()
    target, *sources = (_elements(address, work.count, bits) for address, bits in given)
    narrows = isinstance(work, Cast) and target.bits < sources[0].bits
    may_overlap = narrows and target.address == sources[0].address
    return _worked(target, tuple(sources), may_overlap=may_overlap)


def _elements(address: UbAddress, count: int, bits: int) -> OperandBytes:
    start = address.offset_bytes
    offsets = np.arange(start, start + count * bits // 8)
    return OperandBytes(space="ub", address=start, offsets=offsets, bits=bits)


def _worked(
    target: OperandBytes, sources: tuple[OperandBytes, ...], may_overlap: bool = False
) -> Touched:
    """The same bytes may be source and destination, if no repeat has those of another."""
    wrong = ""
    for source in sources:
        if np.array_equal(source.offsets, target.offsets):
            if np.unique(target.offsets).size < target.offsets.size:
                wrong = "in place"
        elif not may_overlap and np.intersect1d(source.offsets, target.offsets).size:
            wrong = "overlap"
    return Touched(target=target, sources=sources, wrong=wrong)


def _touch_copy(copy: DataCopy | DataCopyPad) -> Touched:
    elem = copy.elem_bytes
    gm, ub = copy.src, copy.dst
    if isinstance(gm, UbAddress):
        gm, ub = copy.dst, copy.src
    assert isinstance(gm, GmAddress)
    assert isinstance(ub, UbAddress)
    to_ub = isinstance(copy.dst, UbAddress)
    left = random = 0
    if isinstance(copy, DataCopy):
        blocks, length, gm_gap, ub_gap = 1, copy.size_bytes // LINE * LINE, 0, 0
        wrong = copy.size_bytes < 0 or gm.offset_bytes % elem != 0
        width = length
    else:
        blocks, length = copy.block_count, copy.block_len_bytes
        gm_gap, ub_gap = copy.dst_stride, copy.src_stride
        if to_ub:
            gm_gap, ub_gap = ub_gap, gm_gap
        left, right = copy.left_padding * elem, copy.right_padding * elem
        wrong = (
            not 0 <= blocks <= 4095
            or not 0 <= length <= 2097151
            or length % elem != 0
            or not 0 <= left <= LINE
            or not 0 <= right <= LINE
            or (not to_ub and bool(left or right))
            or ub_gap < 0
            or (blocks * length > 0 and not 0 <= gm_gap <= 0xFFFFFFFF)
        )
        width = -(-(left + length + right) // LINE) * LINE
        random = int(to_ub and not copy.is_pad and bool(left or right))
    if wrong:
        return Touched(wrong="copy")
    if blocks * length == 0:
        return Touched()
    rows = np.arange(blocks)[:, None]
    in_gm = (gm.offset_bytes + rows * (length + gm_gap) + np.arange(length)).reshape(-1)
    starts = ub.offset_bytes + rows * (width + ub_gap * LINE)
    lines = (starts + np.arange(width if to_ub else length)).reshape(-1)
    outside = OperandBytes(space=gm.tensor, address=gm.offset_bytes, offsets=in_gm, bits=8)
    inside = OperandBytes(space="ub", address=ub.offset_bytes, offsets=lines, bits=8)
    if not to_ub:
        return Touched(target=outside, sources=(inside,))
    column = np.arange(width)
    padded = column[(column < left) | (column >= left + length)]
    unknown = (starts + padded).reshape(-1) if random else np.empty(0, np.int64)
    return Touched(target=inside, sources=(outside,), random=unknown)


def _touch_repeats(work: CastRepeat | AndRepeat) -> Touched:
    if isinstance(work, CastRepeat):
        given = [
            (work.dst, work.dst_format.bits, work.dst_blk_stride, work.dst_rep_stride),
            (work.src, work.src_format.bits, work.src_blk_stride, work.src_rep_stride),
        ]
        most = 65535
    else:
        given = [
            (work.dst, 16, work.dst_blk_stride, work.dst_rep_stride),
            (work.src0, 16, work.src0_blk_stride, work.src0_rep_stride),
            (work.src1, 16, work.src1_blk_stride, work.src1_rep_stride),
        ]
        most = 255
    lanes = REPEAT * 8 // max(bits for _, bits, _, _ in given)
    words = work.mask
    if isinstance(words, int):
        fits = 0 <= words <= lanes
        bits_set = (1 << max(words, 0)) - 1
    else:
        fits = all(0 <= word < 1 << 64 for word in words)
        bits_set = words[0] | words[1] << 64 if fits else 0
        fits = fits and bits_set < 1 << lanes
    wrong = (
        not fits
        or not 0 <= work.repeat_times <= 255
        or any(not 0 <= rep <= 255 for _, _, _, rep in given)
        or any(not 0 <= blk <= most for _, _, blk, _ in given)
        or given[0][2] == 0
    )
    active = np.array([lane for lane in range(lanes) if bits_set >> lane & 1], np.int64)
    if any(bits == 4 for _, bits, _, _ in given):
        wrong = wrong or any((bits_set >> lane & 3) in (1, 2) for lane in range(0, lanes, 2))
    if wrong:
        return Touched(wrong="repeats")
    if work.repeat_times == 0 or not active.size:
        return Touched()
    operands = []
    for address, bits, blk, rep in given:
        # The document counts lanes, which fill lines of 32 B; two elements of 4 bits are one byte.
        block, place = np.divmod(active[:: 2 if bits == 4 else 1], LINE * 8 // bits)
        in_repeat = block * blk * LINE + place * bits // 8
        starts = np.arange(work.repeat_times)[:, None] * rep * LINE + in_repeat
        offsets = starts.reshape(-1)[:, None] + np.arange(max(bits // 8, 1))
        start = address.offset_bytes
        operands.append(
            OperandBytes(space="ub", address=start, offsets=start + offsets.reshape(-1), bits=bits)
        )
    return _worked(operands[0], tuple(operands[1:]))


# --- Bounds and registers ----------------------------------------------------------------------


def _judge_bounds(operand: OperandBytes, layout: Sequence[UbRange], listing: Listing) -> None:
    if operand.space != "ub":
        _require(operand.low >= 0 and operand.high <= listing.sizes[operand.space], "bounds")
        return
    start = operand.address
    _require(start % LINE == 0, "operand")
    _require(start >= 0 and operand.high <= UB_BYTES, "bounds")
    homes = [each for each in layout if each.offset_bytes <= start]
    homes = [each for each in homes if start < each.offset_bytes + each.size_bytes]
    ends = [each.offset_bytes + each.size_bytes for each in homes]
    _require(not layout or any(operand.high <= end for end in ends), "bounds")


def _judge_registers(code: Sequence[Instruction], restores: bool) -> None:
    scale, changed = None, False
    for each in code:
        if isinstance(each, SetDeqScale):
            scale = each.scale
        elif isinstance(each, SetCtrl):
            changed = True
        elif isinstance(each, RestoreCtrl):
            changed = False
        elif isinstance(each, (Cast, CastRepeat)) and touch(each).target is not None:
            scaled = each.src_format is INT32 and each.dst_format is FP16
            _require(not scaled or scale == 1, "register")
    _require(not (restores and (changed or scale not in (None, 1))), "register")


# --- Order -------------------------------------------------------------------------------------


class _Graph:
    """Nodes that come after others; those of an instruction are its start and its end."""

    def __init__(self) -> None:
        self.after: list[list[int]] = []

    def node(self, *earlier: int | None) -> int:
        self.after.append([each for each in earlier if each is not None])
        return len(self.after) - 1

    def sorted(self, key: Mapping[int, int]) -> list[int]:
        """All nodes, each after those it comes after; the lowest key first."""
        sorter = graphlib.TopologicalSorter(dict(enumerate(self.after)))
        try:
            sorter.prepare()
        except graphlib.CycleError:
            raise _Illegal("flag") from None
        ready: list[tuple[int, int]] = []
        order = []
        while sorter.is_active():
            for node in sorter.get_ready():
                heapq.heappush(ready, (key[node], node))
            order.append(heapq.heappop(ready)[1])
            sorter.done(order[-1])
        return order


def _closure(code: Sequence[Instruction]) -> tuple[list[int], list[set[int]]]:
    """The instructions in an order that the flags allow, and those done before each starts."""
    graph = _Graph()
    key: dict[int, int] = {}
    starts: list[int] = []
    ends: list[int | None] = []
    started: dict[Pipe, int | None] = dict.fromkeys(Pipe)
    drained: dict[Pipe, int | None] = dict.fromkeys(Pipe)
    sets, waits = defaultdict(list), defaultdict(list)
    for index, each in enumerate(code):
        pipe = each.pipe
        issued = started[Pipe.S]
        end = None
        if isinstance(each, PipeBarrier) and pipe is Pipe.ALL:
            node = graph.node(*started.values(), *drained.values())
            started[Pipe.S] = node
        elif isinstance(each, SetFlag):
            # What follows on its pipe need not wait until it is raised.
            node = graph.node(issued, started[pipe], drained[pipe])
        elif isinstance(each, PipeBarrier):
            node = started[pipe] = graph.node(issued, started[pipe], drained[pipe])
        else:
            node = graph.node(issued, started[pipe])
            started[pipe] = node
            if touch(each).target is not None:
                end = graph.node(node)
                drained[pipe] = graph.node(drained[pipe], end)
        if isinstance(each, SetFlag):
            sets[each.event, each.event_id].append(node)
        if isinstance(each, WaitFlag):
            waits[each.event, each.event_id].append(node)
        if isinstance(each, (SetFlag, WaitFlag)):
            _require(0 <= each.event_id < 8, "operand")
        key.update(dict.fromkeys(range(len(key), len(graph.after)), index))
        starts.append(node)
        ends.append(end)
    for flag in {*sets, *waits}:
        _require(len(sets[flag]) == len(waits[flag]), "flag")
        for given, taken in zip(sets[flag], waits[flag], strict=True):
            graph.after[taken].append(given)
    order = graph.sorted(key)
    before = [0] * len(order)
    for node in order:
        for each in graph.after[node]:
            before[node] |= before[each] | 1 << each
    for flag, given in sets.items():
        for wait, again in zip(waits[flag], given[1:], strict=False):
            _require(bool(before[again] >> wait & 1), "flag")
    done = {end: index for index, end in enumerate(ends) if end is not None}
    known = [{i for end, i in done.items() if before[start] >> end & 1} for start in starts]
    indices = {start: index for index, start in enumerate(starts)}
    return [indices[node] for node in order if node in indices], known


def _judge_races(touched: Sequence[Touched], before: Sequence[set[int]]) -> None:
    busy = [index for index, each in enumerate(touched) if each.target is not None]
    for one, other in itertools.combinations(busy, 2):
        if one in before[other] or other in before[one]:
            continue
        for first, second in _conflicts(touched[one], touched[other]):
            meet = max(first.low, second.low) < min(first.high, second.high)
            if meet and np.intersect1d(first.offsets, second.offsets).size:
                raise _Illegal("order")


def _conflicts(one: Touched, other: Touched) -> Iterator[tuple[OperandBytes, OperandBytes]]:
    assert one.target is not None
    assert other.target is not None
    pairs = [(one.target, other.target)]
    pairs += [(one.target, source) for source in other.sources]
    pairs += [(other.target, source) for source in one.sources]
    return (pair for pair in pairs if pair[0].space == pair[1].space)


def _judge_gm(listing: Listing) -> None:
    """No core touches what another writes."""
    for tensor in listing.outputs:
        writers = np.zeros(listing.sizes[tensor], np.int64)
        readers = writers.copy()
        for core, body in enumerate(listing.bodies):
            wrote, read = (np.zeros(writers.size, np.bool_) for _ in range(2))
            for each in body:
                touched = Touched() if isinstance(each, UbRange) else touch(each)
                if touched.target is not None and touched.target.space == tensor:
                    wrote[touched.target.offsets] = True
                for source in touched.sources:
                    if source.space == tensor:
                        read[source.offsets] = True
            _require(not (wrote & ((writers | readers) > 0)).any(), "cores")
            _require(not (read & (writers > 0)).any(), "cores")
            writers[wrote] = readers[read] = core + 1


# --- Bytes that reach GM -----------------------------------------------------------------------


def _judge_garbage(
    body: Sequence[Item],
    code: Sequence[Instruction],
    touched: Sequence[Touched],
    order: Sequence[int],
) -> None:
    """Trace back what copies to GM read: somebody must have written it in its buffer's life."""
    lives = _lives(body)
    # For each byte that is asked for, the first instruction that may have written it.
    asked = np.full(UB_BYTES, -1, np.int64)

    def ask(index: int, operand: OperandBytes, which: Bytes) -> None:
        since = 0
        for buffer, first in lives[index]:
            if buffer.offset_bytes <= operand.address < buffer.offset_bytes + buffer.size_bytes:
                since = max(since, first)
        asked[which] = np.maximum(asked[which], since)

    for index in reversed(order):
        each = touched[index]
        target = each.target
        if target is None:
            continue
        if target.space != "ub":
            ask(index, each.sources[0], each.sources[0].offsets)
            continue
        hits = asked[target.offsets] >= 0
        if not hits.any():
            continue
        _require(not (asked[target.offsets] > index).any(), "garbage")
        _require(not (asked[each.random] >= 0).any(), "garbage")
        # Of bytes written twice the last writer counts.
        places = np.zeros(target.high - target.low, np.int64)
        places[target.offsets - target.low] = np.arange(target.offsets.size)
        wanted = np.unique(places[target.offsets[hits] - target.low])
        asked[target.offsets] = -1
        for source in each.sources:
            if source.space == "ub":
                ask(index, source, _made_of(source, target, wanted, code[index]))
    _require(not (asked >= 0).any(), "garbage")


def _made_of(source: OperandBytes, target: OperandBytes, wanted: Bytes, work: Instruction) -> Bytes:
    """The bytes of a source from which some bytes of the result, by their places, were made."""
    if isinstance(work, (And, AndRepeat)):
        return source.offsets[wanted]
    lanes = wanted * 8 // target.bits
    if target.bits == 4:
        lanes = np.concatenate([lanes, lanes + 1])
    first = np.unique(lanes * source.bits // 8)
    if source.bits == 4:
        return source.offsets[first]
    elements = np.unique(lanes)[:, None] * (source.bits // 8) + np.arange(source.bits // 8)
    return source.offsets[elements.reshape(-1)]


def _lives(body: Sequence[Item]) -> list[tuple[tuple[UbRange, int], ...]]:
    """For each instruction the buffers that were allocated before it, and where."""
    current: dict[UbRange, int] = {}
    found: list[tuple[tuple[UbRange, int], ...]] = []
    for each in body:
        if isinstance(each, UbRange):
            current[each] = len(found)
        else:
            found.append(tuple(current.items()))
    return found
