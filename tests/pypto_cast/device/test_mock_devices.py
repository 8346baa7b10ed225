"""Mock devices: one is drawn and checked, and the committed table has every one of them.

`pytest -m exhaustive` and `python -m benchmarks.mock_devices` check all.
"""

from __future__ import annotations

import re
import secrets

import numpy as np
import pytest
from support.devices.mock_devices import OUTCOMES, Mock, mocks, outcome_of
from support.environment.sources import ROOT

from benchmarks import mock_devices

TABLE = ROOT / "benchmarks" / "mock_devices.md"


def _check(mock: Mock) -> None:
    outcome, _ = outcome_of(mock)
    assert outcome == mock.outcome, mock.name


@pytest.mark.slow
def test_one_of_them_is_followed_or_named() -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    _check(mocks()[np.random.default_rng(seed).integers(len(mocks()))])


@pytest.mark.exhaustive
@pytest.mark.parametrize("mock", mocks(), ids=lambda mock: mock.name)
def test_each_is_followed_or_named(mock: Mock) -> None:
    _check(mock)


def test_the_table_has_every_device_and_none_wrong_or_silent() -> None:
    rows = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|", TABLE.read_text(), re.MULTILINE))
    rows.pop("device")
    assert rows == {mock.name: mock.outcome for mock in mocks()}
    assert len(rows) >= 60
    assert not {"wrong", "silent"} & set(rows.values())


def test_the_report_counts_every_outcome() -> None:
    rows = [{"device": x, "outcome": x} for x in OUTCOMES]
    assert "5 devices, 1 as assumed, 1 followed, 1 named, 1 wrong, 1 silent" in mock_devices.report(
        rows
    )
