"""Precision that documents state for the 950: ends of results, and one rounding of FMA."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np
import pytest
from support.numbers.codes import SEED
from support.numbers.oracle import rounded, split

import pypto_cast as pypto
from simulator.arithmetic import DEFAULT, DOCUMENTED, OPERATIONS, evaluate
from simulator.arithmetic.fused import fused
from simulator.arithmetic.interval import Enclosure, Interval
from simulator.arithmetic.trust import ASSUME_GRADUAL_UNDERFLOW, ASSUME_RNE, PRECISION, stated_for
from simulator.numbers.formats import FP32
from tiling.chips import A2_A3, ASCEND_950

CHIP: Final = "Ascend950PR"


def widths(name: str, family: str, *operands: np.ndarray, documents: bool = True) -> np.ndarray:
    """Codes between the ends of results under a trust."""
    trust = stated_for(DOCUMENTED if documents else DEFAULT, family, name)
    given = [Enclosure(values=each) for each in operands]
    found = evaluate(OPERATIONS[name], given, FP32, trust=trust)
    return (
        found.interval
        or Interval(
            low=found.values, high=found.values, may_be_nan=None, cause=np.zeros(1, np.uint16)
        )
    ).widths(FP32)


def test_additions_are_certain_by_documents_on_the_950_alone() -> None:
    rng = np.random.default_rng(SEED)
    x, y = rng.standard_normal((2, 512)).astype(np.float32)
    for name in ("add", "sub", "mul"):
        assert widths(name, ASCEND_950, x, y).max() == 0
        assert widths(name, A2_A3, x, y).max() == 2


def test_functions_are_within_one_ulp_on_the_950() -> None:
    x = np.linspace(0.5, 8, 256, dtype=np.float32)
    assert widths("div", ASCEND_950, x, x[::-1].copy()).max() == 2
    for name in ("sqrt", "exp", "log"):
        assert widths(name, ASCEND_950, x, documents=False).max() <= 2
    for name in ("exp", "log"):
        assert widths(name, A2_A3, x, documents=False).max() == 4


def test_subnormal_results_of_functions_may_be_flushed_on_the_950() -> None:
    tiny = np.array([2.0**-130], np.float32)
    one = np.array([2.0], np.float32)
    trust = stated_for(DEFAULT, ASCEND_950, "div")
    found = evaluate(
        OPERATIONS["div"], [Enclosure(values=tiny), Enclosure(values=one)], FP32, trust=trust
    )
    assert found.interval is not None
    assert found.interval.contains(np.zeros(1, np.float32), FP32).all()
    assert widths("mul", ASCEND_950, tiny, one).max() == 0


def test_a_family_without_documents_keeps_its_assumptions() -> None:
    assert stated_for(DEFAULT, A2_A3, "add") is DEFAULT
    assert A2_A3 not in PRECISION
    assert ASSUME_RNE in stated_for(DOCUMENTED, ASCEND_950, "add").assumed
    assert ASSUME_RNE not in stated_for(DOCUMENTED, ASCEND_950, "div").assumed
    assert ASSUME_GRADUAL_UNDERFLOW not in stated_for(DEFAULT, ASCEND_950, "div").assumed


def exactly(number: float) -> Fraction:
    return Fraction(float(number))


def test_one_rounding_of_a_product_and_a_sum() -> None:
    rng = np.random.default_rng(SEED)
    x = rng.standard_normal(4096).astype(np.float32)
    alpha = np.float32(1.1)
    # Sums near ties of FP32, that float64 rounds to the tie: a second rounding would go astray.
    product = np.float64(alpha) * x.astype(np.float64)
    y = (rng.integers(-(1 << 24), 1 << 24, x.size) * 2.0 ** rng.integers(-60, 8, x.size)).astype(
        np.float32
    )
    given = [Enclosure(values=each) for each in (y, x, np.asarray(alpha))]
    steps = Enclosure(values=(product.astype(np.float32) + y).astype(np.float32))
    codes = fused(steps, *given).values.view(np.uint32)
    for number, (a, b) in enumerate(zip(x, y, strict=True)):
        total = exactly(a) * exactly(alpha) + exactly(b)
        sign = (1 << 31) if total < 0 else 0
        wanted = sign | rounded(split(abs(total), "FP32"), total < 0, "RINT")
        assert int(codes[number]) == wanted, (a, b)


def test_a_tie_that_float64_alone_would_make() -> None:
    x, alpha = np.array([1 + 2.0**-23], np.float32), np.asarray(np.float32(2.0**-30))
    y = np.array([1 + 2.0**-23], np.float32)
    y_tie = np.array([2.0**24 + 2], np.float32)
    for term, factor in ((y, alpha), (y_tie, np.asarray(np.float32(1 + 2.0**-22)))):
        steps = Enclosure(values=(factor * x + term).astype(np.float32))
        got = fused(steps, *(Enclosure(values=each) for each in (term, x, factor))).values
        total = exactly(x[0]) * exactly(factor) + exactly(term[0])
        assert int(got.view(np.uint32)[0]) == rounded(split(total, "FP32"), False, "RINT")


def test_infinities_and_nan_of_one_rounding_are_those_of_the_steps() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 0, 3e38, -0.0], np.float32)
    y = np.array([-np.inf, 1, 1, -0.0, 3e38, -0.0], np.float32)
    two = np.asarray(np.float32(2))
    with np.errstate(all="ignore"):
        steps = Enclosure(values=x * two + y)
        got = fused(steps, *(Enclosure(values=each) for each in (y, x, two))).values
    np.testing.assert_array_equal(np.isnan(got), np.isnan(steps.values))
    np.testing.assert_array_equal(got[~np.isnan(got)], steps.values[~np.isnan(got)])
    np.testing.assert_array_equal(np.signbit(got[[3, 5]]), [False, True])


@pytest.mark.parametrize(("chip", "undecided"), [("Ascend910B3", True), (CHIP, False)])
def test_axpy_is_certain_on_the_950(chip: str, undecided: bool) -> None:
    @pypto.frontend.jit
    def added(
        x: pypto.Tensor[[8, 32], pypto.DT_FP32], out: pypto.Tensor[[8, 32], pypto.DT_FP32]
    ) -> None:
        pypto.set_vec_tile_shapes(8, 32)
        y = pypto.mul(x, 3.0)
        pypto.axpy_(y, x, 0.1)
        out[:] = y

    x = np.random.default_rng(SEED).standard_normal((8, 32)).astype(np.float32)
    with pypto.options(chip=chip):
        certainty = added.certainty(x, np.zeros((8, 32), np.float32))
    assert bool(certainty.undecided) is undecided
