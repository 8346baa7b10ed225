"""FakeConvert-13 by native instructions of A2/A3, where it can be done."""

from __future__ import annotations

import dataclasses
from typing import Final

from ascend_kernels.matrix import CastStep, ScalarStep
from ascend_kernels.routing.chain_check import all_values, enumerated
from ascend_kernels.routing.chain_ranking import cycles_of
from ascend_kernels.routing.chains import Chain, NativeCast, function_of
from ascend_kernels.routing.vector_rows import VectorRow
from pypto_cast.dialects.openvino.element_types import known_name
from pypto_cast.dialects.openvino.fake_convert import (
    DATA_FORMATS,
    DESTINATION_FORMATS,
    FakeConvertError,
)
from pypto_cast.dtypes.data_types import CastMode, DataType
from pypto_cast.routes.cast_routes import Route, RouteError, RouteStep
from simulator.machine.isa import ScalarOp
from simulator.numbers.convert import INF_NAN, SATURATE_KEEP_NAN, Conversion
from simulator.numbers.formats import E5M2, FP16, FP32, INT16, UINT16
from simulator.numbers.rounding import RoundMode

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
