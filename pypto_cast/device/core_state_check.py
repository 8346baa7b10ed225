"""The state of a device's cores that no cast shows: the control register, and UB behind a copy."""

from __future__ import annotations

from typing import Final

import numpy as np

from ascend_kernels.checks.check_program import RESULT_BYTES, CheckProgram
from pypto_cast.device.arithmetic_check import CheckOnDevice
from pypto_cast.device.facts import DeviceFact, Tally
from pypto_cast.device.repetition import observe_cores
from simulator.machine.cast_table import CTRL_CAST, CTRL_FLOAT
from simulator.machine.memory import Bytes
from tiling.chips import Chip

CTRL_FACTS: Final = {
    "CTRL at kernel entry": "CTRL[48] = 1, CTRL[59] = 0",
    "CTRL after a kernel that left it changed": "as it was left",
}


def check_control(device: CheckOnDevice, chip: Chip) -> tuple[DeviceFact, ...]:
    """Read CTRL on every core, leave two bits the other way, read again, and put them back.

    Args:
        device: runs a kernel.
        chip: whose cores are asked.
    """
    entry, behind = CTRL_FACTS.items()
    at_entry, entry_words = observe_cores(lambda: _ctrl(device, chip, "ctrl_read"))
    left = at_entry ^ np.uint64(1 << CTRL_FLOAT | 1 << CTRL_CAST)
    _leave(device, chip, int(left[0]))
    try:
        after, after_words = observe_cores(lambda: _ctrl(device, chip, "ctrl_read"))
    finally:
        _leave(device, chip, int(at_entry[0]))
    bits = [(at_entry >> np.uint64(bit)) & np.uint64(1) for bit in (CTRL_FLOAT, CTRL_CAST)]
    facts = []
    for (name, assumed), found, words, differs in (
        (entry, at_entry, entry_words, (bits[0] != 1) | (bits[1] != 0)),
        (behind, after, after_words, after != left),
    ):
        tally = Tally(name=name, assumed=assumed)
        differs |= found != np.sort(found)[found.size // 2]  # what most cores have
        tally.add("cores", np.ones_like(differs), differs, lambda _: "")
        tally.vary("cores", words)
        facts.append(tally.fact(", ".join(f"0x{value:016X}" for value in np.unique(found))))
    return tuple(facts)


def _leave(device: CheckOnDevice, chip: Chip, ctrl: int) -> None:
    _ctrl(
        device,
        chip,
        "ctrl_set",
        ctrl_float=ctrl >> CTRL_FLOAT & 1,
        ctrl_cast=ctrl >> CTRL_CAST & 1,
    )


def _ctrl(
    device: CheckOnDevice, chip: Chip, kernel: str, **tiling: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
    """CTRL as each core finds it."""
    program = CheckProgram(
        kernel=kernel,
        x=np.zeros(1, np.uint8),
        result_bytes=RESULT_BYTES * chip.vector_cores,
        cores=chip.vector_cores,
        tiling=tiling,
    )
    return device(program).view(np.uint64)[:: RESULT_BYTES // 8]


COPY_TAIL: Final = "UB after copies of 1 to 31 B"
COPY_TAIL_ASSUMED: Final = "the block's rest repeats the first element; nothing else changes"
"""CANN asc-devkit, DataCopyPad from GM to UB, without padding on either side."""


def check_copy_tails(device: CheckOnDevice, chip: Chip) -> DeviceFact:
    """Copy tails of every length over a block on every core; compare it, and the one behind it.

    Args:
        device: runs a kernel.
        chip: whose cores copy.
    """
    x = np.arange(1, 3 * RESULT_BYTES + 1, dtype=np.uint8)
    tally = Tally(name=COPY_TAIL, assumed=COPY_TAIL_ASSUMED)
    for length in range(1, RESULT_BYTES):
        _check_tail(device, chip, length, x, tally)
    return tally.fact()


def _check_tail(device: CheckOnDevice, chip: Chip, length: int, x: Bytes, tally: Tally) -> None:
    expected = x[RESULT_BYTES:].copy()
    expected[:RESULT_BYTES] = x[0]
    expected[:length] = x[:length]
    program = CheckProgram(
        kernel="copy_tail",
        x=x,
        result_bytes=expected.size * chip.vector_cores,
        cores=chip.vector_cores,
        tiling={"block_bytes": length},
    )
    blocks, words = observe_cores(lambda: device(program).reshape(chip.vector_cores, -1))
    differs = (blocks != expected).any(axis=1)

    def example(core: int) -> str:
        place = int(np.argmax(blocks[core] != expected))
        return f"of {length} B: byte {place} is {blocks[core][place]}, not {expected[place]}"

    tally.add(f"{length} B", np.ones_like(differs), differs, example)
    tally.vary(f"{length} B", words)
