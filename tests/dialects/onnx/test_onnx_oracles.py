"""ONNX Cast against others: exact fractions, onnx's ReferenceEvaluator, onnxruntime.

The runtimes are asked only where they convert directly and the operator's text settles the result:
both go from double and from wide integers to narrow floats by way of float32, so those pairs meet
them with values that float32 holds; float to integer only in range. NaN is compared as a class.
"""

from __future__ import annotations

import bisect
import itertools
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from support.numbers.source_codes import as_float64

from pypto_cast.dialects import onnx as dialect
from pypto_cast.dialects.onnx import TensorType
from pypto_cast.dialects.onnx.types import FORMATS
from simulator.numbers.formats import FloatFormat, IntFormat
from simulator.numbers.rounding import boundary_codes

FLOATS = [t for t, fmt in FORMATS.items() if isinstance(fmt, FloatFormat)]
SCALE = TensorType.FLOAT8E8M0
NARROW = [t for t in FLOATS if FORMATS[t].bits <= 16 and t is not SCALE]
WIDE = ["DOUBLE", "FLOAT", "INT32", "INT64", "UINT32", "UINT64"]
FLOAT8 = [
    TensorType.FLOAT8E4M3FN,
    TensorType.FLOAT8E4M3FNUZ,
    TensorType.FLOAT8E5M2,
    TensorType.FLOAT8E5M2FNUZ,
]
NO_NAN = (TensorType.FLOAT4E2M1, TensorType.FLOAT6E2M3, TensorType.FLOAT6E3M2)


def type_id(value: object) -> str:
    if isinstance(value, bool):
        return "saturate" if value else "no-saturate"
    return value.name.lower() if isinstance(value, TensorType) else str(value).lower()


def as_codes(values: np.ndarray) -> np.ndarray:
    return values.view(f"u{values.dtype.itemsize}")


@lru_cache
def sample(src: TensorType, elems: int) -> np.ndarray:
    """Every code up to 16 bits; of wider ones some around every cut."""
    codes = boundary_codes(FORMATS[src])
    if FORMATS[src].bits > 16:
        rng = np.random.default_rng([20, int(src)])
        codes = rng.choice(codes, min(elems, codes.size), replace=False)
    codes.flags.writeable = False
    return codes.view(FORMATS[src].dtype)


# --- Fractions ---------------------------------------------------------------------------------


@lru_cache
def numbers(dst: TensorType) -> list[Fraction]:
    """The non-negative numbers of a narrow float in the order of their codes, and one beyond."""
    half = 1 << (FORMATS[dst].bits - 1)
    values = np.arange(half, dtype=FORMATS[dst].code_dtype).view(FORMATS[dst].dtype)
    finite = itertools.takewhile(np.isfinite, as_float64(values).tolist())
    found = [Fraction(value) for value in finite]
    return [*found, 2 * found[-1] - found[-2]]


def nearest_even(magnitude: Fraction, dst: TensorType) -> int:
    """Index into `numbers`; the last one says out of range."""
    grid = numbers(dst)
    above = bisect.bisect_left(grid, magnitude)
    if above == len(grid) or magnitude == grid[above]:
        return min(above, len(grid) - 1)
    below = above - 1
    down, up = magnitude - grid[below], grid[above] - magnitude
    if down == up:
        return below + below % 2
    return below if down < up else above


@pytest.mark.parametrize("dst", NARROW, ids=type_id)
@pytest.mark.parametrize("src", WIDE, ids=type_id)
@pytest.mark.sampled(9)
def test_one_rounding_by_fractions(src: str, dst: TensorType) -> None:
    x = np.concatenate(
        [sample(TensorType[src], 1500), np.arange(20, dtype=FORMATS[TensorType[src]].dtype)]
    )
    if src in ("DOUBLE", "FLOAT"):
        grid = numbers(dst)[:: max(len(numbers(dst)) // 300, 1)]
        ties = [float((a + b) / 2) for a, b in itertools.pairwise(grid)]
        ties += [float(numbers(dst)[-1] + numbers(dst)[-2]) / 2]
        near = np.array(ties).astype(x.dtype)
        steps = [np.nextafter(near, x.dtype.type(toward)) for toward in (-np.inf, np.inf)]
        x = np.concatenate([x, near, *steps, -near])
        x = x[np.isfinite(x)]
    index = [nearest_even(abs(Fraction(value)), dst) for value in x.tolist()]
    negative = np.signbit(as_float64(x)) if src in ("DOUBLE", "FLOAT") else x < 0
    last = len(numbers(dst)) - 1
    in_range = np.array(index) < last
    got = dialect.cast(x, dst, saturate=False)
    signs = np.where(negative, 1 << (FORMATS[dst].bits - 1), 0)
    if dst.name.endswith("FNUZ"):
        signs = np.where(np.array(index) == 0, 0, signs)
    wanted = np.array(index) | signs
    np.testing.assert_array_equal(as_codes(got)[in_range], wanted[in_range])
    assert in_range.any()
    overflowed = as_float64(got)[~in_range]
    if dst in NO_NAN:
        largest = float(numbers(dst)[-2])
        np.testing.assert_array_equal(np.abs(overflowed), largest)
    else:
        assert not np.isfinite(overflowed).any()
    saturated = as_float64(dialect.cast(x, dst))[~in_range]
    if dst in FLOAT8:
        np.testing.assert_array_equal(np.abs(saturated), float(numbers(dst)[-2]))
        np.testing.assert_array_equal(np.signbit(saturated), negative[~in_range])


# --- onnx's ReferenceEvaluator ------------------------------------------------------------------


def evaluate(x: np.ndarray, src: TensorType, dst: TensorType, saturate: bool) -> np.ndarray:
    pytest.importorskip("onnx", reason="onnx is not installed")
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=int(dst), saturate=int(saturate))],
        "cast",
        [helper.make_tensor_value_info("x", int(src), [None])],
        [helper.make_tensor_value_info("y", int(dst), [None])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)])
    with np.errstate(all="ignore"):
        (y,) = ReferenceEvaluator(model).run(None, {"x": x})
    found: np.ndarray = y
    return found


def where_settled(x: np.ndarray, src: TensorType, dst: TensorType) -> np.ndarray:
    """Marks the elements that the text settles and a way through float32 does not spoil."""
    source, target = FORMATS[src], FORMATS[dst]
    settled = np.ones(x.shape, np.bool_)
    if isinstance(source, FloatFormat) and isinstance(target, IntFormat) and target.bits > 1:
        wide = as_float64(x)
        return (
            (wide >= float(target.min))
            & (wide <= float(target.max))
            & (np.abs(wide) < 2.0 ** (target.bits - target.signed))
        )
    narrow = dst in NARROW and dst is not TensorType.FLOAT16
    if narrow and source.bits >= 32 and isinstance(source, IntFormat):
        settled &= (x >= (0 if not source.signed else -(2**24))) & (x <= 2**24)
    if narrow and src is TensorType.DOUBLE:
        with np.errstate(all="ignore"):
            settled &= (x.astype(np.float32) == x) | ~np.isfinite(x)
    if dst in NO_NAN and isinstance(source, FloatFormat):
        settled &= ~np.isnan(as_float64(x))
    if dst is SCALE:
        wide = as_float64(x)
        settled &= (wide >= 2.0**-126) & (wide < 2.0**127)
        with np.errstate(over="ignore", invalid="ignore"):
            settled &= wide.astype(np.float32) == wide
        if isinstance(source, IntFormat):
            settled &= x <= (2**24 if source.bits > 24 else source.max)
    return settled


def assert_same(got: np.ndarray, wanted: np.ndarray, dst: TensorType) -> None:
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    if isinstance(FORMATS[dst], FloatFormat):
        nan = np.isnan(as_float64(wanted))
        np.testing.assert_array_equal(np.isnan(as_float64(got)), nan)
        got, wanted = got[~nan], wanted[~nan]
    np.testing.assert_array_equal(as_codes(got), as_codes(wanted))


PAIRS = [
    (src, dst)
    for src in FORMATS
    for dst in FORMATS
    # Between some types below 8 bits, and from E8M0 to them, the evaluator has no conversion.
    if src is not dst and not (min(FORMATS[src].bits, FORMATS[dst].bits) < 8 and
                               max(FORMATS[src].bits, FORMATS[dst].bits) <= 8
                               and TensorType.BOOL not in (src, dst))
]  # fmt: skip


# To FLOAT8E8M0 the evaluator does not follow `saturate`; elsewhere it plays no part.
SATURATING = [
    (src, dst, saturate)
    for src, dst in PAIRS
    for saturate in ((True, False) if dst in FLOAT8 and src is not SCALE else (True,))
]


@pytest.mark.parametrize(("src", "dst", "saturate"), SATURATING, ids=type_id)
@pytest.mark.sampled(6)
def test_the_reference_evaluator(src: TensorType, dst: TensorType, saturate: bool) -> None:
    x = sample(src, 20_000)
    x = x[where_settled(x, src, dst)]
    assert x.size
    wanted = evaluate(x, src, dst, saturate)
    assert_same(dialect.cast(x, dst, saturate=saturate), wanted, dst)


# --- onnxruntime --------------------------------------------------------------------------------


def run_onnxruntime(x: np.ndarray, src: TensorType, dst: TensorType, **attributes: Any) -> Any:
    """Codes in, codes out: numpy has no dtypes that onnxruntime takes for most of the types."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    pytest.importorskip("onnx", reason="onnx is not installed")
    from onnx import helper

    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=int(dst), **attributes)],
        "cast",
        [helper.make_tensor_value_info("x", int(src), [None])],
        [helper.make_tensor_value_info("y", int(dst), [None])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    codes = np.ascontiguousarray(as_codes(x))
    out = np.zeros(x.size, FORMATS[dst].code_dtype)
    binding = session.io_binding()
    shape = [x.size]
    binding.bind_input("x", "cpu", 0, int(src), shape, codes.ctypes.data)
    binding.bind_output("y", "cpu", 0, int(dst), shape, out.ctypes.data)
    session.run_with_iobinding(binding)
    return out.view(FORMATS[dst].dtype)


@pytest.mark.parametrize("saturate", [1, 0], ids=["saturate", "no-saturate"])
@pytest.mark.parametrize("dst", FLOAT8, ids=type_id)
@pytest.mark.parametrize("src", ["FLOAT", "FLOAT16", "BFLOAT16"], ids=type_id)
def test_onnxruntime_to_float8(src: str, dst: TensorType, saturate: int) -> None:
    source = TensorType[src]
    x = sample(source, 50_000)
    if not saturate:
        # onnxruntime 1.31 saturates E4M3FN from 480 to 496, and makes NaN of E5M2's infinities
        # from 61440 to 65536, where it should not.
        magnitude = np.abs(as_float64(x))
        lowest, highest = {
            TensorType.FLOAT8E4M3FN: (464.0, 496.0),
            TensorType.FLOAT8E5M2: (61440.0, 65536.0),
        }.get(dst, (0.0, 0.0))
        x = x[~((magnitude >= lowest) & (magnitude < highest))]
    wanted = run_onnxruntime(x, source, dst, saturate=saturate)
    assert_same(dialect.cast(x, dst, saturate=bool(saturate)), wanted, dst)


@pytest.mark.parametrize("saturate", [1, 0], ids=["saturate", "no-saturate"])
@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
def test_onnxruntime_to_e8m0(mode: str, saturate: int) -> None:
    """Bit for bit, on zeros, negative numbers, infinities and NaNs too."""
    x = sample(TensorType.FLOAT, 50_000)
    wanted = run_onnxruntime(x, TensorType.FLOAT, SCALE, saturate=saturate, round_mode=mode)
    got = dialect.cast(x, SCALE, saturate=bool(saturate), round_mode=mode)
    np.testing.assert_array_equal(got.view(np.uint8), wanted.view(np.uint8))


RUNTIME_PAIRS = [
    (src, dst)
    for src, dst in PAIRS
    if min(FORMATS[src].bits, FORMATS[dst].bits + 7 * (dst is TensorType.BOOL)) >= 8
    and src not in (SCALE, TensorType.DOUBLE)
    and dst not in (SCALE, *FLOAT8)
]


@pytest.mark.parametrize(("src", "dst"), RUNTIME_PAIRS, ids=type_id)
def test_onnxruntime_numeric_pairs(src: TensorType, dst: TensorType) -> None:
    x = sample(src, 20_000)
    keep = where_settled(x, src, dst)
    if dst is TensorType.FLOAT16 and FORMATS[src].bits >= 32 and src is not TensorType.FLOAT:
        keep &= np.abs(as_float64(x)) <= 2**24
    if dst is TensorType.BOOL and src in FLOAT8:
        keep &= as_codes(x) != 0x80  # onnxruntime takes -0 for true
    x = x[keep]
    assert_same(dialect.cast(x, dst), run_onnxruntime(x, src, dst), dst)
