"""The vector work of every cast, against what its program does."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import pytest
from support.programs.twin_programs import CASES, Case

from ascend_kernels.vector_work import element_bits, vector_work
from simulator.machine.isa import (
    AndRepeat,
    Cast,
    CastRepeat,
    Duplicate,
    Instruction,
    Pipe,
    PipeBarrier,
    SetFlag,
    WaitFlag,
)
from simulator.numbers.formats import FP16, INT32
from tiling.chips import DEFAULT_CHIP
from tiling.loads import VectorKind, VectorStep

COLS = 2


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.sampled(3)
def test_it_is_what_the_program_does(case: Case) -> None:
    """Core 0 has two tiles, a part each. There is no room for one pitch where widths differ."""
    bits = element_bits(case.program((COLS,), None).resolution)
    rows = DEFAULT_CHIP.ub_safe_bytes // (4 * 32 + 32 * bits.tmp // bits.src)
    program = case.program((DEFAULT_CHIP.vector_cores * rows, 2 * COLS), (rows, COLS))
    assert len(list(program.parts(0))) == 2
    assert program.plan.ub.has_one_pitch == (bits.src == bits.dst)
    part = tuple(program.part_instructions(program.plan.merged.tile(0), 0, reused=False))
    work = vector_work(program.resolution, program.controls)
    assert work.steps == tuple(steps(part))
    assert work.part_barriers == barriers(program.instructions(0)) - 2 * barriers(part)
    assert work.part_scalars == sum(instruction.pipe is Pipe.S for instruction in part)
    assert work.set_up_scalars == len(tuple(program.prologue()))


def barriers(instructions: Iterable[Instruction]) -> int:
    return sum(isinstance(instruction, PipeBarrier) for instruction in instructions)


def steps(instructions: Iterable[Instruction]) -> Iterator[VectorStep]:
    """One for each kind of vector instruction; a row after the other makes one step."""
    vector = (
        i for i in instructions if i.pipe is Pipe.V and not isinstance(i, (SetFlag, WaitFlag))
    )
    follows_barrier = False
    for key, group in itertools.groupby(vector, kind):
        alike = tuple(group)
        if key is not PipeBarrier:
            yield step(alike[0], goes_by_rows=len(alike) > 1, follows_barrier=follows_barrier)
        follows_barrier = key is PipeBarrier


def kind(instruction: Instruction) -> object:
    if isinstance(instruction, (Cast, CastRepeat)):
        return instruction.src_format, instruction.dst_format
    return type(instruction)


def step(instruction: Instruction, *, goes_by_rows: bool, follows_barrier: bool) -> VectorStep:
    if not isinstance(instruction, (Cast, CastRepeat)):
        return VectorStep(
            kind=VectorKind.BITWISE,
            bits=16,
            is_one_block=isinstance(instruction, Duplicate),
            takes_rest=isinstance(instruction, AndRepeat),
            follows_barrier=follows_barrier,
        )
    formats = instruction.src_format, instruction.dst_format
    return VectorStep(
        kind=VectorKind.CAST,
        bits=max(f.bits for f in formats),
        goes_by_rows=goes_by_rows,
        pays_startup=formats == (INT32, FP16),
        follows_barrier=follows_barrier,
    )
