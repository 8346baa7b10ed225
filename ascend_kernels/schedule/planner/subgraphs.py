"""From subgraphs to leaves and tasks: temporaries, copies, leaves in common, padding.

Paths below are those of upstream pypto at tag r0.2.0, framework/src/passes.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Final

from ascend_kernels.schedule.parts import (
    COPIES,
    MOVES,
    OUTWARD,
    PUTTERS,
    Access,
    Body,
    Scalars,
    Task,
    Temporary,
    TileOperand,
    TileOperation,
)
from ascend_kernels.schedule.planner.leaves.leaf_graph import LeafGraph, decimals, operation_cycles
from ascend_kernels.schedule.planner.tiles.column_blocks import BLOCKS_OF_COLUMN
from ascend_kernels.schedule.planner.tiles.open_extents import GIVES_EXTENTS, inferred
from ascend_kernels.schedule.planner.tiles.padded_memory import RawPlace, padded, parts_of_raw
from ascend_kernels.schedule.planner.tiles.tile_graph import (
    Attributes,
    Memory,
    Node,
    PlanError,
    TileGraph,
    TileTensor,
    consumers,
    exchanged,
    in_order,
    latency_cycles,
    producers,
    restored,
)
from ascend_kernels.schedule.planner.tiles.tile_views import alive, takes_part
from simulator.machine.tile_opcodes import TILE_OPCODES
from tiling.grid import Shape

_APART: Final = frozenset(("scalar", "other_scalar", "offset", "taken", "number", "file", "line"))
_asked: Final[Callable[[Attributes], Hashable]] = operator.attrgetter(
    *(each.name for each in fields(Attributes) if each.name not in _APART)
)
"""The attributes of a node but its numbers, its place in a tensor and that in the source."""


def eliminate_common(graph: TileGraph) -> TileGraph:
    """Let one operation stand for those of its subgraph that are equal to it.

    Equal are opcode, inputs, attributes but the place in the source, and result; views within UB
    stay (tile_graph_pass/graph_partition/common_operation_eliminate.cpp). Sorted twice after it.
    """
    nodes = {each.number: each for each in graph.nodes}
    made, users = producers(graph.nodes), consumers(graph.nodes)
    known: dict[Hashable, int] = {}
    stands_for: dict[int, int] = {}
    dropped: set[int] = set()
    sequence = dict.fromkeys(tensor for node in graph.nodes for tensor in node.outputs)
    for tensor in sequence:
        writers = [nodes[each.number] for each in made[tensor]]
        held = graph.tensors[tensor]
        if any(each.opcode == "VIEW" for each in writers):
            continue
        identity = (
            held.format.name,
            held.shape,
            held.valid if _tells_extents(writers[0]) else (),
            frozenset(_identity(each, writers[0].outputs.index(tensor)) for each in writers),
        )
        first = known.setdefault(identity, tensor)
        if first == tensor or held.memory in (Memory.ARGUMENT, Memory.SLOT):
            continue
        if not users.get(first) or not users.get(tensor):
            continue
        dropped.update(each.number for each in writers)
        stands_for[tensor] = first
        for reader in users[tensor]:
            asked = nodes[reader.number]
            inputs = tuple(first if each == tensor else each for each in asked.inputs)
            nodes[reader.number] = replace(asked, inputs=inputs)
        users[first] += users[tensor]
    kept = [node for number, node in nodes.items() if number not in dropped]
    return alive(replace(graph, nodes=in_order(kept)))


def _tells_extents(node: Node) -> bool:
    """True for a node with the extents of its result among its attributes."""
    return node.opcode in ("VIEW", "COPY_IN") or TILE_OPCODES[node.opcode].work in GIVES_EXTENTS


def _identity(node: Node, output: int) -> Hashable:
    """A node with six decimals of its number, the text that upstream compares (DumpAttr)."""
    asked = node.attributes
    text = decimals(asked.scalar) if asked.other_scalar is None else ""  # it has none of two
    told = _asked(asked), asked.offset, asked.number, text
    return node.opcode, node.inputs, told, node.subgraph, output


@dataclass(frozen=True, slots=True, kw_only=True)
class TiledKernel:
    """The leaves of a kernel, and the tasks that run them, in the order of the bodies.

    Attributes:
        leaves, bodies: these.
        fewest, spread: see `TileGraph`.
        raws: the raw tensors by number, as `TileTensor.tile` of each and how many were made so; it
            tells how the numbers grow, and two kernels are equal without.
    """

    leaves: tuple[LeafGraph, ...]
    bodies: tuple[Body, ...]
    fewest: int = 0
    spread: float = field(default=math.inf, compare=False)
    raws: tuple[tuple[Shape, int], ...] = field(default=(), compare=False)


def split(graph: TileGraph, name: str, *, is_open: bool = False) -> TiledKernel:
    """Make a leaf of each kind of subgraph, and a task of each subgraph.

    Subgraphs that are equal but for the places of their copies share the leaf of the first, with
    its numbers: those of another with the same six decimals are dropped
    (tile_graph_pass/subgraph_to_function.cpp:438; interface/function/function.cpp:1273).

    Args:
        graph: with copies, sorted.
        name: of the body.
        is_open: some extents of the kernel are known only when it runs, so that leaves take those
            of their tiles from the task.
    """
    extents = inferred(graph, graph.nodes, lambda node: _extents(graph, node))
    raw = parts_of_raw(graph)
    shapes = padded(graph, raw)
    _check_reshapes(graph, raw, shapes)
    parts: dict[int, list[Node]] = {}
    for node in graph.nodes:
        parts.setdefault(node.subgraph, []).append(node)
    temporaries = _temporaries(graph, name)
    leaves: dict[Hashable, int] = {}
    made: list[LeafGraph] = []
    orders: list[list[int]] = []
    tasks: list[tuple[int | None, tuple[Access, ...]]] = []
    for _, nodes in sorted(parts.items()):
        ordered = in_order(nodes)
        walked, identity = _walk(graph, ordered, raw, shapes)
        in_gm = [each for each in ordered if _is_in_gm(graph, each)]
        if len(in_gm) == len(ordered):
            tasks.append((None, ()))
            continue
        is_given = any(_is_numbered(graph, x) or takes_part(graph, x, in_gm) for x in ordered)
        if len(in_gm) > 1 or (in_gm and is_given):
            raise PlanError(
                f"{in_gm[0].place}: a reshape in GM inside a task, beside another, beside numbers "
                "that the task says or read in parts there, is not planned"
            )
        leaf = leaves.setdefault(identity, len(made))
        asking = [each for each in walked if _has_access(graph, each)]
        if leaf == len(made):
            made.append(_leaf(graph, ordered, raw, shapes, is_open=is_open))
            places = [each.number for each in _by_access(asking, ordered)]
            orders.append([places.index(each.number) for each in asking])
        accesses: list[tuple[Access, ...]] = [()] * len(asking)
        for place, node in zip(orders[leaf], asking, strict=True):
            accesses[place] = _accesses(graph, node, temporaries, extents)
        accesses += ((_whole_of(graph, x, temporaries),) for node in in_gm for x in _ends(node))
        tasks.append((leaf, tuple(itertools.chain.from_iterable(accesses))))
    return TiledKernel(
        leaves=tuple(made),
        bodies=(_body(graph, name, tasks, temporaries),),
        fewest=graph.fewest,
        spread=graph.spread,
        raws=(((), graph.first_raw), *((tile, 1) for tile in graph.raw_tiles)),
    )


def _extents(graph: TileGraph, node: Node) -> Scalars:
    return graph.tensors[node.outputs[0]].extents


def _asks_extents(graph: TileGraph, node: Node) -> bool:
    """True for an operation, no copy, whose extents its task says."""
    work = TILE_OPCODES[node.opcode].work if node.opcode in TILE_OPCODES else None
    return work in GIVES_EXTENTS and graph.tensors[node.outputs[0]].is_open


def _is_numbered(graph: TileGraph, node: Node) -> bool:
    return _has_access(graph, node) and node.opcode not in COPIES and not node.attributes.taken


def _ends(node: Node) -> tuple[int, ...]:
    return (*node.inputs, *node.outputs)


def _whole_of(graph: TileGraph, tensor: int, temporaries: Mapping[int, Temporary]) -> Access:
    """All of a tensor that is reshaped, or that is reshaped to."""
    held = graph.tensors[tensor]
    name = held.name or temporaries[tensor].name
    return Access(tensor=name, offset=(0,) * len(held.shape), shape=held.extents)


def _has_access(graph: TileGraph, node: Node) -> bool:
    asked = node.attributes
    is_told = asked.number is not None or bool(asked.taken)
    return node.opcode in COPIES or is_told or _asks_extents(graph, node)


def _by_access(asking: Sequence[Node], ordered: Sequence[Node]) -> list[Node]:
    """The nodes with an access, in order: copies first, then those that read GM."""
    numbers = {each.number for each in asking}
    found = (each for each in ordered if each.number in numbers)
    return sorted(found, key=lambda each: (each.opcode not in COPIES, not each.attributes.taken))


def _is_in_gm(graph: TileGraph, node: Node) -> bool:
    """True for a reshape in GM, where nothing moves."""
    return node.opcode == "RESHAPE" and graph.tensors[node.inputs[0]].memory is not Memory.UB


def _check_reshapes(
    graph: TileGraph, raw: Mapping[int, RawPlace], padded: Mapping[int, Shape]
) -> None:
    """Refuse reshapes in UB of padded rows, which upstream takes through GM.

    Raises:
        PlanError: names the reshape.
    """
    for node in graph.nodes:
        for tensor in (*node.inputs, *node.outputs) if node.opcode == "RESHAPE" else ():
            shape = graph.tensors[tensor].shape
            if tensor in raw and padded[raw[tensor].raw][-1] != shape[-1]:
                raise PlanError(
                    f"{node.place}: a reshape of {list(shape)}, whose rows are not whole 32 B "
                    "blocks, is not planned"
                )


def _temporaries(graph: TileGraph, body: str) -> Mapping[int, Temporary]:
    tensors = dict.fromkeys(
        tensor
        for node in graph.nodes
        for tensor in (*node.inputs, *node.outputs)
        if graph.tensors[tensor].memory in (Memory.TEMPORARY, Memory.SLOT)
    )
    names = {tensor: f"{body} temporary {place}" for place, tensor in enumerate(tensors)}
    aliases = {}
    for node in graph.nodes:
        if _is_in_gm(graph, node):
            source, target = node.inputs[0], node.outputs[0]
            if target not in names:
                source, target = target, source
            aliases[target] = names.get(source, graph.tensors[source].name)
    made = producers(graph.nodes)
    return {
        tensor: _temporary(graph.tensors[tensor], name, aliases.get(tensor, ""), tensor in made)
        for tensor, name in names.items()
    }


def _temporary(held: TileTensor, name: str, alias: str, made: bool) -> Temporary:
    if held.slot is None:
        return Temporary(name=name, format=held.format, shape=held.shape, alias=alias)
    return Temporary(
        name=name,
        format=held.format,
        shape=held.extents,
        alias=alias,
        reads_slot=None if made else held.slot,
        writes_slots=(held.slot,) if made else (),
        is_partial=held.is_partial,
    )


def _walk(
    graph: TileGraph,
    nodes: Sequence[Node],
    raw: Mapping[int, RawPlace],
    shapes: Mapping[int, Shape],
) -> tuple[list[Node], Hashable]:
    """The nodes as they are met from the results on, and the key by which subgraphs are equal."""
    made = producers(nodes)
    numbers: dict[int, int] = {}
    met: dict[int, Node] = {}
    text: list[Hashable] = []

    def meet(tensor: int) -> None:
        if tensor in numbers:
            text.append(numbers[tensor])
            return
        held = graph.tensors[tensor]
        numbers[tensor] = len(numbers)
        extents = shapes[raw[tensor].raw] if tensor in raw else None
        text.append((held.format.name, held.shape, extents, held.memory))
        for node in made.get(tensor, ()):
            if node.number in met:
                continue
            met[node.number] = node
            asked, asks = node.attributes, _asks_extents(graph, node)
            offset = () if node.opcode in MOVES else asked.offset
            text.append(tuple(extents for _, extents in asked.taken))
            place, number = node.outputs.index(tensor), decimals(asked.scalar, node.opcode)
            text.append((node.opcode, _asked(asked), number, offset, place, asks))
            for each in node.inputs:
                meet(each)

    for node in nodes:
        for tensor in node.outputs:
            if graph.tensors[tensor].memory is not Memory.UB:
                meet(tensor)
    return list(met.values()), tuple(text)


def _leaf(
    graph: TileGraph,
    nodes: Sequence[Node],
    raw: Mapping[int, RawPlace],
    shapes: Mapping[int, Shape],
    *,
    is_open: bool,
) -> LeafGraph:
    operations = []
    computed = nodes
    tensors: dict[int, int] = {}
    in_gm: dict[int, int] = {}
    gm_tensors: list[int] = []
    read = {each for node in computed for each in node.inputs}
    written = {each for node in computed for each in node.outputs}

    asking = _by_access([x for x in computed if _has_access(graph, x)], computed)
    counts = (max(1, len(each.attributes.taken)) for each in asking)
    first = itertools.accumulate(counts, initial=0)
    accesses = {each.number: k for each, k in zip(asking, first, strict=False)}

    def asked_extents(node: Node) -> Scalars:
        if node.number not in accesses:
            return _extents(graph, node)
        axes = exchanged(range(len(_extents(graph, node))), node.attributes.axes)
        return tuple(("valid", accesses[node.number], axis) for axis in axes)

    extents = inferred(graph, computed, asked_extents, of_leaf=True) if is_open else {}

    def numbers(operands: Sequence[int]) -> tuple[int, ...]:
        """Of the tensors that the leaf itself reads and writes; one in GM may be both."""
        return tuple(
            tensors.setdefault(each, len(tensors))
            if each in raw or (each in read and each in written)
            else -1
            for each in operands
        )

    packed = {x for node in nodes if node.opcode == BLOCKS_OF_COLUMN for x in node.inputs}

    @functools.cache
    def tile(tensor: int) -> TileOperand:
        held, part = graph.tensors[tensor], raw[tensor]
        return TileOperand(
            buffer=graph.tensors[part.raw].raw,
            format=held.format,
            shape=shapes[part.raw],
            valid_shape=held.shape,
            offset=part.offset,
            is_packed=tensor in packed,
        )

    copies = sum(node.opcode in COPIES for node in computed)
    taken: list[int] = []
    for node in computed:
        is_copy, is_put, outputs = node.opcode in COPIES, node.opcode in PUTTERS, node.outputs

        def operand(
            tensor: int,
            is_copy: bool = is_copy,
            is_put: bool = is_put,
            outputs: Sequence[int] = outputs,
        ) -> TileOperand:
            held = graph.tensors[tensor]
            if held.memory is Memory.UB:
                return tile(tensor)
            if is_put and tensor in outputs:  # over the operand that it changes
                return TileOperand(access=copies + len(taken) - 1, format=held.format)
            moved, first = (gm_tensors, 0) if is_copy else (taken, copies)
            moved.append(in_gm.setdefault(tensor, len(in_gm)))
            return TileOperand(access=first + len(moved) - 1, format=held.format)

        asked, row = node.attributes, TILE_OPCODES[node.opcode]
        is_taken = bool(asked.taken)
        operation = TileOperation(
            opcode=node.opcode,
            pipe=row.pipe.name,
            inputs=tuple(map(operand, node.inputs)),
            outputs=tuple(map(operand, node.outputs)),
            mode=asked.mode,
            saturate=asked.saturate is not False,
            scalar=asked.scalar,
            other_scalar=asked.other_scalar,
            scalar_first=asked.scalar_first,
            step=asked.step,
            numbers=() if asked.number is None else (("valid", accesses[node.number], 0),),
            axis=asked.axis,
            axes=asked.axes,
            function=asked.function,
            latency=_cycles_in_gm(graph, node) if is_taken or _is_in_gm(graph, node) else 0,
            file=asked.file,
            line=asked.line,
        )
        operations.append(_with_extents(operation, node, extents) if is_open else operation)
    buffers = {operand.buffer for each in operations for operand in (*each.inputs, *each.outputs)}
    return LeafGraph(
        operations=tuple(operations),
        reads=tuple(numbers(node.inputs) for node in computed),
        writes=tuple(numbers(node.outputs) for node in computed),
        gm_tensors=(*gm_tensors, *taken),
        guessed=frozenset(each for each in graph.guessed_raws if each in buffers),
    )


def _cycles_in_gm(graph: TileGraph, node: Node) -> int:
    """Those of an operation on tensors in GM, of which a leaf knows no extents."""
    read, written = (
        [(math.prod(graph.tensors[x].shape), graph.tensors[x].format) for x in tensors]
        for tensors in (node.inputs, node.outputs)
    )
    taken = dict(zip(_in_gm(graph, node), node.attributes.taken, strict=False))
    for place, tensor in enumerate(node.inputs):
        if tensor in taken:
            read[place] = math.prod(taken[tensor][1]), graph.tensors[tensor].format
    return latency_cycles(node.opcode, read, written)


def _with_extents(
    operation: TileOperation, node: Node, extents: Mapping[int, Scalars]
) -> TileOperation:
    """An operation over tiles whose extents the task says; it counts the cycles of whole tiles."""

    def opened(operands: Sequence[TileOperand], tensors: Sequence[int]) -> tuple[TileOperand, ...]:
        return tuple(
            each if each.buffer is None else replace(each, valid_shape=extents[tensor])
            for each, tensor in zip(operands, tensors, strict=True)
        )

    return replace(
        operation,
        inputs=opened(operation.inputs, node.inputs),
        outputs=opened(operation.outputs, node.outputs),
        latency=operation.latency or operation_cycles(operation),
    )


def _in_gm(graph: TileGraph, node: Node) -> list[int]:
    """The operands in GM."""
    return [each for each in node.inputs if graph.tensors[each].memory is not Memory.UB]


def _accesses(
    graph: TileGraph,
    node: Node,
    temporaries: Mapping[int, Temporary],
    extents: Mapping[int, Scalars],
) -> tuple[Access, ...]:
    if not node.attributes.taken:
        return (_access(graph, node, temporaries, extents),)
    return tuple(
        Access(
            tensor=graph.tensors[each].name or temporaries[each].name, offset=offset, shape=shape
        )
        for each, (offset, shape) in zip(_in_gm(graph, node), node.attributes.taken, strict=True)
    )


def _access(
    graph: TileGraph,
    node: Node,
    temporaries: Mapping[int, Temporary],
    extents: Mapping[int, Scalars],
) -> Access:
    if (number := node.attributes.number) is not None:
        return Access(tensor="", offset=(), shape=(number,))
    if node.opcode not in COPIES:
        return Access(tensor="", offset=(), shape=extents[node.outputs[0]])
    inner, outer, turned = node.outputs[0], node.inputs[0], restored
    if node.opcode in OUTWARD:
        inner, outer, turned = outer, inner, exchanged
    name = graph.tensors[outer].name or temporaries[outer].name
    shape = turned(extents[inner], node.attributes.axes)
    return Access(tensor=name, offset=node.attributes.offset, shape=shape)


def _body(
    graph: TileGraph,
    name: str,
    tasks: Sequence[tuple[int | None, tuple[Access, ...]]],
    temporaries: Mapping[int, Temporary],
) -> Body:
    """The tasks in an order that their data allows, each with the readers of its results."""
    made = producers(graph.nodes)
    before: list[set[int]] = [set() for _ in tasks]
    for node in graph.nodes:
        for tensor in node.inputs:
            before[node.subgraph].update(each.subgraph for each in made.get(tensor, ()))
    for place, found in enumerate(before):
        found.discard(place)
    order = list(_topological(before))
    successors: list[list[int]] = [[] for _ in tasks]
    for place, task in enumerate(order):
        for each in before[task]:
            successors[each].append(place)
    listed = tuple(
        Task(leaf=tasks[task][0], accesses=tasks[task][1], successors=tuple(successors[task]))
        for task in order
    )
    return Body(name=name, tasks=listed, temporaries=tuple(temporaries.values()))


def _topological(before: Sequence[set[int]]) -> Iterator[int]:
    done: set[int] = set()
    while len(done) < len(before):
        ready = [k for k, found in enumerate(before) if k not in done and found <= done]
        assert ready, "tasks wait for each other"
        done.update(ready)
        yield from ready
