"""Reductions of the 950: the order of pto-isa's a5 headers, written out with numpy scalars."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pypto_cast as pypto
from simulator import arithmetic
from simulator.arithmetic import DOCUMENTED, EXACT, OPERATIONS, Enclosure, stated_for
from simulator.numbers.formats import FP32
from tiling.chips import ASCEND_950

LANES = 64
"""Elements of FP32 in a register."""


def drawn(*shape: int) -> np.ndarray:
    rng = np.random.default_rng(20261127)
    scale = 2.0 ** rng.integers(-12, 12, shape)
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def tree(terms: list[np.float32]) -> np.float32:
    """Neighbours are added, and the one that is left over waits."""
    while len(terms) > 1:
        pairs = [a + b for a, b in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + terms[len(pairs) * 2 :]
    return terms[0]


def row_sum(terms: list[np.float32]) -> np.float32:
    """TRowReduceProc: a register after another, onto zero."""
    held = np.float32(0)
    for start in range(0, len(terms), LANES):
        held = held + tree(terms[start : start + LANES])
    return held


def column_sum(terms: list[np.float32]) -> np.float32:
    """TColSum_Binary: pairs; an odd line goes onto the last pair."""
    if len(terms) == 1:
        return terms[0] + np.float32(0)
    while len(terms) > 1:
        pairs = [terms[2 * k] + terms[2 * k + 1] for k in range(len(terms) // 2)]
        if len(terms) % 2:
            pairs[-1] = terms[-1] + pairs[-1]
        terms = pairs
    return terms[0]


def row_product(terms: list[np.float32]) -> np.float32:
    """TRowProd: registers lane by lane, then vintlv with ones and a product, six times."""
    lanes = [np.float32(1)] * LANES
    for start in range(0, len(terms), LANES):
        for lane, term in enumerate(terms[start : start + LANES]):
            lanes[lane] = lanes[lane] * term
    for _ in range(6):
        woven = [x for lane in lanes for x in (lane, np.float32(1))]
        lanes = [a * b for a, b in zip(woven[:LANES], woven[LANES:], strict=True)]
    return lanes[0]


def column_product(terms: list[np.float32]) -> np.float32:
    """TColReduceInstr_PostUpdate: two lines are joined before they go onto the first."""
    held, rest = terms[0], terms[1:]
    for k in range(len(rest) // 2):
        held = held * (rest[2 * k] * rest[2 * k + 1])
    return held * rest[-1] if len(rest) % 2 else held


CASES = [
    ("sum", -1, row_sum),
    ("sum", 0, column_sum),
    ("prod", -1, row_product),
    ("prod", 0, column_product),
]


@pytest.mark.parametrize("elems", [1, 2, 3, 5, 11, 63, 64, 65, 100, 128, 191, 320, 333])
@pytest.mark.parametrize(("name", "axis", "rule"), CASES, ids=["row", "column", "rows", "columns"])
@pytest.mark.parametrize("engine", ["numpy", "auto"])
def test_the_order_is_that_of_the_headers(
    engine: Any, name: str, axis: int, rule: Any, elems: int
) -> None:
    values = drawn(elems, 9) if axis == 0 else drawn(9, elems)
    if name == "prod":
        values = (1 + np.abs(values) % 1).astype(np.float32)
    lines = values.T if axis == 0 else values
    expected = np.array([rule(list(line)) for line in lines], np.float32)
    found = arithmetic.reduce(
        *(OPERATIONS[name], Enclosure(values=values), FP32),
        axis=axis,
        trust=EXACT,
        engine=engine,
        family=ASCEND_950,
    )
    np.testing.assert_array_equal(found.values.reshape(-1).view("u4"), expected.view("u4"))


def test_a_sum_along_the_last_axis_begins_at_zero() -> None:
    values = np.full((2, 96), -0.0, np.float32)
    operands = OPERATIONS["sum"], Enclosure(values=values), FP32
    of_950 = arithmetic.reduce(*operands, axis=-1, trust=EXACT, family=ASCEND_950).values
    assert not np.signbit(of_950).any()
    assert np.signbit(arithmetic.reduce(*operands, axis=-1, trust=EXACT).values).all()


@pytest.mark.parametrize(
    ("shape", "tile", "certain"),
    [((8, 64), (8, 64), 8), ((8, 40), (8, 40), 8), ((8, 128), (8, 128), 0), ((8, 64), (8, 32), 0)],
)
def test_a_sum_of_one_register_is_certain_by_documents(
    shape: tuple[int, int], tile: tuple[int, int], certain: int
) -> None:
    """The tree inside a register is documented; the order of registers and of tiles is not."""

    @pypto.frontend.jit
    def kernel(
        x: pypto.Tensor[[pypto.STATIC, pypto.STATIC], pypto.DT_FP32],
        out: pypto.Tensor[[pypto.STATIC, 1], pypto.DT_FP32],
    ):
        pypto.set_vec_tile_shapes(*tile)
        out[:] = pypto.sum(x, -1, keepdim=True)

    given = drawn(*shape), np.zeros((shape[0], 1), np.float32)
    with pypto.options(chip="Ascend950PR"):
        found = kernel.certainty(*given)["out"]
    assert (int(found.by_documents.sum()), int(found.certain.sum())) == (certain, 8)
    assert not kernel.certainty(*given)["out"].by_documents.any()


@pytest.mark.parametrize("name", ["sum", "prod"])
@pytest.mark.parametrize("tile", [64, 96, 400])
def test_intervals_are_those_of_numpy(name: str, tile: int) -> None:
    """Rows of one tile and of several, whose terms are open; kernels run on either engine."""

    @pypto.frontend.jit
    def kernel(
        x: pypto.Tensor[[pypto.STATIC, pypto.STATIC], pypto.DT_FP32],
        out: pypto.Tensor[[pypto.STATIC, 1], pypto.DT_FP32],
    ):
        pypto.set_vec_tile_shapes(8, tile)
        y = pypto.exp(x * 0.01)
        out[:] = pypto.sum(y, -1, True) if name == "sum" else pypto.prod(y, -1, True)

    x = drawn(8, 320).clip(-4, 4)
    found = []
    for engine in ("numpy", "auto"):
        out = np.zeros((8, 1), np.float32)
        with pypto.options(chip="Ascend950PR", engine=engine):
            kernel(x, out)
            ends = kernel.certainty(x, out.copy())["out"]
        found.append(np.concatenate([out, ends.low, ends.high]).view("u4"))
    np.testing.assert_array_equal(*found)


def test_terms_of_negative_zero_alone_are_open_by_documents() -> None:
    values = Enclosure(values=np.full((1, 8), -0.0, np.float32))
    trust = stated_for(DOCUMENTED, ASCEND_950, "sum")
    found = arithmetic.reduce(
        *(OPERATIONS["sum"], values, FP32), axis=-1, trust=trust, family=ASCEND_950
    )
    assert np.signbit(found.low).all()
    assert not np.signbit(found.high).any()


def test_planned_and_whole_sums_agree() -> None:
    """The instruction level takes the chip's order too."""

    @pypto.frontend.jit
    def kernel(
        x: pypto.Tensor[[pypto.STATIC, pypto.STATIC], pypto.DT_FP32],
        rows: pypto.Tensor[[pypto.STATIC, 1], pypto.DT_FP32],
        columns: pypto.Tensor[[1, pypto.STATIC], pypto.DT_FP32],
    ):
        pypto.set_vec_tile_shapes(16, 128)
        rows[:] = pypto.sum(x, -1, keepdim=True)
        columns[:] = pypto.sum(x, 0, keepdim=True)

    x = drawn(48, 320)
    found = []
    for fidelity in ("fast", "instructions"):
        outputs = np.zeros((48, 1), np.float32), np.zeros((1, 320), np.float32)
        with pypto.options(chip="Ascend950PR", fidelity=fidelity):
            kernel(x, *outputs)
        found.append(np.concatenate([each.reshape(-1) for each in outputs]).view("u4"))
    np.testing.assert_array_equal(*found)
