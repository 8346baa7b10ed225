"""Every conversion of the ONNX dialect takes a fast path, and it gives the definition's codes."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from support.numbers.codes import SEED
from support.numbers.magnitudes import magnitudes_near

from pypto_cast.dialects.onnx.cast import _conversion
from pypto_cast.dialects.onnx.types import FORMATS, TensorType
from simulator.numbers import fast
from simulator.numbers.convert import Conversion, Policy
from simulator.numbers.fast.chunks import CHUNK_ELEMS
from simulator.numbers.formats import E8M0, FP32, FP64, Codes, FloatFormat, Format
from simulator.numbers.rounding import RoundMode, boundary_codes

RANDOM_ELEMS = 10_000


def name_of(value: TensorType) -> str:
    return value.name.lower()


def conversions(src: TensorType, dst: TensorType) -> list[Conversion]:
    modes = ("up", "down", "nearest") if FORMATS[dst] is E8M0 else ("up",)
    return list(
        dict.fromkeys(
            _conversion(src, dst, saturate, mode, inf_saturates)
            for saturate in (True, False)
            for mode in modes
            for inf_saturates in (True, False)
        )
    )


@functools.lru_cache(maxsize=4)
def source_codes(src: Format) -> Codes:
    codes = boundary_codes(src)
    if src.bits <= 16:
        return codes
    rng = np.random.default_rng([SEED, *src.name.encode()])
    anywhere = rng.integers(0, 1 << src.bits, RANDOM_ELEMS, dtype=src.code_dtype)
    parts = [codes, anywhere, anywhere >> (anywhere % src.code_dtype.type(src.bits))]
    if isinstance(src, FloatFormat):
        values = rng.standard_normal(RANDOM_ELEMS) * np.exp2(rng.integers(-20, 12, RANDOM_ELEMS))
        parts.append(values.astype(src.dtype).view(src.code_dtype))
    return np.concatenate(parts)


def assert_fast_is_the_definition(conversion: Conversion, codes: Codes) -> None:
    path = fast.loop(conversion)
    assert path is not None
    before = codes.copy()
    out = np.full(codes.size, 0xA5, conversion.dst.code_dtype)
    path(codes, out)
    np.testing.assert_array_equal(out, conversion.reference(codes), str(conversion))
    np.testing.assert_array_equal(codes, before)


def assert_every_target(src: TensorType, step: int) -> None:
    """Takes every code of at most 16 bits, and every `step`-th of those chosen from wider ones."""
    source = FORMATS[src]
    step = step if source.bits > 16 else 1
    for dst, target in FORMATS.items():
        codes = source_codes(source)
        if source in (FP32, FP64) and isinstance(target, FloatFormat) and not target.is_scale:
            codes = np.concatenate([codes, magnitudes_near(source, target)])
        for conversion in conversions(src, dst) if src is not dst else ():
            assert_fast_is_the_definition(conversion, codes[::step])


@pytest.mark.slow
@pytest.mark.parametrize("src", FORMATS, ids=name_of)
def test_codes_are_the_definitions(src: TensorType) -> None:
    assert_every_target(src, 17)


@pytest.mark.exhaustive
@pytest.mark.parametrize("src", [src for src in FORMATS if FORMATS[src].bits > 16], ids=name_of)
def test_all_chosen_codes_are_the_definitions(src: TensorType) -> None:
    assert_every_target(src, 1)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("src", "dst"),
    [
        ("FLOAT", "INT32"),
        ("FLOAT", "UINT8"),
        ("FLOAT", "INT4"),
        ("DOUBLE", "INT64"),
        ("DOUBLE", "FLOAT"),
        ("DOUBLE", "FLOAT16"),
        ("DOUBLE", "BFLOAT16"),
        ("BFLOAT16", "UINT16"),
        ("FLOAT", "FLOAT8E4M3FN"),
        ("INT64", "BFLOAT16"),
        ("UINT64", "FLOAT8E5M2"),
        ("INT32", "FLOAT8E8M0"),
    ],
    ids=lambda name: name.lower(),
)
def test_ordinary_pieces_with_a_lone_extreme_one(src: str, dst: str) -> None:
    """In range all of it, then with one code that is not; more than a piece; small sizes too."""
    source, target = TensorType[src], TensorType[dst]
    fmt = FORMATS[source]
    rng = np.random.default_rng(SEED)
    if isinstance(fmt, FloatFormat):
        ordinary = (rng.random(CHUNK_ELEMS + 5) * 7).astype(fmt.dtype).view(fmt.code_dtype)
        infinity = fmt.sign_code - (1 << fmt.man_bits)
        extremes = [infinity - 1, infinity, infinity + 1]
        extremes += [fmt.sign_code | code for code in extremes] + [fmt.sign_code]
    else:
        ordinary = rng.integers(0, 1 << 20, CHUNK_ELEMS + 5).astype(fmt.code_dtype)
        extremes = [fmt.max, (1 << fmt.bits) - 1, (1 << 30) + (1 << 22) + 1]
    (conversion, *_) = conversions(source, target)
    for elems in (1, 2, 31, ordinary.size):
        assert_fast_is_the_definition(conversion, ordinary[:elems])
    for extreme in extremes:
        for place in (0, CHUNK_ELEMS + 2):
            codes = ordinary.copy()
            codes[place] = extreme
            assert_fast_is_the_definition(conversion, codes)


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", RoundMode, ids=str)
@pytest.mark.parametrize("src", [FP32, FP64], ids=str)
def test_rounding_to_odd_serves_every_mode(src: FloatFormat, mode: RoundMode) -> None:
    policy: Policy = _conversion(TensorType.FLOAT, TensorType.FLOAT8E5M2, False, "up", True).policy
    for to in (TensorType.FLOAT8E4M3FN, TensorType.FLOAT8E5M2FNUZ, TensorType.FLOAT4E2M1):
        dst = FORMATS[to]
        conversion = Conversion(src=src, dst=dst, mode=mode, policy=policy)
        codes = np.concatenate([source_codes(src), magnitudes_near(src, dst)])
        assert_fast_is_the_definition(conversion, codes)
