"""The issues of a leaf: operations and allocations, whose tensors spills exchange.

An issue is an entry of the issue queue, as where a processor issues instructions out of order; the
term is the one of upstream pypto at tag r0.2.0, framework/src/passes/block_graph_pass/schedule_ooo/
scheduler.h:44 to 92. Only the planning of one leaf changes these; its input and output are frozen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ascend_kernels.schedule.parts import TileOperand, TileOperation
from ascend_kernels.schedule.planner.leaves.leaf_graph import LeafGraph, operation_cycles
from ascend_kernels.schedule.planner.leaves.order import Allocation, OrderEntry
from ascend_kernels.schedule.planner.ub_overflow import LiveBuffer, UBOverflow

VIEWS = ("VIEW",)
"""They are kept aside and issued with the first operation that reads them."""


@dataclass(slots=True, kw_only=True, eq=False)
class Tensor:
    """A tensor of the leaf; its buffer changes when the rest of its life is moved.

    Attributes:
        operand: as the operations had it.
        buffer: its buffer; None in GM.
        writers: what writes it, allocations left out.
        workspace: the first byte in the task's own memory, of what was spilled there.
    """

    operand: TileOperand
    buffer: int | None
    writers: list[Issue] = field(default_factory=list)
    workspace: int | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class Issue:
    """An operation, or the allocation of a buffer, that waits to be issued or was.

    Attributes:
        number: in the order of making.
        operation: None of an allocation.
        reads, writes: its tensors.
        cycles: its latency.
        rank: its place among all.
        buffers: those of its tensors, each as often as it is an operand.
        needs, followers: by number; in the order of making.
        is_done: it is over.
    """

    number: int
    operation: TileOperation | None
    reads: list[Tensor]
    writes: list[Tensor]
    cycles: int
    rank: int = 0
    buffers: list[int] = field(default_factory=list)
    needs: dict[int, Issue] = field(default_factory=dict)
    followers: dict[int, Issue] = field(default_factory=dict)
    is_done: bool = False

    @property
    def is_allocation(self) -> bool:
        return self.operation is None

    @property
    def opcode(self) -> str:
        """Of the operation; "" of an allocation."""
        return "" if self.operation is None else self.operation.opcode

    @property
    def is_view(self) -> bool:
        return self.opcode in VIEWS

    @property
    def served(self) -> TileOperation | None:
        """Its operation; of a copy the one that it is made for, None of an allocation alone."""
        near = (each.operation for each in (self, *self.followers.values(), *self.needs.values()))
        return next((each for each in near if each is not None and each.line), self.operation)

    @property
    def text(self) -> str:
        """The opcode with its line; a copy has that of the operation that it is made for."""
        named = self.served
        if self.operation is None or named is None:
            return "an allocation"
        text = f"{named.opcode}{named.at}"
        return text if named is self.operation else f"{self.opcode} for {text}"

    def live_buffer(self, buffer: int, size_bytes: int) -> LiveBuffer:
        """A buffer that it writes, or allocates, as it is told of."""
        named = self.served
        operands = [each.operand for each in self.writes if each.buffer == buffer]
        return LiveBuffer(
            size_bytes=size_bytes,
            text=self.text,
            opcode=self.opcode,
            place=named.place if named is not None else "",
            format=operands[0].format if operands else None,
            shape=operands[0].shape if operands else (),
        )


class Issues:
    """All issues of a leaf in their order.

    Args:
        graph: operations whose buffers are shared.
        order: as `first_order` gives it.
    """

    def __init__(self, graph: LeafGraph, order: Sequence[OrderEntry]) -> None:
        self._made = 0
        self.sizes = graph.buffer_bytes
        self.order: list[Issue] = []
        issues = _issues_of(graph)
        for step in order:
            if isinstance(step, Allocation):
                self.order.append(self.allocation(step.buffer))
            elif not issues[step].is_view:
                issues[step].number = self._number()
                self.order.append(issues[step])
        self._rank()
        self.link()

    def allocation(self, buffer: int) -> Issue:
        """A new allocation."""
        issue = Issue(number=self._number(), operation=None, reads=[], writes=[], cycles=1)
        issue.buffers = [buffer]
        return issue

    def operation(
        self, operation: TileOperation, reads: list[Tensor], writes: list[Tensor], cycles: int
    ) -> Issue:
        """A new operation."""
        issue = Issue(
            number=self._number(), operation=operation, reads=reads, writes=writes, cycles=cycles
        )
        for each in writes:
            each.writers.append(issue)
        issue.buffers = _buffers(issue)
        return issue

    def new_buffer(self, size_bytes: int) -> int:
        """A number that no buffer has yet."""
        number = max(self.sizes, default=0) + 1
        self.sizes[number] = size_bytes
        return number

    def insert(self, issue: Issue, rank: int) -> None:
        """Insert an issue before the one at a place."""
        self.order.insert(rank, issue)
        self._rank()

    def link(self) -> None:
        """Derive anew who needs whom and which buffers each uses; nothing is done yet."""
        allocations = {each.buffers[0]: each for each in self.order if each.is_allocation}
        for each in self.order:
            each.needs, each.followers, each.is_done = {}, {}, False
        for each in self.order:
            if each.is_allocation:
                continue
            each.buffers = _buffers(each)
            for tensor in each.reads:
                for writer in real_writers(tensor):
                    follow(writer, each)
            for tensor in each.writes:
                if tensor.buffer is not None:
                    follow(allocations[tensor.buffer], each)

    def overflow(
        self, issue: Issue, writers: Mapping[int, Issue], ub_bytes: int, reason: str
    ) -> UBOverflow:
        """The moment at which an issue finds no room, with the last writer of each buffer."""
        named = issue.served
        held = (writer.live_buffer(k, self.sizes[k]) for k, writer in writers.items())
        return UBOverflow(
            reason=reason,
            opcode=issue.opcode,
            place=named.place if named is not None else "",
            ub_bytes=ub_bytes,
            buffers=tuple(sorted(held, key=lambda each: -each.size_bytes)),
        )

    def uses(self) -> dict[int, int]:
        """The count of operands of each buffer, its allocation included."""
        found: dict[int, int] = {}
        for each in self.order:
            for buffer in each.buffers:
                found[buffer] = found.get(buffer, 0) + 1
        return found

    def _rank(self) -> None:
        for rank, each in enumerate(self.order):
            each.rank = rank

    def _number(self) -> int:
        self._made += 1
        return self._made - 1


def follow(first: Issue, then: Issue) -> None:
    """Note that an issue needs another."""
    first.followers[then.number] = then
    then.needs[first.number] = first


def real_writers(tensor: Tensor) -> Iterable[Issue]:
    """The issues that write a tensor; of a view, those of the tensor that is viewed."""
    for writer in tensor.writers:
        if not writer.is_view:
            yield writer
        else:
            yield from real_writers(writer.reads[0])


def views_of(issue: Issue) -> list[Issue]:
    """The views that an issue reads, each before the one that it views."""
    found = []
    for tensor in issue.reads:
        for writer in tensor.writers:
            while writer.is_view:
                found.append(writer)
                below = writer.reads[0].writers
                if not below:
                    break
                writer = below[0]
    return found


def _buffers(issue: Issue) -> list[int]:
    tensors = (*issue.reads, *issue.writes)
    return [each.buffer for each in tensors if each.buffer is not None]


def _issues_of(graph: LeafGraph) -> list[Issue]:
    tensors: dict[int, Tensor] = {}
    in_gm: dict[int, list[Issue]] = {}

    def tensor_of(operand: TileOperand, number: int) -> Tensor:
        if operand.buffer is None:  # every copy is an access of its own
            writers = [] if number < 0 else in_gm.setdefault(number, [])
            return Tensor(operand=operand, buffer=None, writers=writers)
        return tensors.setdefault(number, Tensor(operand=operand, buffer=operand.buffer))

    made = []
    for operation, reads, writes in zip(graph.operations, graph.reads, graph.writes, strict=True):
        issue = Issue(
            number=-1,
            operation=operation,
            reads=[*map(tensor_of, operation.inputs, reads)],
            writes=[*map(tensor_of, operation.outputs, writes)],
            cycles=operation.latency or operation_cycles(operation),
        )
        for each in issue.writes:
            each.writers.append(issue)
        made.append(issue)
    return made
