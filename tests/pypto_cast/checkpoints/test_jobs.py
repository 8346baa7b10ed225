"""The threads of a run on a checkpoint where none can be started."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.numpy

import pypto_cast as pypto
from pypto_cast.checkpoints import blocks, output_plan
from pypto_cast.checkpoints.casting import Choice, plan_checkpoint
from pypto_cast.checkpoints.opening import open_checkpoint
from pypto_cast.checkpoints.output_plan import plan_output

_LATE = """
import sys, threading
from pathlib import Path
import pypto_cast as pypto
from pypto_cast.checkpoints import blocks, output_plan
from pypto_cast.checkpoints.casting import plan_checkpoint
from pypto_cast.checkpoints.casting import Choice
from pypto_cast.checkpoints.opening import open_checkpoint
from pypto_cast.checkpoints.output_plan import plan_output

folder = Path(sys.argv[1])

def late():
    threading.main_thread().join()
    work = plan_checkpoint(open_checkpoint(folder / "in.safetensors"), Choice.of(pypto.DT_BF16))
    limits = blocks.Limits(memory_bytes=1 << 20, jobs=2)
    plan = plan_output(work, folder / "out.safetensors", force=False)
    with output_plan.new_checkpoint(plan) as sink:
        print(len(list(blocks.execute_jobs(work, sink, limits))))

threading.Thread(target=late).start()
"""


def saved(folder: Path) -> np.ndarray:
    values = np.arange(1 << 17, dtype=np.float32)
    safetensors.numpy.save_file({"w": values}, folder / "in.safetensors")
    return values


def check(folder: Path, values: np.ndarray) -> None:
    """The output has what was saved in BF16, rounded to nearest even by integers."""
    codes = values.view(np.uint32)
    expected = (codes + 0x7FFF + (codes >> 16 & 1)) >> 16
    (found,) = safetensors.deserialize((folder / "out.safetensors").read_bytes())
    assert bytes(found[1]["data"]) == expected.astype(np.uint16).tobytes()


@pytest.mark.slow
def test_a_run_after_the_main_thread_ended(tmp_path: Path) -> None:
    values = saved(tmp_path)
    command = [sys.executable, "-W", "ignore", "-c", _LATE, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("1\n", "")
    check(tmp_path, values)


@pytest.mark.parametrize("threads", [0, 1])
def test_a_system_that_starts_few_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    """Work that waits for a thread is done once, whether by another thread or by the run's own."""
    values, start, started = saved(tmp_path), threading.Thread.start, []

    def refuse(thread: threading.Thread) -> None:
        if len(started) == threads:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    work = plan_checkpoint(open_checkpoint(tmp_path / "in.safetensors"), Choice.of(pypto.DT_BF16))
    limits = blocks.Limits(memory_bytes=1 << 20, jobs=3)
    plan = plan_output(work, tmp_path / "out.safetensors", force=False)
    with output_plan.new_checkpoint(plan) as sink:
        (outcome,) = blocks.execute_jobs(work, sink, limits)
    assert outcome.report is not None
    assert outcome.report.elems == values.size
    check(tmp_path, values)


def test_every_job_has_an_element_of_the_memory() -> None:
    most = (1 << 20) // 32 - 1
    assert blocks.Limits(memory_bytes=1 << 20, jobs=most).block_elems == 1
    with pytest.raises(ValueError, match="32,768 jobs have no element each in a memory of 1,048"):
        blocks.Limits(memory_bytes=1 << 20, jobs=most + 1)
