"""Paddle's promotion of arrays: their dtype, and both of them in it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pypto_cast.dialects import paddle


@pytest.mark.parametrize(
    ("x", "y", "wanted"),
    [
        (np.ones(2, np.float16), np.ones(2, np.float32), "float32"),
        (np.ones(2, ">f2"), np.ones((), np.float32), "float16"),
        (np.ones((), np.float16), np.ones((), ml_dtypes.bfloat16), "float32"),
        (np.ones(2, np.uint16), "float16", "float32"),
        (np.ones(2, np.int32), 1.5, "float32"),
        (SimpleNamespace(dtype="paddle.int8", shape=[3]), ("int64", ()), "int8"),
        (SimpleNamespace(dtype="float16", shape=[]), 1.0, "float16"),
    ],
    ids=lambda value: str(getattr(value, "dtype", value)),
)
def test_anything_with_a_dtype(x: object, y: object, wanted: str) -> None:
    assert paddle.promote_dtype("add", x, y) == wanted
    assert paddle.result_dtype("equal", x, y) == "bool"


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed (extra torch)")
    x, y = torch.ones(2, dtype=torch.bfloat16), torch.ones((), dtype=torch.float32)
    assert paddle.promote_dtype("add", x, y) == "bfloat16"
    assert paddle.promote_dtype("floor_divide", x, y) == "float32"


def test_arrays_that_are_refused() -> None:
    with pytest.raises(TypeError, match="different data type x: int32, y: float32"):
        paddle.promote_dtype("add", np.ones(2, np.int32), np.ones(2, np.float32))


def test_promoted_operands() -> None:
    x, y = np.float16([[1.5, -0.0]]), np.array([[2.0**-149, np.inf]], np.float32)
    left, right = paddle.promote_operands("add", x, y)
    np.testing.assert_array_equal(left.view("u4"), [[0x3FC00000, 0x80000000]], strict=False)
    np.testing.assert_array_equal(right, y, strict=True)
    for given, got in ((x, left), (y, right)):
        assert not np.shares_memory(given, got)
        assert got.flags.writeable


@pytest.mark.parametrize(
    ("op", "x", "y", "wanted"),
    [
        ("add", np.int32([7]), 1.5, (np.float32([7]), np.float32(1.5))),
        ("add", 300, np.int8([1]), (np.int8(44), np.int8([1]))),
        ("add", np.float32([1]), 1j, (np.complex64([1]), np.complex64(1j))),
        ("paddle.pow", np.int32([2]), 1.5, (np.int32([2]), np.int32(1))),
        ("add", np.zeros((0, 2), bool), 1, (np.zeros((0, 2), np.int64), np.int64(1))),
    ],
    ids=str,
)
def test_scalars_become_arrays_of_rank_0(op: str, x: Any, y: Any, wanted: tuple[Any, Any]) -> None:
    for got, value in zip(paddle.promote_operands(op, x, y), wanted, strict=True):
        np.testing.assert_array_equal(got, np.asarray(value), strict=True)


def test_the_documents_cells() -> None:
    x, y = np.complex64([1j]), np.float64([1])
    for rules, dtype in (("3.3", np.complex128), ("doc", np.complex64)):
        for got in paddle.promote_operands("add", x, y, rules=rules):
            assert got.dtype == dtype


@pytest.mark.parametrize("operand", ["float32", ("float32", (2,)), [1.0], np.float32(1), None])
def test_no_operands(operand: Any) -> None:
    with pytest.raises(TypeError, match="y must be a Tensor, an array or a Python scalar, not"):
        paddle.promote_operands("add", np.ones(2, np.float32), operand)
    with pytest.raises(TypeError, match="x must be a Tensor"):
        paddle.promote_operands("add", operand, 1.0)
