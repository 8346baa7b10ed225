"""Cycles that no plan of a kernel goes below, from its operations over whole tensors.

By upstream's scheduler ("latencies") two bounds count. The work of the vector pipes, shared evenly
by all cores: an operation is cut into one tile operation or more for each tile of its result, and a
core does one at a time. And the longest chain of operations that wait for each other, each on one
tile of full size, with a copy in before it and a copy out behind it.

By upstream's simulator ("tasks") there are three. That chain. The tasks: tiles that no operation
joins are in tasks of their own, and results are looked at one after another. And the work of the
busiest pipe, of tiles in UB and of copies of arguments, on any number of cores: the first task of
each begins a hand-out after that of another, and the last results are looked at in a row.

None counts what a plan may leave out or share: other copies, fills, expansions, operations whose
result nobody needs or which another one gives, and what no argument decides.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Final

from ascend_kernels.schedule.body_runs import NO_EXTENTS, body_runs
from ascend_kernels.schedule.planner.tile_graph import (
    Attributes,
    KernelGraphs,
    Memory,
    Node,
    TileGraph,
    TileTensor,
    in_order,
    latency_cycles,
    producers,
)
from ascend_kernels.schedule.simulated_cycles import (
    FIRST_CYCLES,
    FORMS,
    HAND_OUT_CYCLES,
    RESOLVE_CYCLES,
)
from ascend_kernels.schedule.task_times import MODEL
from simulator.machine.tile_opcodes import TILE_OPCODES, TileOpcode, TileWork
from simulator.numbers.formats import Format
from tiling.grid import Shape

_TILE_BY_TILE: Final = (TileWork.ELEMENTS, TileWork.CAST, TileWork.COMPARE)
_REDUCTIONS: Final = (TileWork.REDUCE, TileWork.REDUCE_LINES)
_BY_TILE: Final = (*_TILE_BY_TILE, *_REDUCTIONS, TileWork.FILL, TileWork.EXPAND)
_PAIRS: Final = {"ROWMAX": "PAIRMAX", "ROWMIN": "PAIRMIN", "ROWSUM": "PAIRSUM"}
"""By the first letters of a reduction, the opcode that joins its tiles."""
_FIRST_CYCLES: Final = 10
"""The least of an operation with a tile to read, or a copy in."""
_LASTING: Final = (Memory.ARGUMENT, Memory.SLOT)
LATENCIES: Final = "latencies"
"""The name of the model: the cycles that upstream's scheduler counts."""


def _least(opcode: str) -> int:
    """The cycles of the smallest copy, of any dtype."""
    forms = (form for (name, _), form in FORMS.items() if name == opcode)
    return min(math.floor(form.once + form.each) for form in forms)


_COPY_CYCLES: Final = {MODEL: (_least("COPY_IN"), _least("COPY_OUT")), LATENCIES: (10, 10)}
"""The least of a copy in and of a copy out."""
_Sizes = Sequence[tuple[int, Shape]]


@dataclass(slots=True)
class _Work:
    """The least cycles of a body.

    Attributes:
        tiles: of operations on tiles in UB.
        copies: of copies in, by argument.
        chain: of operations that wait for each other, with copies.
    """

    tiles: int = 0
    copies: dict[int, int] = field(default_factory=dict)
    chain: int = 0


class CycleBound:
    """The cycles that every schedule of operations takes at least.

    Args:
        given: the operations. A body that runs an open number of times counts once.
        cores: vector cores of the chip.
        model: "tasks" as `schedule_cycles` counts, or "latencies" as `task_times` does.
        extents: of the parameters of the call that is planned for, which numbers of runs go by.
    """

    def __init__(
        self,
        given: KernelGraphs,
        cores: int,
        model: str = MODEL,
        extents: Mapping[str, Shape] = NO_EXTENTS,
    ) -> None:
        self._cores, self._model = cores, model
        self._bodies = [
            (1 if count is None else count, given.graphs[place], _needed(given.graphs[place]))
            for place, count in body_runs(given.steps, extents).items()
        ]

    def cycles(self, tile_of: Callable[[Shape], Shape] = tuple) -> int:
        """Those of all bodies; `tile_of` gives the tile shape in place of that of a node."""
        return sum(
            count * self._of_body(graph, nodes, tile_of) for count, graph, nodes in self._bodies
        )

    def _of_body(
        self, graph: TileGraph, nodes: Sequence[Node], tile_of: Callable[[Shape], Shape]
    ) -> int:
        work = self._work(graph, nodes, tile_of)
        if work is None:
            return 0
        if self._model == LATENCIES:
            return max(-(-work.tiles // self._cores), work.chain)
        if not work.chain:
            return 0
        tasks, whole = _apart(graph, nodes, tile_of)
        first, last = _COPY_CYCLES[self._model]
        shared = math.inf
        for cores in range(1, self._cores + 1):
            count = max(cores, tasks)
            busy = max(
                sum(work.copies.values()) + count * last, work.tiles + count * (first + last)
            )
            apart = (cores - 1) * HAND_OUT_CYCLES + (cores + 1) * RESOLVE_CYCLES
            shared = min(shared, busy / cores + apart / 2)
        resolved = FIRST_CYCLES + first + last + tasks * RESOLVE_CYCLES
        chains = FIRST_CYCLES + work.chain + whole * RESOLVE_CYCLES
        return max(math.floor(shared), resolved, chains)

    def _copy(self, opcode: str, tensor: TileTensor, tile: Shape) -> int:
        """The least cycles of a copy of one full tile."""
        least = _COPY_CYCLES[self._model][opcode == "COPY_OUT"]
        if self._model == LATENCIES or len(tensor.shape) != len(tile):
            return least
        return max(least, _simulated(opcode, tensor.format, _sizes(tensor.shape, tile)[0][1]))

    def _work(
        self, graph: TileGraph, nodes: Sequence[Node], tile_of: Callable[[Shape], Shape]
    ) -> _Work | None:
        """The work of a body; None where nothing is known of it."""
        tensors = graph.tensors
        if any(each.is_open for each in tensors):
            return None
        found, values, chains = _Work(), dict[int, int](), dict[int, int]()
        lasts: dict[int, int] = {}
        sizes: dict[int, Shape] = {}
        known: dict[object, int] = {}
        views: dict[int, object] = {}
        fixed = {place for place, each in enumerate(tensors) if each.memory in _LASTING}
        given = {place: place for place in fixed}
        written = {tensor for node in nodes for tensor in node.outputs}
        for node in nodes:
            asked = node.attributes
            inputs = tuple(values.setdefault(each, -1 - each) for each in node.inputs)
            if node.opcode == "VIEW":
                if views.setdefault(inputs[0], asked.offset) != asked.offset:
                    return None  # the parts may overlap, and equal tiles are computed once
                for each in node.inputs:
                    if each in given:
                        given.update(dict.fromkeys(node.outputs, given[each]))
            total = longest = 0
            tile = tile_of(node.tile_shape)
            if fixed.intersection(node.inputs):
                fixed.update(node.outputs)
                total, longest = _cycles(graph, node, tile, self._model)
                if longest and self._model == MODEL:
                    for each in node.inputs:
                        source = given.get(each)
                        if source is not None and source not in written:
                            copied = _copied(tensors[each], tile)
                            found.copies[source] = max(found.copies.get(source, 0), copied)
            before = max((chains.get(each, 0) for each in node.inputs), default=0)
            if longest:  # its tiles are copied in first, one after another
                copies = {
                    given[each]: self._copy("COPY_IN", tensors[each], tile)
                    for each in node.inputs
                    if each in given
                }
                if self._model == LATENCIES:
                    before = max(before, *copies.values(), 0)
                else:
                    # Of joined tiles the second is copied in too, or what becomes of it.
                    second = _COPY_CYCLES[MODEL][0] if copies and _joins(graph, node, tile) else 0
                    before = max(before, sum(copies.values()) + second)
            key = node.opcode, inputs, _anonymous(asked), tile
            value = known.setdefault(key, node.outputs[0])
            found.tiles += total if value == node.outputs[0] else 0
            last = longest or max((lasts.get(each, 0) for each in node.inputs), default=0)
            lasting = tile if longest else sizes.get(node.inputs[0], ()) if node.inputs else ()
            for tensor in node.outputs:
                sizes[tensor] = lasting
                if node.opcode != "ASSEMBLE":
                    values[tensor] = value
                chain = before + longest
                if last and tensors[tensor].memory in _LASTING:
                    chain += self._copy("COPY_OUT", tensors[tensor], lasting)
                chains[tensor] = max(chains.get(tensor, 0), chain)
                lasts[tensor] = last
        found.chain = max(chains.values(), default=0)
        return found


def _apart(
    graph: TileGraph, nodes: Sequence[Node], tile_of: Callable[[Shape], Shape]
) -> tuple[int, int]:
    """The tiles that no operation joins, which have tasks of their own, and the full ones of them.

    One where it is open which operations join tiles.
    """
    read = {each for node in nodes for each in node.inputs}
    kept = [node for node in nodes if not _is_copy(graph, node, read)]
    held = [graph.tensors[each] for node in kept for each in (*node.inputs, node.outputs[0])]
    tiles = {tile_of(node.tile_shape) for node in kept}
    if len(tiles) != 1 or {len(each.shape) for each in held} != {*map(len, tiles)}:
        return 1, 1
    joined = set()
    for node in kept:
        row = TILE_OPCODES.get(node.opcode)
        if row is None or row.work not in _BY_TILE:
            return 1, 1
        joined |= {node.attributes.axis} if row.work in _REDUCTIONS else set()
    counts = [
        divmod(extents[0], length)
        for axis, (length, extents) in enumerate(
            zip(tiles.pop(), zip(*(each.shape for each in held), strict=True), strict=True)
        )
        if axis not in joined and len({*extents}) == 1
    ]
    return (
        math.prod(whole + (rest > 0) for whole, rest in counts),
        math.prod(max(whole, 1) for whole, _ in counts),
    )


def _is_copy(graph: TileGraph, node: Node, read: AbstractSet[int]) -> bool:
    """True for a view of an argument, and for the copy of a result that nobody reads on."""
    if node.opcode == "VIEW":
        return graph.tensors[node.inputs[0]].memory in _LASTING
    return node.opcode == "ASSEMBLE" and read.isdisjoint(node.outputs)


def _joins(graph: TileGraph, node: Node, tile: Shape) -> bool:
    """True for a reduction over several tiles."""
    row, axis = TILE_OPCODES[node.opcode], node.attributes.axis
    return row.work in _REDUCTIONS and graph.tensors[node.inputs[0]].shape[axis] > tile[axis]


def _copied(tensor: TileTensor, tile: Shape) -> int:
    """The cycles of copies in of all tiles of an argument."""
    if len(tensor.shape) != len(tile):
        return 0
    sizes = _sizes(tensor.shape, tile)
    return sum(count * _simulated("COPY_IN", tensor.format, size) for count, size in sizes)


@functools.lru_cache(maxsize=1 << 10)
def _anonymous(attributes: Attributes) -> Attributes:
    return replace(attributes, file="", line=0)


def _needed(graph: TileGraph) -> tuple[Node, ...]:
    """The nodes that an output needs, producers first."""
    made, waiting, found = producers(graph.nodes), list(graph.outputs), set[int]()
    while waiting:
        for node in made.get(waiting.pop(), ()):
            if node.number not in found:
                found.add(node.number)
                waiting += node.inputs
    return tuple(each for each in in_order(graph.nodes) if each.number in found)


def _cycles(graph: TileGraph, node: Node, tile: Shape, model: str) -> tuple[int, int]:
    """The least cycles of all tile operations of a node, and of those of one full tile."""
    row = TILE_OPCODES.get(node.opcode)
    if row is None or not node.inputs:
        return 0, 0
    operands = [graph.tensors[each] for each in (*node.inputs, node.outputs[0])]
    first, result = operands[0], operands[-1]
    if model == MODEL:
        return _simulated_work(node, row, operands, tile)
    narrow = min((each.format for each in operands), key=lambda each: each.dtype.itemsize)
    if row.work in _TILE_BY_TILE and len(tile) == len(result.shape):
        return _of_tiles(result.shape, tile, narrow)
    if row.work in _REDUCTIONS and len(tile) == len(first.shape):
        total, longest = _of_tiles(first.shape, tile, narrow)
        joined = -(-first.shape[node.attributes.axis] // tile[node.attributes.axis])
        return total, longest + _FIRST_CYCLES * (joined - 1).bit_length()
    return 0, 0


def _simulated_work(
    node: Node, row: TileOpcode, operands: Sequence[TileTensor], tile: Shape
) -> tuple[int, int]:
    """The same as upstream's simulator counts; of a reduction only the join of its tiles."""
    shape = operands[0].shape
    if len(tile) != len(shape):
        return 0, 0
    if row.work in _REDUCTIONS:
        axis = node.attributes.axis
        joined = -(-shape[axis] // tile[axis])
        others = [*shape]
        others[axis] = min(tile[axis], shape[axis])
        opcode = _PAIRS.get(node.opcode[:6], "")
        rest = shape[axis] % tile[axis] if joined > 1 else 0
        others_cut = (*others[:axis], rest or others[axis], *others[axis + 1 :])
        fmt = operands[0].format
        whole, last = (
            [(count, _simulated(opcode, fmt, size)) for count, size in _sizes(tuple(each), tile)]
            for each in (others, others_cut)
        )
        # Of all pairs one at most is with the tile that is cut off.
        total = max(joined - 2, 0) * sum(count * each for count, each in whole)
        total += min(joined - 1, 1) * sum(count * each for count, each in last)
        longest = (whole if joined > 2 else last)[0][1] if joined > 1 else 0
        return total, max(longest, 1)
    if row.work not in _TILE_BY_TILE or any(each.shape != shape for each in operands[:1]):
        return 0, 0
    is_whole = (
        row.work is not TileWork.COMPARE
        and not row.has_scratch
        and all(each.shape == shape for each in operands)
    )
    full = tuple(map(max, *(each.shape for each in operands)))
    found = [
        (count, _simulated(node.opcode, operands[0].format, size if is_whole else ()))
        for count, size in _sizes(full, tile)
    ]
    return sum(count * max(each, 1) for count, each in found), max(found[0][1], 1)


@functools.lru_cache(maxsize=1 << 14)
def _simulated(opcode: str, fmt: Format, size: Shape) -> int:
    """The cycles of a tile operation of a size, the least of () and of a size not measured."""
    form = FORMS.get((opcode, str(fmt)))
    elems = math.prod(size[-2:]) if len(size) > 1 else 1
    sheet_bytes = elems * fmt.dtype.itemsize if size else 0
    return max(form.cycles(math.prod(size[:-2]), sheet_bytes) or 0, 0) if form else 0


@functools.lru_cache(maxsize=1 << 14)
def _sizes(shape: Shape, tile: Shape) -> _Sizes:
    """The tiles of a tensor by size, the full one first, with how many there are."""
    axes = []
    for extent, length in zip(shape, tile, strict=True):
        whole, rest = divmod(extent, min(extent, length))
        axes.append([(whole, min(extent, length)), *([(1, rest)] if rest else [])])
    return [
        (math.prod(count for count, _ in part), tuple(length for _, length in part))
        for part in itertools.product(*axes)
    ]


@functools.lru_cache(maxsize=1 << 14)
def _of_tiles(shape: Shape, tile: Shape, narrow: Format) -> tuple[int, int]:
    costs = [
        (count, latency_cycles("", [(math.prod(size), narrow)], []))
        for count, size in _sizes(shape, tile)
    ]
    return sum(count * cycles for count, cycles in costs), costs[0][1]
