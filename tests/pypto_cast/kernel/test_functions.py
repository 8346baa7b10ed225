"""pypto.function: bodies over tensors with values, and over declared ones that get them later."""

from __future__ import annotations

import contextvars
import inspect
import operator
import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import pypto_cast as pypto
from pypto_cast import experimental, operations
from pypto_cast.recording.steps import origin_of
from pypto_cast.recording.tally import counting
from pypto_cast.testing import assert_bits_equal

Array = npt.NDArray[Any]
Body = Callable[..., None]
run = pypto.runtime._device_run_once_data_from_host

pytestmark = pytest.mark.filterwarnings("ignore::pypto_cast.TileShapeWarning")


@pytest.fixture(autouse=True)
def _clean(pypto_sim: object) -> None:
    """Default options and no tile shape."""


def declared(*arrays: Array) -> list[pypto.Tensor]:
    """Tensors without values like those of the arrays."""
    given = map(pypto.from_numpy, arrays)
    return [pypto.tensor(x.shape, x.dtype, f"t{n}") for n, x in enumerate(given)]


def built(body: Body, *arrays: Array) -> list[pypto.Tensor]:
    """Builds a function over declared tensors, and returns them."""
    tensors = declared(*arrays)
    with pypto.function("built", *tensors):
        body(*tensors)
    return tensors


def normal(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def halve_and_fail(x: pypto.Tensor, out: pypto.Tensor) -> None:
    out[:] = pypto.cast(x, pypto.DT_FP16)
    raise ZeroDivisionError


def test_a_function_is_a_kernel_over_tensors() -> None:
    x, y = np.ones(8, np.float32), np.zeros(8, np.float16)
    a, b = pypto.from_numpy(x, "a"), pypto.from_numpy(y, "b")
    with pypto.function("main", a, b):
        pypto.set_vec_tile_shapes(16)
        b[:] = pypto.cast(a, pypto.DT_FP16)
        assert not y.any()
    assert y.all()
    assert pypto.get_vec_tile_shapes() == [16]
    y[:] = 0
    with pytest.raises(ZeroDivisionError), pypto.function("main", a, b):
        halve_and_fail(a, b)
    assert not y.any()
    with (
        pytest.raises(TypeError, match="takes tensors with data"),
        pypto.function("f", a, pypto.tensor([8])),
    ):
        pass
    with pypto.function("f", a, 3, None, b) as recorder:  # upstream ignores what is no tensor
        for _ in recorder:
            b[:] = pypto.cast(a, pypto.DT_FP16)
    assert y.all()
    y[:] = 0
    nested = pypto.function("main", a)
    with (
        pytest.raises(RuntimeError, match="inside a kernel"),
        nested,
        pypto.function("inner", b),
    ):
        pass


def largest_by_row(x: pypto.Tensor, y: pypto.Tensor, out: pypto.Tensor) -> None:
    """Exact operations in a loop, on views that reach over the edge."""
    pypto.set_vec_tile_shapes(8, 16)
    rows = pypto.symbolic_scalar(x.shape[0])
    for index in pypto.loop(3, name="rows", idx_name="r"):
        offset = index * 4
        valid = [(rows - offset).min(4), 16]
        part = pypto.view(x, [4, 16], [offset, 0], valid_shape=valid)
        part.move(pypto.maximum(part, pypto.view(y, [4, 16], [offset, 0], valid_shape=valid)))
        pypto.assemble(pypto.cast(part, pypto.DT_FP16), [offset, 0], out)


def test_the_body_is_carried_out_on_the_values_that_come() -> None:
    out = np.zeros((10, 16), np.float16)
    tensors = built(largest_by_row, normal(10, 16), normal(10, 16), out)
    assert not any(tensor.has_data for tensor in tensors)
    for seed in (1, 3):
        x, y = normal(10, 16, seed=seed), normal(10, 16, seed=seed + 1)
        x[0, :3] = -0.0, np.inf, 65519.0
        before = x.copy(), y.copy()
        run(*map(pypto.from_numpy, (x, y, out)))
        assert_bits_equal(out, np.maximum(*before).astype(np.float16))
        assert_bits_equal(x, before[0])
        assert_bits_equal(y, before[1])


def test_rows_found_by_index_are_those_of_the_index_that_comes() -> None:
    def body(table: pypto.Tensor, order: pypto.Tensor, kept: pypto.Tensor) -> None:
        pypto.set_vec_tile_shapes(8, 8)
        rows = pypto.tensor([2, 4], pypto.DT_INT32)
        offsets = [0, 0]
        rows.assemble(pypto.view(order, [2, 2], offsets), offsets)
        offsets[1] = 2
        rows.assemble(pypto.view(order, [2, 2], offsets), offsets)
        found, at = pypto.topk(table, 2, -1)
        kept[0:4] = pypto.gather(found, 0, pypto.reshape(rows, [4, 2]))
        at = pypto.cast(at, pypto.DT_FP32)
        kept[4:8] = pypto.concat([at[0:2], at[2:4]], 0)

    table, order = normal(4, 8), np.zeros((2, 4), np.int32)
    built(body, table, order, normal(8, 2))
    for seed in (1, 2):
        table, kept = normal(4, 8, seed=seed), normal(8, 2, seed=9)
        order = np.random.default_rng(seed).integers(0, 4, (2, 4), np.int32)
        run(*map(pypto.from_numpy, (table, order, kept)))
        places = np.argsort(-table, axis=1, kind="stable")[:, :2]
        values = np.take_along_axis(table, places, axis=1)
        wanted = np.take_along_axis(values, order.reshape(4, 2), axis=0)
        assert_bits_equal(kept, np.concatenate([wanted, places.astype(np.float32)]))


def test_an_array_that_is_added_to_is_added_to_at_every_run() -> None:
    def body(x: pypto.Tensor, total: pypto.Tensor) -> None:
        pypto.set_vec_tile_shapes(16)
        total[:] = total + x

    x, total = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    built(body, x, total)
    for count in (1, 2, 3):
        run(pypto.from_numpy(x), pypto.from_numpy(total))
        assert_bits_equal(total, x * np.float32(count))


def test_a_declared_tensor_has_its_first_shape_again_at_every_run() -> None:
    def body(x: pypto.Tensor, out: pypto.Tensor) -> None:
        pypto.set_vec_tile_shapes(16)
        held = pypto.tensor([8], pypto.DT_FP32)
        held[0:8] = x[0:8]
        out[0:8] = held * 2.0
        held.move(x[4:16])
        out[8:20] = held * 4.0

    x, out = normal(16), np.zeros(20, np.float32)
    built(body, x, out)
    for seed in (1, 2):
        x = normal(16, seed=seed)
        run(pypto.from_numpy(x), pypto.from_numpy(out))
        assert_bits_equal(out, np.concatenate([x[:8] * np.float32(2), x[4:] * np.float32(4)]))


ANY = pypto.Tensor[[], pypto.DT_FP32]


@pypto.jit
def inner(x: ANY, out: ANY) -> None:
    pypto.set_vec_tile_shapes(4, 8)
    out[:] = pypto.exp2(x)


def nested(x: pypto.Tensor, out: pypto.Tensor) -> None:
    between = pypto.tensor(x.shape, pypto.DT_FP32)
    inner(x, between)
    pypto.set_vec_tile_shapes(4, 8)
    out[:] = between * 2.0


def softmax(x: pypto.Tensor, out: pypto.Tensor) -> None:
    pypto.set_vec_tile_shapes(4, 4)
    out.move(x.softmax(-1))


def total(x: pypto.Tensor, out: pypto.Tensor) -> None:
    for _ in pypto.loop(1):
        pypto.set_vec_tile_shapes(8, 2)
        out[:] = x.sum(-1, True) + x


def hidden_in_fp32(x: pypto.Tensor, out: pypto.Tensor) -> None:
    """A BF16 result keeps its FP32 value to the end of a copy of the loop's body."""
    pypto.set_vec_tile_shapes(8, 8)
    running = x * 1.5
    for _ in pypto.loop(5, unroll_list=[2]):
        running = running * x + x
    out[:] = running


@pytest.mark.parametrize(
    ("body", "dtype"),
    [
        (nested, np.float32),
        (softmax, np.float32),
        (softmax, np.float16),
        (total, np.float32),
        (hidden_in_fp32, ml_dtypes.bfloat16),
    ],
)
def test_the_bits_are_those_of_a_function_over_values(body: Body, dtype: Any) -> None:
    x, out, wanted = normal(8, 8, dtype=dtype), normal(8, 8, dtype=dtype), normal(8, 8, dtype=dtype)
    given = [pypto.from_numpy(x), pypto.from_numpy(wanted)]
    with pypto.function("at once", *given):
        body(*given)
    built(body, x, out)
    pypto.set_vec_tile_shapes(1, 1)
    with pypto.options(auto_cast="every op"):
        run(pypto.from_numpy(x), pypto.from_numpy(out))
    assert pypto.get_vec_tile_shapes() == [1, 1]
    assert_bits_equal(out, wanted)


def test_values_lie_in_the_intervals_that_hold_the_true_ones() -> None:
    x, out, plain = normal(8, 8) * np.float32(9), normal(8, 8), normal(8, 8)
    x[0] = [0, -0.0, 1, np.inf, -np.inf, np.nan, -150, 128]

    def body(x: pypto.Tensor, out: pypto.Tensor) -> None:
        pypto.set_vec_tile_shapes(4, 8)
        out[:] = pypto.exp2(x)

    built(body, x, out)
    run(pypto.from_numpy(x), pypto.from_numpy(out))
    inner(x, plain)
    assert_bits_equal(out, plain)
    (found,) = inner.certainty(x, plain).outputs
    with np.errstate(over="ignore", under="ignore"):
        true = np.exp2(x.astype(np.float64)).astype(np.float32)
    assert found.contains(true).all()
    assert found.contains(out).all()


# --- Where it stands -----------------------------------------------------------------------------


def exponentials(x: pypto.Tensor, out: pypto.Tensor) -> None:
    pypto.set_vec_tile_shapes(16)
    out[:] = pypto.exp(x)


def test_results_come_from_the_lines_of_the_body() -> None:
    x, out = normal(16), np.zeros(16, np.float32)
    built(exponentials, x, out)
    run(pypto.from_numpy(x), pypto.from_numpy(out))
    (patch,) = origin_of(out)
    line = exponentials.__code__.co_firstlineno + 2
    assert (patch.record.file, patch.record.line) == (__file__, line)
    assert patch.record.kernel == "built"


def test_warnings_stand_at_the_lines_of_the_body() -> None:
    def body(x: pypto.Tensor, out: pypto.Tensor) -> None:
        out[:] = pypto.cast(x, pypto.DT_FP16)

    x, out = normal(16), np.zeros(16, np.float16)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        built(body, x, out)
        run(pypto.from_numpy(x), pypto.from_numpy(out))
    places = {(each.filename, each.lineno) for each in caught}
    assert places == {(__file__, body.__code__.co_firstlineno + 1)}


def test_what_ran_without_values_is_not_counted_and_what_is_open_is() -> None:
    x, out = normal(16), np.zeros(16, np.float32)
    with counting() as tally:
        built(exponentials, x, out)
    assert not tally.runs
    with counting() as tally:
        run(pypto.from_numpy(x), pypto.from_numpy(out))
    given = pypto.from_numpy(x), pypto.from_numpy(out)
    with counting() as at_once, pypto.function("built", *given):
        exponentials(*given)
    for found in (tally, at_once):
        assert (found.runs["built"], found.undecided["built"], found.certain["built"]) == (1, 16, 0)


def test_every_operation_is_kept() -> None:
    tensor_methods = ("view", "assemble", "move", "__getitem__", "__setitem__")
    every = {name: getattr(operations, name) for name in operations.__all__}
    every |= {name: getattr(pypto.Tensor, name) for name in tensor_methods}
    every |= {name: getattr(experimental, name) for name in experimental.__all__}
    every |= {"cast": pypto.cast, "view of bits": pypto.view, "kernel": pypto.Kernel.__call__}
    for name in ("get_operation_options", "set_operation_options"):
        del every[name]
    assert [name for name, each in every.items() if inspect.unwrap(each) is each] == []


# --- Bad input -----------------------------------------------------------------------------------


def doubled(x: pypto.Tensor, out: pypto.Tensor) -> None:
    pypto.set_vec_tile_shapes(16)
    out[:] = x * 2.0


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ((normal(16),), TypeError, r"over DT_FP32 \[16\], DT_FP32 \[16\]; 1 tensors are given"),
        ((normal(16),) * 3, TypeError, "3 tensors are given"),
        ((normal(16), normal(8)), ValueError, r"argument 1 has shape \[8\]: declare"),
        ((normal(4, 5), normal(16)), ValueError, r"argument 0 has shape \[4, 5\]"),
        ((normal(4, 8)[:, ::2], normal(16)), ValueError, r"argument 0 has shape \[4, 4\]"),
        ((normal(16, dtype=np.float16), normal(16)), TypeError, "argument 0 is DT_FP16: cast it"),
    ],
)
def test_tensors_other_than_declared_are_refused(
    given: tuple[Array, ...], error: type[Exception], text: str
) -> None:
    built(doubled, normal(16), normal(16))
    before = [x.copy() for x in given]
    with pytest.raises(error, match=text):
        run(*map(pypto.from_numpy, given))
    for x, kept in zip(given, before, strict=True):
        assert_bits_equal(x, kept)


def test_what_holds_no_values_is_refused() -> None:
    x, out = built(doubled, normal(16), normal(16))
    with pytest.raises(TypeError, match=r"argument 0 is Tensor\(.*give pypto.from_torch\(x\)"):
        run(x, out)
    with pytest.raises(TypeError, match="argument 1 is array"):
        run(pypto.from_numpy(normal(16)), normal(16))


def test_without_a_function_there_is_nothing_to_run() -> None:
    x, out = pypto.from_numpy(normal(16)), pypto.from_numpy(np.zeros(16, np.float32))
    message = "no pypto.function over declared tensors was built here before"
    with pytest.raises(RuntimeError, match=message):
        contextvars.Context().run(run, x, out)
    built(doubled, normal(16), normal(16))
    with pytest.raises(ZeroDivisionError):
        built(halve_and_fail, normal(16), normal(16, dtype=np.float16))
    with pytest.raises(RuntimeError, match=message):
        run(x, out)
    built(doubled, normal(16), normal(16))
    with pypto.function("at once", x, out):
        doubled(x, out)
    with pytest.raises(RuntimeError, match="their arrays have the results already"):
        run(x, out)
    built(doubled, normal(16), normal(16))
    with pytest.raises(RuntimeError, match="outside kernels"), pypto.function("other", x, out):
        run(x, out)


def test_a_branch_on_values_asks_for_a_function_over_values() -> None:
    def body(order: pypto.Tensor, x: pypto.Tensor, out: pypto.Tensor) -> None:
        pypto.set_vec_tile_shapes(16)
        if order[0] > 0:
            out[:] = x * 2.0

    arrays = np.ones(1, np.int32), normal(16), np.zeros(16, np.float32)
    text = r"element \[0\] of .* before it had a value.*pypto.function over tensors with values"
    built(body, *arrays)
    given = [pypto.from_numpy(x) for x in arrays]
    with pytest.raises(ValueError, match=text):
        run(*given)
    assert not arrays[2].any()
    with pypto.function("at once", *given):
        body(*given)
    assert_bits_equal(arrays[2], arrays[1] * np.float32(2))


def test_a_dimension_that_was_not_known_is_refused() -> None:
    tensors = [pypto.tensor([-1], pypto.DT_FP32) for _ in range(2)]
    with pypto.function("open", *tensors):
        for _ in pypto.loop(tensors[0].shape[0]):
            pass
    given = [pypto.from_numpy(normal(16)) for _ in range(2)]
    with pytest.raises(ValueError, match=r"DT_FP32 \[-1\].*has shape \[16\]: declare"):
        run(*given)


def test_an_operation_that_fails_leaves_every_array_as_it_was() -> None:
    def body(x: pypto.Tensor, order: pypto.Tensor, out: pypto.Tensor) -> None:
        pypto.set_vec_tile_shapes(4, 4)
        out[:] = x * 2.0
        out[:] = pypto.gather(x, 0, order)

    x, order, out = normal(4, 4), np.zeros((4, 4), np.int32), np.zeros((4, 4), np.float32)
    built(body, x, order, out)
    order[2, 3] = 4
    given = [pypto.from_numpy(each) for each in (x, order, out)]
    with pytest.raises(IndexError, match=r"\b4\b"):
        run(*given)
    assert not out.any()
    order[2, 3] = 3
    run(*given)
    assert_bits_equal(out, np.take_along_axis(x, order, axis=0))


def test_what_nobody_wrote_is_refused_when_values_come() -> None:
    def body(x: pypto.Tensor, out: pypto.Tensor) -> None:
        pypto.set_vec_tile_shapes(16)
        out[:] = operator.add(x, pypto.tensor([16], pypto.DT_FP32, "blank"))

    built(body, normal(16), normal(16))
    with pytest.raises(ValueError, match="which the kernel has not written"):
        run(pypto.from_numpy(normal(16)), pypto.from_numpy(normal(16)))
