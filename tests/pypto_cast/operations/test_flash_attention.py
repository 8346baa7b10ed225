"""Attention over tiles: what devices give that add in any order lies inside the interval."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import ml_dtypes
import numpy as np
import pytest
from support.environment.sources import ROOT

EXAMPLE = ROOT / "examples" / "flash_attention.py"
BF16 = ml_dtypes.bfloat16


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("flash_attention", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def stepwise(
    query: np.ndarray, keys: np.ndarray, values: np.ndarray, order: np.random.Generator, tile: int
) -> np.ndarray:
    """The steps of the kernel; every sum is added in an order drawn at random, in FP32."""

    def added(terms: np.ndarray) -> np.ndarray:
        total = np.zeros(terms.shape[:-1], np.float32)
        for k in order.permutation(terms.shape[-1]):
            total = total + terms[..., k]
        return total

    q, k, v = (x.astype(np.float32) for x in (query, keys, values))
    rows = q.shape[0]
    most = np.full((rows, 1), -3.0e38, np.float32)
    total = np.zeros((rows, 1), np.float32)
    result = np.zeros(q.shape, np.float32)
    for first in range(0, len(k), tile):
        part = slice(first, first + tile)
        scores = added(q[:, None, :] * k[None, part, :]) * np.float32(q.shape[1] ** -0.5)
        reach = np.maximum(most, scores.max(axis=1, keepdims=True))
        weights = np.exp((scores - reach).astype(np.float64)).astype(np.float32)
        kept = np.exp((most - reach).astype(np.float64)).astype(np.float32)
        short = weights.astype(BF16).astype(np.float32)
        product = added(short[:, None, :] * v[part].T[None, :, :])
        total = total * kept + weights.sum(axis=1, keepdims=True)
        result = result * kept + product
        most = reach
    return (result / total).astype(BF16)


@pytest.mark.parametrize("seed", [1, 2])
def test_any_order_of_the_products_lies_inside(example: ModuleType, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shapes = ((example.ROWS, example.WIDTH), *[(example.KEYS, example.WIDTH)] * 2)
    arrays = [rng.standard_normal(shape).astype(np.float32).astype(BF16) for shape in shapes]
    out = np.zeros(shapes[0], BF16)
    found = example.attention.certainty(*arrays, out)["out"]
    assert 0.2 < found.certain.mean() < 1
    for _ in range(2):
        given = stepwise(*arrays, rng, example.TILE)
        assert found.contains(given).all()
