"""The flags and barriers that order a leaf's operations over the pipes.

Source: upstream pypto at tag r0.2.0, framework/src/passes/block_graph_pass/insert_sync.cpp:
dependences (:1254 to 1360), issue with 8 events a pair of pipes (:607 to 790), merging of flags
where they run out (:1000 to 1110).
"""

from __future__ import annotations

import functools
import itertools
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ascend_kernels.schedule.parts import Buffer, Flag, TileOperand, TileOperation
from simulator.machine.tile_opcodes import TILE_OPCODES

_EVENTS: Final = 8
_BATCH: Final = 8
"""Operations of one pipe that are looked at together, before their waits return events."""
_BARRIER: Final = -1
_NO_QUEUE: Final = ("VIEW", "ASSEMBLE")
Pair = tuple[str, str]


@dataclass(slots=True, kw_only=True)
class _Place:
    """The pipe of an operation, that which waits for others, whom for, and whom it releases."""

    pipe: str
    begins: str
    waits: list[int] = field(default_factory=list)
    sets: list[int] = field(default_factory=list)


def with_syncs(
    operations: Sequence[TileOperation], buffers: Sequence[Buffer], tensors: Sequence[Hashable]
) -> tuple[TileOperation, ...]:
    """Put in a flag for each dependence between pipes and a barrier for each within the vector's.

    What an earlier wait covers is left out; upstream's bookkeeping decides, so now and then a flag
    is redundant.

    Args:
        operations: in the order of issue.
        buffers: with addresses.
        tensors: in GM, what each access of a copy touches.
    """
    places = [_Place(pipe=each.pipe, begins=_waiting(each)) for each in operations]
    # Of each pipe: its last operation that waits, and up to where it has waited for each other.
    last: dict[str, int] = {}
    covered: dict[str, dict[str, int]] = {}
    for index, earlier in enumerate(_dependences(operations, buffers, tensors)):
        place = places[index]
        known = covered.setdefault(place.begins, {})
        for before in earlier:
            last[place.begins] = index
            one = places[before]
            if known.get(one.pipe, -1) >= before:
                continue
            place.waits.append(before)
            one.sets.append(index)
            known[one.pipe] = before
            if one.pipe in last and last[one.pipe] <= before:
                for pipe, until in tuple(covered[one.pipe].items()):
                    known[pipe] = max(known.get(pipe, -1), until)
    return _Events(operations, places).synced()


def _dependences(
    operations: Sequence[TileOperation], buffers: Sequence[Buffer], tensors: Sequence[Hashable]
) -> Iterator[list[int]]:
    """For each operation those before it that it may not pass, the latest first.

    What is written and then read, read and then written, and, from different pipes, written twice.
    """
    beside: list[list[Hashable]] = [
        [
            place
            for place, other in enumerate(buffers)
            if each.address < other.address + other.size_bytes
            and other.address < each.address + each.size_bytes
        ]
        for each in buffers
    ]
    # Sets of operations are numbers with a bit for each.
    wrote: dict[Hashable, int] = {}
    read: dict[Hashable, int] = {}
    pipes: dict[str, int] = {}

    def touched(found: Mapping[Hashable, int], operands: Iterable[TileOperand]) -> int:
        bits = 0
        for each in operands:
            if each.buffer is not None:
                for key in beside[each.buffer]:
                    bits |= found.get(key, 0)
            elif each.access is not None:
                bits |= found.get(("GM", tensors[each.access]), 0)
        return bits

    for index, operation in enumerate(operations):
        if operation.opcode in _NO_QUEUE:
            yield []
            continue
        tiles = [each for each in operation.outputs if each.buffer is not None]
        bits = (
            touched(wrote, operation.inputs)
            | touched(read, operation.outputs)
            | (touched(wrote, tiles) & ~pipes.get(operation.pipe, 0))
        )
        yield [before for before in range(bits.bit_length() - 1, -1, -1) if bits >> before & 1]
        own = 1 << index
        pipes[operation.pipe] = pipes.get(operation.pipe, 0) | own
        for found, operands in ((read, operation.inputs), (wrote, operation.outputs)):
            for each in operands:
                key = each.buffer if each.access is None else ("GM", tensors[each.access])
                found[key] = found.get(key, 0) | own


def _waiting(operation: TileOperation) -> str:
    """The pipe that waits for what an operation needs: not always its own (opcode.cpp:312)."""
    row = TILE_OPCODES.get(operation.opcode)
    return operation.pipe if row is None or row.begins is None else row.begins.name


class _Events:
    """Events are taken when a flag is set and come back when it was waited for."""

    def __init__(self, operations: Sequence[TileOperation], places: Sequence[_Place]) -> None:
        self._operations = operations
        self._places = places
        self._free: dict[Pair, deque[int]] = {}
        self._taken: dict[tuple[int, int], int] = {}
        self._log: list[tuple[int, int]] = []
        self._before: dict[int, list[TileOperation]] = {}

    def synced(self) -> tuple[TileOperation, ...]:
        """The operations with their syncs."""
        queued = [
            index for index, each in enumerate(self._operations) if each.opcode not in _NO_QUEUE
        ]
        start = 0
        while start < len(queued):
            batch = self._batch(queued, start)
            if not batch:
                self._merge_waits()
                continue
            for index in batch:
                self._wait(index)
                self._set(index)
            start += len(batch)
        behind: dict[int, list[TileOperation]] = {}
        for index, then in self._log:
            pair = self._places[index].pipe, self._places[then].begins
            sync = _sync("SYNC_SRC", pair, self._taken[index, then])
            behind.setdefault(index, []).append(sync)
        return tuple(
            each
            for index, operation in enumerate(self._operations)
            for each in (*self._before.get(index, ()), operation, *behind.get(index, ()))
        )

    def _events(self, pair: Pair) -> deque[int]:
        return self._free.setdefault(pair, deque(range(_EVENTS)))

    def _batch(self, queued: Sequence[int], start: int) -> list[int]:
        """The next operations, of one pipe, whose flags have events."""
        pipe = self._places[queued[start]].pipe
        left: dict[Pair, int] = {}
        found: list[int] = []
        for index in queued[start : start + _BATCH]:
            place = self._places[index]
            if place.pipe != pipe:
                break
            pairs = [
                (pipe, self._places[then].begins)
                for then in place.sets
                if self._places[then].begins != pipe
            ]
            if any(left.setdefault(pair, len(self._events(pair))) <= 0 for pair in pairs):
                break
            for pair in pairs:
                left[pair] -= 1
            found.append(index)
        return found

    def _wait(self, index: int) -> None:
        pipe = self._places[index].begins
        for source in self._places[index].waits:
            pair = self._places[source].pipe, pipe
            event = self._taken[source, index]
            if pair == ("S", "S"):  # the scalar unit needs none (insert_sync.cpp:1122)
                continue
            if pair[0] == pipe:
                sync = _sync("BAR.V", pair, event)
            else:
                sync = _sync("SYNC_DST", pair, event)
                self._events(pair).append(event)
            self._before.setdefault(index, []).append(sync)

    def _set(self, index: int) -> None:
        place = self._places[index]
        for then in place.sets:
            pair = place.pipe, self._places[then].begins
            if pair[0] == pair[1]:
                self._taken[index, then] = _BARRIER
            else:
                self._taken[index, then] = self._events(pair).popleft()
                self._log.append((index, then))

    def _merge_waits(self) -> None:
        """Let two flags of each pair without events be one: the later one, waited for early.

        They are the neighbours whose spans overlap most.
        """
        merged = False
        for pair in sorted(self._free, key=_MERGED.index):
            if self._free[pair]:
                continue
            latest = {
                self._taken[index, then]: (index, then)
                for index, then in self._log
                if (self._places[index].pipe, self._places[then].begins) == pair
            }
            open_ = sorted(latest.values(), key=self._log.index)
            overlaps = [then - after for (_, then), (after, _) in itertools.pairwise(open_)]
            at = overlaps.index(max(overlaps))
            (first, early), (second, late) = open_[at], open_[at + 1]
            for source, target in ((first, early), (second, late)):
                self._places[source].sets.remove(target)
                self._places[target].waits.remove(source)
            self._places[second].sets.append(early)
            self._places[early].waits.append(second)
            self._events(pair).append(self._taken[first, early])
            self._taken[second, early] = self._taken[second, late]
            self._log.remove((first, early))
            self._log[self._log.index((second, late))] = second, early
            merged = True
        if not merged:
            raise AssertionError("no pair of pipes is out of events")


_MERGED: Final = (
    ("MTE3", "MTE2"),
    ("MTE2", "MTE3"),
    ("MTE2", "V"),
    ("V", "MTE2"),
    ("MTE3", "V"),
    ("V", "MTE3"),
    ("S", "V"),
    ("V", "S"),
    ("S", "MTE2"),
    ("MTE2", "S"),
    ("S", "MTE3"),
    ("MTE3", "S"),
)
"""The pairs in the order in which upstream looks for one without events."""


@functools.cache
def _sync(opcode: str, pair: Pair, event: int) -> TileOperation:
    flag = Flag(setter=pair[0], waiter=pair[1], event_id=event)
    return TileOperation(opcode=opcode, flag=flag, latency=1)
