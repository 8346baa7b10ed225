"""The Paddle dialect against the installed paddlepaddle, operation by operation.

A dtype for which Paddle's CPU build has no kernel shows in the message that says so: the dtype the
operands were promoted to. NaN is compared as a class; floats beyond an integer dtype are left out.
"""

from __future__ import annotations

import operator
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.numbers.framework_casts import check
from test_paddle_cast import (
    COMPLEX,
    FLOATS,
    INTS,
    NUMPY,
    REALS,
    assert_same,
    complex_source,
    source,
)

from pypto_cast.dialects import paddle as dialect
from pypto_cast.dtypes.names import format_named

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    paddle = pytest.importorskip("paddle", reason="paddlepaddle is not installed (extra oracles)")

paddle.disable_signal_handler()
if not paddle.__version__.startswith("3.3."):
    pytest.skip(
        f"the rules are those of Paddle 3.3, not {paddle.__version__}", allow_module_level=True
    )

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
BITWISE: dict[str, Callable[[Any, Any], Any]] = {
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
FUNCTIONS = [
    *("add", "subtract", "multiply", "divide", "floor_divide", "pow", "remainder", "mod"),
    *("equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal"),
    *("logical_and", "logical_or", "logical_xor", "where", "fmax", "fmin", "maximum", "minimum"),
    "nextafter",
]
NO_KERNEL = re.compile(r"^\(NotFound\) The kernel with key \(CPU, \S+, (\w+)\) of kernel.*$")
SCALARS: tuple[complex, ...] = (True, 1, 1.5, 1j)


def tensor(dtype: str, shape: tuple[int, ...]) -> Any:
    return paddle.ones(shape, dtype="float32").astype(dtype)


def of(operand: Any) -> Any:
    """Paddle's operand for the dialect's."""
    return tensor(*operand) if isinstance(operand, tuple) else operand


def tensor_pairs(*shapes: tuple[int, ...]) -> Iterator[tuple[Any, Any]]:
    for x in dialect.DTYPES:
        for y in dialect.DTYPES:
            for x_shape in shapes:
                for y_shape in shapes:
                    yield (x, x_shape), (y, y_shape)


def scalar_pairs() -> Iterator[tuple[Any, Any]]:
    for dtype in dialect.DTYPES:
        for shape in ((1, 2), ()):
            for scalar in SCALARS:
                yield (dtype, shape), scalar
                yield scalar, (dtype, shape)


ALL_PAIRS = [*tensor_pairs((1, 2), ()), *scalar_pairs()]


def first_sentence(error: Exception) -> str:
    return str(error).split(" (at ")[0].splitlines()[0]


def paddles(compute: Callable[[Any, Any], Any], x: Any, y: Any) -> str:
    """The result's dtype, the dtype without a kernel, or the refusal."""
    try:
        return str(compute(of(x), of(y)).dtype).removeprefix("paddle.")
    except (TypeError, ValueError) as error:
        return first_sentence(error)
    except RuntimeError as error:
        return NO_KERNEL.sub(r"no kernel: \1", first_sentence(error))


def ours(op: str, x: Any, y: Any, *, missing: bool) -> str:
    """The same from the dialect, of operands where Paddle has no kernel."""
    try:
        if missing:
            return f"no kernel: {dialect.promote_dtype(op, x, y)}"
        return dialect.result_dtype(op, x, y)
    except (TypeError, ValueError) as error:
        return str(error)


def differences(
    op: str, compute: Callable[[Any, Any], Any], pairs: list[tuple[Any, Any]]
) -> list[tuple[Any, ...]]:
    found = []
    for x, y in pairs:
        wanted = paddles(compute, x, y)
        got = ours(op, x, y, missing=wanted.startswith("no kernel"))
        if got != wanted:
            found.append((x, y, got, wanted))
    return found


@pytest.mark.parametrize("op", OPERATORS)
def test_operators(op: str) -> None:
    """Every pair of dtypes, of Tensors, 0-d Tensors and scalars on either side."""
    assert len(ALL_PAIRS) == 768
    assert differences(op, OPERATORS[op], ALL_PAIRS) == []


@pytest.mark.parametrize("op", BITWISE)
def test_bitwise_operators(op: str) -> None:
    """Two dtypes never meet: a kernel of integers refuses its x; floats have no kernel at all."""
    mixed = [pair for pair in tensor_pairs((1, 2), ()) if pair[0][0] != pair[1][0]]
    rest = [pair for pair in ALL_PAIRS if pair not in mixed]
    assert differences(op, BITWISE[op], rest) == []
    found = differences(op, BITWISE[op], mixed)
    for x, y, got, wanted in found:
        assert wanted.startswith("no kernel")
        assert not {x[0], y[0]} <= {"bool", *INTS}
        assert got.startswith("(InvalidArgument) The type of data we are trying to retrieve")


def function(name: str) -> Callable[[Any, Any], Any]:
    if name == "where":
        condition = paddle.to_tensor([[True, False]])
        return lambda x, y: paddle.where(condition, x, y)
    return getattr(paddle, name, None) or getattr(paddle.nn.functional, name)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    assert differences(f"paddle.{name}", function(name), ALL_PAIRS) == []


@pytest.mark.parametrize("name", ["logaddexp", "atan2"])
def test_functions_of_several_steps(name: str) -> None:
    """The dtype of a step without a kernel says nothing of the others."""
    found = differences(f"paddle.{name}", function(name), list(tensor_pairs((1, 2), ())))
    assert all(wanted.startswith("no kernel") for _, _, _, wanted in found)
    assert sum(len(x[1]) == len(y[1]) == 2 for x, y, _, _ in found) == 0


@pytest.mark.parametrize("name", ["l1_loss", "mse_loss"])
def test_losses(name: str) -> None:
    op = f"paddle.nn.functional.{name}"
    assert differences(op, function(name), ALL_PAIRS) == []


def test_huber_loss() -> None:
    """Its input and its label have the same rank."""
    compute = function("smooth_l1_loss")
    pairs = [pair for pair in tensor_pairs((1, 2), ()) if pair[0][1] == pair[1][1]]
    assert differences("huber_loss", compute, pairs + list(scalar_pairs())) == []


def test_poisson_nll_loss() -> None:
    """Its operands have the same shape; a step without a kernel says nothing of the last one."""
    pairs = [pair for pair in tensor_pairs((1, 2), ()) if pair[0][1] == pair[1][1]]
    found = differences("poisson_nll_loss", function("poisson_nll_loss"), pairs)
    without_exp = ("bfloat16", "bool", "uint8", "int8", "int16")
    for x, y, _, wanted in found:
        if x[0] in without_exp:
            assert wanted == f"no kernel: {x[0]}"
        else:  # the product of an integer and a float16
            assert (y[0], wanted) == ("float16", "no kernel: float16")


@pytest.mark.parametrize("name", ["atan2", "poisson_nll_loss"])
def test_where_paddle_stumbles_over_a_scalar(name: str) -> None:
    with pytest.raises(AttributeError):
        function(name)(tensor("float32", (1, 2)), 1.0)
    with pytest.raises(ValueError, match="must be Tensor, but got float"):
        dialect.promote_dtype(name, "float32", 1.0)


def test_dtypes_of_paddle_are_dtypes() -> None:
    x, y = paddle.float16, paddle.bfloat16
    assert dialect.promote_dtype("add", x, (y, (2,))) == "float32"
    assert dialect.cast(np.ones(2), paddle.bfloat16).dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize("op", ["+", "/", "=="])
def test_tensors_are_operands(op: str) -> None:
    for x, y in ALL_PAIRS[::7]:
        assert ours(op, of(x), of(y), missing=False) == ours(op, x, y, missing=False)


def test_numpy_arrays_count_as_tensors_to_paddle_too() -> None:
    x = np.ones(2, np.float32)
    assert str((tensor("float64", (2,)) + x).dtype) == "paddle.float64"
    with pytest.raises(TypeError, match="Type promotion only support"):
        tensor("int32", (2,)) + x
    for refused in (x, tensor("float32", (2,))):
        with pytest.raises(TypeError, match="Type promotion only support"):
            dialect.promote_dtype("add", tensor("int32", (2,)), refused)


@pytest.mark.parametrize("x", dialect.DTYPES)
def test_promoted_operands(x: str) -> None:
    for y in dialect.DTYPES:
        left, right = tensor(x, (2,)), tensor(y, (1, 2))
        common = dialect.tensor_tensor_table()[x, y]
        if common is None:
            continue
        for got, given in zip(
            dialect.promote_operands("add", left, right), (left, right), strict=True
        ):
            wanted = given.astype(common).numpy()
            assert (got.dtype, got.shape) == (NUMPY[common], wanted.shape)
            assert got.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    ("dtype", "scalar", "wanted", "same"),
    [
        ("int32", 1j, "complex128", False),
        ("float32", 1j, "complex128", False),
        ("bool", True, "int64", False),
        ("complex64", 1j, "complex64", True),
        ("int32", 1.5, "float32", True),
        ("bool", 1, "int64", True),
    ],
)
def test_static_graph_is_not_eager_mode(
    dtype: str, scalar: complex, wanted: str, same: bool
) -> None:
    paddle.enable_static()
    try:
        with paddle.static.program_guard(paddle.static.Program()):
            static = str((paddle.static.data("x", [2], dtype) + scalar).dtype)
    finally:
        paddle.disable_static()
    assert static == f"paddle.{wanted}"
    eager = dialect.promote_dtype("add", dtype, scalar)
    assert str((tensor(dtype, (2,)) + scalar).dtype) == f"paddle.{eager}"
    assert (eager == wanted) is same


def test_the_text_tells_what_the_document_gets_wrong() -> None:
    text = " ".join((dialect.__doc__ or "").split())
    assert '"As of Paddle version 2.6": 2.6.2 promotes floats with floats only' in text
    assert '"Same with static graph": in static graph 3.3.1 gives complex128' in text


# --- cast ---------------------------------------------------------------------------------------


def paddle_cast(x: np.ndarray, dst: str) -> np.ndarray:
    """Paddle takes and gives bfloat16 as its codes."""
    if x.dtype == ml_dtypes.bfloat16:
        given = paddle.to_tensor(x.view(np.uint16))
    else:
        given = paddle.to_tensor(x)
    result = paddle.cast(given, dst).numpy()
    return result.view(ml_dtypes.bfloat16) if dst == "bfloat16" else result


def defined(x: np.ndarray, src: str, dst: str) -> np.ndarray:
    """The values whose cast C++ defines."""
    if src not in FLOATS and src not in COMPLEX:
        return x
    with np.errstate(invalid="ignore"):
        real = x.real.astype(np.float64)
    if dst in INTS:
        limits = np.iinfo(dst)
        with np.errstate(invalid="ignore"):
            whole = np.trunc(real)
            return x[(whole >= float(limits.min)) & (whole < float(limits.max) + 1)]
    if dst == "float16":
        magnitude = np.abs(real)
        return x[~((magnitude > 2.0**-91) & (magnitude < 2.0**-76))]
    return x


@pytest.mark.parametrize("dst", dialect.DTYPES)
@pytest.mark.parametrize("src", dialect.DTYPES)
def test_cast(src: str, dst: str) -> None:
    """All values of at most 16 bits; random ones and landmarks of the others."""
    x = defined(complex_source(src) if src in COMPLEX else source(src), src, dst)
    assert x.size > NUMPY[src].itemsize // 2
    actual, wanted = dialect.cast(x, dst), paddle_cast(x, dst)
    assert actual.dtype == wanted.dtype
    if dst in COMPLEX:
        assert_same(actual.real.copy(), wanted.real.copy())
        assert_same(actual.imag.copy(), wanted.imag.copy())
    else:
        assert_same(actual, wanted)


@pytest.mark.parametrize("dst", REALS)
@pytest.mark.parametrize("src", REALS)
def test_the_rule_that_compare_tells(src: str, dst: str) -> None:
    """Paddle's result may be anything if `compare` calls it open."""
    if src == dst:
        return
    formats = format_named(src), format_named(dst)

    def cast(codes: np.ndarray) -> np.ndarray:
        return paddle_cast(codes.view(NUMPY[src]), dst).view(formats[1].code_dtype)

    assert check("paddle", *formats, cast)
