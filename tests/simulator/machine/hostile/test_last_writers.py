"""Every fault of an instruction ends with who wrote the byte that it is about."""

from __future__ import annotations

import dataclasses

import pytest
from support.programs.listings import (
    Listing,
    MappedListing,
    buffer,
    cast,
    copy_in,
    copy_out,
    fault_and_writer,
    fenced,
    flag,
    ub,
    x_at,
    y_at,
)

from simulator.machine.isa import (
    CastRepeat,
    DataCopy,
    Duplicate,
    HardEvent,
    Instruction,
    Pipe,
    PipeBarrier,
    ScalarOp,
    VectorScalar,
)
from simulator.machine.pipes import COPY_COMPLETIONS
from simulator.numbers import formats as f
from simulator.numbers.rounding import RoundMode

LOAD = copy_in(ub(), x_at(), length=64)
FILL = Duplicate(dst=ub(64), value=1, count=64)
REPEATED = CastRepeat(
    dst=ub(64),
    src=ub(),
    dst_format=f.INT32,
    src_format=f.FP32,
    mode=RoundMode.RINT,
    mask=8,
    repeat_times=1,
)
SHIFT = VectorScalar(
    op=ScalarOp.SHIFT_LEFT, dst=ub(64), src=ub(), format=f.UINT16, scalar=40, count=8
)


@pytest.mark.parametrize(
    ("wrong", "byte", "writer"),
    [
        (cast(f.FP32, f.FP16, None, src=ub(16), dst=ub(64)), 16, "LOAD"),
        (cast(f.FP32, f.FP16, None, src=ub(96), dst=ub(60)), 60, "LOAD"),
        (cast(f.FP32, f.INT8, None, dst=ub(64)), 0, "LOAD"),
        (cast(f.FP32, f.FP16, None, count=40, dst=ub(64)), 64, "FILL"),
        (cast(f.INT32, f.FP16, None, dst=ub(256)), 0, "LOAD"),
        (cast(f.INT4, f.FP16, None, count=3, dst=ub(64)), 0, "LOAD"),
        (copy_out(y_at(), ub(), length=200), 192, ""),
        (copy_out(y_at(240), ub()), 256, ""),
        (copy_in(ub(64), x_at(240)), 256, ""),
        (copy_in(ub(), x_at(), length=-1), 0, ""),
        (dataclasses.replace(REPEATED, repeat_times=300), 0, "LOAD"),
        (dataclasses.replace(REPEATED, mask=99), 0, "LOAD"),
        (dataclasses.replace(REPEATED, dst=ub(32), mask=16), 32, "LOAD"),
        (SHIFT, 0, "LOAD"),
        (DataCopy(dst=y_at(2), src=ub(), size_bytes=32, elem_bytes=4), 2, ""),
    ],
    ids=str,
)
def test_the_byte_and_its_last_writer(wrong: Instruction, byte: int, writer: str) -> None:
    ranges = (buffer("all", 0, 192), buffer("more", 256, 256))
    body = fenced(LOAD, FILL, wrong)
    program = MappedListing({3: body}, buffers=ranges)
    for copy_completion in COPY_COMPLETIONS:
        text, found = fault_and_writer(program, copy_completion=copy_completion)
        assert text.startswith(f"core 3, instruction 4, line 4 of core 3 ({wrong}): ")
        names = {"LOAD": f"instruction 0, line 0 of core 3 ({LOAD})"}
        names["FILL"] = f"instruction 2, line 2 of core 3 ({FILL})"
        if writer:
            assert found == f"byte {byte} of ub was last written by {names[writer]}"
        else:
            assert found.startswith(f"no instruction wrote byte {byte} of ")


def test_garbage_was_written_by_somebody_too() -> None:
    work = cast(f.FP32, f.FP16, None, count=24, dst=ub(128))
    store = copy_out(y_at(), ub(128), length=48)
    text, found = fault_and_writer(Listing({0: fenced(LOAD, work, store)}))
    assert text.endswith("whose byte 160 was written with garbage: garbage would reach GM")
    assert found == f"byte 160 of ub was last written, with garbage, by instruction 2 ({work})"


def test_a_race_names_both_and_the_last_writer() -> None:
    store = copy_out(y_at(), ub())
    before = (LOAD, *flag(HardEvent.MTE2_MTE3), store)
    program = Listing({0: [*before, PipeBarrier(of=Pipe.MTE2), LOAD]})
    for copy_completion in COPY_COMPLETIONS:
        text, found = fault_and_writer(program, copy_completion=copy_completion)
        now, then = (5, 3) if copy_completion == "latest" else (3, 5)
        assert text.startswith(f"core 0, instruction {now} (")
        assert f" while instruction {then} (" in text
        assert found.startswith("byte 0 of ub was last written by instruction ")


def test_another_core_and_its_instruction_are_named() -> None:
    stores = [copy_out(y_at(at), ub()) for at in (0, 64, 64)]
    bodies = {0: fenced(LOAD, *stores), 1: fenced(LOAD, copy_out(y_at(70), ub(), length=1))}
    text, found = fault_and_writer(MappedListing(bodies, buffers=(buffer("all", 0, 64),)))
    assert "writes byte 70 of gm.y, which core 0 wrote; cores are not ordered" in text
    name = f"core 0, instruction 6, line 6 of core 0 ({stores[2]})"
    assert found == f"byte 70 of gm.y was last written by {name}"


def test_a_fault_about_no_byte_has_no_writer() -> None:
    wait = flag(HardEvent.V_S)[1]
    text, found = fault_and_writer(Listing({0: [LOAD, wait]}))
    assert text == f"core 0, instruction 1 ({wait}): waits for ever: no instruction sets this flag"
    assert found == ""
