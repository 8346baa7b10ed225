"""Cycles that no plan of a kernel goes below, from its operations over whole tensors.

Two bounds, of which the larger counts. The work of the vector pipes, shared evenly by all cores:
an operation is cut into one tile operation or more for each tile of its result, and a core does one
at a time. And the longest chain of operations that wait for each other, each on one tile of full
size, with a copy in before it and a copy out behind it.
Neither counts what a plan may leave out or share: other copies, fills, expansions, operations whose
result nobody needs or which another one gives, and what no argument decides.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from ascend_kernels.schedule.planner.tile_graph import (
    KernelGraphs,
    Memory,
    Node,
    TileGraph,
    in_order,
    latency_cycles,
    producers,
)
from ascend_kernels.schedule.task_times import body_runs
from simulator.machine.tile_opcodes import TILE_OPCODES, TileWork
from simulator.numbers.formats import Format
from tiling.grid import Shape

_TILE_BY_TILE: Final = (TileWork.ELEMENTS, TileWork.CAST, TileWork.COMPARE)
_REDUCTIONS: Final = (TileWork.REDUCE, TileWork.REDUCE_LINES)
_NOTHING: Final = 0, 0
_FIRST_CYCLES: Final = 10
"""The least of an operation with a tile to read, or a copy in."""


class CycleBound:
    """The cycles, by upstream's scheduler, that every schedule of operations takes at least.

    Args:
        given: the operations. A body that runs an open number of times counts once.
        cores: vector cores of the chip.
    """

    def __init__(self, given: KernelGraphs, cores: int) -> None:
        self._cores = cores
        self._bodies = [
            (1 if count is None else count, given.graphs[place], _needed(given.graphs[place]))
            for place, count in body_runs(given.steps).items()
        ]

    def cycles(self, tile_of: Callable[[Shape], Shape] = tuple) -> int:
        """Those of all bodies; `tile_of` gives the tile shape in place of that of a node."""
        return sum(
            count * self._of_body(graph, nodes, tile_of) for count, graph, nodes in self._bodies
        )

    def _of_body(
        self, graph: TileGraph, nodes: Sequence[Node], tile_of: Callable[[Shape], Shape]
    ) -> int:
        tensors = graph.tensors
        if any(each.is_open for each in tensors):
            return 0
        work, values, chains = 0, dict[int, int](), dict[int, int]()
        lasts: dict[int, int] = {}
        known: dict[object, int] = {}
        views: dict[int, object] = {}
        lasting = Memory.ARGUMENT, Memory.SLOT
        fixed = {place for place, each in enumerate(tensors) if each.memory in lasting}
        given = set(fixed)
        for node in nodes:
            asked = node.attributes
            inputs = tuple(values.setdefault(each, -1 - each) for each in node.inputs)
            if node.opcode == "VIEW":
                if views.setdefault(inputs[0], asked.offset) != asked.offset:
                    return 0  # the parts may overlap, and equal tiles of them are computed once
                given.update(node.outputs if given.issuperset(node.inputs) else ())
            total, longest = _NOTHING
            tile = tile_of(node.tile_shape)
            if fixed.intersection(node.inputs):
                fixed.update(node.outputs)
                total, longest = _cycles(graph, node, tile)
            before = max((chains.get(each, 0) for each in node.inputs), default=0)
            if longest and given.intersection(node.inputs):
                before = max(before, _FIRST_CYCLES)  # its tile is copied in first
            key = node.opcode, inputs, replace(asked, file="", line=0), tile
            value = known.setdefault(key, node.outputs[0])
            work += total if value == node.outputs[0] else 0
            last = longest or max((lasts.get(each, 0) for each in node.inputs), default=0)
            for tensor in node.outputs:
                if node.opcode != "ASSEMBLE":
                    values[tensor] = value
                is_copied = tensors[tensor].memory in lasting and last
                chain = before + longest + (_FIRST_CYCLES if is_copied else 0)
                chains[tensor] = max(chains.get(tensor, 0), chain)
                lasts[tensor] = last
        return max(-(-work // self._cores), max(chains.values(), default=0))


def _needed(graph: TileGraph) -> tuple[Node, ...]:
    """The nodes that an output needs, producers first."""
    made, waiting, found = producers(graph.nodes), list(graph.outputs), set[int]()
    while waiting:
        for node in made.get(waiting.pop(), ()):
            if node.number not in found:
                found.add(node.number)
                waiting += node.inputs
    return tuple(each for each in in_order(graph.nodes) if each.number in found)


def _cycles(graph: TileGraph, node: Node, tile: Shape) -> tuple[int, int]:
    """The least cycles of all tile operations of a node, and of those of one full tile."""
    row = TILE_OPCODES.get(node.opcode)
    if row is None or not node.inputs:
        return _NOTHING
    operands = [graph.tensors[each] for each in (*node.inputs, node.outputs[0])]
    narrow = min((each.format for each in operands), key=lambda each: each.dtype.itemsize)
    result = operands[-1].shape
    if row.work in _TILE_BY_TILE and len(tile) == len(result):
        return _of_tiles(result, tile, narrow)
    if row.work in _REDUCTIONS and len(tile) == len(operands[0].shape):
        total, longest = _of_tiles(operands[0].shape, tile, narrow)
        joined = -(-operands[0].shape[node.attributes.axis] // tile[node.attributes.axis])
        return total, longest + _FIRST_CYCLES * (joined - 1).bit_length()
    return _NOTHING


@functools.lru_cache(maxsize=1 << 14)
def _of_tiles(shape: Shape, tile: Shape, narrow: Format) -> tuple[int, int]:
    axes = []
    for extent, length in zip(shape, tile, strict=True):
        whole, rest = divmod(extent, min(extent, length))
        axes.append([(whole, min(extent, length)), *([(1, rest)] if rest else [])])
    costs = [
        (
            math.prod(count for count, _ in part),
            latency_cycles("", [(math.prod(length for _, length in part), narrow)], []),
        )
        for part in itertools.product(*axes)
    ]
    return sum(count * cycles for count, cycles in costs), costs[0][1]
