"""Paddle's type promotion and cast: the dtype an operation computes in, a cast's results.

    from pypto_cast.dialects import paddle

    paddle.promote_dtype("add", "float16", "float32")     # 'float32'
    paddle.promote_dtype("add", "int32", 1.5)             # 'float32'
    paddle.promote_dtype("add", "int32", "float32")       # TypeError, with Paddle's text
    paddle.result_dtype("equal", "float16", "float32")    # 'bool'
    paddle.promote_dtype("add", ("float32", (2, 3)), ("float64", ()))  # 0-d: 'float32'
    paddle.promote_dtype("add", x, y)                     # of Tensors or arrays
    paddle.promote_operands("add", x, y)                  # both as arrays of the common dtype
    paddle.cast(x, "bfloat16")

Two sets of rules: `rules="3.3"` (the default) is what Paddle 3.3 does, `rules="doc"` the cells of
its document "Introduction to Data Type Promotion" as they are printed. They differ in these:

======================  =============  ==========================================================
case                    doc            3.3
======================  =============  ==========================================================
complex64, float64      complex64      complex128, as the document's transposed cell and sample
complex64, int64        complex128     complex64, as its transposed cell
bool or integer with    refused        that dtype; `/` of integers: float32
its own dtype
bool Tensor / True      float32        bool
complex, compared       refused        bool
0-d Tensor              a Tensor       a scalar (`ZeroDim` says where not)
bitwise, Tensor-Scalar  Common         refused, but for a bool or int to the left of the operator
functions with scalars  as operators   as `Api.function` says, most refuse them
======================  =============  ==========================================================

The name of an API alone, "add", stands for its operator where it has one, and so do "+" and
"__add__"; "paddle.add" is the function, which may treat scalars in another way. Nothing here
imports Paddle. A dtype is known to be the common one even where Paddle's CPU build has no kernel
for it. Source: the document, and paddlepaddle 3.3.1 (CPU, eager mode), measured.

Two sentences of the document hold in neither set of rules. "As of Paddle version 2.6": 2.6.2
promotes floats with floats only; any other mix takes the dtype of the left operand with a warning,
and several APIs do not promote at all. "Same with static graph": in static graph 3.3.1 gives
complex128 for any Tensor that is not complex with a complex scalar (int32 + 1j, where eager mode
gives complex64) and int64 for bool + True (eager mode: bool); two Tensors promote alike.
"""

from __future__ import annotations

from pypto_cast.dialects.paddle.apis import APIS, Api, PromotionRule, Scalars, ZeroDim
from pypto_cast.dialects.paddle.cast import DTYPES, cast
from pypto_cast.dialects.paddle.promotion import (
    promote_dtype,
    promote_operands,
    result_dtype,
    tensor_scalar_table,
    tensor_tensor_table,
)
from pypto_cast.former_names import names_of

__getattr__ = names_of(__name__)
__all__ = [
    "APIS",
    "DTYPES",
    "Api",
    "PromotionRule",
    "Scalars",
    "ZeroDim",
    "cast",
    "promote_dtype",
    "promote_operands",
    "result_dtype",
    "tensor_scalar_table",
    "tensor_tensor_table",
]
