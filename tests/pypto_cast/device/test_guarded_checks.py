"""Every kernel of a device check keeps to the machine's rules of flags, barriers and memory."""

from __future__ import annotations

import numpy as np
import pytest
from support.devices.guarded_checks import UbWork, run_guarded
from support.programs.twin_programs import needs_twin

from ascend_kernels.checks.check_program import (
    CHECK_KERNELS,
    RESULT_BYTES,
    SORTS,
    CheckProgram,
    cast_clock_name,
)
from ascend_kernels.matrix import MATRIX
from simulator.machine.isa import HardEvent, Pipe, SetFlag, WaitFlag
from simulator.machine.pipes import COPY_COMPLETIONS, CopyCompletion, Fault, Scheduler
from tiling.chips import A2_A3, CHIPS, DEFAULT_CHIP, Chip

HALF_BYTES = 4096
CHIP_950 = CHIPS["Ascend950PR"]
CORES = 2


def program_of(kernel: str, times: int = 3) -> CheckProgram:
    """A small launch: of a clock so many actions, of others two passes a core."""
    elems = 64
    tiling = {"passes": 2 * CORES, "pass_elems": elems, "result_elems": elems}
    result_bytes, x_bytes = 2 * CORES * elems * 4, 4 * CORES * elems * 4
    if kernel.startswith("clock_"):
        size = 64
        tiling = {"times": times, "ub_bytes": 2 * HALF_BYTES, "half_bytes": HALF_BYTES}
        tiling |= {"pass_elems": elems, "blocks": 2, "block_bytes": size, "passes": times}
        moved = times * 6 * elems
        x_bytes, result_bytes = moved * CORES, CORES * (RESULT_BYTES + moved)
    elif kernel.startswith("ctrl_"):
        tiling = {"ctrl_mask": 1 << 27 | 1 << 16, "ctrl_bits": 1 << 27}  # as the twin has them
        result_bytes = CORES * RESULT_BYTES
    elif kernel == "copy_tail":
        tiling, x_bytes, result_bytes = {"block_bytes": 7}, 96, CORES * 64
    elif kernel.startswith(tuple(SORTS)):
        width = 2 if kernel.endswith("fp16") else 4
        x_bytes, result_bytes = 2 * CORES * 128 * (width + 4), 2 * CORES * 1024
    elif kernel.startswith(("argmax", "argmin")):
        tiling |= {"pass_elems": 256, "result_elems": 16}
        x_bytes, result_bytes = 2 * CORES * 1024, 2 * CORES * 64
    elif kernel.startswith("vcadd"):
        tiling |= {"pass_elems": 256, "result_elems": 8}
        x_bytes, result_bytes = 2 * CORES * 1024, 2 * CORES * 32
    return CheckProgram(
        kernel=kernel,
        x=np.ones(x_bytes, np.uint8),
        result_bytes=result_bytes,
        cores=CORES,
        tiling=tiling,
    )


def streams(kernel: str) -> str:
    """The pipe on which a clock times actions in a stream, over the same bytes; empty: none."""
    if kernel.startswith(("clock_read", "clock_write")):
        return "MTE2" if kernel.startswith("clock_read") else "MTE3"
    casts = {cast_clock_name(rule, apart=False) for rule in MATRIX[DEFAULT_CHIP.isa].values()}
    return "V" if kernel in casts else ""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("copy_completion", COPY_COMPLETIONS)
@pytest.mark.parametrize(
    ("kernel", "chip"),
    [(name, chip) for chip in (DEFAULT_CHIP, CHIP_950) for name in CHECK_KERNELS[chip.isa]],
    ids=str,
)
def test_a_kernel_runs_under_the_guards(
    kernel: str, chip: Chip, copy_completion: CopyCompletion
) -> None:
    """Of a stream one action: the next one is over the same bytes."""
    needs_twin()
    times = 1 if streams(kernel) else 3
    assert run_guarded(program_of(kernel, times), copy_completion, chip) > 0


@pytest.mark.parametrize("kernel", [name for name in CHECK_KERNELS[A2_A3] if streams(name) == "V"])
def test_a_stream_of_casts_is_on_one_pipe_alone(kernel: str) -> None:
    """Nobody reads its results, and the pipe takes it in order: that is what is timed."""
    needs_twin()
    pipe = streams(kernel)
    with pytest.raises(Fault, match=f"no flag or barrier puts {pipe} before {pipe}"):
        run_guarded(program_of(kernel))


def test_the_guard_refuses_a_flag_that_is_set_again_too_soon() -> None:
    """The clock's flag as it was: MTE2 went on to the next set before V had waited."""
    flag = {"event": HardEvent.MTE2_V, "event_id": 0}
    trace = [SetFlag(**flag), WaitFlag(**flag)] * 2
    machine = Scheduler(object(), "latest", lambda n: str(trace[n]), isa=DEFAULT_CHIP.isa)
    with pytest.raises(Fault, match="no flag or barrier tells MTE2 that it has"):
        machine.run(iter(trace))


def test_the_guard_refuses_work_on_bytes_that_nobody_wrote() -> None:
    work = UbWork(writes=(0, 32), reads=((64, 32),))
    assert (work.pipe, str(work)) == (Pipe.V, "work ub+0 <- ['ub+64']")
