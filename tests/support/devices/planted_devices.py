"""Stand-in devices: this package's casts with one deviation planted, and the facts of each."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

import pypto_cast
from ascend_kernels.instances import is_row
from ascend_kernels.program import TileProgram
from pypto_cast.device.cases import CheckCase, cast_cases
from pypto_cast.device.check import CastOnDevice, check_casts
from pypto_cast.device.facts import DeviceDescription, DeviceFact
from simulator.machine.execute import execute
from simulator.numbers import formats as f
from simulator.numbers.convert import values_of
from simulator.numbers.formats import Codes, Format
from simulator.numbers.rounding import RoundMode
from tiling.chips import DEFAULT_CHIP

Values = npt.NDArray[Any]
Plant = Callable[[TileProgram, Values, Codes], Codes]
Where = Callable[[Values, Codes], npt.NDArray[np.bool_]]
DESCRIPTION = DeviceDescription(
    chip="Ascend910B3",
    cann="8.5.0",
    driver="25.5.0",
    torch_npu="2.13.0",
    library_sha256="ab" * 32,
    pypto_cast=pypto_cast.__version__,
    date="2026-01-02",
)
PAIRS = (
    (f.FP32, f.FP16),
    (f.FP16, f.FP32),
    (f.FP32, f.INT16),
    (f.INT64, f.FP32),
    (f.INT32, f.FP16),
    (f.FP16, f.INT4),
)


@functools.cache
def some_cases() -> tuple[CheckCase, ...]:
    """The cases of six pairs, with boundaries and few random codes."""
    return tuple(
        case
        for case in cast_cases(DEFAULT_CHIP, random_codes=1000)
        if (case.program.resolution.rule.src, case.program.resolution.rule.dst) in PAIRS
    )


def planted(plant: Plant | None = None) -> CastOnDevice:
    """A device with a deviation, or with none."""

    def device(program: TileProgram, values: Values) -> Codes:
        codes = execute(program, values)
        if plant is None:
            return codes
        with np.errstate(invalid="ignore"):
            return plant(program, values.reshape(-1), codes.copy())

    return device


Pair = tuple[Format, Format]
_PAIR_OF: dict[Plant, Pair] = {}
"""The only casts that a plant deviates in."""


def of_cast(src: Format, dst: Format, *, in_routes: bool = False) -> Callable[[Plant], Plant]:
    """Has a plant deviate in the casts of one pair alone, or in its routes alone."""

    def limited(plant: Plant) -> Plant:
        @functools.wraps(plant)
        def of_pair(program: TileProgram, values: Values, codes: Codes) -> Codes:
            is_here = is_cast(program, src, dst, in_routes=in_routes)
            return plant(program, values, codes) if is_here else codes

        _PAIR_OF[of_pair] = src, dst
        return of_pair

    return limited


@functools.cache
def checked(plant: Plant | None = None) -> Mapping[str, DeviceFact]:
    """The facts of a device, by name; pairs in which it does not deviate are checked once."""
    by_pair = (
        _checked(plant if _PAIR_OF.get(plant) in (None, pair) else None, pair) for pair in PAIRS
    )
    return functools.reduce(
        lambda found, more: {name: fact.merged(more[name]) for name, fact in found.items()}, by_pair
    )


@functools.cache
def _checked(plant: Plant | None, pair: Pair) -> Mapping[str, DeviceFact]:
    cases = (case for case in some_cases() if (case.cast.src, case.cast.dst) == pair)
    return {fact.name: fact for fact in check_casts(planted(plant), cases)}


def is_cast(program: TileProgram, src: Format, dst: Format, *, in_routes: bool = False) -> bool:
    rule = program.resolution.rule
    return rule.src is src and rule.dst is dst and is_row(program.resolution) is not in_routes


def gives(
    src: Format,
    dst: Format,
    where: Where,
    code: int,
    modes: tuple[RoundMode | None, ...] = (),
    *,
    inf_nan: bool | None = True,
) -> Plant:
    """A cast that gives one code for some elements."""

    def plant(program: TileProgram, values: Values, codes: Codes) -> Codes:
        is_mode = not modes or program.resolution.mode in modes
        is_state = inf_nan is None or program.inf_nan_mode == inf_nan
        if is_cast(program, src, dst) and is_mode and is_state:
            codes[where(values, codes)] = code
        return codes

    return plant


@of_cast(f.FP32, f.FP16)
def quiet_nan(program: TileProgram, values: Values, codes: Codes) -> Codes:
    codes[codes == 0x7FFF] = 0x7E00
    return codes


@of_cast(f.FP32, f.INT16)
def nan_to_largest(program: TileProgram, values: Values, codes: Codes) -> Codes:
    codes[np.isnan(values)] = 0x7FFF
    return codes


@of_cast(f.FP32, f.FP16)
def directed_to_infinity(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if program.resolution.mode is RoundMode.TRUNC:
        beyond = np.isfinite(values) & (np.abs(values) >= 65536)
        if program.inf_nan_mode:
            codes[beyond] = (codes[beyond] & 0x8000) | 0x7C00
    return codes


@of_cast(f.FP32, f.FP16)
def odd_to_infinity(program: TileProgram, values: Values, codes: Codes) -> Codes:
    is_odd = program.resolution.mode is RoundMode.ODD
    if is_odd and program.inf_nan_mode:
        codes[np.isfinite(values) & (values >= 2.0**100)] ^= 1
    return codes


@of_cast(f.FP32, f.FP16)
def far_to_largest(program: TileProgram, values: Values, codes: Codes) -> Codes:
    is_nearest = program.resolution.mode is RoundMode.RINT
    if is_nearest and program.inf_nan_mode:
        codes[values == 65536] = 0x7BFF
    return codes


@of_cast(f.FP16, f.FP32)
def finite_infinities(program: TileProgram, values: Values, codes: Codes) -> Codes:
    codes[np.isposinf(values)] = 0x477FE000
    return codes


@of_cast(f.FP32, f.FP16)
def halves_away(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if program.resolution.mode is RoundMode.RINT:
        codes[values == 2049] = 0x6801
    return codes


@of_cast(f.FP32, f.FP16)
def odd_to_zero(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if program.resolution.mode is RoundMode.ODD:
        tiny = (values != 0) & (np.abs(values) < 2.0**-24)
        codes[tiny & (np.abs(values) >= 2.0**-126)] &= 0x8000
    return codes


@of_cast(f.FP16, f.FP32)
def flushing_inputs(program: TileProgram, values: Values, codes: Codes) -> Codes:
    codes[np.abs(values) < 2.0**-14] &= 0x80000000
    return codes


@of_cast(f.FP32, f.FP16)
def flushing_results(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if program.resolution.mode is RoundMode.RINT:
        codes[np.abs(values_of(codes, f.FP16)) < 2.0**-14] &= 0x8000
    return codes


@of_cast(f.FP32, f.FP16)
def unsigned_zero(program: TileProgram, values: Values, codes: Codes) -> Codes:
    codes[(codes == 0x8000) & ~(np.abs(values) < 2.0**-126) | (values == 0)] = 0
    return codes


@of_cast(f.FP32, f.INT16)
def clamping(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if any(c.truncates for c in program.resolution.casts):
        codes[np.isfinite(values) & (values > 32768)] = 0x7FFF
    return codes


@of_cast(f.FP32, f.INT16)
def wrapping(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if not program.resolution.casts[0].truncates:
        codes[values == 65536] = 0
    return codes


@of_cast(f.FP32, f.FP16)
def infinite(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if not program.inf_nan_mode:
        codes[np.isfinite(values) & (values > 65536)] = 0x7C00
    return codes


@of_cast(f.FP16, f.INT4)
def other_nibbles(program: TileProgram, values: Values, codes: Codes) -> Codes:
    codes = codes.reshape(-1, 2)[:, ::-1].reshape(-1)
    return codes


@of_cast(f.INT64, f.FP32)
def twice_rounded(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if program.resolution.mode is RoundMode.RINT:
        return values.astype(np.float64).astype(np.float32).view(np.uint32)
    return codes


@of_cast(f.INT32, f.FP16)
def truncated(program: TileProgram, values: Values, codes: Codes) -> Codes:
    codes[values == 2051] = 0x6801
    return codes


@of_cast(f.FP32, f.FP16)
def short_rows(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if program.plan.shape == (6, 17):
        codes[16] ^= 1
    return codes


@of_cast(f.FP32, f.FP16)
def small_ub(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if program.plan.tile_shape[-1] > 15680:
        codes[-1] ^= 1
    return codes


@of_cast(f.FP32, f.INT16, in_routes=True)
def other_routes(program: TileProgram, values: Values, codes: Codes) -> Codes:
    """Of all routes, and of no cast alone."""
    codes[values == 0] ^= 1
    return codes
