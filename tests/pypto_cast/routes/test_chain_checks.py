"""Chains of one's own beside one rounding: counts, examples, data, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.numbers.codes import as_values
from support.numbers.oracle import rounded_once

import pypto_cast as pypto
from ascend_kernels.matrix import CastModeError, UnsupportedCastError

RINT, ODD, NONE = pypto.CAST_RINT, pypto.CAST_ODD, pypto.CAST_NONE
TO_INT8 = [(pypto.DT_FP16, RINT), (pypto.DT_INT8, RINT)]


def test_a_chain_that_rounds_twice() -> None:
    found = pypto.check_chain(pypto.DT_FP32, TO_INT8, once=RINT)
    verdict = found.route.verdict
    assert not found.is_exact
    assert (verdict.codes, verdict.differing, verdict.largest_error) == (1 << 32, 1_044_480, 1)
    first = verdict.first[0]
    assert (first.code, first.found, first.wanted) == (0x3F000001, 0, 1)
    # FP16 has 11 significant bits: halves to 0.5, which is a tie to even, and the value is above it
    assert Fraction(float(np.uint32(first.code).view(np.float32))) > Fraction(1, 2)


CHAINS = [
    ("FP16", [("FP32", "NONE"), ("BF16", "RINT")], "RINT"),
    ("FP16", [("FP32", "NONE"), ("BF16", "ROUND")], "RINT"),
    ("BF16", [("FP32", "NONE"), ("FP16", "TRUNC")], "FLOOR"),
    ("INT16", [("FP32", "NONE"), ("BF16", "RINT")], "RINT"),
    ("FP16", [("INT16", "FLOOR"), ("FP16", "RINT"), ("INT8", "RINT")], "FLOOR"),
]


@pytest.mark.parametrize("apart", [pytest.param(1, marks=pytest.mark.exhaustive), 37])
@pytest.mark.parametrize(("src", "steps", "once"), CHAINS)
def test_counts_are_those_of_the_oracle(
    src: str, steps: list[tuple[str, str]], once: str, apart: int
) -> None:
    codes = np.arange(0, 1 << 16, apart).astype(np.uint16)
    differing = 0
    for code in codes.tolist():
        before, chained = src, code
        for name, mode in steps:
            chained = rounded_once(chained, before, name, "RINT" if mode == "NONE" else mode)
            before = name
        differing += chained != rounded_once(code, src, before, once)
    found = pypto.check_chain(
        pypto.DataType[f"DT_{src}"],
        [(pypto.DataType[f"DT_{name}"], pypto.CastMode[f"CAST_{mode}"]) for name, mode in steps],
        once=pypto.CastMode[f"CAST_{once}"],
        data=pypto.from_numpy(as_values(codes, src)),
    )
    verdict = found.route.verdict
    assert found.data is not None
    assert (found.data.differing, found.data.codes) == (differing, codes.size)
    if apart == 1:
        assert (verdict.differing, verdict.codes) == (differing, 1 << 16)
        assert found.data.first == verdict.first
        assert found.data.largest_error == verdict.largest_error


def test_data_counts_each_element_as_often_as_it_is_there() -> None:
    x = np.array([[0.50001, 2.5, 0.50001], [130.0, np.nan, 0.50001]], np.float32)
    kept = x.copy()
    found = pypto.check_chain(pypto.DT_FP32, TO_INT8, data=x)
    assert found.data is not None
    assert (found.data.codes, found.data.differing, found.data.largest_error) == (6, 3, 1)
    assert found.data.exact_range is None
    np.testing.assert_array_equal(x, kept)
    assert "0x3f0000a8 = 0.500010013580322265625 gives 0, not 1" in str(found)


def test_no_data_differ() -> None:
    found = pypto.check_chain(pypto.DT_FP32, TO_INT8, data=np.array([1.5, 2.5], np.float32))
    assert found.data is not None
    assert found.data.is_exact
    assert "data: exact on all 2 codes, shown" in str(found)


@pytest.mark.exhaustive
def test_a_chain_is_shown_on_every_code() -> None:
    steps = [(pypto.DT_FP16, ODD), (pypto.DT_INT8, RINT)]
    found = pypto.check_chain(pypto.DT_FP32, steps, exhaustive=True)
    assert found.is_exact
    assert found.route.verdict.basis == "every code was converted both ways"


def test_what_was_only_tried_says_so() -> None:
    steps = [(pypto.DT_FP32, RINT), (pypto.DT_FP32, RINT)]
    found = pypto.check_chain(pypto.DT_INT64, steps)
    assert not found.is_exact
    assert found.route.verdict.is_least
    assert "that were tried, out of more" in str(found)


def test_none_is_the_default_of_each_pair() -> None:
    by_name = pypto.check_chain(
        pypto.DT_FP16, [(pypto.DT_INT8, pypto.CAST_TRUNC)], pypto.CAST_TRUNC
    )
    assert pypto.check_chain(pypto.DT_FP16, [(pypto.DT_INT8, NONE)], NONE) == by_name
    assert by_name.is_exact


@pytest.mark.parametrize(
    ("src", "steps", "named", "error", "words"),
    [
        (pypto.DT_FP32, [], {}, pypto.RouteError, "one step at least"),
        (pypto.DT_FP32, [(pypto.DT_INT8, RINT)], {}, UnsupportedCastError, "FP32 -> INT8"),
        (pypto.DT_FP16, [(pypto.DT_INT8, ODD)], {}, CastModeError, "no mode CAST_ODD"),
        (
            pypto.DT_FP32,
            [(pypto.DT_FP16, RINT), (pypto.DT_FP32, NONE)],
            {},
            pypto.RouteError,
            "ends where it began",
        ),
        ("FP32", TO_INT8, {}, TypeError, "FP32"),
        (pypto.DT_FP32, "FP16", {}, TypeError, "pairs of a dtype and a mode"),
        (pypto.DT_FP32, [pypto.DT_FP16], {}, TypeError, "a dtype and a mode"),
        (pypto.DT_FP32, [(pypto.DT_FP16, "RINT")], {}, TypeError, "CastMode"),
        (pypto.DT_FP32, TO_INT8, {"once": 0}, TypeError, "once"),
        (pypto.DT_FP32, TO_INT8, {"data": np.ones(3, np.float16)}, TypeError, "DT_FP32"),
    ],
)
def test_what_is_refused(
    src: Any, steps: Any, named: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        pypto.check_chain(src, steps, **named)


def test_a_chain_is_of_the_chips_casts() -> None:
    steps = [(pypto.DT_FP32, pypto.CAST_NONE), (pypto.DT_FP8E4M3, pypto.CAST_RINT)]
    with pypto.options(chip="Ascend950PR"):
        assert pypto.check_chain(pypto.DT_FP16, steps).is_exact
    with pytest.raises(pypto.UnsupportedCastError, match="950 cast it"):
        pypto.check_chain(pypto.DT_FP16, steps)
