"""Mock devices of a 950: deviations in the pairs and control bits that A2 and A3 lack."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from support.devices import flawed_devices as flawed
from support.devices.planted_devices import Plant, Values, gives, is_cast
from support.devices.planted_instructions import StandIn, clamped

from ascend_kernels.program import TileProgram
from pypto_cast.device.cases import FP4_NIBBLES, SATMODE, CheckCase, cast_cases
from pypto_cast.device.core_state_check import CTRL_ENTRY, CTRL_LEFT, INT_SUMS
from simulator.numbers import formats as f
from simulator.numbers.formats import Codes
from tiling.chips import CHIPS

CHIP_950: Final = CHIPS["Ascend950PR"]
_PAIRS: Final = (
    (f.FP32, f.E5M2),
    (f.FP32, f.E4M3FN),
    (f.FP16, f.HF8),
    (f.HF8, f.FP32),
    (f.E4M3FN, f.FP32),
    (f.BF16, f.E2M1),
    (f.E2M1, f.BF16),
    (f.FP16, f.INT8),
    (f.INT16, f.UINT8),
    (f.UINT32, f.UINT16),
)
_FP4: Final = (f.BF16, f.E2M1)
_CTRL: Final = 1 << 48 | 1 << 60
Outcomes = Any


@functools.cache
def cases_950() -> tuple[CheckCase, ...]:
    """All codes of ten pairs, by the bits and by SatMode, and the shapes of FP4."""
    return tuple(
        case
        for case in cast_cases(CHIP_950, random_codes=1000)
        if (case.cast.src, case.cast.dst) in _PAIRS
        and (case.about in (None, SATMODE) or (case.cast.src, case.cast.dst) == _FP4)
    )


def _in_state(plant: Plant, *, nan: bool | None = None, is_global: bool | None = None) -> Plant:
    """A plant in one state of CTRL[50] or CTRL[60] alone."""

    def limited(program: TileProgram, values: Values, codes: Codes) -> Codes:
        controls = program.controls
        is_here = nan in (None, controls.fp8_nan)
        is_here &= is_global in (None, controls.global_saturation)
        return plant(program, values, codes) if is_here else codes

    return limited


def _other_nibbles(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if is_cast(program, *_FP4):
        codes = codes.reshape(-1, 2)[:, ::-1].reshape(-1)
    return codes


def _wide_rows(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if is_cast(program, *_FP4) and program.plan.shape == (24, 192):
        codes[-1] ^= 1
    return codes


def _own_satmode_ignored(program: TileProgram, values: Values, codes: Codes) -> Codes:
    """With CTRL[60] = 0 a cast saturates by CTRL[48] all the same."""
    own = not program.controls.global_saturation
    if own and is_cast(program, f.FP32, f.E5M2) and program.resolution.saturate:
        codes[np.isinf(values)] = codes[np.isinf(values)] & 0x80 | 0x7C
    return codes


def _finite(values: Values, least: float) -> Any:
    return np.isfinite(values) & (values >= least)


def _is_nan(values: Values, _: Codes) -> Any:
    return np.isnan(values)


CASTS_950: Final[dict[str, tuple[Plant | None, Outcomes, set[str]]]] = {
    "950 as assumed, casts": (None, "as assumed", set()),
    "950: NaN kept where CTRL[50] = 0": (
        _in_state(gives(f.FP32, f.E5M2, _is_nan, 0x7F, inf_nan=False), nan=False, is_global=True),
        "named",
        {"NaN where results saturate", SATMODE},
    ),
    "950: NaN lost where CTRL[50] = 1": (
        _in_state(gives(f.FP32, f.E4M3FN, _is_nan, 0, inf_nan=False), nan=True),
        "followed",
        {"NaN with CTRL[50] = 1"},
    ),
    "950: E4M3FN overflows to 448": (
        gives(f.FP32, f.E4M3FN, lambda v, _: _finite(v, 480.0), 0x7E),
        "named",
        {"overflow to nearest"},
    ),
    "950: SatMode has no effect": (_own_satmode_ignored, "named", {SATMODE}),
    "950: infinity of HF8 is the largest": (
        gives(f.FP16, f.HF8, lambda v, _: np.isposinf(v), 0x6E),
        "followed",
        {"infinities"},
    ),
    "950: HF8 rounds otherwise at 1.0625": (
        gives(f.FP16, f.HF8, lambda v, _: v == 1.0625, 0x08, inf_nan=None),
        "named",
        {"rounding"},
    ),
    "950: NaN of HF8 is quiet": (
        gives(f.HF8, f.FP32, lambda _, c: c == 0x7FFFFFFF, 0x7FC00000),
        "followed",
        {"NaN pattern"},
    ),
    "950: E4M3FN subnormals flushed": (
        gives(f.E4M3FN, f.FP32, lambda v, _: _finite(v, 0) & (v < 2.0**-6), 0),
        "followed",
        {"subnormal inputs"},
    ),
    "950: FP4 nibbles in the other order": (_other_nibbles, "named", {FP4_NIBBLES}),
    "950: FP4 clamps to 4": (
        gives(f.BF16, f.E2M1, lambda v, _: _finite(v, 8.0), 0x6, inf_nan=None),
        "followed",
        {"overflow to nearest"},
    ),
    "950: strided copies of FP4": (_wide_rows, "named", {"strided copies of several blocks"}),
    "950: UINT32 clamps otherwise": (
        gives(f.UINT32, f.UINT16, lambda v, _: v == 65536, 0, inf_nan=None),
        "named",
        {"integers out of range, clamped"},
    ),
    "950: low bits of FP16 to INT8 clamp": (
        gives(f.FP16, f.INT8, lambda v, _: v == 129, 0x7F, inf_nan=None),
        "named",
        {"integers out of range, low bits"},
    ),
}
"""Casts, what becomes of them, and the facts that must differ."""


def _halves_clamped(a: Any, b: Any) -> Any:
    return np.where(a > 0, clamped(a, b), a + b)


def _device(**arguments: Any) -> Callable[[], Any]:
    return lambda: StandIn(**{"ctrl": _CTRL, **arguments})


CHECKS_950: Final[dict[str, tuple[Callable[[], Any], Outcomes, set[str]]]] = {
    "950 as assumed, other kernels": (_device(), "as assumed", set()),
    "950: CTRL[48] is 0 at entry": (_device(ctrl=1 << 60), "named", {CTRL_ENTRY}),
    "950: CTRL[50] is 1 at entry": (_device(ctrl=_CTRL | 1 << 50), "named", {CTRL_ENTRY}),
    "950: CTRL[53] is 1 at entry": (_device(ctrl=_CTRL | 1 << 53), "named", {CTRL_ENTRY}),
    "950: CTRL[59] is 1 at entry": (_device(ctrl=_CTRL | 1 << 59), "named", {CTRL_ENTRY}),
    "950: CTRL[60] is 0 at entry": (_device(ctrl=1 << 48), "named", {CTRL_ENTRY}),
    "950: CTRL forgotten": (_device(forgets=True), "named", {CTRL_LEFT}),
    "950: CTRL of core 7": (
        lambda: flawed.other_core(_device()(), 7, ("ctrl_read",)),
        "named",
        {CTRL_ENTRY, CTRL_LEFT},
    ),
    "950: integers clamp where CTRL[53] = 0": (
        _device(planted={"int_sum_kept": clamped}),
        "named",
        {INT_SUMS},
    ),
    "950: integers wrap where CTRL[53] = 1": (
        _device(planted={"int_sum_clamped": lambda a, b: a + b}),
        "named",
        {INT_SUMS},
    ),
    "950: one end clamps where CTRL[53] = 1": (
        _device(planted={"int_sum_clamped": _halves_clamped}),
        "named",
        {INT_SUMS},
    ),
}
"""Other kernels, what becomes of them, and the facts that must differ."""
