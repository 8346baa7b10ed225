"""The buffers that tensors of a leaf share, and the order in which they are allocated.

Source: upstream pypto at tag r0.2.0, framework/src/passes/block_graph_pass: memory_reuse/
merge_src_dst_buffer.cpp (pass 29), schedule_ooo/add_alloc.cpp (pass 30).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Final

from ascend_kernels.schedule.parts import TileOperand, TileOperation
from ascend_kernels.schedule.planner.leaves.leaf_graph import LeafGraph
from ascend_kernels.schedule.planner.tiles.tile_graph import PlanError
from simulator.machine.tile_opcodes import OVER_FIRST, TILE_OPCODES, TileWork
from simulator.machine.tile_steps import changed_input
from simulator.numbers.formats import FloatFormat, Format

_TABLE_SIZES: Final = (13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273)
"""The sizes through which a hash table of libstdc++ grows."""
_SCATTER: Final = "SCATTER_ELEMENT"
_CHANGES: Final[Mapping[TileWork, str]] = {
    TileWork.ADD_AT: "multiplies its terms",
    TileWork.SORT32: "changes the sign of its elements",
    TileWork.QUANTIZE: "multiplies its elements",
}
"""By kind of work, how it changes an input; see `changed_input`."""


def with_shared_buffers(graph: LeafGraph) -> LeafGraph:
    """Let results lie in the buffer of an input that no other operation reads.

    The first input does whose buffer has the same size, elements of as many bytes, and one reader
    (merge_src_dst_buffer.cpp:223 to 287). A tensor that is assembled into its own buffer keeps it.
    A reshaped one is in that of its operand from the start, so it counts as one with two readers.

    A scatter of a number is in that of its first input, whoever reads it (:224). What assembles
    this input is done before, and takes none of its elements. Other scatters, and additions by
    index, work on what lies where their result does, so they have to be there too.

    Raises:
        ValueError: an opcode has no row, so nothing is known of it.
        PlanError: another operation reads the tensor that a scatter, or an addition by index,
            writes over, or it does itself as its indices or elements; or another one reads the
            terms that an addition multiplies in place; or the result is assembled in UB, or, if it
            is not of a number, the first input.
    """
    graph = _with_reshapes_in_place(graph)
    sizes: dict[int, int] = {}
    readers: dict[int, set[int]] = {}
    assembled: dict[int, set[int]] = {}
    for index, operation in enumerate(graph.operations):
        for each in operation.inputs:
            if each.buffer is not None:
                readers.setdefault(each.buffer, set()).add(index)
                if operation.opcode == "ASSEMBLE" and operation.outputs[0].buffer == each.buffer:
                    assembled.setdefault(each.buffer, set()).add(index)
    for buffer, size_bytes in graph.buffer_bytes.items():
        sizes[buffer] = size_bytes if buffer in readers else 0
    merged: dict[int, int] = {}
    made = []
    for operation in graph.operations:
        inputs = tuple(_in_buffer(each, merged) for each in operation.inputs)
        result = operation.outputs[0]
        _check_spoiled(operation, readers, assembled)
        given = operation.inputs[0].buffer if _works_on_result(operation) else None
        if given is not None:
            _check_is_read_once(operation, inputs, readers[given] - assembled.get(given, set()))
        if _row_allows(operation) and result.buffer is not None and result.buffer not in merged:
            own = result.buffer
            for each in inputs:
                if (
                    each.buffer is None
                    or each.buffer == own
                    or sizes[each.buffer] != sizes[own]
                    or each.format.dtype.itemsize != result.format.dtype.itemsize
                    or own in assembled
                    or (len(readers.get(each.buffer, ())) > 1 and operation.opcode != _SCATTER)
                ):
                    continue
                _check_blocks(operation, each)
                merged[own] = each.buffer
                if len(readers.get(own, ())) > len(readers.get(each.buffer, ())):
                    readers[each.buffer] = readers[own]
                break
        outputs = tuple(_in_buffer(each, merged) for each in operation.outputs)
        if given is not None and outputs[0].buffer != inputs[0].buffer:
            raise PlanError(
                f"{operation.opcode}{operation.at}: upstream leaves its result in its first "
                "operand, not where tiles are put together; take its tile shape for what reads it"
                if result.buffer in assembled
                else f"{operation.opcode}{operation.at}: upstream gives its result a place of its "
                "own, without the elements of its first operand, which tiles are put together in; "
                f"{_word(operation)} a copy of it, as {_copy_of(inputs[0].format)}"
            )
        if (inputs, outputs) != (operation.inputs, operation.outputs):
            operation = replace(operation, inputs=inputs, outputs=outputs)
        made.append(operation)
    return replace(graph, operations=tuple(made))


def _with_reshapes_in_place(graph: LeafGraph) -> LeafGraph:
    if all(each.opcode != "RESHAPE" for each in graph.operations):
        return graph
    held: dict[int, int] = {}
    made = []
    for operation in graph.operations:
        inputs = tuple(_in_buffer(each, held) for each in operation.inputs)
        if operation.opcode == "RESHAPE":
            (source,), (result,) = inputs, operation.outputs
            if source.buffer is not None and result.buffer is not None:
                held[result.buffer] = source.buffer
        outputs = tuple(_in_buffer(each, held) for each in operation.outputs)
        made.append(replace(operation, inputs=inputs, outputs=outputs))
    return replace(graph, operations=tuple(made))


def allocation_order(graph: LeafGraph) -> tuple[int, ...]:
    """The buffers in the order in which upstream's sort takes their allocations.

    It is that of a hash table, so it depends on the numbers; between two buffers that the same
    operation writes it decides which one is allocated first (add_alloc.cpp:33 to 66,
    schedule_ooo/optimize_sort.cpp:774).
    """
    return hash_order(_allocated(graph))


def other_allocation_orders(graph: LeafGraph) -> Iterator[tuple[TileOperation, tuple[int, ...]]]:
    """The orders that follow from other numbers of the guessed buffers, each with its operation.

    Of each operation with several results that a table may give in another order: these exchanged.
    A number counts for those that are put into the table with it or behind it, and for all where
    the table grows later, for it is then taken in its own order.
    """
    numbers = list(_allocated(graph))
    first = next((place for place, each in enumerate(numbers) if each in graph.guessed), None)
    if first is None:
        return
    order = hash_order(numbers)
    grows = any(first < size < len(numbers) for size in _TABLE_SIZES)
    for operation in graph.operations:
        results = {each.buffer for each in operation.outputs if each.buffer is not None}
        if len(results) == 1 or not (grows or results & {*numbers[first:]}):
            continue
        held = tuple(each for each in order if each in results)
        for moved in itertools.permutations(held):
            if moved != held:
                taken = iter(moved)
                yield operation, tuple(next(taken) if x in results else x for x in order)


def _allocated(graph: LeafGraph) -> dict[int, None]:
    """The buffers in the order in which operations first write them."""
    return dict.fromkeys(
        each.buffer
        for operation in graph.operations
        for each in operation.outputs
        if each.buffer is not None
    )


def hash_order(numbers: Iterable[int]) -> tuple[int, ...]:
    """The order in which a hash table of libstdc++ gives back the numbers put into it.

    A number goes to the front of those with the same remainder, if there are any, else to the front
    of all. A table that is full is put, in its order, into the next larger one.
    """
    sizes = iter(_TABLE_SIZES)
    size = next(sizes)
    groups: dict[int, list[int]] = {}
    for count, number in enumerate(numbers):
        if count == size:
            size = next(sizes)
            held, groups = _flat(groups), {}
            for each in held:
                groups.setdefault(each % size, []).append(each)
        groups.setdefault(number % size, []).append(number)
    return _flat(groups)


def _flat(groups: dict[int, list[int]]) -> tuple[int, ...]:
    return tuple(each for group in reversed(groups.values()) for each in reversed(group))


def _in_buffer(operand: TileOperand, merged: dict[int, int]) -> TileOperand:
    buffer = operand.buffer
    if buffer not in merged:
        return operand
    return replace(operand, buffer=merged[buffer])


def _work(operation: TileOperation) -> TileWork | None:
    row = TILE_OPCODES.get(operation.opcode)
    return None if row is None else row.work


def _works_on_result(operation: TileOperation) -> bool:
    """True if it changes elements that lie where its result does."""
    return _work(operation) in OVER_FIRST


def _word(operation: TileOperation) -> str:
    return "add to" if _work(operation) is TileWork.ADD_AT else "scatter into"


def _check_spoiled(
    operation: TileOperation,
    readers: Mapping[int, Set[int]],
    assembled: Mapping[int, Set[int]],
) -> None:
    """Refuse an operation that changes an input which is read besides."""
    work = _work(operation)
    if work is None:
        return
    place = changed_input(work, operation.scalar, operation.function)
    if place is None:
        return
    changed = operation.inputs[place]
    buffer = changed.buffer
    if buffer is not None and len(readers[buffer] - assembled.get(buffer, set())) > 1:
        raise PlanError(
            f"{operation.opcode}{operation.at}: upstream {_CHANGES[work]} where they lie, and "
            f"another operation reads them; give it a copy, as {_copy_of(changed.format)}"
        )


def _check_blocks(operation: TileOperation, given: TileOperand) -> None:
    """Refuse a result over blocks of a column, of which each row after the first is still read."""
    is_wider = given.valid_shape[-1:] != operation.outputs[0].valid_shape[-1:]
    if TILE_OPCODES[operation.opcode].takes_blocks and is_wider:
        raise PlanError(
            f"{operation.opcode}{operation.at}: upstream writes its result over its column, which "
            f"it still reads; give it a copy of its rows, as {_copy_of(operation.inputs[0].format)}"
        )


def _check_is_read_once(
    scatter: TileOperation, inputs: Sequence[TileOperand], readers: Set[int]
) -> None:
    """Refuse a scatter that writes over elements which are still to be read."""
    first, *others = (each.buffer for each in inputs)
    if first in others:
        reader = "it reads as another operand too, element by element"
    elif len(readers) > 1:
        reader = "another operation reads too"
    else:
        return
    raise PlanError(
        f"{scatter.opcode}{scatter.at}: upstream writes over its first operand, which {reader}; "
        f"{_word(scatter)} a copy of its own, as {_copy_of(inputs[0].format)}"
    )


def _copy_of(fmt: Format) -> str:
    """An expression of x that gives its elements in a buffer of their own."""
    if isinstance(fmt, FloatFormat):
        return "x * 1.0"
    return "x * 1" if fmt.bits > 8 else "x cast to FP16 and back"


def _row_allows(operation: TileOperation) -> bool:
    row = TILE_OPCODES.get(operation.opcode)
    if row is None:
        raise ValueError(f"{operation.opcode}{operation.at} has no row here")
    return row.in_place
