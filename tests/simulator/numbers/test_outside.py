"""RINT and TRUNC against casts that numpy, ml_dtypes and torch make directly, in one rounding.

Two-step casts, which round twice, prove nothing and are left out. NaN is compared as a class,
because its pattern is a choice.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.numbers.codes import (
    DIRECT_PAIRS,
    NUMPY,
    SEED,
    as_codes,
    as_values,
    cast_codes,
    is_nan,
    source_codes,
    whole_blocks,
)
from support.numbers.oracle import FORMATS, Integer, code_dtype

RANDOM_ELEMS = 10_000_000

pytestmark = [
    pytest.mark.filterwarnings("error::pypto_cast.CastModeWarning"),
    pytest.mark.filterwarnings("error::pypto_cast.TileShapeWarning"),
]


def random_source(src: str, dst: str) -> np.ndarray:
    """All codes up to 16 bits; beyond them the chosen codes and 10^7 random ones.

    Half of the random integers are shifted to the right, so that every magnitude occurs.
    """
    codes = source_codes(src, dst)
    bits = FORMATS[src].bits
    if bits > 16:
        rng = np.random.default_rng([SEED, *f"outside {src}{dst}".encode()])
        many = rng.integers(0, 1 << bits, RANDOM_ELEMS, dtype=codes.dtype)
        if src.startswith("INT"):
            numbers = many.view(NUMPY[src])
            numbers[::2] >>= rng.integers(0, bits, numbers[::2].size, dtype=numbers.dtype)
        codes = np.concatenate([codes, many])
    return whole_blocks(codes)


def assert_same_but_for_nan_patterns(actual: np.ndarray, wanted: np.ndarray, dst: str) -> None:
    nan = is_nan(wanted, dst)
    np.testing.assert_array_equal(is_nan(actual, dst), nan)
    np.testing.assert_array_equal(actual[~nan], wanted[~nan])


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("src", "dst"), DIRECT_PAIRS, ids=lambda fmt: fmt.lower())
def test_rint_agrees_with_numpy_and_ml_dtypes(src: str, dst: str) -> None:
    codes = random_source(src, dst)
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = as_codes(as_values(codes, src).astype(NUMPY[dst]), dst)
    actual = cast_codes(codes, src, dst, "RINT")
    assert_same_but_for_nan_patterns(actual, wanted, dst)


# --- torch ------------------------------------------------------------------------------------


def torch_cast(codes: np.ndarray, src: str, dst: str) -> np.ndarray:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    dtypes = {
        "FP32": torch.float32,
        "FP16": torch.float16,
        "BF16": torch.bfloat16,
        "INT8": torch.int8,
        "UINT8": torch.uint8,
        "INT16": torch.int16,
        "INT32": torch.int32,
        "INT64": torch.int64,
    }

    def carrier(fmt: str) -> str:
        return f"int{code_dtype(fmt).itemsize * 8}"

    source = torch.from_numpy(codes.view(carrier(src)).copy()).view(dtypes[src])
    result = source.to(dtypes[dst]).view(getattr(torch, carrier(dst)))
    return result.numpy().view(code_dtype(dst))


@pytest.mark.parametrize(
    ("src", "dst"),
    [("FP32", "FP16"), ("FP32", "BF16"), ("FP16", "FP32"), ("BF16", "FP32")],
    ids=lambda fmt: fmt.lower(),
)
def test_rint_agrees_with_torch(src: str, dst: str) -> None:
    codes = random_source(src, dst)
    wanted = torch_cast(codes, src, dst)
    assert_same_but_for_nan_patterns(cast_codes(codes, src, dst, "RINT"), wanted, dst)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("src", "dst"),
    [
        ("FP32", "INT16"),
        ("FP32", "INT32"),
        ("FP32", "INT64"),
        ("FP16", "INT8"),
        ("FP16", "UINT8"),
        ("FP16", "INT16"),
        ("FP16", "INT32"),
        ("BF16", "INT32"),
    ],
    ids=lambda fmt: fmt.lower(),
)
def test_trunc_agrees_with_torch_in_range(src: str, dst: str) -> None:
    """Out of range torch promises nothing. UINT8 is compared where the value is not negative."""
    codes = random_source(src, dst)
    form = FORMATS[dst]
    assert isinstance(form, Integer)
    values = as_values(codes, src)
    with np.errstate(invalid="ignore"):
        values = np.trunc(values.astype(np.float64))
    inside = codes[(values >= float(form.smallest)) & (values < float(form.largest + 1))]
    assert inside.size > codes.size // 4
    inside = whole_blocks(inside)
    wanted = torch_cast(inside, src, dst)
    np.testing.assert_array_equal(cast_codes(inside, src, dst, "TRUNC"), wanted)
