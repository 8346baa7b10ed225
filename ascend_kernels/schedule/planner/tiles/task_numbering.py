"""Subgraphs that are merged because there are more alike than cores, and their numbers.

Paths are those of upstream pypto at tag r0.2.0, framework/src/passes/tile_graph_pass.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from ascend_kernels.schedule.planner.tiles.tile_graph import TileGraph, producers


def merge_alike(graph: TileGraph, cores: int) -> TileGraph:
    """Merge subgraphs of one kind that share a neighbour, where there are more than cores.

    So many at a time that at least as many subgraphs as cores are left; subgraphs that share
    nothing stay (graph_partition/n_buffer_merge.cpp:231, :326, :391, :548). All are numbered anew,
    each after those that it needs.

    Args:
        graph: sorted, with subgraphs.
        cores: vector cores of the chip.
    """
    before, after = _neighbours(graph)
    kinds: dict[Hashable, list[int]] = {}
    for subgraph, kind in enumerate(_kinds(graph)):
        if kind is not None:
            kinds.setdefault(kind, []).append(subgraph)
    merged = list(range(len(before)))
    spread = math.inf
    for alike in kinds.values():
        if not any(before[each] or after[each] for each in alike):
            continue
        shared = [found for found in _sharing(alike, before, after) if len(found) > 1]
        count = _together(len(alike), cores)
        if shared:
            spread = min(spread, 1 if count > 1 else (2 * cores - 2) // len(alike))
        for found in shared:
            for place, subgraph in enumerate(found):
                merged[subgraph] = found[place - place % count]
    kept = {number: place for place, number in enumerate(sorted(set(merged)))}
    joined = replace(_numbered(graph, [kept[each] for each in merged]), spread=spread)
    return _numbered(joined, _topological(joined))


def _together(alike: int, cores: int) -> int:
    """Number of alike subgraphs that become one task; 1 up to twice the cores less two."""
    count = -(-alike // cores)
    while count > 1 and -(-alike // count) < cores:
        count -= 1
    return count


def _kinds(graph: TileGraph) -> list[Hashable | None]:
    """By subgraph, its opcodes with all that comes before each; None of reshapes alone."""
    made = producers(graph.nodes)
    known: dict[Hashable, int] = {}
    ways: dict[int, int] = {}
    subgraphs: dict[int, list[int]] = {}
    computes: set[int] = set()
    for node in graph.nodes:
        before = (ways[p.number] for tensor in node.inputs for p in made.get(tensor, ()))
        ways[node.number] = known.setdefault((node.opcode, *before), len(known))
        subgraphs.setdefault(node.subgraph, []).append(ways[node.number])
        if node.opcode != "RESHAPE":
            computes.add(node.subgraph)
    return [
        tuple(ways) if subgraph in computes else None
        for subgraph, ways in sorted(subgraphs.items())
    ]


def _neighbours(graph: TileGraph) -> tuple[list[list[int]], list[list[int]]]:
    """By subgraph, those that it reads and those that it feeds, once for each pair of nodes.

    In the order of the nodes that write, then of those that read.
    """
    made = producers(graph.nodes)
    place = {node.number: k for k, node in enumerate(graph.nodes)}
    edges = sorted(
        (place[producer.number], place[node.number])
        for node in graph.nodes
        for tensor in node.inputs
        for producer in made.get(tensor, ())
        if producer.subgraph != node.subgraph
    )
    count = max(node.subgraph for node in graph.nodes) + 1
    before: list[list[int]] = [[] for _ in range(count)]
    after: list[list[int]] = [[] for _ in range(count)]
    for writer, reader in edges:
        ends = graph.nodes[writer].subgraph, graph.nodes[reader].subgraph
        before[ends[1]].append(ends[0])
        after[ends[0]].append(ends[1])
    return before, after


def _sharing(
    alike: Sequence[int], before: Sequence[list[int]], after: Sequence[list[int]]
) -> list[list[int]]:
    """The subgraphs by the neighbour that they share: on the side where they have fewer."""
    sides: list[dict[int, list[int]]] = []
    for near in (before, after):
        found: dict[int, list[int]] = {}
        alone = -1
        for subgraph in alike:
            for each in near[subgraph] or [alone]:
                found.setdefault(each, []).append(subgraph)
            alone -= not near[subgraph]
        sides.append(found)
    fewer = min(sides, key=len)
    visited: set[int] = set()
    result = []
    for _, found_there in sorted(fewer.items()):
        fresh = [each for each in dict.fromkeys(found_there) if each not in visited]
        visited.update(fresh)
        if fresh:
            result.append(fresh)
    return result


def _numbered(graph: TileGraph, numbers: Sequence[int] | Mapping[int, int]) -> TileGraph:
    changed = {old for old in {each.subgraph for each in graph.nodes} if numbers[old] != old}
    nodes = (
        replace(each, subgraph=numbers[each.subgraph]) if each.subgraph in changed else each
        for each in graph.nodes
    )
    return replace(graph, nodes=tuple(nodes)) if changed else graph


def _topological(graph: TileGraph) -> Mapping[int, int]:
    """A number for each subgraph, in the order in which their inputs become known."""
    before, after = _neighbours(graph)
    waiting = [len(each) for each in before]
    ready = deque(k for k, count in enumerate(waiting) if not count)
    numbers: dict[int, int] = {}
    while ready:
        subgraph = ready.popleft()
        numbers[subgraph] = len(numbers)
        for each in after[subgraph]:
            waiting[each] -= 1
            if not waiting[each]:
                ready.append(each)
    return numbers


def number_by_depth(graph: TileGraph) -> TileGraph:
    """Number subgraphs from the first on, each followed by those that it makes possible.

    Source: graph_constraint/pre_graph/color_graph.cpp:19, PreColorSort.
    """
    before, after = ([sorted(set(found)) for found in near] for near in _neighbours(graph))
    numbers: dict[int, int] = {}
    for first in range(len(before)):
        stack, pushed = [first], set()
        while stack:
            subgraph = stack[-1]
            if subgraph in numbers:
                stack.pop()
                continue
            missing = [each for each in before[subgraph] if each not in numbers]
            stack += missing
            pushed.update(missing)
            if missing:
                continue
            numbers[subgraph] = len(numbers)
            stack.pop()
            follow = [x for x in after[subgraph] if x not in numbers and x not in pushed]
            stack += follow
            pushed.update(follow)
    return _numbered(graph, numbers)
