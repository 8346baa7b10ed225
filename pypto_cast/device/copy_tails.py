"""The rest of a block of UB after a copy of fewer bytes."""

from __future__ import annotations

from typing import Final

import numpy as np

from ascend_kernels.checks.check_program import RESULT_BYTES, CheckProgram
from pypto_cast.device.arithmetic_check import AS_ASSUMED, CheckOnDevice
from pypto_cast.device.facts import DeviceFact, Verdict

COPY_TAIL: Final = "UB after copies of 1 to 31 B"
COPY_TAIL_ASSUMED: Final = "the block's rest repeats the first element; nothing else changes"
"""CANN asc-devkit, DataCopyPad from GM to UB, without padding on either side."""


def check_copy_tails(device: CheckOnDevice) -> DeviceFact:
    """Copy tails of every length over a block and compare it, and the one behind it.

    Args:
        device: runs a kernel.
    """
    x = np.arange(1, 3 * RESULT_BYTES + 1, dtype=np.uint8)
    by_length = {}
    example = AS_ASSUMED
    for length in range(1, RESULT_BYTES):
        expected = x[RESULT_BYTES:].copy()
        expected[:RESULT_BYTES] = x[0]
        expected[:length] = x[:length]
        program = CheckProgram(
            kernel="copy_tail",
            x=x,
            result_bytes=expected.size,
            cores=1,
            tiling={"block_bytes": length},
        )
        found = device(program)
        if not np.array_equal(found, expected):
            by_length[f"{length} B"] = 1
            place = int(np.argmax(found != expected))
            if example == AS_ASSUMED:
                example = f"of {length} B: byte {place} is {found[place]}, not {expected[place]}"
    return DeviceFact(
        name=COPY_TAIL,
        assumed=COPY_TAIL_ASSUMED,
        measured=example,
        verdict=Verdict.DIFFERS if by_length else Verdict.AGREES,
        tested=RESULT_BYTES - 1,
        touched=len(by_length),
        by_pair=by_length,
    )
