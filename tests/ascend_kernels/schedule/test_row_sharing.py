"""Kernels of many alike rows of tiles: the plan of all of them from a few, and what that costs."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest
from support.programs.upstream_dumps import NAMES, kernel_of

import pypto_cast as pypto
from ascend_kernels.schedule.parts import Task, Temporary
from ascend_kernels.schedule.planner import row_sharing, tiled_kernel
from ascend_kernels.schedule.planner.subgraphs import TiledKernel
from ascend_kernels.schedule.planner.tiles.tile_graph import PlanError, TileGraph
from benchmarks.planned_schedules import LIST, SEED, Case, drawn, listed
from benchmarks.upstream_kernels import DTYPES
from pypto_cast.kernel.jit import Kernel
from simulator.numbers.formats import FP32

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
Floats = pypto.Tensor[[...], pypto.DT_FP32]


@pypto.frontend.jit
def chained(x: Floats, y: Floats) -> None:
    pypto.set_vec_tile_shapes(2, 64)
    y[:] = pypto.exp(pypto.round(x) + 1.0) - x


@pypto.frontend.jit
def normalised(x: Floats, y: Floats) -> None:
    pypto.set_vec_tile_shapes(2, 64)
    y[:] = x / pypto.sum(x, -1, True)


@pypto.frontend.jit
def batched(x: Floats, y: Floats) -> None:
    pypto.set_vec_tile_shapes(1, 2, 64)
    y[:] = x - pypto.amax(x, -1, True)


@pypto.frontend.jit
def by_columns(x: Floats, y: Floats) -> None:
    pypto.set_vec_tile_shapes(2, 8)
    y[:] = x - pypto.sum(x, 0, True)


@pypto.frontend.jit
def long_columns(x: Floats, y: Floats) -> None:
    """Three columns of a row have more cycles each than are merged whatever their number is."""
    pypto.set_vec_tile_shapes(64, 128)
    e = pypto.exp(pypto.exp(pypto.exp(pypto.exp(x) + 1.0) + 1.0) + 1.0)
    f = pypto.sum(e, -1, True)
    for _ in range(8):
        f = pypto.exp(f) * pypto.exp(f + 1.0) + 1.0
        f = pypto.exp(pypto.exp(f) + pypto.exp(f * 2.0)) + 1.0
    y[:] = e / f


@pypto.frontend.jit
def one_beside_the_other(x: Floats, y: Floats) -> None:
    pypto.set_vec_tile_shapes(8, 64)
    y[:] = pypto.exp(pypto.concat([pypto.exp(x[:, 0:64]), pypto.abs(x[:, 64:128])], 1))


@pypto.frontend.jit
def turned(x: Floats, y: Floats) -> None:
    """Of square tensors only the operation tells that rows become columns."""
    pypto.set_vec_tile_shapes(16, 16)
    y[:] = pypto.transpose(pypto.exp(x), 0, 1) + x


@pypto.frontend.jit
def in_a_loop(x: Floats, y: Floats) -> None:
    pypto.set_vec_tile_shapes(2, 64)
    rows = [x.shape[0], 64]
    total = pypto.tensor(rows, pypto.DT_FP32)
    for index in pypto.loop(2, name="columns", idx_name="index"):
        part = pypto.exp(pypto.view(x, rows, [0, index * 64]))
        if pypto.is_loop_begin(index):
            total[:] = part
        else:
            total[:] = total + part
        pypto.assemble(total + 1.0, [0, index * 64], y)


@pypto.frontend.jit
def in_parts(x: Floats, y: Floats) -> None:
    pypto.set_vec_tile_shapes(2, 64)
    rows = x.shape[0]
    for index in pypto.loop(2, name="columns", idx_name="index"):
        length = (128 - index * 72).min(72)
        part = pypto.view(x, [rows, 72], [0, index * 72], valid_shape=[rows, length])
        pypto.assemble(pypto.exp(part), [0, index * 72], y)


@pypto.frontend.jit
def beside_one_row(x: Floats, b: Floats, y: Floats, c: Floats, s: Floats) -> None:
    """Tasks of b, of which the last adds what the others gave."""
    pypto.set_vec_tile_shapes(*([1] * (len(x.shape) - 2)), 2, 64)
    y[:] = pypto.exp(x)
    given = pypto.exp(b)
    c[:] = given
    s[:] = pypto.sum(given, -1, True)


@pypto.frontend.jit
def before_a_sum(x: Floats, w: Floats, v: Floats, s: Floats, z: Floats) -> None:
    """Of a part of a row behind the others, tasks wait for each other."""
    pypto.set_vec_tile_shapes(2, 64)
    doubled = x * 2.0
    v[:] = doubled
    s[:] = pypto.sum(doubled, -1, True)
    z[:] = w * 2.0


MERGED = [
    *(
        (beside_one_row, [[rows, 64], [1, 128], [rows, 64], [1, 128], [1, 1]])
        for rows in (154, 156)
    ),
    (beside_one_row, [[9, 20, 64], [1, 1, 128], [9, 20, 64], [1, 1, 128], [1, 1, 1]]),
    (before_a_sum, [[155, 128], [155, 64], [155, 128], [155, 1], [155, 64]]),
]
"""Kernels with so many alike tasks that some are merged over 40 cores."""
CASES = [
    (in_a_loop, [131, 128]),
    (in_parts, [131, 128]),
    (chained, [131, 64]),
    (normalised, [131, 72]),
    (batched, [2, 130, 64]),
    (by_columns, [4, 8 * 66]),
    *((long_columns, [64 * rows, 384]) for rows in (12, 19, 20)),
    pytest.param(long_columns, [64 * 66, 384], marks=pytest.mark.exhaustive),
    *((one_beside_the_other, [rows, 128]) for rows in (8 * 12 + 3, 8 * 30 + 7)),
    (turned, [160, 160]),
    *((normalised, [rows, 72]) for rows in (20, 21, 45)),
]


def all_rows(graph: TileGraph, plan: Callable[[TileGraph], TiledKernel]) -> TiledKernel:
    return plan(graph)


def planned(kernel: Kernel, *shapes: list[int]) -> TiledKernel:
    given = [pypto.tensor(shape, pypto.DT_FP32) for shape in shapes]
    return tiled_kernel.tiled_kernel(kernel.tensor_graphs(*given), "kernel", cores=40)


@pytest.mark.sampled(36)
@pytest.mark.parametrize(("kernel", "shape"), CASES)
def test_a_few_rows_give_the_plan_of_all(
    kernel: Kernel, shape: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = planned(kernel, shape, shape)
    monkeypatch.setattr(tiled_kernel, "with_shared_rows", all_rows)
    assert shared == planned(kernel, shape, shape)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("kernel", "shapes"), MERGED)
def test_tasks_that_are_merged_over_the_cores_are_those_of_all_rows(
    kernel: Kernel, shapes: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = planned(kernel, *shapes)
    monkeypatch.setattr(tiled_kernel, "with_shared_rows", all_rows)
    assert shared == planned(kernel, *shapes)


def test_a_refusal_names_the_shape_of_the_kernel() -> None:
    """And not that of the few rows."""

    @pypto.frontend.jit
    def scaled(x: Floats, c: Floats, y: Floats) -> None:
        pypto.set_vec_tile_shapes(2, 16)
        y[:] = x * c

    with pytest.raises(PlanError, match=r"\[1, 1\] is repeated to \[6, 823\]"):
        planned(scaled, [6, 823], [1, 1], [6, 823])


def test_the_cost_grows_with_distinct_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    cut = tiled_kernel.cut

    def counted(graph: TileGraph) -> TileGraph:
        made = cut(graph)
        counts[-1] += len(made.nodes)
        return made

    monkeypatch.setattr(tiled_kernel, "cut", counted)
    for rest in (0, 1):
        for rows in (4, 6, 20, 4096):
            counts.append(0)
            tiled = planned(chained, *[[rows + rest, 64]] * 2)
            assert len(tiled.bodies[0].tasks) == rows // 2 + rest
        assert counts[-1] == counts[-2] == counts[-3]


@pytest.mark.slow
def test_rows_that_are_joined_are_not_planned_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reduction over rows reads them all; of long columns as many rows as merge are planned."""
    lengths = []
    cut = tiled_kernel.cut
    monkeypatch.setattr(
        tiled_kernel, "cut", lambda graph: lengths.append(graph.tensors[0].shape) or cut(graph)
    )
    planned(by_columns, [132, 8], [132, 8])
    assert lengths == [(132, 8)]
    lengths.clear()
    planned(long_columns, [64 * 66, 384], [64 * 66, 384])
    assert lengths == [(64 * rows, 384) for rows in (3, 20)]


def of_tasks(
    change: Callable[[list[Task], int], Sequence[Task]], row: int
) -> Callable[[TiledKernel], TiledKernel]:
    """The change of a kernel in whose tasks that of a row is changed; the rest's is the first."""

    def changed(kernel: TiledKernel) -> TiledKernel:
        (body,) = kernel.bodies
        return replace(kernel, bodies=(replace(body, tasks=tuple(change([*body.tasks], row + 1))),))

    return changed


def moved(tasks: list[Task], place: int, axis: int) -> Sequence[Task]:
    """The first copy begins an element further."""
    first, *others = tasks[place].accesses
    offset = tuple(x + (k == axis) for k, x in enumerate(first.offset) if isinstance(x, int))
    tasks[place] = replace(tasks[place], accesses=(replace(first, offset=offset), *others))
    return tasks


def of_another_leaf(tasks: list[Task], place: int) -> Sequence[Task]:
    tasks[place] = replace(tasks[place], leaf=tasks[0].leaf)
    return tasks


def left_out(tasks: list[Task], place: int) -> Sequence[Task]:
    return tasks[:place] + tasks[place + 1 :]


def twice(tasks: list[Task], place: int) -> Sequence[Task]:
    return tasks[: place + 1] + tasks[place:]


def earlier(tasks: list[Task], place: int) -> Sequence[Task]:
    tasks.insert(place - 1, tasks.pop(place))
    return tasks


def awaited(tasks: list[Task], place: int) -> Sequence[Task]:
    tasks[place] = replace(tasks[place], successors=(len(tasks) - 1,))
    return tasks


def counted_otherwise(kernel: TiledKernel, row: int) -> TiledKernel:
    """A raw tensor more is made for a row, before all others."""
    first, *others = kernel.raws
    return replace(kernel, raws=(first, ((row * STEP, 0), 1), *others))


def in_the_middle(kernel: TiledKernel) -> TiledKernel:
    """A buffer has a number that was made for the last row but one."""
    row = len(kernel.bodies[0].tasks) - 1 - 2
    number = kernel.raws[0][1] + [tile for tile, _ in kernel.raws[1:]].index((row * STEP, 0))
    leaf, *others = kernel.leaves
    return replace(kernel, leaves=(leaf.in_buffers({leaf.buffers[0]: number}), *others))


def with_temporary(kernel: TiledKernel) -> TiledKernel:
    """A tensor between tasks grows with the rows."""
    (body,) = kernel.bodies
    rows = len(body.tasks) - 1
    held = Temporary(name="of all rows", format=FP32, shape=(rows * STEP + 1, 64))
    return replace(kernel, bodies=(replace(body, temporaries=(held,)),))


STEP: Final = 2
"""The length of a row of tiles of `chained`."""
OF_TASKS: Final = MappingProxyType(
    {
        "is moved along the rows": partial(moved, axis=0),
        "is moved in its row": partial(moved, axis=1),
        "has another leaf": of_another_leaf,
        "is left out": left_out,
        "is there twice": twice,
        "comes before the one before it": earlier,
        "is waited for": awaited,
    }
)
DIFFERENCES: Final[Mapping[str, Callable[[TiledKernel], TiledKernel]]] = MappingProxyType(
    {
        **{
            f"row {row} {name}": of_tasks(change, row)
            for name, change in OF_TASKS.items()
            for row in range(3)
        },
        **{f"row {row} has a number more": partial(counted_otherwise, row=row) for row in (1, 2)},
        "a leaf has a number of the middle row": in_the_middle,
        "a tensor between tasks grows": with_temporary,
    }
)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("difference", DIFFERENCES.values(), ids=DIFFERENCES)
def test_rows_that_differ_are_all_planned(
    difference: Callable[[TiledKernel], TiledKernel],
) -> None:
    whole = [pypto.tensor([131, 64], pypto.DT_FP32)] * 2
    (graph,) = chained.tensor_graphs(*whole)
    lengths = []

    def plan(of: TileGraph) -> TiledKernel:
        made = tiled_kernel.tiled_kernel([of], "kernel", cores=40)
        lengths.append(of.tensors[0].shape[0])
        return made if lengths[-1] == 131 else difference(made)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiled_kernel, "with_shared_rows", all_rows)
        found, expected = row_sharing.with_shared_rows(graph, plan), plan(graph)
    assert found == expected
    assert lengths[0] == 3 * STEP + 1
    assert lengths[-2:] == [131, 131]


def of_rows(graph: TileGraph, rows: int) -> list[TileGraph]:
    """A graph with so many whole tiles along each axis whose rows may be alike, and the rest."""
    found = []
    for axis in range(len(graph.tensors[0].shape)):
        step, length = row_sharing.step_and_length(graph, axis)
        if step:
            found.append(row_sharing.of_length(graph, axis, rows * step + length % step))
    return found


def outcome(graphs: Sequence[TileGraph]) -> TiledKernel | str:
    """The plan, or the reason for which there is none."""
    try:
        return tiled_kernel.tiled_kernel(graphs, "kernel", cores=40)
    except PlanError as error:
        return str(error)


NOT_PLANNED = {"keepdim_false"}
"""Kernels of the dumps with an operation that is refused; test_tiled_kernels has the reasons."""
WITHOUT_ROWS = {"loop_reshaped"}
"""Those whose first body computes nothing; test_planner has the reason of its refusal."""


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", sorted({*NAMES} - WITHOUT_ROWS))
def test_a_kernel_of_the_dumps_has_the_plan_of_all_its_rows(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each axis whose rows may be alike is made 66 tiles long, and a part of a tile if it was."""
    kernel = kernel_of(name)
    tensors = kernel.signature.tensors.values()
    shapes = [[x if isinstance(x, int) and x > 0 else 160 for x in each.shape] for each in tensors]
    given = [pypto.tensor(x, each.dtype) for x, each in zip(shapes, tensors, strict=True)]
    with pypto.options(release="0.2.0", satmode="upstream"):
        try:
            graphs = kernel.tensor_graphs(*given)
            tiled_kernel.tiled_kernel(graphs, name, cores=40)
        except PlanError:
            assert name in NOT_PLANNED
            return
    longer = of_rows(graphs[0], 66)
    shared = [tiled_kernel.tiled_kernel([each], name, cores=40) for each in longer]
    monkeypatch.setattr(tiled_kernel, "with_shared_rows", all_rows)
    assert shared == [tiled_kernel.tiled_kernel([each], name, cores=40) for each in longer]


@pytest.mark.exhaustive
@pytest.mark.parametrize("cases", [listed(LIST), islice(drawn(SEED), 300)], ids=["listed", "drawn"])
def test_kernels_laid_beside_the_wheel_have_the_plan_of_all_their_rows(
    cases: Iterator[Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they are, and each axis whose rows may be alike eight tiles long."""
    compared = 0
    for case in cases:
        of = case.kernel
        file = tmp_path / f"{of.id}.py"
        file.write_text(of.text, encoding="utf-8")
        kernel = runpy.run_path(str(file), run_name=of.id)[of.name]
        given = [pypto.tensor(list(x), getattr(pypto, DTYPES[dtype])) for x, dtype in of.tensors]
        try:
            with pypto.options(release="0.2.0", satmode="upstream"):
                graphs = kernel.tensor_graphs(*given)
        except ValueError:  # refused by the tensor level, or for its control flow
            continue
        plans = []
        for shares in (row_sharing.with_shared_rows, all_rows):
            monkeypatch.setattr(tiled_kernel, "with_shared_rows", shares)
            plans.append([outcome(graphs), *(outcome([x]) for x in of_rows(graphs[0], 8))])
        assert plans[0] == plans[1], of.id
        compared += 1
    assert compared > 180
