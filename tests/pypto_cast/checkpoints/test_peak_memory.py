"""The memory of a run on a checkpoint: at most its limit and 32 MiB above that of the start."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import pypto_cast as pypto
from pypto_cast.checkpoints import blocks, writing
from pypto_cast.checkpoints.casting import plan_checkpoint
from pypto_cast.checkpoints.channels.scales import quantizing_of
from pypto_cast.checkpoints.choice import Choice
from pypto_cast.checkpoints.kinds.opening import open_checkpoint
from pypto_cast.checkpoints.kinds.torch_files import read_bytes_of_torch
from pypto_cast.checkpoints.output_plan import plan_output

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
_MEMORY_BYTES = 1 << 20
_ALLOWED_BYTES = _MEMORY_BYTES + (32 << 20)
_BY_COLUMNS = {"axis": 1, "symmetric": False}
_CASES: dict[str, tuple[str, tuple[int, ...], int, dict[str, Any]]] = {
    "a channel a column": ("npz", (2, 1 << 19), 3, _BY_COLUMNS),
    "one channel": ("safetensors", (1, 1 << 20), 1, {"axis": 0}),
    "many channels": ("safetensors", (1 << 20, 1), 1, {"axis": 0, "scale": "percentile:99"}),
}


def saved(folder: Path, kind: str, values: np.ndarray) -> Path:
    path = folder / f"weights.{kind}"
    if kind == "safetensors":
        safetensors.numpy.save_file({"w": values}, path)
    elif kind == "npz":
        np.savez_compressed(path, w=values)
    else:
        np.save(path, values)
    return path


def peak_bytes(source: Path, jobs: int, scaled: dict[str, Any] | None) -> int:
    output = source.with_name("out.npy" if source.suffix == ".npy" else "out.safetensors")
    scales = quantizing_of("int8", **scaled) if scaled else None
    choice = Choice() if scaled else Choice.of(pypto.DT_BF16)
    limits = blocks.Limits(memory_bytes=_MEMORY_BYTES, jobs=jobs, with_histogram=True)
    tracemalloc.start()
    try:
        work = plan_checkpoint(open_checkpoint(source), choice, quantizing=scales)
        with writing.new_checkpoint(plan_output(work, output, force=True)) as sink:
            for _ in blocks.carry_out(work, sink, limits):
                pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("kind", "shape", "jobs", "scaled"), _CASES.values(), ids=_CASES)
def test_codes_keep_to_the_memory(
    kind: str, shape: tuple[int, ...], jobs: int, scaled: dict[str, Any], tmp_path: Path
) -> None:
    rng = np.random.default_rng(3)
    source = saved(tmp_path, kind, rng.integers(-9, 9, shape, np.int8).astype(np.float32))
    assert peak_bytes(source, jobs, scaled) <= _ALLOWED_BYTES


def test_a_longer_tensor_takes_no_more_memory(tmp_path: Path) -> None:
    peaks = []
    for elems in (1 << 16, 1 << 17, 1 << 19):  # the first fills what is found once
        source = saved(tmp_path, "npy", np.ones(elems, np.float32))
        peaks.append(peak_bytes(source, 16, None))
    assert peaks[2] < peaks[1] + (1 << 18)


def test_elements_with_strides_are_read_a_part_at_a_time() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    whole = torch.arange(6000, dtype=torch.int16).reshape(20, 30, 10)
    for held in (whole, whole.permute(2, 0, 1), whole[::3, 1:, ::2], whole.to(torch.complex64).mT):
        wanted = held.contiguous().numpy().tobytes()
        found = np.empty(len(wanted), np.uint8)
        for begin in range(0, found.size, 1024):
            read_bytes_of_torch(held, begin, found[begin : begin + 1024])
        assert found.tobytes() == wanted
