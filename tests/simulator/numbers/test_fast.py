"""The fast paths give the definition's codes, on every code or around every boundary."""

from __future__ import annotations

import functools
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import numpy as np
import pytest
from support.numbers.codes import SEED
from support.numbers.magnitudes import magnitudes_near

from simulator.numbers import fast
from simulator.numbers.convert import (
    INF_NAN,
    SATURATE,
    WRAP,
    Conversion,
    Policy,
    convert,
    round_to_integral,
)
from simulator.numbers.fast.chunks import CHUNK_ELEMS, in_chunks
from simulator.numbers.formats import (
    BF16,
    FP16,
    FP32,
    FP64,
    INT4,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    Codes,
    FloatFormat,
    Format,
)
from simulator.numbers.rounding import RoundMode, boundary_codes

RANDOM_ELEMS = 100_000

Case = tuple[Format, Format, RoundMode, Policy, bool]

M6 = tuple(RoundMode)
M5 = tuple(mode for mode in RoundMode if mode is not RoundMode.ODD)
RINT_ONLY = (RoundMode.RINT,)
HALF = (INF_NAN, SATURATE)
CLAMP = (SATURATE,)
EITHER = (SATURATE, WRAP)

# Each must have a fast path. Where no result depends on the mode, one stands for all.
PAIRS: list[tuple[Format, Format, tuple[RoundMode, ...], tuple[Policy, ...]]] = [
    (FP32, FP16, M6, HALF),
    (FP32, BF16, M6, HALF),
    (FP32, INT16, M5, EITHER),
    (FP32, INT32, M5, EITHER),
    (FP32, INT64, M5, EITHER),
    (FP16, FP32, RINT_ONLY, HALF),
    (FP16, INT32, M5, CLAMP),
    (FP16, INT16, M5, EITHER),
    (FP16, INT8, M5, EITHER),
    (FP16, UINT8, M5, EITHER),
    (FP16, INT4, M5, CLAMP),
    (BF16, FP32, RINT_ONLY, HALF),
    (BF16, INT32, M5, CLAMP),
    (INT32, FP32, M5, HALF),
    (INT32, INT16, RINT_ONLY, EITHER),
    (INT32, INT64, RINT_ONLY, EITHER),
    (INT32, FP16, M6, HALF),
    (INT16, FP32, RINT_ONLY, HALF),
    (INT16, FP16, M5, HALF),
    (INT64, FP32, M5, HALF),
    (INT64, INT32, RINT_ONLY, EITHER),
    (UINT8, FP16, RINT_ONLY, HALF),
    (INT8, FP16, RINT_ONLY, HALF),
    (INT4, FP16, RINT_ONLY, HALF),
]
CASES: list[Case] = [
    (src, dst, mode, policy, False)
    for src, dst, modes, policies in PAIRS
    for mode in modes
    for policy in policies
] + [(FP32, FP32, mode, INF_NAN, True) for mode in M5]


def case_id(case: Case) -> str:
    src, dst, mode, policy, integral = case
    return f"{src}-{'integral' if integral else dst}-{mode}-{policy}".lower()


# One of each mechanism, each with and without elements beyond its ordinary range.
MECHANISMS: list[Case] = [
    (FP32, FP16, RoundMode.FLOOR, INF_NAN, False),
    (FP32, FP16, RoundMode.ODD, SATURATE, False),
    (FP32, BF16, RoundMode.RINT, INF_NAN, False),
    (FP32, INT16, RoundMode.ROUND, SATURATE, False),
    (FP32, INT32, RoundMode.RINT, WRAP, False),
    (FP32, INT64, RoundMode.TRUNC, SATURATE, False),
    (FP32, FP32, RoundMode.CEIL, INF_NAN, True),
    (FP16, INT8, RoundMode.TRUNC, SATURATE, False),
    (BF16, FP32, RoundMode.RINT, INF_NAN, False),
    (INT32, FP32, RoundMode.FLOOR, INF_NAN, False),
    (INT32, INT16, RoundMode.RINT, SATURATE, False),
    (INT32, FP16, RoundMode.RINT, INF_NAN, False),
    (INT64, FP32, RoundMode.CEIL, INF_NAN, False),
    (INT64, INT32, RoundMode.RINT, WRAP, False),
]


def definition(codes: Codes, case: Case) -> Codes:
    src, dst, mode, policy, integral = case
    if integral:
        assert isinstance(src, FloatFormat)
        return round_to_integral(codes, src, mode)
    return convert(codes, src, dst, mode, policy)


def run_fast(codes: Codes, case: Case, out: Codes | None = None) -> Codes:
    """The fast path on codes, into an array that held something else before."""
    src, dst, mode, policy, _ = case
    path = fast.loop(Conversion(src=src, dst=dst, mode=mode, policy=policy))
    assert path is not None
    if out is None:
        out = np.full(codes.size, 0xA5, dst.code_dtype)
    path(codes, out)
    return out


@functools.cache
def source_codes(src: Format, dst: Format) -> Codes:
    """Every code of a small source; else boundaries, random codes and ordinary ones, read-only."""
    rng = np.random.default_rng([SEED, *f"{src}{dst}".encode()])
    codes = boundary_codes(src)
    if src.bits <= 16:
        # More than a piece of them, in an order that is not the order of the codes.
        codes = np.resize(rng.permutation(codes), max(codes.size, CHUNK_ELEMS + 3))
    else:
        anywhere = rng.integers(0, 1 << src.bits, RANDOM_ELEMS, dtype=src.code_dtype)
        parts = [codes, anywhere, anywhere >> (anywhere % src.code_dtype.type(src.bits))]
        if isinstance(src, FloatFormat):
            scales = np.exp2(rng.integers(-20, 12, RANDOM_ELEMS))
            values = rng.standard_normal(RANDOM_ELEMS) * scales
            parts += [magnitudes_near(src, dst), values.astype(src.dtype).view(src.code_dtype)]
        codes = np.concatenate(parts)
    codes.flags.writeable = False
    return codes


@pytest.mark.parametrize("case", CASES, ids=case_id)
@pytest.mark.sampled(32)
def test_codes_are_the_definitions(case: Case) -> None:
    codes = source_codes(case[0], case[1])
    np.testing.assert_array_equal(run_fast(codes, case), definition(codes, case))


@pytest.mark.parametrize("case", MECHANISMS, ids=case_id)
@pytest.mark.sampled(12)
def test_every_size(case: Case) -> None:
    """Tails of every length, alone and after a whole piece, leave their surroundings alone."""
    src, dst, *_ = case
    rng = np.random.default_rng(SEED)
    codes = rng.permutation(source_codes(src, dst))
    codes = np.resize(codes, 3 * CHUNK_ELEMS + 1)
    wanted = definition(codes, case)
    small = range(301)
    large = [n * CHUNK_ELEMS + d for n in (1, 2, 3) for d in (-1, 0, 1)]
    for elems in (*small, *large):
        out = np.full(elems + 2, 0xA5, dst.code_dtype)
        run_fast(codes[:elems], case, out[1:-1])
        np.testing.assert_array_equal(out[1:-1], wanted[:elems])
        assert out[0] == out[-1] == 0xA5


@pytest.mark.parametrize("case", MECHANISMS, ids=case_id)
@pytest.mark.parametrize("start", [1, 3, 31, CHUNK_ELEMS - 1])
@pytest.mark.sampled(6)
def test_slices_that_start_anywhere(case: Case, start: int) -> None:
    codes = np.resize(source_codes(case[0], case[1]), 2 * CHUNK_ELEMS)[start:]
    np.testing.assert_array_equal(run_fast(codes, case), definition(codes, case))


@pytest.mark.parametrize("case", MECHANISMS, ids=case_id)
@pytest.mark.sampled(24)
def test_lone_special_among_ordinary_codes(case: Case) -> None:
    """One extreme code per piece, at its ends and between; the source is not changed."""
    src, *_ = case
    rng = np.random.default_rng(SEED)
    if isinstance(src, FloatFormat):
        ordinary = rng.standard_normal(4 * CHUNK_ELEMS).astype(src.dtype).view(src.code_dtype)
        top = src.sign_code
        specials = [src.max_code, top - 2, src.max_code + 1, top + src.max_code, 2 * top - 1]
    else:
        ordinary = rng.integers(0, 100, 4 * CHUNK_ELEMS).astype(src.code_dtype)
        specials = [src.max, src.max + 1, src.max >> 1, (2 << src.bits) - 129, 1 << 24]
    for place in (0, 1, CHUNK_ELEMS // 2, CHUNK_ELEMS - 1):
        for special in specials:
            codes = ordinary.copy()
            codes[CHUNK_ELEMS + place] = special & ((1 << src.bits) - 1)
            before = codes.copy()
            np.testing.assert_array_equal(
                run_fast(codes, case)[CHUNK_ELEMS:][:CHUNK_ELEMS],
                definition(codes[CHUNK_ELEMS:][:CHUNK_ELEMS], case),
            )
            np.testing.assert_array_equal(codes, before)


@pytest.mark.parametrize("case", MECHANISMS, ids=case_id)
@pytest.mark.parametrize("share", [0.001, 1 / 16, 0.5, 1.0])
@pytest.mark.sampled(3)
def test_any_share_of_specials(case: Case, share: float) -> None:
    """Infinities as an attention mask has them, NaN and overflow: few, many and nothing else."""
    src, *_ = case
    rng = np.random.default_rng(SEED)
    if isinstance(src, FloatFormat):
        codes = rng.standard_normal(CHUNK_ELEMS).astype(src.dtype).view(src.code_dtype)
        infinity = src.sign_code - (1 << src.man_bits)
        positive = [infinity, src.max_code, src.max_code + 2, infinity - (2 << src.man_bits)]
        specials = [*positive, *(src.sign_code + code for code in positive)]
    else:
        codes = rng.integers(0, 100, CHUNK_ELEMS).astype(src.code_dtype)
        specials = [src.max, src.min & ((1 << src.bits) - 1), src.max >> 1]
    where = rng.random(CHUNK_ELEMS) < share
    picked = rng.choice(np.array(specials, src.code_dtype), CHUNK_ELEMS)
    codes[where] = picked[where]
    np.testing.assert_array_equal(run_fast(codes, case), definition(codes, case))


@pytest.mark.slow
def test_threads_give_the_same_codes() -> None:
    """Many kernels at once, each in pieces of several threads, share no scratch memory."""
    with ThreadPoolExecutor(8) as pool:
        jobs = []
        for case in MECHANISMS * 4:
            codes = source_codes(case[0], case[1])
            jobs.append((case, codes, pool.submit(run_fast, codes, case)))
        for case, codes, job in jobs:
            np.testing.assert_array_equal(job.result(), definition(codes, case))


@pytest.mark.parametrize("case", MECHANISMS, ids=case_id)
def test_no_warnings(case: Case) -> None:
    """Neither numpy's nor the user's error settings see anything of the tricks."""
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        run_fast(source_codes(case[0], case[1]), case)


def test_error_settings_of_threads_stay_apart() -> None:
    """Two threads in one kernel, the first to enter leaves first."""
    entered = {"first": threading.Event(), "second": threading.Event()}
    name = threading.local()

    def run(codes: Codes) -> Codes:
        entered[name.value].set()
        assert entered["second"].wait(60)
        if name.value == "second":
            assert left.wait(60)
        return codes

    left = threading.Event()
    kernel = in_chunks(run)

    def settings_after(own: str, divide: Literal["raise", "print"]) -> str:
        name.value = own
        if own == "second":
            assert entered["first"].wait(60)
        with np.errstate(divide=divide):
            kernel(np.zeros(1, np.uint8), np.zeros(1, np.uint8))
            if own == "first":
                left.set()
            return np.geterr()["divide"]

    with ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(settings_after, *job) for job in (("first", "raise"), ("second", "print"))
        ]
        assert [job.result() for job in jobs] == ["raise", "print"]


@pytest.mark.parametrize(
    "case",
    [
        (FP32, INT64, RoundMode.ODD, SATURATE, False),
        (FP32, FP16, RoundMode.RINT, WRAP, False),
        (FP32, FP32, RoundMode.ODD, INF_NAN, True),
        (FP64, FP16, RoundMode.TRUNC, INF_NAN, False),
        (INT32, INT4, RoundMode.RINT, SATURATE, False),
    ],
    ids=case_id,
)
def test_no_fast_path(case: Case) -> None:
    src, dst, mode, policy, _ = case
    assert fast.loop(Conversion(src=src, dst=dst, mode=mode, policy=policy)) is None
