"""Bad input of every operation, inside a kernel that has written before: one line, no output.

The calls are the examples of the operations' rows, with one operand made bad. The bits of outputs
are compared, of a NaN with a payload too.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pypto_cast as pypto
from docs.generators.operation_examples import _SET_UP, EXPRESSIONS, STATEMENTS
from pypto_cast.operations.operation_rows import ROWS
from pypto_cast.tensors.tensor import Tensor
from tiling.chips import DEFAULT_CHIP

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


def _as_array(x: Tensor) -> object:
    return x.numpy()


def _empty(x: Tensor) -> object:
    return pypto.Tensor([0, 3], x.dtype)


def _deep(x: Tensor) -> object:
    return Tensor._from_result((1, 1, 1, 2, 3), x.dtype, valid=(1, 1, 1, 2, 3))


def _none(x: Tensor) -> object:
    return None


BAD: dict[str, Callable[[Tensor], object]] = {
    "an array": _as_array,
    "none": _none,
    "no element": _empty,
    "five dimensions": _deep,
}
OPTIONAL = {("none", "deinterleave", "v"), ("none", "matmul", "y")}
"""Operands that may be left out."""


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


def _variants(name: str) -> Iterator[tuple[str, str, str]]:
    line, _ = _line_at(name)
    for word in OPERANDS:
        if re.search(rf"\b{word}\b", line):
            yield from ((line, word, kind) for kind in BAD if (kind, name, word) not in OPTIONAL)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(7)
def test_a_bad_operand_leaves_outputs_as_they_were(name: str) -> None:
    passed = []
    for line, word, kind in _variants(name):

        def attempt(out: Tensor, line: str = line, word: str = word, kind: str = kind) -> None:
            env = {**_operands(out), **_line_at(name)[1]}
            env[word] = BAD[kind](env[word])
            exec(line, env)

        if not isinstance(refused(attempt), (TypeError, pypto.ShapeError)):
            passed.append((line, word, kind))
    assert passed == []


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
    "fmod by NaN": (ValueError, lambda out: pypto.fmod(_t(FP32, [1.0]), float("nan"))),
    "shift by a float": (
        TypeError,
        lambda out: pypto.bitwise_left_shift(_t(INT16, [1, 2]), 1.5),
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


@pytest.mark.parametrize("case", ARGUMENTS)
def test_a_bad_argument_leaves_outputs_as_they_were(case: str) -> None:
    kind, attempt = ARGUMENTS[case]
    error = refused(attempt)
    assert isinstance(error, kind), error
