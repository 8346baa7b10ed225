"""The vector work of a cast as the cost model sees it, read off the program that does it."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator
from typing import Final

from ascend_kernels.matrix import Resolution
from ascend_kernels.program import lower
from simulator.machine.isa import Cast, Instruction, Pipe, PipeBarrier, SetFlag, WaitFlag
from simulator.numbers.formats import FP16, INT32
from tiling.chips import DEFAULT_CHIP
from tiling.plan import plan
from tiling.ub import ElementBits
from tiling.work import VectorKind, VectorStep, VectorWork

_ROWS, _COLS = 3, 2
"""A part whose rows are padded to different lengths on both sides, unless both are as wide."""
_BITWISE_BITS: Final = 16


def element_bits(resolution: Resolution) -> ElementBits:
    """Widths of one element of a cast's input, output and scratch."""
    rule = resolution.rule
    return ElementBits(src=rule.src.bits, dst=rule.dst.bits, tmp=resolution.tmp_bits)


@functools.lru_cache(maxsize=256)
def vector_work(resolution: Resolution) -> VectorWork:
    """What the vector unit does with each part of a tile, in order.

    Read off the instructions of a small program, so the cost model has no list of its own.
    """
    bits = element_bits(resolution)
    cores = DEFAULT_CHIP.vector_cores
    shape, tile = (2 * cores * _ROWS, _COLS), (_ROWS, _COLS)
    program = lower(plan(shape, tile, bits, DEFAULT_CHIP), resolution)
    part = program.plan.grid.tile(0)
    instructions = tuple(program.part_instructions(part, 0, reused=False))
    return VectorWork(
        steps=tuple(_steps(instructions)),
        part_barriers=_barriers(program.instructions(0)) - 2 * _barriers(instructions),
        part_scalars=sum(instruction.pipe is Pipe.S for instruction in instructions),
        set_up_scalars=len(tuple(program.prologue())),
    )


def _barriers(instructions: Iterable[Instruction]) -> int:
    return sum(isinstance(instruction, PipeBarrier) for instruction in instructions)


def _steps(instructions: Iterable[Instruction]) -> Iterator[VectorStep]:
    """One step for each kind of vector instruction; a row after the other makes one step."""
    vector = (
        i for i in instructions if i.pipe is Pipe.V and not isinstance(i, (SetFlag, WaitFlag))
    )
    follows_barrier = False
    for key, group in itertools.groupby(vector, _key):
        if key is PipeBarrier:
            follows_barrier = True
            continue
        alike = tuple(group)
        yield _step(alike[0], goes_by_rows=len(alike) > 1, follows_barrier=follows_barrier)
        follows_barrier = False


def _key(instruction: Instruction) -> object:
    if isinstance(instruction, Cast):
        return instruction.src_format, instruction.dst_format
    return type(instruction)


def _step(instruction: Instruction, *, goes_by_rows: bool, follows_barrier: bool) -> VectorStep:
    if isinstance(instruction, Cast):
        formats = instruction.src_format, instruction.dst_format
        return VectorStep(
            kind=VectorKind.CAST,
            bits=max(f.bits for f in formats),
            goes_by_rows=goes_by_rows,
            # A scaled conversion comes with a register and a barrier of its own (pto-isa, TCVT).
            pays_startup=formats == (INT32, FP16),
            follows_barrier=follows_barrier,
        )
    return VectorStep(
        kind=VectorKind.BITWISE,
        bits=_BITWISE_BITS,
        takes_padding=True,
        follows_barrier=follows_barrier,
    )
