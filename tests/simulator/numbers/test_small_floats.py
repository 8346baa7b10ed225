"""The small floats of Ascend 950 against exact fractions of their documents' tables.

All codes of 8- and 16-bit sources, both sides of every threshold of FP32, and random codes; each
engine gives the definition's codes. ml_dtypes, and en_dtypes where it is installed, agree on every
code where they convert directly by the same rule.
"""

from __future__ import annotations

import importlib.util
import secrets
from dataclasses import replace
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.numbers import oracle
from support.numbers.codes import NUMPY
from support.numbers.small_float_steps import (
    BLOCK,
    BLOCKS,
    ENGINES,
    MODES,
    MODES_OF,
    by_fractions,
    cases,
    policies,
    steps,
)
from support.numbers.small_floats import SMALL_FLOATS, decode, thresholds

from simulator.numbers import elementwise
from simulator.numbers.convert import (
    INF_NAN,
    SATURATE,
    Conversion,
    Policy,
    convert,
)
from simulator.numbers.engines import Engine
from simulator.numbers.formats import BF16, E5M2, E8M0, FORMATS, FP16, FP32, HF8, Codes, FloatFormat
from simulator.numbers.literals import Number, bits_text, nearest_code, number_of
from simulator.numbers.native import library
from simulator.numbers.native.library import Native
from simulator.numbers.rounding import RoundMode

RANDOM_CODES = 1_000
DRAWN_BLOCKS = 8
EXHAUSTIVE = pytest.mark.exhaustive

CASES = [
    pytest.param(src, FORMATS[name], RoundMode[mode], id=f"{src}-{name}-{mode}".lower())
    for name in SMALL_FLOATS
    if name != "E8M0"
    for src in (FP32, FP16, BF16)
    for mode in MODES_OF.get(name, MODES)
]


def small(name: str) -> FloatFormat:
    found = FORMATS[name]
    assert isinstance(found, FloatFormat)
    return found


def fp32_codes(name: str, random_codes: int = RANDOM_CODES) -> Codes:
    """Both sides of each threshold, specials and random codes near the range, of both signs."""
    exact = np.array([float(x) for x in thresholds(name)], np.float64)
    near = exact.astype(np.float32).view(np.uint32)
    codes = np.concatenate([near - np.uint32(1), near, near + np.uint32(1)])
    specials = [0, 1, 2, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000]
    rng = np.random.default_rng(950)
    random = rng.integers(0, 1 << 32, random_codes, dtype=np.uint32)
    low, high = int(near[near > 0].min()) - (2 << 23), int(near.max()) + (2 << 23)
    inside = rng.integers(low, high, random_codes, dtype=np.uint32)
    codes = np.concatenate([codes, np.array([*specials, 0x7FFFFFFF], np.uint32), random, inside])
    return np.unique(np.concatenate([codes, codes ^ np.uint32(1 << 31)]))


def source_codes(src: FloatFormat, name: str) -> Codes:
    if src.bits > 16:
        return fp32_codes(name)
    return np.arange(1 << src.bits, dtype=src.code_dtype)


@pytest.mark.parametrize(
    ("src", "dst", "mode"),
    [
        pytest.param(*case.values, id=case.id, marks=() if case.values[0] is FP32 else EXHAUSTIVE)
        for case in CASES
    ],
)
@pytest.mark.sampled(3)
def test_every_code_is_that_of_fractions(
    src: FloatFormat, dst: FloatFormat, mode: RoundMode
) -> None:
    assert_fractions(source_codes(src, dst.name), src, dst, mode)


@pytest.mark.parametrize(
    ("src", "dst", "mode"), [case for case in CASES if case.values[0] is not FP32]
)
@pytest.mark.sampled(9)
def test_every_code_lies_on_the_step_of_its_ends(
    src: FloatFormat, dst: FloatFormat, mode: RoundMode
) -> None:
    """The oracle decides the ends of the steps alone: fractions of each code take seconds."""
    codes = source_codes(src, dst.name)
    for each in steps(dst, mode):
        chosen = codes[(codes > 0x7FFF) == (each.sign > 0)]
        magnitudes = (chosen & 0x7FFF).view(NUMPY[src.name]).astype(np.float32)
        at = np.searchsorted(each.starts, magnitudes.view(np.uint32), side="right") - 1
        (policy,) = (conversion.policy for conversion in each.chain)
        assert_engines(chosen, each.results[at], src, dst, mode, policy)


@EXHAUSTIVE
@pytest.mark.parametrize(
    ("dst", "mode"),
    [pytest.param(*each, id=f"{each[0]}-{each[1].name}".lower()) for each in cases()],
)
def test_engines_are_constant_between_thresholds(dst: FloatFormat, mode: RoundMode) -> None:
    """Drawn blocks of 2^24 codes; `benchmarks/small_float_steps.md` counts all."""
    seed = secrets.randbits(32)
    rng = np.random.default_rng(seed)
    for each in steps(dst, mode):
        blocks = rng.choice(BLOCKS, DRAWN_BLOCKS, replace=False).tolist()
        assert list(each.faults(blocks)) == [], f"seed {seed}"


def test_a_step_at_another_code_is_found() -> None:
    first, *_ = steps(E5M2, RoundMode.RINT)
    (place,) = np.flatnonzero(first.starts == 0x3F900001)  # above the middle of 1.0 and 1.25
    moved = first.starts.copy()
    moved[place] += np.uint32(1)
    block = 0x3F900001 // BLOCK
    assert list(first.faults([block])) == []
    assert len(list(replace(first, starts=moved).faults([block]))) == len(ENGINES)


def assert_fractions(codes: Codes, src: FloatFormat, dst: FloatFormat, mode: RoundMode) -> None:
    """The definition and each engine give what the oracle does."""
    for policy in policies(dst):
        wanted = by_fractions(codes, src, dst.name, mode.name, policy)
        assert_engines(codes, wanted, src, dst, mode, policy)


def assert_engines(
    codes: Codes,
    wanted: Codes,
    src: FloatFormat,
    dst: FloatFormat,
    mode: RoundMode,
    policy: Policy,
) -> None:
    engines: tuple[Engine, ...] = ("numpy", "native") if has_native() else ("numpy",)
    np.testing.assert_array_equal(convert(codes, src, dst, mode, policy), wanted, str(policy))
    chain = (Conversion(src=src, dst=dst, mode=mode, policy=policy),)
    for engine in engines:
        found = np.empty(codes.size, np.uint8)
        elementwise.run(chain, codes, found, engine=engine)
        np.testing.assert_array_equal(found, wanted, f"{policy} {engine}")


def has_native() -> bool:
    """The compiled engine is there."""
    return isinstance(library.find(), Native)


@pytest.mark.parametrize("name", SMALL_FLOATS)
@pytest.mark.parametrize("dst", [FP32, FP16, BF16], ids=str)
def test_every_small_float_widens_to_its_number(name: str, dst: FloatFormat) -> None:
    """In E8M0 to FP16 alone there are numbers that the wider format does not hold."""
    src = small(name)
    codes = np.arange(1 << src.bits, dtype=np.uint8)
    found = convert(codes, src, dst, RoundMode.RINT, INF_NAN)
    for code, wide in zip(codes.tolist(), found.tolist(), strict=True):
        value, got = decode(code, name), oracle.decode(wide, dst.name)
        if value.kind == "nan":
            assert wide == dst.nan_code
        elif not (src is E8M0 and dst is FP16):
            assert (got.kind, got.magnitude) == (value.kind, value.magnitude), hex(code)
            assert got.negative == value.negative, hex(code)


@pytest.mark.parametrize("name", SMALL_FLOATS)
def test_codes_and_numbers_are_read_and_written(name: str) -> None:
    fmt = small(name)
    for code in range(1 << fmt.bits):
        value, found = decode(code, name), number_of(code, fmt)
        assert found.special == ("" if value.kind == "finite" else value.kind)
        assert found.magnitude == value.magnitude
        if value.kind != "nan":
            assert nearest_code(found, fmt) == code


def test_the_fields_of_hif8() -> None:
    one = Number(negative=True, magnitude=Fraction(1), special="")
    assert bits_text(nearest_code(one, HF8), HF8) == "1|0001|000"
    assert bits_text(0x6F, HF8) == "0|11|0111|1"
    assert bits_text(0x01, HF8) == "0|0000|001"
    assert bits_text(0x1B, HF8) == "0|001|1|011"


def test_the_ranks_of_hif8_are_its_order() -> None:
    assert [HF8.rank_of_code(HF8.code_of_rank(rank)) for rank in range(128)] == [*range(128)]
    values = [number_of(HF8.code_of_rank(rank), HF8).magnitude for rank in range(HF8.max_rank + 1)]
    assert values == sorted(values) == [number for number, _ in SMALL_FLOATS["HF8"].numbers]
    assert (HF8.min_quantum, HF8.quantum(0), HF8.quantum(-16), HF8.quantum(20)) == (
        -22,
        -3,
        -16,
        19,
    )


# --- Other libraries ----------------------------------------------------------------------------

AGREEING = (
    ("ml_dtypes", "float8_e4m3fn", "E4M3FN", "RINT"),
    ("ml_dtypes", "float8_e5m2", "E5M2", "RINT"),
    ("ml_dtypes", "float4_e2m1fn", "E2M1", "RINT"),
    ("en_dtypes", "hifloat8", "HF8", "ROUND"),
    ("en_dtypes", "float4_e2m1", "E2M1", "RINT"),
    ("en_dtypes", "float4_e1m2", "E1M2", "RINT"),
)
"""Library, dtype, format and mode: where both convert FP32, FP16 and BF16 in one step, by one rule.

NaN is compared as a class, and left out where the format has none: the libraries write zeros of the
source's sign then.
"""


@pytest.mark.parametrize(("library", "dtype", "name", "mode"), AGREEING)
@pytest.mark.parametrize("src", [FP32, FP16, BF16], ids=str)
def test_libraries_agree_where_the_rule_is_the_same(
    library: str, dtype: str, name: str, mode: str, src: FloatFormat, capsys: Any
) -> None:
    if library != "ml_dtypes" and importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    module: Any = ml_dtypes if library == "ml_dtypes" else __import__(library)
    fmt = small(name)
    codes = source_codes(src, name)
    values = codes.view(src.dtype)
    if library != "ml_dtypes" and src is BF16:
        values = values.astype(np.float32)
    policy = INF_NAN if fmt.nan_code is not None else SATURATE
    with np.errstate(all="ignore"):
        theirs = values.astype(getattr(module, dtype)).view(np.uint8) & ((1 << fmt.bits) - 1)
    ours = convert(codes, src, fmt, RoundMode[mode], policy)
    nan = np.isnan(values.astype(np.float32))
    if fmt.nan_code is not None:
        is_nan = np.array([decode(code, name).kind == "nan" for code in range(256)])
        nan = is_nan[ours]
        np.testing.assert_array_equal(is_nan[theirs], nan)
    np.testing.assert_array_equal(ours[~nan], theirs[~nan])
    with capsys.disabled():
        print(f"\n{library}.{dtype} agrees on {(~nan).sum():,} codes of {src} to {name} {mode}")
