"""ONNX Cast and CastLike: conversions as an ONNX model makes them, bit for bit.

    from pypto_cast.dialects import onnx

    onnx.cast(x, "FLOAT8E4M3FN")
    onnx.cast_like(x, y)

Every type of Cast-28 is source and destination, complex numbers apart. Nothing here imports the
onnx package but `backend`, which runs models of casts, and `reference`, which gives onnx's
ReferenceEvaluator these casts for models of any kind (extra `onnx`).

What the operator's text leaves open is decided like this; README's word for it is "our choice":

=============================  =====================================================================
float -> integer, beyond       clamped; NaN 0. 4-bit and 2-bit integers: the low bits of the
                               truncated number, as the node tests of onnx 1.23 have it; NaN 0,
                               infinity clamped
float -> float6, float4        beyond: the largest number of that sign, infinity too; NaN +0 (these
                               types have neither; the node tests want a zero for NaN)
-0, negative -> FLOAT8E8M0     as what lies below its smallest number: that, or NaN unsaturated
NaN                            one pattern, all ones, with the sign of its source where the type has
                               signed NaNs
INF to a FNUZ float8,          NaN up to opset 23, as its text says; the largest number from
saturating                     opset 24 on, as its text says and runtimes always did
bool -> string                 "1" and "0"
number -> string               no exponent, ever: float32 1e20 is "100000000000000000000.0"
string -> integer              truncated ("100.5" is 100, "1e5" 100000), then clamped; NaN 0
=============================  =====================================================================

Everything is rounded once, from the exact value: float64 to float8 or bfloat16, int64 to bfloat16
and text to any float too, where the reference evaluator and onnxruntime go through float32.

Of the parameters that toolkits put around the operator, `to`, `saturate` and `round_mode` belong to
it. A loss coefficient ("lda coeff") concerns training: see `cast_grad`. Names of nodes and outputs
("name", "specified_outputs_name"), a "cluster" of parameters and a "training?" switch say where a
node stands in an editor's graph and whether it stores data; a function has no use for them, and
none takes them. Casts store nothing for their backward pass but the type of x.
"""

from __future__ import annotations

from typing import Any

from pypto_cast.dialects.onnx.cast import cast, cast_grad, cast_like, route
from pypto_cast.dtypes.data_types import TensorType

__all__ = ["TensorType", "backend", "cast", "cast_grad", "cast_like", "reference", "route"]


def __getattr__(name: str) -> Any:
    """Import the modules that need the onnx package when one is used."""
    if name in ("backend", "reference"):
        import importlib

        return importlib.import_module(f"pypto_cast.dialects.onnx.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
