"""The example of each operation: an expression over small tensors, or a kernel that writes."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final

_SET_UP: Final = MappingProxyType(
    {
        "pypto": "import pypto_cast as pypto\n",
        "vec": "pypto.set_vec_tile_shapes(2, 32)",
        "matmul": "pypto.set_cube_tile_shapes([16, 16], [16, 16], [16, 16])",
        "x": "x = pypto.tensor([2, 3], pypto.DT_FP32, data=[[1.5, -2.0, 0.25], [0.0, 8.0, -1.5]])",
        "y": "y = pypto.tensor([2, 3], pypto.DT_FP32, data=[[2.0, 0.5, 0.25], [4.0, 1.0, -3.0]])",
        "i": "i = pypto.tensor([2, 3], pypto.DT_INT16, data=[[1, 2, -4], [5, 6, 7]])",
        "j": "j = pypto.tensor([2, 3], pypto.DT_INT16, data=[[1, 0, 2], [4, 1, 1]])",
        "at": "at = pypto.tensor([2, 2], pypto.DT_INT32, data=[[2, 0], [1, 1]])",
        "row": "row = pypto.tensor([2], pypto.DT_INT32, data=[1, 0])",
    }
)
"""Lines that come before an expression, by the word in it that needs them."""

_KERNEL: Final = """\
import numpy as np

import pypto_cast as pypto


@pypto.frontend.jit
def kernel(
    x: pypto.Tensor[[2, 3], pypto.DT_FP32],
    at: pypto.Tensor[[2], pypto.DT_INT32],
    out: pypto.Tensor[[2, 3], pypto.DT_FP32],
):
    pypto.set_vec_tile_shapes(2, 32)
    out[:] = pypto.ones(2, 3)
    {}


out = np.zeros((2, 3), np.float32)
x = np.array([[1.5, -2.0, 0.25], [0.0, 8.0, -1.5]], np.float32)
kernel(x, np.array([1, 0], np.int32), out)
print(out)
"""
"""A kernel, for operations that write to a tensor."""

EXPRESSIONS: Final = MappingProxyType(
    {
        **{
            name: f"pypto.{name}(x, y)"
            for name in (
                *("add", "sub", "mul", "div", "maximum", "minimum"),
                *("eq", "ne", "lt", "le", "gt", "ge", "greater", "logical_and"),
            )
        },
        **{
            name: f"pypto.{name}(x)"
            for name in (
                *("neg", "relu", "abs", "exp", "logical_not", "floor", "ceil", "trunc", "round"),
                *("exp2", "sigmoid", "clone", "rms_norm", "argsort"),
            )
        },
        **{name: f"pypto.{name}(y)" for name in ("reciprocal",)},
        **{name: f"pypto.{name}(pypto.abs(y))" for name in ("sqrt", "rsqrt", "log")},
        **{
            name: f"pypto.{name}(i, j)"
            for name in (
                *("bitwise_and", "bitwise_or", "bitwise_xor"),
                *("bitwise_left_shift", "bitwise_right_shift"),
            )
        },
        **{name: f"pypto.{name}(x, -1)" for name in ("amax", "amin", "sum", "argmax", "argmin")},
        "bitwise_not": "pypto.bitwise_not(i)",
        "clip": "pypto.clip(x, -1.0, 1.0)",
        "where": "pypto.where(pypto.lt(x, y), x, y)",
        "softmax": "pypto.softmax(x, -1)",
        "var": "pypto.var(x, -1)",
        "cumsum": "pypto.cumsum(x, 1)",
        "topk": "pypto.topk(x, 2)",
        "arange": "pypto.arange(4)",
        "full": "pypto.full([2, 2], 0.5, pypto.DT_FP32)",
        "ones": "pypto.ones(2, 2, dtype=pypto.DT_FP32)",
        "zeros": "pypto.zeros(2, 2, dtype=pypto.DT_FP32)",
        "concat": "pypto.concat([x, y], 0)",
        "expand_clone": "pypto.expand_clone(pypto.amax(x, -1, True), [2, 3])",
        "reshape": "pypto.reshape(x, [3, 2])",
        "transpose": "pypto.transpose(x, 0, 1)",
        "unsqueeze": "pypto.unsqueeze(x, 0).shape",
        "gather": "pypto.gather(x, 1, at)",
        "index_select": "pypto.index_select(x, 0, row)",
        "scatter": "pypto.scatter(x, 1, at, 9.0)",
        "scatter_update": "pypto.scatter_update(x, -2, pypto.reshape(row, [1, 2]), y)",
        "one_hot": "pypto.one_hot(row, 32)",
        "pad": "pypto.pad(x, [0, 1, 0, 0])",
        "fillpad": "pypto.fillpad(x)",
        "quantize": "pypto.quantize(x, y[:, 0:1].reshape([2]), pypto.DT_INT8, -1)",
        "dequantize": "pypto.dequantize(i, y[:, 0:1].reshape([2]), pypto.DT_FP32, -1)",
        "matmul": "pypto.matmul(x, y, pypto.DT_FP32, b_trans=True)",
    }
)
"""Expressions over the operands, by operation."""

STATEMENTS: Final = MappingProxyType(
    {
        "atomic_add": "pypto.atomic_add(x, [0, 0], out)",
        "index_put_": "pypto.index_put_(out, [at], x)",
        "scatter_": "pypto.scatter_(out, 1, pypto.reshape(at, [2, 1]), 9.0)",
    }
)
"""Statements of a kernel, by operation."""


def example(name: str) -> str:
    """The example of an operation, from its imports on."""
    if name in STATEMENTS:
        return _KERNEL.format(STATEMENTS[name])
    expression = EXPRESSIONS[name]
    words = {"vec", *re.findall(r"\w+", expression)}
    lines = [line for word, line in _SET_UP.items() if word in words]
    return "\n".join((*lines, f"print({expression})\n"))
