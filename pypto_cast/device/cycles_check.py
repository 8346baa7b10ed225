"""The cycles of a device beside the cost sets: Cast, copies, barriers and flags, by its own clock.

The clock ticks at 50 MHz on A2 and A3 (CANN asc-devkit, GetSystemCycle), 37 cycles of a core, so
every action is done many times between two looks at it. Copies go over the same bytes again and
again: what is measured is L2, not the memory behind it.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ascend_kernels.checks.check_program import (
    REPEAT_BYTES,
    RESULT_BYTES,
    CheckProgram,
    cast_clock_name,
)
from ascend_kernels.matrix import MATRIX, CastRule
from pypto_cast.device.arithmetic_check import CheckOnDevice
from pypto_cast.device.facts import DeviceFact, Tally
from tiling.chips import A2_A3, Chip
from tiling.cost import COST_SETS, STARTUP_RULE

TICKS_PER_SECOND: Final = 50_000_000
CAST_REPEATS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Of one Cast; eight of the longest in a stream are 2048."""
COPY_BYTES: Final = tuple(32 << n for n in range(13))
COPY_BLOCKS: Final = (1, 4, 16, 64)
TIMES: Final = 200
CASTS: Final = "cycles of Cast"
COPIES: Final = "cycles of copies"
SYNCHRONIZATION: Final = "cycles of a barrier, a flag, an empty pass"
_SLACK: Final = 1.1
"""A figure may lie so far outside of the cost sets and still be as assumed."""
_FIGURES: Final = {
    CASTS: ("vector_startup_cycles", "cast_cycles_per_repeat", STARTUP_RULE),
    COPIES: (
        "read_startup_cycles",
        "read_bytes_per_cycle",
        "write_startup_cycles",
        "write_bytes_per_cycle",
    ),
    SYNCHRONIZATION: ("barrier_cycles", "flag_cycles"),
}
CYCLE_FACTS: Final = tuple(_FIGURES)


@dataclass(slots=True, kw_only=True)
class _Clock:
    """Cycles of an action on a device.

    Attributes:
        device: runs a kernel.
        chip: whose clock the cores have.
        looks: measurements so far.
    """

    device: CheckOnDevice
    chip: Chip
    looks: int = 0

    def cycles(self, kernel: str, *, cores: int = 1, size_bytes: int = 0, **tiling: int) -> float:
        """Cycles of one action, on the slowest core.

        Args:
            kernel: of the action.
            cores: that do it at once.
            size_bytes: what each copies.
            tiling: what the kernel is told.
        """
        self.looks += 1
        writes = kernel == "clock_write"
        program = CheckProgram(
            kernel=kernel,
            x=np.zeros(max(1, 0 if writes else size_bytes * cores), np.uint8),
            result_bytes=cores * (RESULT_BYTES + (size_bytes if writes else 0)),
            cores=cores,
            tiling={"times": TIMES, "ub_bytes": RESULT_BYTES, **tiling},
        )
        answers = self.device(program)[: cores * RESULT_BYTES].view(np.uint64)
        ticks = int(answers[:: RESULT_BYTES // 8].max())
        return ticks * self.chip.clock_hz / TICKS_PER_SECOND / TIMES


def check_cycles(device: CheckOnDevice, chip: Chip) -> tuple[DeviceFact, ...]:
    """Measure a device and compare the figures with the cost sets.

    Args:
        device: runs a kernel.
        chip: its cores, UB and clock.

    Returns:
        A fact for each group of figures; what lies outside of all cost sets differs.
    """
    clock = _Clock(device=device, chip=chip)
    empty = clock.cycles("clock_nothing")
    barrier = max(0.0, clock.cycles("clock_barrier") - empty)
    flag = max(0.0, clock.cycles("clock_flag") - empty) / 2
    facts = [_fact(SYNCHRONIZATION, clock.looks, (barrier, flag), f"an empty pass {empty:.1f}")]
    for name, measure in ((CASTS, _casts), (COPIES, _copies)):
        before = clock.looks
        figures, words = measure(clock, empty, barrier)
        facts.append(_fact(name, clock.looks - before, figures, words))
    return tuple(facts)


def _casts(clock: _Clock, empty: float, barrier: float) -> tuple[Sequence[float], str]:
    fits = {
        rule: [_cast_fit(clock, rule, apart=x) for x in (False, True)]
        for rule in MATRIX[A2_A3].values()
    }
    startups = [max(0.0, apart[0] - empty - barrier) for _, apart in fits.values()]
    startup = statistics.median(startups)
    in_stream = statistics.median(max(0.0, stream[0] - empty) for stream, _ in fits.values())
    slopes = {rule: stream[1] for rule, (stream, _) in fits.items()}
    slope = statistics.median(slopes.values())
    others = [
        f"{rule}: {each:.2f} a repeat"
        for rule, each in slopes.items()
        if not slope / _SLACK <= each <= slope * _SLACK
    ]
    return (startup, slope, float(in_stream <= startup / 2)), ", ".join(others)


def _cast_fit(clock: _Clock, rule: CastRule, *, apart: bool) -> tuple[float, float]:
    """Cycles of a Cast before its first repeat, and of each repeat."""
    half = clock.chip.ub_safe_bytes // 2 // 32 * 32
    lanes = REPEAT_BYTES * 8 // max(rule.src.bits, rule.dst.bits, 16)
    kernel = cast_clock_name(rule, apart=apart)
    taken = [
        clock.cycles(kernel, pass_elems=n * lanes, ub_bytes=2 * half, half_bytes=half)
        for n in CAST_REPEATS
    ]
    return _line(CAST_REPEATS, taken)


def _copies(clock: _Clock, empty: float, barrier: float) -> tuple[Sequence[float], str]:
    figures: list[float] = []
    words = []
    for kernel, action in (("clock_read", "read"), ("clock_write", "written")):
        taken = {
            (cores, size * blocks): clock.cycles(
                kernel,
                cores=cores,
                size_bytes=size * blocks,
                blocks=blocks,
                block_bytes=size,
                ub_bytes=size * blocks,
            )
            - empty
            for cores in (1, clock.chip.vector_cores)
            for blocks in COPY_BLOCKS
            for size in COPY_BYTES
            if size * blocks <= COPY_BYTES[-1]
        }
        alone = {size: cycles for (cores, size), cycles in taken.items() if cores == 1}
        startup, slope = _line(list(alone), list(alone.values()))
        figures += [max(0.0, startup), 1 / slope if slope > 0 else 0.0]
        cores, size = clock.chip.vector_cores, COPY_BYTES[-1]
        rate = cores * size * clock.chip.clock_hz / max(taken[cores, size], 1.0)
        words.append(f"all cores at once {rate / 1e12:.2f} TB/s {action}, from L2")
    return figures, ", ".join(words)


def _line(x: Sequence[int], y: Sequence[float]) -> tuple[float, float]:
    """Intercept and slope of the line through points, weighted by their distance from zero."""
    weights = 1 / np.maximum(np.asarray(y, np.float64), 1.0)
    slope, intercept = np.polyfit(
        np.asarray(x, np.float64), np.asarray(y, np.float64), 1, w=weights
    )
    return float(intercept), float(slope)


def _fact(name: str, looks: int, figures: Iterable[float], words: str) -> DeviceFact:
    found = dict(zip(_FIGURES[name], figures, strict=True))
    outside = [figure for figure, value in found.items() if not _is_assumed(figure, value)]
    shown = ", ".join(f"{figure} {value:.4g}" for figure, value in found.items())
    tally = Tally(name=name, assumed=assumed_cycles(name), tested=looks)
    tally.by_pair.update(dict.fromkeys(outside, 1))
    kept = {figure: x for figure, x in found.items() if x > 0 or figure.endswith("_cycles")}
    return tally.fact(shown, words, figures=kept)


def _range(figure: str) -> tuple[float, float]:
    values = [float(getattr(each, figure)) for each in COST_SETS.values()]
    return min(values), max(values)


def _is_assumed(figure: str, value: float) -> bool:
    least, most = _range(figure)
    return least / _SLACK <= value <= most * _SLACK


def assumed_cycles(name: str) -> str:
    """The figures of the cost sets, from the least to the greatest."""
    return ", ".join(
        f"{figure} {least:g} to {most:g}"
        for figure in _FIGURES[name]
        for least, most in [_range(figure)]
    )
