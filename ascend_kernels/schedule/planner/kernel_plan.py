"""The schedule of a kernel from its operations: the two halves of the planner in a row."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from operator import attrgetter
from typing import Any, Final

import numpy.typing as npt

from ascend_kernels.schedule.parts import (
    MOVES,
    PUTTERS,
    TAKERS,
    Access,
    Branch,
    ControlStep,
    Loop,
    Parameter,
    Run,
    Task,
    numbers_read,
)
from ascend_kernels.schedule.planner.leaves.addresses import Copy
from ascend_kernels.schedule.planner.leaves.leaf_graph import LeafGraph
from ascend_kernels.schedule.planner.leaves.leaf_plan import PlannedLeaf, plan_leaf
from ascend_kernels.schedule.planner.subgraphs import TiledKernel
from ascend_kernels.schedule.planner.tiled_kernel import tiled_kernel
from ascend_kernels.schedule.planner.tiles.memory_conflicts import unordered_copies
from ascend_kernels.schedule.planner.tiles.tile_graph import (
    KernelGraphs,
    Memory,
    PlanError,
    TileGraph,
    producers,
)
from ascend_kernels.schedule.schedule import PLANNER, Schedule
from ascend_kernels.schedule.time_limit import check_time
from simulator.numbers.formats import Format
from tiling.chips import A2_A3, Chip
from tiling.grid import Shape

PASS_FAMILIES: Final = (A2_A3,)
"""The families whose dumps the passes of the planner were compared with."""


def check_shapes(kernel: str, tensors: Mapping[str, tuple[Format, Shape]]) -> None:
    """Refuse a tensor without elements.

    Raises:
        PlanError: names it.
    """
    for name, (_, shape) in tensors.items():
        if min(shape, default=0) < 1:
            raise PlanError(
                f"{kernel}: {name} has the shape {list(shape)}; a schedule takes a positive length "
                "of each dimension"
            )


def planned_schedule(
    given: KernelGraphs,
    tensors: Mapping[str, tuple[Format, Shape]],
    *,
    kernel: str,
    release: str,
    chip: Chip,
) -> Schedule:
    """Plan a kernel as upstream's compiler does; of equal ones the schedule is kept.

    Args:
        given: its operations over whole tensors, with AutoCast's casts.
        tensors: of its signature, in its order.
        kernel: its name.
        release: of upstream's, whose AutoCast's casts are in the graphs.
        chip: whose cores and UB are planned for.

    Raises:
        OutOfTimeError: the time that `planned_until` gives is over.
        PlanError: an operation that is not planned, more in UB at one moment than it holds, tasks
            that nothing orders, or a kernel without an operation; names operation and line.
    """
    planned = _planned(given, tuple(tensors.items()), kernel=kernel, release=release, chip=chip)
    check_ordered(planned, {name: shape for name, (_, shape) in tensors.items()}, {})
    return planned


@functools.lru_cache(maxsize=32)
def _planned(
    given: KernelGraphs,
    tensors: tuple[tuple[str, tuple[Format, Shape]], ...],
    *,
    kernel: str,
    release: str,
    chip: Chip,
) -> Schedule:
    kept = [place for place, graph in enumerate(given.graphs) if graph.outputs]
    graphs = [given.graphs[place] for place in kept]
    _check_shapes(graphs, {name: shape for name, (_, shape) in tensors})
    tiled = tiled_kernel(graphs, kernel, cores=chip.vector_cores)
    leaves = [
        _planned_leaf(f"{kernel} leaf {place}", graph, chip.ub_bytes)
        for place, graph in enumerate(tiled.leaves)
    ]
    bodies = tuple(
        replace(body, tasks=tuple(_issued(task, leaves) for task in body.tasks))
        for body in tiled.bodies
    )
    steps = _kept(given.steps, {place: number for number, place in enumerate(kept)})
    numbers = numbers_read(bodies, steps)
    parameters = _parameters(dict(tensors), tiled, given.open_axes, numbers)
    _check_read_by_scalars(tiled, {each.name for each in parameters if not each.is_written})
    _check_written(graphs, {each.name for each in parameters if each.is_written})
    if not tiled.leaves:
        raise PlanError(f"{kernel}: no operation of it writes an output, so there is no task")
    for each in parameters:
        if each.is_written and each.name in numbers:
            raise PlanError(
                f"{kernel}: numbers of {each.name} are read as bounds or offsets, and tasks write "
                "it, which is not planned"
            )
    return Schedule(
        kernel=kernel,
        release=release,
        chip=chip.name,
        origin=PLANNER,
        parameters=parameters,
        leaves=tuple(each.leaf for each in leaves),
        bodies=bodies,
        steps=steps,
        simplified=(
            *_of_other_families(chip),
            *given.simplified,
            *(text for graph in graphs for text in unordered_copies(graph)),
            *(f"leaf {n}: {each.simplified}" for n, each in enumerate(leaves) if each.simplified),
        ),
    )


def _of_other_families(chip: Chip) -> tuple[str, ...]:
    """The passes are another family's: UB and cores alone are the chip's."""
    if chip.isa in PASS_FAMILIES:
        return ()
    return (f"passes of {', '.join(PASS_FAMILIES)}, unconfirmed for {chip.isa}",)


def forget_plans() -> None:
    """Forget the schedules that are kept, so that each is planned anew."""
    _planned.cache_clear()


def plans_made() -> int:
    """The schedules planned, and not taken from those kept, since these were forgotten."""
    return _planned.cache_info().misses


def check_ordered(
    schedule: Schedule, extents: Mapping[str, Shape], arrays: Mapping[str, npt.NDArray[Any]]
) -> None:
    """Refuse tasks that use the same elements, one of them writing, in no order.

    Upstream's runtime has the last writer of what is read done before; all else may run at once.

    Args:
        schedule: planned.
        extents: the shape of each parameter.
        arrays: the parameters whose elements are known.

    Raises:
        PlanError: names both operations.
    """
    is_once = schedule.steps == (Run(body=0),)
    is_known = all(
        isinstance(each, int)
        for body in schedule.bodies
        for task in body.tasks
        for access in task.accesses
        for each in access.offset
    )
    is_put = any(each.opcode in PUTTERS for leaf in schedule.leaves for each in leaf.operations)
    if (is_put or not (is_once and is_known)) and (found := schedule.unordered(extents, arrays)):
        raise PlanError(f"{schedule.kernel}: {found}")


def _kept(steps: Sequence[ControlStep], places: Mapping[int, int]) -> tuple[ControlStep, ...]:
    """The steps that run a body which has a task, with the renewals and barriers among them."""
    made: list[ControlStep] = []
    for step in steps:
        match step:
            case Run(body=body):
                made += [Run(body=places[body])] if body in places else []
            case Loop(steps=inner):
                kept = _kept(inner, places)
                made += [replace(step, steps=kept)] if kept else []
            case Branch(steps=inner, otherwise=others):
                held, failed = _kept(inner, places), _kept(others, places)
                made += [replace(step, steps=held, otherwise=failed)] if held or failed else []
            case _:
                made.append(step)
    return tuple(made)


def _check_shapes(graphs: Sequence[TileGraph], shapes: Mapping[str, Shape]) -> None:
    """Refuse an argument in another shape, which a body before it gave to it in place.

    Upstream has a body for that reshape, and a slot in which it leaves the argument.
    """
    for graph in graphs:
        for number, tensor in enumerate(graph.tensors):
            if tensor.memory is Memory.ARGUMENT and tensor.shape != shapes[tensor.name]:
                used = next(x for x in graph.nodes if number in (*x.inputs, *x.outputs))
                then = (each for each in graph.nodes if used.outputs[0] in each.inputs)
                raise PlanError(
                    f"{next(then, used).place}: {tensor.name} of {list(shapes[tensor.name])} as "
                    f"{list(tensor.shape)}, reshaped in place outside of the loop, is not planned"
                )


def _check_written(graphs: Sequence[TileGraph], written: AbstractSet[str]) -> None:
    """Refuse an output that no task writes: an argument is reshaped, and nothing copies it."""
    for graph in graphs:
        made = producers(graph.nodes)
        for output in graph.outputs:
            name, (first, *_) = graph.tensors[output].name, made[output]
            if name and name not in written:
                place = next((each.place for each in made.get(first.inputs[0], ())), first.place)
                raise PlanError(
                    f"{place}: gives {name}, which no task writes where tensors in GM are "
                    "reshaped, so it is not planned; reshape a copy, as x * 1"
                )


def _check_read_by_scalars(tiled: TiledKernel, given: AbstractSet[str]) -> None:
    """Refuse numbers that tasks write to GM and the scalar unit reads there.

    It reads indices, the blocks of a table, and elements along the last axis one by one.

    Args:
        tiled: the leaves and the tasks.
        given: the parameters that no task writes.
    """
    for task in (each for body in tiled.bodies for each in body.tasks if each.leaf is not None):
        for operation in tiled.leaves[task.leaf or 0].operations:
            if operation.opcode not in TAKERS:
                continue
            source, *others = (task.accesses[each.access or 0] for each in operation.inputs)
            is_last = operation.axis == len(source.offset) - 1
            for each in (source, *others) if is_last else others:
                if each.tensor not in given:
                    raise PlanError(
                        f"{operation.opcode} at {operation.place} is not planned: the scalar unit "
                        "reads numbers in GM that tasks write, by a cache that is not modelled"
                    )


def _planned_leaf(name: str, graph: LeafGraph, ub_bytes: int) -> PlannedLeaf:
    check_time()
    try:
        return plan_leaf(name, graph, ub_bytes)
    except PlanError:
        raise
    except ValueError as error:
        raise PlanError(str(error)) from None


def _issued(task: Task, leaves: Sequence[PlannedLeaf]) -> Task:
    """A task with the accesses of its leaf, those of spills among them, in the order of issue."""
    if task.leaf is None:
        return task
    leaf = leaves[task.leaf]
    moved = (
        *(_access(copy, task) for copy in leaf.copies),
        *(task.accesses[each] for each in leaf.taken),
    )
    count = leaf.given + len(leaf.taken)
    if moved == task.accesses[:count]:
        return task
    return replace(task, accesses=(*moved, *task.accesses[count:]))


def _access(copy: Copy, task: Task) -> Access:
    if copy.access is None:
        return Access(tensor="", offset=(copy.workspace_bytes,), shape=())
    return task.accesses[copy.access]


def _parameters(
    tensors: Mapping[str, tuple[Format, Shape]],
    tiled: TiledKernel,
    open_axes: AbstractSet[tuple[str, int]],
    numbers: Collection[str],
) -> tuple[Parameter, ...]:
    lies_in = {
        each.name: each.alias for body in tiled.bodies for each in body.temporaries if each.alias
    }

    def memory(name: str) -> str:
        return memory(lies_in[name]) if name in lies_in else name

    read, written = (
        {
            memory(task.accesses[access].tensor)
            for body in tiled.bodies
            for task in body.tasks
            if task.leaf is not None
            for access in of_leaf[task.leaf]
        }
        for of_leaf in (
            [
                {
                    x.access
                    for each in leaf.operations
                    for x in (ends(each) if each.opcode in MOVES else ())
                    if x.access is not None
                }
                for leaf in tiled.leaves
            ]
            for ends in (attrgetter("inputs"), attrgetter("outputs"))
        )
    )
    return tuple(
        Parameter(
            name=name,
            format=fmt,
            shape=tuple(
                ("extent", name, axis) if (name, axis) in open_axes else extent
                for axis, extent in enumerate(shape)
            ),
            is_read=name in read or name in numbers,
            is_written=name in written,
            planned_shape=shape if any(each == name for each, _ in open_axes) else (),
        )
        for name, (fmt, shape) in tensors.items()
    )
