"""Operands that operations take and refuse, before anything is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pypto_cast as pypto
from pypto_cast.operations.operation_rows import ROWS
from pypto_cast.tensors.tensor import Tensor
from tiling.chips import A2_A3

FLOATS = {"DT_FP32", "DT_FP16", "DT_BF16"}
NUMBERS = FLOATS | {"DT_INT32", "DT_INT16"}
BITS = {"DT_INT8", "DT_INT16", "DT_INT32", "DT_UINT8", "DT_UINT16", "DT_UINT32"}
COMPARED = {"DT_FP32", "DT_FP16"}

# Typed in from upstream's lists of supported types (framework/src/interface/operation/vector).
TAKEN: dict[str, tuple[int, set[str]]] = {
    **dict.fromkeys(("add", "sub", "mul", "div", "maximum", "minimum"), (2, NUMBERS)),
    **dict.fromkeys(("neg", "relu", "round", "floor", "ceil", "trunc"), (1, NUMBERS)),
    **dict.fromkeys(("abs", "exp", "log", "sqrt", "rsqrt", "reciprocal"), (1, FLOATS)),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "greater"), (2, COMPARED)),
    "clip": (3, NUMBERS),
    "logical_not": (1, FLOATS | BITS | {"DT_BOOL"}),
    "logical_and": (2, FLOATS | {"DT_INT8", "DT_INT16", "DT_INT32", "DT_UINT8", "DT_BOOL"}),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), (2, BITS)),
    "bitwise_not": (1, BITS | {"DT_BOOL"}),
    **{f"bitwise_{side}_shift": (2, {"DT_INT16", "DT_UINT16"}) for side in ("left", "right")},
    "sigmoid": (1, FLOATS),
}
REDUCED = {"amax": NUMBERS, "amin": NUMBERS, "sum": NUMBERS - {"DT_FP16"}}
HELD = [d for d in pypto.DataType if d.format is not None and d is not pypto.DT_DOUBLE]


@pytest.fixture(autouse=True)
def tile() -> Iterator[None]:
    with pypto.options(vec_tile_shapes=(8, 32)):
        yield


def ones(dtype: pypto.DataType, shape: tuple[int, ...] = (4, 32)) -> Tensor:
    assert dtype.format is not None
    return pypto.tensor(list(shape), dtype, data=np.ones(shape, dtype.format.dtype))


@pytest.mark.parametrize("name", TAKEN)
def test_dtypes(name: str) -> None:
    count, taken = TAKEN[name]
    operation: Callable[..., Tensor] = getattr(pypto, name)
    for dtype in HELD:
        operands = [ones(dtype) for _ in range(count)]
        if dtype.name in taken:
            result = operation(*operands)
            truth = name in {"eq", "ne", "lt", "le", "gt", "ge", "greater"} or "logical" in name
            truth |= name == "bitwise_not" and dtype is pypto.DT_BOOL
            integral = dtype.name not in FLOATS
            wanted = pypto.DT_BOOL if truth else dtype
            assert result.dtype is (pypto.DT_FP32 if name == "div" and integral else wanted), dtype
            assert result.shape == [4, 32]
        else:
            with pytest.raises(TypeError, match=f"takes .*not {dtype}"):
                operation(*operands)


@pytest.mark.parametrize("name", REDUCED)
def test_dtypes_of_reductions(name: str) -> None:
    for dtype in HELD:
        if dtype.name in REDUCED[name]:
            assert getattr(pypto, name)(ones(dtype), -1).dtype is dtype
        else:
            with pytest.raises(TypeError, match=f"takes .*not {dtype}"):
                getattr(pypto, name)(ones(dtype), -1)


def test_the_table_says_what_upstream_takes() -> None:
    listed = {n: {d.name for d in row.dtypes.get(A2_A3, ())} for n, row in ROWS.items()}
    for name in ("add", "maximum", "relu", "abs", "exp", "eq", "bitwise_and", "logical_and"):
        assert listed[name] == TAKEN[name][1], name


def test_two_dtypes_are_refused() -> None:
    with pytest.raises(TypeError, match=r"one dtype, not DT_FP32 and DT_FP16; cast one"):
        pypto.add(ones(pypto.DT_FP32), ones(pypto.DT_FP16))
    with pytest.raises(TypeError, match=r"div takes tensors of one dtype, not DT_INT32 and"):
        pypto.div(ones(pypto.DT_INT32), ones(pypto.DT_FP32))


@pytest.mark.parametrize(
    ("shapes", "result"),
    [
        (((4, 32), (4, 32)), [4, 32]),
        (((4, 1), (1, 32)), [4, 32]),
        (((32,), (4, 32)), [4, 32]),
        (((4, 32), (1,)), [4, 32]),
    ],
)
def test_shapes_broadcast(shapes: tuple[tuple[int, ...], ...], result: list[int]) -> None:
    a, b = (pypto.from_numpy(np.arange(np.prod(s), dtype=np.float32).reshape(s)) for s in shapes)
    total = a - b
    assert total.shape == result
    assert (total.numpy() == a.numpy() - b.numpy()).all()


def test_shapes_that_do_not_broadcast() -> None:
    with pytest.raises(pypto.ShapeError, match=r"add: shapes \[4, 32\], \[3, 32\] do not broadcas"):
        ones(pypto.DT_FP32) + ones(pypto.DT_FP32, (3, 32))
    with pytest.raises(pypto.ShapeError, match="as many dimensions each"):
        pypto.where(ones(pypto.DT_BOOL), ones(pypto.DT_FP32), ones(pypto.DT_FP32, (32,)))


def test_a_shape_that_is_too_large_is_not_said_to_be_unlike_another() -> None:
    x = pypto.tensor([2**63, 2], pypto.DT_FP32)
    with pytest.raises(pypto.ShapeError, match="exp takes at most 2147483647 elements; shape"):
        pypto.exp(x)


def test_a_tile_that_is_too_short() -> None:
    with (
        pypto.options(vec_tile_shapes=(32,)),
        pytest.raises(pypto.TileShapeError, match=r"add: tile shape \[32\] has 1 .* at least 2"),
    ):
        ones(pypto.DT_FP32) + 1.0


def test_more_entries_than_dimensions_count_from_the_first() -> None:
    with pypto.options(vec_tile_shapes=(1, 64, 1, 64)):
        assert (ones(pypto.DT_FP32) + 1.0).shape == [4, 32]
        with pytest.raises(pypto.TileShapeError, match="needs exactly 2"):
            pypto.transpose(ones(pypto.DT_FP32), 0, 1)


@pytest.mark.parametrize(
    ("tile", "fits"), [((128, 128), True), ((128, 136), False), ((192, 128), False)]
)
def test_inputs_and_output_fit_ub(tile: tuple[int, int], fits: bool) -> None:
    """Two inputs and an output of FP32: 128 * 128 elements are 3 * 65536 = 196608 B."""
    x, y = ones(pypto.DT_FP32, (256, 256)), ones(pypto.DT_FP32, (256, 256))
    with pypto.options(vec_tile_shapes=tile):
        if fits:
            pypto.add(x, y)
        else:
            with pytest.raises(pypto.TileShapeError, match=r"add: inputs, output and scratch .* B"):
                pypto.add(x, y)
        pypto.add(x, x)  # one input, charged once


def test_auto_cast_counts_in_fp32() -> None:
    x, y = ones(pypto.DT_BF16, (256, 256)), ones(pypto.DT_BF16, (256, 256))
    with pypto.options(vec_tile_shapes=(128, 136)):
        with pytest.raises(pypto.TileShapeError):
            pypto.add(x, y)
        pypto.bitwise_and(ones(pypto.DT_INT16, (256, 256)), 1)


def test_scratch_counts() -> None:
    x = ones(pypto.DT_FP32, (256, 256))
    with pypto.options(vec_tile_shapes=(128, 160)):
        pypto.eq(x, 1.0)
    with pypto.options(vec_tile_shapes=(128, 192)):  # 98304 + 24576 and 12480 B; once more is 2 x
        pypto.eq(x, 1.0)
    y = ones(pypto.DT_FP32, (256, 256))
    with (
        pypto.options(vec_tile_shapes=(128, 176)),  # 180224 + 22528 B
        pytest.raises(pypto.TileShapeError, match="eq: inputs"),
    ):
        pypto.eq(x, y)


@pytest.mark.parametrize(
    ("attempt", "error", "text"),
    [
        (lambda x, i: x + "1", TypeError, "add takes tensors and Python numbers, not '1'"),
        (lambda x, i: i + 1.5, TypeError, "float 1.5 beside a tensor of DT_INT32"),
        (lambda x, i: i + 2**31, OverflowError, "DT_INT32 holds -2147483648 to 2147483647"),
        (
            lambda x, i: pypto.minimum(i, 10**400),
            OverflowError,
            "-2147.* to 2147.*, not an int of 13",
        ),
        (lambda x, i: x * 10**400, OverflowError, "mul: .* does not hold an int of 1329 bits"),
        (lambda x, i: x * 1e300, OverflowError, r"passed as FP32, which does not hold 1e\+300"),
        (lambda x, i: pypto.sub(1.0, x), TypeError, "sub takes a pypto Tensor, not builtins.float"),
        (lambda x, i: pypto.maximum(1.0, 2.0), TypeError, "maximum takes a pypto Tensor"),
        (lambda x, i: x > 1, TypeError, "gt: upstream compares with floats, not ints; write 1.0"),
        (lambda x, i: pypto.bitwise_and(i, 1.0), TypeError, "takes tensors and ints, not 1.0"),
        (lambda x, i: pypto.clip(x, 0.0, x), TypeError, "two tensors or two numbers as bounds"),
        (lambda x, i: pypto.where(x, x, x), TypeError, "where takes DT_BOOL, not DT_FP32"),
        (
            lambda x, i: pypto.where(x > 1.0, i, 0.0),
            TypeError,
            "data type inconsistent, DT_INT32 and DT_FP",
        ),
        (lambda x, i: pypto.sum(x, 2), ValueError, "sum: dimension 2 of 2; -2 to 1"),
        (lambda x, i: pypto.sum(x, (0, 1)), TypeError, "one dimension as an int"),
        (lambda x, i: pypto.round(x, 1.0), TypeError, "decimals must be an int"),
        (lambda x, i: pypto.add(np.ones(3), x), TypeError, "add takes a pypto Tensor, not numpy"),
        (lambda x, i: pypto.add(pypto.tensor([-1, 4]), 1.0), pypto.ShapeError, "each known"),
    ],
)
def test_bad_operands(attempt: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        attempt(ones(pypto.DT_FP32), ones(pypto.DT_INT32))


def test_an_nz_tensor_is_refused() -> None:
    x = pypto.tensor([16, 16], pypto.DT_FP32, format=pypto.TileOpFormat.TILEOP_NZ)
    with pytest.raises(ValueError, match="add takes tensors in TILEOP_ND, not TILEOP_NZ"):
        x + 1.0


def test_a_kernel_on_the_npu_refuses_arithmetic() -> None:
    from pypto_cast.options.context import running_on

    with running_on(pypto.RunMode.NPU), pytest.raises(RuntimeError, match="launches casts alone"):
        ones(pypto.DT_FP32) + 1.0


def test_operands_are_not_modified() -> None:
    data = np.arange(32, dtype=np.float32).reshape(1, 32)
    x = pypto.from_numpy(data)
    x + x
    pypto.exp(x)
    x.sum(-1)
    assert (data == np.arange(32)).all()


def test_declared_tensors_give_declared_tensors() -> None:
    x = pypto.tensor([4, 32], pypto.DT_BF16)
    for result, shape in ((x + x, [4, 32]), (x.sum(-1), [4]), (x.transpose(0, 1), [32, 4])):
        assert (result.shape, result.dtype, result.has_data) == (shape, pypto.DT_BF16, False)


def test_big_endian_arrays_are_taken() -> None:
    x = pypto.from_numpy(np.arange(32, dtype=">f4"))
    assert (pypto.add(x, 1.0).numpy() == np.arange(1, 33)).all()


def test_a_bf16_scalar_is_not_rounded_to_bf16() -> None:
    x = pypto.tensor([32], pypto.DT_BF16, data=np.full(32, 256, ml_dtypes.bfloat16))
    assert x.mul(1.00390625).numpy()[0] == ml_dtypes.bfloat16(257.0)
