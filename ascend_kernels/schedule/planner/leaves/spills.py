"""Spilling from UB: the tensor whose next use is latest is copied out, and in before that use.

A tensor that was copied in from GM is only copied in again.

Source: upstream pypto at tag r0.2.0, framework/src/passes/block_graph_pass/schedule_ooo/
spill_buffer.cpp: choice (:958 to 1055, :1142), all of it (:1187), stores (:465, :613), reloads
(:163 to 300, :429).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ascend_kernels.schedule.parts import TileOperand, TileOperation
from ascend_kernels.schedule.planner.leaves.issues import Issue, Issues, Tensor, follow
from ascend_kernels.schedule.planner.leaves.leaf_graph import SPILL_CYCLES
from ascend_kernels.schedule.planner.leaves.shared_buffers import hash_order
from ascend_kernels.schedule.planner.ub_overflow import UBOverflow, UBOverflowError
from ascend_kernels.schedule.schedule import RELEASE
from tiling.free_space import FreeSpace


@dataclass(slots=True, kw_only=True)
class NewIssues:
    """The issues that a spill puts in: stores, which start at once, and allocations that wait."""

    stored: list[Issue] = field(default_factory=list)
    allocations: list[Issue] = field(default_factory=list)


class Spills:
    """The spills of a leaf.

    Args:
        issues: of the leaf.

    Attributes:
        uses: how often each buffer is still an operand.
        holders: of each buffer in UB, the last issue that wrote it, or allocated it.
    """

    def __init__(self, issues: Issues) -> None:
        self._issues = issues
        self._workspace_bytes = 0
        self.uses: dict[int, int] = {}
        self.holders: dict[int, Issue] = {}

    def begin(self) -> None:
        """Begin a round: nothing is in UB."""
        self.uses, self.holders = self._issues.uses(), {}

    def note(self, issue: Issue) -> None:
        """Note that an issue writes its buffers."""
        for tensor in issue.writes:
            if tensor.buffer is not None:
                self.holders[tensor.buffer] = issue

    def release(self, issue: Issue, space: FreeSpace) -> None:
        """Count off the operands of an issue, and give back buffers that nothing needs."""
        for buffer in issue.buffers:
            self.uses[buffer] -= 1
            if not self.uses[buffer]:
                space.give_back(buffer)
                del self.holders[buffer]

    def make_room(self, wanted: Issue, space: FreeSpace) -> NewIssues:
        """Spill neighbouring buffers whose return lets an allocation fit.

        Of those that may go the ones are taken whose next use is latest; where there is none, all.

        Raises:
            UBOverflowError: what is assembled in UB would have to go.
        """
        made = NewIssues()
        chosen: tuple[int, ...] | None = None
        latest = -1
        (buffer,) = wanted.buffers
        kept = _operands_beside(wanted)
        for group in space.neighbours(self._issues.sizes[buffer]):
            use = self._next_use(group, wanted, kept)
            if use > latest:
                latest, chosen = use, group
        if chosen is not None:
            for each in chosen:
                self._spill(each, self.holders[each], wanted, space, made)
            return made
        for each in tuple(space.held):
            holder = self.holders[each]
            if not holder.is_allocation and holder.opcode != "ASSEMBLE":
                self._spill(each, holder, wanted, space, made)
        if all(self.holders[each].is_allocation for each in space.held):
            space.compact()
        return made

    def full(self, wanted: Issue, space: FreeSpace, reason: str = "") -> UBOverflow:
        """Name the buffer that does not fit, and those in UB at that moment.

        Args:
            wanted: the allocation.
            space: as it is then.
            reason: another one than that there is no room.
        """
        (buffer,) = wanted.buffers
        target = next(iter(wanted.followers.values()), wanted)
        held = ", ".join(
            f"{stop - start} B of {self.holders[each].text}"
            for each, (start, stop) in space.held.items()
        )
        holders = {each: self.holders[each] for each in space.held if each in self.holders}
        return self._issues.overflow(
            target,
            {**holders, buffer: target},
            space.size_bytes,
            reason
            or f"{target.text} needs {self._issues.sizes[buffer]} B more in UB, where there are "
            f"{held}; a smaller tile would fit",
        )

    def _next_use(self, group: Sequence[int], wanted: Issue, kept: set[int]) -> int:
        """The rank at which the first of a group is needed again; -1 where one may not go."""
        found = []
        for buffer in group:
            holder = self.holders[buffer]
            if holder.is_allocation or holder.number in kept:
                return -1
            found.append(self._first_use(buffer, wanted))
        return min(found, default=-1)

    def _first_use(self, buffer: int, wanted: Issue) -> int:
        later = self._issues.order[wanted.rank + 1 :]
        return next(each.rank for each in later if buffer in each.buffers)

    def _spill(
        self, buffer: int, holder: Issue, wanted: Issue, space: FreeSpace, made: NewIssues
    ) -> None:
        if holder.opcode == "ASSEMBLE":
            reason = (
                f"{holder.text}: what is assembled in UB would be spilled, which upstream's "
                f"release {RELEASE} copies in again from wrong addresses; a smaller tile would fit"
            )
            raise UBOverflowError(self.full(wanted, space, reason))
        issues = self._issues
        tensor = next(each for each in holder.writes if each.buffer == buffer)
        if holder.opcode == "COPY_IN":
            (source,) = holder.reads
            reload_ = holder.operation
        else:
            source = self._store(buffer, tensor, holder, wanted, made)
            reload_ = TileOperation(opcode="COPY_IN", pipe="MTE2")
        assert reload_ is not None
        moved = Tensor(
            operand=replace(tensor.operand, offset=(0,) * len(tensor.operand.shape)),
            buffer=issues.new_buffer(tensor.operand.size_bytes),
        )
        assert moved.buffer is not None
        allocation = issues.allocation(moved.buffer)
        copy = issues.operation(reload_, [source], [moved], SPILL_CYCLES)
        follow(allocation, copy)
        use = self._first_use(buffer, wanted)
        issues.insert(allocation, use)
        issues.insert(copy, use + 1)
        self._read_from(copy, holder, moved, buffer)
        self._rename(buffer, moved.buffer, allocation)
        made.allocations.append(allocation)
        space.give_back(buffer)
        del self.holders[buffer]

    def _store(
        self, buffer: int, tensor: Tensor, holder: Issue, wanted: Issue, made: NewIssues
    ) -> Tensor:
        """Copy a tensor into the task's own memory, behind the last use of its buffer."""
        issues = self._issues
        stored = Tensor(
            operand=TileOperand(format=tensor.operand.format),
            buffer=None,
            workspace=self._workspace_bytes,
        )
        self._workspace_bytes += issues.sizes[buffer]
        copy = issues.operation(
            TileOperation(opcode="COPY_OUT", pipe="MTE3"), [tensor], [stored], SPILL_CYCLES
        )
        follow(holder, copy)
        copy.is_done = True
        before = issues.order[: wanted.rank]
        last = next(each.rank for each in reversed(before) if buffer in each.buffers)
        issues.insert(copy, last + 1)
        made.stored.append(copy)
        return stored

    def _read_from(self, copy: Issue, holder: Issue, moved: Tensor, buffer: int) -> None:
        """Let later readers of the spilled tensor read the copy of it that is read back."""
        for each in tuple(holder.followers.values()):
            if each.is_done or buffer not in each.buffers:
                continue
            copy.followers[each.number] = each
            del each.needs[holder.number]
            each.needs[copy.number] = copy
            for place, tensor in enumerate(each.reads):
                if holder in tensor.writers:
                    each.reads[place] = moved
                else:
                    _move_views(tensor, holder, moved)

    def _rename(self, old: int, new: int, allocation: Issue) -> None:
        """Let issues that are not done use the new buffer."""
        self.uses[new] = self.uses[old] + 2
        self.uses[old] = 0
        for each in self._issues.order:
            if each.is_done:
                continue
            each.buffers = [new if buffer == old else buffer for buffer in each.buffers]
            for tensor in each.writes:
                if tensor.buffer == old:
                    tensor.buffer = new
            if each.is_allocation:
                continue
            for need in tuple(each.needs.values()):
                if need.is_allocation and old in need.buffers:
                    del each.needs[need.number]
                    each.needs[allocation.number] = allocation


def _operands_beside(wanted: Issue) -> set[int]:
    """The numbers of all that the target of an allocation needs; that may not go."""
    first = wanted.followers[hash_order(wanted.followers)[0]]
    targets = list(wanted.followers.values())
    if first.opcode == "COPY_IN":
        targets += first.followers.values()
    return {number for target in targets for number in target.needs}


def _move_views(tensor: Tensor, holder: Issue, moved: Tensor) -> None:
    """Let views of a spilled tensor view the copy of it that is read back."""
    for writer in tensor.writers:
        if writer.is_view:
            if holder in writer.reads[0].writers:
                writer.reads[0] = moved
            else:
                _move_views(writer.reads[0], holder, moved)
            tensor.buffer = writer.reads[0].buffer
