"""Correct programs to be spoiled: casts of many shapes, tiles and dtypes, and AscendC kernels."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ascend_kernels.matrix import MATRIX, resolve
from ascend_kernels.program import lower
from benchmarks.mutant_sorting import Item, Listing
from simulator import ascendc as asc
from simulator.corrections import ElementStep
from simulator.machine.execute import run
from simulator.machine.isa import Instruction
from simulator.machine.memory import SimulatorFault, UbRange
from simulator.machine.pipes import CopyCompletion
from simulator.numbers.formats import UINT8, FloatFormat, Format
from tiling.chips import A2_A3, DEFAULT_CHIP, Chip
from tiling.plan import plan
from tiling.ub import ElementBits

Bytes = npt.NDArray[np.uint8]
EXAMPLES: Final = Path(__file__).parents[1] / "examples"
NEVER_WRITTEN: Final = "the program ends with"
"""The beginning of the only fault that is no instruction's: an output that is written in part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of a run: what a guard says, and the output with the bytes that were written."""

    fault: str
    output: Bytes
    is_whole: bool


@dataclass(frozen=True)
class Program:
    """The instructions of each core and its buffers; a buffer among them is allocated there."""

    chip: Chip
    bodies: tuple[tuple[Item, ...], ...]
    layouts: tuple[tuple[UbRange, ...], ...]

    @property
    def cores(self) -> range:
        return range(len(self.bodies))

    def ub_ranges(self, core: int) -> Sequence[UbRange]:
        return self.layouts[core]

    def issued(self, core: int) -> Iterator[Item]:
        return iter(self.bodies[core])

    def instructions(self, core: int) -> Iterator[Instruction]:
        return (each for each in self.bodies[core] if not isinstance(each, UbRange))

    def where(self, core: int, index: int) -> str:
        return f"line {index + 1}"


@dataclass(frozen=True)
class CastProgram(Program):
    """The program of one cast of all elements."""

    conversions: tuple[ElementStep, ...]
    input: str = "x"
    output: str = "y"


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A correct program and its memory; `y` is its output.

    Attributes:
        name: for messages.
        program: the program.
        x: the input.
        y_bytes: size of the output.
    """

    name: str
    program: Program
    x: Bytes
    y_bytes: int

    def listing(self, bodies: tuple[tuple[Item, ...], ...]) -> Listing:
        """The program with these bodies as it is judged."""
        return Listing(
            bodies=bodies,
            layouts=self.program.layouts,
            sizes={"x": self.x.size, "y": self.y_bytes},
            outputs=("y",),
            restores=isinstance(self.program, CastProgram),
        )

    def outcome(
        self, bodies: tuple[tuple[Item, ...], ...], copy_completion: CopyCompletion
    ) -> Outcome:
        """Run the program with these bodies."""
        program = dataclasses.replace(self.program, bodies=bodies)
        gm = {"x": self.x, "y": np.full(self.y_bytes, 0xEE, np.uint8)}
        fault, is_whole = "", True
        try:
            is_whole = not run(program, gm, copy_completion=copy_completion).unwritten("y")
        except SimulatorFault as found:
            fault = str(found)
            if fault.startswith(NEVER_WRITTEN):
                fault, is_whole = "", False
        return Outcome(fault=fault, output=gm["y"], is_whole=is_whole)


def codes(rng: np.random.Generator, fmt: Format, elems: int) -> Bytes:
    """Small numbers, all different as far as the format goes, many of them halves."""
    if fmt.bits == 4:
        return rng.integers(0, 256, elems // 2, dtype=np.uint8)
    low = 0 if fmt is UINT8 else -128
    values = low + rng.permutation(np.arange(elems) % 256)
    halves = values / 2 if isinstance(fmt, FloatFormat) else values
    return halves.astype(fmt.dtype).view(np.uint8)


# --- Casts -------------------------------------------------------------------------------------

_SHAPES: Final = ((1, 5, 160), (2, 9, 96), (3, 4, 48))
"""Axes, and the largest of the others and of the last one."""
MAX_ITEMS: Final = 260


def cast_base(rng: np.random.Generator) -> Base:
    """A cast with random shape, tile, pair, saturation and number of cores."""
    while True:
        rules = list(MATRIX[A2_A3].values())
        rule = rules[rng.integers(len(rules))]
        saturate = not (rule.off and rng.random() < 0.6)
        axes, most, last = _SHAPES[rng.integers(len(_SHAPES))]
        shape = (*(int(n) for n in rng.integers(1, most + 1, axes - 1)), _even(rng, last))
        tile = (*(int(n) for n in rng.integers(1, most + 1, axes - 1)), _even(rng, last))
        mode = None if rule.default is None else rule.modes[rng.integers(len(rule.modes))]
        if rule.src is rule.dst and mode is None:
            continue
        resolution = resolve(A2_A3, rule.src, rule.dst, mode, saturate=saturate)
        bits = ElementBits(src=rule.src.bits, dst=rule.dst.bits, tmp=resolution.tmp_bits)
        chip = dataclasses.replace(DEFAULT_CHIP, vector_cores=int(rng.integers(1, 4)))
        made = lower(plan(shape, tile, bits, chip), resolution)
        if sum(len(tuple(made.issued(core))) for core in made.cores) > MAX_ITEMS:
            continue
        elems = int(np.prod(shape))
        return Base(
            name=f"{rule.src}-{rule.dst} {list(shape)} by {list(tile)}",
            program=CastProgram(
                chip=made.chip,
                bodies=tuple(tuple(made.issued(core)) for core in made.cores),
                layouts=tuple(made.ub_ranges(core) for core in made.cores),
                conversions=made.conversions,
            ),
            x=codes(rng, rule.src, elems),
            y_bytes=elems * rule.dst.bits // 8,
        )


def _even(rng: np.random.Generator, last: int) -> int:
    return 2 * int(rng.integers(1, last // 2 + 1))


# --- AscendC kernels ---------------------------------------------------------------------------


def kernel_base(rng: np.random.Generator) -> Base:
    """A kernel of the examples or of those below, with random sizes."""
    makers: tuple[Callable[[np.random.Generator], Base], ...] = (
        _queues, _chain, _by_hand, _masked, _unequal,
    )  # fmt: skip
    return makers[rng.integers(len(makers))](rng)


def _recorded(
    name: str, kernel: asc.JitFunction[Any, None], cores: int, x: Any, y: Any, *args: Any
) -> Base:
    recorded = kernel[cores].program(x, y, *args)
    return Base(
        name=f"{name} {x.size} elements",
        program=Program(
            recorded.chip,
            tuple(tuple(recorded.issued(core)) for core in recorded.cores),
            tuple(recorded.ub_ranges(core) for core in recorded.cores),
        ),
        x=x.view(np.uint8),
        y_bytes=y.nbytes,
    )


@functools.cache
def _example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"mutated_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _numbers(rng: np.random.Generator, elems: int) -> npt.NDArray[np.float32]:
    return rng.permutation(elems).astype(np.float32) - np.float32(elems // 2)


def _queues(rng: np.random.Generator) -> Base:
    """examples/ascendc_cast.py: queues, tails, a contiguous share for each core."""
    example = _example("ascendc_cast")
    tile, cores = int(rng.choice([16, 24, 64])), int(rng.integers(1, 4))
    example.TILE_LENGTH = tile
    elems = int(rng.integers(cores, cores * tile * 5))
    x = _numbers(rng, elems)
    share = -(-elems // cores)
    y = np.zeros(elems, np.float16)
    return _recorded("ascendc_cast", example.cast_kernel, cores, x, y, elems, share)


def _chain(rng: np.random.Generator) -> Base:
    """examples/ascendc_quantise.py: three casts with barriers, scratch, whole tiles."""
    example = _example("ascendc_quantise")
    tile, cores, tiles = (int(rng.choice(n)) for n in ([32, 64, 96], [1, 2], [2, 3, 4, 5]))
    example.TILE_LENGTH = tile
    x = _numbers(rng, tile * tiles)
    y = np.zeros(x.size, np.int8)
    return _recorded("ascendc_quantise", example.quantise_kernel, cores, x, y, tiles)


@asc.jit
def by_hand(x: asc.GlobalAddress, y: asc.GlobalAddress, tile: int, tiles: int) -> None:
    """Two slots of tensors placed by hand, with flags; the scalar pipe waits for the first copy."""
    event = asc.HardEvent
    x_gm, y_gm = asc.GlobalTensor(), asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    y_gm.set_global_buffer(y)
    size = -(-tile // 16) * 16
    x_local = [
        asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 4 * size * s, size) for s in (0, 1)
    ]
    y_local = [
        asc.LocalTensor(asc.half, asc.TPosition.VECOUT, 8 * size + 2 * size * s, size)
        for s in (0, 1)
    ]
    for number in range(tiles):
        slot = number % 2
        if number >= 2:
            asc.wait_flag(event.V_MTE2, slot)
            asc.wait_flag(event.MTE3_V, slot)
        pad = asc.DataCopyPadExtParams(asc.float32)
        blocks = asc.DataCopyExtParams(1, 4 * tile)
        asc.data_copy_pad(x_local[slot], x_gm[number * tile :], blocks, pad)
        arrived = event.MTE2_S if number == 0 else event.MTE2_V
        asc.set_flag(arrived, slot)
        asc.wait_flag(arrived, slot)
        asc.cast(y_local[slot], x_local[slot], asc.RoundMode.CAST_RINT, tile)
        asc.set_flag(event.V_MTE2, slot)
        asc.set_flag(event.V_MTE3, slot)
        asc.wait_flag(event.V_MTE3, slot)
        out = asc.DataCopyExtParams(1, 2 * tile)
        asc.data_copy_pad(y_gm[number * tile :], y_local[slot], out)
        asc.set_flag(event.MTE3_V, slot)
    for slot in range(min(2, tiles)):
        asc.wait_flag(event.V_MTE2, slot)
        asc.wait_flag(event.MTE3_V, slot)


def _by_hand(rng: np.random.Generator) -> Base:
    tile, tiles = int(rng.integers(8, 90)), int(rng.integers(1, 7))
    x = _numbers(rng, tile * tiles)
    return _recorded("by hand", by_hand, 1, x, np.zeros(x.size, np.float16), tile, tiles)


@asc.jit
def masked(x: asc.GlobalAddress, y: asc.GlobalAddress, times: int, odd: int) -> None:
    """Casts by repeats, each lane by one of two masks, with gaps between the repeats."""
    x_gm, y_gm = asc.GlobalTensor(), asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    y_gm.set_global_buffer(y)
    pipe = asc.TPipe()
    first, second = asc.TBuf(asc.TPosition.VECCALC), asc.TBuf(asc.TPosition.VECCALC)
    pipe.init_buffer(first, 288 * times)
    pipe.init_buffer(second, 160 * times)
    source, target = first.get(asc.float32), second.get(asc.half)
    pad = asc.DataCopyPadExtParams(asc.float32)
    asc.data_copy_pad(source, x_gm, asc.DataCopyExtParams(times, 256, 0, 1), pad)
    asc.pipe_barrier(asc.PipeID.PIPE_ALL)
    strides = asc.UnaryRepeatParams(1, 1, 5, 9)
    everything = 2**64 - 1
    asc.cast(target, source, asc.RoundMode.CAST_FLOOR, [odd, 0], times, strides)
    asc.cast(target, source, asc.RoundMode.CAST_CEIL, [everything ^ odd, 0], times, strides)
    asc.set_flag(asc.HardEvent.V_MTE3, 3)
    asc.wait_flag(asc.HardEvent.V_MTE3, 3)
    asc.data_copy_pad(y_gm, target, asc.DataCopyExtParams(times, 128, 1, 0))


def _masked(rng: np.random.Generator) -> Base:
    times = int(rng.integers(1, 6))
    odd = int(rng.choice([0x5555555555555555, 0xFF, 0xF0F0F0F0F0F0F0F0, 0x1FFFF, 7]))
    x = _numbers(rng, 64 * times) + np.float32(0.25)
    return _recorded("masked", masked, 1, x, np.zeros(x.size, np.float16), times, odd)


@asc.jit
def unequal(x: asc.GlobalAddress, y: asc.GlobalAddress, elems: int) -> None:
    """Two cores that lay UB out differently: each has twice the elements of the one before."""
    core = asc.get_block_idx()
    start, mine = elems * ((1 << core) - 1), elems << core
    x_gm, y_gm = asc.GlobalTensor(), asc.GlobalTensor()
    x_gm.set_global_buffer(x + start, mine)
    y_gm.set_global_buffer(y + start, mine)
    pipe = asc.TPipe()
    in_queue, out_queue = asc.TQue(asc.TPosition.VECIN), asc.TQue(asc.TPosition.VECOUT)
    pipe.init_buffer(in_queue, 1, 2 * mine)
    pipe.init_buffer(out_queue, 1, 4 * mine)
    local = in_queue.alloc_tensor(asc.half)
    pad = asc.DataCopyPadExtParams(asc.half)
    asc.data_copy_pad(local, x_gm, asc.DataCopyExtParams(1, 2 * mine), pad)
    in_queue.enque(local)
    local, wide = in_queue.deque(asc.half), out_queue.alloc_tensor(asc.float32)
    asc.cast(wide, local, asc.RoundMode.CAST_NONE, mine)
    in_queue.free_tensor(local)
    out_queue.enque(wide)
    wide = out_queue.deque(asc.float32)
    asc.data_copy_pad(y_gm, wide, asc.DataCopyExtParams(1, 4 * mine))
    out_queue.free_tensor(wide)


def _unequal(rng: np.random.Generator) -> Base:
    cores, elems = int(rng.integers(1, 4)), int(rng.integers(3, 70))
    x = _numbers(rng, elems * ((1 << cores) - 1)).astype(np.float16)
    return _recorded("unequal", unequal, cores, x, np.zeros(x.size, np.float32), elems)
