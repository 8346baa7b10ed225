"""Instructions that take one number beside a tensor (Maxs, Mins, Muls, shifts), on codes.

Source: CANN asc-devkit, documents of Maxs, Mins, Muls, ShiftLeft and ShiftRight, which name the
types of A2/A3; special values as the operations of `simulator.arithmetic.table` have them.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from simulator import corrections as corrected_casts
from simulator.arithmetic import total_order
from simulator.corrections import NO_CORRECTIONS, Corrections
from simulator.machine.isa import ScalarOp
from simulator.numbers import elementwise, float_environment
from simulator.numbers.convert import Conversion
from simulator.numbers.engines import Engine
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
_PIECE_ELEMS: Final = 1 << 15


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

    def reference(self, codes: Codes) -> Codes:
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

ElementStep = Conversion | ScalarWork
"""One step of the work of a program on each element."""


def run_elements(
    steps: tuple[ElementStep, ...],
    values: npt.NDArray[Any],
    out: Codes,
    *,
    exact: bool = False,
    engine: Engine = "auto",
    threads: int = 1,
    corrections: Corrections = NO_CORRECTIONS,
) -> None:
    """Take an array of any strides and byte order through steps; see `elementwise.run`.

    Args:
        steps: applied in order. Neighbours have codes of one width.
        values: source codes or values of the first format, any shape; not modified.
        out: destination codes, 1-D and contiguous, as many elements, in row-major order.
        exact: take the definition instead of the fast paths.
        engine: as for `elementwise.loop`.
        threads: how many threads to share the work among.
        corrections: what a measured device converts in its own way.

    Warns:
        EngineWarning: see `native_for`.
    """
    conversions = tuple(step for step in steps if isinstance(step, Conversion))
    if len(conversions) == len(steps):
        corrected_casts.run(
            conversions, values, out, corrections, exact=exact, engine=engine, threads=threads
        )
        return
    code_dtype = steps[0].src.code_dtype
    native = values.astype(values.dtype.newbyteorder("="), order="C", copy=False)
    codes = native.reshape(-1).view(code_dtype)
    path = element_loop(steps, exact=exact, engine=engine, corrections=corrections)
    elementwise.share(lambda span: path(codes[span], out[span]), codes.size, threads)


def element_loop(
    steps: tuple[ElementStep, ...],
    *,
    exact: bool = False,
    engine: Engine = "auto",
    corrections: Corrections = NO_CORRECTIONS,
) -> elementwise.Loop:
    """The path of steps: neighbouring conversions together, by `elementwise.loop`."""
    stages: list[tuple[elementwise.Loop, np.dtype[Any]]] = []
    for is_scalar, group in itertools.groupby(steps, lambda step: isinstance(step, ScalarWork)):
        alike = tuple(group)
        if is_scalar:
            stages += [(_scalar_loop(one), one.dst.code_dtype) for one in alike]
            continue
        conversions = tuple(step for step in alike if isinstance(step, Conversion))
        path = corrected_casts.loop(conversions, corrections, exact=exact, engine=engine)
        stages.append((path, conversions[-1].dst.code_dtype))
    if len(stages) == 1:
        return stages[0][0]

    def run_stages(codes: Codes, out: Codes) -> None:
        for start in range(0, codes.size, _PIECE_ELEMS):
            piece = codes[start : start + _PIECE_ELEMS]
            for path, dtype in stages:
                made = np.empty(piece.size, dtype)
                path(piece, made)
                piece = made
            out[start : start + _PIECE_ELEMS] = piece

    return run_stages


def _scalar_loop(step: ElementStep) -> elementwise.Loop:
    if step.src is FP16:
        # numpy computes halves in software, one after another.
        def look_up(codes: Codes, out: Codes) -> None:
            np.take(_table(step), codes, out=out, mode="clip")

        return look_up

    def run_scalar(codes: Codes, out: Codes) -> None:
        out[:] = step.reference(codes)

    return run_scalar


@functools.lru_cache(maxsize=16)
def _table(step: ElementStep) -> Codes:
    """The results of all codes of 16 bits."""
    return step.reference(np.arange(1 << 16, dtype=np.uint16))
