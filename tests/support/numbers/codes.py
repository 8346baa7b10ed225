"""Source codes worth casting, and the public API on codes: codes in, codes out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache

import ml_dtypes
import numpy as np
from support.numbers.oracle import FORMATS, Float, Integer, code_dtype, decode, split

import pypto_cast as pypto

SEED = int(os.environ.get("PYPTO_CAST_TEST_SEED", "20251117"))
RANDOM_ELEMS = 20_000
ALIGNED_TILE = (8192,)

# --- Codes and numpy values -------------------------------------------------------------------

NUMPY: dict[str, np.dtype] = {
    "FP32": np.dtype(np.float32),
    "FP16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "INT4": np.dtype(ml_dtypes.int4),
    "INT8": np.dtype(np.int8),
    "UINT8": np.dtype(np.uint8),
    "INT16": np.dtype(np.int16),
    "INT32": np.dtype(np.int32),
    "INT64": np.dtype(np.int64),
    "UINT16": np.dtype(np.uint16),
    "UINT32": np.dtype(np.uint32),
    "UINT64": np.dtype(np.uint64),
    "BOOL": np.dtype(np.bool_),
}
DIRECT_PAIRS = [
    *(("FP32", "FP16"), ("FP32", "BF16"), ("FP16", "FP32"), ("BF16", "FP32")),
    *(("INT32", "FP32"), ("INT64", "FP32"), ("INT16", "FP32")),
    *(("INT16", "FP16"), ("INT8", "FP16"), ("UINT8", "FP16")),
]
"""Pairs that numpy and ml_dtypes convert in one rounding."""


def as_values(codes: np.ndarray, fmt: str) -> np.ndarray:
    """The numpy array whose elements have these codes."""
    codes = codes.astype(code_dtype(fmt), copy=False)
    if fmt == "INT4":
        return ((codes ^ 8).astype(np.int8) - 8).astype(NUMPY[fmt])
    return codes.view(NUMPY[fmt])


def as_codes(values: np.ndarray, fmt: str) -> np.ndarray:
    """The codes of a numpy array, which must have the format's own dtype."""
    assert values.dtype == NUMPY[fmt], f"{values.dtype} where {NUMPY[fmt]} was expected"
    if fmt == "INT4":
        return values.astype(np.int8).view(np.uint8) & 15
    return values.view(code_dtype(fmt))


def order(codes: np.ndarray, fmt: str) -> np.ndarray:
    """Integers in the order of the values, the two zeros equal; NaN has no place in it."""
    form = FORMATS[fmt]
    if isinstance(form, Integer):
        return as_values(codes, fmt).astype(np.int64)
    magnitude = (codes & code_dtype(fmt).type(form.sign_bit - 1)).astype(np.int64)
    return np.where(codes >= form.sign_bit, -magnitude, magnitude)


def is_nan(codes: np.ndarray, fmt: str) -> np.ndarray:
    form = FORMATS[fmt]
    if isinstance(form, Integer):
        return np.zeros(codes.shape, bool)
    return (codes & code_dtype(fmt).type(form.sign_bit - 1)) > form.inf


def cast_codes(
    codes: np.ndarray,
    src: str,
    dst: str,
    mode: str = "NONE",
    satmode: str = "ON",
    *,
    tile: Sequence[int] = ALIGNED_TILE,
    inf_nan_mode: bool = True,
    strict: bool = False,
) -> np.ndarray:
    """Converts these codes by `pypto.cast`."""
    x = pypto.from_numpy(as_values(codes, src))
    with pypto.options(vec_tile_shapes=list(tile), inf_nan_mode=inf_nan_mode, strict=strict):
        y = pypto.cast(
            x,
            getattr(pypto, f"DT_{dst}"),
            mode=pypto.CastMode[f"CAST_{mode}"],
            satmode=pypto.SaturationMode[satmode],
        )
    values = y.numpy()
    assert values.shape == codes.shape
    return as_codes(values, dst)


def whole_blocks(codes: np.ndarray) -> np.ndarray:
    """The codes, repeated from the start until their bytes fill 32 B blocks in every format."""
    return np.resize(codes, -(-codes.size // 64) * 64)


# --- Which codes ------------------------------------------------------------------------------


def _landmarks(src: str, dst: str) -> Iterator[Fraction]:
    """Magnitudes at which some conversion to `dst` changes its mind."""
    for quarters in range(4 * 140):
        yield Fraction(quarters, 4)
    for exponent in range(-150, 129):
        yield Fraction(2) ** exponent
    for bits in (3, 4, 7, 8, 15, 16, 31, 32, 63, 64):
        for halves in range(-6, 7):
            yield 2**bits + Fraction(halves, 2)
    for wraps in (1, 2, 3, 255, 257, 32767):
        for low in (-1, 0, 1, 127, 128, 32767, 32768):
            yield Fraction((wraps << 16) + low)
            yield Fraction((wraps << 32) + low)

    form = FORMATS[dst]
    if not isinstance(form, Float):
        return
    edges = set(range(8)) | set(range(form.inf - 8, form.inf))
    if form.man_bits <= 10:
        edges |= set(range((1 << form.man_bits) + 2))
    for start in range(0, form.inf, 1 << form.man_bits):
        edges |= {start, start + 1, start + (1 << form.man_bits) - 2}
        edges |= {start + (1 << form.man_bits) - 1}
    for code in sorted(edges):
        lower = decode(code, dst).magnitude
        yield lower
        yield lower + Fraction(2) ** (form.quantum(code >> form.man_bits) - 1)
    yield Fraction(2) ** (form.bias + 1)


def _around(magnitude: Fraction, src: str) -> Iterator[int]:
    """The source codes nearest to a magnitude, of both signs, two on either side."""
    form = FORMATS[src]
    kept = split(magnitude, src).kept
    for near in range(kept - 1, kept + 3):
        if isinstance(form, Float):
            if 0 <= near <= form.inf:
                yield from (near, near | form.sign_bit)
        else:
            for number in (near, -near):
                if form.smallest <= number <= form.largest:
                    yield form.low_bits(number)


def specials(src: str) -> Iterator[int]:
    """Zeros, the ends of the subnormals and of the numbers, infinities, various NaNs."""
    form = FORMATS[src]
    if isinstance(form, Integer):
        yield from (0, form.low_bits(form.smallest), form.largest, form.low_bits(-1))
        return
    quiet = 1 << (form.man_bits - 1)
    normal = 1 << form.man_bits
    for code in (
        *(0, 1, 2, 3, quiet, normal - 2, normal - 1, normal, normal + 1),
        *(form.largest - 1, form.largest, form.inf),
        *(form.inf + 1, form.inf + quiet - 1, form.inf + quiet, form.inf + quiet + 1),
        *(form.inf + (quiet >> 1), form.sign_bit - 1),
    ):
        yield from (code, code | form.sign_bit)


def _random(src: str, dst: str) -> np.ndarray:
    """Half of them spread over all codes, half over the magnitudes that `dst` tells apart."""
    rng = np.random.default_rng([SEED, *f"{src}{dst}".encode()])
    form, target = FORMATS[src], FORMATS[dst]
    half = RANDOM_ELEMS // 2
    dtype = code_dtype(src)
    anywhere = rng.integers(0, 1 << form.bits, half, dtype=dtype)
    if isinstance(form, Integer):
        numbers = rng.integers(0, 1 << form.bits, half, dtype=dtype).view(NUMPY[src])
        shifts = rng.integers(0, form.bits, half).astype(NUMPY[src])
        within = (numbers >> shifts).view(dtype)
    else:
        small, large = Fraction(1, 8), Fraction(4) * (1 << target.bits)
        if isinstance(target, Float):
            small = Fraction(2) ** (target.quantum(0) - 3)
            large = Fraction(2) ** (target.bias + 4)
        low, high = split(small, src).kept, min(split(large, src).kept, form.largest)
        within = rng.integers(low, high + 1, half, dtype=dtype)
        within |= rng.integers(0, 2, half, dtype=dtype) * dtype.type(form.sign_bit)
    return np.concatenate([anywhere, within])


@lru_cache(maxsize=4)
def source_codes(src: str, dst: str) -> np.ndarray:
    """All codes of a source of at most 16 bits, else landmarks, neighbours, specials and random.

    The array is read-only.
    """
    bits = FORMATS[src].bits
    dtype = code_dtype(src)
    if bits <= 16:
        codes = np.arange(1 << bits, dtype=dtype)
    else:
        chosen = set(specials(src))
        for magnitude in _landmarks(src, dst):
            chosen.update(_around(magnitude, src))
        codes = np.concatenate([np.array(sorted(chosen), dtype), _random(src, dst)])
    codes.flags.writeable = False
    return codes


def random_codes(shape: Sequence[int], fmt: str, *, salt: str) -> np.ndarray:
    """Seeded random codes of any shape, the specials of the format among them.

    However large the shape, at most about `RANDOM_ELEMS` of the codes are distinct.
    """
    rng = np.random.default_rng([SEED, *salt.encode()])
    special = np.array(list(specials(fmt)), code_dtype(fmt))
    pool = rng.integers(0, 1 << FORMATS[fmt].bits, RANDOM_ELEMS, dtype=code_dtype(fmt))
    codes = rng.choice(pool, tuple(shape))
    places = rng.permutation(codes.size)[: special.size]
    codes.ravel()[places] = special[: places.size]
    return codes
