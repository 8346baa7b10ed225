"""Errors say what was asked, what was found and what would do, before anything is computed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pypto_cast as pypto
from pypto_cast.operations.operation_rows import ROWS
from pypto_cast.tensors.tensor import Tensor
from simulator import arithmetic

FP32, FP16, BF16 = pypto.DT_FP32, pypto.DT_FP16, pypto.DT_BF16
INT8, INT32, BOOL = pypto.DT_INT8, pypto.DT_INT32, pypto.DT_BOOL


def ones(dtype: pypto.DataType, *shape: int) -> Tensor:
    assert dtype.format is not None
    shape = shape or (4, 32)
    return pypto.tensor(list(shape), dtype, data=np.ones(shape, dtype.format.dtype))


@pytest.fixture(autouse=True)
def computes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def compute(*_: object, **__: object) -> None:
        raise AssertionError("something was computed")

    for name in ("evaluate", "reduce"):
        monkeypatch.setattr(arithmetic, name, compute)


# Asked, found, and what would do.
Words = tuple[str, ...]

DTYPES: dict[str, tuple[Callable[[], object], Words]] = {
    "sum of FP16": (lambda: pypto.sum(ones(FP16), -1), ("sum", "DT_FP16", "DT_BF16", "cast it")),
    "sum of INT8": (lambda: pypto.sum(ones(INT8), -1), ("sum", "DT_INT8", "DT_INT32", "cast it")),
    "exp of INT32": (lambda: pypto.exp(ones(INT32)), ("exp", "DT_INT32", "DT_FP32", "cast it")),
    "eq of BF16": (lambda: pypto.eq(ones(BF16), 1.0), ("eq", "DT_BF16", "DT_FP32", "cast it")),
    "shift of INT32": (
        lambda: pypto.bitwise_left_shift(ones(INT32), 1),
        ("bitwise_left_shift", "DT_INT32", "DT_INT16", "cast it"),
    ),
    "two dtypes": (lambda: ones(FP32) + ones(BF16), ("add", "DT_FP32 and DT_BF16", "cast one")),
    "softmax of INT32": (lambda: pypto.softmax(ones(INT32), -1), ("softmax", "DT_INT32", "cast")),
    "concat": (lambda: pypto.concat([ones(FP32), ones(FP16)]), ("concat", "and DT_FP16", "cast")),
    "dequantize": (
        lambda: pypto.dequantize(ones(FP32), ones(FP32, 4), FP32, -1),
        ("dequantize", "DT_FP32", "DT_INT8", "cast it"),
    ),
}
SHAPES: dict[str, tuple[Callable[[], object], Words]] = {
    "add": (lambda: ones(FP32) + ones(FP32, 3, 32), ("add", "[4, 32], [3, 32]", "equal lengths")),
    "where": (
        lambda: pypto.where(ones(BOOL), ones(FP32), ones(FP32, 32)),
        ("where", "[32]", "as many dimensions"),
    ),
    "concat": (lambda: pypto.concat([ones(FP32), ones(FP32, 4, 31)]), ("concat", "[4, 31]", "0")),
    "reshape": (lambda: pypto.reshape(ones(FP32), [3, 7]), ("reshape", "128", "[3, 7]")),
    "expand": (lambda: pypto.expand_clone(ones(FP32), [4, 33]), ("[4, 32]", "[4, 33]", "equal")),
    "gamma": (
        lambda: pypto.rms_norm(ones(FP32), ones(FP32, 31)),
        ("rms_norm", "gamma", "[31]", "needs 32"),
    ),
    "scales": (
        lambda: pypto.quantize(ones(FP32), ones(FP32, 32), INT8, -1),
        ("quantize", "[32]", "[4]"),
    ),
    "negative": (lambda: pypto.full([4, -1], 1.0, FP32), ("full", "[4, -1]", "no negative")),
    "five dimensions": (lambda: pypto.zeros(1, 1, 1, 1, 2), ("zeros", "has 5", "1 to 4")),
}
DIMENSIONS: dict[str, tuple[Callable[[], object], Words]] = {
    "sum": (lambda: pypto.sum(ones(FP32), 2), ("sum", "dimension 2 of 2", "-2 to 1")),
    "softmax": (lambda: pypto.softmax(ones(FP32), -3), ("softmax", "dimension -3", "-2 to 1")),
    "transpose": (lambda: pypto.transpose(ones(FP32), 0, 5), ("transpose", "5 of 2", "-2 to 1")),
    "quantize": (
        lambda: pypto.quantize(ones(FP32), ones(FP32, 4), INT8, -3),
        ("quantize", "-3", "the last axis or the one before"),
    ),
}


@pytest.mark.parametrize(
    ("error", "attempts"),
    [(TypeError, DTYPES), (pypto.ShapeError, SHAPES), (ValueError, DIMENSIONS)],
    ids=["dtypes", "shapes", "dimensions"],
)
def test_an_error_says_what_was_asked_found_and_would_do(
    error: type[Exception], attempts: dict[str, tuple[Callable[[], object], Words]]
) -> None:
    with pypto.options(vec_tile_shapes=(8, 32)):
        for name, (attempt, words) in attempts.items():
            with pytest.raises(error) as caught:
                attempt()
            missing = [word for word in words if word not in str(caught.value)]
            assert not missing, f"{name}: {caught.value} does not say {missing}"


@pytest.mark.parametrize("dim", [None, 1.0, True, (0, 1)])
@pytest.mark.parametrize("name", ["sum", "amax", "amin", "softmax"])
def test_one_dimension_is_an_int(name: str, dim: Any) -> None:
    with (
        pypto.options(vec_tile_shapes=(8, 32)),
        pytest.raises(TypeError, match=f"{name} takes one dimension as an int, not"),
    ):
        getattr(pypto, name)(ones(FP32), dim)


TILE = 256 * 256 * 4
BIG = (256, 256)
UB: dict[str, tuple[Callable[[Tensor], object], int]] = {
    "add": (lambda x: x + ones(FP32, *BIG), 3 * TILE),
    "mul": (lambda x: x * x, 2 * TILE),
    "exp": (pypto.exp, 2 * TILE),
    "eq": (lambda x: x.__eq__(ones(FP32, *BIG)), 2 * TILE + TILE // 4 + 12_480),
    "where": (
        lambda x: pypto.where(ones(BOOL, *BIG), x, ones(FP32, *BIG)),
        3 * TILE + TILE // 4 + 12_448,
    ),
    "logical_not": (pypto.logical_not, TILE + TILE // 4 + 20_768),
    "bitwise_xor": (lambda x: pypto.bitwise_xor(ones(INT32, *BIG), ones(INT32, *BIG)), 4 * TILE),
    "sum": (lambda x: pypto.sum(x, -1), TILE + 256 * 32 + 256 * 256 * 2),
    "sum of columns": (lambda x: pypto.sum(x, 0), TILE + 256 * 4 + TILE // 2),
    "amax": (lambda x: pypto.amax(x, 0), TILE + 256 * 4),
    "full": (lambda x: pypto.full([256, 256], 1.0, FP32), TILE),
    "expand_clone": (lambda x: pypto.expand_clone(ones(FP32, 256, 1), list(BIG)), TILE + 256 * 32),
    "clone": (pypto.clone, TILE),
    "concat": (lambda x: pypto.concat([x, x]), TILE),
}


@pytest.mark.parametrize("name", UB)
def test_inputs_output_and_scratch_of_an_operation_fit_ub(name: str) -> None:
    """Upstream charges each input and output once; scratch is in the sources of its operations."""
    attempt, needed = UB[name]
    text = rf"^{name.split()[0]}: .* take {needed} B of UB; it has 196608 B; \[\d+, \d+\] fits"
    with (
        pypto.options(vec_tile_shapes=(512, 512)),
        pytest.raises(pypto.TileShapeError, match=text) as caught,
    ):
        attempt(ones(FP32, *BIG))
    fits = [int(n) for n in str(caught.value).split("[")[-1].split("]")[0].split(",")]
    with (
        pypto.options(vec_tile_shapes=tuple(fits)),
        contextlib.suppress(AssertionError),  # it computes
    ):
        attempt(ones(FP32, *BIG))


@pytest.mark.parametrize("name", ["shmem_put", "mean"])
def test_an_operation_outside_the_table_is_named(name: str) -> None:
    assert name not in ROWS
    x = ones(FP32)
    for found in (lambda: getattr(pypto, name), lambda: getattr(x, name)):
        with pytest.raises(AttributeError, match=f"has no '{name}'.* upstream pypto"):
            found()


def test_a_kernel_that_is_refused_writes_nothing() -> None:
    @pypto.jit
    def kernel(
        x: pypto.Tensor[[4, 32], FP32],
        out: pypto.Tensor[[4, 32], FP32],
        total: pypto.Tensor[[4, 1], FP16],
    ) -> None:
        pypto.set_vec_tile_shapes(8, 32)
        out[:] = pypto.full([4, 32], 3.0, FP32)
        total[:] = pypto.sum(pypto.cast(x, FP16), -1, True)

    x, out = np.ones((4, 32), np.float32), np.zeros((4, 32), np.float32)
    with pytest.raises(TypeError, match=r"sum takes DT_FP32, .* not DT_FP16; cast it first"):
        kernel(x, out, np.zeros((4, 1), np.float16))
    assert not out.any()
    assert (x == 1).all()


@pytest.mark.parametrize("kind", [pypto.error.PyptoError, OverflowError])
@pytest.mark.parametrize("dtype", [pypto.DT_UINT8, pypto.DT_UINT16, pypto.DT_UINT32])
def test_negative_numbers_of_unsigned_dtypes_are_upstreams_errors(
    dtype: pypto.DataType, kind: type[Exception]
) -> None:
    condition, x = pypto.tensor([4], pypto.DT_BOOL), pypto.tensor([4], dtype)
    for number in (-1, pypto.Element(dtype, -1)):
        for give in (
            lambda value: pypto.where(condition, x, value),
            lambda value: pypto.where(condition, value, x),
            lambda value: pypto.full([4], value, dtype),
        ):
            with pytest.raises(kind, match="not the negative number -1"):
                give(number)


@pytest.mark.parametrize("kind", [pypto.error.PyptoError, TypeError])
def test_branches_of_two_dtypes_are_upstreams_error(kind: type[Exception]) -> None:
    x, y = pypto.tensor([4], pypto.DT_FP16), pypto.tensor([4], pypto.DT_FP32)
    with pytest.raises(kind, match="data type inconsistent, DT_FP16 and DT_FP32"):
        pypto.where(pypto.tensor([4], pypto.DT_BOOL), x, y)
