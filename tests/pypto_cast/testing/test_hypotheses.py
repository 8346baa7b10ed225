"""Planted causes are named first; what a device may give is never blamed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.numbers.codes import SEED
from support.numbers.oracle import expected

import pypto_cast as pypto
from pypto_cast.dtypes.data_types import numpy_dtype
from pypto_cast.recording.suppositions import supposing
from pypto_cast.testing import alternatives, judge
from pypto_cast.testing.hypotheses import Explanation, explanations

SHAPE = [16, 64]
Fp32 = pypto.Tensor[SHAPE, pypto.DT_FP32]
Fp16 = pypto.Tensor[SHAPE, pypto.DT_FP16]
Bf16 = pypto.Tensor[SHAPE, pypto.DT_BF16]
Halves = pypto.Tensor[[32, 32], pypto.DT_FP16]
Squares = pypto.Tensor[[32, 32], pypto.DT_FP32]
Int8 = pypto.Tensor[SHAPE, pypto.DT_INT8]


@pypto.frontend.jit
def quantized(x: Fp32, y: Int8) -> None:
    pypto.set_vec_tile_shapes(8, 64)
    halves = pypto.cast(x * 64.0, pypto.DT_FP16, mode=pypto.CAST_RINT)
    y[:] = pypto.cast(halves, pypto.DT_INT8, mode=pypto.CAST_RINT)


TEXT = Path(__file__).read_text().splitlines()
HALVES, BYTES = (
    next(n for n, line in enumerate(TEXT, 1) if line.startswith(f"    {begin}"))
    for begin in ("halves = pypto.cast", "y[:] = pypto.cast(halves")
)


MATMUL = "at test_hypotheses.py:" + str(
    next(n for n, line in enumerate(TEXT, 1) if line.startswith("    y[:] = pypto.matmul("))
)


def operands(seed: int = SEED) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float32)


def bounds_of(x: np.ndarray[Any, Any]) -> Callable[[], pypto.Certainty]:
    return lambda: quantized.certainty(x, np.zeros(SHAPE, np.int8))


def planted(
    x: np.ndarray[Any, Any], halves: str, to_bytes: str, satmode: str = "ON"
) -> np.ndarray[Any, Any]:
    """The kernel by the oracle's conversions of codes."""
    scaled = (x * np.float32(64)).view(np.uint32).reshape(-1).tolist()
    codes = [expected(code, "FP32", "FP16", halves) for code in scaled]
    found = [expected(code, "FP16", "INT8", to_bytes, satmode=satmode) for code in codes]
    return np.array(found, np.uint8).view(np.int8).reshape(SHAPE)


def test_the_lines_are_those_of_the_casts() -> None:
    with supposing(keeps_calls=True) as watch:
        bounds_of(operands())()
    assert [site.place[1] for site in watch.calls if site.operation == "cast"] == [HALVES, BYTES]


@pytest.mark.parametrize("mode", ["ROUND", "TRUNC", "FLOOR", "CEIL"])
def test_another_mode_is_named_first(mode: str) -> None:
    x = operands()
    result = planted(x, "RINT", mode)
    best, *_ = found = explanations(bounds_of(x), {"y": result})
    assert best.hypotheses == (f"CAST_{mode} at test_hypotheses.py:{BYTES}",)
    assert best.of >= 8 or mode == "ROUND"
    assert (best.explained, best.contradicted) == (best.of, 0)
    assert all(other.explained - other.contradicted < best.of for other in found[1:])


def test_wrapping_is_named() -> None:
    x = operands()
    result = planted(x, "RINT", "RINT", "OFF")
    best, *others = explanations(bounds_of(x), {"y": result})
    assert best.hypotheses == (f"no saturation at test_hypotheses.py:{BYTES}",)
    assert (best.explained, best.contradicted) == (best.of, 0)
    assert best.of == np.count_nonzero(result != planted(x, "RINT", "RINT"))
    assert all(other.explained - other.contradicted < best.of for other in others)


def test_a_result_that_can_be_is_explained_by_nothing() -> None:
    x = operands()
    assert explanations(bounds_of(x), {"y": planted(x, "RINT", "RINT")}) == ()


def test_noise_is_explained_by_little() -> None:
    x = operands()
    result = planted(x, "RINT", "RINT") ^ np.int8(32)
    found = explanations(bounds_of(x), {"y": result})
    assert all(each.explained <= each.of // 20 for each in found)


def test_members_of_intervals_are_never_blamed() -> None:
    @pypto.frontend.jit
    def scored(x: Fp32, y: Bf16) -> None:
        pypto.set_vec_tile_shapes(8, 64)
        y[:] = pypto.cast(pypto.exp(x) * 3.0, pypto.DT_BF16, mode=pypto.CAST_RINT)

    rng = np.random.default_rng(SEED)
    for seed in range(10):
        x = operands(seed)
        certainty = scored.certainty(x, np.zeros(SHAPE, numpy_dtype(pypto.DT_BF16)))
        (output,) = certainty.outputs
        drawn = np.where(rng.random(SHAPE) < 0.5, output.low, output.high)
        judged = judge(drawn, bounds=certainty, run=lambda c=certainty: c)
        assert judged.passes
        assert judged.explanations == ()


def test_a_golden_with_a_mistake_is_named_as_the_golden() -> None:
    x = operands()
    right, golden = planted(x, "RINT", "RINT"), planted(x, "RINT", "TRUNC")
    run = bounds_of(x)
    found = judge(right, golden, bounds=run(), run=run)
    assert found.passes
    assert found.explanations == ()
    wanted = f"CAST_TRUNC at test_hypotheses.py:{BYTES}"
    assert found.golden_explanations[0].hypotheses == (wanted,)
    assert f"golden: {wanted} explains" in str(found)
    told = f"the golden cannot come from a device; it cuts toward zero ({wanted})"
    assert told in str(found)


def test_casts_are_as_written_again_afterwards() -> None:
    x = operands()
    before = bounds_of(x)().values["y"].tobytes()
    explanations(bounds_of(x), {"y": planted(x, "RINT", "FLOOR")})
    assert bounds_of(x)().values["y"].tobytes() == before


def test_one_element_is_worked_through() -> None:
    x = operands()
    best, *_ = explanations(bounds_of(x), {"y": planted(x, "RINT", "FLOOR")})
    head, written, under, call, operand, *results = best.example
    assert head.startswith("y[")
    assert written.startswith("  as written it is ")
    assert under.startswith("  under this hypothesis it is ")
    assert f"cast at test_hypotheses.py:{BYTES}" in call
    assert operand.startswith("    input ")
    assert [line.split()[0] for line in results] == ["as", "hypothesis"]


@pypto.frontend.jit
def multiplied(x: Halves, w: Halves, y: Squares) -> None:
    pypto.set_vec_tile_shapes(32, 32)
    pypto.set_cube_tile_shapes([32, 32], [32, 32], [32, 32])
    y[:] = pypto.matmul(x, w, pypto.DT_FP32, b_trans=True)


@pytest.mark.parametrize(
    ("dtype", "words"), [(np.float16, "sums in FP16"), (numpy_dtype(pypto.DT_BF16), "sums in BF16")]
)
def test_products_summed_in_less_precision_are_named(dtype: Any, words: str) -> None:
    rng = np.random.default_rng(SEED)
    x, w = (rng.standard_normal([32, 32]).astype(np.float16) for _ in "xw")
    total = np.zeros([32, 32], dtype)
    for k in range(32):
        products = x[:, k : k + 1].astype(np.float32) * w[:, k].astype(np.float32)
        total = (total.astype(np.float32) + products.astype(dtype).astype(np.float32)).astype(dtype)
    found = explanations(
        lambda: multiplied.certainty(x, w, np.zeros([32, 32], np.float32)),
        {"y": total.astype(np.float32)},
    )
    assert found[0].hypotheses == (f"{words}, one after the other {MATMUL}",)
    assert (found[0].explained, found[0].contradicted) == (found[0].of, 0)
    assert found[0].of >= 8


@pytest.mark.parametrize(("most", "is_tried"), [(32**3, True), (32**3 - 1, False)])
def test_products_of_many_terms_are_not_summed_otherwise(
    most: int, is_tried: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alternatives, "_MOST_TERMS", most)
    rng = np.random.default_rng(SEED)
    x, w = (rng.standard_normal([32, 32]).astype(np.float16) for _ in "xw")
    total = np.zeros([32, 32], np.float32)
    for k in range(32):
        products = x[:, k : k + 1].astype(np.float32) * w[:, k].astype(np.float32)
        total = (total + products.astype(np.float16)).astype(np.float16).astype(np.float32)
    found = explanations(
        lambda: multiplied.certainty(x, w, np.zeros([32, 32], np.float32)), {"y": total}
    )
    texts = [text for each in found for text in each.hypotheses]
    assert any(text.startswith("sums in FP16, one") for text in texts) == is_tried, texts


def test_pairs_are_told_beforehand_and_tried() -> None:
    shape = [4, 16]

    @pypto.frontend.jit
    def small(x: pypto.Tensor[shape, pypto.DT_FP32], y: pypto.Tensor[shape, pypto.DT_INT8]) -> None:
        pypto.set_vec_tile_shapes(4, 16)
        y[:] = pypto.cast(
            pypto.cast(x, pypto.DT_FP16, mode=pypto.CAST_RINT),
            pypto.DT_INT8,
            mode=pypto.CAST_RINT,
        )

    x = operands()[:4, :16] * np.float32(40)
    codes = [expected(c, "FP32", "FP16", "RINT") for c in x.view(np.uint32).reshape(-1).tolist()]
    found = [expected(code, "FP16", "INT8", "FLOOR") for code in codes]
    result = np.array(found, np.uint8).view(np.int8).reshape(shape)
    result = np.ascontiguousarray(result[:, ::-1])
    told: list[str] = []
    best, *_ = explanations(
        lambda: small.certainty(x, np.zeros(shape, np.int8)),
        {"y": result},
        pairs=True,
        told=told.append,
    )
    assert best.explained == best.of
    assert any("reversed" in text and "CAST_FLOOR" in text for text in best.hypotheses)
    assert ["runs of the kernel, about" in text for text in told] == [True, True]


@pypto.frontend.jit
def chained(a: Fp16, b: Fp16, y: Fp16) -> None:
    pypto.set_vec_tile_shapes(8, 32)
    t = a * b + a
    y[:] = t - b


def test_one_result_rounded_before_it_is_used_is_named() -> None:
    rng = np.random.default_rng(SEED)
    a, b = (rng.standard_normal(SHAPE).astype(np.float16) for _ in "ab")
    wide, other = a.astype(np.float32), b.astype(np.float32)
    rounded = (wide * other + wide).astype(np.float16).astype(np.float32)
    best, *others = explanations(
        lambda: chained.certainty(a, b, np.zeros(SHAPE, np.float16)),
        {"y": (rounded - other).astype(np.float16)},
    )
    assert best.of >= 8
    place = next(n for n, line in enumerate(TEXT, 1) if line.startswith("    t = a * b + a"))
    assert best.hypotheses == (f"the result of add rounded to FP16 at test_hypotheses.py:{place}",)
    assert (best.explained, best.contradicted) == (best.of, 0)
    assert all(other.explained < best.of for other in others)


def test_a_golden_that_rounds_once_is_named_though_the_chip_has_no_such_pair() -> None:
    x = operands()
    once = np.clip(np.rint(x * np.float32(64)), -128, 127).astype(np.int8)
    best, *_ = explanations(bounds_of(x), {"y": once})
    assert best.of >= 1
    assert f"the operand of cast kept in FP32 at test_hypotheses.py:{BYTES}" in best.hypotheses
    assert (best.explained, best.contradicted) == (best.of, 0)


@pytest.mark.slow
def test_two_causes_at_one_cast_are_named_as_a_pair() -> None:
    """As `static_cast<int8_t>` of C++ does: toward zero, and the low bits."""
    x = operands() * np.float32(3)
    found = explanations(bounds_of(x), {"y": planted(x, "RINT", "TRUNC", "OFF")}, pairs=True)
    trunc, wrap = (
        f"{word} at test_hypotheses.py:{BYTES}" for word in ("CAST_TRUNC", "no saturation")
    )
    assert found[0].hypotheses == (f"{trunc} with {wrap}",)
    assert (found[0].explained, found[0].contradicted) == (found[0].of, 0)
    modes = [text for each in found for text in each.hypotheses if text.count("CAST_") == 2]
    assert not [
        text for text in modes if text.count(f":{BYTES}") == 2 or text.count(f":{HALVES}") == 2
    ]


@pytest.mark.slow
def test_a_pair_with_the_intervals_of_one_hypothesis_is_not_named_beside_it() -> None:
    x = operands()
    found = explanations(bounds_of(x), {"y": planted(x, "RINT", "FLOOR")}, pairs=True)
    assert found[0].hypotheses == (f"CAST_FLOOR at test_hypotheses.py:{BYTES}",)
    for each in found:
        assert len({" with " in text for text in each.hypotheses}) == 1


@pytest.mark.slow
def test_two_tiles_that_hold_something_else_are_named_as_a_pair() -> None:
    x = operands()
    result = planted(x, "RINT", "RINT")
    result[:8], result[8:] = result[8:].copy(), 0
    found = explanations(bounds_of(x), {"y": result}, pairs=True)
    assert "tile 0 of y holds tile 1 with tile 1 of y unwritten, 0" in found[0].hypotheses
    assert (found[0].explained, found[0].contradicted) == (found[0].of, 0)


def test_the_first_of_many_equal_hypotheses_are_said() -> None:
    hypotheses = tuple(f"h{k}" for k in range(9))
    said = Explanation(hypotheses=hypotheses, explained=1, contradicted=0, of=1).cause
    assert said == "h0 or h1 or h2 or h3 or h4 or h5 or 3 others"
