"""Facts for the operations' pages that neither a docstring nor a table of rows holds."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from pypto_cast.dtypes.data_types import DataType
from pypto_cast.operations.operation_rows import COPIED, FLOATS, INTEGERS, NUMBERS

TITLES: Final = MappingProxyType(
    {
        "elementwise_functions": "Elementwise arithmetic",
        "truth_and_bits": "Comparisons, truth and bits",
        "reduction_functions": "Reductions",
        "composites": "Composites and rounding",
        "creation": "Creation",
        "movement": "Movement",
        "padding": "Padding",
        "quantization": "Quantisation",
        "indexed.gathering": "Reading by index",
        "indexed.scattering": "Writing by index",
        "indexed.sorting": "Sorting and running sums",
        "cube.matrix_functions": "Products of matrices",
    }
)
"""Titles of the groups, by the module that holds the functions."""

ALIKE: Final = MappingProxyType(
    {"greater": "gt", "ones": "full", "zeros": "full", "argmin": "argmax", "scatter_": "scatter"}
)
"""Operations that have dtypes, parameters and errors of another one."""

PARTS: Final = MappingProxyType(
    {
        "exp2": ("log", "mul", "exp"),
        "rsqrt": ("sqrt", "div"),
        "sigmoid": ("mul", "exp", "add", "div"),
        "softmax": ("amax", "sub", "exp", "sum", "div"),
        "rms_norm": ("mul", "sum", "add", "sqrt", "div"),
        "var": ("div", "sum", "sub", "mul"),
        "quantize": ("mul", "add"),
        "dequantize": ("sub", "mul"),
    }
)
"""The rows of the table that an operation without one is composed of."""

DTYPES: Final = MappingProxyType(
    {
        **dict.fromkeys(("floor", "ceil", "trunc", "round", "exp2", "div"), NUMBERS),
        **dict.fromkeys(("log", "rsqrt", "sigmoid", "softmax", "rms_norm", "var"), FLOATS),
        "bitwise_not": (*INTEGERS, DataType.DT_BOOL),
        "full": (*COPIED, DataType.DT_BOOL),
        "transpose": COPIED,
    }
)
"""Dtypes of operations that have no row, or take more than their row."""

STANDINGS: Final = MappingProxyType(
    {
        **dict.fromkeys(("full", "ones", "zeros"), "exact: one number, rounded once"),
        **dict.fromkeys(
            ("clone", "concat", "expand_clone", "reshape", "transpose", "unsqueeze"),
            "exact: bits are copied",
        ),
        **dict.fromkeys(("pad", "fillpad"), "exact: bits are copied, the number is rounded once"),
        "arange": "exact for INT32; FP32 in the steps of upstream's range, "
        "each rounded to the nearest",
        "matmul": "exact for INT8 while sums stay below 2^31, else bounded: "
        "[Products of matrices](../operations.md#products-of-matrices)",
    }
)
"""How much is known of operations that have neither a row nor parts."""

_OPERAND: Final = "an operand of the dtypes below"
PARAMETERS: Final = MappingProxyType(
    {
        **dict.fromkeys(("input", "a", "self", "input1", "first"), _OPERAND),
        **dict.fromkeys(("other", "input2", "second"), "the other operand; shapes broadcast"),
        "dim": "the dimension; a negative one counts from the last",
        "keepdim": "whether the dimension stays, with one element",
        "precision_type": "upstream's; it changes no bit on A2/A3",
        "dtype": "of the result",
        "valid_shape": "what of the result holds data; all of it unless given",
        "size": "the extents, as ints or one list of them",
    }
)
"""Meanings of parameters that are the same in every operation whose docstring does not give one."""

OWN_PARAMETERS: Final = MappingProxyType(
    {
        ("clip", "min"): "the lower bound, a tensor or a number; none if not given",
        ("clip", "max"): "the upper bound, of the kind of the lower one; none if not given",
        ("where", "condition"): "BOOL; shapes broadcast",
        ("bitwise_left_shift", "other"): "the counts",
        ("bitwise_right_shift", "other"): "the counts",
        ("rms_norm", "gamma"): "factors of the last dimension; none if not given",
        ("rms_norm", "epsilon"): "added to the mean of the squares",
        ("round", "decimals"): "the number of decimals; a negative one rounds to tens, hundreds",
        ("full", "fill_value"): "the number",
        ("clone", "input"): "any dtype",
        ("unsqueeze", "input"): "any dtype",
        ("scatter_", "input"): "a tensor that the kernel writes, of the dtypes below",
        ("transpose", "dim0"): "one dimension; a negative one counts from the last",
        ("transpose", "dim1"): "the other",
        ("unsqueeze", "dim"): "the place of the new dimension",
    }
)
"""Meanings of parameters of one operation."""

_SAME: Final = "A tensor of the operands' dtype and broadcast shape."
_INDICES: Final = "An INT32 tensor without the dimension; with `keepdim` it has one element."
RETURNS: Final = MappingProxyType(
    {
        "elementwise_functions": _SAME,
        "truth_and_bits": _SAME,
        "reduction_functions": "A tensor of the input's dtype without the dimension; with "
        "`keepdim` it has one element.",
        "composites": "A tensor of the input's dtype and shape.",
        "creation": "A new tensor.",
        "movement": "A new tensor of the input's dtype.",
        "padding": "A new tensor of the input's dtype.",
        "div": "A tensor of the operands' dtype and broadcast shape; FP32 of integers.",
        "exp2": "A tensor of the input's dtype and shape; FP32 of integers.",
        "var": "A tensor of the input's dtype without the dimensions.",
        "concat": "A new tensor, as long along `dim` as all of them together.",
        "one_hot": "An INT64 tensor of the input's shape and one more dimension.",
        "dequantize": "An FP32 tensor of the input's shape.",
        "gather": "A tensor of the input's dtype and the index's shape.",
        "index_select": "A tensor of the input's dtype.",
        "atomic_add": "Nothing: `dst` is written.",
        "index_put_": "Nothing: the input is written.",
        "scatter": "A tensor of the input's dtype and shape.",
        "scatter_": "The input.",
        "scatter_update": "A tensor of the input's dtype and shape.",
        "argmax": _INDICES,
        "argmin": _INDICES,
        "argsort": "An INT32 tensor of the input's shape.",
        "cumsum": "A tensor of the input's shape and dtype; INT64 of integers.",
        "topk": "Two tensors, k long along the last dimension: values, and INT32 indices.",
    }
)
"""Results by operation, or by group, where the docstring does not give them."""
