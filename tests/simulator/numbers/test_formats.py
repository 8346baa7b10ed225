"""The formats' derived limits, special codes, and arrays of their codes."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from support.numbers.source_codes import (
    FLOATS,
    INTS,
    one_code,
    source_codes,
)

from simulator.numbers import formats as f
from simulator.numbers.convert import (
    INF_NAN,
    codes_of,
    convert,
    values_of,
)
from simulator.numbers.formats import FORMATS, FloatFormat, Format, IntFormat, Specials
from simulator.numbers.rounding import RoundMode


def test_there_are_27_formats() -> None:
    assert (
        list(FORMATS)
        == [fmt.name for fmt in FORMATS.values()]
        == [str(x) for x in FORMATS.values()]
    )
    assert (len(FLOATS), len(INTS)) == (11, 13)
    assert len(FORMATS) == 27


@pytest.mark.parametrize("fmt", FLOATS, ids=str)
def test_float_limits_are_those_of_finfo(fmt: FloatFormat) -> None:
    info = ml_dtypes.finfo(fmt.dtype)
    assert fmt.bits == info.bits
    assert fmt.man_bits == info.nmant
    assert fmt.bits == 1 + fmt.exp_bits + fmt.man_bits
    assert fmt.emin == int(info.minexp)
    assert fmt.max_code == one_code(info.max, fmt)
    assert fmt.max_code | fmt.sign_code == one_code(info.min, fmt)
    assert one_code(info.smallest_normal, fmt) == 1 << fmt.man_bits
    assert one_code(info.smallest_subnormal, fmt) == 1
    assert math.ldexp(1.0, fmt.min_quantum) == float(info.smallest_subnormal)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("fmt", FLOATS, ids=str)
def test_quantum_is_the_gap_to_the_next_number(fmt: FloatFormat) -> None:
    positive = values_of(np.arange(min(fmt.max_code, 2**15), dtype=fmt.code_dtype), fmt)
    if fmt.bits > 16:
        positive = np.array(
            [1.0, 1.5, 2.0, 1024.0, float(ml_dtypes.finfo(fmt.dtype).tiny)], fmt.dtype
        )
    following = values_of(codes_of(positive, fmt) + fmt.code_dtype.type(1), fmt)
    for value, after in zip(positive.astype(float), following.astype(float), strict=True):
        exponent = math.frexp(value)[1] - 1 if value else fmt.emin - 100
        assert Fraction(after) - Fraction(value) == Fraction(2) ** fmt.quantum(exponent)


@pytest.mark.parametrize("fmt", INTS, ids=str)
def test_integer_limits_are_those_of_iinfo(fmt: IntFormat) -> None:
    if fmt is f.BOOL:
        assert (fmt.min, fmt.max, fmt.bits) == (0, 1, 1)
        return
    info = ml_dtypes.iinfo(fmt.dtype)
    assert (fmt.min, fmt.max, fmt.bits) == (int(info.min), int(info.max), info.bits)
    assert fmt.signed == (info.min < 0)
    assert fmt.quantum(40) == 0


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=str)
def test_codes_are_as_wide_as_values_in_numpy(fmt: Format) -> None:
    assert fmt.code_dtype.kind == "u"
    assert fmt.code_dtype.itemsize == fmt.dtype.itemsize == max(fmt.bits, 8) // 8


@pytest.mark.parametrize("fmt", FLOATS, ids=str)
def test_special_codes(fmt: FloatFormat) -> None:
    has_inf, has_nan = fmt.specials is Specials.IEEE, fmt.specials is not Specials.NONE
    assert (fmt.inf_code is not None) == has_inf
    assert (fmt.nan_code is not None) == has_nan
    if fmt.inf_code is not None:
        assert fmt.inf_code == one_code(np.inf, fmt)
        assert fmt.max_code == fmt.inf_code - 1
    if fmt.nan_code is not None:
        value = values_of(np.array([fmt.nan_code], fmt.code_dtype), fmt)
        assert np.isnan(value.astype(np.float64)).all()
    negative_zero = values_of(np.array([fmt.sign_code], fmt.code_dtype), fmt).astype(np.float64)[0]
    assert fmt.has_negative_zero == (negative_zero == 0)


@pytest.mark.parametrize(
    ("fmt", "nan", "inf", "largest"),
    [
        (f.FP32, 0x7FFFFFFF, 0x7F800000, 0x7F7FFFFF),
        (f.FP16, 0x7FFF, 0x7C00, 0x7BFF),
        (f.BF16, 0x7FFF, 0x7F80, 0x7F7F),
        (f.E5M2, 0x7F, 0x7C, 0x7B),
        (f.E4M3FN, 0x7F, None, 0x7E),
        (f.E5M2FNUZ, 0x80, None, 0x7F),
        (f.E4M3FNUZ, 0x80, None, 0x7F),
        (f.E2M3, None, None, 0x1F),
        (f.E3M2, None, None, 0x1F),
        (f.E2M1, None, None, 0x7),
        (f.E8M0, 0xFF, None, 0xFE),
    ],
    ids=str,
)
def test_special_codes_literally(
    fmt: FloatFormat, nan: int | None, inf: int | None, largest: int
) -> None:
    assert (fmt.nan_code, fmt.inf_code, fmt.max_code) == (nan, inf, largest)


ARRAY_PAIRS = [
    (f.FP32, f.FP16),
    (f.FP16, f.INT8),
    (f.INT64, f.FP32),
    (f.INT32, f.INT16),
    (f.FP64, f.BOOL),
    (f.E5M2FNUZ, f.E2M1),
]
array_pairs = pytest.mark.parametrize(
    ("src", "dst"), ARRAY_PAIRS, ids=[f"{src}-{dst}".lower() for src, dst in ARRAY_PAIRS]
)


@array_pairs
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3), (2, 1, 3, 2, 2)], ids=str)
def test_arrays_keep_their_shape(src: Format, dst: Format, shape: tuple[int, ...]) -> None:
    size = math.prod(shape)
    codes = np.resize(source_codes(src)[50:], size)
    flat = convert(codes, src, dst, RoundMode.RINT, INF_NAN)
    out = convert(codes.reshape(shape), src, dst, RoundMode.RINT, INF_NAN)
    assert (out.shape, out.dtype) == (shape, dst.code_dtype)
    np.testing.assert_array_equal(out.reshape(-1), flat)


@array_pairs
@pytest.mark.parametrize("mode", RoundMode, ids=str)
def test_the_source_is_not_modified(src: Format, dst: Format, mode: RoundMode) -> None:
    codes = source_codes(src).copy()
    before = codes.copy()
    out = convert(codes, src, dst, mode, INF_NAN)
    np.testing.assert_array_equal(codes, before)
    assert not np.shares_memory(out, codes)
    codes.flags.writeable = False
    np.testing.assert_array_equal(convert(codes, src, dst, mode, INF_NAN), out)


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=str)
def test_codes_and_values_are_views_of_each_other(fmt: Format) -> None:
    codes = np.array([0, 1], fmt.code_dtype)
    values = values_of(codes, fmt)
    assert values.dtype == fmt.dtype
    assert np.shares_memory(values, codes)
    np.testing.assert_array_equal(codes_of(values, fmt), codes)
    assert np.shares_memory(codes_of(values, fmt), codes) == (fmt.bits not in (2, 4, 6))


def test_unused_bits_of_a_4_bit_code_are_cleared() -> None:
    values = np.array([-1, -8, 7, 0], ml_dtypes.int4)
    assert codes_of(values, f.INT4).tolist() == [15, 8, 7, 0]
    assert values_of(codes_of(values, f.INT4), f.INT4).astype(int).tolist() == [-1, -8, 7, 0]


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=str)
def test_a_format_stays_itself(fmt: Format) -> None:
    """Code asks `src is FP32`, in other processes too."""
    assert pickle.loads(pickle.dumps(fmt)) is fmt
    assert copy.deepcopy(fmt) is fmt
    assert copy.copy(fmt) is fmt


def test_a_format_of_ones_own_is_not_mistaken_for_another() -> None:
    mine = IntFormat(name="INT8", bits=7, signed=True, dtype=np.dtype(np.int8))
    with pytest.raises(pickle.PicklingError, match="not the same object"):
        pickle.dumps(mine)
