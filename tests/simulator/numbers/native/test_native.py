"""The native engine gives the definition's codes, at every level, length and alignment."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.numbers.codes import SEED
from support.numbers.native_cases import (
    LEVELS,
    Chain,
    at,
    codes_of_interest,
    define,
    matrix_rows,
    name,
    one_of_each_width,
    policies,
    run,
    spread,
)

from simulator.numbers.convert import (
    INF_NAN,
    SATURATE,
    WRAP,
    Conversion,
    Overflow,
    Policy,
)
from simulator.numbers.formats import (
    BF16,
    BOOL,
    E4M3FN,
    E4M3FNUZ,
    E5M2,
    E5M2FNUZ,
    FORMATS,
    FP16,
    FP32,
    HF8,
    INT4,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT4,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    FloatFormat,
    Format,
)
from simulator.numbers.native import format_tables
from simulator.numbers.rounding import RoundMode

PAIRED = [FP32, FP16, BF16, INT4, INT8, INT16, INT32, INT64]
PAIRED += [UINT4, UINT8, UINT16, UINT32, UINT64, BOOL]
NARROW = [E5M2, E4M3FN, E5M2FNUZ, E4M3FNUZ, HF8]
POLICIES = [
    Policy(name="any", overflow=overflow, keeps_inf=inf, keeps_nan=nan, keeps_nan_sign=sign)
    for overflow in Overflow
    for inf in (False, True)
    for nan in (False, True)
    for sign in (False, True)
]


def assert_defined(chain: Chain, codes: np.ndarray, levels: tuple[str, ...]) -> None:
    expected = define(chain, codes)
    for level in levels:
        np.testing.assert_array_equal(
            run(at(level), chain, codes), expected, f"{name(chain)} at {level}", strict=True
        )


@pytest.fixture(autouse=True)
def _library() -> None:
    at("scalar")


def vectorised() -> tuple[str, ...]:
    """The levels that this machine has, but the first."""
    return at("scalar").levels[1:]


@pytest.mark.parametrize("chain", matrix_rows(), ids=name)
@pytest.mark.sampled(24)
def test_rows_of_the_matrix(chain: Chain) -> None:
    levels = vectorised()
    codes = codes_of_interest(chain[0].src, 100_000)
    assert_defined(chain, codes, levels)


@pytest.mark.native
@pytest.mark.parametrize("chain", [c for c in matrix_rows() if c[0].src.bits > 16], ids=name)
def test_rows_of_the_matrix_on_many_codes(chain: Chain) -> None:
    levels = vectorised()
    rng = np.random.default_rng([SEED, 1])
    for _ in range(10):
        assert_defined(chain, spread(rng, chain[0].src, 1_000_000), levels)


@pytest.mark.parametrize("src", [*PAIRED, E5M2], ids=str)
@pytest.mark.sampled(36)
def test_every_pair_in_every_mode(src: Format) -> None:
    codes = codes_of_interest(src, 2_000)
    codes = np.concatenate([codes[:: max(1, codes.size // 6_000)], codes[-2_000:]])
    levels = at("scalar").levels
    for dst in (*PAIRED, *NARROW):
        for mode in RoundMode:
            for policy in policies(dst):
                chain = (Conversion(src=src, dst=dst, mode=mode, policy=policy),)
                assert_defined(chain, codes, levels)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dst", [FP32, FP16, BF16, *NARROW], ids=str)
@pytest.mark.parametrize("policy", [p for p in POLICIES if p.overflow is not Overflow.WRAP])
def test_every_policy_of_floats(dst: Format, policy: Policy) -> None:
    for src in (FP32, FP16, BF16, INT64):
        if src is dst:
            continue
        codes = codes_of_interest(src, 20_000)[-65_536:]
        for mode in (RoundMode.RINT, RoundMode.CEIL, RoundMode.ODD):
            chain = (Conversion(src=src, dst=dst, mode=mode, policy=policy),)
            assert_defined(chain, codes, vectorised())


@pytest.mark.exhaustive
@pytest.mark.parametrize("src", FORMATS.values(), ids=str)
def test_the_scalar_code_knows_every_format(src: Format) -> None:
    codes = codes_of_interest(src, 500)
    codes = np.ascontiguousarray(codes[:: max(1, codes.size // 700)])
    for dst in FORMATS.values():
        for policy in POLICIES:
            if policy.overflow is Overflow.WRAP and isinstance(dst, FloatFormat):
                continue
            for mode in RoundMode if policy.keeps_nan_sign else (RoundMode.RINT,):
                chain = (Conversion(src=src, dst=dst, mode=mode, policy=policy),)
                assert_defined(chain, codes, ("scalar",))


@pytest.mark.parametrize("level", LEVELS[1:])
def test_rows_of_the_matrix_have_loops(level: str) -> None:
    assert [name(chain) for chain in matrix_rows() if not at(level).has_loops(chain)] == []


@pytest.mark.parametrize("level", LEVELS[1:])
def test_floats_of_8_bits_have_loops(level: str) -> None:
    """HF8 has one in every mode, from FP32 and FP16: the mode is in its table."""
    native = at(level)
    for src in (FP32, FP16):
        assert all(native.has_loops((conversion(src, HF8, mode),)) for mode in RoundMode)
    assert native.has_loops((conversion(E5M2, FP32),))
    assert not native.has_loops((conversion(HF8, FP32),))  # a table of numpy's is as fast


@pytest.mark.parametrize("chain", one_of_each_width(), ids=name)
@pytest.mark.sampled(8)
def test_lengths_and_alignments(chain: Chain) -> None:
    src = chain[0].src
    rng = np.random.default_rng([SEED, 2])
    around_pieces = (1022, 1023, 1024, 1025, 2049)
    for elems in (*range(131), *around_pieces):
        codes = spread(rng, src, elems)
        expected = define(chain, codes)
        check_placed(chain, codes, expected, int(rng.integers(64)), int(rng.integers(64)))
    codes = spread(rng, src, 67)
    expected = define(chain, codes)
    for offset in range(64):
        check_placed(chain, codes, expected, offset, 63 - offset)


@pytest.mark.parametrize(
    "offsets",
    [(0, 1, 32), pytest.param((2, 4, 8, 16, 24, 31, 48, 63), marks=pytest.mark.exhaustive)],
    ids=str,
)
@pytest.mark.parametrize("chain", one_of_each_width(), ids=name)
@pytest.mark.sampled(8)
def test_large_results_bypass_the_cache(chain: Chain, offsets: tuple[int, ...]) -> None:
    src, dst = chain[0].src, chain[-1].dst
    rng = np.random.default_rng([SEED, 3])
    codes = spread(rng, src, (2 << 20) // dst.code_dtype.itemsize + 77)
    expected = define(chain, codes)
    for offset in offsets:
        check_placed(chain, codes, expected, offset, offset)


def check_placed(
    chain: Chain,
    codes: np.ndarray,
    expected: np.ndarray,
    source_offset: int,
    out_offset: int,
) -> None:
    """Convert between any addresses; nothing beside the result is written, nor the source."""
    source = placed(codes, source_offset)
    for level in at("scalar").levels:
        memory = np.full(expected.nbytes + 192, 0xA5, np.uint8)
        start = -memory.ctypes.data % 64 + 64 + out_offset
        out = memory[start : start + expected.nbytes].view(expected.dtype)
        kernel = at(level).loop(chain)
        assert kernel is not None
        kernel(source, out)
        np.testing.assert_array_equal(out, expected, level)
        np.testing.assert_array_equal(source, codes, level)
        assert (memory[:start] == 0xA5).all(), level
        assert (memory[start + expected.nbytes :] == 0xA5).all(), level


def placed(codes: np.ndarray, offset: int) -> np.ndarray:
    memory = np.zeros(codes.nbytes + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    copy = memory[start : start + codes.nbytes].view(codes.dtype)
    copy[:] = codes
    return copy


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("elems", [1, 77, 5_000, 1_100_000])
@pytest.mark.sampled(4)
def test_in_place(level: str, elems: int) -> None:
    rng = np.random.default_rng([SEED, 3])
    for chain in one_of_each_width():
        src, dst = chain[0].src.code_dtype, chain[-1].dst.code_dtype
        if dst.itemsize > src.itemsize or (level == "scalar" and elems > 5_000):
            continue
        codes = spread(rng, chain[0].src, elems)
        expected = define(chain, codes)
        kernel = at(level).loop(chain)
        assert kernel is not None
        kernel(codes, codes.view(np.uint8)[: expected.nbytes].view(dst))
        np.testing.assert_array_equal(codes.view(np.uint8)[: expected.nbytes].view(dst), expected)


def test_other_overlap_is_refused() -> None:
    memory = np.zeros(400, np.uint8)
    narrow = at("baseline").loop((conversion(FP32, FP16),))
    wide = at("baseline").loop((conversion(FP16, FP32),))
    assert narrow is not None
    assert wide is not None
    for kernel, source, out in (
        (narrow, memory[:200].view(np.uint32), memory[2:102].view(np.uint16)),
        (narrow, memory[100:300].view(np.uint32), memory[4:104].view(np.uint16)),
        (wide, memory[:100].view(np.uint16), memory[:200].view(np.uint32)),
        (wide, memory[100:200].view(np.uint16), memory[:200].view(np.uint32)),
    ):
        with pytest.raises(ValueError, match="overlap"):
            kernel(source, out)
    narrow(memory[:200].view(np.uint32), memory[200:300].view(np.uint16))


def conversion(src: Format, dst: Format, mode: RoundMode = RoundMode.RINT) -> Conversion:
    policy = INF_NAN if isinstance(dst, FloatFormat) else SATURATE
    return Conversion(src=src, dst=dst, mode=mode, policy=policy)


@pytest.mark.parametrize(
    ("codes", "out", "found"),
    [
        (np.zeros(4, np.uint16), np.zeros(4, np.uint16), "codes are uint16"),
        (np.zeros(4, np.uint32), np.zeros(4, np.uint32), "become uint32"),
        (np.zeros(4, np.uint32), np.zeros(5, np.uint16), "equally long"),
        (np.zeros((2, 2), np.uint32), np.zeros((2, 2), np.uint16), "1-D"),
        (np.zeros(8, np.uint32)[::2], np.zeros(4, np.uint16), "contiguous"),
        (np.zeros(4, np.uint32), np.broadcast_to(np.uint16(0), 4), "contiguous"),
    ],
)
def test_arrays_that_do_not_fit(codes: np.ndarray, out: np.ndarray, found: str) -> None:
    kernel = at("scalar").loop((conversion(FP32, FP16),))
    assert kernel is not None
    with pytest.raises(ValueError, match=found):
        kernel(codes, out)


def test_chains_that_it_does_not_have() -> None:
    native = at("scalar")
    wrapping = Conversion(src=FP32, dst=FP16, mode=RoundMode.RINT, policy=WRAP)
    there, back = conversion(FP32, FP16), conversion(FP16, FP32)
    assert native.loop((wrapping,)) is None
    assert native.loop(()) is None
    assert native.loop((there, back) * 5) is None
    assert native.loop((there, back) * 4) is not None
    assert not native.has_loops((wrapping,))
    assert not native.has_loops((there,))  # at the level of scalar code


@pytest.mark.parametrize("level", LEVELS)
def test_chains_of_any_formats(level: str) -> None:
    native = at(level)
    for chain in (
        (conversion(FP32, INT32), conversion(INT32, UINT8), conversion(UINT8, FP16)),
        (conversion(INT8, INT16), conversion(INT16, FP32, RoundMode.ODD)),
    ):
        codes = codes_of_interest(chain[0].src, 1_000)
        np.testing.assert_array_equal(run(native, chain, codes), define(chain, codes))


def test_threads() -> None:
    native, chain = at(at("scalar").levels[-1]), (conversion(FP32, FP16, RoundMode.CEIL),)
    codes = np.random.default_rng(SEED).integers(0, 1 << 32, 1 << 20, np.uint32)
    expected = define(chain, codes)
    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(lambda _: run(native, chain, codes), range(16)):
            np.testing.assert_array_equal(result, expected)


def test_the_tables_are_those_of_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["tables", "--check"])
    assert format_tables.main() == 0, "run python -m simulator.numbers.native.format_tables"
    monkeypatch.setattr(format_tables, "VERSION", 0)
    assert format_tables.main() == 1
