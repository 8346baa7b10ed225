"""Kernels cut into tiles, leaves and tasks here, beside what upstream's compiler dumped of them."""

from __future__ import annotations

import json
import re
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.programs.upstream_dumps import DUMPS, NAMES, kernel_of, unpacked

import pypto_cast as pypto
from ascend_kernels.schedule.parts import Body
from ascend_kernels.schedule.planner.leaves.leaf_graph import LeafGraph
from ascend_kernels.schedule.planner.subgraphs import TiledKernel
from ascend_kernels.schedule.planner.tiled_kernel import tiled_kernel
from ascend_kernels.schedule.planner.tiles.tile_graph import PlanError
from pypto_cast.kernel.jit import Kernel

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

REFUSED = {
    "keepdim_false": "RESHAPE at keepdim_false.py:12: a reshape of [16, 1], whose rows are",
}
"""Kernels that are not planned, and the reason that is given."""
LOOPS = {name for name in NAMES if name.startswith("loop_")} | {"offset_data", "open_temporary"}
PLANNED = tuple(name for name in NAMES if name not in REFUSED and name not in LOOPS)
OTHERWISE_NUMBERED = (
    *("cube_root", "logarithm", "reshaped", "rmsnorm_int8_two_tiles", "softmax_ragged", "weighed"),
    *("scattered", "added", "written_rows"),
)
"""Upstream makes tensors for log and scatters that nothing uses, and takes reshapes of tiles, and
temporaries, in the order of hash tables, which shows where there are several."""
COPIES = ("COPY_IN", "COPY_OUT")
AXES = ("op_attr_AXIS", "op_attr_EXPANDDIM", "op_attr_axis")
MODES = (None, "RINT", "ROUND", "FLOOR", "CEIL", "TRUNC", "ODD")


@pytest.fixture(scope="module")
def tiled() -> dict[str, TiledKernel]:
    return {}


def tiled_as(name: str, made: dict[str, TiledKernel]) -> TiledKernel:
    """A kernel of the dumps, cut for the release and the chip that they are of."""
    if name not in made:
        kernel = kernel_of(name)
        shapes = [(each.shape, each.dtype) for each in kernel.signature.tensors.values()]
        given = [pypto.tensor(shape, dtype) for shape, dtype in shapes]
        with pypto.options(release="0.2.0", satmode="upstream"):
            made[name] = tiled_kernel(kernel.tensor_graphs(*given), name, cores=48)
    return made[name]


def dumped_leaves(name: str) -> list[dict[str, Any]]:
    """The leaf functions as upstream first lists them, in the order of their numbers.

    Without views of GM, whose readers say the place, and leaves of reshapes in GM alone.
    """
    with zipfile.ZipFile(DUMPS / f"{name}.zip") as archive:
        files = sorted(each for each in archive.namelist() if "_27_" in each and "LEAF" in each)
        leaves = [json.loads(archive.read(each))["functions"][0] for each in files]
    for leaf in leaves:
        in_gm = {each["magic"] for each in leaf["tensors"] if each["mem_type"]["asis"] == 15}
        leaf["operations"] = [
            each
            for each in leaf["operations"]
            if each["opcode"] != "VIEW" or each["ooperands"][0] not in in_gm
        ]
    return [x for x in leaves if {each["opcode"] for each in x["operations"]} != {"RESHAPE"}]


def dumped_operations(leaf: dict[str, Any]) -> list[tuple[Any, ...]]:
    raw = {each["rawmagic"]: each for each in leaf["rawtensors"]}
    tensors = {each["magic"]: each for each in leaf["tensors"]}
    numbers: dict[int, int] = {}

    def operand(magic: int) -> object:
        tensor = tensors[magic]
        if tensor["mem_type"]["asis"] == 15:
            return "GM"
        number = numbers.setdefault(tensor["rawtensor"], len(numbers))
        return number, raw[tensor["rawtensor"]]["rawshape"], tensor["validshape"]

    found = []
    for each in leaf["operations"]:
        asked = each.get("op_attr") or {}
        found.append(
            (
                each["opcode"],
                [operand(magic) for magic in each["ioperands"]],
                [operand(magic) for magic in each["ooperands"]],
                asked.get("SCALAR", {}).get("value"),
                next((asked[each] for each in AXES if each in asked), -1),
                MODES[asked.get("op_attr_mode", 0)],
                each.get("line", 0) if "site-packages" not in each.get("file", "") else None,
            )
        )
    return found


def planned_operations(leaf: LeafGraph) -> list[tuple[Any, ...]]:
    def operand(given: Any) -> object:
        if given.access is not None:
            return "GM"
        pairs = zip(given.valid_shape, given.shape, strict=True)  # what a task tells is at most all
        return given.buffer, list(given.shape), [a if isinstance(a, int) else b for a, b in pairs]

    return [
        (
            each.opcode,
            [operand(x) for x in each.inputs],
            [operand(x) for x in each.outputs],
            each.scalar,
            each.axis,
            None if each.mode is None else each.mode.name,
            each.line,
        )
        for each in leaf.operations
    ]


@pytest.mark.parametrize("name", PLANNED)
@pytest.mark.sampled(3)
def test_leaves_are_those_of_upstream_operation_by_operation(
    name: str, tiled: dict[str, TiledKernel]
) -> None:
    found = [planned_operations(each.renumbered()) for each in tiled_as(name, tiled).leaves]
    wanted = [dumped_operations(each) for each in dumped_leaves(name)]

    assert [[each[0] for each in leaf] for leaf in found] == [
        [each[0] for each in leaf] for leaf in wanted
    ]
    for leaf, other in zip(found, wanted, strict=True):
        for each, beside in zip(leaf, other, strict=True):
            told = (*each[:3], beside[3] and each[3], *each[4:-1])  # no JSON holds an infinity
            assert told == beside[:-1] or each[:-1] == beside[:-1]
            assert beside[-1] in (each[-1], None, 0)  # some operations of dumps have no line


def copied(body: Body, leaves: Any, parameters: set[str]) -> Counter[tuple[Any, ...]]:
    """Each task by the boxes that it copies, each once: what it spills or reloads left out."""
    tasks: Counter[tuple[Any, ...]] = Counter()
    for task in body.tasks:
        boxes = []
        operations = () if task.leaf is None else leaves[task.leaf].operations
        for each in operations:
            if each.opcode in COPIES:
                (place,) = (x.access for x in (*each.inputs, *each.outputs) if x.buffer is None)
                access = task.accesses[place]
                name = access.tensor if access.tensor in parameters else "a temporary"
                if access.tensor:
                    boxes.append((each.opcode, name, access.offset, access.shape))
        tasks[tuple(sorted(set(boxes)))] += 1
    return tasks


@pytest.mark.parametrize("name", PLANNED)
@pytest.mark.sampled(3)
def test_tasks_copy_what_those_of_upstream_copy(
    name: str, tiled: dict[str, TiledKernel], tmp_path: Path
) -> None:
    schedule = pypto.read_schedule(unpacked(name, tmp_path))
    parameters = {each.name for each in schedule.parameters}
    (wanted,) = schedule.bodies
    found = tiled_as(name, tiled)
    (body,) = found.bodies

    assert copied(body, found.leaves, parameters) == copied(wanted, schedule.leaves, parameters)
    assert len(body.temporaries) == len(wanted.temporaries)
    links = [sorted(len(task.successors) for task in each.tasks) for each in (body, wanted)]
    assert links[0] == links[1]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [name for name in PLANNED if name not in OTHERWISE_NUMBERED])
def test_raw_tensors_have_the_numbers_of_upstream(name: str, tiled: dict[str, TiledKernel]) -> None:
    """Order and addresses of buffers follow from them."""
    for leaf, other in zip(tiled_as(name, tiled).leaves, dumped_leaves(name), strict=True):
        tensors = {each["magic"]: each for each in other["tensors"]}
        wanted = [
            [tensors[magic]["rawtensor"] for magic in (*each["ioperands"], *each["ooperands"])]
            for each in other["operations"]
        ]
        for operation, numbers in zip(leaf.operations, wanted, strict=True):
            operands = (*operation.inputs, *operation.outputs)
            for operand, number in zip(operands, numbers, strict=True):
                assert operand.buffer in (number, None)


def planned(kernel: Kernel, *shapes: list[int]) -> TiledKernel:
    given = [pypto.tensor(shape, pypto.DT_FP32) for shape in shapes]
    with pypto.options(release="0.2.0"):
        return tiled_kernel(kernel.tensor_graphs(*given), "kernel", cores=48)


Matrix = pypto.Tensor[[pypto.DYNAMIC, 64], pypto.DT_FP32]


def test_iterations_share_a_body_with_places_that_go_by_the_index() -> None:
    @pypto.frontend.jit
    def looping(x: Matrix, y: Matrix) -> None:
        pypto.set_vec_tile_shapes(16, 64)
        for index in pypto.loop(0, 3, 1, name="rows", idx_name="index"):
            part = pypto.view(x, [32, 64], [index * 32, 0])
            pypto.assemble(pypto.exp(part) + part, [index * 32, 0], y)

    found = planned(looping, [96, 64], [96, 64])

    (leaf,) = found.leaves
    assert [each.opcode for each in leaf.operations] == ["COPY_IN", "EXP", "ADD", "COPY_OUT"]
    (body,) = found.bodies
    start = "mul", ("symbol", "index"), 32
    assert [task.accesses[1].offset for task in body.tasks] == [(start, 0), (("add", start, 16), 0)]


def test_a_reduction_in_a_loop_copies_its_part_once_more() -> None:
    """Its valid extents are told in another way, so that the two copies are not equal."""

    @pypto.frontend.jit
    def looping(x: Matrix, y: Matrix) -> None:
        pypto.set_vec_tile_shapes(16, 64)
        for index in pypto.loop(0, 2, 1, name="rows", idx_name="index"):
            part = x[index * 32 : (index + 1) * 32, :]
            pypto.assemble(part - pypto.amax(part, dim=-1, keepdim=True), [index * 32, 0], y)

    found = planned(looping, [64, 64], [64, 64])

    (leaf,) = found.leaves
    opcodes = [each.opcode for each in leaf.operations]
    assert " ".join(opcodes) == "COPY_IN ROWMAX_SINGLE EXPAND COPY_IN SUB COPY_OUT"


@pytest.mark.parametrize("name", REFUSED)
def test_a_kernel_that_is_not_planned_is_refused(name: str) -> None:
    with pytest.raises(PlanError, match=re.escape(REFUSED[name])):
        tiled_as(name, {})


def test_what_is_not_planned_is_refused_with_operation_and_line() -> None:
    @pypto.frontend.jit
    def sorted_rows(x: Matrix, y: Matrix) -> None:
        pypto.set_vec_tile_shapes(64, 64)
        pypto.set_vec_tile_shapes(8, 32)
        y[:, 0:8] = pypto.topk(x, 8, -1)[0]

    @pypto.frontend.jit
    def rounded(x: Matrix, y: Matrix) -> None:
        pypto.set_vec_tile_shapes(64, 64)
        y[:] = pypto.cast(pypto.round(pypto.cast(x, pypto.DT_FP16), 2), pypto.DT_FP32)

    @pypto.frontend.jit
    def untiled(x: Matrix, y: Matrix) -> None:
        y[:] = x + 1.0

    @pypto.frontend.jit
    def moved(x: Matrix, y: Matrix) -> None:
        y[:] = x

    @pypto.frontend.jit
    def crossing(x: Matrix, y: Matrix) -> None:
        pypto.set_vec_tile_shapes(16, 64)
        e = pypto.exp(x)
        y[0:40, :] = e[24:64, :] * 2.0

    @pypto.frontend.jit
    def in_place(x: Matrix, y: Matrix) -> None:
        pypto.set_vec_tile_shapes(16, 64)
        y[:] = pypto.exp(y) + x

    @pypto.frontend.jit
    def of_a_column(x: Matrix, y: Matrix) -> None:
        pypto.set_vec_tile_shapes(16, 64)
        y[:] = pypto.expand_exp_dif(x, pypto.amax(x, -1, True))

    @pypto.frontend.jit
    def of_a_row(x: Matrix, y: Matrix) -> None:
        pypto.set_vec_tile_shapes(16, 64)
        y[:] = pypto.expand_exp_dif(x, x[0:1, :])

    @pypto.frontend.jit
    def finite(x: Matrix, y: Matrix) -> None:
        pypto.set_vec_tile_shapes(64, 64)
        y[:] = pypto.where(pypto.isfinite(pypto.exp(x)), x, 1.0)

    @pypto.frontend.jit
    def put_back(x: Matrix, y: Matrix) -> None:
        pypto.set_vec_tile_shapes(16, 64)
        turned = pypto.tensor([64, 64], pypto.DT_FP32)
        turned[0:32, :] = x[32:64, :]
        turned[32:64, :] = x[0:32, :]
        y[:] = turned

    @pypto.frontend.jit
    def unset(x: Matrix, y: Matrix) -> None:
        pypto.set_vec_tile_shapes(16, 64)
        total = pypto.tensor([64, 64], pypto.DT_FP32, "total")
        y[:] = x * pypto.amax(total, -1, True)

    for kernel, message in (
        (finite, "ISFINITE at test_tiled_kernels.py:.* of FP32 is not planned: it needs a cast"),
        (in_place, "test_tiled_kernels.py:.* y is read and written in one run of operations"),
        (of_a_column, "^ROWMAX_SINGLE at .*: a column beside EXPANDEXPDIF at .* is not planned"),
        (of_a_row, r"^EXPANDEXPDIF at .*: \[1, 64\] beside \[64, 64\] is not planned"),
        (sorted_rows, "TOPK at test_tiled_kernels.py:.*: rows of 64 elements that upstream cuts"),
        (rounded, "round at test_tiled_kernels.py:.* tile operations for it that are not planned"),
        (untiled, r"ADDS at test_tiled_kernels.py:.* tile shape \[\] for 2 dimensions"),
        (moved, "assignment at test_tiled_kernels.py:.* a copy of an argument is not planned"),
        (put_back, "^assignment at .*: a tensor is read after it was written to"),
        (unset, "^amax at .*: reads what no operation of the kernel wrote"),
        (crossing, "a part that crosses tiles is not planned"),
    ):
        with pytest.raises(PlanError, match=message):
            planned(kernel, [64, 64], [64, 64])


def test_a_scatter_that_upstream_does_otherwise_is_refused() -> None:
    def scattering(marked: Callable[[pypto.Tensor, pypto.Tensor], pypto.Tensor]) -> Kernel:
        @pypto.frontend.jit
        def scattered(
            x: Matrix,
            index: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_INT32),
            y: Matrix,
        ) -> None:
            pypto.set_vec_tile_shapes(64, 64)
            y[:] = marked(pypto.exp(x), index) * 2.0

        return scattered

    def twice_read(x: pypto.Tensor, at: pypto.Tensor) -> pypto.Tensor:
        return pypto.scatter(x, 1, at, 2.0) + x

    def own_elements(x: pypto.Tensor, at: pypto.Tensor) -> pypto.Tensor:
        return pypto.scatter(x, 1, at, x)

    def own_indices(x: pypto.Tensor, at: pypto.Tensor) -> pypto.Tensor:
        places = at + 1
        marked = pypto.cast(pypto.scatter(places, 1, places, 2), pypto.DT_FP32)
        return x * pypto.amax(marked, -1, True)

    def assembled(x: pypto.Tensor, at: pypto.Tensor) -> pypto.Tensor:
        pypto.set_vec_tile_shapes(8, 64)
        marked = pypto.scatter(x, 1, at, 2.0)
        pypto.set_vec_tile_shapes(16, 64)
        return marked

    def put_together(x: pypto.Tensor, at: pypto.Tensor) -> pypto.Tensor:
        pypto.set_vec_tile_shapes(8, 64)
        x = pypto.abs(x)
        pypto.set_vec_tile_shapes(16, 64)
        return pypto.scatter(x, 1, at, pypto.exp(x))

    def marked_before(x: pypto.Tensor, at: pypto.Tensor) -> pypto.Tensor:
        pypto.set_vec_tile_shapes(8, 64)
        x = pypto.abs(x)
        pypto.set_vec_tile_shapes(16, 64)
        marked = pypto.scatter(x, 1, at, 2.0)
        return pypto.scatter(marked, 1, at, 3.0) + marked

    def joined(x: pypto.Tensor, at: pypto.Tensor) -> pypto.Tensor:
        return pypto.scatter(x, 1, at, 2.0, reduce="add")

    def marked(x: pypto.Tensor, at: pypto.Tensor) -> pypto.Tensor:
        return pypto.scatter(x, 1, at, 2.0)

    for kernel, rows, message in (
        (twice_read, 64, r"SCATTER_ELEMENT \(.*\): upstream writes .* another operation reads"),
        (own_elements, 64, r"SCATTER \(.*\): upstream writes over .*, which it reads as another"),
        (own_indices, 64, r"SCATTER_ELEMENT \(.*\): upstream writes .*, which it reads as another"),
        (assembled, 64, r"SCATTER_ELEMENT \(.*\): upstream leaves its result in its first operand"),
        (put_together, 64, r"SCATTER \(.*\): upstream writes .* another operation reads"),
        (marked_before, 64, r"SCATTER_ELEMENT \(.*\): upstream writes .* another operation reads"),
        (joined, 64, "scatter at .*: reduce='add' is not planned"),
        (marked, 8, r"SCATTER_ELEMENT at .*: indices \[8, 16\] that leave elements of \[64, 64\]"),
    ):
        given = [pypto.tensor([64, 64], pypto.DT_FP32) for _ in range(2)]
        given.insert(1, pypto.tensor([rows, 16], pypto.DT_INT32))
        with pytest.raises(PlanError, match=message):
            scattering(kernel).schedule(*given)


@pytest.mark.parametrize("fmt", ["FP32", "INT32", "INT8"])
def test_the_copy_that_a_refused_scatter_is_told_of_is_planned(fmt: str) -> None:
    dtype = pypto.DataType[f"DT_{fmt}"]
    told, copied = {
        "FP32": (r"x \* 1\.0", lambda x: x * 1.0),
        "INT32": (r"x \* 1", lambda x: x * 1),
        "INT8": (
            "x cast to FP16 and back",
            lambda x: pypto.cast(pypto.cast(x, pypto.DT_FP16), pypto.DT_INT8),
        ),
    }[fmt]

    def scattering(copy: Callable[[pypto.Tensor], pypto.Tensor]) -> Kernel:
        @pypto.frontend.jit
        def scattered(
            x: pypto.Tensor([16, 64], pypto.DT_FP16),
            index: pypto.Tensor([16, 8], pypto.DT_INT32),
            y: pypto.Tensor([16, 64], dtype),
            z: pypto.Tensor([16, 64], dtype),
        ) -> None:
            pypto.set_vec_tile_shapes(16, 64)
            given = pypto.cast(x, dtype)
            y[:] = pypto.scatter(copy(given), 1, index, 2)
            z[:] = given

        return scattered

    given = [
        pypto.tensor(list(shape), of)
        for shape, of in (
            ((16, 64), pypto.DT_FP16),
            ((16, 8), pypto.DT_INT32),
            *[((16, 64), dtype)] * 2,
        )
    ]
    with pytest.raises(PlanError, match=rf"a copy of its own, as {told}$"):
        scattering(lambda x: x).schedule(*given)
    (leaf,) = scattering(copied).schedule(*given).leaves
    assert [each.opcode for each in leaf.operations].count("SCATTER_ELEMENT") == 1


def test_a_scatter_into_an_argument_is_refused_for_what_it_writes() -> None:
    @pypto.frontend.jit
    def scattered(
        x: Matrix, index: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_INT32)
    ) -> None:
        pypto.set_vec_tile_shapes(16, 64)
        pypto.scatter_(x, 1, index, 2.0)

    given = pypto.tensor([16, 64], pypto.DT_FP32), pypto.tensor([16, 8], pypto.DT_INT32)
    with pytest.raises(PlanError, match=r"test_tiled_kernels.py:\d+.*: x is read and written in"):
        scattered.schedule(*given)


def test_a_scatter_lies_over_tiles_that_were_put_together() -> None:
    """Of a number, as upstream's does; with a tensor upstream loses these tiles."""
    rng = np.random.default_rng(34)
    x, elements = rng.standard_normal((2, 32, 64), np.float32)
    index = rng.integers(0, 64, (32, 16), np.int32)
    y = np.zeros_like(x)

    def scattering(mark: Callable[..., pypto.Tensor]) -> Kernel:
        @pypto.frontend.jit
        def scattered(
            x: Matrix,
            index: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_INT32),
            elements: Matrix,
            y: Matrix,
        ) -> None:
            pypto.set_vec_tile_shapes(8, 64)
            given = pypto.abs(x)
            pypto.set_vec_tile_shapes(16, 64)
            y[:] = mark(given, index, elements) * 2.0

        return scattered

    schedule = scattering(
        lambda x, at, _: pypto.scatter(pypto.scatter(x, 1, at, 9.0), 1, at, 5.0)
    ).schedule(x, index, elements, y)
    (leaf,) = schedule.leaves
    for each in leaf.operations:
        if each.opcode == "SCATTER_ELEMENT":
            assert each.inputs[0].buffer == each.outputs[0].buffer
    schedule.run(x, index, elements, y)
    expected = np.abs(x)
    np.put_along_axis(expected, index, np.float32(5), 1)
    np.testing.assert_array_equal(y.view(np.uint32), (expected * 2).view(np.uint32))
    for mark in (
        lambda x, at, elements: pypto.scatter(x, 1, at, elements),
        lambda x, at, elements: pypto.scatter(pypto.scatter(x, 1, at, 9.0), 1, at, elements),
    ):
        with pytest.raises(PlanError, match=r"^SCATTER \(.*without the elements .* as x \* 1\.0$"):
            scattering(mark).schedule(x, index, elements, y)


@pytest.mark.parametrize("tile", [(8, 32), (32, 64)])
def test_a_view_given_back_and_read_under_another_tile_shape_is_simplified(
    tile: tuple[int, int],
) -> None:
    @pypto.frontend.jit
    def given_and_read(x: Matrix, y: Matrix) -> None:
        pypto.set_vec_tile_shapes(*tile)
        part = x[0:32, :]
        pypto.set_vec_tile_shapes(32, 64)
        y[0:32, :] = part
        y[32:64, :] = part * 2.0

    given = [pypto.tensor([rows, 64], pypto.DT_FP32) for rows in (32, 64)]
    said = given_and_read.schedule(*given).simplified
    if tile == (32, 64):
        assert not said
    else:
        (text,) = said
        assert re.match(
            r"MULS at .*: reads what VIEW at .* gives to an output, under another", text
        )


def test_an_operation_replaces_all_its_parts_and_nothing_before() -> None:
    """Of isfinite two chains of operations are recorded, and one of them gives its result."""

    @pypto.frontend.jit
    def finite(x: Matrix, y: Matrix) -> None:
        pypto.set_vec_tile_shapes(64, 64)
        y[:] = pypto.where(pypto.isfinite(pypto.abs(x) + x), x, 1.0)

    (graph,) = finite.tensor_graphs(*[pypto.tensor([64, 64], pypto.DT_FP32)] * 2)
    computed = [node.opcode for node in graph.nodes if node.opcode not in ("VIEW", "ASSEMBLE")]
    assert computed == ["ABS", "ADD", "ISFINITE", "WHERE_TS"]
    assert len({node.number for node in graph.nodes}) == len(graph.nodes)


Narrow = pypto.Tensor[[...], pypto.DT_BF16]


def test_a_task_reads_back_its_part_of_tiles_that_several_wrote() -> None:
    """The second tile shape cuts the tiles of the first; of BF16 AutoCast's cast is between."""

    @pypto.frontend.jit
    def retiled(x: Narrow, column: Narrow, y: Narrow) -> None:
        pypto.set_vec_tile_shapes(16, 160)
        v = pypto.cast(pypto.cast(x, pypto.DT_FP32), pypto.DT_BF16)
        v = pypto.cast(pypto.cast(v, pypto.DT_FP32), pypto.DT_BF16)
        pypto.set_vec_tile_shapes(4, 128)
        y[:] = (v + column) * 1.5

    rng = np.random.default_rng(161)
    x, column, y = (
        rng.standard_normal(shape).astype(ml_dtypes.bfloat16)
        for shape in ((32, 480), (32, 1), (32, 480))
    )
    with pypto.options(release="0.2.0"):
        schedule = retiled.schedule(x, column, y)
        expected = np.zeros_like(y)
        retiled(x, column, expected)
    opcodes = [[x.opcode for x in leaf.operations] for leaf in schedule.leaves]
    assert any("COPY_IN" in each[each.index("COPY_OUT") :] for each in opcodes)
    schedule.run(x, column, y)
    np.testing.assert_array_equal(y.view(np.uint16), expected.view(np.uint16))
