"""Numbers that a kernel reads of elements that are not certain: what they place and steer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pypto_cast as pypto
from pypto_cast.kernel.certainty import Certainty
from pypto_cast.tensors.symbolic import LoopIndex, SymbolicScalar, UndecidedScalar, undecided
from pypto_cast.tensors.tensor import Tensor

F32 = pypto.Tensor[[4, 8], pypto.DT_FP32]
X = np.arange(32, dtype=np.float32).reshape(4, 8)
Body = Callable[[Tensor, Tensor, Any], None]


def certainty_of(body: Body, *, ties: bool = True) -> Certainty:
    """Runs a body with the index of the greatest of [3, 3] / 7, or of [3, 1] / 7."""

    @pypto.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
    def kernel(x: F32, scores: pypto.Tensor[[1, 2], pypto.DT_FP32], out: F32) -> None:
        pypto.set_vec_tile_shapes(4, 8)
        _, order = pypto.topk(scores / 7, 1)
        body(x, out, order[0, 0])

    scores = np.array([[3, 3 if ties else 1]], np.float32)
    return kernel.certainty(X, scores, np.zeros((4, 8), np.float32))


def place(x: Tensor, out: Tensor, n: Any) -> None:
    out[n : n + 1] = x[0:1]


def place_by_assemble(x: Tensor, out: Tensor, n: Any) -> None:
    pypto.assemble(x[0:1], [2 - n, 0], out)


def add_in_place(x: Tensor, out: Tensor, n: Any) -> None:
    pypto.atomic_add(x[0:1], [n * 1, 0], out)


def branch(x: Tensor, out: Tensor, n: Any) -> None:
    if n + 1 > 0:
        out[0:1] = x[0:1]


def condition(x: Tensor, out: Tensor, n: Any) -> None:
    if pypto.cond(n == 0):
        out[0:1] = x[0:1]


def rounds(x: Tensor, out: Tensor, n: Any) -> None:
    for k in pypto.loop(n + 1):
        out[k : k + 1] = x[0:1]


def unrolled(x: Tensor, out: Tensor, n: Any) -> None:
    for k, _ in pypto.loop_unroll(0, n + 1, 1, unroll_list=[1]):
        out[k : k + 1] = x[0:1]


def looked_up(x: Tensor, out: Tensor, n: Any) -> None:
    for k in pypto.loop(1):
        out[0:1] = x[0:1]
        if k < n + 1:
            out[0:1] = x[1:2]


@pytest.mark.parametrize(
    "body",
    [place, place_by_assemble, add_in_place, branch, condition, rounds, unrolled, looked_up],
)
def test_what_it_writes_is_unknown(body: Body) -> None:
    found = certainty_of(body)
    assert found["out"].undecided == 32
    assert [cause.operation for cause in found.causes] == ["div"]
    assert certainty_of(body, ties=False)["out"].undecided == 0
    assert (found.values["out"] == certainty_of(body, ties=False).values["out"]).all()


def test_what_a_branch_not_taken_may_have_overwritten_is_unknown() -> None:
    def body(x: Tensor, out: Tensor, n: Any) -> None:
        out[:] = x
        if n > 0:
            out[0:1] = x[1:2]

    found = certainty_of(body)["out"]
    assert (found.values == X).all()
    assert found.undecided == 32
    assert found.possible((0, 0)) == "from -inf to inf or NaN"
    assert certainty_of(body, ties=False)["out"].undecided == 0


def test_a_view_at_it_is_unknown_and_nothing_else() -> None:
    def body(x: Tensor, out: Tensor, n: Any) -> None:
        out[0:1] = pypto.view(x, [1, 8], [n, 0])
        out[1:2] = x[n : n + 1] * 0.0
        out[2:3] = x[2:3]
        out[3:4] = pypto.view(x, [1, 8], [0, 0], valid_shape=[1, 8 - n])

    found = certainty_of(body)["out"]
    assert found.certain.all(axis=1).tolist() == [False, False, True, False]
    assert found.possible((0, 0)) == "from -inf to inf or NaN"
    assert (found.values[0] == X[0]).all()


def test_what_is_written_before_stays_certain_and_after_becomes_so_again() -> None:
    def body(x: Tensor, out: Tensor, n: Any) -> None:
        out[n : n + 1] = x[0:1]
        out[:] = x

    assert certainty_of(body)["out"].undecided == 0


def test_it_is_a_number_that_tensors_take() -> None:
    def body(x: Tensor, out: Tensor, n: Any) -> None:
        out[:] = x + n

    assert certainty_of(body)["out"].undecided == 32


@pytest.mark.parametrize(
    "derive",
    [
        lambda n: n + 1,
        lambda n: 1 + n,
        lambda n: 5 - n,
        lambda n: n // 2,
        lambda n: 7 % n,
        lambda n: 7 // n,
        lambda n: 7 / n,
        lambda n: n % 2,
        lambda n: divmod(7, n)[1],
        lambda n: 9 & n,
        lambda n: n | 0,
        lambda n: ~n,
        lambda n: 2**n >> 1,
        lambda n: n << 1 ^ 5,
        lambda n: n * n,
        lambda n: -n,
        lambda n: n.min(2),
        lambda n: SymbolicScalar(9).max(n),
        lambda n: LoopIndex.of(1, is_first=True, is_last=True) + n,
        lambda n: LoopIndex.of(1, is_first=True, is_last=True) < n,
        lambda n: n > 2,
        lambda n: n != 3,
    ],
)
def test_what_is_computed_of_it_is_undecided_too(derive: Callable[[Any], Any]) -> None:
    found = derive(UndecidedScalar.of(3, 11))
    assert undecided([0, slice(found, None)]) == 11
    assert int(found) == int(derive(SymbolicScalar(3)))


def test_numbers_that_are_certain_stay_plain() -> None:
    n = SymbolicScalar(3)
    assert type(n + 1) is SymbolicScalar
    assert type(n < 4) is type(n == 3) is SymbolicScalar
    assert {n: 1}[3] == 1
    assert undecided((n, 1, [2], slice(None))) is None
