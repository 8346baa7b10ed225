"""A leaf's tile operations before they have an order: tensors, their writers, their buffers.

A buffer has a number of any kind here, of the tensor that it was made for; it has no address yet.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ascend_kernels.schedule.parts import TileOperand, TileOperation
from ascend_kernels.schedule.planner.tiles.tile_graph import latency_cycles
from simulator.machine.tile_opcodes import TILE_OPCODES

SPILL_CYCLES: Final = 511
"""Of a copy of a spill, whatever its size (schedule_ooo/spill_buffer.cpp:24)."""

UNTOLD: Final = frozenset(("ROUND", "WHERE_SS"))
"""Opcodes whose numbers are not in the text by which upstream compares leaves.

That text has the attributes that interface/operation/opcode.cpp lists: of WHERE_SS a list of
numbers, which attr_holder.h gives as "unsupported type"; of ROUND one that no operation has.
"""

Numbers = tuple[tuple[int, ...], ...]


def decimals(number: float | None, opcode: str = "") -> str:
    """The text by which upstream's compiler compares numbers (interface/operation/attr_holder.h).

    Of two that differ below the sixth decimal it keeps the first; of any two of an opcode whose
    number the text of a leaf does not have, too.
    """
    return "" if number is None or opcode in UNTOLD else format(number, "f")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafGraph:
    """Tile operations and the tensors that they pass to one another.

    Attributes:
        operations: each behind those that it needs, in upstream's order of the leaf function,
            without reshapes in GM, which do nothing; operands in UB name a buffer.
        reads, writes: of each operation, for each operand, the number of its tensor; -1 of one in
            GM that the leaf does not both write and read.
            Parts that are assembled, and views, are tensors of their own in one buffer.
        gm_tensors: of each access of the operations, a number of the tensor in GM.
        guessed: the buffers whose numbers upstream may give otherwise.
    """

    operations: tuple[TileOperation, ...]
    reads: Numbers
    writes: Numbers
    gm_tensors: tuple[int, ...] = ()
    guessed: frozenset[int] = frozenset()

    @classmethod
    def of(cls, operations: Sequence[TileOperation], gm_tensors: Sequence[int] = ()) -> LeafGraph:
        """The graph in which a tensor is known by its buffer, its offset and its valid shape.

        What is assembled is written by several operations; else the last writer counts.
        """
        numbers = itertools.count()
        latest: dict[object, int] = {}
        assembled: set[int] = set()
        reads, writes = [], []
        for operation in operations:
            reads.append(
                tuple(
                    -1 if each.buffer is None else latest[_place(each)] for each in operation.inputs
                )
            )
            found = []
            for each in operation.outputs:
                number = latest.get(_place(each), -1)
                if operation.opcode != "ASSEMBLE" or number not in assembled:
                    number = next(numbers)
                if operation.opcode == "ASSEMBLE":
                    assembled.add(number)
                if each.buffer is not None:
                    latest[_place(each)] = number
                found.append(number)
            writes.append(tuple(found))
        return cls(
            operations=tuple(operations),
            reads=tuple(reads),
            writes=tuple(writes),
            gm_tensors=tuple(gm_tensors),
        )

    @property
    def buffers(self) -> tuple[int, ...]:
        """The buffers as they are first used."""
        used = dict.fromkeys(
            each.buffer
            for operation in self.operations
            for each in (*operation.inputs, *operation.outputs)
            if each.buffer is not None
        )
        return tuple(used)

    def in_buffers(self, numbers: Mapping[int, int]) -> LeafGraph:
        """The same with other numbers of its buffers; those that are not named stay."""

        @functools.cache
        def anew(operand: TileOperand) -> TileOperand:
            number = operand.buffer
            return (
                operand if number is None else replace(operand, buffer=numbers.get(number, number))
            )

        operations = (
            replace(
                each, inputs=tuple(map(anew, each.inputs)), outputs=tuple(map(anew, each.outputs))
            )
            for each in self.operations
        )
        guessed = frozenset(numbers.get(each, each) for each in self.guessed)
        return replace(self, operations=tuple(operations), guessed=guessed)

    def renumbered(self) -> LeafGraph:
        """The same with buffers numbered from 0 as they are first used, and none guessed."""
        numbers = {number: place for place, number in enumerate(self.buffers)}
        return replace(self.in_buffers(numbers), guessed=frozenset())

    @property
    def kind(self) -> Hashable:
        """It renumbered and without places in the source: equal for leaves that are one upstream.

        Of numbers their text counts. Source: interface/function/function.cpp:1273, ComputeHash.
        """
        anew = self.renumbered()
        operations = tuple(
            replace(each, file="", line=0, scalar=None, other_scalar=None)
            for each in anew.operations
        )
        numbers = tuple(decimals(each.scalar, each.opcode) for each in anew.operations)
        return replace(anew, operations=operations), numbers

    def is_numbered_as(self, other: LeafGraph) -> bool:
        """True if the numbers of an equal leaf differ by one constant."""
        pairs = zip(self.buffer_bytes, other.buffer_bytes, strict=True)
        return len({one - number for one, number in pairs}) <= 1

    @property
    def writers(self) -> dict[int, tuple[int, ...]]:
        """Of each tensor that is written here, the operations that do."""
        found: dict[int, tuple[int, ...]] = {}
        for index, numbers in enumerate(self.writes):
            for number in numbers:
                if number >= 0:
                    found[number] = (*found.get(number, ()), index)
        return found

    @property
    def buffer_bytes(self) -> dict[int, int]:
        """The bytes of each buffer: its largest tensor (schedule_ooo/scheduler.cpp:832)."""
        found: dict[int, int] = {}
        for operation in self.operations:
            for each in (*operation.inputs, *operation.outputs):
                if each.buffer is not None:
                    found[each.buffer] = max(found.get(each.buffer, 0), each.size_bytes)
        return found


def operation_cycles(operation: TileOperation) -> int:
    """The cycles of an operation, a copy or a view."""
    inputs, outputs = (
        [(_elems(operand), operand.format) for operand in operands]
        for operands in (operation.inputs, operation.outputs)
    )
    return latency_cycles(operation.opcode, inputs, outputs)


def waiting_pipe(operation: TileOperation) -> str:
    """The pipe whose turn an operation waits for; operations behind it wait for its own pipe.

    Source: pass_utils/reschedule_utils.cpp:109; block_graph_pass/insert_sync.cpp, pipeIdStart_.
    """
    row = TILE_OPCODES.get(operation.opcode)
    return operation.pipe if row is None else row.waits_in.name


def _elems(operand: TileOperand) -> int:
    return math.prod(
        valid if isinstance(valid, int) else extent
        for valid, extent in zip(operand.valid_shape, operand.shape, strict=True)
    )


def _place(operand: TileOperand) -> object:
    return operand.buffer, operand.offset, operand.valid_shape
