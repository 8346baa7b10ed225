"""The rules of a release for a graph: AutoCast's casts to FP32, and operations that it refuses.

Paths below are those of upstream pypto at tag r0.2.0, framework/src.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from ascend_kernels.schedule.planner.tiles.tile_graph import (
    Attributes,
    Node,
    PlanError,
    TileGraph,
    in_order,
)
from ascend_kernels.schedule.schedule import RELEASE
from pypto_cast.options.releases import RELEASES
from pypto_cast.recording.steps import Call
from pypto_cast.tensors.tensor import Tensor
from simulator.numbers.formats import BF16, FP16, FP32, Format

Wide = Mapping[int, frozenset[Format]]
"""By the number of a node, the formats that AutoCast runs it in FP32 for."""
_ORDER: Final = (BF16, FP16)


def auto_cast(graph: TileGraph, wide: Wide) -> TileGraph:
    """Insert the casts that upstream's pass of this name does.

    An operation of the release's list takes the FP32 value that its producer already has, or a cast
    of its operand; its result is cast back, and whoever is not in the list reads that
    (passes/tensor_graph_pass/auto_cast.cpp:172, :221). Casts of BF16 come first, then FP16.

    Args:
        graph: sorted.
        wide: by node, the formats that it does not run in.
    """
    for fmt in _ORDER:
        if any(each.format is fmt for each in graph.tensors):
            graph = _cast_wide(graph, wide, fmt)
    return graph


def _cast_wide(graph: TileGraph, wide: Wide, fmt: Format) -> TileGraph:
    tensors = list(graph.tensors)
    nodes: list[Node] = []
    added: list[Node] = []
    known: dict[int, int] = {}
    number = graph.next_number

    def cast(node: Node, tensor: int, *, is_result: bool) -> int:
        nonlocal number
        wide = len(tensors)
        tensors.append(replace(tensors[tensor], format=FP32, raw=graph.next_raw + len(added)))
        source, target = (wide, tensor) if is_result else (tensor, wide)
        added.append(
            Node(
                opcode="CAST",
                number=number,
                inputs=(source,),
                outputs=(target,),
                attributes=Attributes(saturate=False),
                tile_shape=node.tile_shape,
            )
        )
        number += 1
        return wide

    for node in graph.nodes:
        if fmt not in wide.get(node.number, ()):
            nodes.append(node)
            continue
        inputs = []
        for tensor in node.inputs:
            if tensors[tensor].format is fmt and tensor not in known:
                known[tensor] = cast(node, tensor, is_result=False)
            inputs.append(known.get(tensor, tensor))
        outputs = []
        for tensor in node.outputs:
            if tensors[tensor].format is fmt:
                known[tensor] = cast(node, tensor, is_result=True)
            outputs.append(known.get(tensor, tensor))
        nodes.append(replace(node, inputs=tuple(inputs), outputs=tuple(outputs)))
    if not added:
        return graph
    return TileGraph(
        nodes=in_order([*nodes, *added]),
        tensors=tuple(tensors),
        first_raw=graph.next_raw + len(added),
    )


def check_release(call: Call, name: str) -> None:
    """Refuse dtypes and ranks that the release does not take by whose passes is planned."""
    release = RELEASES[RELEASE]
    lists = (each if isinstance(each, (list, tuple)) else [each] for each in call.arguments)
    for each in itertools.chain.from_iterable(lists):
        if isinstance(each, Tensor) and (
            each.dtype in release.refuses.get(name, ())
            or each.dim < release.least_dims.get(name, 1)
        ):
            raise PlanError(
                f"{name} {call.place}: {RELEASE}, by whose passes is planned, refuses {each.dtype} "
                f"of {each.dim} dimensions"
            )
