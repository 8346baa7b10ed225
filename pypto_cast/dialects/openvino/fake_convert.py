"""FakeConvert-13: numbers rounded to an 8-bit float and back, in their own type.

Four ways compute it: OpenVINO's core, its CPU plugin without and with AVX512-FP16, and correct
rounding. Each takes a piece:
codes of the data, their format, the 8-bit format, and scale and shift widened to float32 (as long
as the piece, or one for all; no shift is None). Each gives codes of the data's format.

Every bit of the float32 arithmetic is settled, NaNs too. IEEE 754 leaves open which NaN comes out
of an operation, and FakeConvert turns NaNs into numbers by their sign. x86-64, where OpenVINO was
measured, hands on the first operand that is a NaN, quieted, and makes a negative NaN where there is
none; here every processor does.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ascend_kernels.matrix import CastStep, ScalarStep
from ascend_kernels.routing.chain_check import all_values, enumerated
from ascend_kernels.routing.chain_ranking import cycles_of
from ascend_kernels.routing.chains import Chain, NativeCast, function_of
from ascend_kernels.routing.vector_rows import VectorRow
from pypto_cast.dialects.openvino.convert import (
    Payload,
    carry_nan,
    has_nan,
    neighbour,
)
from pypto_cast.dialects.openvino.element_types import (
    OpenVINOError,
    array_of,
    known_name,
    name_of_dtype,
)
from pypto_cast.dtypes.data_types import CastMode, DataType
from pypto_cast.options.context import current
from pypto_cast.routes.cast_routes import Route, RouteError, RouteStep
from simulator.machine.isa import ScalarOp
from simulator.numbers import elementwise, fast, result_memory
from simulator.numbers.convert import (
    INF_NAN,
    SATURATE,
    SATURATE_KEEP_NAN,
    Conversion,
    Policy,
    codes_of,
    convert,
    values_of,
)
from simulator.numbers.float_arithmetic import Operation, correctly_rounded
from simulator.numbers.formats import (
    BF16,
    E4M3FN,
    E5M2,
    FP16,
    FP32,
    INT16,
    UINT16,
    Codes,
    FloatFormat,
)
from simulator.numbers.rounding import RoundMode

Floats = npt.NDArray[np.float32]
_QUIET: Final = np.uint32(0x00400000)
_NAN_OF_NUMBERS: Final = np.uint32(0xFFC00000)
"""The result of inf - inf, 0 * inf, 0 / 0 and inf / inf."""


def compute(operation: Operation, left: Floats, right: Floats, *, commuted: bool = False) -> Floats:
    """Apply an operation, rounding once to nearest even, subnormal numbers included.

    Args:
        operation: numpy's add, subtract, multiply or divide.
        left: 1-D, contiguous.
        right: as many, or one for all.
        commuted: of two NaNs the right one is handed on.
    """
    result: Floats = correctly_rounded(operation, left, right, FP32)
    if has_nan(result.view(np.uint32), FP32):
        first, second = (right, left) if commuted else (left, right)
        _settle_nans(result, first, second)
    return result


def _settle_nans(result: Floats, first: Floats, second: Floats) -> None:
    where = np.flatnonzero(np.isnan(result))
    codes = np.full(where.size, _NAN_OF_NUMBERS)
    for operand in (second, first):
        chosen = np.broadcast_to(operand, result.shape)[where]
        codes = np.where(np.isnan(chosen), chosen.view(np.uint32) | _QUIET, codes)
    result.view(np.uint32)[where] = codes


Numerics = Callable[[Codes, FloatFormat, FloatFormat, Floats, Floats | None], Codes]
Kernel = Callable[[Codes, Codes], None]

# --- "reference" --------------------------------------------------------------------------------


_NO_SHIFT: Final = np.zeros(1, np.float32)


def reference(
    codes: Codes, fmt: FloatFormat, float8: FloatFormat, scale: Floats, shift: Floats | None
) -> Codes:
    """OpenVINO's core: arithmetic in the type of the data, to float16, and there a table.

    That of f16 and bf16 is float32, narrowed after every operation. Of two NaNs, sums and products
    of f16 hand on the second, as 2026.4.1 is compiled. An absent shift is +0, which is subtracted
    and added all the same.
    """
    commuted = fmt is FP16
    if shift is None:
        shift = _NO_SHIFT

    def rounded(values: Floats) -> Floats:
        return widened(_narrowed(values, fmt), fmt)

    values = rounded(compute(np.multiply, widened(codes, fmt), scale, commuted=commuted))
    values = rounded(compute(np.subtract, values, shift))
    values = _emulated(values, float8)
    values = rounded(compute(np.add, values, shift, commuted=commuted))
    return _narrowed(compute(np.divide, values, scale), fmt)


def widened(codes: Codes, fmt: FloatFormat) -> Floats:
    """The float32 numbers of 1-D codes of f16, bf16 or f32; exact, NaNs with their payload.

    A new array, or a view of codes that are of f32.
    """
    return neighbour(codes, fmt, FP32).view(np.float32)


def _narrowed(values: Floats, fmt: FloatFormat) -> Codes:
    return neighbour(values.view(FP32.code_dtype), FP32, fmt)


def _emulated(values: Floats, float8: FloatFormat) -> Floats:
    """Round to float16, and there to the numbers of the 8-bit format."""
    words = np.empty(values.size, FP32.code_dtype)
    _emulation(float8)(_narrowed(values, FP16), words)
    return words.view(np.float32)


@cache
def _emulation(float8: FloatFormat) -> Kernel:
    """FP16 codes to the FP32 codes of the emulated numbers, by a table of all."""
    emulate = _EMULATIONS[float8]
    return fast.look_up(lambda halves: neighbour(emulate(halves), FP16, FP32), FP16)


def _emulate_e5m2(halves: Codes) -> Codes:
    """Nearest, ties to even, gradual; beyond, and infinity, +-57344; NaN keeps two payload bits."""
    float8s = convert(halves, FP16, E5M2, RoundMode.RINT, SATURATE_KEEP_NAN)
    carry_nan(halves, FP16, float8s, E5M2, Payload.CUT)
    return neighbour(float8s, E5M2, FP16)


_FOUR_BITS: Final = FloatFormat(
    name="E5M3",
    exp_bits=FP16.exp_bits,
    man_bits=E4M3FN.man_bits,
    bias=FP16.bias,
    specials=FP16.specials,
    dtype=np.dtype(np.uint16),
)
"""The numbers of FP16 that have four significant bits."""


def _emulate_e4m3(halves: Codes) -> Codes:
    """Nearest, ties to even, to four significant bits; then cut to E4M3's last place.

    What is smaller than the least number of E4M3 becomes +0 before it could be rounded up; what is
    beyond the largest, infinity and NaN too, +-448 by its sign.
    """
    four_bits = convert(halves, FP16, _FOUR_BITS, RoundMode.RINT, INF_NAN)
    float8s = convert(four_bits, _FOUR_BITS, E4M3FN, RoundMode.TRUNC, SATURATE)
    emulated = convert(float8s, E4M3FN, FP16, RoundMode.RINT, INF_NAN).view(np.float16)
    values = halves.view(np.float16)
    largest = np.copysign(_largest(E4M3FN).astype(np.float16), values)
    emulated = np.where(np.isnan(values), largest, emulated)
    small = np.abs(values) < 2.0**E4M3FN.min_quantum
    return np.where(small, np.float16(0), emulated).view(np.uint16)


_EMULATIONS: Final[Mapping[FloatFormat, Callable[[Codes], Codes]]] = {
    E4M3FN: _emulate_e4m3,
    E5M2: _emulate_e5m2,
}

# --- "plugin" and "rne" ---------------------------------------------------------------------------


def plugin(
    codes: Codes, fmt: FloatFormat, float8: FloatFormat, scale: Floats, shift: Floats | None
) -> Codes:
    """OpenVINO's CPU plugin: float32, clamped, through float16, times the reciprocal of the scale.

    Its float16 is the core's class. A NaN is clamped too, to the most negative number. The result
    is rounded once to its type.
    """
    halves = _narrowed(_clamped(codes, fmt, float8, scale, shift), FP16)
    return _widened(halves, fmt, float8, scale, shift)


def plugin_avx512fp16(
    codes: Codes, fmt: FloatFormat, float8: FloatFormat, scale: Floats, shift: Floats | None
) -> Codes:
    """The plugin where the processor has AVX512-FP16: its float16 is rounded once, to nearest."""
    words = _clamped(codes, fmt, float8, scale, shift).view(FP32.code_dtype)
    return _widened(_converted(words, (FP32, FP16), INF_NAN), fmt, float8, scale, shift)


def _clamped(
    codes: Codes, fmt: FloatFormat, float8: FloatFormat, scale: Floats, shift: Floats | None
) -> Floats:
    values = _moved(codes, fmt, scale, shift)
    largest = _largest(float8)
    np.fmax(values, -largest, out=values)
    np.minimum(values, largest, out=values)
    return values


def _widened(
    halves: Codes, fmt: FloatFormat, float8: FloatFormat, scale: Floats, shift: Floats | None
) -> Codes:
    values = _converted(halves, (FP16, float8, FP32), INF_NAN).view(np.float32)
    reciprocal = compute(np.divide, _ONE, scale)
    return _result(compute(np.multiply, _moved_back(values, shift), reciprocal), fmt)


def rne(
    codes: Codes, fmt: FloatFormat, float8: FloatFormat, scale: Floats, shift: Floats | None
) -> Codes:
    """The operation's order, in float32, with one rounding to the 8-bit format, which saturates.

    Beyond its largest number that number, for infinity too; NaN stays NaN. The result is rounded
    once to its type.
    """
    values = _moved(codes, fmt, scale, shift)
    words = _converted(values.view(FP32.code_dtype), (FP32, float8, FP32), SATURATE_KEEP_NAN)
    values = words.view(np.float32)
    return _result(compute(np.divide, _moved_back(values, shift), scale), fmt)


_ONE: Final = np.ones(1, np.float32)


def _largest(float8: FloatFormat) -> Floats:
    return values_of(np.array([float8.max_code], float8.code_dtype), float8).astype(np.float32)


def _moved(codes: Codes, fmt: FloatFormat, scale: Floats, shift: Floats | None) -> Floats:
    values = compute(np.multiply, widened(codes, fmt), scale)
    return values if shift is None else compute(np.subtract, values, shift)


def _moved_back(values: Floats, shift: Floats | None) -> Floats:
    return values if shift is None else compute(np.add, values, shift)


def _converted(codes: Codes, formats: tuple[FloatFormat, ...], policy: Policy) -> Codes:
    chain = tuple(
        Conversion(src=near, dst=far, mode=RoundMode.RINT, policy=policy)
        for near, far in itertools.pairwise(formats)
    )
    out = np.empty(codes.size, formats[-1].code_dtype)
    elementwise.loop(chain, engine=current().converter)(codes, out)
    return out


def _result(values: Floats, fmt: FloatFormat) -> Codes:
    words = values.view(FP32.code_dtype)
    return words if fmt is FP32 else _converted(words, (FP32, fmt), INF_NAN)


Array = npt.NDArray[Any]

_PIECE_ELEMS: Final = 1 << 17
"""So many that the calls for a piece cost little, so few that its arrays stay in the last cache."""

DATA_FORMATS: Final[Mapping[str, FloatFormat]] = {
    name_of_dtype(fmt.dtype): fmt for fmt in (BF16, FP16, FP32)
}
"""The types of data that FakeConvert takes."""
DESTINATION_FORMATS: Final[Mapping[str, FloatFormat]] = {
    name_of_dtype(fmt.dtype): fmt for fmt in (E4M3FN, E5M2)
}

_NUMERICS: Final[Mapping[str, Numerics]] = {
    "reference": reference,
    "plugin": plugin,
    "plugin-avx512fp16": plugin_avx512fp16,
    "rne": rne,
}

_BAD_TYPE: Final = "The element type of the input tensor must be a bf16, f16, f32 but got: {found}"
_MIXED_TYPES: Final = "Mixed input types are not supported."
_BAD_DESTINATION: Final = "Bad format for f8 conversion type: {found}"
_SHIFT_SHAPE: Final = "FakeConvert scale shape is not compatible with shift shape."
_INCONSISTENT: Final = "Argument shapes are inconsistent."
_ONE_DIRECTION: Final = (
    "FakeConvert support only unidirectional broadcasting, inputs cannot be broadcast into data."
)


class FakeConvertError(OpenVINOError):
    """Inputs that FakeConvert refuses: OpenVINO's sentence, the input, a remedy."""


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

    "plugin-avx512fp16" is the same on a processor with AVX512-FP16 instructions, where the plugin
    rounds to float16 once, to nearest even, instead of by the core's class. Measured on one, and
    there with ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16, which brings the other back.

    "rne" has the operation's order and the saturation of its paper: float32, one rounding to
    nearest even to the 8-bit type, **NaN stays NaN**, -0 is kept without a shift, a division;
    rounded once to the type of the data.

    None of them is the literal expression of the operation's text, whose Convert does not
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
        numerics: "reference", "plugin", "plugin-avx512fp16" or "rne".

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
    way: Numerics,
    fmt: FloatFormat,
    float8: FloatFormat,
    data: Array,
    scale: Array,
    shift: Array | None = None,
) -> Array:
    """Go over the data in memory order; the iterator lays scale and shift beside it."""
    moves = [
        widened(codes_of(move, fmt).reshape(-1), fmt).reshape(move.shape)
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


_LARGEST: Final = 57344
"""Of E5M2."""
_NAN: Final = 0x7E00
"""The NaN of FP16 whose lower byte is 0."""

_E5M2_IN_FP16: Final = VectorRow(
    src=FP16,
    dst=FP16,
    work=(
        ScalarStep(op=ScalarOp.MAXS, format=FP16, scalar=-_LARGEST),
        ScalarStep(op=ScalarOp.MINS, format=FP16, scalar=_LARGEST),
        ScalarStep(op=ScalarOp.MINS, format=INT16, scalar=_NAN),
        CastStep(src=INT16, dst=FP32),
        ScalarStep(op=ScalarOp.MULS, format=FP32, scalar=2.0**-8),
        CastStep(src=FP32, dst=INT16, mode=RoundMode.RINT),
        ScalarStep(op=ScalarOp.SHIFT_LEFT, format=UINT16, scalar=8),
    ),
)
"""E5M2 is the upper byte of FP16: its code is rounded as an integer, to even by RINT."""


def route(data_type: object, destination_type: object = "f8e4m3") -> Route:
    """The instructions of A2/A3 that give the codes of a FakeConvert of scale 1 without a shift.

    f16 data to f8e5m2 alone can be done: numbers are clamped, and the code, read as INT16, is
    rounded to its upper byte. The verdict is about every number of f16, infinities included,
    against `fake_convert(..., numerics="rne")`. NaN stays NaN where Maxs and Mins keep it, which is
    a chosen rule.

    Args:
        data_type: "f16", "bf16" or "f32".
        destination_type: "f8e4m3" or "f8e5m2".

    Returns:
        A route from DT_FP16 to itself. It has no kernel of pypto.

    Raises:
        FakeConvertError: a type that FakeConvert does not take.
        OpenVINOError: one that OpenVINO does not have.
        RouteError: A2/A3 have no instructions for it; the text names what comes nearest.
    """
    data, destination = known_name(data_type), known_name(destination_type)
    if data not in DATA_FORMATS or destination not in DESTINATION_FORMATS:
        raise FakeConvertError(
            f"FakeConvert takes {', '.join(DATA_FORMATS)} to {' or '.join(DESTINATION_FORMATS)}, "
            f"not {data} to {destination}"
        )
    if (DATA_FORMATS[data], DESTINATION_FORMATS[destination]) != (FP16, E5M2):
        raise RouteError(
            f"FakeConvert of {data} to {destination} has no route: A2/A3 have no 8-bit floats. The "
            "nearest that they can do are f16 to f8e5m2, and, of native casts, FP32 -> BF16 "
            "CAST_RINT, which keeps 8 significant bits"
        )
    chain = Chain(casts=(NativeCast(rule=_E5M2_IN_FP16, mode=None),))
    once = tuple(
        Conversion(src=src, dst=dst, mode=RoundMode.RINT, policy=policy)
        for src, dst, policy in ((FP16, E5M2, SATURATE_KEEP_NAN), (E5M2, FP16, INF_NAN))
    )
    numbers = dataclasses.replace(all_values(FP16, FP16), has_nan=False)
    return Route(
        src=DataType.DT_FP16,
        dst=DataType.DT_FP16,
        mode=CastMode.CAST_RINT,
        steps=(RouteStep(dtype=DataType.DT_FP16, mode=CastMode.CAST_NONE, is_cast=False),),
        verdict=enumerated(numbers, function_of(chain.conversions), function_of(once)),
        cycles=cycles_of(chain),
        chain=chain,
    )
