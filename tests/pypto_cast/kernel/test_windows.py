"""Reshape in place: another shape on the same memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pypto_cast as pypto

F32, BF16 = pypto.DT_FP32, pypto.DT_BF16
DATA = np.arange(32, dtype=np.float32).reshape(4, 8)


@pypto.jit
def through_the_window(x: pypto.Tensor[[4, 8], F32], out: pypto.Tensor[[2, 2, 8], F32]) -> None:
    pypto.set_vec_tile_shapes(4, 8, 8)
    rows = pypto.reshape(out, [4, 8], inplace=True)
    for index in pypto.loop(4):
        rows[index : index + 1] = x[index : index + 1] / 3.0
    out[1:2] = out[1:2] * 2.0
    rows[0:1] = rows[3:4]


def test_writes_to_either_show_in_the_other_and_reach_the_output() -> None:
    out = np.full((2, 2, 8), -1, np.float32)
    through_the_window(DATA, out)
    thirds = DATA / np.float32(3)
    expected = np.concatenate([thirds[3:] * 2, thirds[1:2], thirds[2:] * 2])
    np.testing.assert_array_equal(out.reshape(4, 8), expected)


def test_intervals_go_through_the_window() -> None:
    found = partly_open.certainty(DATA, np.zeros((2, 2, 8), np.float32))["out"]
    assert found.certain[0].all()
    assert not found.certain[1].any()


@pypto.jit
def partly_open(x: pypto.Tensor[[4, 8], F32], out: pypto.Tensor[[2, 2, 8], F32]) -> None:
    pypto.set_vec_tile_shapes(4, 8, 8)
    rows = pypto.reshape(out, [4, 8], inplace=True)
    rows[:] = (x + 1.0) / 3.0
    out[0:1] = pypto.reshape(x, [2, 2, 8])[0:1]
    rows[3:4] = rows[2:3] * 2.0


def test_an_array_that_is_not_contiguous_is_seen_and_written() -> None:
    whole = np.zeros((2, 2, 16), np.float32)
    through_the_window(DATA, whole[..., ::2])
    assert whole[..., ::2].any()
    assert not whole[..., 1::2].any()


@pypto.jit
def of_a_result(x: pypto.Tensor[[4, 8], F32], out: pypto.Tensor[[4, 8], F32]) -> None:
    pypto.set_vec_tile_shapes(8, 8)
    doubled = x * 2.0
    flat = doubled.reshape([32], inplace=True)
    flat[8:16] = pypto.full([8], 7.0, F32)
    declared = pypto.tensor([2, 16], F32)
    pypto.reshape(declared, [4, 8], inplace=True)[:] = doubled
    out[:] = pypto.reshape(declared, [4, 8])


def test_results_and_declared_tensors_have_windows_too() -> None:
    out = np.zeros((4, 8), np.float32)
    of_a_result(DATA, out)
    expected = DATA * 2
    expected[1] = 7
    np.testing.assert_array_equal(out, expected)


@pypto.jit
def of_a_hidden_value(x: pypto.Tensor[[8], BF16], out: pypto.Tensor[[8], BF16]) -> None:
    pypto.set_vec_tile_shapes(16, 16)
    product = x * x
    square = product.reshape([2, 4], inplace=True)
    square[0:1] = pypto.full([1, 4], 1.0, BF16)
    out[:] = product + product


def test_what_the_window_wrote_replaces_a_hidden_value() -> None:
    x = np.full(8, 1.0078125, pypto.DT_BF16.format.dtype)
    out = np.zeros_like(x)
    of_a_hidden_value(x, out)
    assert (out[:4] == 2).all()
    rounded = (x.astype(np.float32) ** 2).astype(x.dtype)
    np.testing.assert_array_equal(
        (out[4:]).view(np.uint16), (rounded + rounded)[4:].view(np.uint16)
    )


@pypto.jit
def half_of_it_fails(x: pypto.Tensor[[4, 8], F32], out: pypto.Tensor[[4, 8], F32]) -> None:
    pypto.set_vec_tile_shapes(8, 8)
    pypto.reshape(out, [32], inplace=True)[0:8] = x[0]
    pypto.reshape(out, [5], inplace=True)


def test_errors_leave_the_output() -> None:
    out = np.ones((4, 8), np.float32)
    with pytest.raises(pypto.ShapeError, match=r"\[4, 8\] has 32 elements, not \[5\]"):
        half_of_it_fails(DATA, out)
    assert (out == 1).all()


def test_bad_arguments() -> None:
    x = pypto.from_numpy(DATA)
    with pytest.raises(ValueError, match="derived from dynamic view, as a valid_shape is"):
        pypto.reshape(x, [32], valid_shape=[32], inplace=True)
    wrong: Any = 1
    with pytest.raises(TypeError, match="inplace must be True or False"):
        pypto.reshape(x, [32], inplace=wrong)


def test_a_shape_in_place_may_depend_on_a_dynamic_dimension() -> None:
    @pypto.jit
    def rows(x: pypto.Tensor[[pypto.DYNAMIC, 2, 8], F32], out: pypto.Tensor[[4, 8], F32]) -> None:
        pypto.set_vec_tile_shapes(8, 8)
        out[:] = pypto.reshape(x, [x.shape[0] * 2, 8], inplace=True)

    out = np.zeros((4, 8), np.float32)
    rows(DATA.reshape(2, 2, 8), out)
    np.testing.assert_array_equal(out, DATA)


def test_a_view_is_copied() -> None:
    @pypto.jit
    def copied(x: pypto.Tensor[[4, 8], F32], out: pypto.Tensor[[4, 8], F32]) -> None:
        pypto.set_vec_tile_shapes(8, 8)
        out[:] = x
        part = out[0:2]
        seen = pypto.reshape(part, [16], inplace=True)
        seen[:] = pypto.full([16], 9.0, F32)
        out[2:3] = pypto.reshape(seen, [2, 8])[0:1]

    out = np.zeros((4, 8), np.float32)
    copied(DATA, out)
    np.testing.assert_array_equal(out[[0, 1, 3]], DATA[[0, 1, 3]])
    assert (out[2] == 9).all()


def test_valid_elements_go_to_valid_elements() -> None:
    @pypto.jit
    def compact(x: pypto.Tensor[[2, 4, 8], F32], out: pypto.Tensor[[8, 8], F32]) -> None:
        pypto.set_vec_tile_shapes(8, 8, 8)
        part = pypto.view(x, [2, 4, 8], [0, 0, 0], valid_shape=[2, 3, 8])
        rows = pypto.reshape(part, [8, 8], valid_shape=[6, 8])
        again = pypto.reshape(rows * 2.0, [2, 4, 8], valid_shape=[2, 3, 8])
        pypto.assemble(pypto.reshape(again, [8, 8], valid_shape=[6, 8]), [0, 0], out)

    x = np.arange(64, dtype=np.float32).reshape(2, 4, 8)
    out = np.zeros((8, 8), np.float32)
    compact(x, out)
    np.testing.assert_array_equal(out[:6], 2 * x[:, :3].reshape(6, 8))
    assert not out[6:].any()


def test_all_of_a_tensor_takes_as_many_elements_of_another_shape() -> None:
    @pypto.jit
    def flat(x: pypto.Tensor[[4, 8], F32], out: pypto.Tensor[[2, 2, 8], F32]) -> None:
        pypto.set_vec_tile_shapes(8, 8)
        out.move(x * 2.0)

    @pypto.jit
    def part(x: pypto.Tensor[[4, 8], F32], out: pypto.Tensor[[2, 2, 8], F32]) -> None:
        out.move(pypto.view(x, [4, 8], [0, 0], valid_shape=[3, 8]))

    out = np.zeros((2, 2, 8), np.float32)
    flat(DATA, out)
    np.testing.assert_array_equal(out.reshape(4, 8), DATA * 2)
    with pytest.raises(ValueError, match=r"has shape \[2, 2, 8\]; what is written"):
        part(DATA, out)
