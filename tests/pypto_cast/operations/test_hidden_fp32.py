"""The FP32 value behind a BF16 or FP16 result: the operations that take it, and where it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pypto_cast as pypto
from pypto_cast.tensors.tensor import Tensor

ANY = pypto.Tensor[[...], pypto.DT_BF16]
BF16 = ml_dtypes.bfloat16
# 1 + 2**-8 lies between two BF16 numbers; less 1 it is one.
STEP = 2.0**-8


@pytest.fixture(autouse=True)
def tile() -> Iterator[None]:
    with pypto.options(vec_tile_shapes=(16, 16)):
        yield


def one() -> Tensor:
    return pypto.tensor([16, 16], pypto.DT_BF16, data=np.ones((16, 16), BF16))


def same(x: Tensor) -> Tensor:
    return x


def first(x: Tensor) -> float:
    return float(x.numpy().flat[0])


def test_the_next_operation_takes_the_unrounded_value() -> None:
    total = one() + STEP
    assert first(total) == 1.0
    assert first(total - 1.0) == STEP
    assert first(total * 2.0 - 2.0) == 2 * STEP
    with pypto.options(auto_cast="every op"):
        assert first((one() + STEP) - 1.0) == 0.0


@pytest.mark.parametrize(
    "through",
    [
        pypto.abs,
        pypto.relu,
        lambda x: pypto.maximum(x, 0.0),
        lambda x: pypto.clip(x, 0.0, 2.0),
        lambda x: pypto.where(x_is_positive(x), x, x),
        lambda x: pypto.amax(x, -1, True),
        lambda x: x / 1.0,
        lambda x: pypto.neg(pypto.neg(x)),
        lambda x: x.reshape([16, 16]),  # upstream drops a reshape to the same shape
    ],
)
def test_it_goes_on_through(through: Callable[[Tensor], Tensor]) -> None:
    assert first(through(one() + STEP) - 1.0) == STEP


def x_is_positive(x: Tensor) -> Tensor:
    return pypto.tensor(x.shape, pypto.DT_BOOL, data=np.ones(tuple(x.shape), np.bool_))


@pytest.mark.parametrize(
    "end",
    [
        lambda x: pypto.view(x, [16, 16], [0, 0]),
        lambda x: x[0:8],
        lambda x: x[:, 0:16],
        lambda x: x.reshape([256]),
        lambda x: x.transpose(0, 1),
        lambda x: x.clone(),
        lambda x: pypto.concat([x, x], 0),
        lambda x: x.expand_clone([16, 16]),
        lambda x: pypto.amax(x, -1),
        pypto.round,
        pypto.floor,
        lambda x: pypto.cast(pypto.cast(x, pypto.DT_FP32), pypto.DT_BF16),
    ],
)
def test_it_ends_at(end: Callable[[Tensor], Tensor]) -> None:
    assert first(end(one() + STEP) - 1.0) == 0.0


def test_it_ends_where_the_ranks_differ() -> None:
    row = pypto.tensor([16], pypto.DT_BF16, data=np.ones(16, BF16)) + STEP
    assert first(row - 1.0) == STEP
    assert first(row - one()) == 0.0
    same_rank = pypto.tensor([1, 16], pypto.DT_BF16, data=np.ones((1, 16), BF16)) + STEP
    assert first(same_rank - one()) == STEP


def test_it_ends_at_a_written_cast() -> None:
    assert first(pypto.cast(one() + STEP, pypto.DT_FP32)) == 1.0


@pytest.mark.parametrize("composite", [pypto.rsqrt, pypto.log, pypto.sigmoid])
def test_it_ends_at_a_composite(composite: Callable[[Tensor], Tensor]) -> None:
    rounded = composite(one())
    assert (composite(one() + STEP).numpy() == rounded.numpy()).all()


def test_fp16_has_it_for_sums_and_products_alone() -> None:
    x = pypto.tensor([16], pypto.DT_FP16, data=np.ones(16, np.float16))
    step = 2.0**-11
    total = x + step
    assert first(total - 1.0) == step
    assert first(total * 1.0 - 1.0) == step
    for ends in (pypto.abs, pypto.relu, lambda x: x / 1.0, lambda x: pypto.maximum(x, 0.0)):
        assert first(ends(total) - 1.0) == 0.0


def run(body: Callable[[Any, Any], None], *, rows: int = 16) -> float:
    @pypto.jit
    def kernel(x: ANY, out: ANY) -> None:
        pypto.set_vec_tile_shapes(16, 16)
        body(x, out)

    out = np.zeros((rows, 16), BF16)
    kernel(np.ones((rows, 16), BF16), out)
    return float(out.flat[0])


def test_it_ends_at_an_output() -> None:
    def body(x: Any, out: Any) -> None:
        out[:] = x + STEP
        out[:] = out - 1.0

    assert run(body) == 0.0


def test_it_ends_at_assemble() -> None:
    def body(x: Any, out: Any) -> None:
        held = x + 0.0
        pypto.assemble(x + STEP, [0, 0], held)
        out[:] = held - 1.0

    assert run(body) == 0.0


def test_it_goes_on_through_an_accumulator() -> None:
    def body(x: Any, out: Any) -> None:
        held = x + 0.0
        held[:] = held + STEP
        out[:] = held - 1.0

    assert run(body) == STEP


def test_an_accumulator_that_is_declared() -> None:
    def body(x: Any, out: Any) -> None:
        held = pypto.tensor([16, 16], pypto.DT_BF16, "held")
        held[:] = x + STEP
        out[:] = held - 1.0

    assert run(body) == STEP


def test_it_ends_with_an_iteration() -> None:
    def body(x: Any, out: Any) -> None:
        held = x + 0.0
        for _ in pypto.loop(2):
            held[:] = held + STEP
        out[:] = held - 1.0

    assert run(body) == 0.0


@pytest.mark.parametrize(
    ("count", "unroll_list"), [(6, [6]), (6, [3]), (6, [2]), (7, [3]), (6, [4]), (3, [4])]
)
def test_an_unrolled_body_is_one(count: int, unroll_list: list[int]) -> None:
    """Half steps add up inside one copy of the body, which ends in BF16."""

    def body(x: Any, out: Any) -> None:
        held = x + 0.0
        for _ in pypto.loop(count, unroll_list=unroll_list):
            held[:] = held + STEP / 2
        out[:] = held - 1.0

    total = 1.0
    lengths = [length for length in unroll_list for _ in range(count // length)]
    for length in [*lengths, *[1] * (count % unroll_list[0])]:
        total = float(BF16(total + length * STEP / 2))
    assert run(body) == total - 1.0


def test_it_ends_before_a_loop() -> None:
    def body(x: Any, out: Any) -> None:
        total = x + STEP
        for _ in pypto.loop(1):
            out[:] = total - 1.0

    assert run(body) == 0.0


def test_it_ends_after_a_loop() -> None:
    def body(x: Any, out: Any) -> None:
        for _ in pypto.loop(1):
            total = x + STEP
        out[:] = total - 1.0

    assert run(body) == 0.0


def test_it_goes_on_within_an_iteration() -> None:
    def body(x: Any, out: Any) -> None:
        for _ in pypto.loop(2):
            total = x + STEP
            out[:] = total - 1.0

    assert run(body) == STEP


def test_a_kernel_in_a_kernel_is_a_boundary() -> None:
    @pypto.jit
    def inner(x: ANY, out: ANY) -> None:
        out[:] = x - 1.0

    def body(x: Any, out: Any) -> None:
        inner(x + STEP, out)

    assert run(body) == 0.0


def test_a_failed_inner_kernel_leaves_no_value_behind() -> None:
    @pypto.jit
    def inner(x: ANY) -> None:
        x[:] = x + STEP
        raise KeyError

    def body(x: Any, out: Any) -> None:
        held = x + 0.0
        with pytest.raises(KeyError):
            inner(held)
        out[:] = held - 1.0

    assert run(body) == 0.0
