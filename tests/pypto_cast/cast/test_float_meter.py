"""The meter of float pairs gives what the measure of everything gives, piece by piece."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support.numbers.codes import SEED

from pypto_cast.cast import cast_report
from pypto_cast.cast.cast_report import METER_ELEMS, CastReport, Reporter
from simulator.numbers.convert import INF_NAN, convert, values_of
from simulator.numbers.formats import BF16, FP16, FP32, FloatFormat
from simulator.numbers.rounding import RoundMode

PAIRS = [(FP32, FP16), (FP32, BF16), (FP16, FP32), (BF16, FP32)]
SUMS = ("ulp_sum", "relative_sum", "relative_max", "signal_sum", "noise_sum")


def scale_of(kind: str) -> float:
    return {"plain": 1.0, "small": 1e-6, "tiny": 1e-41, "large": 3e4, "huge": 1e30}[kind]


@pytest.mark.parametrize(("src", "dst"), PAIRS, ids=str)
@pytest.mark.parametrize("kind", ["plain", "small", "tiny", "large", "huge", "codes"])
@pytest.mark.parametrize("mode", [RoundMode.RINT, RoundMode.FLOOR, RoundMode.CEIL])
def test_the_meter_agrees_with_the_measure(
    src: FloatFormat,
    dst: FloatFormat,
    kind: str,
    mode: RoundMode,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(SEED)
    elems = METER_ELEMS + 777
    if kind == "codes":
        codes = rng.integers(0, 2**src.bits, elems).astype(src.code_dtype)
    else:
        with np.errstate(all="ignore"):
            values = (rng.standard_normal(elems) * scale_of(kind)).astype(src.dtype)
        values[::97] = 0
        values[::89] = -0.0
        codes = values.view(src.code_dtype)
    before = values_of(codes, src)
    after = values_of(convert(codes, src, dst, mode, INF_NAN), dst)
    found = Reporter(src, dst).report(before, after, (elems,), name="x")
    monkeypatch.setattr(cast_report.FloatMeter, "of", lambda *_: None)
    expected = Reporter(src, dst).report(before, after, (elems,), name="x")
    for name in SUMS:
        one, other = getattr(found, name), getattr(expected, name)
        assert one == other or abs(one - other) <= 1e-5 * abs(other), name
    blank = dict.fromkeys(SUMS, 0.0)
    assert dataclasses.replace(found, **blank) == dataclasses.replace(expected, **blank)


def test_the_greatest_error_of_numbers_far_below_a_subnormal_one_is_exact() -> None:
    """FP32 rounds all these differences to one ulp."""
    before = np.float32([1e-17, 3e-20, 1e-16, 0.0, 2e-18])
    after = np.full(5, 2.0**-24, np.float32)
    after[3] = 0
    found = Reporter(FP32, FP16).report(before, after.astype(np.float16), (5,), name="x")
    assert found.ulp_max == 1 - float(before[1]) * 2**24 != 1
    assert found.worst is not None
    assert found.worst.index == (1,)


def test_signal_to_noise() -> None:
    assert CastReport().snr_db is None
    assert CastReport(signal_sum=1000.0, noise_sum=1.0).snr_db == 30.0
