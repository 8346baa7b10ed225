"""Cycles that no plan of a kernel goes below, from its operations over whole tensors.

By upstream's scheduler ("latencies") two bounds count. The work of the vector pipes, shared evenly
by all cores: an operation is cut into one tile operation or more for each tile of its result, and a
core does one at a time. And the longest chain of operations that wait for each other, each on one
tile of full size, with a copy in before it and a copy out behind it.

By upstream's simulator ("tasks") there are three. That chain. The tasks: tiles that no operation
joins are in tasks of their own, and results are looked at one after another. And the work of the
busiest pipe, of tiles in UB and of copies of arguments, on any number of cores: the first task of
each begins a hand-out after that of another, and the last results are looked at in a row.

Each counts for many tile shapes at once: a length of a tile is an int or an array of them.

None counts what a plan may leave out or share: other copies, fills, expansions, operations whose
result nobody needs or which another one gives, and what no argument decides.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from ascend_kernels.schedule.body_runs import NO_EXTENTS, body_runs
from ascend_kernels.schedule.planner.tiles.tile_graph import (
    LEAST_CYCLES,
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
    LATENCIES,
    RESOLVE_CYCLES,
    TASKS,
)
from simulator.machine.tile_opcodes import PAIRED, REDUCTIONS, TILE_OPCODES, TileOpcode, TileWork
from simulator.numbers.formats import Format
from tiling.grid import Ints, Shape

Lengths = int | Ints
"""An int, or one of each of many tile shapes."""
Axes = Sequence[Lengths]
"""The lengths of a tile by axis."""
_TILE_BY_TILE: Final = (TileWork.ELEMENTS, TileWork.CAST, TileWork.COMPARE)
_BY_TILE: Final = (*_TILE_BY_TILE, *REDUCTIONS, TileWork.FILL, TileWork.EXPAND)
_LASTING: Final = (Memory.ARGUMENT, Memory.SLOT)


def _least(opcode: str) -> int:
    """The cycles of the smallest copy, of any dtype."""
    forms = (form for (name, _), form in FORMS.items() if name == opcode)
    return min(math.floor(form.once + form.each) for form in forms)


_COPY_CYCLES: Final = {
    TASKS: {each: _least(each) for each in ("COPY_IN", "COPY_OUT")},
    LATENCIES: dict.fromkeys(("COPY_IN", "COPY_OUT"), LEAST_CYCLES),
}
"""The least of each copy, by model."""
_Sizes = Sequence[tuple[Lengths, Axes]]


@dataclass(slots=True)
class _Work:
    """The least cycles of a body.

    Attributes:
        tiles: of operations on tiles in UB.
        copies: of copies in, by argument.
        chain: of operations that wait for each other, with copies.
    """

    tiles: Lengths = 0
    copies: dict[int, Lengths] = field(default_factory=dict)
    chain: Lengths = 0


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
        model: str = TASKS,
        extents: Mapping[str, Shape] = NO_EXTENTS,
    ) -> None:
        self._cores, self._model = cores, model
        self._bodies = [
            (1 if count is None else count, given.graphs[place], _needed(given.graphs[place]))
            for place, count in body_runs(given.steps, extents).items()
        ]

    def cycles(self) -> int:
        """Those of all bodies."""
        return int(self.of_all(tuple))

    def of_all(self, tile_of: Callable[[Shape], Axes]) -> Ints:
        """Those of all bodies under many tile shapes.

        Args:
            tile_of: gives the lengths in place of the tile shape of a node. Tiles are taken for
                equal if their ints are, and their arrays the same.
        """
        known = functools.cache(tile_of)
        return np.asarray(
            sum(count * self._of_body(graph, nodes, known) for count, graph, nodes in self._bodies)
        )

    def _of_body(
        self, graph: TileGraph, nodes: Sequence[Node], tile_of: Callable[[Shape], Axes]
    ) -> Lengths:
        work = self._work(graph, nodes, tile_of)
        if work is None:
            return 0
        if self._model == LATENCIES:
            return _most([-(-work.tiles // self._cores), work.chain])
        tasks, whole = _apart(graph, nodes, tile_of)
        first, last = _COPY_CYCLES[self._model].values()
        shared = np.asarray(math.inf)
        for cores in range(1, self._cores + 1):
            count = np.maximum(cores, tasks)
            busy = np.maximum(
                sum(work.copies.values()) + count * last, work.tiles + count * (first + last)
            )
            apart = (cores - 1) * HAND_OUT_CYCLES + (cores + 1) * RESOLVE_CYCLES
            shared = np.minimum(shared, busy / cores + apart / 2)
        resolved = FIRST_CYCLES + first + last + tasks * RESOLVE_CYCLES
        chains = FIRST_CYCLES + work.chain + whole * RESOLVE_CYCLES
        found = _most([np.floor(shared).astype(np.int64), resolved, chains])
        return np.where(np.asarray(work.chain) > 0, found, 0)

    def _copy(self, opcode: str, tensor: TileTensor, tile: Axes) -> Lengths:
        """The least cycles of a copy of one full tile."""
        least = _COPY_CYCLES[self._model][opcode]
        if self._model == LATENCIES or len(tensor.shape) != len(tile):
            return least
        size = _sizes(tensor.shape, tile)[0][1]
        return np.maximum(least, _simulated(opcode, tensor.format, size))

    def _work(
        self, graph: TileGraph, nodes: Sequence[Node], tile_of: Callable[[Shape], Axes]
    ) -> _Work | None:
        """The work of a body; None where nothing is known of it."""
        tensors = graph.tensors
        if any(each.is_open for each in tensors):
            return None
        found, values, chains = _Work(), dict[int, int](), dict[int, Lengths]()
        counted: set[int] = set()
        sizes: dict[int, Axes] = {}
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
            cycles = None
            tile = tile_of(node.tile_shape)
            if fixed.intersection(node.inputs):
                fixed.update(node.outputs)
                cycles = _cycles(graph, node, tile, self._model)
                if cycles is not None and self._model == TASKS:
                    for each in node.inputs:
                        source = given.get(each)
                        if source is not None and source not in written:
                            copied = _copied(tensors[each], tile)
                            found.copies[source] = _most([found.copies.get(source, 0), copied])
            before = _most(chains.get(each, 0) for each in node.inputs)
            if cycles is not None:  # its tiles are copied in first, one after another
                copies = {
                    given[each]: self._copy("COPY_IN", tensors[each], tile)
                    for each in node.inputs
                    if each in given
                }
                if self._model == LATENCIES:
                    before = _most([before, *copies.values()])
                else:
                    # Of joined tiles the second is copied in too, or what becomes of it.
                    joined = _joined(graph, node, tile) if copies else 1
                    second = np.minimum(joined - 1, 1) * _COPY_CYCLES[TASKS]["COPY_IN"]
                    before = np.maximum(before, sum(copies.values()) + second)
            key = node.opcode, inputs, _anonymous(asked), _key(tile)
            value = known.setdefault(key, node.outputs[0])
            total, longest = cycles or (0, 0)
            found.tiles += total if value == node.outputs[0] else 0
            is_counted = cycles is not None or not counted.isdisjoint(node.inputs)
            lasting = (
                tile if cycles is not None else sizes.get(node.inputs[0], ()) if inputs else ()
            )
            for tensor in node.outputs:
                sizes[tensor] = lasting
                if node.opcode != "ASSEMBLE":
                    values[tensor] = value
                chain = before + longest
                if is_counted and tensors[tensor].memory in _LASTING:
                    chain += self._copy("COPY_OUT", tensors[tensor], lasting)
                chains[tensor] = _most([chains.get(tensor, 0), chain])
                counted -= {tensor}
                counted |= {tensor} if is_counted else set()
        found.chain = _most(chains.values())
        return found


def _most(lengths: Iterable[Lengths]) -> Lengths:
    """The largest, for each tile shape; 0 of none."""
    found: Lengths = 0
    for each in lengths:
        found = np.maximum(found, each)
    return found


def _key(tile: Axes) -> tuple[object, ...]:
    """Equal of equal tiles."""
    return tuple(each if isinstance(each, int) else id(each) for each in tile)


def _apart(
    graph: TileGraph, nodes: Sequence[Node], tile_of: Callable[[Shape], Axes]
) -> tuple[Lengths, Lengths]:
    """The tiles that no operation joins, which have tasks of their own, and the full ones of them.

    One where it is open which operations join tiles.
    """
    read = {each for node in nodes for each in node.inputs}
    kept = [node for node in nodes if not _is_copy(graph, node, read)]
    held = [graph.tensors[each] for node in kept for each in (*node.inputs, node.outputs[0])]
    tiles = {_key(tile): tile for tile in (tile_of(node.tile_shape) for node in kept)}
    if len(tiles) != 1 or {len(each.shape) for each in held} != {*map(len, tiles.values())}:
        return 1, 1
    joined = set()
    for node in kept:
        row = TILE_OPCODES.get(node.opcode)
        if row is None or row.work not in _BY_TILE:
            return 1, 1
        joined |= {node.attributes.axis} if row.work in REDUCTIONS else set()
    counts = [
        divmod(extents[0], length)
        for axis, (length, extents) in enumerate(
            zip(*tiles.values(), zip(*(each.shape for each in held), strict=True), strict=True)
        )
        if axis not in joined and len({*extents}) == 1
    ]
    return (
        math.prod(whole + (rest > 0) for whole, rest in counts),
        math.prod(np.maximum(whole, 1) for whole, _ in counts),
    )


def _is_copy(graph: TileGraph, node: Node, read: AbstractSet[int]) -> bool:
    """True for a view of an argument, and for the copy of a result that nobody reads on."""
    if node.opcode == "VIEW":
        return graph.tensors[node.inputs[0]].memory in _LASTING
    return node.opcode == "ASSEMBLE" and read.isdisjoint(node.outputs)


def _joined(graph: TileGraph, node: Node, tile: Axes) -> Lengths:
    """The tiles that a reduction joins; 1 of another operation."""
    row, axis = TILE_OPCODES[node.opcode], node.attributes.axis
    extent = graph.tensors[node.inputs[0]].shape[axis]
    return -(-extent // tile[axis]) if row.work in REDUCTIONS else 1


def _copied(tensor: TileTensor, tile: Axes) -> Lengths:
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


def _cycles(graph: TileGraph, node: Node, tile: Axes, model: str) -> tuple[Lengths, Lengths] | None:
    """The least cycles of all tile operations of a node, and of those of one full tile.

    None where nothing is known of it; else those of a tile are positive.
    """
    row = TILE_OPCODES.get(node.opcode)
    if row is None or not node.inputs:
        return None
    operands = [graph.tensors[each] for each in (*node.inputs, node.outputs[0])]
    first, result = operands[0], operands[-1]
    if model == TASKS:
        return _simulated_work(graph, node, row, operands, tile)
    narrow = min((each.format for each in operands), key=lambda each: each.dtype.itemsize)
    if row.work in _TILE_BY_TILE and len(tile) == len(result.shape):
        return _of_tiles(result.shape, tile, narrow)
    if row.work in REDUCTIONS and len(tile) == len(first.shape):
        total, longest = _of_tiles(first.shape, tile, narrow)
        rounds = np.frexp(_joined(graph, node, tile) - 1)[1].astype(np.int64)
        return total, longest + LEAST_CYCLES * rounds
    return None


def _simulated_work(
    graph: TileGraph, node: Node, row: TileOpcode, operands: Sequence[TileTensor], tile: Axes
) -> tuple[Lengths, Lengths] | None:
    """The same as upstream's simulator counts; of a reduction only the join of its tiles."""
    shape = operands[0].shape
    if len(tile) != len(shape):
        return None
    if row.work in REDUCTIONS:
        axis = node.attributes.axis
        joined = _joined(graph, node, tile)
        opcode, fmt = PAIRED.get(node.opcode, ""), operands[0].format
        full = np.minimum(tile[axis], shape[axis])
        rest = shape[axis] % np.asarray(tile[axis]) * (np.asarray(joined) > 1)
        whole, last = (
            [
                (count, _simulated(opcode, fmt, size))
                for count, size in _sizes((*shape[:axis], cut, *shape[axis + 1 :]), tile)
            ]
            for cut in (full, np.where(rest > 0, rest, full))
        )
        # Of all pairs one at most is with the tile that is cut off.
        total = np.maximum(joined - 2, 0) * sum(count * each for count, each in whole)
        total += np.minimum(joined - 1, 1) * sum(count * each for count, each in last)
        longest = np.where(np.asarray(joined) > 2, whole[0][1], last[0][1])
        return total, np.maximum(longest * (np.asarray(joined) > 1), 1)
    if row.work not in _TILE_BY_TILE or any(each.shape != shape for each in operands[:1]):
        return None
    is_whole = (
        row.work is not TileWork.COMPARE
        and not row.has_scratch
        and all(each.shape == shape for each in operands)
    )
    found = [
        (
            count,
            np.maximum(_simulated(node.opcode, operands[0].format, size if is_whole else ()), 1),
        )
        for count, size in _sizes(tuple(map(max, *(each.shape for each in operands))), tile)
    ]
    return sum(count * each for count, each in found), found[0][1]


def _simulated(opcode: str, fmt: Format, size: Axes) -> Lengths:
    """The cycles of a tile operation of a size, the least of () and of a size not measured."""
    form = FORMS.get((opcode, str(fmt)))
    if form is None:
        return 0
    elems = math.prod(size[-2:]) if len(size) > 1 else 1
    sheet_bytes = elems * fmt.dtype.itemsize if size else 0
    found = np.rint(form.unrounded(math.prod(size[:-2]), sheet_bytes)).astype(np.int64)
    return np.where(form.holds(sheet_bytes), np.maximum(found, 0), 0)


def _sizes(shape: Axes, tile: Axes) -> _Sizes:
    """The tiles of a tensor by size, the full one first, with how many there are, or none."""
    axes: list[list[tuple[Lengths, Lengths]]] = []
    for extent, length in zip(shape, tile, strict=True):
        full = np.minimum(extent, length)
        whole, rest = np.divmod(extent, full)
        cut = [(np.minimum(rest, 1), np.maximum(rest, 1))] if np.any(rest) else []
        axes.append([(whole, full), *cut])
    return [
        (math.prod(count for count, _ in part), tuple(length for _, length in part))
        for part in itertools.product(*axes)
    ]


def _of_tiles(shape: Shape, tile: Axes, narrow: Format) -> tuple[Lengths, Lengths]:
    costs = []
    for count, size in _sizes(shape, tile):
        elems, places = np.unique(math.prod(size), return_inverse=True)
        known = np.array([latency_cycles("", [(int(each), narrow)], []) for each in elems])
        costs.append((count, known[places].reshape(np.shape(math.prod(size)))))
    return sum(count * cycles for count, cycles in costs), costs[0][1]
