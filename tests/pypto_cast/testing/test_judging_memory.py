"""Judging beside a golden takes the same memory for dumps of any size."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pypto_cast.cli.dumped_arrays import dumped
from pypto_cast.dtypes.data_types import DataType
from pypto_cast.testing import judge, layouts
from pypto_cast.testing.bits import PIECE_ELEMS, pieces
from pypto_cast.testing.precision import STANDARDS, Standard, elems_to_compare, pieces_observed

TENTH_OF_INPUTS_BYTES = 10**8 * 2 * 4 // 10
"""Of two FP32 dumps of 10^8 elements."""
WIDE_AND_CODES = ("wide", "codes")


def peak_bytes(judging: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        judging()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def dumps_of(elems: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    golden = np.linspace(-4, 4, elems, dtype=np.float32).reshape(-1, 1024)
    result = golden.copy()
    result[::10, ::100] += np.float32(1)
    return result, golden


def assert_flat(peak_of: Callable[[int], int]) -> None:
    small, large = map(peak_of, (4 * PIECE_ELEMS, 8 * PIECE_ELEMS))
    assert large <= small + 100_000
    assert large <= TENTH_OF_INPUTS_BYTES


@pytest.fixture(autouse=True)
def small_dumps_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of dumps of these tests no copies are made to look at other layouts, as of those of 2^22."""
    monkeypatch.setattr(layouts, "_MOST_ELEMS", PIECE_ELEMS)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("standard", ["bits", "community"])
@pytest.mark.parametrize(
    "stored", [np.asarray, np.asfortranarray, lambda x: x.astype(x.dtype.newbyteorder())]
)
def test_memory_does_not_grow_with_the_dumps(
    standard: Standard, stored: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]
) -> None:
    def peak_of(elems: int) -> int:
        result, golden = dumps_of(elems)
        held = stored(result)
        return peak_bytes(lambda: judge(held, golden, standard=standard))

    assert_flat(peak_of)


def test_bf16_kept_as_fp32_is_not_copied(tmp_path: Path) -> None:
    def peak_of(elems: int) -> int:
        _, golden = dumps_of(elems)
        codes = (golden.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
        np.save(tmp_path / "wide.npy", (codes.astype(np.uint32) << np.uint32(16)).view(np.float32))
        np.save(tmp_path / "codes.npy", codes)

        def judging() -> None:
            files = [dumped(tmp_path / f"{name}.npy", DataType.DT_BF16) for name in WIDE_AND_CODES]
            assert judge(*files).passes

        return peak_bytes(judging)

    assert_flat(peak_of)


def test_pieces_are_those_of_the_arrays_in_order() -> None:
    rows = np.arange(2 * PIECE_ELEMS + 6, dtype=np.float32).reshape(2, -1)
    swapped = np.asfortranarray(rows).astype(">f4")
    whole = [np.concatenate(each) for each in zip(*map(copied, pieces(rows, swapped)), strict=True)]
    for found in whole:
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, rows.reshape(-1))


def copied(parts: tuple[np.ndarray[Any, Any], ...]) -> list[np.ndarray[Any, Any]]:
    return [part.copy() for part in parts]


@pytest.mark.parametrize("standard", STANDARDS)
def test_every_piece_is_told(standard: Standard) -> None:
    golden = np.linspace(-4, 4, 1_000_000, dtype=np.float32)
    precise = golden.astype(np.float64) if standard.startswith("2.1") else None
    told: list[int] = []
    with pieces_observed(told.append):
        judge(golden, golden, precise, standard=standard)
    assert max(told) <= 1 << 18
    assert sum(told) == elems_to_compare([golden], standard)


def test_every_piece_of_integers_is_told_once() -> None:
    golden = np.arange(1000, dtype=np.int32)
    told: list[int] = []
    with pieces_observed(told.append):
        judge(golden, golden)
    assert sum(told) == elems_to_compare([golden], "bits") == 1000
