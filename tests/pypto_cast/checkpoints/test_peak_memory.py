"""The memory of a run on a checkpoint: at most its limit and 32 MiB above that of the start."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import pypto_cast as pypto
from pypto_cast.checkpoints import blocks, output_plan
from pypto_cast.checkpoints.casting import Choice, plan_checkpoint
from pypto_cast.checkpoints.opening import open_checkpoint
from pypto_cast.checkpoints.output_plan import plan_output
from pypto_cast.checkpoints.scales import quantizing_of

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
        with output_plan.new_checkpoint(plan_output(work, output, force=True)) as sink:
            for _ in blocks.execute_jobs(work, sink, limits):
                pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize(("kind", "shape", "jobs", "scaled"), _CASES.values(), ids=_CASES)
def test_codes_keep_to_the_memory(
    kind: str, shape: tuple[int, ...], jobs: int, scaled: dict[str, Any], tmp_path: Path
) -> None:
    rng = np.random.default_rng(3)
    source = saved(tmp_path, kind, rng.integers(-9, 9, shape, np.int8).astype(np.float32))
    assert peak_bytes(source, jobs, scaled) <= _ALLOWED_BYTES


@pytest.mark.slow
def test_a_longer_tensor_takes_no_more_memory(tmp_path: Path) -> None:
    peaks = []
    for elems in (1 << 16, 1 << 17, 1 << 19):  # the first fills what is found once
        source = saved(tmp_path, "npy", np.ones(elems, np.float32))
        peaks.append(peak_bytes(source, 16, None))
    assert peaks[2] < peaks[1] + (1 << 18)


_CHILD = """
import json, sys
from pathlib import Path
from pypto_cast.cli.main import main

def status(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(field)).split()[1])

def run(source, output, *words):
    assert main(["checkpoint", source, "--force", "-o", output, *words]) == 0

small, *runs = json.loads(sys.argv[1])
for words in runs:
    run(small, *words[1:])  # what is imported and found once
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    start = status("VmRSS")
    run(*words)
    print("peak", status("VmHWM") - start)
"""


def peaks_of_child(small: Path, runs: list[tuple[Any, ...]]) -> list[int]:
    """The resident memory that runs of the command take above that of their start at most.

    Args:
        small: of the same kind as the sources, read first.
        runs: of each the source, the output and further words.
    """
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("this system does not tell a process's peak of resident memory")
    words = [str(small), *([str(word) for word in run] for run in runs)]
    command = [sys.executable, "-W", "ignore", "-c", _CHILD, json.dumps(words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    found = [line.split() for line in done.stdout.splitlines()]
    peaks = [int(line[1]) for line in found if line[:1] == ["peak"]]
    assert len(peaks) == len(runs)
    return peaks


def test_pytorch_files_keep_to_the_memory(tmp_path: Path) -> None:
    """Mapped pages count, so each tensor is larger than what is allowed."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for name, rows in (("small", 8), ("large", 10 << 10)):
        ones = torch.ones(rows, 1 << 10)
        content = {"w": ones, "turned": ones.clone().T, "kept": torch.ones(rows, 512).double()}
        torch.save(content, tmp_path / f"{name}.pt")
    words = ("--to", "bf16", "--memory", "1MiB")
    runs = [(tmp_path / "large.pt", tmp_path / f"out{end}", *words) for end in (".pt", "")]
    runs[1] = (runs[1][0], tmp_path / "out.safetensors", *words, "--jobs", "4")
    assert max(peaks_of_child(tmp_path / "small.pt", runs)) <= _ALLOWED_BYTES
    found = torch.load(tmp_path / "out.pt", weights_only=True)
    assert all((held == 1).all() for held in found.values())


def written(path: Path, rows: int) -> Path:
    """A checkpoint of the kind that the name says, 4 KiB a row."""
    values = np.random.default_rng(4).integers(-9, 9, (rows, 1 << 10), np.int8).astype(np.float32)
    if path.suffix == ".pt":
        torch = pytest.importorskip("torch", reason="torch is not installed")
        held = torch.from_numpy(values)
        torch.save({"w": held.T if "turned" in path.name else held}, path)
    elif path.suffix == ".gguf":
        gguf = pytest.importorskip("gguf", reason="gguf is not installed (extra gguf)")
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_tensor("w", values)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    elif path.suffix == ".npz":
        np.savez(path, w=values)
    else:
        saved(path.parent, path.suffix[1:], values).rename(path)
    return path


@pytest.mark.exhaustive  # half a minute a kind
@pytest.mark.parametrize("size_bytes", [64 << 20, 256 << 20])
@pytest.mark.parametrize("name", ["x.safetensors", "x.npz", "x.npy", "x.pt", "turned.pt", "x.gguf"])
def test_files_of_all_kinds_keep_to_the_memory(tmp_path: Path, name: str, size_bytes: int) -> None:
    small = written(tmp_path / f"small_{name}", 8)
    large = written(tmp_path / f"large_{name}", size_bytes >> 12)
    ends = {".safetensors", large.suffix} - {".gguf"}
    runs = [
        (large, tmp_path / f"out{end}", *asked, "--memory", "8MiB", "--jobs", jobs)
        for end in sorted(ends)
        for asked in (("--to", "bf16"), ("--quantize", "int8"))
        for jobs in (1, 4)
        if "int8" not in asked or end != ".npy"
    ]
    assert max(peaks_of_child(small, runs)) <= (8 + 32) << 20
