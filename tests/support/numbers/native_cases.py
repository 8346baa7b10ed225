"""Shared by the tests of the native engine: the library, the rows, codes worth converting."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from support.numbers.codes import SEED

from ascend_kernels.matrix import MATRIX, CastControls, resolve
from ascend_kernels.program import conversions
from simulator.numbers.convert import (
    INF_NAN,
    SATURATE,
    SATURATE_KEEP_NAN,
    WRAP,
    Conversion,
    Policy,
)
from simulator.numbers.formats import Codes, FloatFormat, Format, IntFormat
from simulator.numbers.native.library import Native, NativeUnavailableError, native
from simulator.numbers.rounding import boundary_codes
from tiling.chips import A2_A3

Chain = tuple[Conversion, ...]


NOWHERE = "/nonexistent"
"""A name for `library.LIBRARY_VARIABLE` that leaves numpy alone."""


LEVELS = ("scalar", "baseline", "avx2", "avx512")
"""All that a library may have; which of them run depends on the machine."""


@functools.cache
def loaded() -> Native:
    """The installed library; skips the test where there is none."""
    try:
        return native()
    except NativeUnavailableError as error:
        pytest.skip(str(error))


def at(level: str) -> Native:
    """The library at a level; skips the test where this machine lacks it."""
    found = loaded()
    if level not in found.levels:
        pytest.skip(f"this machine has the levels {', '.join(found.levels)}, not {level}")
    return Native(path=found.path, levels=found.levels, level=level, library=found.library)


def run(native: Native, chain: Chain, codes: Codes) -> Codes:
    kernel = native.loop(chain)
    assert kernel is not None
    out = np.full(codes.size, 0x5A, chain[-1].dst.code_dtype)
    kernel(codes, out)
    return out


def define(chain: Chain, codes: Codes) -> Codes:
    for conversion in chain:
        codes = conversion.reference(codes)
    return codes


def name(chain: Chain) -> str:
    first, last = chain[0], chain[-1]
    policies = "-".join(dict.fromkeys(str(conversion.policy) for conversion in chain))
    return f"{first.src}-{last.dst}-{first.mode}-{policies}-{len(chain)}".lower()


@functools.cache
def matrix_rows() -> tuple[Chain, ...]:
    """Every row of the matrix in every mode, saturation mode and INF/NAN mode, each chain once."""
    rows = [
        conversions(
            resolve(A2_A3, rule.src, rule.dst, mode, saturate=saturate),
            CastControls(inf_nan_mode=inf_nan),
        )
        for rule in MATRIX[A2_A3].values()
        for mode in rule.modes or (None,)
        for saturate in ((True, False) if rule.off else (True,))
        for inf_nan in (True, False)
    ]
    return tuple(dict.fromkeys(rows))


def policies(dst: Format) -> tuple[Policy, ...]:
    """The policies of the matrix, and of the dialects."""
    floats = (INF_NAN, SATURATE, SATURATE_KEEP_NAN)
    return floats if isinstance(dst, FloatFormat) else (SATURATE, WRAP)


def codes_of_interest(src: Format, random_elems: int) -> Codes:
    """All codes of up to 16 bits, else boundaries, their neighbours and random codes.

    Of formats below a byte the unused bits are set in a second half: they must not matter.
    """
    codes = boundary_codes(src)
    if src.bits <= 16:
        unused = codes | codes.dtype.type((-1 << src.bits) & 0xFF) if src.bits < 8 else codes[:0]
        return np.concatenate([codes, unused])
    rng = np.random.default_rng([SEED, src.bits])
    return np.concatenate([codes, spread(rng, src, random_elems)])


def spread(rng: np.random.Generator, src: Format, elems: int) -> Codes:
    """Random codes: of integers, of any length."""
    codes = rng.integers(0, 1 << src.bits, elems, dtype=src.code_dtype)
    if not isinstance(src, IntFormat) or src.bits < 32:
        return codes
    signed = codes.view(f"i{codes.itemsize}")
    return (signed >> rng.integers(0, src.bits, elems, dtype=signed.dtype)).view(codes.dtype)


def one_of_each_width() -> list[Chain]:
    """The first row of the matrix for each pair of element sizes, and the longest chain."""
    rows = matrix_rows()
    by_width = {
        key: next(iter(group))
        for key, group in itertools.groupby(sorted(rows, key=_widths), key=_widths)
    }
    return [*by_width.values(), max(rows, key=len)]


def _widths(chain: Chain) -> tuple[int, int]:
    return chain[0].src.code_dtype.itemsize, chain[-1].dst.code_dtype.itemsize


def needs_native() -> None:
    """Skip where this run has no native engine."""
    loaded()
