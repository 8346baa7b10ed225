"""Correct programs with one thing spoiled: what a guard must report is reported, nothing else."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.environment.sources import ROOT
from support.numbers.codes import SEED
from support.programs.listings import UB_BYTES, chip_of, fault_of

from ascend_kernels.matrix import resolve
from ascend_kernels.program import TileProgram, lower
from benchmarks import machine_mutants, mutant_sorting
from benchmarks.mutant_programs import CastProgram
from simulator.machine import core, hazards, memory
from simulator.machine.execute import execute, run
from simulator.machine.isa import (
    AndRepeat,
    Cast,
    Instruction,
    SetCtrl,
    SetDeqScale,
    UbAddress,
)
from simulator.machine.memory import Addresses
from simulator.numbers import formats as f
from tiling.chips import A2_A3
from tiling.plan import plan
from tiling.ub import ElementBits

TABLE = ROOT / "benchmarks" / "machine_mutants.md"


def test_no_mutant_is_silent_and_no_legal_program_is_refused() -> None:
    tally = machine_mutants.measure([SEED], count=400)
    assert [(each.kind, each.text, each.reason, each.fault) for each in tally.wrong] == []
    assert tally.must == 400
    assert tally.rows["all"]["legal"] > 50
    assert {"flag", "order", "garbage", "bounds", "operand", "call"} <= set(tally.reasons)


@pytest.mark.parametrize("kind", machine_mutants.KINDS)
def test_a_core_of_one_instruction_has_mutants_too(kind: str) -> None:
    body = (SetDeqScale(scale=1.0),)
    changed = machine_mutants.KINDS[kind](np.random.default_rng(SEED), body)
    assert changed in {None, ()}


def _nothing(*_: Any) -> None:
    """A guard that sees nothing."""


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("place", "name", "broken", "reason"),
    [
        (hazards.Hazards, "_check_pair", _nothing, "order"),
        (memory.VectorMemory, "check_written", _nothing, "garbage"),
        (memory.VectorMemory, "_life", lambda *_: ("", 0), "garbage"),
        (Addresses, "_check_buffer", _nothing, "bounds"),
    ],
    ids=["order", "garbage", "lives", "bounds"],
)
def test_mutants_are_silent_without_a_guard(
    place: type, name: str, broken: Any, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, name, broken)
    monkeypatch.setattr(core, "VectorMemory", lambda _: memory.VectorMemory(UB_BYTES))
    first = next(each for each in machine_mutants.mutants(7) if each.is_silent)
    assert first.reason == reason


def test_sorting_shares_no_code_with_the_guards() -> None:
    """It knows instructions, formats and the record of a buffer."""
    text = Path(mutant_sorting.__file__).read_text()
    known = set(re.findall(r"^from (simulator\S+)", text, re.MULTILINE))
    assert known == {
        "simulator.machine.isa",
        "simulator.machine.memory",
        "simulator.numbers.formats",
    }
    assert "from simulator.machine.memory import UbRange\n" in text


def test_the_committed_table_is_whole() -> None:
    text = TABLE.read_text()
    assert re.search(r"^\d{4}-\d\d-\d\d, revision [0-9a-f]{7,}, seeds [\d ]+$", text, re.MULTILINE)
    heads, _, *rows = (
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in text.splitlines()
        if line.startswith("|")
    )
    assert heads == ["kind", *machine_mutants.COUNTS]
    counts = {row[0]: [int(cell) for cell in row[1:]] for row in rows}
    assert set(machine_mutants.KINDS) <= set(counts)
    total = counts.pop("all")
    assert total == [sum(column) for column in zip(*counts.values(), strict=True)]
    _, must, reported, silent, legal, same, differs, incomplete, refused = total
    assert must == reported >= 20825
    assert silent == refused == 0
    assert legal == same + differs + incomplete


# --- Registers ---------------------------------------------------------------------------------


def program_of(src: f.Format, dst: f.Format) -> TileProgram:
    bits = ElementBits(src=src.bits, dst=dst.bits)
    return lower(plan((5, 70), (2, 32), bits, chip_of(2)), resolve(A2_A3, src, dst))


def with_body(program: TileProgram, core: int, body: tuple[Instruction, ...]) -> CastProgram:
    """The program in which one core runs something else."""
    bodies = [tuple(program.issued(each)) for each in program.cores]
    bodies[core] = body
    layouts = tuple(program.ub_ranges(each) for each in program.cores)
    return CastProgram(program.chip, tuple(bodies), layouts, program.conversions)


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
    program = program_of(f.FP32, f.FP16)
    body = (*program.issued(1), left)
    index = len(tuple(program.instructions(1)))
    gm = {"x": np.zeros(1400, np.uint8), "y": np.zeros(700, np.uint8)}
    found = fault_of(with_body(program, 1, body), gm)
    assert found.startswith(f"core 1, instruction {index}, line {index + 1} ({left}): ")
    assert text in found
    run(with_body(program, 1, (*program.issued(1), SetDeqScale(scale=1.0))), gm)


def test_keeping_the_low_byte_is_repeated_by_the_cast_that_follows() -> None:
    """FP16 -> INT8 OFF ends in a Cast that keeps low bits: the And before it changes no code."""
    resolution = resolve(A2_A3, f.FP16, f.INT8, saturate=False)
    bits = ElementBits(src=16, dst=8, tmp=32)
    program = lower(plan((65536,), (8192,), bits, chip_of(1)), resolution)
    body = tuple(program.issued(0))
    without = tuple(each for each in body if not isinstance(each, AndRepeat))
    assert len(without) == len(body) - 8
    codes = np.arange(65536, dtype=np.uint16)
    gm = {"x": codes.view(np.uint8), "y": np.zeros(65536, np.uint8)}
    run(with_body(program, 0, without), gm)
    np.testing.assert_array_equal(gm["y"], execute(program, codes.view(np.float16)))


def test_cores_check_an_instruction_that_they_share_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is spoiled is refused on every core, though the others' are known by then."""
    bits = ElementBits(src=32, dst=16)
    program = lower(plan((96, 64), (2, 64), bits, chip_of(20)), resolve(A2_A3, f.FP32, f.FP16))
    checked: list[Instruction] = []
    check = core._vector_effect

    def counted(instruction: Instruction, space: Addresses) -> Any:
        checked.append(instruction)
        return check(instruction, space)

    monkeypatch.setattr(core, "_vector_effect", counted)
    gm = {"x": np.zeros(96 * 64 * 4, np.uint8), "y": np.zeros(96 * 64 * 2, np.uint8)}
    run(program, gm)
    assert 0 < len(checked) <= 3  # in either slot, and in the first again
    body = list(program.issued(19))
    place, cast = next((k, each) for k, each in enumerate(body) if isinstance(each, Cast))
    body[place] = replace(cast, dst=UbAddress(offset_bytes=33))
    text = fault_of(with_body(program, 19, tuple(body)), gm)
    assert text.startswith("core 19, ")
    assert "ub+33 is not aligned to 32 B" in text
