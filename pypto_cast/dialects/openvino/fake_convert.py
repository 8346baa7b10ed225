"""FakeConvert-13: numbers as an 8-bit float would have kept them, in their own type."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.dialects.openvino import numerics as ways
from pypto_cast.dialects.openvino.element_types import (
    OpenVINOError,
    known_name,
    name_of_dtype,
)
from pypto_cast.dialects.openvino.inputs import array_of
from pypto_cast.options.context import current
from simulator.numbers import elementwise, result_memory
from simulator.numbers.convert import codes_of, values_of
from simulator.numbers.formats import BF16, E4M3FN, E5M2, FP16, FP32, FloatFormat

Array = npt.NDArray[Any]

_PIECE_ELEMS: Final = 1 << 17
"""So many that the calls for a piece cost little, so few that its arrays stay in the last cache."""

DATA_FORMATS: Final[Mapping[str, FloatFormat]] = MappingProxyType(
    {"bf16": BF16, "f16": FP16, "f32": FP32}
)
"""The types of data that FakeConvert takes."""
DESTINATION_FORMATS: Final[Mapping[str, FloatFormat]] = MappingProxyType(
    {"f8e4m3": E4M3FN, "f8e5m2": E5M2}
)

_NUMERICS: Final[Mapping[str, ways.Numerics]] = MappingProxyType(
    {"reference": ways.reference, "plugin": ways.plugin, "rne": ways.rne}
)

_BAD_TYPE: Final = "The element type of the input tensor must be a bf16, f16, f32 but got: {found}"
_MIXED_TYPES: Final = "Mixed input types are not supported."
_BAD_DESTINATION: Final = "Bad format for f8 conversion type: {found}"
_SHIFT_SHAPE: Final = "FakeConvert scale shape is not compatible with shift shape."
_INCONSISTENT: Final = "Argument shapes are inconsistent."
_ONE_DIRECTION: Final = (
    "FakeConvert support only unidirectional broadcasting, inputs cannot be broadcast into data."
)


class FakeConvertError(OpenVINOError):
    """Inputs that FakeConvert refuses: OpenVINO's sentence, what was found, what would do."""


def fake_convert(
    data: object,
    scale: object,
    shift: object = None,
    destination_type: str = "f8e4m3",
    *,
    numerics: str = "reference",
) -> Array:
    """Round numbers to an 8-bit float and back: (f8(data * scale - shift) + shift) / scale.

    Beyond the largest number of the 8-bit type, +-448 or +-57344, that number, for infinity too;
    the rest depends on `numerics`:

    "reference" is OpenVINO's core, as `node.evaluate` and constant folding compute it, bit for bit.
    Every operation is rounded to the type of the data (bf16: half a unit is added to an odd last
    place only), an absent shift is +0, so that -0 becomes +0; then rounded to float16 (f16 data is
    already; a subnormal that rounding to 11 bits carries to the next power of two is doubled, there
    and in f16 arithmetic), then to the 8-bit type. f8e5m2: nearest, ties to even; NaN stays NaN.
    f8e4m3: below 2**-9 +0; below 2**-6 nearest, ties to even, to four significant bits, then cut to
    a multiple of 2**-9; above that nearest, ties to even; **NaN becomes +-448 by its sign**.

    "plugin" is OpenVINO's CPU plugin with INFERENCE_PRECISION_HINT f32 (it computes even f32 models
    in bf16 where the processor can, unless told): float32, **NaN becomes the most negative
    number**, rounded to float16 (as above) and then to the 8-bit type to nearest even, subnormals
    included; divided by multiplying with float32(1 / scale); rounded once to the type of the data.
    -0 is kept without a shift. Not promised: the sign of a zero result with a shift; bf16 data,
    which the plugin rounds where its graph optimisations put it.

    "rne" has the operation's order and the saturation of its paper: float32, one rounding to
    nearest even to the 8-bit type, **NaN stays NaN**, -0 is kept without a shift, a division;
    rounded once to the type of the data.

    None of the three is the literal expression of the operation's text, whose Convert does not
    saturate: OpenVINO's own makes 465 in f8e4m3 NaN and 61440 in f8e5m2 infinity, and goes through
    float16. No implementation computes that, so none is offered.

    A scale of 0 makes 0 / 0, hence NaN. Under "reference" the pattern of a NaN is OpenVINO's too.
    Long arrays are shared among the threads of `pypto_cast.options(threads=...)`.

    Args:
        data: f16, bf16 or f32, any shape, strides and byte order, empty and rank 0 too: a numpy
            array, an openvino.Tensor, a torch CPU tensor. Python floats, also in lists, are f64 as
            in OpenVINO, and refused as such. Not modified, and neither are the others.
        scale: factor, of the type of the data and a shape that broadcasts to the data's.
        shift: what is subtracted before and added after, of the type and shape of `scale`.
        destination_type: "f8e4m3" (no infinity, largest 448) or "f8e5m2", in any case. The
            operation's text requires it; OpenVINO's Python takes "f8e4m3" by default.
        numerics: "reference", "plugin" or "rne".

    Returns:
        A new numpy array of the type and shape of `data`.

    Raises:
        FakeConvertError: a type, a mix of types, a destination type or a shape that OpenVINO
            refuses, with its sentence.
        OpenVINOError: a destination type that OpenVINO does not have.
        TypeError: an input that holds no numbers, or of a dtype that no element type has.
        OverflowError: a Python int that i64 does not hold.
        ValueError: unknown `numerics`.

    Source: FakeConvert-13; FP8 Formats for Deep Learning; measured with openvino 2026.4.1, whose
    core rounds as no document says.
    """
    arrays = {"data": array_of(data, "data"), "scale": array_of(scale, "scale")}
    if shift is not None:
        arrays["shift"] = array_of(shift, "shift")
    fmt = _data_format(arrays)
    float8 = _destination_format(destination_type)
    _check_shapes({label: array.shape for label, array in arrays.items()})
    if numerics not in _NUMERICS:
        raise ValueError(f"numerics is one of {', '.join(_NUMERICS)}, not {numerics!r}")
    return _in_pieces(_NUMERICS[numerics], fmt, float8, *arrays.values())


def _in_pieces(
    way: ways.Numerics,
    fmt: FloatFormat,
    float8: FloatFormat,
    data: Array,
    scale: Array,
    shift: Array | None = None,
) -> Array:
    """Go over the data in memory order; the iterator lays scale and shift beside it."""
    moves = [
        ways.widened(codes_of(move, fmt).reshape(-1), fmt).reshape(move.shape)
        for move in (scale, shift)
        if move is not None
    ]
    operands = [codes_of(data, fmt).reshape(data.shape), *moves]
    out = result_memory.empty(data.size, fmt.code_dtype)

    def convert_span(span: slice) -> None:
        pieces: Any = np.nditer(  # numpy's annotations have iterrange read-only
            operands,
            flags=["external_loop", "buffered", "ranged", "zerosize_ok"],
            order="C",
            buffersize=_PIECE_ELEMS,
        )
        pieces.iterrange = span.start, span.stop
        done = span.start
        for codes, factor, *offset in pieces:
            stop = done + codes.size
            out[done:stop] = way(codes, fmt, float8, factor, offset[0] if offset else None)
            done = stop

    elementwise.share(convert_span, data.size, current().threads)
    return values_of(out, fmt).reshape(data.shape)


def _data_format(arrays: Mapping[str, Array]) -> FloatFormat:
    names = {label: name_of_dtype(array.dtype) for label, array in arrays.items()}
    data_type = names["data"]
    if len(set(names.values())) > 1:
        found = ", ".join(f"{label} is {name}" for label, name in names.items())
        raise FakeConvertError(f"{_MIXED_TYPES} {found}; give all of them in {data_type}")
    if data_type not in DATA_FORMATS:
        raise FakeConvertError(
            f"{_BAD_TYPE.format(found=data_type)}; give one of these, as numpy.float32(...) does: "
            "a Python float is f64"
        )
    return DATA_FORMATS[data_type]


def _destination_format(destination_type: object) -> FloatFormat:
    name = known_name(destination_type)
    if name not in DESTINATION_FORMATS:
        known = ", ".join(DESTINATION_FORMATS)
        raise FakeConvertError(f"{_BAD_DESTINATION.format(found=name)}; it is one of {known}")
    return DESTINATION_FORMATS[name]


def _check_shapes(shapes: Mapping[str, tuple[int, ...]]) -> None:
    data, scale = shapes["data"], shapes["scale"]
    found = ", ".join(f"{label} {list(shape)}" for label, shape in shapes.items())
    if shapes.get("shift", scale) != scale:
        raise FakeConvertError(f"{_SHIFT_SHAPE} Found {found}; give shift the shape of scale")
    try:
        together = np.broadcast_shapes(data, scale)
    except ValueError:
        raise FakeConvertError(
            f"{_INCONSISTENT} Found {found}; every length of scale is 1 or the data's"
        ) from None
    if together != data:
        raise FakeConvertError(
            f"{_ONE_DIRECTION} Found {found}, which broadcast to {list(together)}"
        )
