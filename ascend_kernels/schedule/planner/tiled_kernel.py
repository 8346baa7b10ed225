"""The leaves and tasks of a kernel from its operations: the first half of the planner.

Each stage is a function from one frozen graph to the next, named after what it does; upstream's
passes that it stands for are named there. What follows lays out the buffers of each leaf.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial

from ascend_kernels.schedule.planner.leaves.leaf_graph import LeafGraph
from ascend_kernels.schedule.planner.row_sharing import with_shared_rows
from ascend_kernels.schedule.planner.subgraphs import (
    TiledKernel,
    eliminate_common,
    split,
)
from ascend_kernels.schedule.planner.tiles.column_blocks import (
    packing_operation,
    repeat_columns,
)
from ascend_kernels.schedule.planner.tiles.handovers import pass_through_gm
from ascend_kernels.schedule.planner.tiles.memory_conflicts import copy_given_back
from ascend_kernels.schedule.planner.tiles.partition import partition
from ascend_kernels.schedule.planner.tiles.task_numbering import merge_alike, number_by_depth
from ascend_kernels.schedule.planner.tiles.tile_cutting import cut
from ascend_kernels.schedule.planner.tiles.tile_graph import TileGraph
from ascend_kernels.schedule.planner.tiles.tile_reshapes import split_reshapes
from ascend_kernels.schedule.planner.tiles.tile_views import (
    drop_whole_views,
    duplicate_views,
    merge_views,
    place_moves,
    settle_moves,
    settle_reshapes,
    split_assembled,
    split_raw,
)


def tiled_kernel(graphs: Sequence[TileGraph], name: str, *, cores: int) -> TiledKernel:
    """Cut a kernel into tiles, and its tiles into tasks.

    Args:
        graphs: its operations over whole tensors, in order, with AutoCast's casts; one graph for
            each run of operations that is compiled by itself.
        name: of the kernel.
        cores: vector cores of the chip.

    Raises:
        PlanError: an operation, or a way to pass a result on, that is not planned; names it with
            its line.
    """
    packing = packing_operation(graphs)
    is_open = any(each.is_open for graph in graphs for each in graph.tensors)
    parts = [
        with_shared_rows(
            graph,
            partial(
                _tiled,
                name=f"{name} {graph.name}".rstrip(),
                cores=cores,
                packing=packing,
                is_open=is_open,
            ),
        )
        for graph in graphs
    ]
    if len(parts) == 1:
        return parts[0]
    leaves: dict[Hashable, LeafGraph] = {}
    bodies = []
    for part in parts:
        found = [(leaf.kind, _numbers_known(part, place)) for place, leaf in enumerate(part.leaves)]
        alike = [(leaf, found[:place].count(leaf)) for place, leaf in enumerate(found)]
        for key, leaf in zip(alike, part.leaves, strict=True):
            kept = leaves.setdefault(key, leaf)
            if kept is not leaf and (leaf.guessed or not kept.is_numbered_as(leaf)):
                # Upstream's may have the numbers of either body.
                leaves[key] = replace(kept, guessed=frozenset(kept.buffer_bytes))
        places = [list(leaves).index(key) for key in alike]
        for body in part.bodies:
            tasks = (
                replace(task, leaf=None if task.leaf is None else places[task.leaf])
                for task in body.tasks
            )
            bodies.append(replace(body, tasks=tuple(tasks)))
    return TiledKernel(leaves=tuple(leaves.values()), bodies=tuple(bodies))


def _tiled(graph: TileGraph, name: str, cores: int, *, packing: str, is_open: bool) -> TiledKernel:
    tiles = duplicate_views(
        split_assembled(split_raw(split_reshapes(merge_views(cut(copy_given_back(graph))))))
    )
    tiles = drop_whole_views(settle_reshapes(settle_moves(tiles)))
    tasks = merge_alike(partition(tiles), cores)
    copies = repeat_columns(place_moves(eliminate_common(pass_through_gm(tasks))), packing)
    return split(number_by_depth(copies), name, is_open=is_open)


def _numbers_known(kernel: TiledKernel, leaf: int) -> Hashable:
    """By copy of a leaf, if its extents and its place are known before the kernel runs.

    Of other bodies only leaves with the same of these are one upstream, as the wheel's dumps show.
    """
    tasks = (each for body in kernel.bodies for each in body.tasks if each.leaf == leaf)
    return tuple(
        all(isinstance(x, int) for x in numbers)
        for each in next(tasks).accesses
        for numbers in (each.shape, each.offset)
    )
