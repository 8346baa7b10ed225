"""The benchmark measures what it says: every pair, our own bits, and peers that give our values."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import pypto_cast as pypto
from ascend_kernels.matrix import MATRIX, CastRule
from benchmarks import cast as benchmark
from benchmarks import imports, measuring, models_950, peers
from benchmarks.measuring import markdown, sample
from simulator.numbers.convert import values_of
from simulator.numbers.formats import BF16, FP16, FP32
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3

CASES = [(rule, mode) for rule in MATRIX[A2_A3].values() for mode in rule.modes or (None,)]


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "_SECONDS_IN_A_ROW", 0)


@pytest.mark.parametrize(("rule", "mode"), CASES, ids=lambda case: str(case).replace(" -> ", "-"))
def test_the_honest_expression_gives_our_values(rule: CastRule, mode: RoundMode | None) -> None:
    values = sample(rule.src, 4096)
    expression = peers.numpy_equivalent(values, rule.src, rule.dst, mode or RoundMode.RINT)
    if expression is None:
        assert mode in (RoundMode.ROUND, RoundMode.ODD)
        return
    dtype = next(d for d in pypto.DataType if d.format is rule.dst)
    with pypto.options(vec_tile_shapes=[4096]), np.errstate(all="ignore"):
        ours = pypto.cast(pypto.from_numpy(values), dtype, pypto.CastMode[f"CAST_{mode or 'NONE'}"])
        np.testing.assert_array_equal(np.asarray(expression()), ours.numpy())


def test_a_row_per_pair_and_mode(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings(), pypto.options(vec_tile_shapes=[8, 512]):
        warnings.simplefilter("error")
        table = list(benchmark.rows([], (8, 512), (8, 512), 1))
    assert [(row["pair"], row["mode"]) for row in table] == [
        (str(r), str(m or "-")) for r, m in CASES
    ]
    assert all(row["melems_per_s"] > 0 for row in table)
    assert markdown(table).count("\n") == len(CASES) + 1


def test_a_row_per_import() -> None:
    rows = list(imports.measured(0, ("python", imports.PEER, "import pypto_cast")))
    names = ["`python`", f"`{imports.PEER}`", "`import pypto_cast`"]
    assert [row["program"] for row in rows] == names
    assert rows[1]["ratio"] == 1.0
    assert markdown(rows).startswith("| program | ms | ratio |")


def test_special_values_are_what_they_are_called() -> None:
    for src in (FP16, BF16, FP32):
        found = {name: values_of(c, src) for name, c in benchmark.special_inputs(src, 999).items()}
        assert np.isnan(found["nan"]).all()
        assert np.isinf(found["infinite"]).all()
        assert 300 < (found["half_overflow"].view(src.code_dtype) == src.max_code).sum() < 700
        tiny = np.abs(found["subnormal"].astype(np.float64))
        assert (tiny > 0).all()
        assert (tiny < 2.0**src.emin).all()
    (row, *_), width = list(benchmark.special_rows(["fp16-int4"], 64, 1)), 6
    assert row["pair"] == "FP16 -> INT4"
    assert markdown([row]).splitlines()[0].count("|") == width + 1


def test_a_row_per_pair_of_onnx_types() -> None:
    rows = list(benchmark.onnx_rows(64, 1))
    assert [row["pair"].split(" -> ") for row in rows] == list(map(list, benchmark.ONNX_PAIRS))


def test_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "MEGABYTES", (1,))
    monkeypatch.setattr(benchmark, "COLD_ELEMS", 4096)
    monkeypatch.setattr(benchmark, "EMPTYING_BYTES", 4096)
    assert "numpy" in [row["engine"] for row in benchmark.small_casts(1)]
    rows = list(benchmark.large_results(1))
    assert [row["memory"] for row in rows] == ["used again", "fresh"] * len(benchmark.LARGE)
    assert [row["pair"] for row in benchmark.cold_casts(1)] == [
        f"{src} -> {dst}" for src, dst in benchmark.COLD
    ]


def test_small_floats_have_peers() -> None:
    pytest.importorskip("torch")
    found = {row["pair"]: row for row in benchmark.small_float_rows(4096, 1)}
    assert list(found) == [f"{src} -> {dst}" for src, dst in benchmark.SMALL_FLOATS]
    assert all(row[peer] for row in found.values() for peer in ("to_ml_dtypes", "to_torch"))


def test_what_runs_before_is_not_timed() -> None:
    now, order = [0.0], []

    def takes(seconds: float, name: str) -> None:
        now[0] += seconds
        order.append(name)

    best = measuring.best_seconds(
        {"us": lambda: takes(1.0, "us")},
        0,
        clock=lambda: now[0],
        before=lambda: takes(5.0, "before"),
    )
    assert (best, order) == ({"us": 1.0}, ["before", "us"] * 2)


def test_the_command_prints_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["--shape", "8,512", "--tile", "8,512", "--rounds", "1"]
    given = [*small, "--pair", "fp16-int8", "--table", "pairs"]
    monkeypatch.setattr("sys.argv", ["benchmarks.cast", *given, "--json"])
    benchmark.main()
    rows = json.loads(capsys.readouterr().out)["pairs"]
    assert [row["mode"] for row in rows] == ["RINT", "ROUND", "FLOOR", "CEIL", "TRUNC"]
    monkeypatch.setattr("sys.argv", ["benchmarks.cast", *given])
    benchmark.main()
    assert capsys.readouterr().out.startswith("## Pairs\n\n| pair | mode | Melem/s |")


def test_special_functions_lie_inside_their_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mpmath")
    from benchmarks import special_functions

    x = np.random.default_rng(2).normal(0, 2, 40).astype(np.float32)
    names = {**special_functions.FUNCTIONS, **special_functions.OF_TWO}
    assert {"sin", "cos", "atan2", "pow"} < names.keys()
    for name in names:
        operands = (x,) if name in special_functions.FUNCTIONS else (x, x[::-1])
        assert special_functions.rows(name, "FP32", operands, 1)
    monkeypatch.setattr(
        special_functions, "_carried_out", lambda name, given, random: np.full((1, 40), 3, "f4")
    )
    with pytest.raises(AssertionError, match="tanh"):
        special_functions.rows("tanh", "FP32", (x,), 1)


def test_references_of_the_models_of_the_950() -> None:
    """HiF8 in bytes comes back; views of one memory reach a kernel as copies, and are written."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    operators = models_950._operators(torch)
    codes = torch.arange(1, 112, dtype=torch.uint8).reshape(3, 37)
    to, hif8 = operators["npu_dtype_cast"], models_950.HIF8
    back = to(to(codes, torch.float32, input_dtype=hif8), hif8)
    assert torch.equal(back, codes)
    pages = torch.zeros(4, 16, dtype=torch.uint8)
    left, right = pages[:, :8], pages.view(torch.float32)[:, 2:]

    def kernel(first: object, second: object) -> None:
        assert first.data_ptr() != pages.data_ptr()  # type: ignore[attr-defined]
        first[0, 0], second[1, 1] = 7, 1.0  # type: ignore[index]

    models_950._apart(torch, kernel)(left, right)
    assert (int(pages[0, 0]), float(right[1, 1]), int((pages != 0).sum())) == (7, 1.0, 3)
