"""Codes to feed a framework's cast with, and how to tell its results from a rule's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pypto_cast.dialects.systems import DIALECTS
from pypto_cast.dtypes.data_types import CastMode
from simulator.numbers.formats import Codes, FloatFormat, Format, IntFormat

SPECIAL = np.array(
    [
        *(
            np.inf,
            np.nan,
            0.0,
            0.5,
            1.0,
            1.5,
            2.0,
            127.5,
            128.0,
            129.0,
            255.0,
            256.0,
            300.0,
            40000.0,
        ),
        *(464.0, 465.0, 480.0, 57344.0, 61439.99, 61440.0, 65504.0, 65519.9999999999, 65520.0),
        *(1 + 2**-11 + 2**-40, 1 + 2**-4 + 2**-30, 1 + 2**-8 + 2**-30, 3.0000001e-8, 2.0**-25),
        *(2.0**31 - 1, 2.0**31 - 0.5, 2.0**31, 2.0**32, 2.0**63, 2.0**64, 1e30, 3.4e38, 1e300),
    ]
)


def source_codes(fmt: Format) -> Codes:
    """Every code of up to 16 bits; of wider ones the special, random bits and random sizes."""
    if fmt.bits <= 16:
        return np.arange(1 << fmt.bits, dtype=fmt.code_dtype)
    random = np.random.default_rng(5)
    anything = random.integers(0, 1 << 64, 20000, np.uint64, endpoint=False)
    sized = anything[:10000] >> random.integers(0, 64, 10000, np.uint64)
    if isinstance(fmt, IntFormat):
        small = random.integers(-70000, 70000, 10000).astype(np.uint64)
        return np.concatenate([anything, sized, small]).astype(fmt.code_dtype)
    numbers = random.standard_normal(20000) * np.exp2(random.integers(-30, 70, 20000))
    with np.errstate(all="ignore"):
        values = np.concatenate([SPECIAL, -SPECIAL, numbers]).astype(fmt.dtype)
    return np.concatenate([values.view(fmt.code_dtype), anything.astype(fmt.code_dtype)])


def is_nan(codes: Codes, fmt: FloatFormat) -> np.ndarray:
    """By numpy, which shares no code with the rules."""
    with np.errstate(all="ignore"):
        return np.isnan(codes.view(fmt.dtype))


def check(dialect: str, src: Format, dst: Format, cast: Callable[[Codes], Codes]) -> int:
    """Hold a rule against a framework, many at a time and one by one; how many codes it settles.

    Args:
        dialect: whose rule.
        src: source format.
        dst: destination format.
        cast: source codes to destination codes, by the framework.
    """
    rule = DIALECTS[dialect].rule(src, dst, CastMode.CAST_NONE)
    assert rule.convert is not None, rule.text
    codes = source_codes(src)
    alone = codes[:: max(1, codes.size // 50)]
    for given, found in (
        (codes, cast(codes)),
        (alone, np.concatenate([cast(alone[i : i + 1]) for i in range(alone.size)])),
    ):
        wanted = rule.convert(given)
        differs = wanted != found
        if isinstance(dst, FloatFormat) and rule.leaves_nan_bits_open:
            differs &= ~(is_nan(wanted, dst) & is_nan(found, dst))
        if rule.leaves_open is not None:
            differs &= ~rule.leaves_open(given)
        first = np.flatnonzero(differs)[:5]
        assert not first.size, [
            f"{given[i]:#x} gives {found[i]:#x}, not {wanted[i]:#x}" for i in first
        ]
    opened = 0 if rule.leaves_open is None else int(rule.leaves_open(codes).sum())
    return codes.size - opened
