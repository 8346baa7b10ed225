"""Results that are handed from subgraph to subgraph through GM.

Paths below are those of upstream pypto at tag r0.2.0, framework/src/passes.
"""

from __future__ import annotations

from dataclasses import replace

from ascend_kernels.schedule.planner.tiles.tile_graph import (
    Attributes,
    Memory,
    Node,
    TileGraph,
    consumers,
    in_order,
    producers,
)


def pass_through_gm(graph: TileGraph) -> TileGraph:
    """Hand results from subgraph to subgraph through temporaries, and make copies of views.

    The writer assembles the result in GM, and each subgraph that reads it has one view of it
    (tile_graph_pass/data_path/intra_subgraph_adapter.cpp); views from GM become COPY_IN, assembles
    from UB into GM COPY_OUT (generate_move_op.cpp:61). Where several tensors are made, the order in
    which upstream makes them, and with it their numbers, is not followed.

    A tile that several subgraphs write is read back by those that wrote a part of it, too.
    """
    nodes = {each.number: each for each in graph.nodes}
    tensors, number, raw = list(graph.tensors), graph.next_number, graph.next_raw
    made, users = producers(graph.nodes), consumers(graph.nodes)

    def insert(opcode: str, source: int, target: int, subgraph: int) -> None:
        nonlocal number
        offset = (0,) * len(tensors[source].shape)
        nodes[number] = Node(
            opcode=opcode,
            number=number,
            inputs=(source,),
            outputs=(target,),
            attributes=Attributes(offset=offset),
            subgraph=subgraph,
        )
        number += 1

    def twin(tensor: int, memory: Memory) -> int:
        nonlocal raw
        tensors.append(replace(tensors[tensor], memory=memory, raw=raw))
        raw += 1
        return len(tensors) - 1

    def read(reader: Node, old: int, new: int) -> None:
        held = nodes[reader.number]
        inputs = tuple(new if each == old else each for each in held.inputs)
        nodes[reader.number] = replace(held, inputs=inputs)

    for tensor, writers in made.items():
        if tensors[tensor].memory is not Memory.UB:
            continue
        subgraphs = {each.subgraph for each in writers}
        readers = users.get(tensor, [])
        others = [each for each in readers if each.subgraph not in subgraphs]
        if not others and len(subgraphs) == 1:
            continue
        if len(subgraphs) > 1:  # a task that wrote a part reads it back with the others
            others = list(readers)
        if writers[0].opcode == "ASSEMBLE" and len(others) == len(readers):
            passed = tensor
            tensors[tensor] = replace(tensors[tensor], memory=Memory.TEMPORARY)
        else:
            passed = twin(tensor, Memory.TEMPORARY)
            insert("ASSEMBLE", tensor, passed, writers[0].subgraph)
            if len(others) == len(readers):  # the temporary keeps the number then
                kept, given = tensors[tensor], tensors[passed]
                tensors[tensor] = replace(kept, raw=given.raw)
                tensors[passed] = replace(given, raw=kept.raw)
        viewing = dict.fromkeys(each.subgraph for each in others if each.opcode != "VIEW")
        views: dict[int, int] = {}
        for subgraph in reversed(viewing):  # as a hash table gives them back
            views[subgraph] = twin(tensor, Memory.UB)
            insert("VIEW", passed, views[subgraph], subgraph)
        for reader in others:
            read(reader, tensor, passed if reader.opcode == "VIEW" else views[reader.subgraph])
    guessed = range(graph.next_raw, raw if raw > graph.next_raw + 1 else graph.next_raw)
    whole = replace(
        graph,
        nodes=tuple(nodes.values()),
        tensors=tuple(tensors),
        raw_tiles=(*graph.raw_tiles, *(each.tile for each in tensors[len(graph.tensors) :])),
        guessed_raws=graph.guessed_raws.union(guessed),
    )
    if number > graph.next_number:
        whole = replace(whole, nodes=in_order(whole.nodes))
    return replace(whole, nodes=tuple(_copy(whole, each) for each in whole.nodes))


def _copy(graph: TileGraph, node: Node) -> Node:
    if node.opcode not in ("VIEW", "ASSEMBLE"):
        return node
    source, target = (graph.tensors[each[0]].memory for each in (node.inputs, node.outputs))
    if source is not Memory.UB and target is Memory.UB:
        return replace(node, opcode="COPY_IN")
    if source is Memory.UB and target is not Memory.UB:
        return replace(node, opcode="COPY_OUT")
    return node
