"""OpenVINO's FakeConvert-13 and ConvertPromoteTypes-14, bit for bit.

    from pypto_cast.dialects import openvino

    openvino.fake_convert(data, scale, shift, "f8e4m3")
    openvino.promoted_type("i16", "u32", promote_unsafe=True)
    openvino.convert_promote_types(x, y, promote_unsafe=True)
    openvino.route("f16", "f8e5m2")  # by native instructions of A2/A3

Types have OpenVINO's names: "f32", "bf16", "f8e4m3", "i64", "boolean", "dynamic". Results are
numpy arrays, with the dtypes of ml_dtypes for bf16, f8e4m3 (float8_e4m3fn), f8e5m2, i4 and u4;
inputs are such arrays, numbers and lists of them, and tensors of openvino and torch. What OpenVINO
refuses is an `OpenVINOError`, a RuntimeError as its own, that begins with its sentence; arguments
that are not even inputs of a node raise TypeError, ValueError or OverflowError, as each function
says. Nothing here imports openvino.

Where the text of an operation and the runtime disagree, the runtime decides, measured with openvino
2026.4.1 on x86-64. Its core (constant folding, `node.evaluate`) is bit-reproducible; its CPU plugin
computes FakeConvert differently, and neither is the literal expression of its text: see
`fake_convert`.
"""

from pypto_cast.dialects.openvino.element_types import OpenVINOError
from pypto_cast.dialects.openvino.fake_convert import FakeConvertError, fake_convert, route
from pypto_cast.dialects.openvino.promote_types import (
    PromotionError,
    convert_promote_types,
    promoted_type,
)

__all__ = [
    "FakeConvertError",
    "OpenVINOError",
    "PromotionError",
    "convert_promote_types",
    "fake_convert",
    "promoted_type",
    "route",
]
