"""The arithmetic of FakeConvert: float32 operations whose every bit is settled, NaNs too.

IEEE 754 leaves open which NaN comes out of an operation, and FakeConvert turns NaNs into numbers
whose sign tells. x86-64, where OpenVINO was measured, hands on the first operand that is a NaN,
quieted, and makes a negative NaN where there is none; here every processor does.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from pypto_cast.dialects.openvino.nan_payloads import has_nan
from simulator.numbers.float_arithmetic import Operation, correctly_rounded
from simulator.numbers.formats import FP32

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
