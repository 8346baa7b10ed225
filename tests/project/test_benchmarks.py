"""The benchmark measures what it says: every pair, our own bits, and peers that give our values."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import pypto_cast as pypto
from ascend_kernels.matrix import MATRIX, CastRule
from benchmarks import cast as benchmark
from benchmarks import peers
from simulator.numbers.rounding import RoundMode

CASES = [(rule, mode) for rule in MATRIX.values() for mode in rule.modes or (None,)]


@pytest.mark.parametrize(("rule", "mode"), CASES, ids=lambda case: str(case).replace(" -> ", "-"))
def test_the_honest_expression_gives_our_values(rule: CastRule, mode: RoundMode | None) -> None:
    values = benchmark.sample(rule.src, 4096)
    expression = peers.honest(values, rule.src, rule.dst, mode or RoundMode.RINT)
    if expression is None:
        assert mode in (RoundMode.ROUND, RoundMode.ODD)
        return
    dtype = next(d for d in pypto.DataType if d.format is rule.dst)
    with pypto.options(vec_tile_shapes=[4096]), np.errstate(all="ignore"):
        ours = pypto.cast(pypto.from_numpy(values), dtype, pypto.CastMode[f"CAST_{mode or 'NONE'}"])
        np.testing.assert_array_equal(np.asarray(expression()), ours.numpy())


def test_a_row_per_pair_and_mode(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = list(benchmark.rows([], (8, 512), (8, 512), 1, 1))
    assert [(row.pair, row.mode) for row in table] == [(str(r), str(m or "-")) for r, m in CASES]
    assert all(row.melems_per_s > 0 for row in table)
    assert benchmark.markdown(table).count("\n") == len(CASES) + 1


def test_the_command_prints_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [
        "--pair",
        "fp16-int8",
        "--shape",
        "8,512",
        "--tile",
        "8,512",
        "--rounds",
        "1",
        "--json",
    ]
    monkeypatch.setattr("sys.argv", ["benchmarks.cast", *given, "--json"])
    benchmark.main()
    rows = json.loads(capsys.readouterr().out)
    assert [row["mode"] for row in rows] == ["RINT", "ROUND", "FLOOR", "CEIL", "TRUNC"]
