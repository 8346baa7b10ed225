"""A part of a tensor costs a kernel the same however many there are, counted in lines that run."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import pypto_cast as pypto
from tiling.box_map import BoxMap

_HOUSE = str(Path(pypto.__file__).parents[1])
_FEW, _MANY = 25, 200
_TENSOR = pypto.Tensor([], pypto.DT_FP32)


@pypto.jit
def into_row(x: _TENSOR, out: _TENSOR, row: int) -> None:
    out[row : row + 1, :] = x[row : row + 1, :] + 1.0


def rows_of_a_tensor(x: Any, out: Any, held: Any, row: int) -> None:
    held[row : row + 1, :] = x[row : row + 1, :] / 3.0
    out[row : row + 1, :] = held[row : row + 1, :]


def declared_in_the_loop(x: Any, out: Any, held: Any, row: int) -> None:
    part = pypto.Tensor([1, 8], pypto.DT_FP32)
    part[:, 0:4] = x[row : row + 1, 0:4]
    part[:, 4:8] = x[row : row + 1, 4:8]
    out[row : row + 1, :] = part


def kernels_in_the_kernel(x: Any, out: Any, held: Any, row: int) -> None:
    into_row(x, held, row)
    out[row : row + 1, :] = held[row : row + 1, :]


def one_part_again(x: Any, out: Any, held: Any, row: int) -> None:
    held[0:1, :] = pypto.cast(x[row : row + 1, :], pypto.DT_FP32, mode=pypto.CAST_FLOOR)
    out[row : row + 1, :] = held[0:1, :]


BODIES = [rows_of_a_tensor, declared_in_the_loop, kernels_in_the_kernel, one_part_again]


def lines_run(call: Callable[[], object]) -> int:
    count = 0

    def local(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        count += event == "line"
        return local

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        return local if frame.f_code.co_filename.startswith(_HOUSE) else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.slow
@pytest.mark.sampled(5)
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_a_part_costs_the_same_however_many_there_are(body: Callable[..., None]) -> None:
    @pypto.jit
    def kernel(x: _TENSOR, out: _TENSOR, parts: int) -> None:
        pypto.set_vec_tile_shapes(1, 8)
        held = pypto.Tensor([parts, 8], pypto.DT_FP32)
        for row in pypto.loop(parts):
            body(x, out, held, row)

    def lines_a_part(parts: int) -> float:
        x = np.ones((parts, 8), np.float32)
        return lines_run(lambda: kernel.certainty(x, np.zeros_like(x), parts)) / parts

    lines_a_part(1)  # what is found once is kept
    assert lines_a_part(_MANY) < 1.05 * lines_a_part(_FEW)


def test_boxes_are_found_in_their_order_and_covered_ones_forgotten() -> None:
    """Against a search through all of them, with random boxes of many sizes, and undone again."""
    rng = np.random.default_rng(7)
    shape = (40, 70)
    held: BoxMap[int] = BoxMap()
    plain: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {}

    def drawn() -> tuple[tuple[int, ...], tuple[int, ...]]:
        offset = tuple(int(rng.integers(0, n)) for n in shape)
        most = [
            n - o if rng.random() < 0.2 else min(n - o, 6)
            for n, o in zip(shape, offset, strict=True)
        ]
        return offset, tuple(int(rng.integers(1, m + 1)) for m in most)

    def cells(box: tuple[tuple[int, ...], tuple[int, ...]]) -> set[tuple[int, ...]]:
        return set(itertools.product(*(range(o, o + e) for o, e in zip(*box, strict=True))))

    undo = []
    for number in range(150):
        box = drawn()
        undo.append((dict(plain), held.put(*box, number)))
        plain = {k: b for k, b in plain.items() if not cells(b) <= cells(box)} | {number: box}
        assert list(held) == list(plain)
        asked = drawn()
        wanted = [k for k, b in plain.items() if cells(b) & cells(asked)]
        found = held.touching(*asked)
        assert [k for k in found if k in wanted] == wanted
        assert set(found) <= set(plain)
    for before, back in reversed(undo):
        back()
        assert list(held) == list(before)
    assert len(held) == 0
