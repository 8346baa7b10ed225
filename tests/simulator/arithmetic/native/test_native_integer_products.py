"""Products of INT8 matrices on the native executor have the bits of numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.arithmetic.native_executor import LEVELS, at, same_codes
from support.numbers.codes import SEED

from simulator.arithmetic import Enclosure
from simulator.arithmetic.cube import matmul
from simulator.arithmetic.native import integer_products
from simulator.arithmetic.trust import EXACT
from simulator.numbers.formats import INT8

SHAPES = ((1, 1, 1), (6, 2, 64), (7, 3, 65), (13, 129, 200), (5, 1000, 63), (64, 64, 128))


def matrices(rows: int, terms: int, columns: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(SEED + rows)
    a, b = (
        rng.integers(-128, 128, shape).astype(np.int8)
        for shape in ((rows, terms), (terms, columns))
    )
    a[0], b[:, 0] = -128, -128
    return a, b


@pytest.mark.parametrize("level", ["scalar", *LEVELS])
@pytest.mark.parametrize("threads", [1, 3])
def test_products(level: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integer_products, "_THREAD_TERMS", 1)
    monkeypatch.setattr(integer_products, "_CALL_TERMS", 1 << 16)
    for shape in SHAPES:
        a, b = matrices(*shape)
        expected = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)
        same_codes(integer_products.multiply(at(level), a, b, threads=threads), expected, shape)
        strided = integer_products.multiply(at(level), a.T.copy().T, b[:, ::-1], threads=threads)
        same_codes(strided, np.ascontiguousarray(expected[:, ::-1]), shape)


@pytest.mark.parametrize("level", LEVELS)
def test_sums_wrap(level: str) -> None:
    terms = (1 << 17) + 2
    a, b = np.full((1, terms), -128, np.int8), np.full((terms, 2), -128, np.int8)
    b[:, 1] = 127
    expected = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)
    same_codes(integer_products.multiply(at(level), a, b, threads=1), expected, level)


@pytest.mark.parametrize("trust", [None, EXACT])
def test_both_engines_give_one_enclosure(trust: Any) -> None:
    at("baseline")
    how = {} if trust is None else {"trust": trust}
    rng = np.random.default_rng(SEED)
    for terms in (70, 1 << 17):  # beyond, a sum of magnitudes may leave INT32
        a, b = matrices(2, terms, 3)
        bias = Enclosure(values=rng.integers(-(2**31), 2**31, (1, 3)).astype(np.int32))
        for added in (None, bias):
            found, expected = (
                matmul(
                    Enclosure(values=a), Enclosure(values=b), INT8, bias=added, engine=engine, **how
                )
                for engine in ("auto", "numpy")
            )
            same_codes(found.values, expected.values, terms)
            same_codes(found.low, expected.low, terms)
            same_codes(found.high, expected.high, terms)
            assert (found.interval is None) == (expected.interval is None)
