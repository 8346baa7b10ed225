"""One instruction of a cast's program spoiled: the machine faults, or the result is another."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from support.programs.listings import Bytes, chip_of

from ascend_kernels.matrix import resolve
from ascend_kernels.program import TileProgram, lower
from simulator.machine.execute import execute, run
from simulator.machine.isa import (
    AndRepeat,
    DataCopyPad,
    GmAddress,
    Instruction,
    PipeBarrier,
    RestoreCtrl,
    SetCtrl,
    SetDeqScale,
    SetFlag,
    UbAddress,
    WaitFlag,
)
from simulator.machine.memory import SimulatorFault
from simulator.numbers import formats as f
from simulator.numbers.formats import Format
from tiling.plan import plan
from tiling.ub import ElementBits

SHAPE, TILE = (5, 70), (2, 32)
"""Nine tiles on two cores, so both slots are taken again; tails on both axes."""

CASTS = [
    pytest.param(f.FP32, f.FP16, True, id="fp32-fp16"),
    pytest.param(f.FP16, f.INT8, False, id="fp16-int8-off"),
    pytest.param(f.FP32, f.INT16, False, id="fp32-int16-off"),
    pytest.param(f.INT32, f.FP16, True, id="int32-fp16"),
    pytest.param(f.FP16, f.INT16, False, id="fp16-int16-off"),
]
every_cast = pytest.mark.parametrize(("src", "dst", "saturate"), CASTS)


@dataclass(frozen=True)
class Mutant:
    """A tile program in which one core runs something else."""

    program: TileProgram
    core: int
    body: tuple[Instruction, ...]

    chip = property(lambda self: self.program.chip)
    cores = property(lambda self: self.program.cores)
    conversions = property(lambda self: self.program.conversions)
    input = property(lambda self: self.program.input)
    output = property(lambda self: self.program.output)
    ub_ranges = property(lambda self: self.program.ub_ranges)

    def where(self, core: int, index: int) -> str:
        return f"line {index}"

    def instructions(self, core: int) -> Iterator[Instruction]:
        return iter(self.body) if core == self.core else self.program.instructions(core)


@functools.cache
def program_of(src: Format, dst: Format, saturate: bool) -> TileProgram:
    resolution = resolve(src, dst, saturate=saturate)
    bits = ElementBits(src=src.bits, dst=dst.bits, tmp=resolution.tmp_bits)
    return lower(plan(SHAPE, TILE, bits, chip_of(2)), resolution)


def inputs(src: Format) -> Bytes:
    """Numbers all different, most of them beyond 8 bits, none beyond FP16."""
    rng = np.random.default_rng(4711)
    numbers = rng.permutation(np.arange(300, 300 + SHAPE[0] * SHAPE[1]))
    signs = rng.choice([-1, 1], numbers.size)
    return (numbers * signs * (1.5 if src is f.FP32 else 1)).astype(src.dtype).view(np.uint8)


def outcome(program: TileProgram | Mutant, src: Format, dst: Format) -> Bytes | None:
    """Returns the bytes of the output at the end; None if the machine faults."""
    gm = {"x": inputs(src), "y": np.zeros(SHAPE[0] * SHAPE[1] * dst.bits // 8, np.uint8)}
    try:
        run(program, gm, landing="latest")
    except SimulatorFault:
        return None
    return gm["y"]


Mutations = Iterator[tuple[str, int, tuple[Instruction, ...]]]


def dropped(program: TileProgram, *kinds: type) -> Mutations:
    """The program without one of its instructions of some kinds."""
    for core in program.cores:
        body = tuple(program.instructions(core))
        for index, instruction in enumerate(body):
            if isinstance(instruction, kinds):
                text = f"core {core}, instruction {index} ({instruction}) dropped"
                yield text, core, body[:index] + body[index + 1 :]


def shifted(program: TileProgram) -> Mutations:
    """The program with one address of one instruction moved a little."""
    for core in program.cores:
        body = tuple(program.instructions(core))
        for index, instruction in enumerate(body):
            for field in dataclasses.fields(instruction):
                address = getattr(instruction, field.name)
                if not isinstance(address, (GmAddress, UbAddress)):
                    continue
                for step in (-64, -32, -16, 16, 32, 64):
                    moved = dataclasses.replace(address, offset_bytes=address.offset_bytes + step)
                    other = dataclasses.replace(instruction, **{field.name: moved})
                    text = f"core {core}, instruction {index} ({instruction}) {field.name}{step:+}"
                    yield text, core, (*body[:index], other, *body[index + 1 :])


def assert_noticed(
    src: Format,
    dst: Format,
    saturate: bool,
    mutations: Mutations,
    *,
    at_least: int,
    equivalent: str | None = None,
) -> None:
    """Every mutation faults or changes the result, but those whose text says they are equivalent.

    Args:
        equivalent: a pattern; each mutation that nobody notices must match it, and some must.
    """
    program = program_of(src, dst, saturate)
    sound = outcome(program, src, dst)
    assert sound is not None
    count, unnoticed = 0, []
    for text, core, body in mutations:
        count += 1
        result = outcome(Mutant(program, core, body), src, dst)
        if result is not None and np.array_equal(result, sound):
            unnoticed.append(text)
    assert count >= at_least
    if equivalent is not None:
        assert unnoticed
        unnoticed = [text for text in unnoticed if not re.search(equivalent, text)]
    assert unnoticed == []


@every_cast
def test_the_programs_are_sound_and_their_results_tell_elements_apart(
    src: Format, dst: Format, saturate: bool
) -> None:
    program = program_of(src, dst, saturate)
    sound = outcome(program, src, dst)
    assert sound is not None
    results = sound.view(dst.code_dtype)
    np.testing.assert_array_equal(results, execute(program, inputs(src).view(src.dtype)))
    assert np.unique(results).size > min(256, results.size) * 0.7
    for core in program.cores:
        assert len(list(program.parts(core))) > 2


@every_cast
def test_no_flag_can_be_dropped(src: Format, dst: Format, saturate: bool) -> None:
    """Four flags a tile, each set and waited for."""
    drops = dropped(program_of(src, dst, saturate), SetFlag, WaitFlag)
    assert_noticed(src, dst, saturate, drops, at_least=9 * 8)


@every_cast
def test_no_copy_can_be_dropped(src: Format, dst: Format, saturate: bool) -> None:
    drops = dropped(program_of(src, dst, saturate), DataCopyPad)
    assert_noticed(src, dst, saturate, drops, at_least=9 * 2)


@pytest.mark.parametrize(("src", "dst", "saturate"), [p for p in CASTS if not p.values[2]])
def test_no_barrier_can_be_dropped(src: Format, dst: Format, saturate: bool) -> None:
    drops = dropped(program_of(src, dst, saturate), PipeBarrier)
    assert_noticed(src, dst, saturate, drops, at_least=9)


def test_the_deq_scale_cannot_be_dropped() -> None:
    drops = dropped(program_of(f.INT32, f.FP16, True), SetDeqScale)
    assert_noticed(f.INT32, f.FP16, True, drops, at_least=2)


@every_cast
def test_the_control_register_is_restored(src: Format, dst: Format, saturate: bool) -> None:
    drops = dropped(program_of(src, dst, saturate), RestoreCtrl)
    assert_noticed(src, dst, saturate, drops, at_least=2)


@pytest.mark.parametrize(
    ("left", "text"),
    [
        (SetCtrl(bit=48, value=True), "ends with another CTRL than it found: bit 48 was set"),
        (SetCtrl(bit=59, value=False), "ends with another CTRL than it found: bit 59 was set"),
        (SetDeqScale(scale=2.0), "the program leaves the deq scale at 2, not 1"),
    ],
    ids=str,
)
def test_what_a_program_leaves_in_the_registers(left: Instruction, text: str) -> None:
    """A bit at its usual value was changed too: what was there before is not known."""
    program = program_of(f.FP32, f.FP16, True)
    body = (*program.instructions(1), left)
    gm = {"x": inputs(f.FP32), "y": np.zeros(2 * SHAPE[0] * SHAPE[1], np.uint8)}
    with pytest.raises(SimulatorFault, match=f"core 1: .*{text}"):
        run(Mutant(program, 1, body), gm)


@every_cast
def test_no_address_can_be_shifted(src: Format, dst: Format, saturate: bool) -> None:
    """By half a line, a line or two, to either side."""
    shifts = shifted(program_of(src, dst, saturate))
    # Keeping the low byte has no effect of its own (see below), so its result may go anywhere that
    # nobody reads: where a tail leaves room in the buffer. And a mask that the larger tile before
    # the tail left behind is as good as its own.
    equivalent = None
    if (src, dst) == (f.FP16, f.INT8):
        equivalent = r"\(And .*\) (dst[+-]\d+|src1\+32)$"
    assert_noticed(src, dst, saturate, shifts, at_least=9 * 6 * 6, equivalent=equivalent)


def test_keeping_the_low_byte_is_repeated_by_the_cast_that_follows() -> None:
    """FP16 -> INT8 OFF ends in a Cast that keeps low bits: the And before it changes no code."""
    resolution = resolve(f.FP16, f.INT8, saturate=False)
    bits = ElementBits(src=16, dst=8, tmp=32)
    program = lower(plan((65536,), (8192,), bits, chip_of(1)), resolution)
    body = tuple(program.instructions(0))
    ands = [index for index, instruction in enumerate(body) if isinstance(instruction, AndRepeat)]
    without = tuple(i for i in body if not isinstance(i, AndRepeat))
    assert len(without) == len(body) - len(ands) == len(body) - 8
    results = []
    for each in (program, Mutant(program, 0, without)):
        gm = {"x": np.arange(65536, dtype=np.uint16).view(np.uint8), "y": np.zeros(65536, np.uint8)}
        run(each, gm)
        results.append(gm["y"])
    np.testing.assert_array_equal(*results)
