"""The ONNX rows of the benchmark compare the same conversions, all of them."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from benchmarks import frontends
from pypto_cast.dialects.onnx.types import FORMATS, TensorType
from simulator.numbers.formats import FloatFormat

pytest.importorskip("onnx", reason="onnx is not installed")

ELEMS = 256


@pytest.fixture(scope="module")
def rows() -> list[frontends.Row]:
    return list(frontends.onnx(ELEMS))


def test_every_pair_of_types_of_8_bits_or_more_has_a_row(rows: list[frontends.Row]) -> None:
    names = {row.name for row in rows}
    assert len(names) == len(rows)
    for src in FORMATS:
        for dst in FORMATS:
            if src is not dst and min(FORMATS[src].bits, FORMATS[dst].bits) >= 8:
                assert f"onnx {src.name}-{dst.name}".lower() in names


def test_both_candidates_give_the_same_type_and_mostly_the_same_codes(
    rows: list[frontends.Row],
) -> None:
    """Not all: the peer leaves overflow undefined and rounds some pairs twice."""
    for row in rows:
        with np.errstate(all="ignore"):
            theirs = row.peer()[0]
        ours = row.ours()
        assert isinstance(ours, np.ndarray)
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        src, dst = (TensorType[part.upper()] for part in row.name.split()[1].split("-"))
        if isinstance(FORMATS[src], FloatFormat) or FORMATS[dst].bits < 8:
            continue
        if not isinstance(FORMATS[dst], FloatFormat):
            np.testing.assert_array_equal(ours, theirs)


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--dialect", "onnx", "--row", "float-int8", "--elems", "64", "--rounds", "1"]
    monkeypatch.setattr("sys.argv", ["benchmarks.frontends", *given, "--json"])
    frontends.main()
    (timing,) = json.loads(capsys.readouterr().out)
    assert timing["name"] == "onnx float-int8"
    assert timing["ours_ms"] >= 0
    monkeypatch.setattr("sys.argv", ["benchmarks.frontends", *given])
    frontends.main()
    assert "1 rows" in capsys.readouterr().out


def test_a_peer_without_the_pair_has_no_row() -> None:
    values = np.zeros(4, FORMATS[TensorType.UINT4].dtype)
    run: Callable[..., object] = frontends.evaluator(TensorType.UINT4, TensorType.INT4)
    assert not frontends.converts(run, values)
