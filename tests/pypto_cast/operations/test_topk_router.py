"""The router of the examples: experts as float64 chooses them, and how many results are certain."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import ml_dtypes
import numpy as np
import pytest
from support.environment.sources import ROOT

from pypto_cast.kernel.certainty import Certainty

EXAMPLE = ROOT / "examples" / "topk_router.py"


@pytest.fixture(scope="module")
def router() -> ModuleType:
    spec = importlib.util.spec_from_file_location("topk_router", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def chosen(row: np.ndarray, bias: np.ndarray) -> tuple[list[int], np.ndarray]:
    """Experts of one token and their shares, in float64."""
    scores = 1 / (1 + np.exp(-row.astype(np.float64)))
    biased = scores + bias.astype(np.float64)
    groups = biased.reshape(8, 16).max(axis=1)
    best = sorted(range(8), key=lambda g: -groups[g])[:4]
    experts = sorted((e for e in range(128) if e // 16 in best), key=lambda e: -biased[e])[:8]
    return experts, scores[experts] / scores[experts].sum()


def routed(router: ModuleType, logits: np.ndarray, bias: np.ndarray) -> Certainty:
    outputs = np.zeros((64, 8), ml_dtypes.bfloat16), np.zeros((64, 8), np.int32)
    certainty: Certainty = router.route.certainty(logits, bias, *outputs)
    return certainty


def inputs(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((64, 128)).astype(ml_dtypes.bfloat16)
    return logits, (rng.standard_normal((1, 128)) / 16).astype(np.float32)


@pytest.mark.parametrize("seed", [1, 2])
def test_experts_are_certain_and_nearly_all_weights(router: ModuleType, seed: int) -> None:
    logits, bias = inputs(seed)
    found = routed(router, logits, bias)
    expected = [chosen(row, bias[0]) for row in logits]
    assert found["experts"].undecided == 0
    assert found["experts"].values.tolist() == [experts for experts, _ in expected]
    shares = np.array([share for _, share in expected]).astype(ml_dtypes.bfloat16)
    weights = found["weights"]
    assert weights.certain.mean() >= 0.99
    assert weights.contains(shares).all()
    assert (weights.values[weights.certain] == shares[weights.certain]).all()


def test_experts_that_are_equal_leave_each_other_open(router: ModuleType) -> None:
    logits, bias = inputs(3)
    experts, _ = chosen(logits[0], bias[0])
    first, second = experts[0], experts[0] ^ 1  # a neighbour, of the same group
    logits[0, second], bias[0, second] = logits[0, first], bias[0, first]
    found = routed(router, logits, bias)["experts"]
    assert (~found.certain[0]).tolist() == [True, True] + [False] * 6
    assert found.low[0, :2].tolist() == [min(first, second)] * 2
    assert found.high[0, :2].tolist() == [max(first, second)] * 2
