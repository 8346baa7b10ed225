"""Views and assembles between tiles: merged, split, duplicated, and reshapes in GM.

Paths are those of upstream pypto at tag r0.2.0, framework/src/passes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from ascend_kernels.schedule.parts import PUTTERS, TAKERS, Scalars
from ascend_kernels.schedule.planner.tiles.indexed_cutting import PUT_TARGET
from ascend_kernels.schedule.planner.tiles.tile_graph import (
    BLOCK_BYTES,
    Attributes,
    Memory,
    Node,
    PlanError,
    TileGraph,
    TileTensor,
    consumers,
    in_order,
    place_of,
    producers,
)
from ascend_kernels.schedule.scalars import total
from simulator.machine.isa import Pipe
from simulator.machine.tile_opcodes import TILE_OPCODES, TileWork

_MOST_JOINED_BYTES: Final = 196_608 * 35 // 100
"""The most that is assembled or reshaped in UB (data_path/assign_memory_type.h:60)."""


def merge_views(graph: TileGraph) -> TileGraph:
    """Merge chains of views and of assembles into one each, and drop nodes that no output needs.

    Source: pass_utils/merge_view_assemble_utils.cpp, dead_operation_eliminate.cpp.
    """
    nodes = in_order(graph.nodes)
    users = consumers(nodes)
    dropped: set[int] = set()
    visited: set[int] = set()
    merged: dict[str, list[list[Node]]] = {"VIEW": [], "ASSEMBLE": []}

    def follow(chain: list[Node]) -> None:
        node = chain[-1]
        visited.add(node.number)
        readers = users.get(node.outputs[0], [])
        same = [each for each in readers if each.opcode == node.opcode]
        for reader in same:
            follow([*chain, reader])
        is_end = not same if node.opcode == "VIEW" else len(same) < len(readers) or not readers
        if is_end and len(chain) > 1:
            dropped.add(node.number)
            merged[node.opcode].append(chain)

    for node in nodes:
        if node.number not in visited and node.opcode in merged:
            follow([node])
    chains = enumerate([*merged["VIEW"], *merged["ASSEMBLE"]], graph.next_number)
    added = [_merged(chain, number) for number, chain in chains]
    kept = [each for each in nodes if each.number not in dropped]
    return alive(replace(graph, nodes=(*kept, *added)))


def _merged(chain: Sequence[Node], number: int) -> Node:
    """The node, of this number, that stands for a chain."""
    axes = zip(*(each.attributes.offset for each in chain), strict=True)
    asked = Attributes(offset=tuple(map(total, axes)))
    return replace(chain[0], number=number, outputs=chain[-1].outputs, attributes=asked)


def alive(graph: TileGraph) -> TileGraph:
    """The nodes that a tensor in GM needs, sorted."""
    needed = set(graph.outputs)
    numbers: set[int] = set()
    waiting = True
    while waiting:
        waiting = False
        for node in reversed(graph.nodes):
            if node.number not in numbers and not needed.isdisjoint(node.outputs):
                numbers.add(node.number)
                needed.update(node.inputs)
                waiting = True
    return replace(graph, nodes=in_order([node for node in graph.nodes if node.number in numbers]))


def split_raw(graph: TileGraph) -> TileGraph:
    """Give each tile memory of its own, where it is a part of a tensor's.

    By raw tensor, its last tile first (tile_graph_pass/graph_optimization/split_raw.cpp:131).
    """
    tensors, raw_tiles = list(graph.tensors), list(graph.raw_tiles)
    used = {each for node in graph.nodes for each in (*node.inputs, *node.outputs)}
    for tensor in sorted(used, key=lambda each: (tensors[each].raw, -each)):
        held = tensors[tensor]
        if held.memory is Memory.UB and held.raw_shape not in ((), held.shape):
            tensors[tensor] = replace(held, raw=graph.first_raw + len(raw_tiles), raw_shape=())
            raw_tiles.append(held.tile)
    return replace(graph, tensors=tuple(tensors), raw_tiles=tuple(raw_tiles))


def split_assembled(graph: TileGraph) -> TileGraph:
    """Have views of a tensor assembled of tiles take the tiles themselves, where they match.

    Source: tile_graph_pass/graph_optimization/split_large_fanout_tensor.cpp.

    Raises:
        PlanError: tiles that several views cut in another way.
    """
    made, users = producers(graph.nodes), consumers(graph.nodes)
    nodes = {each.number: each for each in graph.nodes}
    for tensor, writers in made.items():
        if writers[0].opcode != "ASSEMBLE":
            continue
        readers = [each for each in users.get(tensor, ()) if each.opcode == "VIEW"]
        if not readers:
            continue
        shapes = {graph.tensors[each.inputs[0]].shape for each in writers}
        shapes |= {graph.tensors[each.outputs[0]].shape for each in readers}
        common = tuple(math.lcm(*extents) for extents in zip(*shapes, strict=True))
        whole = graph.tensors[tensor].shape
        if all(a >= b for a, b in zip(common, whole, strict=True)):
            continue
        tiles = {
            (each.attributes.offset, graph.tensors[each.inputs[0]].shape): each.inputs[0]
            for each in writers
        }
        for reader in readers:
            place = reader.attributes.offset, graph.tensors[reader.outputs[0]].shape
            if place not in tiles:
                raise PlanError(
                    f"{place_of(reader, users)}: a part that crosses tiles is not planned"
                )
            asked = replace(reader.attributes, offset=(0,) * len(whole))
            nodes[reader.number] = replace(reader, inputs=(tiles[place],), attributes=asked)
    return alive(replace(graph, nodes=tuple(nodes.values())))


def drop_whole_views(graph: TileGraph) -> TileGraph:
    """Have who reads all of a tile, viewed, assembled or copied, read the tile.

    Views and assembles beside a copy that is dropped take its line, if they have none.
    Source: tile_graph_pass/graph_optimization/remove_redundant_op.cpp.
    """
    stands_for: dict[int, int] = {}
    copied: dict[int, Attributes] = {}
    made = producers(graph.nodes)
    kept = []
    for node in graph.nodes:
        ends = [graph.tensors[each] for each in (*node.inputs, *node.outputs)]
        is_same = node.opcode in ("VIEW", "REGISTER_COPY") or (
            node.opcode == "ASSEMBLE" and len(made[node.outputs[0]]) == 1
        )
        if is_same and len({(each.memory, each.shape) for each in ends}) == 1:
            stands_for[node.outputs[0]] = stands_for.get(node.inputs[0], node.inputs[0])
            if node.opcode == "REGISTER_COPY":
                copied[stands_for[node.outputs[0]]] = node.attributes
            continue
        inputs = tuple(stands_for.get(each, each) for each in node.inputs)
        kept.append(node if inputs == node.inputs else replace(node, inputs=inputs))
    if copied:
        kept = [_at_line_of_copy(each, copied) for each in kept]
    return replace(graph, nodes=tuple(kept))


def _at_line_of_copy(node: Node, copied: Mapping[int, Attributes]) -> Node:
    """A view or assemble of a tile that was copied, at the line of the copy."""
    if node.opcode not in ("VIEW", "ASSEMBLE") or node.attributes.line:
        return node
    asked = next((copied[x] for x in (*node.inputs, *node.outputs) if x in copied), None)
    if asked is None:
        return node
    return replace(node, attributes=replace(node.attributes, file=asked.file, line=asked.line))


def duplicate_views(graph: TileGraph) -> TileGraph:
    """Give each operation that reads a view with others a view of its own.

    Source: tile_graph_pass/graph_optimization/duplicate_op.cpp:78.
    """
    nodes = {each.number: each for each in graph.nodes}
    made, users = producers(nodes.values()), consumers(nodes.values())
    tensors, number = list(graph.tensors), graph.next_number
    visited: set[int] = set()
    for output in graph.outputs:
        stack = list(made[output])
        while stack:
            node = stack.pop()
            if node.number in visited:
                continue
            visited.add(node.number)
            stack += [producer for tensor in node.inputs for producer in made.get(tensor, ())]
            readers = users.get(node.outputs[0], [])
            if node.opcode != "VIEW" or len(readers) == 1:
                continue
            for reader in readers:
                if reader.opcode == "VIEW":
                    continue
                clone = len(tensors)
                raw = graph.next_raw + clone - len(graph.tensors)
                tensors.append(replace(tensors[node.outputs[0]], raw=raw))
                nodes[number] = replace(node, number=number, outputs=(clone,))
                nodes[reader.number] = replace(
                    nodes[reader.number],
                    inputs=tuple(
                        clone if each == node.outputs[0] else each
                        for each in nodes[reader.number].inputs
                    ),
                )
                number += 1
    again = list(nodes.values())
    if number > graph.next_number:
        again = list(in_order(again))
    following = graph.next_raw + len(tensors) - len(graph.tensors)
    # From several outputs upstream may start at another one.
    guessed = range(graph.next_raw, following) if len(graph.outputs) > 1 else ()
    made_anew = replace(
        graph,
        nodes=tuple(again),
        tensors=tuple(tensors),
        raw_tiles=(*graph.raw_tiles, *(each.tile for each in tensors[len(graph.tensors) :])),
        guessed_raws=graph.guessed_raws.union(guessed),
    )
    return alive(made_anew)


def settle_moves(graph: TileGraph) -> TileGraph:
    """Put tensors in GM that UB does not hold: transposed, or assembled or viewed within a block.

    Who computes with it views it; of what is viewed within a block, each view has a copy, and so
    has a tile that is transposed on the way in; a view of GM that is transposed so stays in GM
    (tile_graph_pass/data_path/assign_memory_type.cpp, convert_op_inserter.cpp).
    """
    tensors, nodes = list(graph.tensors), {each.number: each for each in graph.nodes}
    made, users, number = producers(graph.nodes), consumers(graph.nodes), graph.next_number
    first_raw = raw = graph.next_raw
    apart = {each for each, of in made.items() if _needs_gm(tensors[each], of, users.get(each, ()))}
    guessed: set[int] = set()
    visited: set[int] = set()

    def lies_in_gm(tensor: int) -> bool:
        return tensors[tensor].memory is not Memory.UB

    def pass_on(opcode: str, source: int, memory: Memory, reader: Node) -> None:
        nonlocal number, raw
        passed, held = len(tensors), nodes[reader.number]
        tensors.append(replace(tensors[source], memory=memory, raw=raw))
        nodes[number] = _whole(opcode, number, source, passed, tensors)
        inputs = tuple(passed if each == source else each for each in held.inputs)
        nodes[reader.number] = replace(held, inputs=inputs)
        number, raw = number + 1, raw + 1

    for node in graph.nodes:
        (target, *_) = node.outputs
        readers = users.get(target, ())
        turned = [each for each in readers if _takes_from_gm(each, target)]
        if turned and turned == readers and node.opcode == "VIEW" and lies_in_gm(node.inputs[0]):
            tensors[target] = replace(tensors[target], memory=Memory.TEMPORARY)
        is_there = node.opcode == "ASSEMBLE" and (lies_in_gm(node.inputs[0]) or target in apart)
        if _gives_to_gm(node) or is_there:
            if not lies_in_gm(target):
                tensors[target] = replace(tensors[target], memory=Memory.TEMPORARY)
            for reader in () if target in visited else readers:
                if reader.opcode not in ("VIEW", "ASSEMBLE", "RESHAPE") and reader not in turned:
                    pass_on("VIEW", target, Memory.UB, reader)
        elif not lies_in_gm(target) and target not in visited:
            cut = [
                each
                for each in readers
                if each in turned or _begins_within_block(each, tensors[target])
            ]
            if len(cut) > 1:  # upstream's order is that of addresses
                guessed.update(range(raw, raw + len(cut)))
            for reader in cut:
                pass_on("ASSEMBLE", target, Memory.TEMPORARY, reader)
        visited.add(target)
    for node in [each for each in graph.nodes if each.opcode in PUTTERS]:
        (assembled,) = users[node.outputs[0]]  # in the argument, where the result lies as it is
        nodes[node.number] = replace(nodes[node.number], outputs=assembled.outputs)
        nodes.pop(assembled.number, None)
    settled = replace(
        graph,
        nodes=tuple(nodes.values()),
        tensors=tuple(tensors),
        raw_tiles=(*graph.raw_tiles, *(each.tile for each in tensors[len(graph.tensors) :])),
        guessed_raws=graph.guessed_raws | guessed,
    )
    return settled if raw == first_raw else alive(settled)


def _transposes_by(node: Node) -> Pipe | None:
    """The pipe of a transposition."""
    row = TILE_OPCODES.get(node.opcode)
    return row.pipe if row is not None and row.work is TileWork.TRANSPOSE else None


def _takes_from_gm(node: Node, tensor: int) -> bool:
    """True of an operation that reads this operand in GM, and not by a copy of a tile."""
    if node.opcode in PUTTERS:
        return node.inputs[PUT_TARGET[node.opcode]] == tensor
    return _reads_gm(node) or _transposes_by(node) is Pipe.MTE2


def _gives_to_gm(node: Node) -> bool:
    """True of an operation that writes its result to GM, and not by a copy of a tile."""
    return node.opcode in PUTTERS or _transposes_by(node) is Pipe.MTE3


def _reads_gm(node: Node) -> bool:
    return node.opcode in TAKERS


def _begins_within_block(view: Node, tensor: TileTensor) -> bool:
    """True for a view whose rows begin within a block of UB (AssignMoveOpForView)."""
    last = view.attributes.offset[-1:] if view.opcode == "VIEW" else ()
    return any(
        each * tensor.format.dtype.itemsize % BLOCK_BYTES for each in last if isinstance(each, int)
    )


def _needs_gm(tensor: TileTensor, writers: Sequence[Node], readers: Sequence[Node]) -> bool:
    """True for an assembled tensor that UB does not hold, or whose parts or views begin in a block.

    Counted without padding (data_path/assign_memory_type.cpp:369, AssignMoveOpForAssemble).
    """
    parts = [node for node in writers if node.opcode == "ASSEMBLE"]
    if not parts:
        return False
    item = tensor.format.dtype.itemsize
    strides = [math.prod(tensor.shape[axis + 1 :]) * item for axis in range(len(tensor.shape))]
    starts = [
        [
            each * stride
            for each, stride in zip(node.attributes.offset, strides, strict=True)
            if isinstance(each, int)
        ]
        for node in parts
    ]
    return (
        math.prod(tensor.shape) * item > _MOST_JOINED_BYTES
        or any(sum(each) % BLOCK_BYTES for each in starts)
        or (len(readers) > 0 and all(map(_reads_gm, readers)))
        or (
            tensor.memory is Memory.UB
            and len(readers) > 0
            and all(_begins_within_block(each, tensor) for each in readers)
        )
    )


def place_moves(graph: TileGraph) -> TileGraph:
    """Have transpositions move from and to GM at the places that views and assembles there name.

    Source: tile_graph_pass/graph_constraint/replace_tensor.cpp, pre_graph/
    remove_redundant_assemble.cpp.

    Raises:
        PlanError: a result that lies in two tensors.
    """
    users, made = consumers(graph.nodes), producers(graph.nodes)
    kept = []
    for node in graph.nodes:
        ends = {graph.tensors[each].memory is Memory.UB for each in (*node.inputs, *node.outputs)}
        if node.opcode in ("VIEW", "ASSEMBLE") and ends == {False}:
            continue
        if _gives_to_gm(node):
            readers = users.get(node.outputs[0], ())
            placed = [each for each in readers if each.opcode == "ASSEMBLE"]
            if placed and len(readers) > 1:
                raise PlanError(f"{node.place}: a result that lies in two tensors is not planned")
            target = placed[0].outputs if placed else node.outputs
            offset = placed[0].attributes.offset if placed else ()
            origin = (0,) * len(graph.tensors[target[0]].shape)
            asked = replace(node.attributes, offset=offset or origin)
            node = replace(node, outputs=target, attributes=asked)
        taken = [each for each in node.inputs if _takes_from_gm(node, each)]
        if taken:
            found = {each: _place_in_gm(graph, made.get(each, ()), each) for each in taken}
            asked = replace(node.attributes, offset=found[taken[0]][1])
            if not asked.axes:
                places = tuple((found[each][1], graph.tensors[each].shape) for each in taken)
                asked = replace(node.attributes, taken=places)
            inputs = tuple(found[each][0] if each in found else each for each in node.inputs)
            node = replace(node, inputs=inputs, attributes=asked)
        kept.append(node)
    return replace(graph, nodes=tuple(kept))


def _place_in_gm(graph: TileGraph, writers: Sequence[Node], tensor: int) -> tuple[int, Scalars]:
    """The tensor that a view in GM is of, and its place there."""
    view = next((each for each in writers if each.opcode == "VIEW"), None)
    if view is None:
        return tensor, (0,) * len(graph.tensors[tensor].shape)
    return view.inputs[0], view.attributes.offset


def takes_part(graph: TileGraph, reader: Node, reshapes: Sequence[Node]) -> bool:
    """True if it reads a part of the result of a reshape."""
    given = [
        graph.tensors[x].shape for each in reshapes for x in each.outputs if x in reader.inputs
    ]
    taken = math.prod(graph.tensors[reader.outputs[0]].shape)
    return any(math.prod(each) != taken for each in given)


def settle_reshapes(graph: TileGraph) -> TileGraph:
    """Have reshapes between tensors of GM: nothing moves, both lie in the same memory.

    Those between assembles and views stay in UB. Elsewhere an operand in UB is assembled in GM
    first, a result is viewed by who computes with it; a whole view before and a whole assemble
    into an argument behind are left out (tile_graph_pass/data_path/assign_memory_type.cpp,
    graph_optimization/remove_redundant_op.cpp).

    Raises:
        PlanError: a result that is assembled or reshaped further, an operand that others than
            reshapes and operations on tiles use, or more than UB takes of it.
    """
    reshapes = [each for each in graph.nodes if each.opcode == "RESHAPE"]
    if not reshapes:
        return graph
    nodes = {each.number: each for each in graph.nodes}
    tensors, number, raw = list(graph.tensors), graph.next_number, graph.next_raw
    made, users = producers(graph.nodes), consumers(graph.nodes)
    for node in reshapes:
        (source,), (result,) = node.inputs, node.outputs
        writers, readers = made[source], users.get(result, [])
        first, last = writers[0], readers[0] if len(readers) == 1 else node
        size_bytes = math.prod(tensors[source].shape) * tensors[source].format.dtype.itemsize
        if first.opcode == "ASSEMBLE" and readers and readers[0].opcode == "VIEW":
            if size_bytes > _MOST_JOINED_BYTES:
                raise PlanError(f"{node.place}: a reshape of {size_bytes} B is not planned")
            if tensors[source].memory is not Memory.UB:
                raise PlanError(
                    f"{node.place}: a reshape of tiles that are put together in GM, and read in "
                    "parts, is not planned"
                )
            continue
        if first.opcode == "VIEW" and tensors[source].shape == tensors[first.inputs[0]].shape:
            source = first.inputs[0]
            if len(users[first.outputs[0]]) == 1:
                del nodes[first.number]
        elif first.opcode == "ASSEMBLE" and users[source] == [node]:
            tensors[source] = replace(tensors[source], memory=Memory.TEMPORARY)
        elif first.opcode not in ("VIEW", "ASSEMBLE", "RESHAPE"):
            passed = len(tensors)
            tensors.append(replace(tensors[source], memory=Memory.TEMPORARY))
            nodes[number] = _whole("ASSEMBLE", number, source, passed, tensors)
            source, number = passed, number + 1
        else:
            raise PlanError(f"{node.place}: a reshape of such a part of a tensor is not planned")
        tensors[result] = replace(tensors[result], memory=Memory.TEMPORARY)
        if last.opcode == "ASSEMBLE" and tensors[result].shape == tensors[last.outputs[0]].shape:
            del nodes[last.number]
            result = last.outputs[0]
        else:
            for reader in readers:
                if reader.opcode == "VIEW":
                    continue
                if reader.opcode in ("ASSEMBLE", "RESHAPE"):
                    raise PlanError(f"{node.place}: {reader.place} of its result is not planned")
                seen, held = len(tensors), nodes[reader.number]
                tensors.append(replace(tensors[result], memory=Memory.UB, raw=raw))
                nodes[number] = _whole("VIEW", number, result, seen, tensors)
                inputs = tuple(seen if each == result else each for each in held.inputs)
                nodes[reader.number] = replace(held, inputs=inputs)
                number, raw = number + 1, raw + 1
        nodes[node.number] = replace(node, inputs=(source,), outputs=(result,))
    settled = replace(
        graph,
        nodes=tuple(nodes.values()),
        tensors=tuple(tensors),
        raw_tiles=graph.raw_tiles + ((),) * (raw - graph.next_raw),
    )
    return settled if number == graph.next_number else alive(settled)


def _whole(opcode: str, number: int, source: int, target: int, tensors: list[TileTensor]) -> Node:
    offset = (0,) * len(tensors[source].shape)
    return Node(
        opcode=opcode,
        number=number,
        inputs=(source,),
        outputs=(target,),
        attributes=Attributes(offset=offset),
    )
