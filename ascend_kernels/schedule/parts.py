"""The parts of a schedule: leaves of tile operations, tasks that run them, loops over tasks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from ascend_kernels.schedule.part_types import Number, Part, check_fields
from ascend_kernels.schedule.scalars import Scalar, elements_read
from simulator.machine.tile_opcodes import FROM_GM, TILE_OPCODES, TO_GM
from simulator.numbers.formats import Format
from simulator.numbers.rounding import RoundMode

__all__ = [
    *("Access", "Barrier", "Body", "Branch", "Buffer", "ControlStep", "Flag", "Leaf", "Loop"),
    *("Parameter", "Renewal", "Run", "Scalars", "Task", "Temporary", "TileOperand"),
    *("TileOperation",),
]

Scalars = tuple[Scalar, ...]
OUTWARD: Final = ("COPY_OUT", "TRANSPOSE_MOVEOUT")
"""The opcodes that move tiles from UB to GM."""
INWARD: Final = ("COPY_IN", "TRANSPOSE_MOVEIN", "PERMUTE")
"""The opcodes that move tiles from GM to UB."""
COPIES: Final = (*INWARD, *OUTWARD)
"""The opcodes that move tiles between GM and UB."""
TAKERS: Final = frozenset(row.name for row in TILE_OPCODES.values() if row.work in FROM_GM)
"""The opcodes that read GM at places which data name."""
PUTTERS: Final = frozenset(row.name for row in TILE_OPCODES.values() if row.work in TO_GM)
"""The opcodes that write GM at places which data name."""
MOVES: Final = TAKERS | PUTTERS | frozenset(COPIES)
"""The opcodes that read or write GM."""
BETWEEN_CORES: Final = ("CV_SYNC_SRC", "CV_SYNC_DST")
"""The set and the wait of a flag between the cube and a vector core."""
SYNCS: Final = ("SYNC_SRC", "SYNC_DST", *BETWEEN_CORES, "BAR.")
"""The beginnings of the opcodes of syncs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter(Part):
    """A tensor of the kernel's signature.

    Attributes:
        name: its name in the signature.
        format: the format of an element.
        shape: its extents; one that is known only when the kernel runs is a scalar.
        is_read, is_written: True if some task reads it, or writes it.
        planned_shape: its extents in the call that it was planned for, where some are open; () if
            they are not known. Schedules that differ in it alone are equal.
    """

    name: str
    format: Format
    shape: Scalars
    is_read: bool
    is_written: bool
    planned_shape: tuple[int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Temporary(Part):
    """A tensor in GM through which tasks pass results.

    Each has memory of its own here, but for reshapes and slots. Upstream's pass 35
    (GlobalMemoryReuse) lets temporaries of a body share memory; no file of a dump says which, so
    what would go wrong by that alone is not found.

    Attributes:
        name: its name, which no other tensor of the body has.
        format: the format of an element.
        shape: its extents.
        alias: the tensor in whose memory it lies, reshaped; "" if it has memory of its own.
        reads_slot: the slot whose tensor it is, which an earlier body left there; None: it is
            written before it is read.
        writes_slots: the slots that it is left in for later bodies.
        is_partial: a body writes a part of it only, in the memory of the tensor that lies in its
            slot.
        unknown: the reason for which its content is not known; "" where it is.
    """

    name: str
    format: Format
    shape: Scalars
    alias: str = ""
    reads_slot: int | None = None
    writes_slots: tuple[int, ...] = ()
    is_partial: bool = False
    unknown: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer(Part):
    """A range of bytes in UB, and its lifetime.

    Attributes:
        name: the name of the tensor that it was allocated for.
        address: the first byte.
        size_bytes: the number of bytes.
        first, last: the operations that use it first and last, in the order of issue.
    """

    name: str
    address: int
    size_bytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TileOperand(Part):
    """A tile in UB, or one that a task has in GM.

    Attributes:
        buffer: its buffer, by its place in the leaf; None in GM.
        access: in GM, the place among the task's accesses that says where; None in UB.
        start_bytes: in UB, the first byte of the tile's tensor in its buffer.
        format: the format of an element.
        shape: its extents in UB, padding included.
        valid_shape: the extents that hold data.
        offset: the place of the first valid element, an axis each.
        is_packed: in UB, the last axis has one element and no padding, so that the operation takes
            the last two axes for one row (upstream's option combine_axis; r0.2.0, framework/src/
            codegen/codegen_op.cpp:58, CombineAxis).
    """

    buffer: int | None = None
    access: int | None = None
    start_bytes: int = 0
    format: Format
    shape: tuple[int, ...] = ()
    valid_shape: Scalars = ()
    offset: tuple[int, ...] = ()
    is_packed: bool = False

    @property
    def size_bytes(self) -> int:
        """The bytes that the tile takes in UB, padding included."""
        return math.prod(self.shape) * self.format.dtype.itemsize


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag(Part):
    """The pipes and the event of a sync; a barrier has one pipe twice and no event."""

    setter: str
    waiter: str
    event_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TileOperation(Part):
    """One tile operation, or a sync.

    Attributes:
        opcode: upstream's name of it.
        pipe: the queue that it runs in; "" where its opcode has no row.
        inputs, outputs: its operands.
        mode: the round mode of a cast; None takes the default of the pair.
        saturate: True if a cast saturates; False keeps low bits.
        scalar: the number beside the tiles; None if there is none.
        other_scalar: the number behind it, of an operation of two.
        scalar_first: True if the number is the first operand.
        step: the distance of numbers that begin with the scalar.
        numbers: those that a task gives, as the place of its tile decides them: of a triangle its
            diagonal, of a range the place of its first element.
        axis: the axis of a reduction, an expansion, running sums or indices.
        axes: the two axes that a transposition exchanges, or all in the order of its result.
        function: the name of a comparison: "eq", "ne", "lt", "le", "gt", "ge"; of a triangle:
            "triu", "tril"; of running sums: "shifted"; or of additions by index: "rounded";
            of sorts: "ascending", and of pairs "indices".
        flag: the pipes and the event of a sync; None of other operations.
        latency: the cycles that upstream's scheduler counted.
        file, line: the place in the kernel's source; "" and 0 if a pass inserted the operation.
    """

    opcode: str
    pipe: str = ""
    inputs: tuple[TileOperand, ...] = ()
    outputs: tuple[TileOperand, ...] = ()
    mode: RoundMode | None = None
    saturate: bool = True
    scalar: float | None = None
    other_scalar: float | None = None
    scalar_first: bool = False
    step: float | None = None
    numbers: Scalars = ()
    axis: int = -1
    axes: tuple[int, ...] = ()
    function: str = ""
    flag: Flag | None = None
    latency: int = 0
    file: str = ""
    line: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        if self.scalar is not None:
            object.__setattr__(self, "scalar", Number(self.scalar))
        if self.other_scalar is not None:
            object.__setattr__(self, "other_scalar", Number(self.other_scalar))

    @property
    def place(self) -> str:
        """File and line; "" if a pass inserted the operation."""
        return f"{self.file}:{self.line}" if self.line else ""

    @property
    def at(self) -> str:
        """The place in parentheses, behind a name."""
        return f" ({self.place})" if self.line else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf(Part):
    """The tile program of a core.

    Attributes:
        name: upstream's name of it.
        core: "AIV" for a vector core, "AIC" for the cube, "HUB" where nothing runs.
        operations: its operations, in the order of issue.
        buffers: its buffers in UB; of the cube, which has none, those in L1 and L0.
    """

    name: str
    core: str
    operations: tuple[TileOperation, ...]
    buffers: tuple[Buffer, ...]

    @property
    def ub_buffers(self) -> tuple[Buffer, ...]:
        """Its buffers in UB: none of the cube."""
        return () if self.core == "AIC" else self.buffers

    @property
    def peak_ub_bytes(self) -> int:
        """The end of the highest buffer in UB, as allocated."""
        return max((each.address + each.size_bytes for each in self.ub_buffers), default=0)

    @property
    def needed_ub_bytes(self) -> int:
        """The largest sum of buffers in UB that are alive at once in this order."""
        return max((self.live_bytes(each.first) for each in self.ub_buffers), default=0)

    def live_bytes(self, index: int) -> int:
        """The sum of the buffers in UB that are alive at an operation, by its place."""
        return sum(each.size_bytes for each in self.ub_buffers if each.first <= index <= each.last)

    @property
    def operation_columns(self) -> tuple[int, ...]:
        """The column of each operation in a picture; a sync has that of the operation behind it."""
        counts = [each.flag is None for each in self.operations]
        last = max(sum(counts) - 1, 0)
        return tuple(min(each, last) for each in itertools.accumulate(counts[:-1], initial=0))

    @property
    def flags(self) -> tuple[Flag, ...]:
        """The flags that it sets."""
        return tuple(dict.fromkeys(each.flag for each in self.operations if each.flag is not None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Access(Part):
    """A box of a tensor in GM that a task copies from or to.

    Attributes:
        tensor: a parameter or a temporary; "" is the task's own memory for spills.
        offset: of the box; of spills, in bytes; () where an operation, and no copy, has this valid
            shape.
        shape: of the box: the valid elements; () is that of the tile in UB.
    """

    tensor: str
    offset: Scalars
    shape: Scalars


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(Part):
    """One run of a leaf.

    Attributes:
        leaf: the place of the leaf in the schedule; None where nothing runs.
        accesses: the boxes in GM that its copies read and write.
        successors: the places of the tasks of this body that need its results.
    """

    leaf: int | None
    accesses: tuple[Access, ...]
    successors: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Body(Part):
    """The tasks that one run of a loop's body, or of the kernel, hands to the cores.

    Attributes:
        name: upstream's name of it, with path and unroll factor.
        tasks: its tasks; each comes after those whose results it needs.
        temporaries: its tensors in GM that are no parameters.
    """

    name: str
    tasks: tuple[Task, ...]
    temporaries: tuple[Temporary, ...]

    @property
    def task_count(self) -> int:
        """The number of tasks of one run; those without a leaf, which run nothing, are none."""
        return sum(task.leaf is not None for task in self.tasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(Part):
    """A run of a body, by its place in the schedule."""

    body: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop(Part):
    """A loop over the steps in it.

    Attributes:
        variable: its name, for scalars in the steps.
        begin, end, step: its bounds; the end is not reached.
        steps: the steps of one iteration.
    """

    variable: str
    begin: Scalar
    end: Scalar
    step: Scalar
    steps: tuple[ControlStep, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch(Part):
    """Steps under a condition.

    Attributes:
        condition: a number; 0 is false.
        steps: the steps where it holds.
        otherwise: the steps where it does not.
    """

    condition: Scalar
    steps: tuple[ControlStep, ...]
    otherwise: tuple[ControlStep, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal(Part):
    """Slots get new memory: a tensor that is written in parts is declared here.

    Attributes:
        slots: which.
        is_certain: False if it is not known which of them.
    """

    slots: tuple[int, ...] = ()
    is_certain: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Barrier(Part):
    """All tasks before it are done when one behind it begins."""


ControlStep = Run | Loop | Branch | Renewal | Barrier


def numbers_read(bodies: Sequence[Body], steps: Sequence[ControlStep]) -> dict[str, int]:
    """The parameters with elements that are bounds, conditions or offsets; how many dimensions."""
    found: dict[str, int] = {}
    scalars: list[Scalar] = [
        each
        for body in bodies
        for task in body.tasks
        for access in task.accesses
        for each in (*access.offset, *access.shape)
        if not isinstance(each, int)
    ]
    waiting = list(steps)
    while waiting:
        match waiting.pop():
            case Loop(begin=begin, end=end, step=step, steps=inner):
                scalars += (begin, end, step)
                waiting += inner
            case Branch(condition=condition, steps=inner, otherwise=otherwise):
                scalars.append(condition)
                waiting += (*inner, *otherwise)
            case _:
                pass
    for each in scalars:
        found.update(elements_read(each))
    return found


def lives(
    operations: tuple[TileOperation, ...],
) -> dict[int, tuple[int, int]]:
    """The first and the last operation that uses each buffer."""
    found: dict[int, tuple[int, int]] = {}
    for index, operation in enumerate(operations):
        for operand in itertools.chain(operation.inputs, operation.outputs):
            if operand.buffer is not None:
                first, _ = found.get(operand.buffer, (index, index))
                found[operand.buffer] = first, index
    return found
