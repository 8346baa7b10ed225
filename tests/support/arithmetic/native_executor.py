"""Shared by the tests of the native executor: the library at its levels, operands worth trying."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from support.numbers.codes import SEED

from simulator.arithmetic.computed import compute
from simulator.arithmetic.native.executor_library import Executor, find
from simulator.arithmetic.native.node_program import Node
from simulator.arithmetic.operation import Operation
from simulator.numbers import float_environment
from simulator.numbers.formats import FP16, FP32, FloatFormat

Array = npt.NDArray[Any]
FORMATS = (FP32, FP16)
LEVELS = ("baseline", "avx2", "avx512")


def at(level: str) -> Executor:
    """The library at a level; skips the test where it or the level is missing."""
    found = find()
    if not isinstance(found, Executor):
        pytest.skip(str(found))
    if level not in found.levels:
        pytest.skip(f"this machine has the levels {', '.join(found.levels)}, not {level}")
    return replace(found, level=level)


def same_codes(found: Array, expected: Array, named: object) -> None:
    """Compare bits; the message names the case."""
    assert found.shape == expected.shape, named
    width = f"u{expected.itemsize}"
    np.testing.assert_array_equal(
        np.ascontiguousarray(found).view(width), np.ascontiguousarray(expected).view(width), named
    )


@functools.cache
def _boundaries(fmt: FloatFormat) -> Array:
    """Zero, the least numbers, one, halves, integers without fractions, the greatest, inf, NaN."""
    one, unit = fmt.max_code // 2 + 1 >> fmt.man_bits, 1 << fmt.man_bits
    points = [0, unit, one * unit, fmt.max_code, fmt.inf_code, fmt.nan_code]
    points += [(one + fmt.man_bits + step) * unit for step in (-1, 0, 1)]
    points += [(one + step) * unit + half * unit // 2 for step in (-1, 0, 1) for half in (0, 1)]
    near = {abs(p + step) for p in points if p is not None for step in (-1, 0, 1)}
    codes = np.array(sorted(c for c in near if c < fmt.sign_code), fmt.code_dtype)
    return np.concatenate([codes, codes | fmt.code_dtype.type(fmt.sign_code)])


@functools.cache
def operands(fmt: FloatFormat, elems: int = 20_000) -> tuple[Array, Array, Array]:
    """Three arrays: all pairs of boundaries, then any codes, then common numbers."""
    rng = np.random.default_rng(SEED)
    points = _boundaries(fmt)
    first, second = (x.reshape(-1) for x in np.meshgrid(points, points))
    codes = rng.integers(0, 2 * fmt.sign_code, elems).astype(fmt.code_dtype)
    if fmt is FP16:
        codes = np.concatenate([np.arange(1 << 16).astype(np.uint16), codes])
    common = (rng.standard_normal(elems) * 8).astype(fmt.dtype).view(fmt.code_dtype)
    a = np.concatenate([first, codes, common])
    b = np.concatenate([second, codes[::-1], common[::-1]])
    return a.view(fmt.dtype), b.view(fmt.dtype), np.roll(a, 7).view(fmt.dtype)


def cases(operation: Operation, fmt: FloatFormat) -> Iterator[list[Array]]:
    """Operands of an operation: side by side, and repeated along rows, columns and both."""
    arrays = list(operands(fmt))
    if operation.copies:
        arrays[0] = np.arange(arrays[0].size) % 3 == 0
    arrays = arrays[: operation.operands]
    yield arrays
    if operation.operands == 1:
        return
    rows = arrays[0].size // 256 * 4
    blocks = [x[: rows * 64].reshape(rows, 64) for x in arrays]
    yield [*blocks[:-1], blocks[-1][:, 3:4]]
    yield [blocks[0][:, 5:6], *blocks[1:]]
    yield [blocks[0], blocks[1][9], *blocks[2:]]
    yield [blocks[0][:, ::2], *(x[:, 1::2] for x in blocks[1:])]
    yield [blocks[0].reshape(rows // 4, 4, 64)[:, :1]] + [
        x.reshape(rows // 4, 4, 64) for x in blocks[1:]
    ]
    yield [x[17:18].reshape(()) if k == 1 else x for k, x in enumerate(arrays)]


def by_numpy(operation: Operation, given: Sequence[Array], fmt: FloatFormat) -> Array:
    """The result of the engine of numpy."""
    shape = np.broadcast_shapes(*(x.shape for x in given))
    out = np.empty(shape, np.bool_ if operation.gives_truth else fmt.dtype)
    with float_environment.quiet():
        compute(operation, given, fmt, out, inf_nan_mode=True)
    return out


def rows_to_sum(length: int) -> Array:
    """Rows of numbers, of zeros, with NaN, with infinities, and one that overflows."""
    rng = np.random.default_rng(SEED)
    rows = rng.standard_normal((6, length)).astype(np.float32)
    rows *= np.float32(10) ** rng.integers(-4, 4, rows.shape)
    rows[1] = -0.0
    rows[2] = 0.0
    rows[2, 0] = -0.0
    rows[3, length // 2] = np.array(0xFFC00001, np.uint32).view(np.float32)
    rows[4, -1] = np.inf
    rows[4, 0] = -np.inf
    rows[5] = np.float32(3e38)
    return rows


def near_ties(executor: Executor, codes: int = 9) -> tuple[Array, Array]:
    """Numbers that the library finds near to ties of BF16, or beside others out of range.

    Returns:
        The marks, and those that follow from distances of codes and from magnitudes.
    """
    rng = np.random.default_rng(SEED)
    middle = rng.integers(0x3000, 0x4F00, (40, 60)).astype(np.int64) << 16
    near = (middle + 0x8000 + rng.integers(-12, 13, middle.shape)).astype(np.uint32)
    numbers = (near | rng.integers(0, 2, near.shape).astype(np.uint32) << 31).view(np.float32)
    powers = np.exp2(rng.integers(-63, 64, (3, 40, 60)).astype(np.float32))
    powers *= np.float32(rng.choice([-1.0, 1.0, 1.5], powers.shape))
    powers.reshape(-1)[::13], powers.reshape(-1)[5::17] = 0.0, -0.0
    powers.reshape(-1)[3::19], powers.reshape(-1)[7::23] = np.inf, np.nan
    others = [*powers, powers[0, :, :1].copy()]
    takes_zero = (0, 1, 1, 0)
    table = np.array([codes, *takes_zero], np.uint32)
    node = Node(
        executor, "may_round_apart", [numbers, *others, table], near.shape, np.dtype(np.uint8)
    )
    # Ties are odd multiples of 2**15: one lies among the codes if they are of several cells.
    cells = [(near.astype(np.int64) + step - 0x8000) // 0x10000 for step in (-codes - 1, codes)]
    expected = cells[0] != cells[1]
    for other, takes in zip(others, takes_zero, strict=True):
        magnitude = np.abs(other.astype(np.float64))
        in_range = (magnitude >= 2.0**-60) & (magnitude <= 2.0**60)
        expected |= ~(in_range | (magnitude == 0) & bool(takes))
    return node.computed(), expected
