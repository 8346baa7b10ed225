"""The order in which a leaf's operations start, and the addresses of its buffers.

Two rounds, as upstream's: one after another, where a spill makes room; then on the pipes, each of
which runs one operation at a time, while buffers are taken ahead of need as long as they fit.

Source: upstream pypto at tag r0.2.0, framework/src/passes/block_graph_pass/schedule_ooo/
scheduler.cpp: the rounds (:716, :633); start, allocation and end of an operation (:426 to 570).
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ascend_kernels.schedule.parts import (
    COPIES,
    PUTTERS,
    TAKERS,
    Buffer,
    TileOperand,
    TileOperation,
    lives,
)
from ascend_kernels.schedule.planner.leaves.issues import Issue, Issues, Tensor, views_of
from ascend_kernels.schedule.planner.leaves.leaf_graph import LeafGraph, waiting_pipe
from ascend_kernels.schedule.planner.leaves.order import OrderEntry
from ascend_kernels.schedule.planner.leaves.spills import Spills
from ascend_kernels.schedule.planner.ub_overflow import UBOverflowError
from ascend_kernels.schedule.scalars import Scalar
from tiling.free_space import FreeSpace

_PIPES = ("S", "V", "MTE2", "MTE3")
"""In the order in which upstream looks at them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """The source or target of a copy in the issued leaf: a box of GM, or bytes that are spilled.

    Attributes:
        access: the place among the accesses of the operations that were given; None of a spill.
        tensor: its number in GM; those of spills are negative.
        workspace_bytes: of a spill, where it lies in the task's own memory.
    """

    access: int | None
    tensor: int
    workspace_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedLeaf:
    """Operations in the order in which they start, without syncs.

    Attributes:
        operations: operands in UB name a buffer by its place; copies are numbered as they come.
        buffers: with addresses; their first and last use follow once there are syncs.
        copies: what each copy moves.
        taken: the accesses of operations that read GM, as they were given.
    """

    operations: tuple[TileOperation, ...]
    buffers: tuple[Buffer, ...]
    copies: tuple[Copy, ...]
    taken: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StartedLeaf:
    """The two rounds of a leaf's graph.

    Attributes:
        graph: the leaf's.
        issues: that are needed, as they start.
        addresses, sizes: of the buffers.
    """

    graph: LeafGraph
    issues: Sequence[Issue]
    addresses: Mapping[int, int]
    sizes: Mapping[int, int]

    @property
    def leaf(self) -> IssuedLeaf:
        """The leaf, with addresses and without syncs."""
        return _leaf_of(self.graph, self.issues, self.addresses, self.sizes)

    def is_as(self, other: StartedLeaf) -> bool:
        """True if another way through the same graph gives the same leaf but for names."""
        numbers = {id(each): place for place, each in enumerate(self.graph.operations)}
        one, two = (
            [
                (
                    numbers.get(id(each.operation)),
                    [
                        run.addresses[x.buffer]
                        for x in (*each.reads, *each.writes)
                        if x.buffer is not None
                    ],
                )
                for each in run.issues
            ]
            for run in (self, other)
        )
        if all(place is not None for place, _ in one + two):
            return one == two
        unnamed = (
            replace(x, buffers=tuple(replace(each, name="") for each in x.buffers))
            for x in (self.leaf, other.leaf)
        )
        return next(unnamed) == next(unnamed)


def issued(graph: LeafGraph, order: Sequence[OrderEntry], ub_bytes: int) -> IssuedLeaf:
    """Run the two rounds and give each buffer its address, from the arguments of `started`."""
    return started(graph, order, ub_bytes).leaf


def started(graph: LeafGraph, order: Sequence[OrderEntry], ub_bytes: int) -> StartedLeaf:
    """Run the two rounds.

    Args:
        graph: operations whose buffers are shared.
        order: as `first_order` gives it.
        ub_bytes: of UB.

    Raises:
        UBOverflowError: an operation, or the buffers that live at one moment, do not fit.
    """
    issues = Issues(graph, order)
    _check_each(issues, ub_bytes)
    spills = Spills(issues)
    _one_after_another(issues, spills, ub_bytes)
    issues.link()
    rounds = _Pipes(issues, spills, ub_bytes)
    rounds.run()
    return StartedLeaf(graph, _needed(rounds.started), rounds.addresses, issues.sizes)


def _check_each(issues: Issues, ub_bytes: int) -> None:
    """Refuse an operation whose operands do not fit, one with a line before copies for it."""
    for issue in sorted(
        issues.order, key=lambda each: not (each.operation and each.operation.line)
    ):
        held = {
            tensor.buffer: (tensor.writers or [issue])[0]
            for tensor in (*issue.writes, *issue.reads)
            if tensor.buffer is not None
        }
        if sum(map(issues.sizes.__getitem__, held)) > ub_bytes:
            parts = ", ".join(f"{issues.sizes[k]} B of {each.text}" for k, each in held.items())
            raise UBOverflowError(
                issues.overflow(
                    issue,
                    held,
                    ub_bytes,
                    f"{issue.text} holds {parts} in UB, which has {ub_bytes} B; a smaller tile "
                    "would fit",
                )
            )


def _one_after_another(issues: Issues, spills: Spills, ub_bytes: int) -> None:
    """Make room by spills where buffers alive at once in the first order do not fit."""
    space = FreeSpace(ub_bytes)
    spills.begin()
    place = 0
    while place < len(issues.order):
        issue = issues.order[place]
        if issue.is_allocation:
            size_bytes = issues.sizes[issue.buffers[0]]
            if not space.fits(size_bytes):
                spills.make_room(issue, space)
                place = issue.rank
            if space.take(issue.buffers[0], size_bytes) is None:
                raise UBOverflowError(spills.full(issue, space))
            spills.holders[issue.buffers[0]] = issue
        issue.is_done = True
        spills.note(issue)
        spills.release(issue, space)
        place += 1


class _Pipes:
    """The round on the pipes."""

    def __init__(self, issues: Issues, spills: Spills, ub_bytes: int) -> None:
        self._issues = issues
        self._spills = spills
        self._space = FreeSpace(ub_bytes)
        self._ready: dict[str, list[int]] = {pipe: [] for pipe in _PIPES}
        self._allocations: list[int] = []
        self._busy: dict[str, tuple[int, Issue]] = {}
        self.started: list[Issue] = []
        self.addresses: dict[int, int] = {}

    def run(self) -> None:
        """Let the clock run until all is done."""
        issues, spills = self._issues, self._spills
        spills.begin()
        for each in issues.order:
            if each.is_allocation:
                self._allocations.append(each.rank)
            elif not each.needs:
                self._wake(each)
        clock = 0
        while True:
            for pipe in _PIPES:
                if pipe in self._busy and self._busy[pipe][0] <= clock:
                    self._end(self._busy.pop(pipe)[1])
            self._allocate()
            for pipe in _PIPES:
                if pipe not in self._busy and self._ready[pipe]:
                    issue = issues.order[heapq.heappop(self._ready[pipe])]
                    self._busy[pipe] = clock + issue.cycles, issue
                    self._start(issue)
            if self._busy:
                clock = min(end for end, _ in self._busy.values())
            elif self._allocations:
                self._make_room()
            else:
                return

    def _allocate(self) -> None:
        """Take buffers in order as long as they fit."""
        while self._allocations:
            issue = self._issues.order[self._allocations[0]]
            (buffer,) = issue.buffers
            address = self._space.take(buffer, self._issues.sizes[buffer])
            if address is None:
                return
            heapq.heappop(self._allocations)
            self._spills.holders[buffer] = issue
            self.addresses[buffer] = address
            self._end(issue)

    def _start(self, issue: Issue) -> None:
        for view in views_of(issue):
            if view not in self.started:
                self.started.append(view)
        self.started.append(issue)
        self._spills.note(issue)

    def _end(self, issue: Issue) -> None:
        issue.is_done = True
        self._spills.release(issue, self._space)
        for each in issue.followers.values():
            if not each.is_done and all(need.is_done for need in each.needs.values()):
                self._wake(each)

    def _wake(self, issue: Issue) -> None:
        assert issue.operation is not None
        pipe = "S" if issue.opcode == "ASSEMBLE" else waiting_pipe(issue.operation)
        heapq.heappush(self._ready[pipe], issue.rank)

    def _make_room(self) -> None:
        """Spill while every pipe is idle; new issues take their places in the queues."""
        issues, spills = self._issues, self._spills
        waiting = [issues.order[rank] for rank in sorted(self._allocations)]
        made = spills.make_room(waiting[0], self._space)
        self.addresses.update({buffer: start for buffer, (start, _) in self._space.held.items()})
        size_bytes = issues.sizes[waiting[0].buffers[0]]
        if not made.allocations and not self._space.fits(size_bytes):
            raise UBOverflowError(spills.full(waiting[0], self._space))
        self.started += made.stored
        self._allocations = sorted(each.rank for each in (*waiting, *made.allocations))


def _needed(started: Sequence[Issue]) -> list[Issue]:
    """All but copies into UB that nothing reads any more, since it was spilled unread."""
    read = {id(tensor) for each in started for tensor in each.reads}
    return [each for each in started if each.opcode != "COPY_IN" or id(each.writes[0]) in read]


def _leaf_of(
    graph: LeafGraph,
    started: Sequence[Issue],
    addresses: Mapping[int, int],
    sizes: Mapping[int, int],
) -> IssuedLeaf:
    places: dict[int, int] = {}
    copies: list[Copy] = []
    numbers: dict[int, int] = {}
    tiles: dict[int, TileOperand] = {}
    given = sum(each.opcode in COPIES for each in graph.operations)
    total = sum(each.opcode in COPIES for each in started)
    read = (x for each in started if each.opcode in TAKERS | PUTTERS for x in each.reads)
    taken = [each.operand.access for each in read if each.operand.access is not None]

    def operand(tensor: Tensor) -> TileOperand:
        made = tensor.operand
        if tensor.buffer is None:
            if made.access in taken:
                return replace(made, access=total + taken.index(made.access))
            if made.access is not None and made.access >= given:  # of a reshape in GM
                return replace(made, access=made.access - given + total)
            is_copied = made.access is not None or tensor.workspace is not None
            return replace(made, access=len(copies) - 1) if is_copied else made
        if id(tensor) not in tiles:
            tiles[id(tensor)] = replace(
                made,
                buffer=places.setdefault(tensor.buffer, len(places)),
                valid_shape=tuple(map(renumbered, made.valid_shape)),
            )
        return tiles[id(tensor)]

    def renumbered(extent: Scalar) -> Scalar:
        if isinstance(extent, int):
            return extent
        match extent:
            case ("valid", int(access), int(axis)):
                # Behind the copies come the other operations that have a valid shape of their own.
                moved = access - given + total if access >= given else numbers.get(access, access)
                return "valid", moved, axis
            case (str(name), *operands):
                return name, *map(renumbered, operands)
        return extent

    operations = []
    for issue in started:
        assert issue.operation is not None
        if issue.opcode in COPIES:
            outside = next(each for each in (*issue.reads, *issue.writes) if each.buffer is None)
            access = outside.operand.access
            if outside.workspace is not None:
                copy = Copy(
                    access=None, tensor=-1 - outside.workspace, workspace_bytes=outside.workspace
                )
            else:
                assert access is not None
                tensor = graph.gm_tensors[access] if graph.gm_tensors else access
                copy = Copy(access=access, tensor=tensor)
                numbers.setdefault(access, len(copies))
            copies.append(copy)
        operations.append(
            replace(
                issue.operation,
                inputs=tuple(map(operand, issue.reads)),
                outputs=tuple(map(operand, issue.writes)),
                latency=issue.cycles,
            )
        )
    buffers = tuple(
        Buffer(name=str(each), address=addresses[each], size_bytes=sizes[each], first=0, last=0)
        for each in places
    )
    return IssuedLeaf(
        operations=tuple(operations),
        buffers=buffers,
        copies=tuple(copies),
        taken=tuple(taken),
    )


def with_lives(
    buffers: Sequence[Buffer], operations: tuple[TileOperation, ...]
) -> tuple[Buffer, ...]:
    """The buffers with their first and last use in an order of operations."""
    spans = lives(operations)
    return tuple(
        replace(each, first=spans[place][0], last=spans[place][1])
        for place, each in enumerate(buffers)
    )
