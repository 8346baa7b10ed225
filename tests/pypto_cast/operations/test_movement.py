"""Movement: elements, valid shapes and intervals go where numpy puts them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pypto_cast as pypto
from pypto_cast.tensors.tensor import Tensor

DATA = np.arange(4 * 6 * 8, dtype=np.float32).reshape(4, 6, 8)


@pytest.fixture(autouse=True)
def tile() -> Iterator[None]:
    with pypto.options(vec_tile_shapes=(4, 8, 8)):
        yield


def open_tensor() -> Tensor:
    """A tensor none of whose elements is certain, but those of the first matrix."""
    x = pypto.from_numpy(DATA)
    return x / 3


MOVES: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Any], Any]]] = {
    "reshape": (lambda x: x.reshape([24, -1]), lambda a: a.reshape(24, 8)),
    "unsqueeze": (lambda x: x.unsqueeze(-1), lambda a: a[..., None]),
    "unsqueeze first": (lambda x: pypto.unsqueeze(x, 0), lambda a: a[None]),
    "transpose": (lambda x: x.transpose(0, 2), lambda a: a.swapaxes(0, 2)),
    "transpose last": (lambda x: x.transpose(-1, -2), lambda a: a.swapaxes(1, 2)),
    "concat": (lambda x: pypto.concat([x, x], 1), lambda a: np.concatenate([a, a], 1)),
    "clone": (lambda x: x.clone(), lambda a: a),
    "view": (lambda x: pypto.view(x, [2, 6, 8], [1, 0, 0]), lambda a: a[1:3]),
    "slice": (lambda x: x[:, 2:4], lambda a: a[:, 2:4]),
    "int": (lambda x: x[1], lambda a: a[1]),
    "expand": (
        lambda x: pypto.expand_clone(x[0:1], [4, 6, 8]),
        lambda a: np.broadcast_to(a[:1], (4, 6, 8)),
    ),
}


@pytest.mark.parametrize("name", MOVES)
def test_elements_and_intervals_move(name: str) -> None:
    move, oracle = MOVES[name]
    x = open_tensor()
    before, after = x.enclosure(), move(x).enclosure()
    assert before is not None
    assert after is not None
    assert before.interval is not None
    assert after.interval is not None
    for old, new in (
        (before.values, after.values),
        (before.interval.low, after.interval.low),
        (before.interval.high, after.interval.high),
        (before.interval.cause, after.interval.cause),
    ):
        assert np.array_equal(oracle(old), new)
    exact = move(pypto.from_numpy(DATA)).enclosure()
    assert exact is not None
    assert exact.interval is None


def test_a_partly_valid_view_goes_on() -> None:
    x = pypto.view(pypto.from_numpy(DATA), [4, 6, 8], [2, 0, 0])
    assert x.valid_shape == [2, 6, 8]
    total = x + 1.0
    assert (total.shape, total.valid_shape) == ([4, 6, 8], [2, 6, 8])
    assert (total.numpy() == DATA[2:] + 1).all()
    assert pypto.sum(x, 0, True).valid_shape == [1, 6, 8]
    assert pypto.sum(x, -1).valid_shape == [2, 6]
    assert (pypto.sum(x, 0, True).numpy() == DATA[2:].sum(0, keepdims=True)).all()
    assert x.transpose(0, 1).valid_shape == [6, 2, 8]
    assert pypto.add(x, pypto.from_numpy(DATA)).valid_shape == [2, 6, 8]


def test_a_transpose_that_keeps_rows_whole_needs_one_tile_of_memory() -> None:
    x = pypto.from_numpy(np.zeros((16, 32, 128), np.float16))
    with pypto.options(vec_tile_shapes=(16, 32, 128)):  # 131072 B of 196608 B
        assert x.transpose(0, 1).shape == [32, 16, 128]
        with pytest.raises(pypto.TileShapeError, match=r"a tile \[16, 32, 128\] take 393216 B"):
            x.transpose(1, 2)


def test_reshape_of_a_partly_valid_view() -> None:
    x = pypto.view(pypto.from_numpy(DATA), [4, 6, 8], [2, 0, 0])
    flat = x.reshape([24, 8], valid_shape=[12, 8])
    assert (flat.numpy() == DATA[2:].reshape(12, 8)).all()
    with pytest.raises(ValueError, match=r"only \[2, 6, 8\] hold data; .* \[24, 8\] of \[24, 8\]"):
        x.reshape([24, 8])


@pytest.mark.parametrize(
    ("attempt", "error", "text"),
    [
        (lambda x: x.reshape([5, 5]), pypto.ShapeError, r"\[4, 6, 8\] has 192 elements"),
        (lambda x: x.reshape([-1, -1]), pypto.ShapeError, "has 192 elements"),
        (lambda x: x.reshape([-1, 0]), pypto.ShapeError, r"has 192 elements, not \[-1, 0\]"),
        (lambda x: x.reshape([x.shape[0], 1.5]), TypeError, "requires integer shape"),
        (lambda x: x.unsqueeze(4), ValueError, "unsqueeze: dimension 4 of 4"),
        (lambda x: pypto.concat([x, x[0:2, 0:3]], 0), pypto.ShapeError, "differs"),
        (lambda x: pypto.concat([x, pypto.cast(x, pypto.DT_FP16)]), TypeError, "one dtype"),
        (lambda x: pypto.concat(x), TypeError, "takes a list of tensors"),
        (lambda x: x.expand_clone([4, 6, 16]), pypto.ShapeError, "does not expand"),
        (lambda x: x.unsqueeze(0).transpose(0, 3), ValueError, "upstream exchanges"),
        (
            lambda x: pypto.full([4], -1, pypto.DT_UINT8),
            OverflowError,
            "not the negative number -1",
        ),
        (lambda x: pypto.full([4], 1, pypto.DT_INT64), TypeError, "full makes"),
        (lambda x: pypto.arange(3, 3), ValueError, "nothing lies between"),
        (lambda x: pypto.arange(0, 3, 0), ValueError, "the step 0"),
    ],
)
def test_bad_moves(attempt: Any, error: type[Exception], text: str) -> None:
    with pypto.options(vec_tile_shapes=(4, 8, 8, 32)), pytest.raises(error, match=text):
        attempt(pypto.from_numpy(DATA))


def test_copies_take_whole_blocks() -> None:
    x = pypto.from_numpy(DATA)
    with (
        pypto.options(vec_tile_shapes=(4, 8, 4)),
        pytest.raises(pypto.TileShapeError, match=r"a multiple of 8 elements \(32 B\), not 4"),
    ):
        x.clone()


def test_made_of_numbers() -> None:
    assert (pypto.full([4, 8], 0.1, pypto.DT_FP16).numpy() == np.float16(0.1)).all()
    assert pypto.full([8], 2.7, pypto.DT_INT32).numpy().tolist() == [2] * 8
    assert pypto.full([8], 1.0, pypto.DT_FP32, valid_shape=[3]).valid_shape == [3]
    assert (pypto.zeros(4, 8).numpy() == 0).all()
    assert pypto.ones([4, 8], dtype=pypto.DT_BF16).dtype is pypto.DT_BF16
    assert pypto.arange(2, 11, 3).numpy().tolist() == [2, 5, 8]
    assert pypto.arange(3).dtype is pypto.DT_INT32
    assert (pypto.arange(0.0, 4.0, 0.5).numpy() == np.arange(0, 4, 0.5)).all()


def test_float_ranges_add_blocks() -> None:
    step = np.float32(0.1)
    first = np.arange(8, dtype=np.float32) * step
    with pypto.options(vec_tile_shapes=(128,)):
        values = pypto.arange(0.0, 12.8, 0.1).numpy()
    assert (values[:8] == first).all()
    assert (values[8:16] == first + 8 * step).all()
    assert (values[64:128] == values[:64] + 64 * step).all()


ANY = pypto.Tensor[[...], pypto.DT_FP32]


def test_a_result_can_be_written() -> None:
    @pypto.jit
    def kernel(x: ANY, out: ANY) -> None:
        pypto.set_vec_tile_shapes(4, 8)
        acc = x * 2.0
        acc[0:2] = x[2:4]
        for _ in pypto.loop(3):
            acc[:] = acc + 1.0
        out[:] = acc

    data = np.arange(32, dtype=np.float32).reshape(4, 8)
    out = np.zeros_like(data)
    kernel(data, out)
    wanted = data * 2
    wanted[0:2] = data[2:4]
    assert (out == wanted + 3).all()
    assert len(kernel.program(data, out).casts) == 0


def test_a_written_result_is_not_the_tensor_it_came_from() -> None:
    @pypto.jit
    def kernel(x: ANY, out: ANY) -> None:
        pypto.set_vec_tile_shapes(4, 8)
        acc = x + 0.0
        kept = acc[0:4]
        acc.fill_(7.0)
        out[:] = kept * 1.0 + acc

    data = np.ones((4, 8), np.float32)
    out = np.zeros_like(data)
    kernel(data, out)
    assert (out == 8).all()
    assert (data == 1).all()


def test_the_same_array_is_input_and_output() -> None:
    @pypto.jit
    def kernel(x: ANY, out: ANY) -> None:
        pypto.set_vec_tile_shapes(4, 8)
        for _ in pypto.loop(3):
            out[:] = x + 1.0

    data = np.zeros((4, 8), np.float32)
    kernel(data, data)
    assert (data == 3).all()


def test_a_tail_that_decides_nothing_need_not_be_written() -> None:
    """The rest of an accumulator is not read if another operand holds data in a part only."""

    @pypto.jit
    def masked(x: pypto.Tensor[[2, 8], pypto.DT_FP32], out: pypto.Tensor[[4, 8], pypto.DT_FP32]):
        held = pypto.tensor([4, 8], pypto.DT_FP32)
        pypto.assemble(x, [0, 0], held)
        part = pypto.view(x, [4, 8], [0, 0], valid_shape=[2, 8])
        pypto.assemble(held + part, [0, 0], out)

    @pypto.jit
    def whole(x: pypto.Tensor[[2, 8], pypto.DT_FP32], out: pypto.Tensor[[4, 8], pypto.DT_FP32]):
        held = pypto.tensor([4, 8], pypto.DT_FP32)
        pypto.assemble(x, [0, 0], held)
        out[:] = held + 1.0

    x, out = np.arange(16, dtype=np.float32).reshape(2, 8), np.zeros((4, 8), np.float32)
    masked(x, out)
    np.testing.assert_array_equal(out, np.concatenate([x + x, np.zeros_like(x)]))
    with pytest.raises(ValueError, match=r"is read at \[2, 0\], which the kernel has not written"):
        whole(x, out)


def test_what_nobody_wrote_goes_through_operations_and_may_not_reach_an_output() -> None:
    """A select, a cut and a reduction along another axis leave it out; a sum over it does not."""

    def kernel(last: Callable[[Tensor, Tensor], Tensor]) -> Any:
        @pypto.jit
        def body(x: pypto.Tensor[[2, 8], pypto.DT_FP32], out: pypto.Tensor()) -> None:
            held = pypto.tensor([2, 8], pypto.DT_FP32)
            pypto.assemble(x[:, 0:4], [0, 0], held)
            twice = pypto.concat([held + held, held * 2.0], 0).reshape([4, 8]).clone()
            out[:] = last(twice, pypto.concat([x, x], 0))

        return body

    x = np.arange(16, dtype=np.float32).reshape(2, 8)
    two = np.concatenate([x, x])
    columns = np.isin(np.arange(8), (0, 1, 2, 3))
    chosen, out = np.where(two % 8 < 4, two * 2, -1), np.zeros((4, 8), np.float32)
    kernel(lambda h, y: pypto.where(y - pypto.floor(y / 8.0) * 8.0 < 4.0, h, -1.0))(x, out)
    np.testing.assert_array_equal(out, chosen)
    part = np.zeros((4, 4), np.float32)
    kernel(lambda h, y: pypto.view(h, [4, 4], [0, 0]))(x, part)
    np.testing.assert_array_equal(part, two[:, columns] * 2)
    row = np.zeros((1, 4), np.float32)
    kernel(lambda h, y: pypto.amax(h, 0, True)[:, 0:4])(x, row)
    np.testing.assert_array_equal(row, two[:, columns].max(0, keepdims=True) * 2)
    refused = r"is read at \[0, 4\], which the kernel has not written"
    with pytest.raises(ValueError, match=refused):
        kernel(lambda h, y: h)(x, out)
    with pytest.raises(ValueError, match=refused):
        kernel(lambda h, y: pypto.where(y > 3.0, h, -1.0))(x, out)
    with pytest.raises(ValueError, match=refused):
        kernel(lambda h, y: pypto.amax(h, 1, True))(x, np.zeros((4, 1), np.float32))


def test_a_reshape_beyond_what_holds_data_is_cut_again() -> None:
    @pypto.jit
    def body(x: pypto.Tensor[[4, 8], pypto.DT_FP32], out: pypto.Tensor[[2, 8], pypto.DT_FP32]):
        part = pypto.view(x, [4, 8], [0, 0], valid_shape=[2, 8])
        flat = pypto.reshape(part, [32]) * 2.0
        again = pypto.reshape(flat, [4, 8])
        out[:] = pypto.view(again, [2, 8], [0, 0])

    @pypto.jit
    def whole(x: pypto.Tensor[[4, 8], pypto.DT_FP32], out: pypto.Tensor[[32], pypto.DT_FP32]):
        out[:] = pypto.reshape(pypto.view(x, [4, 8], [0, 0], valid_shape=[2, 8]), [32]) * 2.0

    x, out = np.arange(32, dtype=np.float32).reshape(4, 8), np.zeros((2, 8), np.float32)
    body(x, out)
    np.testing.assert_array_equal(out, x[:2] * 2)
    with pytest.raises(ValueError, match=r"is read at \[16\], which the kernel has not written"):
        whole(x, np.zeros(32, np.float32))
