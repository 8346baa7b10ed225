"""Stand-in devices for what no cast tells: arithmetic, CTRL, a clock, with planted deviations."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ascend_kernels.checks.check_program import CheckProgram
from tiling.chips import DEFAULT_CHIP
from tiling.cost import DEFAULT_COST_SET, CostParameters

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Compute = Callable[..., Any]
FP = {"fp32": np.float32, "fp16": np.float16, "int16": np.int16, "int32": np.int32}


def tree(terms: Any) -> Any:
    """Sums of neighbours, then of neighbouring sums."""
    while terms.shape[1] > 1:
        terms = terms[:, ::2] + terms[:, 1::2]
    return terms[:, 0]


def halves(terms: Any) -> Any:
    """The lower half to the upper half, then again."""
    while terms.shape[1] > 1:
        middle = terms.shape[1] // 2
        terms = terms[:, :middle] + terms[:, middle:]
    return terms[:, 0]


def truncated(a: Any, b: Any) -> Any:
    """A sum of FP32 rounded toward zero."""
    exact = a.astype(np.float64) + b.astype(np.float64)
    near = exact.astype(np.float32)
    beyond = np.abs(near.astype(np.float64)) > np.abs(exact)
    return np.where(beyond & np.isfinite(exact), np.nextafter(near, np.float32(0)), near)


def flushed(a: Any, b: Any) -> Any:
    """A product without subnormal numbers."""
    product = a * b
    tiny = np.abs(product) < np.finfo(product.dtype).smallest_normal
    return np.where(tiny, np.copysign(product.dtype.type(0), product), product)


def three_off(a: Any) -> Any:
    """An exponential whose results between 2 and 4 are 3 codes too large."""
    result = exponential(a)
    off = (result > 2) & (result < 4)
    return (result.view(f"u{result.itemsize}") + 3 * off.astype(f"u{result.itemsize}")).view(
        a.dtype
    )


def exponential(a: Any) -> Any:
    return np.exp(a.astype(np.float64)).astype(a.dtype)


def clamped(a: Any, b: Any) -> Any:
    """Sums of integers, the nearest that there is."""
    ends = np.iinfo(a.dtype)
    return np.clip(a.astype(np.int64) + b, ends.min, ends.max).astype(a.dtype)


INSTRUCTIONS: dict[str, Compute] = {
    "vadd": lambda a, b: a + b,
    "vsub": lambda a, b: a - b,
    "vmul": lambda a, b: a * b,
    "vdiv": lambda a, b: a / b,
    "vsqrt": np.sqrt,
    "vexp": exponential,
    "vln": lambda a: np.log(a.astype(np.float64)).astype(a.dtype),
    "vrsqrt": lambda a: (1 / np.sqrt(a.astype(np.float64))).astype(a.dtype),
    "vcadd": tree,
    "argmax": lambda rows: rows.argmax(axis=1),
    "argmin": lambda rows: rows.argmin(axis=1),
    "int_sum_kept": lambda a, b: a + b,
    "int_sum_clamped": clamped,
}
for each in ("vadd", "vmul", "vexp", "vrsqrt"):

    def widened(*operands: Any, compute: Compute = INSTRUCTIONS[each]) -> Any:
        return compute(*(x.astype(np.float32) for x in operands)).astype(np.float16)

    INSTRUCTIONS[f"autocast_{each}"] = widened


LISTS = {"sort": (32,) * 4, "merge": (32,) * 4, "merge_unequal": (32, 8, 24, 16)}
Pairs = list[tuple[float, int]]


def sorted_lists(name: str, lists: list[Pairs]) -> Pairs:
    """Each list by its scores, then all of them; of equal ones the first first."""
    held = [sorted(x, key=lambda p: -p[0])[:n] for x, n in zip(lists, LISTS[name], strict=True)]
    flat = [pair for each in held for pair in each]
    return flat if name == "sort" else sorted(flat, key=lambda p: -p[0])


def last_first(name: str, lists: list[Pairs]) -> Pairs:
    """Of equal ones the last first, in each list; merges keep to the lists."""
    return sorted_lists(name, [each[::-1] for each in lists])


def later_lists_first(name: str, lists: list[Pairs]) -> Pairs:
    """A merge that takes equal ones of the last list first."""
    flat = sorted_lists(name, lists)
    if name == "sort":
        return flat
    held = [sorted(x, key=lambda p: -p[0])[:n] for x, n in zip(lists, LISTS[name], strict=True)]
    return sorted((pair for each in held[::-1] for pair in each), key=lambda p: -p[0])


def lost_score(name: str, lists: list[Pairs]) -> Pairs:
    """The least element of a row is another one's copy."""
    flat = sorted_lists(name, lists)
    return [*flat[:-1], flat[-2]]


def last_greatest(rows: Any) -> Any:
    """The place of the last of the greatest elements."""
    return rows.shape[1] - 1 - rows[:, ::-1].argmax(axis=1)


@dataclass(kw_only=True)
class StandIn:
    """A device that answers as this package assumes, but for what is planted.

    Attributes:
        planted: other functions, by instruction.
        costs: what its instructions take.
        slower: how many times as long one kernel takes, by name.
        ctrl: of every core.
        forgets: CTRL is as it was at every kernel entry.
        fills: a copy fills the rest of its last block.
        seconds: what its clock has shown so far.
        sorts: sorts four lists of scores with their indices, or sorts and merges them.
    """

    planted: dict[str, Compute] = field(default_factory=dict)
    costs: CostParameters = DEFAULT_COST_SET
    slower: dict[str, float] = field(default_factory=dict)
    ctrl: int = 1 << 48
    forgets: bool = False
    fills: bool = True
    seconds: float = 0.0
    sorts: Callable[[str, list[Pairs]], Pairs] = sorted_lists

    def now(self) -> float:
        """The host's clock: what its kernels took, by their clock."""
        return self.seconds

    def __call__(self, program: CheckProgram) -> Bytes:
        if program.kernel.startswith("clock_"):
            ticks = self._ticks(program)
            self.seconds += ticks / 50e6
            return self._numbers(program, ticks)
        if program.kernel.startswith("ctrl_"):
            found = self.ctrl
            if program.kernel == "ctrl_set" and not self.forgets:
                mask, bits = (program.tiling[f"ctrl_{name}"] << 32 for name in ("mask", "bits"))
                self.ctrl = self.ctrl & ~mask | bits
            return self._numbers(program, found)
        if program.kernel == "copy_tail":
            return self._after_tail(program)
        instruction, fmt = program.kernel.rsplit("_", 1)
        if instruction in LISTS:
            return self._sorted(program, instruction, FP[fmt])
        compute = self.planted.get(instruction, INSTRUCTIONS[instruction])
        elems, passes = program.tiling["pass_elems"], program.tiling["passes"]
        operands = program.x.view(FP[fmt]).reshape(passes, -1, elems)
        with np.errstate(all="ignore"):
            if instruction in ("argmax", "argmin"):
                rows = operands.reshape(-1, 256 // operands.itemsize)
                at = compute(rows)
                pairs = np.zeros((len(rows), 2), f"u{rows.itemsize}")
                pairs[:, 0] = rows[np.arange(len(rows)), at].view(pairs.dtype)
                pairs[:, 1] = at
                return pairs.reshape(-1).view(np.uint8)
            if instruction == "vcadd":
                result = compute(operands.reshape(-1, 256 // operands.itemsize))
            else:
                result = compute(*(operands[:, n].reshape(-1) for n in range(operands.shape[1])))
        return np.ascontiguousarray(result.astype(FP[fmt])).view(np.uint8)

    def _after_tail(self, program: CheckProgram) -> Bytes:
        ub, length = program.x[32:].copy(), program.tiling["block_bytes"]
        ub[:32] = program.x[0] if self.fills else ub[:32]
        ub[:length] = program.x[:length]
        return np.tile(ub, program.cores)

    def _sorted(self, program: CheckProgram, name: str, scores: Any) -> Bytes:
        width = np.dtype(scores).itemsize
        rows = program.x.reshape(program.tiling["passes"], 128 * (width + 4))
        y = np.zeros((len(rows), 128, 8), np.uint8)
        for row, out in zip(rows, y, strict=True):
            pairs = list(
                zip(
                    row[: 128 * width].view(scores).tolist(),
                    row[128 * width :].view(np.uint32).tolist(),
                    strict=True,
                )
            )
            found = self.sorts(name, [pairs[at : at + 32] for at in range(0, 128, 32)])
            for pair, (score, index) in zip(out, found, strict=False):
                pair[:width] = np.array([score], scores).view(np.uint8)
                pair[4:] = np.array([index], np.uint32).view(np.uint8)
        return y.reshape(-1)

    def _numbers(self, program: CheckProgram, number: int) -> Bytes:
        answers = np.zeros(program.result_bytes, np.uint8)
        answers[: 32 * program.cores].view(np.uint64)[::4] = number
        return answers

    def _ticks(self, program: CheckProgram) -> int:
        """The clock's 50 MHz for so many actions, each by the cost set."""
        tiling, costs = program.tiling, self.costs
        kernel = program.kernel.removeprefix("clock_")
        size = tiling.get("blocks", 0) * tiling.get("block_bytes", 0)
        once = 0.0
        if kernel == "barrier":
            each = costs.barrier_cycles
        elif kernel == "flag":
            each = 4 * costs.flag_cycles
        elif kernel == "read":
            each = costs.read_startup_cycles + size / costs.read_bytes_per_cycle
        elif kernel == "write":
            each = costs.write_startup_cycles + size / costs.write_bytes_per_cycle
        elif kernel == "nothing":
            each = 0.0
        elif kernel in ("read_gm", "write_gm"):
            total = size * tiling["passes"] * program.cores
            each = total / costs.gm_bytes_per_second * DEFAULT_CHIP.clock_hz
        elif kernel == "task":  # timelines of upstream's simulator
            each = {1024: 1833, 4096: 2087, 8192: 2424}[tiling["pass_elems"]]
        elif kernel in ("pass", "slots"):
            elems = tiling["pass_elems"]
            read = costs.read_startup_cycles + 4 * elems / costs.read_bytes_per_cycle
            write = costs.write_startup_cycles + 2 * elems / costs.write_bytes_per_cycle
            cast = costs.vector_startup_cycles + costs.cast_cycles_per_repeat * elems / 64
            each = max(read, write) + cast + 8 * costs.flag_cycles
            if kernel == "slots":
                steady = max(read, write, cast) + 2 * costs.flag_cycles
                each += steady * (tiling["passes"] - 1)
        else:
            widths = [int(width) for width in re.findall(r"(?:fp|bf|uint|int)(\d+)", kernel)]
            repeats = tiling["pass_elems"] * max(*widths, 16) / 2048
            each = costs.cast_cycles_per_repeat * repeats
            once = costs.vector_startup_cycles
            if kernel.endswith("_apart"):
                each, once = each + once + costs.barrier_cycles, 0.0
        each *= self.slower.get(program.kernel, 1.0)
        cycles = once + (each + 2.0) * tiling["times"]
        return round(cycles * 50e6 / DEFAULT_CHIP.clock_hz)
