"""The cycles of a device beside the cost sets: Cast, copies, barriers and flags, by its own clock.

The clock ticks at 50 MHz on A2 and A3 (CANN asc-devkit, GetSystemCycle), 37 cycles of a core, so
every action is done many times between two looks at it. Copies go over the same bytes again and
again: what is measured is L2. The memory behind it has a fact of its own: all cores go once over
more bytes than L2 has.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import numpy as np

from ascend_kernels.checks.check_program import (
    REPEAT_BYTES,
    RESULT_BYTES,
    CheckProgram,
    cast_clock_name,
)
from ascend_kernels.matrix import MATRIX, CastRule
from ascend_kernels.schedule.simulated_cycles import FIRST_CYCLES, FORMS
from pypto_cast.device.arithmetic_check import CheckOnDevice
from pypto_cast.device.device_model import CLOCK
from pypto_cast.device.facts import DeviceFact, Tally
from pypto_cast.device.repetition import Stability, core_words
from simulator.numbers.formats import FP16, FP32
from tiling.chips import A2_A3, ASCEND_950, Chip
from tiling.cost import COST_SETS, STARTUP_RULE

TICKS_PER_SECOND: Final = 50_000_000
CAST_REPEATS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Of one Cast; eight of the longest in a stream are 2048."""
COPY_BYTES: Final = tuple(32 << n for n in range(13))
COPY_BLOCKS: Final = (1, 4, 16, 64)
TIMES: Final = 200
CASTS: Final = "cycles of Cast"
CAST_PAIRS: Final = "cycles of Cast by pair"
COPIES: Final = "cycles of copies"
GM_RATE: Final = "bandwidth of GM"
LOOP_PASS: Final = "cycles of a loop's pass"
TASK: Final = "cycles of a task"
SLOTS: Final = "cycles of a pass with two slots"
SLOT_PASSES: Final = (4, 68)
"""Of two loops, whose difference has neither the first pass nor the last."""
SWEEP_BYTES: Final = 1 << 29
"""Of GM, more than twice the 192 MB of L2 on A2."""
SWEEP_COPY_BYTES: Final = 1 << 16
PASS_ELEMS: Final = (1024, 4096, 16384)
"""Of FP32, cast in a pass of a loop."""
TASK_ELEMS: Final = (1024, 4096, 8192)
"""Of FP32, cast in a task: sizes for which the cycles of *tasks* were fitted."""
SYNCHRONIZATION: Final = "cycles of a barrier, a flag, an empty pass"
CLOCK_ASSUMED: Final = "50 MHz by the host's clock, and as fast on every core"
CLOCK_TIMES: Final = 20_000_000
"""Barriers between two looks at both clocks; twice as many for the other end of the line."""
_LOOKS: Final = 3
_NOISE: Final = 1.1
"""A measurement may be so many times another one, beside two ticks."""
_CLOCK_SLACK: Final = 1.25
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
    GM_RATE: ("gm_bytes_per_second",),
}
_WORDS: Final = {
    CLOCK: CLOCK_ASSUMED,
    CAST_PAIRS: "as many a repeat as the others have",
    LOOP_PASS: "those of its Cast and of the longer of its copies",
    SLOTS: "those of the longest of its copies and its Cast",
    TASK: "those of upstream's simulator: a copy in, a Cast, a copy out, one after another",
}
"""The assumptions that are no figures of the cost sets."""
CYCLE_FACTS: Final = (CLOCK, *_FIGURES, CAST_PAIRS, LOOP_PASS, SLOTS, TASK)
CYCLES_IN: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {A2_A3: CYCLE_FACTS, ASCEND_950: ()}
)
"""By family: no cost set has figures of the 950, so none of its cycles is compared."""


@dataclass(slots=True, kw_only=True)
class _Clock:
    """Cycles of an action on a device.

    Attributes:
        device: runs a kernel.
        chip: whose clock the cores have.
        now: the host's clock, in seconds.
        looks: measurements so far.
        varying: those that the device did not repeat, as a fact has them.
    """

    device: CheckOnDevice
    chip: Chip
    now: Callable[[], float] = time.perf_counter
    looks: int = 0
    varying: dict[str, str] = field(default_factory=dict)

    def cycles(
        self,
        kernel: str,
        *,
        cores: int = 1,
        size_bytes: int = 0,
        times: int = TIMES,
        **tiling: int,
    ) -> float:
        """Cycles of one action, on the slowest core, as a median of three looks.

        Args:
            kernel: of the action.
            cores: that do it at once.
            size_bytes: GM of each.
            times: how often it is done between two looks at the clock.
            tiling: what the kernel is told.
        """
        tiling["times"] = times
        looks = [
            int(self.ticks(kernel, cores=cores, size_bytes=size_bytes, **tiling).max())
            for _ in range(_LOOKS)
        ]
        self.looks += _LOOKS
        if max(looks) > min(looks) * _NOISE + 2:
            self.varying[kernel] = f"{Stability.UNSTABLE.value}: {min(looks)} to {max(looks)} ticks"
        return statistics.median(looks) * self.chip.clock_hz / TICKS_PER_SECOND / times

    def ticks(
        self, kernel: str, *, cores: int = 1, size_bytes: int = 0, **tiling: int
    ) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        """Ticks of each core for all its actions, of one look; arguments as of `cycles`."""
        writes = kernel.startswith(("clock_write", "clock_pass", "clock_slots", "clock_task"))
        reads = not kernel.startswith("clock_write")
        program = CheckProgram(
            kernel=kernel,
            x=np.zeros(max(1, size_bytes * cores * reads), np.uint8),
            result_bytes=cores * (RESULT_BYTES + (size_bytes if writes else 0)),
            cores=cores,
            tiling={"times": TIMES, "ub_bytes": RESULT_BYTES, **tiling},
        )
        answers = self.device(program)[: cores * RESULT_BYTES].view(np.uint64)
        return answers[:: RESULT_BYTES // 8]


def check_cycles(
    device: CheckOnDevice,
    chip: Chip,
    facts: Iterable[str] = CYCLE_FACTS,
    now: Callable[[], float] = time.perf_counter,
) -> tuple[DeviceFact, ...]:
    """Measure a device and compare the figures with the cost sets.

    Args:
        device: runs a kernel.
        chip: its cores, UB and clock.
        facts: which are measured.
        now: the host's clock, in seconds.

    Returns:
        A fact for each group of figures; what lies outside of all cost sets differs.
    """
    clock = _Clock(device=device, chip=chip, now=now)
    empty = clock.cycles("clock_nothing")
    barrier = max(0.0, clock.cycles("clock_barrier") - empty)
    found = []
    for name in facts:
        clock.looks, clock.varying = 0, {}
        if name in _CHECKS:
            found.append(_CHECKS[name](clock, empty))
            continue
        figures, words = _MEASURES[name](clock, empty, barrier)
        found.append(_fact(name, clock, figures, words))
    return tuple(found)


def _check_clock(clock: _Clock, _: float) -> DeviceFact:
    """Compare the device's clock with the host's, and the clocks of all cores with each other."""
    tally = Tally(name=CLOCK, assumed=CLOCK_ASSUMED)
    rates = []
    for _ in range(_LOOKS):
        ends = []
        for times in (CLOCK_TIMES, 2 * CLOCK_TIMES):
            before = clock.now()
            ticks = clock.ticks("clock_barrier", times=times)
            ends.append((clock.now() - before, float(ticks.astype(np.int64)[0])))
        (short, few), (long, many) = ends
        rates.append((many - few) / max(long - short, 1e-9))
    rate = statistics.median(rates)
    if max(rates) > min(rates) * _CLOCK_SLACK:
        tally.vary(
            "MHz", f"{Stability.UNSTABLE.value}: {min(rates) / 1e6:.3g} to {max(rates) / 1e6:.3g}"
        )
    wrong = np.array([not 1 / _CLOCK_SLACK <= rate / TICKS_PER_SECOND <= _CLOCK_SLACK])
    tally.add("MHz", np.ones(1, np.bool_), wrong, lambda _: "")
    cores = clock.ticks("clock_barrier", cores=clock.chip.vector_cores).astype(np.int64)
    usual = float(np.median(cores))
    odd = np.abs(cores - usual) > usual * (_CLOCK_SLACK - 1) + 2
    tally.add("cores", np.ones_like(odd), odd, lambda core: f"core {core}: {cores[core]} ticks")
    tally.vary("cores", core_words(np.flatnonzero(odd)))
    return tally.fact(f"{rate / 1e6:.4g} MHz")


def _synchronization(clock: _Clock, empty: float, barrier: float) -> tuple[Sequence[float], str]:
    # Two flags each way: set and waited for, so that none is set again before it was waited for.
    flag = max(0.0, clock.cycles("clock_flag") - empty) / 4
    barrier = max(0.0, clock.cycles("clock_barrier") - empty)
    return (barrier, flag), f"an empty pass {empty:.1f}"


def _casts(clock: _Clock, empty: float, barrier: float) -> tuple[Sequence[float], str]:
    fits = {
        rule: [_cast_fit(clock, rule, apart=x) for x in (False, True)]
        for rule in MATRIX[A2_A3].values()
    }
    startups = [max(0.0, apart[0] - empty - barrier) for _, apart in fits.values()]
    startup = statistics.median(startups)
    in_stream = statistics.median(max(0.0, stream[0] - empty) for stream, _ in fits.values())
    slope = statistics.median(stream[1] for stream, _ in fits.values())
    return (startup, slope, float(in_stream <= startup / 2)), ""


def _check_pairs(clock: _Clock, _: float) -> DeviceFact:
    """Compare the cycles of a repeat of each pair with those of most pairs."""
    slopes = {rule: _cast_fit(clock, rule, apart=False)[1] for rule in MATRIX[A2_A3].values()}
    slope = statistics.median(slopes.values())
    tally = Tally(name=CAST_PAIRS, assumed=_WORDS[CAST_PAIRS])
    tally.varying.update(clock.varying)
    for rule, each in slopes.items():
        differs = np.array([not slope / _SLACK <= each <= slope * _SLACK])
        words = f"{rule}: {each:.3g} a repeat, most pairs {slope:.3g}"
        tally.add(str(rule), np.ones(1, np.bool_), differs, _said(words))
    return tally.fact(f"{min(slopes.values()):.3g} to {max(slopes.values()):.3g} a repeat")


def _check_pass(clock: _Clock, empty: float) -> DeviceFact:
    """Compare passes of a loop with the Cast and the copies that they are made of, measured too."""
    tally = Tally(name=LOOP_PASS, assumed=_WORDS[LOOP_PASS])
    flags = 2 * max(0.0, clock.cycles("clock_flag") - empty)  # a flag each way, twice
    for elems in PASS_ELEMS:
        ub = {"pass_elems": elems, "half_bytes": 4 * elems, "ub_bytes": 6 * elems}
        taken = clock.cycles("clock_pass", size_bytes=4 * elems, **ub) - empty
        cast, *copies = _pass_parts(clock, elems, empty)
        least = cast + max(copies)
        differs = np.array([not least / _SLACK <= taken <= (least + flags) * _SLACK])
        words = f"{elems} elements: {taken:.4g}, its parts {least:.4g}"
        tally.add(f"{elems} elements", np.ones(1, np.bool_), differs, _said(words))
    tally.varying.update(clock.varying)
    return tally.fact()


def _pass_parts(clock: _Clock, elems: int, empty: float) -> tuple[float, float, float]:
    """Cycles of the Cast of a pass, of its copy in and of its copy out, each by itself."""
    ub = {"pass_elems": elems, "half_bytes": 4 * elems, "ub_bytes": 6 * elems}
    cast = clock.cycles(cast_clock_name(MATRIX[A2_A3][FP32, FP16], apart=True), **ub)
    read, write = (
        clock.cycles(kernel, size_bytes=n, blocks=1, block_bytes=n, ub_bytes=n)
        for kernel, n in (("clock_read", 4 * elems), ("clock_write", 2 * elems))
    )
    return cast - empty, read - empty, write - empty


def _check_slots(clock: _Clock, empty: float) -> DeviceFact:
    """Compare passes of a loop with two slots with the longest of their parts, measured too."""
    tally = Tally(name=SLOTS, assumed=_WORDS[SLOTS])
    flags = max(0.0, clock.cycles("clock_flag") - empty)  # of a pass a pipe has four
    few, many = SLOT_PASSES
    for elems in PASS_ELEMS[:-1]:
        ub = {"pass_elems": elems, "half_bytes": 8 * elems, "ub_bytes": 12 * elems}
        short, long = (
            clock.cycles("clock_slots", size_bytes=4 * elems, times=20, passes=n, **ub)
            for n in SLOT_PASSES
        )
        taken = (long - short) / (many - few)
        least = max(_pass_parts(clock, elems, empty))
        differs = np.array([not least / _SLACK <= taken <= (least + flags) * _SLACK])
        words = f"{elems} elements: {taken:.4g}, its longest part {least:.4g}"
        tally.add(f"{elems} elements", np.ones(1, np.bool_), differs, _said(words))
    tally.varying.update(clock.varying)
    return tally.fact()


def _check_task(clock: _Clock, empty: float) -> DeviceFact:
    """Compare a cast as a task of its own with the cycles that the model *tasks* has for its leaf.

    The cycles between two tasks, which the scheduler takes, are in no kernel: a timeline has them.
    """
    tally = Tally(name=TASK, assumed=_WORDS[TASK])
    for elems in TASK_ELEMS:
        ub = {"pass_elems": elems, "half_bytes": 4 * elems, "ub_bytes": 6 * elems}
        taken = clock.cycles("clock_task", size_bytes=4 * elems, **ub) - empty
        parts = (("COPY_IN", FP32, 4), ("CAST", FP32, 4), ("COPY_OUT", FP16, 2))
        assumed = FIRST_CYCLES + sum(
            FORMS[opcode, str(fmt)].cycles(1, width * elems) or 0 for opcode, fmt, width in parts
        )
        differs = np.array([not assumed / _SLACK <= taken <= assumed * _SLACK])
        words = f"{elems} elements: {taken:.4g}, assumed {assumed}"
        tally.add(f"{elems} elements", np.ones(1, np.bool_), differs, _said(words))
    tally.varying.update(clock.varying)
    return tally.fact()


def _said(words: str) -> Callable[[int], str]:
    return lambda _: words


def _bandwidth(clock: _Clock, empty: float, barrier: float) -> tuple[Sequence[float], str]:
    """Bytes a second of GM, by all cores at once; the words have reading and writing apart."""
    cores, size = clock.chip.vector_cores, SWEEP_COPY_BYTES
    passes = SWEEP_BYTES // (cores * size)
    rates = []
    for kernel in ("clock_read_gm", "clock_write_gm"):
        taken = clock.cycles(
            kernel,
            cores=cores,
            size_bytes=passes * size,
            times=1,
            passes=passes,
            blocks=1,
            block_bytes=size,
            ub_bytes=size,
        )
        rates.append(cores * passes * size * clock.chip.clock_hz / max(taken - empty, 1.0))
    words = ", ".join(
        f"{rate / 1e12:.2f} TB/s {how}"
        for rate, how in zip(rates, ("read", "written"), strict=True)
    )
    return (statistics.fmean(rates),), words


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


_MEASURES: Final = {
    SYNCHRONIZATION: _synchronization,
    CASTS: _casts,
    COPIES: _copies,
    GM_RATE: _bandwidth,
}
_CHECKS: Final[Mapping[str, Callable[[_Clock, float], DeviceFact]]] = {
    CLOCK: _check_clock,
    CAST_PAIRS: _check_pairs,
    LOOP_PASS: _check_pass,
    SLOTS: _check_slots,
    TASK: _check_task,
}
"""Facts without figures of a cost set."""


def _fact(name: str, clock: _Clock, figures: Iterable[float], words: str) -> DeviceFact:
    found = dict(zip(_FIGURES[name], figures, strict=True))
    outside = [figure for figure, value in found.items() if not _is_assumed(figure, value)]
    shown = ", ".join(f"{figure} {value:.4g}" for figure, value in found.items())
    tally = Tally(name=name, assumed=assumed_cycles(name), tested=clock.looks)
    tally.varying.update(clock.varying)
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
    if name in _WORDS:
        return _WORDS[name]
    return ", ".join(
        f"{figure} {least:g} to {most:g}"
        for figure in _FIGURES[name]
        for least, most in [_range(figure)]
    )
