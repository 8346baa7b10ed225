"""The leaves and tasks of a kernel from its operations: the first half of the planner.

Each stage is a function from one frozen graph to the next, named after what it does; upstream's
passes that it stands for are named there. What follows lays out the buffers of each leaf.
"""

from __future__ import annotations

from ascend_kernels.schedule.partition import partition
from ascend_kernels.schedule.subgraphs import (
    TiledKernel,
    eliminate_common,
    pass_through_gm,
    split,
)
from ascend_kernels.schedule.task_numbering import merge_alike, number_by_depth
from ascend_kernels.schedule.tile_cutting import (
    cut,
    duplicate_views,
    merge_views,
    settle_reshapes,
)
from ascend_kernels.schedule.tile_graph import TileGraph


def tiled_kernel(graph: TileGraph, name: str, *, cores: int) -> TiledKernel:
    """Cut a kernel into tiles, and its tiles into tasks.

    Args:
        graph: its operations over whole tensors, in order, with AutoCast's casts.
        name: of the kernel.
        cores: vector cores of the chip.

    Raises:
        PlanError: an operation, or a way to pass a result on, that is not planned; names it with
            its line.
    """
    tiles = settle_reshapes(duplicate_views(merge_views(cut(graph))))
    tasks = merge_alike(partition(tiles), cores)
    copies = eliminate_common(pass_through_gm(tasks))
    return split(number_by_depth(copies), name)
