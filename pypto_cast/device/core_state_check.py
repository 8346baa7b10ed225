"""Findings of a device's cores that no cast shows: CTRL, sums by CTRL[53], UB behind a copy."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ascend_kernels.checks.check_program import INT_SUM, RESULT_BYTES, CheckProgram
from pypto_cast.device.arithmetic_check import CheckOnDevice
from pypto_cast.device.facts import DeviceFact, Tally
from pypto_cast.device.repetition import Layout, Places, observe, observe_cores
from simulator.machine.cast_table import CTRL_AT_START, CTRL_BITS
from simulator.machine.memory import Bytes
from simulator.numbers.formats import INT16, INT32, Codes
from tiling.chips import A2_A3, ASCEND_950, Chip

CTRL_ENTRY: Final = "CTRL at kernel entry"
CTRL_LEFT: Final = "CTRL after a kernel that left it changed"


def control_facts(family: str) -> dict[str, str]:
    """The facts about CTRL on chips of a family, and the assumption of each."""
    states = (f"CTRL[{bit}] = {int(bit in CTRL_AT_START)}" for bit in sorted(CTRL_BITS[family]))
    return {CTRL_ENTRY: ", ".join(states), CTRL_LEFT: "as it was left"}


def check_control(device: CheckOnDevice, chip: Chip) -> tuple[DeviceFact, ...]:
    """Read CTRL on every core, leave its bits the other way, read again, and put them back.

    Args:
        device: runs a kernel.
        chip: whose cores are asked.
    """
    entry, behind = control_facts(chip.isa).items()
    bits = sorted(CTRL_BITS[chip.isa])
    at_entry, entry_words = observe_cores(lambda: _ctrl(device, chip, "ctrl_read"))
    left = at_entry ^ np.uint64(_ctrl_mask(chip))
    _leave(device, chip, int(left[0]))
    try:
        after, after_words = observe_cores(lambda: _ctrl(device, chip, "ctrl_read"))
    finally:
        _leave(device, chip, int(at_entry[0]))
    is_other = np.logical_or.reduce(
        [(at_entry >> np.uint64(bit)) & np.uint64(1) != (bit in CTRL_AT_START) for bit in bits]
    )
    facts = []
    for (name, assumed), found, words, differs in (
        (entry, at_entry, entry_words, is_other),
        (behind, after, after_words, after != left),
    ):
        tally = Tally(name=name, assumed=assumed)
        differs |= found != np.sort(found)[found.size // 2]  # what most cores have
        tally.add("cores", np.ones_like(differs), differs, lambda _: "")
        tally.vary("cores", words)
        facts.append(tally.fact(", ".join(f"0x{value:016X}" for value in np.unique(found))))
    return tuple(facts)


def _leave(device: CheckOnDevice, chip: Chip, ctrl: int) -> None:
    mask = _ctrl_mask(chip)
    _ctrl(device, chip, "ctrl_set", ctrl_mask=mask >> 32, ctrl_bits=(ctrl & mask) >> 32)


def _ctrl_mask(chip: Chip) -> int:
    """The bits of CTRL that the family of a chip has."""
    return sum(1 << bit for bit in CTRL_BITS[chip.isa])


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


INT_SUMS: Final = "sums of integers by CTRL[53]"
INT_SUMS_ASSUMED: Final = "0 keeps the low bits, 1 gives the nearest number of the format"
"""CANN asc-devkit, SetCtrlSpr, table 3: of the 950."""
INT_SUM_FACTS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {A2_A3: MappingProxyType({}), ASCEND_950: MappingProxyType({INT_SUMS: INT_SUMS_ASSUMED})}
)
"""By family."""
_INT_ROWS: Final = 1 << 14
_PASS_ELEMS: Final = 1 << 10
_SEED: Final = 20261128


def check_integer_sums(device: CheckOnDevice, chip: Chip) -> DeviceFact:
    """Compare sums of integers, of which many are out of range, in both states of CTRL[53].

    Args:
        device: runs a kernel.
        chip: whose cores share the work.
    """
    tally = Tally(name=INT_SUMS, assumed=INT_SUMS_ASSUMED)
    random = np.random.default_rng(_SEED)
    for fmt in (INT16, INT32):
        edges = np.array([fmt.min, fmt.min + 1, -1, 0, 1, fmt.max - 1, fmt.max])
        drawn = random.integers(fmt.min, fmt.max, (2, _INT_ROWS), endpoint=True)
        pairs = np.array(np.meshgrid(edges, edges)).reshape(2, -1)
        terms = np.concatenate([pairs, drawn], 1)[:, :_INT_ROWS]
        exact = terms.sum(axis=0)
        low_bits = exact.astype(fmt.dtype)
        nearest = np.clip(exact, fmt.min, fmt.max).astype(fmt.dtype)
        for clamps, expected in ((False, low_bits), (True, nearest)):
            run = partial(_integer_sums, device, chip, terms.astype(fmt.dtype), clamps)
            cores = min(_INT_ROWS // _PASS_ELEMS, chip.vector_cores)
            layout_of = partial(Layout.of_passes, _INT_ROWS, _PASS_ELEMS, cores)
            seen = observe(run, layout_of, expected)
            wrong = np.logical_or.reduce([sums != expected for sums in seen.distinct])
            example = partial(_sum_example, terms, seen.distinct, expected)
            pair = f"{fmt} CTRL[53] = {int(clamps)}"
            tally.add(pair, np.ones_like(wrong), wrong, example, seen)
    return tally.fact()


def _integer_sums(
    device: CheckOnDevice, chip: Chip, terms: npt.NDArray[Any], clamps: bool, order: Places
) -> Codes:
    """The device's sums of pairs in an order, as integers."""
    passes = terms.shape[1] // _PASS_ELEMS
    x = np.stack([each[order].reshape(passes, -1) for each in terms], axis=1).reshape(-1)
    program = CheckProgram(
        kernel=INT_SUM.format("clamped" if clamps else "kept", f"int{terms.itemsize * 8}"),
        x=x.view(np.uint8),
        result_bytes=terms[0].nbytes,
        cores=min(passes, chip.vector_cores),
        tiling={"passes": passes, "pass_elems": _PASS_ELEMS, "result_elems": _PASS_ELEMS},
    )
    return device(program).view(terms.dtype)


def _sum_example(terms: npt.NDArray[Any], runs: list[Codes], expected: Codes, place: int) -> str:
    found = next(sums[place] for sums in runs if sums[place] != expected[place])
    return f"{terms[0][place]} + {terms[1][place]} gives {found}, assumed {expected[place]}"
