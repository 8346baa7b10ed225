"""Paddle's promotion: 0-d Tensors, functions beside operators, spellings, refused arguments."""

from __future__ import annotations

import re
import sys
from subprocess import run

import ml_dtypes
import numpy as np
import pytest
from test_paddle_promotion import REFUSED, answer

from pypto_cast.dialects import paddle

# --- 0-d Tensors, functions, and other spellings ------------------------------------------------


@pytest.mark.parametrize(
    ("op", "x", "y", "wanted"),
    [
        ("add", ("float32", (1, 2)), ("float64", ()), "float32"),
        ("add", ("float64", ()), ("float32", (1, 2)), "float32"),
        ("add", ("int32", (1, 2)), ("float16", ()), "float16"),
        ("add", ("uint8", ()), ("int8", ()), "int16"),
        ("floor_divide", ("float16", (2,)), ("float32", ()), "float32"),
        ("maximum", ("float16", (2,)), ("float32", ()), "float32"),
        ("maximum", ("int32", (2,)), ("int64", ()), REFUSED.format("int32", "int64")),
        ("where", ("int32", (2,)), ("int64", ()), REFUSED.format("int32", "int64")),
        ("divide", ("bool", (2,)), ("int8", ()), "float32"),
        ("mse_loss", ("float16", (2,)), ("float32", ()), "float16"),
        ("l1_loss", ("float16", ()), ("float32", (2,)), "float32"),
        ("huber_loss", ("int32", ()), ("float16", ()), REFUSED.format("int32", "float16")),
        ("poisson_nll_loss", ("int32", ()), ("int64", ()), "float32"),
        ("add", ("float16", ()), 1.0, "float16"),
        ("divide", ("complex128", ()), 1j, "complex64"),
        ("add", ("complex128", ()), 1j, "complex128"),
        ("add", ("float16", (0,)), ("float32", (1,)), "float32"),
    ],
)
def test_zero_dim(op: str, x: object, y: object, wanted: str) -> None:
    assert answer(op, x, y) == wanted


@pytest.mark.parametrize(
    ("op", "x", "y", "wanted"),
    [
        ("paddle.floor_divide", "int32", 1, "int64"),
        ("paddle.floor_divide", "bfloat16", 1.0, "float32"),
        ("paddle.pow", "int32", 1.5, "int32"),
        ("pow", "int32", 1.5, "float32"),
        ("paddle.mod", "int32", 1.5, "int32"),
        ("%", "int32", 1.5, "float32"),
        ("where", "bfloat16", 1.0, "float32"),
        ("where", "int32", 1, REFUSED.format("int32", "int64")),
        ("where", 1.0, 2.0, "float32"),
        ("paddle.equal", "bfloat16", 1.0, "bfloat16"),
        ("&", 1, "uint8", "uint8"),
        ("&", 1.5, "uint8", "unsupported operand type(s) for |: 'float' and 'Tensor'"),
        (
            "paddle.pow",
            "float32",
            1j,
            "y must be scalar, Tensor(in dygraph mode), Value(in pir mode) "
            "but received: <class 'complex'>",
        ),
    ],
)
def test_functions_and_scalars(op: str, x: object, y: object, wanted: str) -> None:
    assert answer(op, x, y) == wanted


@pytest.mark.parametrize(
    ("op", "x", "y", "text"),
    [
        ("paddle.add", "int32", 1, "add(): argument 'y' (position 1) must be Tensor, but got int"),
        ("paddle.add", 1.0, "int32", "add(): argument 'x' (position 0) must be Tensor, but got fl"),
        ("paddle.pow", 2, "int32", "elementwise_pow(): argument 'x' (position 0) must be Tensor"),
        ("paddle.mod", "int32", 1j, "remainder(): argument 'y' (position 1) must be Tensor, but g"),
        ("logical_and", "bool", True, "logical_and(): argument 'y' (position 1) must be Tensor"),
        ("&", "uint8", 1, "bitwise_and(): argument 'y' (position 1) must be Tensor, but got int"),
        ("huber_loss", "float32", 1.0, "huber_loss(): argument 'label' (position 1) must be Tens"),
        ("mse_loss", "float32", 1.0, "subtract(): argument 'y' (position 1) must be Tensor, but "),
        ("&", "int32", "int64", "The type of data we are trying to retrieve (int64) does not mat"),
    ],
)
def test_refused_by_value_error(op: str, x: object, y: object, text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(f'(InvalidArgument) {text}')}"):
        paddle.promote_dtype(op, x, y)


@pytest.mark.parametrize(
    "op", ["mod", "__mod__", "%", "paddle.remainder", "paddle.Tensor.mod", "remainder"]
)
def test_names_of_an_api(op: str) -> None:
    assert paddle.promote_dtype(op, "float16", "float32") == "float32"


def test_names_of_a_loss() -> None:
    for op in ("mse_loss", "paddle.nn.functional.mse_loss"):
        assert paddle.promote_dtype(op, "float16", "float32") == "float32"


class PaddleDtype:
    def __str__(self) -> str:
        return "paddle.bfloat16"


@pytest.mark.parametrize(
    "given",
    ["bfloat16", "BFLOAT16", "paddle.bfloat16", PaddleDtype(), ml_dtypes.bfloat16, "uint16"],
    ids=["bfloat16", "upper-case", "qualified", "paddle-object", "ml_dtypes", "uint16"],
)
def test_names_of_a_dtype(given: object) -> None:
    assert paddle.promote_dtype("add", given, "bfloat16") == "bfloat16"
    assert paddle.promote_dtype("add", (given, (2,)), np.dtype(">f2")) == "float32"


# --- Refused arguments --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "x", "y", "kind", "text"),
    [
        ("matmul", "float32", "float32", ValueError, "no binary API that promotes is named 'matm"),
        (7, "float32", "float32", TypeError, "op must be the name of a Paddle API"),
        (
            "add",
            "fp15",
            "float32",
            TypeError,
            "data type 'fp15' not understood (did you mean float16?); known are bfloat16",
        ),
        ("add", None, "float32", TypeError, "data type None not understood"),
        ("add", "uint32", "float32", ValueError, "Not supported numpy dtype uint32; known are"),
        (
            "add",
            np.float32(1),
            "float32",
            TypeError,
            "x must be a Tensor, an array, the name of a ",
        ),
        ("add", "float32", np.ones(2, np.uint32), ValueError, "Not supported numpy dtype uint32"),
        ("add", float, "float32", TypeError, "x must be a Tensor, an array, the name of a dtype"),
        ("add", ("float32",), "float32", TypeError, "x must be (dtype, shape), not a tuple of 1"),
        ("add", ("float32", 3), "float32", TypeError, "the shape of x must be a tuple of ints"),
        ("add", ("float32", (1.5,)), "float32", TypeError, "the shape of x must be a tuple of in"),
        ("add", ("float32", (True,)), "float32", TypeError, "the shape of x must be a tuple of i"),
        ("add", "float32", ("float32", (-1,)), ValueError, "the shape of y has a negative length"),
        ("add", 1, 2.0, TypeError, "one operand of '+' must be a Tensor, but both are Python sc"),
    ],
)
def test_refused_arguments(op: str, x: object, y: object, kind: type, text: str) -> None:
    with pytest.raises(kind) as raised:
        paddle.promote_dtype(op, x, y)
    assert str(raised.value).startswith(text)


def test_two_scalars_have_no_cell_in_the_document() -> None:
    with pytest.raises(TypeError, match="both are Python scalars"):
        paddle.promote_dtype("where", 1, 2, rules="doc")


def test_unknown_rules() -> None:
    for ask in (
        lambda: paddle.tensor_tensor_table("2.6"),
        lambda: paddle.promote_dtype("add", "int8", "int8", rules="2.6"),
        lambda: paddle.result_dtype("add", "int8", "int8", rules="2.6"),
    ):
        with pytest.raises(ValueError, match=r"rules must be one of .*, not '2.6'"):
            ask()


@pytest.mark.slow
def test_paddle_is_not_imported() -> None:
    code = "import sys, pypto_cast.dialects.paddle; sys.exit('paddle' in sys.modules)"
    assert run([sys.executable, "-c", code], check=False).returncode == 0
