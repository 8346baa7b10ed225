"""Kernels in each other, in threads and tasks; loops and functions."""

from __future__ import annotations

import asyncio
import gc
import re
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.numbers.cast_arrays import converted

import pypto_cast as pypto
from pypto_cast.options.context import Options, current
from pypto_cast.recording.steps import origin_of
from pypto_cast.testing import assert_bits_equal, special_values

ANY = pypto.Tensor[[], pypto.DT_FP32]

pytestmark = pytest.mark.filterwarnings("ignore::pypto_cast.TileShapeWarning")


@pytest.fixture(autouse=True)
def _clean(pypto_sim: object) -> None:
    """Default options and no tile shape."""


# --- Kernels in kernels, threads and tasks -------------------------------------------------------


@pypto.jit
def halves(x: ANY, out: pypto.Tensor[[], pypto.DT_FP16]) -> None:
    pypto.set_vec_tile_shapes(16)
    out[:] = pypto.cast(x, pypto.DT_FP16)


def test_a_kernel_in_a_kernel() -> None:
    table = np.zeros(8, np.float16)

    @pypto.jit
    def outer(x: ANY, out: ANY, fails: bool) -> None:
        pypto.set_vec_tile_shapes(32)
        half = pypto.tensor([8], pypto.DT_FP16)
        halves(x, half)
        halves(x, table)
        assert pypto.get_vec_tile_shapes() == [32]
        out[:] = pypto.cast(half, pypto.DT_FP32)
        if fails:
            raise ZeroDivisionError

    x, out = np.float32([0.1] * 8), np.zeros(8, np.float32)
    with pytest.raises(ZeroDivisionError):
        outer(x, out, fails=True)
    assert not out.any()
    assert not table.any()
    outer(x, out, fails=False)
    assert (out == np.float16(0.1)).all()
    assert (table == np.float16(0.1)).all()
    assert [p.tile_shape for p in outer.plan(x, out, fails=False)] == [(8,), (8,), (8,)]


def test_an_inner_kernel_that_raises_is_undone_alone() -> None:
    @pypto.jit
    def inner(x: ANY, out: ANY) -> None:
        out[0:4] = x[0:4]
        raise ZeroDivisionError

    @pypto.jit
    def outer(x: ANY, out: ANY) -> None:
        out[6:8] = x[6:8]
        with pytest.raises(ZeroDivisionError):
            inner(x, out)

    x, out = np.ones(8, np.float32), np.zeros(8, np.float32)
    outer(x, out)
    assert out.tolist() == [0, 0, 0, 0, 0, 0, 1, 1]


def test_an_inner_kernel_is_undone_in_every_tensor_and_interval() -> None:
    """Parts and whole tensors, open and exact ones, given and declared, and what wrote them."""

    @pypto.jit
    def innermost(x: ANY, out: ANY, held: ANY) -> None:
        held[0:2] = x[0:2] / 7.0
        out[2:6] = x[2:6]
        out[:] = x / 5.0

    @pypto.jit
    def inner(x: ANY, out: ANY, held: ANY, fails: bool) -> None:
        out[0:3] = x[0:3]
        held[2:4] = x[2:4]
        innermost(x, out, held)
        out[1:2] = x[1:2] / 9.0
        if fails:
            raise ZeroDivisionError

    @pypto.jit
    def outer(x: ANY, out: ANY, fails: bool) -> None:
        pypto.set_vec_tile_shapes(8)
        held = pypto.Tensor([8], pypto.DT_FP32)
        held[:] = x
        held[1:5] = x[1:5] / 3.0
        out[0:8] = x
        out[4:8] = held[2:6]
        if fails:
            with pytest.raises(ZeroDivisionError):
                inner(x, out, held, fails)
        out[2:3] = held[1:2]

    x = np.linspace(1, 2, 8, dtype=np.float32)
    wanted, found = (outer.certainty(x, np.zeros(8, np.float32), fails) for fails in (False, True))
    for each in ("values", "low", "high", "certain"):
        np.testing.assert_array_equal(getattr(found, each)[0], getattr(wanted, each)[0])
    places = [
        [(p.offset, p.extent, str(p.record)) for p in origin_of(one.values[0])]
        for one in (wanted, found)
    ]
    assert places[0] == places[1]


def test_plain_functions_may_be_shared() -> None:
    @pypto.frontend.function
    def half(x: pypto.Tensor) -> pypto.Tensor:
        return pypto.cast(x, pypto.DT_FP16)

    @pypto.jit
    def kernel(x: ANY, out: pypto.Tensor[[], pypto.DT_FP16]) -> None:
        pypto.set_vec_tile_shapes(16)
        out[:] = half(x)

    out = np.zeros(4, np.float16)
    kernel(np.ones(4, np.float32), out)
    assert out.all()


def tiled(x: ANY, out: pypto.Tensor[[], pypto.DT_FP16], tile: int) -> None:
    pypto.set_vec_tile_shapes(tile)
    for index in pypto.loop(4):
        start = index * 1024
        part = x[start : start + 1024]
        assert pypto.get_vec_tile_shapes() == [tile]
        out[start : start + 1024] = pypto.cast(part, pypto.DT_FP16)


def test_threads_do_not_see_each_others_tiles() -> None:
    kernel = pypto.jit(tiled)
    x = np.resize(special_values(pypto.DT_FP32), 4096)
    outs = [np.zeros(4096, np.float16) for _ in range(4)]
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(10):
                kernel(x, outs[number], 16 << number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for out in outs:
        assert_bits_equal(out, converted(x, pypto.DT_FP16))


def test_two_threads_may_write_parts_of_one_output() -> None:
    """Only what a kernel wrote is copied back."""
    both = np.zeros((2, 4096), np.float16)
    started = threading.Barrier(2)

    @pypto.jit
    def half_of(x: ANY, out: pypto.Tensor[[], pypto.DT_FP16], row: int) -> None:
        pypto.set_vec_tile_shapes(1, 4096)
        out[row : row + 1, :] = pypto.cast(x, pypto.DT_FP16)
        started.wait(10)

    x = np.ones((1, 4096), np.float32)
    threads = [threading.Thread(target=half_of, args=(x, both, row)) for row in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert both.all()


def test_tasks_do_not_see_each_others_tiles() -> None:
    kernel = pypto.jit(tiled)
    x = np.ones(4096, np.float32)

    async def task(tile: int) -> list[int]:
        pypto.set_vec_tile_shapes(tile)
        for _ in range(3):
            await asyncio.sleep(0)
            kernel(x, np.zeros(4096, np.float16), tile * 2)
            assert pypto.get_vec_tile_shapes() == [tile]
        return pypto.get_vec_tile_shapes()

    async def main() -> list[list[int]]:
        return list(await asyncio.gather(task(16), task(32)))

    assert asyncio.run(main()) == [[16], [32]]
    assert pypto.get_vec_tile_shapes() == []


def test_nested_options_around_and_inside_a_kernel() -> None:
    @pypto.jit
    def kernel(x: ANY, out: pypto.Tensor[[], pypto.DT_FP16]) -> None:
        with pypto.options(vec_tile_shapes=[16]):
            out[0:32] = pypto.cast(x[0:32], pypto.DT_FP16)
        out[32:64] = pypto.cast(x[32:64], pypto.DT_FP16)

    x, out = np.ones(64, np.float32), np.zeros(64, np.float16)
    with pypto.options("outer", vec_tile_shapes=[32], pass_options={"enable_slice": True}):
        kernel(x, out)
        assert [p.tile_shape for p in kernel.plan(x, out)] == [(16,), (32,)]
    assert out.all()
    with pytest.raises(TypeError, match="upstream's options are dicts, not 3"):
        pypto.options(pass_options=3).__enter__()


# --- loop and function ---------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [(5,), (2, 5), (1, 8, 3), (0,), (3, 3)], ids=str)
def test_loop_counts_like_range(bounds: tuple[int, ...]) -> None:
    indices = list(pypto.loop(*bounds, name="L", idx_name="i", parallel=True))
    assert indices == list(range(*bounds))
    assert [pypto.is_loop_begin(i) for i in indices] == [i == indices[0] for i in indices]
    assert [pypto.is_loop_end(i) for i in indices] == [i == indices[-1] for i in indices]


def test_loop_unroll_takes_long_stretches_first() -> None:
    assert list(pypto.loop_unroll(11, unroll_list=[4, 2])) == [(0, 4), (4, 4), (8, 2), (10, 1)]
    assert list(pypto.loop_unroll(3)) == [(0, 1), (1, 1), (2, 1)]
    for wrong in ([0], [4, 0], [-1, 2], [True, 4], [2, 1.0]):
        with pytest.raises(ValueError, match=re.escape(f"holds positive ints, not {wrong}")):
            pypto.loop_unroll(3, unroll_list=wrong)
        with pytest.raises(ValueError, match=re.escape(f"holds positive ints, not {wrong}")):
            pypto.loop(3, unroll_list=wrong)


@pytest.mark.parametrize(("new_ir", "lengths"), [(None, [4, 2]), (True, [4, 2]), (False, [2, 1])])
def test_lengths_of_stretches_are_indices_in_upstreams_present_compiler(
    new_ir: bool | None, lengths: list[int]
) -> None:
    found: list[tuple[int, int]] = []

    @pypto.jit(new_ir=new_ir)
    def kernel(x: ANY) -> None:
        found.extend(pypto.loop_unroll(0, 6, 2, unroll_list=[2], parallel=True))

    kernel(np.zeros(6, np.float32))
    assert found == [(0, lengths[0]), (4, lengths[1])]


@pytest.mark.parametrize("bounds", [(), (1, 2, 3, 4), (1.5,), ("3",)], ids=str)
def test_loops_have_int_bounds(bounds: Any) -> None:
    with pytest.raises(TypeError, match="loop takes"):
        pypto.loop(*bounds)
    with pytest.raises(ValueError, match="step of a loop is positive"):
        pypto.loop(0, 4, -1)
    with pytest.raises(TypeError, match=r"index of a pypto\.loop, not 3"):
        pypto.is_loop_begin(3)
    with pytest.raises(TypeError):
        pypto.loop(4, speed="fast")


def test_a_loop_that_breaks_restores_the_tile_shape() -> None:
    pypto.set_vec_tile_shapes(7)
    for _ in pypto.loop(4):
        pypto.set_vec_tile_shapes(8)
        break
    assert pypto.get_vec_tile_shapes() == [7]

    @pypto.jit
    def kernel(x: ANY, out: pypto.Tensor[[], pypto.DT_FP16]) -> None:
        for _ in pypto.loop(4, name="BROKEN"):
            break
        out[:] = pypto.cast(x, pypto.DT_FP16)

    program = kernel.program(pypto.tensor([8]), pypto.tensor([8], pypto.DT_FP16))
    assert program.casts[0].loops == ()


def plain(bounds: int) -> Iterator[object]:
    return pypto.loop(bounds)


def unrolled(bounds: int) -> Iterator[object]:
    return pypto.loop_unroll(bounds, unroll_list=[2])


either_loop = pytest.mark.parametrize("loop", [plain, unrolled])


@pytest.mark.slow
@either_loop
def test_a_loop_that_a_kept_exception_holds_changes_no_options_later(loop: Any) -> None:
    def fail() -> None:
        indices = loop(4)
        for _ in indices:
            pypto.set_vec_tile_shapes(8)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as kept:
        fail()
    pypto.set_vec_tile_shapes(32)
    del kept
    gc.collect()
    assert pypto.get_vec_tile_shapes() == [32]


@pytest.mark.slow
@either_loop
def test_a_loop_that_outlives_options_does_not_bring_them_back(loop: Any) -> None:
    with pypto.options(strict=True):
        indices = loop(4)
        next(indices)
        pypto.set_vec_tile_shapes(8)
    before = current()
    assert before == Options()
    del indices
    gc.collect()
    assert current() is before


@either_loop
def test_a_loop_that_is_given_up_restores_the_tile_shape(loop: Any) -> None:
    pypto.set_vec_tile_shapes(7)
    indices = loop(4)
    next(indices)
    pypto.set_vec_tile_shapes(8)
    del indices
    assert pypto.get_vec_tile_shapes() == [7]


def test_a_loop_that_is_left_late_takes_no_other_out_of_the_listing() -> None:
    @pypto.jit
    def kernel(x: ANY, out: pypto.Tensor[[], pypto.DT_FP16]) -> None:
        late = pypto.loop(4, name="LATE")
        for step in pypto.loop(2, name="OUTER"):
            if step == 0:
                next(late)
                continue
            for _ in pypto.loop(1, name="OWN"):
                del late
                out[:] = pypto.cast(x, pypto.DT_FP16)

    program = kernel.program(pypto.tensor([8]), pypto.tensor([8], pypto.DT_FP16))
    assert program.casts[0].loops == ("OUTER idx=1", "OWN idx=0")


def test_scalars_of_a_loop_calculate_as_ints_and_keep_min() -> None:
    (index,) = pypto.loop(7, 8)
    for value, wanted in [
        (index + 1, 8),
        (10 - index, 3),
        (2 * index, 14),
        (index // 2, 3),
        (index / 2, 3),
        (-index / 2, -3),
        (15 / index, 2),
        (index % 4, 3),
        (20 % index, 6),
        (20 // index, 2),
        (-index, -7),
        (+index, 7),
    ]:
        assert value == wanted
        assert value.min(5) == min(wanted, 5)
        assert value.max(5) == max(wanted, 5)
        assert (value.concrete(), value.is_concrete()) == (wanted, True)


def test_a_view_that_takes_over_values_leaves_what_it_was_taken_from() -> None:
    @pypto.jit
    def kernel(x: ANY, out: ANY) -> None:
        pypto.set_vec_tile_shapes(8)
        part = x[0:4]
        part.move(part * 2.0)
        out[0:4] = part
        out[4:8] = x[0:4]

    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    kernel(x, out)
    np.testing.assert_array_equal(out, [0, 2, 4, 6, 0, 1, 2, 3])


def test_a_listing_shows_the_operations_around_the_casts() -> None:
    @pypto.jit
    def kernel(x: ANY, out: pypto.Tensor[[8], pypto.DT_FP16]) -> None:
        pypto.set_vec_tile_shapes(16)
        for _ in pypto.loop(2):
            scaled = pypto.sigmoid(x) / 3.0
        out[:] = pypto.cast(scaled, pypto.DT_FP16)

    program = kernel.program(pypto.tensor([8], pypto.DT_FP32), pypto.tensor([8], pypto.DT_FP16))
    head, *lines = str(program).splitlines()
    assert head == "kernel kernel: 1 casts, 1 different programs, 4 operations"
    steps = [line.split(" at ")[0] for line in lines if not line.startswith("    ")]
    assert steps == [
        "  2 x sigmoid DT_FP32 [8]",
        "  2 x div DT_FP32 [8]",
        "  cast FP32 -> FP16",
    ]
    assert [type(step).__name__ for step in program.steps].count("OperationStep") == 4


def test_importing_all_of_it_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x, out = np.ones((32, 64), np.float32), np.zeros((32, 64), ml_dtypes.bfloat16)

        @pypto.jit
        def kernel(x: ANY, out: pypto.Tensor[[], pypto.DT_BF16]) -> None:
            pypto.set_vec_tile_shapes(16, 64)
            out[:] = pypto.cast(x, pypto.DT_BF16)

        kernel(x, out)
    assert out.astype(np.float32).all()
