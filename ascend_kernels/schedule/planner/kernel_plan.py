"""The schedule of a kernel from its operations: the two halves of the planner in a row."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ascend_kernels.schedule.parts import Access, Parameter, Run, Task
from ascend_kernels.schedule.planner.addresses import Copy
from ascend_kernels.schedule.planner.leaf_graph import LeafGraph
from ascend_kernels.schedule.planner.leaf_plan import PlannedLeaf, plan_leaf
from ascend_kernels.schedule.planner.subgraphs import TiledKernel
from ascend_kernels.schedule.planner.tile_graph import PlanError, TileGraph
from ascend_kernels.schedule.planner.tiled_kernel import tiled_kernel
from ascend_kernels.schedule.schedule import PLANNER, Schedule
from simulator.numbers.formats import Format
from tiling.chips import Chip
from tiling.grid import Shape


def planned_schedule(
    graphs: Sequence[TileGraph],
    tensors: Mapping[str, tuple[Format, Shape]],
    *,
    kernel: str,
    release: str,
    chip: Chip,
) -> Schedule:
    """Plan a kernel as upstream's compiler does; of equal ones the schedule is kept.

    Args:
        graphs: its operations over whole tensors, with AutoCast's casts; one graph for each run of
            operations that is compiled by itself.
        tensors: of its signature, in its order.
        kernel: its name.
        release: of upstream's, whose AutoCast's casts are in the graphs.
        chip: whose cores and UB are planned for.

    Raises:
        PlanError: an operation that is not planned, more in UB at one moment than it holds, or a
            kernel without an operation; names operation and line.
    """
    given = tuple(tensors.items())
    return _planned(tuple(graphs), repr(graphs), given, kernel=kernel, release=release, chip=chip)


@functools.lru_cache(maxsize=32)
def _planned(
    graphs: tuple[TileGraph, ...],
    text: str,  # -0.0 is told from 0.0 in it
    given: tuple[tuple[str, tuple[Format, Shape]], ...],
    *,
    kernel: str,
    release: str,
    chip: Chip,
) -> Schedule:
    tensors = dict(given)
    for name, (_, shape) in tensors.items():
        if min(shape, default=0) < 1:
            raise PlanError(
                f"{kernel}: {name} has the shape {list(shape)}; a schedule takes a positive length "
                "of each dimension"
            )
    tiled = tiled_kernel(
        [graph for graph in graphs if graph.outputs], kernel, cores=chip.vector_cores
    )
    if not tiled.leaves:
        raise PlanError(f"{kernel}: no operation of it writes an output, so there is no task")
    leaves = [
        _planned_leaf(f"{kernel} leaf {place}", graph, chip.ub_bytes)
        for place, graph in enumerate(tiled.leaves)
    ]
    bodies = (
        replace(body, tasks=tuple(_issued(task, leaves) for task in body.tasks))
        for body in tiled.bodies
    )
    return Schedule(
        kernel=kernel,
        release=release,
        chip=chip.name,
        origin=PLANNER,
        parameters=_parameters(tensors, tiled),
        leaves=tuple(each.leaf for each in leaves),
        bodies=tuple(bodies),
        steps=tuple(Run(body=place) for place in range(len(tiled.bodies))),
    )


def _planned_leaf(name: str, graph: LeafGraph, ub_bytes: int) -> PlannedLeaf:
    try:
        return plan_leaf(name, graph, ub_bytes)
    except ValueError as error:
        raise PlanError(str(error)) from None


def _issued(task: Task, leaves: Sequence[PlannedLeaf]) -> Task:
    """A task with an access of each copy of its leaf, spills among them, in the order of issue."""
    if task.leaf is None:
        return task
    copies = leaves[task.leaf].copies
    return replace(task, accesses=tuple(_access(copy, task) for copy in copies))


def _access(copy: Copy, task: Task) -> Access:
    if copy.access is None:
        return Access(tensor="", offset=(copy.workspace_bytes,), shape=())
    return task.accesses[copy.access]


def _parameters(
    tensors: Mapping[str, tuple[Format, Shape]], tiled: TiledKernel
) -> tuple[Parameter, ...]:
    lies_in = {
        each.name: each.alias for body in tiled.bodies for each in body.temporaries if each.alias
    }

    def memory(name: str) -> str:
        return memory(lies_in[name]) if name in lies_in else name

    read, written = (
        {
            memory(task.accesses[each.access].tensor)
            for body in tiled.bodies
            for task in body.tasks
            if task.leaf is not None
            for operation in tiled.leaves[task.leaf].operations
            for each in (operation.inputs if is_read else operation.outputs)
            if each.access is not None
        }
        for is_read in (True, False)
    )
    return tuple(
        Parameter(
            name=name, format=fmt, shape=shape, is_read=name in read, is_written=name in written
        )
        for name, (fmt, shape) in tensors.items()
    )
