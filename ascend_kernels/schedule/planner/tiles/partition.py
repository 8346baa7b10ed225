"""Partition: which tile operations share a task.

Isomorphic parts of the graph are grown together from all places where one begins, then groups are
merged with neighbours. Source: upstream pypto at tag r0.2.0, framework/src/passes/tile_graph_pass/
graph_partition: supernode_graph_builder.cpp, iso_partitioner.cpp. A hash there is an identity here.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from ascend_kernels.schedule.parts import PUTTERS
from ascend_kernels.schedule.planner.tiles.tile_graph import (
    Memory,
    TileGraph,
    latency_cycles,
    producers,
)

MOST_CYCLES: Final = 10000
"""`pg_upper_bound`: of one subgraph (interface/configs/tile_fwk_config.json)."""
FEW_CYCLES: Final = 512
"""`pg_lower_bound`: a group of no more merges with one of another size."""
_MANY: Final = 20
"""`pg_parallel_lower_bound`: groups of as many merge though they differ in number."""
_ROUNDS: Final = 100
_MOVES_IN: Final = frozenset(("VIEW", "TRANSPOSE_MOVEIN", "TRANSPOSE_VNCHWCONV"))
"""Upstream's moves into UB and within it (interface/operation/opcode.cpp: MOVE_IN, MOVE_LOCAL)."""
_MOVES_OUT: Final = PUTTERS | {"TRANSPOSE_MOVEOUT"}
_TREES: Final = frozenset(("PAIRSUM", "PAIRMAX", "PAIRMIN"))
"""Its only move out of UB before copies are made (MOVE_OUT), but for an assemble."""


def partition(graph: TileGraph) -> TileGraph:
    """Give every node of a sorted graph its subgraph."""
    operations = _Operations(graph)
    supernodes = _Supernodes(operations)
    groups = _grown(supernodes)
    for is_single in (True, False):
        groups = _merged(groups, supernodes, is_single=is_single)
    numbers: dict[int, int] = {}
    subgraphs = (part for group in groups for part in group.parts)
    for number, part in enumerate(subgraphs):
        for supernode in part.nodes:
            for index in supernodes.members[supernode]:
                numbers[index] = number
    nodes = (replace(each, subgraph=numbers[k]) for k, each in enumerate(graph.nodes))
    return replace(graph, nodes=tuple(nodes), fewest=supernodes.fewest)


class _Operations:
    """The nodes by their place, with the places of those before and after each."""

    def __init__(self, graph: TileGraph) -> None:
        self.graph, self.nodes = graph, graph.nodes
        places = {node.number: k for k, node in enumerate(self.nodes)}
        made = producers(self.nodes)
        before = [
            {places[p.number] for tensor in node.inputs for p in made.get(tensor, ())}
            for node in self.nodes
        ]
        self.before = [sorted(each) for each in before]
        self.after: list[list[int]] = [[] for _ in self.nodes]
        for place, found in enumerate(self.before):
            for each in found:
                self.after[each].append(place)
        sizes = [(math.prod(each.shape), each.format) for each in graph.tensors]
        kinds = [(x.memory is Memory.UB, x.format.name, x.shape) for x in graph.tensors]
        self.cycles: list[int] = []
        self.kinds: list[Hashable] = []
        for node in self.nodes:
            read, written = ([sizes[each] for each in x] for x in (node.inputs, node.outputs))
            self.cycles.append(latency_cycles(node.opcode, read, written))
            ends = (tuple([kinds[each] for each in x]) for x in (node.inputs, node.outputs))
            self.kinds.append((node.opcode, *ends))


class _Joined:
    """Operations joined in nodes: by pairs, and with those on a way between two of a node."""

    def __init__(self, operations: _Operations, pairs: Iterable[tuple[int, int]]) -> None:
        self._parents = list(range(len(operations.nodes)))
        for source, target in pairs:
            self._parents[self._find(source)] = self._find(target)
        while True:
            self.members = self._listed()
            grown = [
                inner
                for members in self.members
                if len(members) > 1 and (inner := self._between(operations, members))
            ]
            if not grown:
                break
            for first, *others in grown:
                for other in others:
                    self._parents[self._find(first)] = self._find(other)
        self.node_of = {place: k for k, found in enumerate(self.members) for place in found}
        self.before = self._neighbours(operations.before)
        self.after = self._neighbours(operations.after)

    def _find(self, place: int) -> int:
        while self._parents[place] != place:
            self._parents[place] = self._parents[self._parents[place]]
            place = self._parents[place]
        return place

    def _listed(self) -> list[list[int]]:
        roots = [self._find(place) for place in range(len(self._parents))]
        found: dict[int, list[int]] = {
            place: [] for place, root in enumerate(roots) if root == place
        }
        for place, root in enumerate(roots):
            found[root].append(place)
        return list(found.values())

    def _between(self, operations: _Operations, members: list[int]) -> list[int]:
        """The members and the nodes on a way from one to another; [] without such nodes."""
        low, high = min(members), max(members)
        reached: set[int] = set()
        stack = list(members)
        while stack:
            place = stack.pop()
            if place not in reached:
                reached.add(place)
                stack += [each for each in operations.after[place] if each <= high]
        found, seen, stack = [], set(), list(members)
        while stack:
            place = stack.pop()
            if place not in seen:
                seen.add(place)
                if place in reached:
                    found.append(place)
                stack += [each for each in operations.before[place] if each >= low]
        return found if len(found) != len(members) else []

    def _neighbours(self, ends: list[list[int]]) -> list[list[int]]:
        """By node, those at the ends of its members' links."""
        if len(self.node_of) == len(self.members):  # nothing is joined
            return ends
        return [
            sorted({self.node_of[each] for place in members for each in ends[place]} - {node})
            for node, members in enumerate(self.members)
        ]


class _Supernodes(_Joined):
    """Operations that are never parted: a move into UB, or within it, with its first reader, and a
    move out of UB with its writers; views, assembles and transpositions are moves.

    Source: supernode_graph_builder.cpp:439-590.

    Attributes:
        fewest: see `TileGraph`.
    """

    def __init__(self, operations: _Operations) -> None:
        super().__init__(operations, _glued(operations))
        self.fewest = 0
        self.cycles = [sum(operations.cycles[k] for k in each) for each in self.members]
        self.is_mergeable = [
            self._merges([operations.nodes[k].opcode for k in each], node)
            for node, each in enumerate(self.members)
        ]
        identities = _identities(operations)
        self.identity: list[Hashable] = [
            tuple(identities[k] for k in each) for each in self.members
        ]
        self.alike: dict[Hashable, list[int]] = {}
        for node, identity in enumerate(self.identity):
            self.alike.setdefault(identity, []).append(node)

    def _merges(self, opcodes: list[str], node: int) -> bool:
        """False for a reshape that several parts meet in (supernode_graph_builder.cpp:316)."""
        before, after = len(self.before[node]), len(self.after[node])
        return opcodes != ["RESHAPE"] or not (
            (before > 1 and after != 1) or (before == 0 and after > 1)
        )


def _glued(operations: _Operations) -> Iterable[tuple[int, int]]:
    tensors = operations.graph.tensors
    for place, node in enumerate(operations.nodes):
        before, after = operations.before[place], operations.after[place]
        if node.opcode == "ASSEMBLE":
            ends = tensors[node.inputs[0]].memory, tensors[node.outputs[0]].memory
            if ends[0] is Memory.UB and ends[1] is not Memory.UB:
                yield from ((each, place) for each in before)
            elif before:
                yield place, before[0]
        elif node.opcode in _MOVES_OUT:
            yield from ((each, place) for each in before)
        elif node.opcode in _MOVES_IN and after:
            yield place, after[0]


def _identities(operations: _Operations) -> list[Hashable]:
    """By operation, the key by which it equals another: all before it and all after it.

    A tree of one PAIR opcode counts as one (supernode_graph_builder.cpp:644-765). What is not known
    yet when its turn comes counts as nothing, as there.
    """
    known: dict[Hashable, int] = {}

    def identity(*parts: Hashable) -> int:
        return known.setdefault(parts, len(known) + 1)

    kinds = [identity("kind", each) for each in operations.kinds]
    trees = _Joined(operations, _paired(operations))
    own = [identity("node", *(kinds[k] for k in each)) for each in trees.members]
    whole = []
    forwards = range(len(operations.nodes))
    for places, ends in ((forwards, trees.before), (forwards[::-1], trees.after)):
        found = dict.fromkeys(range(len(own)), 0)
        for place in places:
            node = trees.node_of[place]
            if not found[node]:
                found[node] = identity("way", own[node], *(found[each] for each in ends[node]))
        whole.append(found)
    result: list[Hashable] = [None] * len(operations.nodes)
    for node, members in enumerate(trees.members):
        both = identity("both", whole[0][node], whole[1][node])
        if len(members) == 1:
            result[members[0]] = both
            continue
        local = []
        for ordered, near in ((members, operations.before), (members[::-1], operations.after)):
            inner: dict[int, int] = {}
            for place in ordered:
                others = (inner[each] for each in near[place] if each in inner)
                inner[place] = identity("local", kinds[place], *others)
            local.append(inner)
        for place in members:
            result[place] = identity("member", both, local[0][place], local[1][place])
    return result


def _paired(operations: _Operations) -> Iterable[tuple[int, int]]:
    for place, node in enumerate(operations.nodes):
        readers = [operations.nodes[each].opcode for each in operations.after[place]]
        if node.opcode in _TREES and readers == [node.opcode]:
            yield place, operations.after[place][0]


@dataclass(slots=True)
class _Part:
    """Supernodes that will be one task, and those outside that they read and feed."""

    nodes: list[int]
    cycles: int
    held: set[int]
    before: set[int] = field(default_factory=set)
    after: set[int] = field(default_factory=set)
    history: set[tuple[int, int]] = field(default_factory=set)

    def add(self, node: int, supernodes: _Supernodes) -> None:
        self.nodes.append(node)
        self.held.add(node)
        self.cycles += supernodes.cycles[node]

    def look_around(self, supernodes: _Supernodes) -> None:
        """Find the supernodes outside that it reads and feeds."""
        self.before = {x for node in self.nodes for x in supernodes.before[node]} - self.held
        self.after = {x for node in self.nodes for x in supernodes.after[node]} - self.held

    def join(self, other: _Part) -> None:
        self.nodes += other.nodes
        self.held |= other.held
        self.cycles += other.cycles
        self.history |= other.history
        self.before = (self.before | other.before) - self.held
        self.after = (self.after | other.after) - self.held


@dataclass(slots=True)
class _Group:
    """Isomorphic parts."""

    parts: list[_Part]
    is_mergeable: bool

    @property
    def cycles(self) -> int:
        return self.parts[0].cycles if self.parts else 0


def _grown(supernodes: _Supernodes) -> list[_Group]:
    """Groups grown from their first nodes (iso_partitioner.cpp:107, BuildIsomorphismGroups)."""
    open_inputs = [len(each) for each in supernodes.before]
    ready = deque(reversed([node for node, count in enumerate(open_inputs) if not count]))
    taken: set[int] = set()
    groups = []

    def take(node: int) -> None:
        taken.add(node)
        for reader in supernodes.after[node]:
            open_inputs[reader] -= 1
            if not open_inputs[reader]:
                ready.append(reader)

    while ready:
        alike = supernodes.alike[supernodes.identity[ready.popleft()]]
        if any(open_inputs[node] or node in taken for node in alike):
            continue
        parts = []
        taken.update(alike)
        for node in alike:
            take(node)
            part = _Part(nodes=[], cycles=0, held=set())
            part.add(node, supernodes)
            parts.append(part)
        group = _Group(parts=parts, is_mergeable=supernodes.is_mergeable[alike[0]])
        if group.is_mergeable:
            visited = set(alike)
            for candidates in _candidates(group, supernodes):
                if _extends(group, candidates, supernodes, visited, taken, open_inputs):
                    visited.update(candidates)
                    for part, node in zip(group.parts, candidates, strict=True):
                        part.add(node, supernodes)
                        take(node)
        groups.append(group)
    return groups


def _candidates(group: _Group, supernodes: _Supernodes) -> Iterable[list[int]]:
    """The readers of the parts' nodes, those at the same place of each part together."""
    place = link = 0
    last = group.parts[-1]
    while place < len(last.nodes):
        if link >= len(supernodes.after[last.nodes[place]]):
            place, link = place + 1, 0
            continue
        yield [_reader(part, place, link, supernodes) for part in group.parts]
        link += 1


def _reader(part: _Part, place: int, link: int, supernodes: _Supernodes) -> int:
    readers = supernodes.after[part.nodes[place]] if place < len(part.nodes) else []
    return readers[link] if link < len(readers) else 0


def _extends(
    group: _Group,
    candidates: list[int],
    supernodes: _Supernodes,
    visited: set[int],
    taken: set[int],
    open_inputs: list[int],
) -> bool:
    """True if every part may take its candidate (iso_partitioner.cpp:272)."""
    first = candidates[0]
    identity = supernodes.identity[first]
    if not supernodes.is_mergeable[first] or len(supernodes.alike[identity]) != len(group.parts):
        return False
    for part, node in zip(group.parts, candidates, strict=True):
        if open_inputs[node] or supernodes.identity[node] != identity or node in taken:
            return False
        if any(each in visited and each not in part.held for each in supernodes.before[node]):
            return False
    return group.cycles + supernodes.cycles[first] <= MOST_CYCLES and len(set(candidates)) == len(
        candidates
    )


def _merged(groups: list[_Group], supernodes: _Supernodes, *, is_single: bool) -> list[_Group]:
    """Merge neighbouring groups in rounds (iso_partitioner.cpp:491).

    Args:
        groups: in order.
        supernodes: of the graph.
        is_single: groups of one part, with such; else groups of many with such.
    """
    for _ in range(_ROUNDS):
        before = len(groups)
        _merge_round(groups, supernodes, is_single=is_single)
        groups = [each for each in groups if each.parts]
        if len(groups) == before:
            break
    return groups


def _merge_round(groups: list[_Group], supernodes: _Supernodes, *, is_single: bool) -> None:
    owners: dict[int, tuple[int, int]] = {}
    for k, group in enumerate(groups):
        for j, part in enumerate(group.parts):
            owners.update(dict.fromkeys(part.nodes, (k, j)))
            part.look_around(supernodes)
            part.history.add((k, j))
    near = [
        (
            {owners[node][0] for part in group.parts for node in part.before} - {k},
            {owners[node][0] for part in group.parts for node in part.after} - {k},
        )
        for k, group in enumerate(groups)
    ]
    merged_into = list(range(len(groups)))
    members = [[k] for k in range(len(groups))]
    current = 0
    while current < len(groups):
        for other in _neighbours(groups, current, near, members, merged_into, is_single=is_single):
            if _is_by_count(groups[current], groups[other]):
                supernodes.fewest = _MANY
            if _suits(groups[current], groups[other], is_single=is_single) and _merge(
                groups, current, other, owners
            ):
                for each in members[other]:
                    merged_into[each] = current
                members[current] += members[other]
                members[other] = []
                break
        else:
            current += 1


def _neighbours(
    groups: list[_Group],
    current: int,
    near: list[tuple[set[int], set[int]]],
    members: list[list[int]],
    merged_into: list[int],
    *,
    is_single: bool,
) -> list[int]:
    """The only group that it reads, and the only one that it feeds."""
    if not groups[current].is_mergeable or not _of_kind(groups[current], is_single=is_single):
        return []
    found = []
    for side in (0, 1):
        others = {merged_into[x] for k in members[current] for x in near[k][side]} - {current}
        if len(others) == 1:
            (other,) = others
            if groups[other].is_mergeable and _of_kind(groups[other], is_single=is_single):
                found.append(other)
    return found


def _of_kind(group: _Group, *, is_single: bool) -> bool:
    return len(group.parts) == 1 if is_single else len(group.parts) > 1


def _is_by_count(one: _Group, other: _Group) -> bool:
    """True if groups that suit each other may not if there are more parts of each, or the reverse.

    One has several times the parts of the other in a graph of any number of alike rows, or none.
    """
    few, many = sorted(len(each.parts) for each in (one, other))
    return few != many and (min(one.cycles, other.cycles) > FEW_CYCLES or many % few > 0)


def _suits(one: _Group, other: _Group, *, is_single: bool) -> bool:
    few, many = sorted((one, other), key=lambda each: len(each.parts))
    total = few.cycles + many.cycles * (len(many.parts) // len(few.parts))
    if total > MOST_CYCLES or is_single:
        return total <= MOST_CYCLES
    return (
        len(few.parts) == len(many.parts)
        or len(few.parts) >= _MANY
        or min(one.cycles, other.cycles) <= FEW_CYCLES
    )


def _merge(
    groups: list[_Group], current: int, other: int, owners: dict[int, tuple[int, int]]
) -> bool:
    """Merge two groups if each part of the larger touches exactly one of the smaller."""
    few, many = groups[current], groups[other]
    if len(few.parts) > len(many.parts):
        few, many = many, few
    place_of = {each: j for j, part in enumerate(many.parts) for each in part.history}
    touched = [
        sorted(
            {
                place_of[owners[node]]
                for node in part.before | part.after
                if owners[node] in place_of
            }
        )
        for part in few.parts
    ]
    if sorted(j for found in touched for j in found) != list(range(len(many.parts))):
        return False
    for part, found in zip(few.parts, touched, strict=True):
        for j in found:
            part.join(many.parts[j])
    groups[current], groups[other] = few, _Group(parts=[], is_mergeable=many.is_mergeable)
    return True
