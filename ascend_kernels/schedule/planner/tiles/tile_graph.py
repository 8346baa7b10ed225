"""The graph of a kernel between its recording and its leaves: nodes over tensors, frozen.

Every stage of the planner takes one graph and gives the next, so that a dump of upstream's pass of
the same name can be laid beside it. The order of nodes is part of a graph: partition, leaves and
tasks follow from it. Paths below are those of upstream pypto at tag r0.2.0, framework/src.
"""

from __future__ import annotations

import enum
import itertools
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from ascend_kernels.schedule.part_types import Number
from ascend_kernels.schedule.parts import INWARD, ControlStep, Scalars
from ascend_kernels.schedule.scalars import Scalar, clamped
from ascend_kernels.schedule.time_limit import check_time
from simulator.numbers.formats import Format
from simulator.numbers.rounding import RoundMode
from tiling.chips import DEFAULT_CHIP
from tiling.grid import Shape

NO_SUBGRAPH: Final = -1
LEAST_CYCLES: Final = 10
"""Of an operation with a tile to read, or a copy in."""
BLOCK_BYTES: Final = DEFAULT_CHIP.block_bytes
REPEAT_BYTES: Final = DEFAULT_CHIP.repeat_bytes
"""Upstream's passes have these two of every chip as constants."""
_Entry = TypeVar("_Entry")
_NUMBER: Final = operator.attrgetter("number")
_AS_COPIES: Final = ("VIEW", "GATHER_IN_UB")
"""Further opcodes of which the tensor that is written counts (operation.h:384)."""
_REPEAT_ELEMS: Final = 128
"""The elements that an instruction takes a cycle."""


class Memory(enum.Enum):
    """The memory of a tensor."""

    UB = "UB"
    ARGUMENT = "GM: an argument of the kernel"
    LOCAL = "GM, if anything needed it: a tensor that the kernel's source names"
    TEMPORARY = "GM: passed from task to task"
    SLOT = "GM: passed from body to body"

    __hash__ = object.__hash__  # the one of Enum is Python code


def _holds(whole: int, start: Scalar, extent: int) -> bool:
    return isinstance(start, int) and start + extent <= whole


class PlanError(ValueError):
    """A kernel that the planner does not cover; names the operation and its line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TileTensor:
    """A tensor, or a tile of one.

    Attributes:
        format: of an element.
        shape: the extents that hold data.
        memory: the place of the whole tensor.
        name: of an argument; "" of others.
        raw: upstream's number of the memory that it is a part of; the order of buffers follows from
            these numbers.
        raw_shape: the extents of that memory; () is the shape.
        valid: the extents that hold data where they are known only when the kernel runs, as those
            of a view at a place that a loop decides; () is the shape.
        slot: the place, of all that bodies pass on, where it lies or is left; None of others.
        is_partial: a body writes a part of it only.
        tile: the offset of the tile that it was made for, in the result of the operation; () of
            what was made for no tile alone.
    """

    format: Format
    shape: Shape
    memory: Memory = Memory.UB
    name: str = ""
    raw: int = -1
    raw_shape: Shape = ()
    valid: Scalars = ()
    slot: int | None = None
    is_partial: bool = False
    tile: Shape = ()

    @property
    def extents(self) -> Scalars:
        """The extents that hold data in any run."""
        return self.valid or self.shape

    @property
    def is_open(self) -> bool:
        """True if it holds data in part, or in extents known only when the kernel runs."""
        return bool(self.valid)

    def part(self, offset: Scalars, shape: Shape) -> Scalars:
        """The extents that hold data of a part of it; () if they are its shape."""
        if not self.valid and all(map(_holds, self.shape, offset, shape)):
            return ()
        found = tuple(map(clamped, self.extents, offset, shape))
        return () if found == shape else found


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """The part of an operation that is neither opcode nor operand.

    Attributes:
        mode: round mode of a cast; None takes the default of the pair.
        saturate: of a cast; False in one of AutoCast, None in one that a later pass inserts.
        scalar: the number beside the tiles.
        other_scalar: the number behind it.
        scalar_first: it is the first operand.
        step: the distance of numbers that begin with it.
        number: of an operation whose tiles differ in one, that of the first, then of each tile.
        axis: of a reduction or an expansion.
        axes: two that are exchanged, or all in the order of the result.
        function: of a comparison.
        offset: of a view, an assemble or a copy, in the larger tensor.
        taken: of an operation that reads GM, the offset and the extents of each operand there.
        file, line: the place in the kernel's source; "" and 0 of what a stage inserts.
    """

    mode: RoundMode | None = None
    saturate: bool | None = None
    scalar: float | None = None
    other_scalar: float | None = None
    scalar_first: bool = False
    step: float | None = None
    number: int | None = None
    axis: int = -1
    axes: tuple[int, ...] = ()
    function: str = ""
    offset: Scalars = ()
    taken: tuple[tuple[Scalars, Shape], ...] = ()
    file: str = ""
    line: int = 0

    def __post_init__(self) -> None:
        if self.scalar is not None:
            object.__setattr__(self, "scalar", Number(self.scalar))
        if self.other_scalar is not None:
            object.__setattr__(self, "other_scalar", Number(self.other_scalar))


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """An operation of a graph.

    Attributes:
        opcode: upstream's name.
        number: counts up as nodes are made; of several producers or consumers the lowest is first.
        inputs, outputs: tensors, by their place in the graph; a second output is scratch.
        attributes: the rest.
        tile_shape: set where it was called; () of what a stage inserts.
        subgraph: the task that it belongs to, once that is known.
    """

    opcode: str
    number: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attributes: Attributes = Attributes()
    tile_shape: Shape = ()
    subgraph: int = NO_SUBGRAPH

    @property
    def place(self) -> str:
        """Opcode and line, for messages."""
        asked = self.attributes
        return f"{self.opcode} at {asked.file}:{asked.line}" if asked.line else self.opcode


@dataclass(frozen=True, slots=True, kw_only=True)
class TileGraph:
    """Nodes in order, and the tensors that they refer to by place.

    Attributes:
        nodes: producers need not stand before consumers until the graph is sorted.
        tensors: in the order in which they were made.
        first_raw: the number of the first raw tensor that a stage made.
        raw_tiles: `TileTensor.tile` of each of these, those that are in use no more among them.
        guessed_raws: the numbers of raw tensors that upstream may give in another order.
        name: of the run of operations, where a kernel has several.
        fewest: once there are subgraphs: from so many alike rows on, more do not change what they
            hold.
        spread: once tasks are merged: so many times as many alike ones are merged in the same way.
    """

    nodes: tuple[Node, ...]
    tensors: tuple[TileTensor, ...]
    first_raw: int = 0
    raw_tiles: tuple[Shape, ...] = ()
    guessed_raws: frozenset[int] = frozenset()
    name: str = ""
    fewest: int = 0
    spread: float = math.inf

    @property
    def outputs(self) -> tuple[int, ...]:
        """The arguments and slots that nodes write, in the order in which they were made."""
        written = sorted({tensor for node in self.nodes for tensor in node.outputs})
        lasting = Memory.ARGUMENT, Memory.SLOT
        return tuple(each for each in written if self.tensors[each].memory in lasting)

    @property
    def next_raw(self) -> int:
        """The number of the next raw tensor."""
        return self.first_raw + len(self.raw_tiles)

    @property
    def next_number(self) -> int:
        """The number of the next node."""
        return max((each.number for each in self.nodes), default=-1) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelGraphs:
    """The operations of a kernel over whole tensors.

    Attributes:
        graphs: one of each run of operations that is compiled by itself.
        steps: the control flow over them, by their place.
        open_axes: the axes of parameters whose length is known only when the kernel runs.
        simplified: the settings that upstream's passes follow and the planner does not.
    """

    graphs: tuple[TileGraph, ...]
    steps: tuple[ControlStep, ...]
    open_axes: frozenset[tuple[str, int]]
    simplified: tuple[str, ...] = ()


def whole_copy(opcode: str, number: int, source: int, target: int, rank: int) -> Node:
    """The node that copies a whole tensor of a rank."""
    asked = Attributes(offset=(0,) * rank)
    return Node(opcode=opcode, number=number, inputs=(source,), outputs=(target,), attributes=asked)


def exchanged(entries: Sequence[_Entry], axes: Sequence[int]) -> tuple[_Entry, ...]:
    """The entries of axes, those of two of them exchanged; all as they are where none are named.

    Where more axes are named, the entries in their order.
    """
    if len(axes) > 2:
        return tuple(entries[axis] for axis in axes)
    found = list(entries)
    for axis, other in zip(axes, reversed(axes), strict=True):
        found[axis] = entries[other]
    return tuple(found)


def restored(entries: Sequence[_Entry], axes: Sequence[int]) -> tuple[_Entry, ...]:
    """The entries that `exchanged` gives these of."""
    return exchanged(entries, sorted(range(len(axes)), key=axes.__getitem__) if axes[2:] else axes)


def producers(nodes: Iterable[Node]) -> Mapping[int, list[Node]]:
    """The nodes that write each tensor, by number."""
    found: dict[int, list[Node]] = {}
    for node in sorted(nodes, key=_NUMBER):
        for tensor in node.outputs:
            found.setdefault(tensor, []).append(node)
    return found


def consumers(nodes: Iterable[Node]) -> Mapping[int, list[Node]]:
    """The nodes that read each tensor, by number, each once."""
    found: dict[int, list[Node]] = {}
    for node in sorted(nodes, key=_NUMBER):
        for tensor in dict.fromkeys(node.inputs):
            found.setdefault(tensor, []).append(node)
    return found


def place_of(node: Node, users: Mapping[int, Sequence[Node]]) -> str:
    """Opcode and line of a node, for messages; of one that a stage made, those of its reader."""
    for each in () if node.attributes.line else users.get(node.outputs[0], ()):
        return f"{node.opcode} for {place_of(each, users)}"
    return node.place


def in_order(nodes: Sequence[Node], called: Sequence[int] = ()) -> tuple[Node, ...]:
    """The nodes with producers before consumers, each as late as its consumers allow.

    From the nodes that nobody reads, in the order given, towards the sources, then reversed; ties
    therefore turn round each time (interface/function/function.cpp:1001, GetSortedOperations).

    Args:
        nodes: of a graph without circles.
        called: numbers of nodes that keep this order among themselves.

    Raises:
        OutOfTimeError: the time of the plan is over; every pass orders its nodes.
        ValueError: a circle, named by one of its nodes.
    """
    check_time()
    made: dict[int, list[int]] = {}
    for node in sorted(nodes, key=_NUMBER):
        for tensor in node.outputs:
            made.setdefault(tensor, []).append(node.number)
    before = {after: [first] for first, after in itertools.pairwise(called)}
    by_number = {node.number: node for node in nodes}
    needed: dict[int, list[int]] = {}
    waiting = dict.fromkeys(by_number, 0)
    for number, node in by_number.items():
        needs = needed[number] = before.get(number, [])
        for tensor in node.inputs:  # once for each result that it reads
            if tensor in made:
                needs += made[tensor]
        if number in needs:
            needs[:] = (each for each in needs if each != number)
        for each in needs:
            waiting[each] += 1
    found = [number for number, count in waiting.items() if not count]
    for number in found:  # it grows meanwhile
        for producer in needed[number]:
            waiting[producer] -= 1
            if not waiting[producer]:
                found.append(producer)
    if len(found) < len(nodes):
        (first, *_) = (each for each in nodes if each.number not in {*found})
        raise ValueError(f"operations wait for each other, {first.place} among them")
    return tuple(by_number[number] for number in reversed(found))


def latency_cycles(
    opcode: str, inputs: Sequence[tuple[int, Format]], outputs: Sequence[tuple[int, Format]]
) -> int:
    """The cycles that upstream's scheduler counts for a tile operation, a copy or a view.

    10 for the first 256 bytes of the largest tensor that is read, before padding; for each further
    256 one more, or two where the first tensor's elements have one byte. Of a move in and a view
    the tensor that is written counts. 1 without such a tensor. The same for every opcode: the names
    in upstream's tables of single opcodes never match (interface/operation/operation.cpp:201 to
    219, cycles.cpp:83 to 103).

    Args:
        opcode: upstream's name.
        inputs, outputs: elements and format of each tensor.
    """
    decides = outputs if opcode in (*INWARD, *_AS_COPIES) else inputs
    if not decides:
        return 1
    elem_bytes = decides[0][1].dtype.itemsize
    repeats = -(-max(elems for elems, _ in decides) * elem_bytes // REPEAT_BYTES)
    return LEAST_CYCLES + (repeats - 1) * max(1, REPEAT_BYTES // elem_bytes // _REPEAT_ELEMS)
