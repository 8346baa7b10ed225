"""Small models, and their tensors as a reader of its own finds them in an output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file
from support.numbers.codes import SEED

NORM = "layer.0.norm.weight"
WEIGHTS = ("layer.0.dense.weight", "layer.1.dense.weight")


def model() -> dict[str, np.ndarray]:
    """Two layers and a head, with the numbers that matter in a cast."""
    rng = np.random.default_rng(SEED)
    found: dict[str, np.ndarray] = {}
    for name in WEIGHTS:
        found[name] = rng.standard_normal((24, 40)).astype(np.float32)
    found[WEIGHTS[1]][0, :4] = [70000.0, 1e-7, 0.0, -0.0]
    found[WEIGHTS[1]][5] = 0
    found[NORM] = rng.standard_normal(40).astype(np.float32)
    found["lm_head.weight"] = rng.standard_normal((8, 24)).astype(np.float16)
    found["steps"] = np.array([1, 2**40])
    return found


def save_sharded(folder: Path, tensors: dict[str, np.ndarray] | None = None) -> Path:
    """A directory with an index, two files of tensors and other files."""
    folder.mkdir()
    tensors = model() if tensors is None else tensors
    names = list(tensors)
    weight_map = {}
    for number, part in enumerate((names[: len(names) // 2], names[len(names) // 2 :]), 1):
        file = f"model-{number:05}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, folder / file, {"format": "pt"})
        weight_map.update(dict.fromkeys(part, file))
    size = sum(array.nbytes for array in tensors.values())
    index = {"metadata": {"total_size": size, "who": "x"}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "config.json").write_text('{"model_type": "tiny"}')
    (folder / "sub").mkdir()
    (folder / "sub" / "note.txt").write_text("hello")
    return folder


def load_sharded(folder: Path) -> dict[str, np.ndarray]:
    """All tensors of a directory, by its index and by nothing of this project."""
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    found: dict[str, np.ndarray] = {}
    for file in set(index["weight_map"].values()):
        held = load_file(folder / file)
        assert set(held) == {n for n, where in index["weight_map"].items() if where == file}
        found.update(held)
    total = sum(array.nbytes for array in found.values())
    assert index["metadata"]["total_size"] == total
    return found


def equal_bits(found: Any, expected: np.ndarray) -> bool:
    """Equal dtype, shape and bytes."""
    return (
        found.dtype == expected.dtype
        and found.shape == expected.shape
        and found.tobytes() == expected.tobytes()
    )
