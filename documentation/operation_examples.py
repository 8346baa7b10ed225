"""The example of each operation: operands that a page shows once, and one expression each."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

OPERANDS: Final = """\
import pypto_cast as pypto

pypto.set_vec_tile_shapes(2, 32)
pypto.set_cube_tile_shapes([16, 16], [16, 16], [16, 16])
x = pypto.tensor([2, 3], pypto.DT_FP32, data=[[1.5, -2.0, 0.25], [0.0, 8.0, -1.5]])
y = pypto.tensor([2, 3], pypto.DT_FP32, data=[[2.0, 0.5, 0.25], [4.0, 1.0, -3.0]])
i = pypto.tensor([2, 3], pypto.DT_INT16, data=[[1, 2, -4], [5, 6, 7]])
j = pypto.tensor([2, 3], pypto.DT_INT16, data=[[1, 0, 2], [4, 1, 1]])
at = pypto.tensor([2, 2], pypto.DT_INT32, data=[[2, 0], [1, 1]])
row = pypto.tensor([2], pypto.DT_INT32, data=[1, 0])
"""

EXAMPLES: Final = MappingProxyType(
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
        "one_hot": "pypto.one_hot(row, 32)",
        "pad": "pypto.pad(x, [0, 1, 0, 0])",
        "fillpad": "pypto.fillpad(x)",
        "quantize": "pypto.quantize(x, y[:, 0:1].reshape([2]), pypto.DT_INT8, -1)",
        "dequantize": "pypto.dequantize(i, y[:, 0:1].reshape([2]), pypto.DT_FP32, -1)",
        "matmul": "pypto.matmul(x, y, pypto.DT_FP32, b_trans=True)",
    }
)
"""Expressions over the operands, by operation."""
