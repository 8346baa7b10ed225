"""Numbers of the same six decimals, which upstream's compiler takes for one.

Dumps of the wheel 0.2.0: of `y[:] = x * 1e-7; u[:] = z * 2e-7` all tasks run one leaf, by 2e-7, in
one loop or in two; of `sin` all parts of half of pi below 1e-6 are the first of them. Of two pairs
of numbers of `where`, and of two roundings to other decimals, the tasks run one leaf.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import pypto_cast as pypto
from docs.generators.operation_examples import EXPRESSIONS, example
from pypto_cast.options.releases import RELEASE_NAMES, RELEASES, ReleaseName
from pypto_cast.recording import recording
from pypto_cast.recording.close_numbers import CloseNumbers
from pypto_cast.recording.recording import Recording

Array = np.ndarray[Any, Any]
Choice = Callable[[pypto.Tensor, int], pypto.Tensor]
SHAPE = (16, 64)
Matrix = pypto.Tensor[[*SHAPE], pypto.DT_FP32]
X = np.random.default_rng(5).uniform(-30, 30, SHAPE).astype(np.float32)
Z = X[::-1].copy()


@pypto.frontend.jit
def sine(x: Matrix, z: Matrix, y: Matrix, u: Matrix) -> None:
    pypto.set_vec_tile_shapes(*SHAPE)
    y[:] = pypto.sin(x)
    u[:] = pypto.cos(z)


@pypto.frontend.jit
def small_factors(x: Matrix, z: Matrix, y: Matrix, u: Matrix) -> None:
    pypto.set_vec_tile_shapes(*SHAPE)
    y[:] = pypto.mul(x, 1e-7)
    u[:] = pypto.mul(z, 2e-7)


@pypto.frontend.jit
def small_thresholds(x: Matrix, z: Matrix, y: Matrix, u: Matrix) -> None:
    pypto.set_vec_tile_shapes(*SHAPE)
    y[:] = pypto.where(pypto.gt(x, 1e-7), x, 1e-8)
    u[:] = pypto.where(pypto.gt(z, 2e-7), z, 2e-8)


@pypto.frontend.jit
def in_two_loops(x: Matrix, z: Matrix, y: Matrix, u: Matrix) -> None:
    pypto.set_vec_tile_shapes(8, 64)
    for i in pypto.loop(2):
        pypto.assemble(pypto.mul(pypto.view(x, [8, 64], [i * 8, 0]), 1e-7), [i * 8, 0], y)
    for i in pypto.loop(2):
        pypto.assemble(pypto.mul(pypto.view(z, [8, 64], [i * 8, 0]), 2e-7), [i * 8, 0], u)


@pypto.frontend.jit
def two_pairs(x: Matrix, z: Matrix, y: Matrix, u: Matrix) -> None:
    pypto.set_vec_tile_shapes(*SHAPE)
    y[:] = pypto.where(x > 0.0, 1.5, 2.5)
    u[:] = pypto.where(z > 0.0, 3.5, 4.5)


@pypto.frontend.jit
def two_decimals(x: Matrix, z: Matrix, y: Matrix, u: Matrix) -> None:
    pypto.set_vec_tile_shapes(*SHAPE)
    y[:] = pypto.round(x)
    u[:] = pypto.round(z, 2)


UNTOLD = (two_pairs, two_decimals)
KERNELS = (sine, small_factors, small_thresholds, in_two_loops, *UNTOLD)


def outputs() -> tuple[Array, Array]:
    return np.zeros(SHAPE, np.float32), np.zeros(SHAPE, np.float32)


@pytest.mark.parametrize("release", RELEASE_NAMES)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda each: each.signature.kernel)
def test_the_schedule_gives_what_the_bounds_allow(kernel: pypto.Kernel, release: str) -> None:
    x = X.copy()
    x[0, :4] = 1.5e-7, -1.5e-7, 1e-7, 0.0
    with pypto.options(release=release):
        found = kernel.certainty(x, Z, *outputs())
        planned = outputs()
        with pypto.options(fidelity="instructions", strict=True):
            kernel(x, Z, *planned)
    for name, values in zip("yu", planned, strict=True):
        assert ((found.low[name] <= values) & (values <= found.high[name])).all()
        is_certain = found.certain[name]
        assert_array_equal(values[is_certain], found.values[name][is_certain])


@pytest.mark.parametrize("kernel", [small_factors, in_two_loops])
def test_tasks_of_close_numbers_share_a_leaf(kernel: pypto.Kernel) -> None:
    given = pypto.tensor([*SHAPE], pypto.DT_FP32)
    (leaf,) = kernel.schedule(given, given, given, given).leaves
    factors = [each.scalar for each in leaf.operations if each.opcode == "MULS"]
    assert len(factors) == 1
    found = kernel.certainty(X, Z, *outputs())
    assert found.undecided == found.size - sum((x == 0).sum() for x in (X, Z))


@pytest.mark.parametrize("release", RELEASE_NAMES)
@pytest.mark.parametrize("kernel", UNTOLD, ids=lambda each: each.signature.kernel)
def test_numbers_that_no_text_has_are_open(kernel: pypto.Kernel, release: str) -> None:
    """Each output may have been made with the numbers of the other one, and with no others."""
    given = pypto.tensor([*SHAPE], pypto.DT_FP32)
    with pypto.options(release=release, trust="ieee"):
        assert len(kernel.schedule(given, given, given, given).leaves) == 1
        found = kernel.certainty(X, Z, *outputs())
    for place, (name, of) in enumerate((("y", X), ("u", Z))):
        if kernel is two_pairs:
            both = [np.where(of > 0, *pair) for pair in ((1.5, 2.5), (3.5, 4.5))]
        else:
            both = [np.rint(of * power) / power for power in (np.float32(1), np.float32(100))]
        low, high = np.minimum(*both), np.maximum(*both)
        assert_array_equal(found.low[name], low)
        assert_array_equal(found.high[name], high)
        assert_array_equal(found.values[name], both[place])
        assert not found.certain[name][low != high].any()


@pytest.mark.parametrize(
    "chosen",
    [
        lambda of, n: pypto.where(of > 0.0, 1.5, math.nan),
        lambda of, n: pypto.where(of > 0.0, of, 1.5 + n),
        lambda of, n: pypto.where(of > 0.0, 1.5 + n, of),
        lambda of, n: pypto.round(of, 0),
    ],
)
def test_equal_numbers_and_numbers_that_a_text_has_are_certain(chosen: Choice) -> None:
    @pypto.frontend.jit
    def certain(x: Matrix, z: Matrix, y: Matrix, u: Matrix) -> None:
        pypto.set_vec_tile_shapes(*SHAPE)
        y[:] = chosen(x, 0)
        u[:] = chosen(z, 1)

    assert not certain.certainty(X, Z, *outputs()).undecided


def test_zeros_of_either_sign_and_nan_are_pairs_of_their_own() -> None:
    @pypto.frontend.jit
    def signs(x: Matrix, z: Matrix, y: Matrix, u: Matrix) -> None:
        pypto.set_vec_tile_shapes(*SHAPE)
        y[:] = pypto.where(x > 0.0, 0.0, 1.0)
        u[:] = pypto.where(z > 0.0, -0.0, math.nan)

    found = signs.certainty(X, Z, *outputs())
    assert found.undecided == found.size
    assert (np.signbit(found.low["y"]) == (X > 0)).all()
    assert not np.signbit(found.high["u"][Z > 0]).any()


def test_random_numbers_of_two_keys_are_open_between_both() -> None:
    """By the sources of the newest revision: the wheel has no `uniform`."""

    def drawn(keys: tuple[int, int]) -> tuple[Array, Array, int]:
        @pypto.frontend.jit
        def random(y: Matrix, u: Matrix) -> None:
            pypto.set_vec_tile_shapes(*SHAPE)
            y[:] = pypto.uniform([*SHAPE], [keys[0]], [0, 1], [1], pypto.DT_FP32)
            u[:] = pypto.uniform([*SHAPE], [keys[1]], [0, 1], [1], pypto.DT_FP32)

        with pypto.options(chip="Ascend950PR"):
            found = random.certainty(*outputs())
        return found.values["y"], found.values["u"], found.undecided

    one, _, certain = drawn((7, 7))
    other, _, _ = drawn((2**63 + 9, 2**63 + 9))
    assert not certain
    first, second, undecided = drawn((7, 2**63 + 9))
    assert_array_equal(first, one)
    assert_array_equal(second, other)
    assert undecided == 2 * (one != other).sum()


def test_numbers_inside_one_tile_operation_are_no_others() -> None:
    numbers = CloseNumbers()
    assert numbers.untold("where", "FP32", (1.5, -2)) == ()
    assert numbers.untold("where", "FP32", (0.0, 3)) == ((1.5, -2),)
    assert numbers.came_later()
    with numbers.inside():
        assert numbers.untold("where", "FP32", (7.0, 3)) == ()
    assert numbers.untold("where", "FP16", (0.0, 3)) == ()
    again = numbers.for_next_run()
    assert again.untold("where", "FP32", (1.5, -2)) == ((0.0, 3),)
    assert not again.came_later()


def test_numbers_apart_in_six_decimals_are_certain() -> None:
    @pypto.frontend.jit
    def apart(x: Matrix, z: Matrix, y: Matrix, u: Matrix) -> None:
        pypto.set_vec_tile_shapes(*SHAPE)
        y[:] = pypto.mul(x, 1e-6)
        u[:] = pypto.mul(z, 2e-6)

    assert not apart.certainty(X, Z, *outputs()).undecided
    given = pypto.tensor([*SHAPE], pypto.DT_FP32)
    assert len(apart.schedule(given, given, given, given).leaves) == 2


def test_sines_of_small_angles_are_certain_in_both_releases() -> None:
    for release in RELEASE_NAMES:
        with pypto.options(release=release):
            found = sine.certainty(X / 64, Z / 64, *outputs())
        assert not found.undecided, release


def close(name: str) -> set[str]:
    """The operations whose numbers the steps of an example leave to upstream's compiler."""
    run = Recording(kernel="example", bounds=True)
    text = re.sub(r"print\((.*)\)\n$", r"found = \1\n", example(name))
    with recording.running(run):
        exec(text, {"__name__": "example"})
    return {key[0] for key, each in run.numbers.found.items() if len(each) > 1}


@pytest.mark.parametrize("release", RELEASE_NAMES)
def test_no_other_operation_has_steps_of_close_numbers(release: ReleaseName) -> None:
    """But `sin` and `cos` of 0.2.0, whose parts of half of pi say what is taken for them."""
    with pypto.options(release=release):
        found = {name: close(name) for name in EXPRESSIONS.keys() - RELEASES[release].lacks}
    assert {name: each for name, each in found.items() if each} == {}


def test_a_number_knows_those_before_it_and_of_the_run_before() -> None:
    first = CloseNumbers()
    assert first.others("mul", "FP32", 1e-7) == {1e-7}
    assert first.others("mul", "FP32", 2e-7) == {1e-7, 2e-7}
    assert first.others("add", "FP32", 3e-7) == {3e-7}
    assert first.came_later()
    second = first.for_next_run()
    assert second.others("mul", "FP32", 1e-7) == {1e-7, 2e-7}
    assert not second.came_later()
    with second.inside():
        assert second.others("mul", "FP32", 4e-7) == frozenset()
    assert not second.came_later()
