"""Products of INT8 matrices on the native executor have the bits of numpy's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.arithmetic.native_executor import at, same_codes
from support.numbers.codes import SEED

import pypto_cast as pypto
from simulator.arithmetic import Enclosure
from simulator.arithmetic.cube import matmul
from simulator.arithmetic.native import integer_products
from simulator.arithmetic.native.executor_library import Executor
from simulator.arithmetic.trust import EXACT
from simulator.numbers.formats import INT8

SHAPES = (
    *((1, 1, 1), (6, 2, 64), (7, 3, 65), (12, 4, 64), (6, 5, 1), (13, 129, 200)),
    *((5, 1000, 63), (64, 64, 128), (11, 258, 130)),
)
WAYS = ("baseline", "avx2", "avx2_vnni", "avx512", "avx512_vnni")


def by(way: str) -> Executor:
    """The library with one way to multiply."""
    executor = at(way.split("_")[0])
    if way not in executor.ways:
        pytest.skip(f"this machine multiplies by {', '.join(executor.ways)}, not by {way}")
    return replace(executor, ways={way: executor.ways[way]})


def matrices(rows: int, terms: int, columns: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(SEED + rows)
    a, b = (
        rng.integers(-128, 128, shape).astype(np.int8)
        for shape in ((rows, terms), (terms, columns))
    )
    a[0], b[:, 0] = -128, -128
    return a, b


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("threads", [1, 3])
def test_products(way: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integer_products, "_THREAD_TERMS", 1)
    monkeypatch.setattr(integer_products, "_CALL_TERMS", 1 << 16)
    for shape in SHAPES:
        a, b = matrices(*shape)
        expected = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)
        same_codes(integer_products.multiply(by(way), a, b, threads=threads), expected, shape)
        strided = integer_products.multiply(by(way), a.T.copy().T, b[:, ::-1], threads=threads)
        same_codes(strided, np.ascontiguousarray(expected[:, ::-1]), shape)


@pytest.mark.parametrize("way", WAYS)
def test_products_of_all_pairs_of_bytes(way: str) -> None:
    numbers = np.arange(-128, 128).astype(np.int8)
    a, b = numbers[:, None], np.tile(numbers, (3, 1))  # the terms of one group, each by itself
    for term in range(3):
        alone = np.zeros((256, 3), np.int8)
        alone[:, term : term + 1] = a
        expected = numbers[:, None].astype(np.int32) * numbers[None].astype(np.int32)
        same_codes(integer_products.multiply(by(way), alone, b, threads=1), expected, term)


def test_the_fastest_way_of_a_level_multiplies() -> None:
    every = {way: k for k, way in enumerate(("baseline", "avx2", "avx512", "avx2_vnni"))}
    executor = replace(at("baseline"), ways=every)
    found = {
        level: integer_products.way_of(replace(executor, level=level))
        for level in ("scalar", "baseline", "avx2", "avx512")
    }
    expected = {"scalar": "baseline", "baseline": "baseline", "avx2": "avx2_vnni"}
    assert found == {**expected, "avx512": "avx512"}


def test_a_way_that_is_not_there_is_refused() -> None:
    executor = at("baseline")
    status = executor.library.pypto_cast_arithmetic_multiply(
        *(max(executor.ways.values()) + 1, None, None, None, 1, 1, 1, 0, 1)
    )
    assert status == 1


@pytest.mark.parametrize("way", WAYS)
def test_sums_wrap(way: str) -> None:
    terms = (1 << 17) + 2
    a, b = np.full((1, terms), -128, np.int8), np.full((terms, 2), -128, np.int8)
    b[:, 1] = 127
    expected = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)
    same_codes(integer_products.multiply(by(way), a, b, threads=1), expected, way)


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


def test_a_second_run_of_certainty_multiplies_nothing_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    at("baseline")
    whole = pypto.Tensor([pypto.STATIC, pypto.STATIC], pypto.DT_INT8)
    wide = pypto.Tensor([pypto.STATIC, pypto.STATIC], pypto.DT_INT32)

    @pypto.jit
    def twice(a: whole, b: whole, first: wide, second: wide) -> None:
        first[:] = pypto.matmul(a, b, pypto.DT_INT32)
        second[:] = pypto.add(first, pypto.matmul(b, a, pypto.DT_INT32))

    calls: list[int] = []
    multiply = integer_products.multiply

    def noted(*given: Any, **how: Any) -> Any:
        calls.append(1)
        return multiply(*given, **how)

    monkeypatch.setattr(integer_products, "multiply", noted)
    pypto.set_cube_tile_shapes([16, 16], [32, 32], [32, 32])
    pypto.set_vec_tile_shapes(16, 16)
    a, b = matrices(32, 32, 32)
    given = (a, b, *(np.zeros((32, 32), np.int32) for _ in range(2)))
    found = twice.certainty(*given)
    assert len(calls) == 2
    with pypto.options(engine="numpy"):
        expected = twice.certainty(*given)
    for one, other in zip(found.outputs, expected.outputs, strict=True):
        same_codes(one.values, other.values, one.name)
        same_codes(one.by_documents, other.by_documents, one.name)
    a[0, 0] += 1  # a later call knows nothing of this one
    assert (twice.certainty(*given)[0].values != found[0].values).any()
    assert len(calls) == 4
