"""The arithmetic of FakeConvert: float32 operations whose every bit is settled, NaNs too.

IEEE 754 leaves open which NaN comes out of an operation, and FakeConvert turns NaNs into numbers
whose sign tells. x86-64, where OpenVINO was measured, hands on the first operand that is a NaN,
quieted, and makes a negative NaN where there is none; here every processor does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.frontends.openvino.nan_payloads import has_nan
from simulator import elementwise
from simulator.convert import INF_NAN, Conversion
from simulator.formats import FP32, FP64, Codes, Format
from simulator.rounding import RoundMode

Floats = npt.NDArray[np.float32]
Operation = Callable[[Any, Any], Any]
"""numpy's add, subtract, multiply or divide."""

_QUIET: Final = np.uint32(0x00400000)
_NAN_OF_NUMBERS: Final = np.uint32(0xFFC00000)
"""What inf - inf, 0 * inf, 0 / 0 and inf / inf are."""


def compute(operation: Operation, left: Floats, right: Floats, *, commuted: bool = False) -> Floats:
    """Apply an operation, rounding once to nearest even, subnormal numbers included.

    Args:
        operation: which.
        left: 1-D, contiguous.
        right: as many, or one for all.
        commuted: of two NaNs the right one is handed on.
    """
    flushing = elementwise.flushes_subnormals()
    with np.errstate(all="ignore"):
        result: Floats = (_in_double if flushing else _direct)(operation, left, right)
    if has_nan(result.view(np.uint32), FP32):
        first, second = (right, left) if commuted else (left, right)
        _settle_nans(result, first, second)
    return result


def _direct(operation: Operation, left: Floats, right: Floats) -> Floats:
    result: Floats = operation(left, right)
    return result


def _in_double(operation: Operation, left: Floats, right: Floats) -> Floats:
    """Where float32's subnormal numbers are flushed, float64 holds them as normal ones.

    The second rounding is innocent: 53 bits are more than twice 24 and two.
    """
    wide = operation(_converted(left, FP32, FP64), _converted(right, FP32, FP64))
    return _converted(wide, FP64, FP32)


def _converted(values: npt.NDArray[Any], src: Format, dst: Format) -> npt.NDArray[Any]:
    conversion = Conversion(src=src, dst=dst, mode=RoundMode.RINT, policy=INF_NAN)
    out: Codes = np.empty(values.size, dst.code_dtype)
    elementwise.run((conversion,), values, out)
    return out.view(dst.dtype)


def _settle_nans(result: Floats, first: Floats, second: Floats) -> None:
    where = np.flatnonzero(np.isnan(result))
    codes = np.full(where.size, _NAN_OF_NUMBERS)
    for operand in (second, first):
        chosen = np.broadcast_to(operand, result.shape)[where]
        codes = np.where(np.isnan(chosen), chosen.view(np.uint32) | _QUIET, codes)
    result.view(np.uint32)[where] = codes
