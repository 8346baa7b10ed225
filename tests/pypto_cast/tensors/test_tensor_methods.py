"""Methods and operators of a tensor that upstream's has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pypto_cast as pypto

X = np.array([[5, -7.5, 2, 3]], np.float32)


@pytest.fixture(autouse=True)
def _tile(pypto_sim: Any) -> None:
    pypto.set_vec_tile_shapes(1, 8)


def held() -> pypto.Tensor:
    return pypto.from_numpy(X.copy())


def test_operators_call_their_functions() -> None:
    x = held()
    np.testing.assert_array_equal((x % 3.0).numpy(), pypto.remainder(x, 3.0).numpy())
    np.testing.assert_array_equal((x**2.0).numpy(), pypto.pow(x, 2.0).numpy())
    np.testing.assert_array_equal(x.greater(2.0).numpy(), X > 2)


@pytest.mark.parametrize("sign", ["+", "-", "*", "/"])
def test_an_assignment_in_place_binds_the_name(sign: str) -> None:
    before = held()
    names = {"x": before}
    exec(f"x {sign}= 2.0", names)
    expected = eval(f"x {sign} 2.0", {"x": before})
    np.testing.assert_array_equal(names["x"].numpy(), expected.numpy())
    np.testing.assert_array_equal(before.numpy(), X)


def test_identity_copy_and_name() -> None:
    x, y = held(), held()
    assert x.id == x.id != y.id
    copied = x.copy("c")
    assert (copied.shape, copied.dtype, copied.name) == ([1, 4], pypto.DT_FP32, "c")
    assert not copied.has_data
    assert x.to_tensor("z") is x
    assert x.name == "z"


def test_a_tensor_is_empty_once_it_was_moved() -> None:
    seen = []

    @pypto.jit
    def kernel(x: pypto.Tensor[...], out: pypto.Tensor[...]) -> None:
        pypto.set_vec_tile_shapes(1, 8)
        y = x + 1.0
        seen.append(y.is_empty())
        out[:] = y
        seen.append(y.is_empty())

    out = np.zeros_like(X)
    kernel(X, out)
    assert seen == [False, True]
    np.testing.assert_array_equal(out, X + 1)


@pytest.mark.parametrize("name", ["where", "lrelu"])
def test_methods_that_upstream_cannot_call(name: str) -> None:
    with pytest.raises(TypeError, match=f"call pypto.{name}"):
        getattr(held(), name)(held(), 1.0)


def test_fill_returns_the_tensor() -> None:
    @pypto.jit
    def kernel(x: pypto.Tensor[...], out: pypto.Tensor[...]) -> None:
        pypto.set_vec_tile_shapes(1, 8)
        y = x + 1.0
        assert y.fill_(2.0) is y
        out[:] = y

    out = np.zeros_like(X)
    kernel(X, out)
    np.testing.assert_array_equal(out, np.full_like(X, 2))


def test_a_view_ends_with_its_shape_where_the_valid_shape_is_wider() -> None:
    x = pypto.from_numpy(np.arange(64, dtype=np.float32).reshape(8, 8))
    seen = pypto.view(x, [4, 4], [0, 0], valid_shape=[8, 3])
    assert list(seen.valid_shape) == [4, 3]
    with pytest.raises(ValueError, match="reaches beyond"):
        pypto.view(x, [4, 4], [0, 0], valid_shape=[9, 4])
    with pytest.raises(ValueError, match="reaches beyond"):
        pypto.view(x, [4, 4], [6, 0], valid_shape=[4, 4])


def test_a_function_takes_memory_under_its_declared_shape() -> None:
    a, b = (pypto.tensor([2, 8], pypto.DT_FP32, name) for name in "ab")
    with pypto.function("main", a, b):
        pypto.set_vec_tile_shapes(2, 8)
        b[:] = a * 2.0
    flat = np.arange(16, dtype=np.float32)
    out = np.zeros(16, np.float32)
    run = pypto.runtime._device_run_once_data_from_host
    run(pypto.from_numpy(flat), pypto.from_numpy(out))
    np.testing.assert_array_equal(out, flat * 2)


def test_a_body_that_reads_an_element_is_recorded_and_not_run() -> None:
    a = pypto.tensor([8, 8], pypto.DT_INT32, "a")
    b = pypto.tensor([8, 8], pypto.DT_INT32, "b")
    with pypto.function("main", a, b):
        pypto.set_vec_tile_shapes(8, 8)
        first = a[0, 0]
        assert isinstance(first, pypto.SymbolicScalar)
        b[:] = a + a[first : first + 8, :]
    x, out = np.ones((8, 8), np.int32), np.zeros((8, 8), np.int32)
    with pytest.raises(ValueError, match=r"element \[0, 0\] of tensor 'a' before it had a value"):
        pypto.runtime._device_run_once_data_from_host(pypto.from_numpy(x), pypto.from_numpy(out))
    assert not out.any()


def test_a_tensor_is_not_iterable_in_upstreams_words() -> None:
    for kind in (TypeError, pypto.error.FeError):
        with pytest.raises(kind, match="not iterable"):
            list(held())
