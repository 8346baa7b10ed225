"""Instructions that take one number beside a tensor (Maxs, Mins, Muls, shifts), on codes.

Source: CANN asc-devkit, documents of Maxs, Mins, Muls, ShiftLeft and ShiftRight, which name the
types of A2/A3; special values as the operations of `simulator.arithmetic.table` have them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from simulator.arithmetic import total_order
from simulator.machine.isa import ScalarOp
from simulator.numbers import float_environment
from simulator.numbers.formats import (
    FP16,
    FP32,
    INT16,
    INT32,
    UINT16,
    UINT32,
    Codes,
    FloatFormat,
    Format,
)

_NUMBERS: Final = (FP32, FP16, INT32, INT16)
SCALAR_FORMATS: Final[Mapping[ScalarOp, tuple[Format, ...]]] = {
    ScalarOp.MAXS: _NUMBERS,
    ScalarOp.MINS: _NUMBERS,
    ScalarOp.MULS: (FP32, FP16),
    ScalarOp.SHIFT_LEFT: (UINT32, UINT16),
    ScalarOp.SHIFT_RIGHT: (UINT32, UINT16),
}
"""The formats that are simulated. A2/A3 have Muls and shifts of signed integers too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarWork:
    """An instruction with a scalar as work on each element.

    Attributes:
        op: which one.
        format: of the elements, before and after.
        scalar: a number of the format, or the bits of a shift.
    """

    op: ScalarOp
    format: Format
    scalar: float

    @property
    def src(self) -> Format:
        return self.format

    @property
    def dst(self) -> Format:
        return self.format

    def define(self, codes: Codes) -> Codes:
        """Give the codes of the results.

        Maxs and Mins count -0 below +0 and give NaN where an element is one; Muls rounds to nearest
        even, with subnormal numbers on both sides. A NaN that results is the format's one NaN. The
        shifts are those of unsigned integers: zeros move in.
        """
        fmt = self.format
        values = codes.view(fmt.dtype)
        scalar = np.asarray(self.scalar, fmt.dtype)
        with float_environment.quiet():
            results = _FUNCTIONS[self.op](values, scalar)
        made: Codes = np.ascontiguousarray(results).view(fmt.code_dtype)
        if isinstance(fmt, FloatFormat) and fmt.nan_code is not None:
            nan = np.isnan(results)
            if nan.any():
                made[nan] = fmt.nan_code
        return made


_FUNCTIONS: Final[Mapping[ScalarOp, Any]] = {
    ScalarOp.MAXS: total_order.maximum,
    ScalarOp.MINS: total_order.minimum,
    ScalarOp.MULS: np.multiply,
    ScalarOp.SHIFT_LEFT: np.left_shift,
    ScalarOp.SHIFT_RIGHT: np.right_shift,
}
