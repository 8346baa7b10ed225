"""Bad input of every operation, inside a kernel that has written before: one line, no output.

The calls are the examples of the operations' rows, with one argument made bad. The line names the
operation that was called, not a part of it. The bits of outputs are compared, of a NaN with a
payload too.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import pypto_cast as pypto
from docs.generators.operation_examples import _SET_UP, EXPRESSIONS, STATEMENTS
from pypto_cast.operations.operation_rows import ROWS
from pypto_cast.tensors.tensor import Tensor
from pypto_cast.upstream import experimental
from tiling.chips import DEFAULT_CHIP
from tiling.plan import ShapeError

FP32, INT32, INT16 = pypto.DT_FP32, pypto.DT_INT32, pypto.DT_INT16
OPERANDS = ("x", "y", "i", "j", "at", "row", "u", "v")
NAMES = sorted(
    name
    for name, row in ROWS.items()
    if (DEFAULT_CHIP.isa in row.dtypes or not row.dtypes) and name in {*EXPRESSIONS, *STATEMENTS}
)


def _operands(out: Tensor) -> dict[str, Any]:
    env: dict[str, Any] = {"pypto": pypto}
    for word in OPERANDS:
        exec(_SET_UP[word], env)
    return {**env, "out": out}


def _line_at(name: str) -> tuple[str, dict[str, Any]]:
    """A call, and other operands of it than those of `_operands`."""
    if name in STATEMENTS:
        return STATEMENTS[name], {"at": pypto.tensor([2], INT32, data=[1, 0])}
    return EXPRESSIONS[name], {}


def _deep(x: Tensor) -> Tensor:
    return Tensor._from_result((1, 1, 1, 2, 3), x.dtype, valid=(1, 1, 1, 2, 3))


ANY: dict[str, object] = {
    "none": None,
    "a text": "no",
    "NaN": float("nan"),
    "a float beyond FP32": 1e39,
    "an int beyond FP32": -(10**39),
    "an int beyond floats": 10**400,
    "an object": object(),
    "several numbers": np.ones((2, 3), np.float32),
}
BAD: dict[str, Callable[[Tensor], object]] = {
    "an array": lambda x: np.ones((2, 3), np.float32),
    "no element": lambda x: pypto.Tensor([0, 3], x.dtype),
    "five dimensions": _deep,
}
OPTIONAL = {"clip": (1, 2), "ones": (2,), "zeros": (2,), "var": (1,)}
"""Arguments that may be None, by position."""
MAY_BE_NAN = {
    *("add", "sub", "mul", "div", "maximum", "minimum", "clip", "where", "pow", "full"),
    *("scatter", "scatter_", "eq", "ne", "lt", "le", "gt", "greater", "ge"),
    *("floor_div", "fmod", "remainder"),
}
"""Operations beside whose tensors NaN is a number like others."""
WITHIN_INTS = {("round", 1)}
REFUSALS = (TypeError, ValueError, OverflowError, IndexError)


def refused(attempt: Callable[[Tensor], object]) -> Exception | None:
    """Run a call in a kernel that wrote before it; its outputs must then be as they were."""

    @pypto.jit
    def kernel(
        x: pypto.Tensor[[2, 3], FP32],
        out: pypto.Tensor[[2, 3], FP32],
        whole: pypto.Tensor[[2, 3], INT32],
    ) -> None:
        pypto.set_vec_tile_shapes(2, 32)
        pypto.set_cube_tile_shapes([16, 16], [16, 16], [16, 16])
        out[:] = x * 2.0
        whole[:] = pypto.cast(x, INT32)
        attempt(out)

    before = np.array([[0xFFC00001, 7, 1], [0x7FFFFFFF, 0, 9]], np.uint32)
    x, out, whole = (
        np.ones((2, 3), np.float32),
        before.view(np.float32).copy(),
        before.view(np.int32),
    )
    whole = whole.copy()
    found = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            kernel(x, out, whole)
        except Exception as error:
            found = error
    if found is not None:
        np.testing.assert_array_equal(out.view(np.uint32), before)
        np.testing.assert_array_equal(whole.view(np.uint32), before)
        assert str(found)
        assert "\n" not in str(found), str(found)
    assert (x == 1).all()
    return found


def _call_of(name: str) -> ast.Call:
    """The call of the operation in its example, which may call others for its operands."""
    calls = (each for each in ast.walk(ast.parse(_line_at(name)[0])) if isinstance(each, ast.Call))
    return next(c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == name)


def _attempt(name: str, position: int, kind: str, tried: list[object], out: Tensor) -> None:
    """Make the call with one argument in the place of another, unless the kind is not for it."""
    call, env = _call_of(name), {**_operands(out), **_line_at(name)[1]}
    nodes = [*call.args, *(each.value for each in call.keywords)]
    values = [eval(compile(ast.Expression(node), name, "eval"), env) for node in nodes]
    if kind in BAD and not isinstance(values[position], Tensor):
        return
    values[position] = BAD[kind](values[position]) if kind in BAD else ANY[kind]
    tried.append(values[position])
    named = zip((str(each.arg) for each in call.keywords), values[len(call.args) :], strict=True)
    getattr(pypto, name)(*values[: len(call.args)], **dict(named))


def _is_no_fault(name: str, position: int, kind: str) -> bool:
    return (
        (kind == "none" and position in OPTIONAL.get(name, ()))
        or (kind == "NaN" and name in MAY_BE_NAN)
        or (kind == "an int beyond FP32" and (name, position) in WITHIN_INTS)
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(14)
def test_a_bad_argument_is_one_line_that_names_the_operation(name: str) -> None:
    call, wrong = _call_of(name), []
    for position in range(len(call.args) + len(call.keywords)):
        for kind in (*BAD, *ANY):
            tried: list[object] = []
            error = refused(partial(_attempt, name, position, kind, tried))
            if not tried or (error is None and _is_no_fault(name, position, kind)):
                continue
            if not isinstance(error, REFUSALS) or not re.search(rf"\b{name}\b", str(error)):
                wrong.append((position, kind, error))
    assert wrong == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(3)
def test_the_call_itself_runs(name: str) -> None:
    """So that it is the bad operand that is refused."""
    line, others = _line_at(name)
    error = refused(lambda out: exec(line, {**_operands(out), **others}))
    assert error is None, (line, error)


def _t(dtype: pypto.DataType, *values: object) -> Tensor:
    return pypto.tensor(None, dtype, data=list(values))


Bad = tuple[type[Exception], Callable[[Tensor], object]]
ARGUMENTS: dict[str, Bad] = {
    **{
        f"axis of {name}": (
            ValueError,
            lambda out, name=name: getattr(pypto, name)(_t(FP32, [1.0, 2.0]), 2),
        )
        for name in ("sum", "amax", "amin", "prod", "cumsum", "cumprod", "softmax")
    },
    "axis of unsqueeze": (ValueError, lambda out: pypto.unsqueeze(_t(FP32, [1.0]), 4)),
    "negative axis of concat": (
        ValueError,
        lambda out: pypto.concat([_t(FP32, [1.0]), _t(FP32, [1.0])], -3),
    ),
    "negative k": (ValueError, lambda out: pypto.topk(_t(FP32, [1.0] * 32), -1, -1)),
    "k of 0": (ValueError, lambda out: pypto.topk(_t(FP32, [1.0] * 32), 0, -1)),
    "k above n": (ValueError, lambda out: pypto.topk(_t(FP32, [1.0] * 32), 33, -1)),
    "index beyond": (
        IndexError,
        lambda out: pypto.index_select(_t(FP32, [1.0], [2.0]), 0, _t(INT32, 0, 2)),
    ),
    "negative index": (
        IndexError,
        lambda out: pypto.index_select(_t(FP32, [1.0], [2.0]), 0, _t(INT32, 0, -1)),
    ),
    "NaN as an index": (
        TypeError,
        lambda out: pypto.index_select(_t(FP32, [1.0], [2.0]), 0, _t(FP32, 0.0, float("nan"))),
    ),
    "indices of gather in FP32": (
        TypeError,
        lambda out: pypto.gather(_t(FP32, [1.0, 2.0]), 1, _t(FP32, [float("nan"), 0.0])),
    ),
    "no order of axes": (ValueError, lambda out: pypto.permute(out[0:2], [0, 0])),
    "axes that overlap": (ValueError, lambda out: pypto.permute(out[0:2], [1, 1])),
    "diagonal": (TypeError, lambda out: pypto.tril(_t(FP32, [1.0, 2.0]), float("nan"))),
    "INT16 of 2**16": (OverflowError, lambda out: pypto.add(_t(INT16, [1, 2]), 1 << 16)),
    "INT32 of 2**31": (OverflowError, lambda out: pypto.mul(_t(INT32, [1, 2]), 1 << 31)),
    "full of 2**40": (OverflowError, lambda out: pypto.full([2, 3], 1 << 40, INT32)),
    "power of 2**40": (OverflowError, lambda out: pypto.pow(_t(INT32, [1, 2]), 1 << 40)),
    "arange to NaN": (ValueError, lambda out: pypto.arange(float("nan"))),
    "classes in half": (TypeError, lambda out: pypto.one_hot(_t(INT32, 0, 1), 1.5)),
    "axis of var in half": (TypeError, lambda out: pypto.var(_t(FP32, [1.0, 2.0]), 1.5)),
    "an order of no truth": (TypeError, lambda out: pypto.topk(out, 1, -1, "least")),
    "a sort of no truth": (TypeError, lambda out: pypto.argsort(out, -1, 2)),
    "sort32 from many": (TypeError, lambda out: pypto.sort32(out, np.ones(2, np.int32))),
    "k is True": (TypeError, lambda out: pypto.topk(out, True)),
    "unpack to a tensor": (TypeError, lambda out: pypto.unpack(_t(pypto.DT_UINT8, 1, 2), out)),
    "gather of fewer axes": (ShapeError, lambda out: pypto.gather(out, 1, _t(INT32, 0))),
    "scatter of fewer axes": (ShapeError, lambda out: pypto.scatter(out, 1, _t(INT32, 0), 1.0)),
    "scatter reduced by a list": (
        ValueError,
        lambda out: pypto.scatter(out, 0, _t(INT32, [0, 0, 1]), 1.0, reduce=["add"]),
    ),
    "correction as text": (TypeError, lambda out: pypto.var(out, 1, "1")),
    "correction that is NaN": (ValueError, lambda out: pypto.var(out, 1, math.nan)),
    "infinite correction": (ValueError, lambda out: pypto.var(out, 1, math.inf)),
    "dimensions of var that stay": (TypeError, lambda out: pypto.var(out, 1, 1, "no")),
    "epsilon as text": (TypeError, lambda out: pypto.rms_norm(out, None, "1e-6")),
    "accumulate": (
        TypeError,
        lambda out: pypto.index_put_(out, [_t(INT32, 1)], _t(FP32, [1.0] * 3), "no"),
    ),
    "fill mode": (ValueError, lambda out: pypto.fillpad(out, np.ones(2))),
    "diagonal of 2**63": (OverflowError, lambda out: pypto.triu(out, 1 << 63)),
    "block size in half": (
        TypeError,
        lambda out: experimental.gather_in_ub(out, *[_t(INT32, [0])] * 2, 1.5, -2),
    ),
    "axis of gather_in_ub": (
        TypeError,
        lambda out: experimental.gather_in_ub(out, *[_t(INT32, [0])] * 2, 1, out),
    ),
    "columns": (
        TypeError,
        lambda out: experimental.gather_in_l1(out, *[_t(INT32, [0])] * 2, 1, None, False, False),
    ),
    "a side of no truth": (
        TypeError,
        lambda out: experimental.gather_in_l1(out, *[_t(INT32, [0])] * 2, 1, 1, "b", False),
    ),
    "precision as a number": (TypeError, lambda out: pypto.div(out, out, 1)),
    "precision as text": (TypeError, lambda out: out.exp("high")),
    "fmod by NaN": (ValueError, lambda out: pypto.fmod(_t(FP32, [1.0]), float("nan"))),
    "shift by a float": (
        TypeError,
        lambda out: pypto.bitwise_left_shift(_t(INT16, [1, 2]), 1.5),
    ),
    "add of a float beyond FP32": (
        OverflowError,
        lambda out: pypto.add(_t(FP32, [1.0]), 3.4028236e38),
    ),
    "Element beyond FP32": (
        OverflowError,
        lambda out: pypto.maximum(out, pypto.Element(FP32, -1e39)),
    ),
    "Element of 10**400": (OverflowError, lambda out: pypto.Element(FP32, 10**400)),
    "decimals of 2**31": (OverflowError, lambda out: pypto.round(_t(FP32, [1.0]), 1 << 31)),
    "axpy_ of infinity": (
        OverflowError,
        lambda out: pypto.axpy_(out, _t(FP32, [1.0], [1.0]), float("inf")),
    ),
    "index_put_ beyond": (
        IndexError,
        lambda out: pypto.index_put_(out, [_t(INT32, 1, 7)], _t(FP32, [1.0] * 3, [2.0] * 3)),
    ),
    "index_add_ beyond": (
        IndexError,
        lambda out: pypto.index_add_(out, 0, _t(INT32, 0, 2), _t(FP32, [1.0] * 3, [2.0] * 3)),
    ),
    "scatter beyond": (
        IndexError,
        lambda out: pypto.scatter_(out, 0, _t(INT32, [0, 0, 9]), 1.0),
    ),
}


@pytest.mark.parametrize("number", [3.4028235e38, -3.4028235e38, float("-inf"), (1 << 128) - 1])
def test_numbers_that_fp32_holds_are_taken(number: float) -> None:
    """2**128 - 1 not: it rounds to 2**128."""
    error = refused(lambda out: pypto.add(out[0:1], pypto.full([1, 3], number, FP32)))
    assert (error is None) == (number != (1 << 128) - 1), error


@pytest.mark.parametrize("case", ARGUMENTS)
def test_a_bad_argument_leaves_outputs_as_they_were(case: str) -> None:
    kind, attempt = ARGUMENTS[case]
    error = refused(attempt)
    assert isinstance(error, kind), error
