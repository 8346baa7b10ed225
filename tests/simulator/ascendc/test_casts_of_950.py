"""AscendC's Cast on the 950: its table, all pairs against fractions, E8M0, HYBRID, and refusals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.numbers import ascend950
from support.numbers.ascend950 import MEMORY_API, REG_API_ALONE, Pair
from support.numbers.codes import SEED
from support.numbers.small_floats import POWER

from simulator import ascendc as asc
from simulator.machine.cast_table import CAST_TABLE
from simulator.machine.vector_types import VECTOR_TYPES
from simulator.numbers.convert import codes_of, values_of
from simulator.numbers.formats import FORMATS, Codes, FloatFormat
from simulator.numbers.rounding import boundary_codes
from tiling.chips import ASCEND_950

CHIP = "Ascend950PR"
COUNT = 512
TYPES = {row.format.name: getattr(asc, row.pyasc) for row in VECTOR_TYPES.values()}
TABLE = {(str(src), str(dst)): row for (src, dst), row in CAST_TABLE[ASCEND_950].items()}
BUT_FP8 = {("FP32", "E4M3FN"), ("FP32", "E5M2")}
"""Pairs of which the machine has the modes of upstream's document; the page has RINT alone."""


@asc.jit
def convert(
    x: asc.GlobalAddress, y: asc.GlobalAddress, mode: asc.RoundMode, src: Any, dst: Any
) -> None:
    x_gm, y_gm = asc.GlobalTensor(), asc.GlobalTensor()
    x_gm.set_global_buffer(x, COUNT)
    y_gm.set_global_buffer(y, COUNT)
    pipe = asc.TPipe()
    incoming, outgoing = asc.TQue(asc.TPosition.VECIN, 1), asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(incoming, 1, COUNT * src.bitwidth // 8)
    pipe.init_buffer(outgoing, 1, COUNT * dst.bitwidth // 8)
    held = incoming.alloc_tensor(src)
    asc.data_copy(held, x_gm, COUNT)
    incoming.enque(held)
    held = incoming.deque(src)
    made = outgoing.alloc_tensor(dst)
    if (src, dst) == (asc.int32, asc.half):
        asc.set_deq_scale(1.0)
    asc.cast(made, held, mode, COUNT)
    incoming.free_tensor(held)
    outgoing.enque(made)
    made = outgoing.deque(dst)
    asc.data_copy(y_gm, made, COUNT)
    outgoing.free_tensor(made)


def cast(codes: Codes, src: str, dst: str, mode: str, **options: Any) -> Codes:
    """The codes that a kernel gives of COUNT codes."""
    a, b = FORMATS[src], FORMATS[dst]
    x = values_of(codes, a).copy()
    y = values_of(np.zeros(COUNT, b.code_dtype), b)
    kernel = convert.options(chip=CHIP, **options)
    kernel[1](x, y, asc.RoundMode[f"CAST_{mode}"], TYPES[src], TYPES[dst])
    return codes_of(y, b)


def drawn(name: str) -> Codes:
    """COUNT codes: all special ones, those around cuts, and others."""
    fmt = FORMATS[name]
    rng = np.random.default_rng(SEED)
    codes = rng.choice(boundary_codes(fmt), COUNT)
    if fmt.bits == 4:
        codes[:16] = np.arange(16)
    elif isinstance(fmt, FloatFormat):
        special = [0, 1, fmt.max_code, fmt.inf_code or 0, fmt.nan_code or 0]
        codes[: len(special)] = special
        if not fmt.is_scale:
            codes[8 : 8 + len(special)] = np.array(special) | fmt.sign_code
    if name == "INT4":
        codes = ((codes & 15) ^ 8).astype(np.uint8) - np.uint8(8)
    return np.asarray(codes, fmt.code_dtype)


# --- The table ------------------------------------------------------------------------------------


def test_the_pairs_are_those_of_the_memory_api_and_two_of_the_reg_api() -> None:
    left_out = {pair for pair in MEMORY_API if {"DOUBLE", "COMPLEX32", "COMPLEX64"} & {*pair}}
    assert (len(MEMORY_API), len(left_out)) == (64, 8)
    assert set(TABLE) == {*MEMORY_API} - left_out | {*REG_API_ALONE}
    assert len(TABLE) == 58


@pytest.mark.parametrize("pair", MEMORY_API, ids="-".join)
def test_the_modes_are_those_of_the_page(pair: tuple[str, str]) -> None:
    if pair not in TABLE or pair in BUT_FP8:
        return
    modes = {mode.name if mode else "NONE" for mode in TABLE[pair].all_modes}
    assert modes == {*MEMORY_API[pair]}


@pytest.mark.parametrize("pair", sorted({*TABLE} - {*REG_API_ALONE}), ids="-".join)
@pytest.mark.sampled(3)
def test_every_pair_and_mode_gives_the_codes_of_fractions(pair: tuple[str, str]) -> None:
    src, dst = pair
    codes = drawn(src)
    bits = (1 << FORMATS[src].bits) - 1
    for mode in TABLE[pair].all_modes:
        name = mode.name if mode else "NONE"
        if name == "HYBRID":
            continue
        found = cast(codes, src, dst, name)
        one = Pair(src, dst, (name,), name)
        exact = "RINT" if name == "NONE" else name
        wanted = [
            ascend950.expected(code & bits, one, exact, off=False, inf_nan_mode=True)
            for code in codes.tolist()
        ]
        np.testing.assert_array_equal(found, wanted, name)


@pytest.mark.parametrize("dtype", [np.float64, np.complex64, np.complex128])
def test_types_that_are_left_out_are_refused_by_name(dtype: Any) -> None:
    y = np.zeros(COUNT, np.float32)
    text = rf"unknown dtype {np.dtype(dtype)}.* DOUBLE and complex numbers, .*are not simulated"
    with pytest.raises(asc.KernelError, match=text):
        convert.options(chip=CHIP)[1](
            np.zeros(COUNT, dtype), y, asc.RoundMode.CAST_RINT, asc.float32, asc.float32
        )


def test_a_chip_of_the_other_family_has_no_such_pair() -> None:
    with pytest.raises(asc.SimulatorFault, match="Cast has no pair FP32 -> HF8"):
        convert[1](
            np.zeros(COUNT, np.float32),
            values_of(np.zeros(COUNT, np.uint8), FORMATS["HF8"]),
            *(asc.RoundMode.CAST_ROUND, asc.float32, asc.hifloat8_t),
        )


def test_hybrid_is_of_hf8_alone() -> None:
    text = "only the modes RINT, ROUND, FLOOR, CEIL, TRUNC for this pair"
    with pytest.raises(asc.SimulatorFault, match=text):
        cast(drawn("FP32"), "FP32", "E4M3FN", "HYBRID")


# --- E8M0 -----------------------------------------------------------------------------------------


def exponent_field(code: int, *, infinity: int) -> int:
    """E8M0 of a code of BF16: its exponent field; of NaN 0xFF."""
    field, fraction = code >> 7 & 0xFF, code & 0x7F
    if field == 0xFF:
        return 0xFF if fraction else infinity
    return field


@pytest.mark.parametrize(("reading", "infinity"), [("max", 0xFE), ("nan", 0xFF)])
@pytest.mark.parametrize("exact", [False, True])
def test_bf16_to_e8m0_is_the_power_of_two_below(reading: str, infinity: int, exact: bool) -> None:
    readings = {"bf16-inf-e8m0": reading}
    rng = np.random.default_rng(SEED)
    for start in (0, 0x7F00, 0xFF00, *rng.integers(0, (1 << 16) - COUNT, 2)):
        codes = np.arange(start, start + COUNT).clip(0, 0xFFFF).astype(np.uint16)
        found = cast(codes, "BF16", "E8M0", "NONE", readings=readings, exact=exact)
        wanted = [exponent_field(code, infinity=infinity) for code in codes.tolist()]
        np.testing.assert_array_equal(found, wanted)


def test_e8m0_to_bf16_is_exact() -> None:
    codes = np.arange(COUNT).astype(np.uint8)
    found = cast(codes, "E8M0", "BF16", "NONE")
    wanted = ml_dtypes.bfloat16(2.0) ** (np.arange(255, dtype=np.float32) - 127)
    np.testing.assert_array_equal(found[:255], wanted.astype(ml_dtypes.bfloat16).view(np.uint16))
    assert found[255] == 0x7FFF


# --- HYBRID ---------------------------------------------------------------------------------------


def hybrid(code: int, fraction_bits: int, bias: int) -> int:
    """HF8 of a normal number by the bits of CANN's text, field by field; no special values."""
    sign = code >> (31 if fraction_bits == 23 else 15)
    ev = (code >> fraction_bits & (2 * bias + 1)) - bias
    fraction = code & (1 << fraction_bits) - 1
    width = 14 if fraction_bits == 23 else 2
    thr = fraction & 0x3FFF if fraction_bits == 23 else (fraction & 1) << 1 | 1

    def cut(bits: int) -> tuple[int, int, int]:
        """M, the bit behind it, and so many bits behind it, of a fraction with room below."""
        wide = fraction << 24
        below = fraction_bits + 24 - bits
        behind = wide & (1 << below) - 1
        return wide >> below, behind >> below - 1, behind >> below - width

    if ev > 15:
        return 0xEF if sign else 0x6F
    if ev < -23:
        return 0
    if ev == -23:
        first = 1 << width - 1 | fraction >> fraction_bits - (width - 1)
        return (0x81 if sign else 0x01) if first >= thr else 0
    kept = 0 if ev <= -16 else 3 if abs(ev) <= 3 else 2 if abs(ev) <= 7 else 1
    m, half, first = cut(kept)
    if half if abs(ev) <= 3 else first >= thr:
        m += 1
        if m == 1 << kept:
            ev, m = ev + 1, 0
    value = POWER[ev] * (1 + Fraction(m, 1 << kept))
    magnitude = next((c for number, c in hif8_numbers() if number == value), 0x6F)
    return sign << 7 | magnitude


def hif8_numbers() -> tuple[tuple[Fraction, int], ...]:
    return ascend950.SMALL_FLOATS["HF8"].numbers


@pytest.mark.parametrize(("src", "fraction_bits", "bias"), [("FP32", 23, 127), ("FP16", 10, 15)])
def test_hybrid_is_the_text_of_its_bits(src: str, fraction_bits: int, bias: int) -> None:
    rng = np.random.default_rng(SEED)
    fmt = FORMATS[src]
    least = max(1, bias - 26)
    for part in range(4):
        fields = rng.integers(least, min(bias + 18, 2 * bias + 1), COUNT)
        fractions = rng.integers(0, 1 << fraction_bits, COUNT)
        if part == 1:  # exact numbers, and neighbours of cuts
            fractions = rng.integers(0, 16, COUNT) << fraction_bits - 4
        if part == 2:
            fractions |= (1 << fraction_bits - 1) - 1
        signs = rng.integers(0, 2, COUNT) << fmt.bits - 1
        codes = (signs | fields << fraction_bits | fractions).astype(fmt.code_dtype)
        found = cast(codes, src, "HF8", "HYBRID")
        wanted = [hybrid(code, fraction_bits, bias) for code in codes.tolist()]
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("src", "inf", "nan"), [("FP32", 0x7F800000, 0x7F800001), ("FP16", 0x7C00, 0x7C01)]
)
def test_special_values_by_hybrid(src: str, inf: int, nan: int) -> None:
    fmt = FORMATS[src]
    codes = np.zeros(COUNT, fmt.code_dtype)
    codes[:5] = [inf, inf | 1 << fmt.bits - 1, nan, 0, 1 << fmt.bits - 1]
    assert cast(codes, src, "HF8", "HYBRID")[:5].tolist() == [0x6F, 0xEF, 0x80, 0, 0]


# --- Nibbles --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("order", "first"), [("low", 0x21), ("high", 0x12)])
def test_fp4_lies_in_memory_by_the_reading_of_nibbles(order: str, first: int) -> None:
    @asc.jit
    def look(x: asc.GlobalAddress, y: asc.GlobalAddress) -> None:
        x_gm, y_gm = asc.GlobalTensor(), asc.GlobalTensor()
        x_gm.set_global_buffer(x, 64)
        y_gm.set_global_buffer(y, 32)
        pipe = asc.TPipe()
        through = asc.TQue(asc.TPosition.VECIN, 1)
        pipe.init_buffer(through, 1, 32)
        held = through.alloc_tensor(asc.fp4x2_e2m1_t)
        asc.data_copy(held, x_gm, 64)
        through.enque(held)
        held = through.deque(asc.fp4x2_e2m1_t)
        asc.set_flag(asc.HardEvent.MTE2_MTE3, 0)
        asc.wait_flag(asc.HardEvent.MTE2_MTE3, 0)
        asc.data_copy(y_gm, held.reinterpret_cast(asc.uint8), 32)
        through.free_tensor(held)

    x = values_of(np.array([1, 2] * 32, np.uint8), FORMATS["E2M1"])
    y = np.zeros(32, np.uint8)
    look.options(chip=CHIP, readings={"fp4-nibbles": order})[1](x, y)
    assert {*y.tolist()} == {first}


def test_readings_of_a_kernel_are_checked() -> None:
    with pytest.raises(ValueError, match="the nearest is 'fp4-nibbles'"):
        convert.options(readings={"fp4-nibble": "high"})
