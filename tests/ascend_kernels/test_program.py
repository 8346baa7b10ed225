"""TileProgram: which instructions it consists of, and how it reads."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.programs.tile_programs import CAST_IDS, CASTS, copies, program_of, shapes

from ascend_kernels.program import TileProgram
from simulator.machine.execute import run
from simulator.machine.isa import (
    AndRepeat,
    Cast,
    CastRepeat,
    DataCopyPad,
    Duplicate,
    Instruction,
    Pipe,
    PipeBarrier,
    RestoreCtrl,
    SetCtrl,
    SetDeqScale,
    SetFlag,
    UbAddress,
    WaitFlag,
)
from simulator.numbers import formats as f
from simulator.numbers.formats import Format
from simulator.numbers.rounding import RoundMode
from tiling.chips import DEFAULT_CHIP
from tiling.grid import Shape

UB_BYTES = 196608
SAFE_BYTES = 188160
Bytes = npt.NDArray[np.uint8]

every_cast = pytest.mark.parametrize(("src", "dst", "saturate"), CASTS, ids=CAST_IDS)


# --- Which instructions ------------------------------------------------------------------------


def vector_work(program: TileProgram) -> list[Instruction]:
    """Returns the instructions of core 0 that neither move data nor wait for it."""
    elsewhere = (DataCopyPad, SetFlag, WaitFlag, PipeBarrier)
    return [i for i in program.instructions(0) if not isinstance(i, elsewhere)]


@pytest.mark.parametrize(
    ("shape", "tile_shape", "pair"),
    [
        ((100, 200), (16, 64), (f.FP32, f.FP16)),
        ((2, 3, 5, 70), (2, 2, 4, 32), (f.FP32, f.INT16)),
        ((40, 1030), (40, 1030), (f.FP16, f.UINT8)),
        ((12, 66), (5, 64), (f.FP16, f.INT4)),
    ],
)
def test_alike_parts_are_written_once(
    shape: Shape,
    tile_shape: Shape,
    pair: tuple[Format, Format],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are those of a program that writes each part anew, though tails come in between."""
    program = program_of(shape, tile_shape, *pair)
    written: Counter[object] = Counter()
    body = TileProgram._body

    def counted(self: TileProgram, *key: Any) -> Any:
        written[key] += 1
        return body(self, *key)

    monkeypatch.setattr(TileProgram, "_body", counted)
    for core in program.cores:
        for number, part in enumerate(program.parts(core)):
            slot, reused = number % 2, number >= 2
            anew = program_of(shape, tile_shape, *pair)
            written.clear()
            expected = list(anew.part_instructions(part, slot, reused))
            assert sum(written.values()) == 1
            assert list(program.part_instructions(part, slot, reused)) == expected
    written.clear()
    again = program_of(shape, tile_shape, *pair)
    for core in program.cores:
        assert list(again.instructions(core)) == list(program.instructions(core))
    assert set(written.values()) == {1}
    assert len(written) < 2 * len(program.plan.grid) or len(program.plan.grid) < 3
    assert (again, hash(again), repr(again)) == (program, hash(program), repr(program))


def test_set_up_comes_first_and_once_a_core() -> None:
    program = program_of((64,), (32,), f.INT32, f.FP16)
    assert list(program.prologue()) == [
        SetCtrl(bit=48, value=True),
        SetCtrl(bit=59, value=False),
        SetDeqScale(scale=1.0),
    ]
    for core in program.cores:
        listed = list(program.instructions(core))
        assert listed[:3] == list(program.prologue())
        assert not any(isinstance(i, (SetCtrl, SetDeqScale)) for i in listed[3:])


@pytest.mark.parametrize("inf_nan_mode", [True, False])
def test_the_overflow_mode_is_a_control_bit(inf_nan_mode: bool) -> None:
    program = program_of((64,), (64,), inf_nan_mode=inf_nan_mode)
    assert list(program.prologue()) == [
        SetCtrl(bit=48, value=inf_nan_mode),
        SetCtrl(bit=59, value=False),
    ]


def test_keeping_low_bits_switches_the_control_bit_and_back() -> None:
    clamped = vector_work(program_of((64,), (64,), f.FP32, f.INT16))
    assert [type(i) for i in clamped] == [SetCtrl, SetCtrl, Cast, RestoreCtrl]
    program = program_of((6400,), (64,), f.FP32, f.INT16, saturate=False)
    work = vector_work(program)
    assert type(work.pop()) is RestoreCtrl
    bits = [i.value if isinstance(i, SetCtrl) else None for i in work]
    assert bits[:2] == [True, False]
    per_pass = [None, True, None, False]
    assert bits[2:] == per_pass * len(program.plan.core_tiles(0))


def test_each_pass_copies_in_computes_and_copies_out() -> None:
    program = program_of((3, 16 * 50), (2, 16))
    for core in program.cores:
        kinds = [type(i) for i in program.instructions(core) if isinstance(i, (DataCopyPad, Cast))]
        tiles = len(program.plan.core_tiles(core))
        assert tiles in (2, 3)
        spans = [kind for kind, _ in itertools.groupby(kinds)]
        assert spans == [DataCopyPad, Cast] * tiles + [DataCopyPad]


def test_flags_hand_a_slot_on_and_give_it_back() -> None:
    """Four tiles of one core: the first two find their slots free, the last wait is for both."""
    program = program_of((16 * 160,), (16,))
    arrived = ["in", "SetFlag MTE2_V", "WaitFlag MTE2_V"]
    left = ["SetFlag V_MTE2", "SetFlag V_MTE3", "WaitFlag V_MTE3", "out", "SetFlag MTE3_V"]
    fresh = [*arrived, "cast", *left]
    reused = ["WaitFlag V_MTE2", *arrived, "WaitFlag MTE3_V", "cast", *left]
    back = ["WaitFlag V_MTE2", "WaitFlag MTE3_V"]
    steps = [(s, 0) for s in fresh] + [(s, 1) for s in fresh]
    steps += [(s, 0) for s in reused] + [(s, 1) for s in reused]
    steps += [("restore", 0)]
    steps += [(s, 0) for s in back] + [(s, 1) for s in back]

    found = []
    ub = program.plan.ub
    slots = {ub.buffer(role, n).offset_bytes: n for role in ("in", "out") for n in (0, 1)}
    for i in list(program.instructions(3))[2:]:
        if isinstance(i, (SetFlag, WaitFlag)):
            found.append((f"{type(i).__name__} {i.event.name}", i.event_id))
        elif isinstance(i, Cast):
            assert slots[i.src.offset_bytes] == slots[i.dst.offset_bytes]
            found.append(("cast", slots[i.src.offset_bytes]))
        elif isinstance(i, RestoreCtrl):
            found.append(("restore", 0))
        else:
            assert isinstance(i, DataCopyPad)
            coming = isinstance(i.dst, UbAddress)
            address = i.dst if coming else i.src
            assert isinstance(address, UbAddress)
            found.append(("in" if coming else "out", slots[address.offset_bytes]))
    assert found == steps


@pytest.mark.parametrize("tiles", [1, 2, 3])
def test_a_core_of_few_tiles_waits_for_the_slots_it_used(tiles: int) -> None:
    """Whatever is set is waited for, however few tiles there are."""
    listed = list(program_of((16 * tiles * 40,), (16,)).instructions(0))
    flags = [
        [(i.event, i.event_id) for i in listed if isinstance(i, kind)]
        for kind in (SetFlag, WaitFlag)
    ]
    assert Counter(flags[0]) == Counter(flags[1])
    assert len(flags[0]) == 4 * tiles
    assert {event_id for _, event_id in flags[0]} == set(range(min(tiles, 2)))


def test_barriers_part_steps_that_hand_data_to_each_other() -> None:
    """Casts of several rows belong to one step and need none; the five steps of OFF need five."""
    one_step = list(program_of((3, 20), (3, 20)).instructions(0))
    assert not any(isinstance(i, PipeBarrier) for i in one_step)
    listed = list(program_of((64,), (64,), f.FP16, f.INT8, saturate=False).instructions(0))
    work = [type(i) for i in listed if isinstance(i, (Cast, Duplicate, AndRepeat, PipeBarrier))]
    assert work[:9] == [
        *(Cast, PipeBarrier, Cast, PipeBarrier, Duplicate, PipeBarrier, AndRepeat, PipeBarrier),
        Cast,
    ]
    assert work[9:] == [PipeBarrier, Cast]
    assert {i.of for i in listed if isinstance(i, PipeBarrier)} == {Pipe.V}


def casts(program: TileProgram) -> list[Cast | CastRepeat]:
    return [i for i in program.instructions(0) if isinstance(i, (Cast, CastRepeat))]


def test_one_cast_spans_rows_that_lie_equally_far_apart() -> None:
    """20 elements take 24 places where both sides are FP32; where one is FP16, 32."""

    def found(dst: Format) -> list[tuple[int, int, int]]:
        return [
            (i.src.offset_bytes, i.dst.offset_bytes, i.count)
            for i in casts(program_of((3, 40), (3, 20), f.FP32, dst))
            if isinstance(i, Cast)
        ]

    assert found(f.FP32) == [(0, 288, 2 * 24 + 20)]
    assert found(f.FP16) == [(0, 384, 2 * 32 + 20)]


def test_casts_by_repeats_where_one_pitch_has_no_room() -> None:
    """1400 rows of 2 elements twice: 128 B a row as they are, 192 B at one pitch."""
    program = program_of((2800, 4), (1400, 2))
    assert not program.plan.ub.has_one_pitch
    found = casts(program)
    assert [i.repeat_times for i in found if isinstance(i, CastRepeat)] == [255] * 5 + [125]
    for number, cast in enumerate(found):
        assert isinstance(cast, CastRepeat)
        assert (cast.mask, cast.src_rep_stride, cast.dst_rep_stride) == (2, 1, 1)
        assert cast.src == UbAddress(offset_bytes=32 * 255 * number)


def test_casts_by_rows_where_repeats_would_be_more() -> None:
    """3 rows of 5220 elements twice: 188064 B as they are, 188352 B at one pitch."""
    program = program_of((6, 10440), (3, 5220))
    assert not program.plan.ub.has_one_pitch
    assert [i.count for i in casts(program) if isinstance(i, Cast)] == [5220] * 3


def test_equal_parts_instead_of_a_full_one_and_a_scrap() -> None:
    """30 of the 32 rows fit twice."""
    program = program_of((4096, 1024), (32, 512))
    assert {part.shape for core in program.cores for part in program.parts(core)} == {(16, 512)}


def test_the_mask_of_low_bytes_is_one_block() -> None:
    program = program_of((100, 33), (100, 33), f.FP16, f.INT8, RoundMode.TRUNC, saturate=False)
    work = list(program.instructions(0))
    assert [i.count for i in work if isinstance(i, Duplicate)] == [16]
    found = [i for i in work if isinstance(i, AndRepeat)]
    assert [(i.mask, i.repeat_times) for i in found] == [(128, 25), (100, 1)]
    for each in found:
        assert (each.src1_blk_stride, each.src1_rep_stride) == (0, 0)
        assert each.src1 == program_ub(program, "tmp")
    assert [i.dst.offset_bytes - i.src0.offset_bytes for i in found] == [0, 0]
    assert found[1].dst.offset_bytes == 25 * 256


def program_ub(program: TileProgram, role: str) -> UbAddress:
    return UbAddress(offset_bytes=program.plan.ub.buffer(role).offset_bytes)


def test_passes_take_turns_at_the_slots() -> None:
    program = program_of((16 * 400,), (16,))
    slots = {program.plan.ub.buffer("in", slot).offset_bytes: slot for slot in (0, 1)}
    coming = [
        slots[c.dst.offset_bytes]
        for c in program.instructions(3)
        if isinstance(c, DataCopyPad) and isinstance(c.dst, UbAddress)
    ]
    assert coming == [0, 1] * 5


# --- Scratch -----------------------------------------------------------------------------------


def test_passes_of_a_tile_for_which_scratch_leaves_no_room() -> None:
    """FP16 -> INT8 OFF, all codes in one tile: 196608 B without scratch, so it goes in parts."""
    program = program_of((65536,), (65536,), f.FP16, f.INT8, RoundMode.TRUNC, saturate=False)
    ub = program.plan.ub
    assert program.plan.tile_shape == (65536,)
    assert program.plan.tile_bytes == UB_BYTES
    assert ub.pass_shape[0] < 65536
    end = 0
    for buffer in ub.buffers:
        assert buffer.offset_bytes >= end
        end = buffer.offset_bytes + buffer.size_bytes
    assert end <= SAFE_BYTES

    codes = np.arange(65536, dtype=np.uint16)
    gm: dict[str, Bytes] = {"x": codes.view(np.uint8), "y": np.full(65536, 0xEE, np.uint8)}
    run(program, gm)
    values = codes.view(np.float16).astype(np.float32)
    finite = np.isfinite(values)
    wanted = np.zeros(65536, np.uint8)
    wanted[finite] = np.trunc(values[finite]).astype(np.int64) & 0xFF
    wanted[values == np.inf] = 0xFF
    np.testing.assert_array_equal(gm["y"], wanted)
    parts = [c for c in copies(program) if isinstance(c.dst, UbAddress)]
    assert [c.block_len_bytes // 2 for c in parts] == [16384] * 4
    assert "part 0 of 4" in str(program)


@given(shapes(last=20), st.sampled_from([p for p in CASTS if not p[2]]))
@settings(deadline=None, max_examples=40)
def test_no_result_depends_on_the_tile(
    drawn: tuple[Shape, Shape], what: tuple[Format, Format, bool]
) -> None:
    (shape, tile), (src, dst, saturate) = drawn, what
    elems = math.prod(shape)
    rng = np.random.default_rng(elems)
    x = rng.integers(0, 256, elems * src.bits // 8, dtype=np.uint8)
    results = []
    for tiling in (tile, shape):
        gm: dict[str, Bytes] = {"x": x.copy(), "y": np.full(elems * dst.bits // 8, 0xEE, np.uint8)}
        program = program_of(shape, tiling, src, dst, saturate=saturate)
        run(program, gm)
        np.testing.assert_array_equal(gm["x"], x)
        results.append(gm["y"])
    np.testing.assert_array_equal(results[0], results[1])


# --- The object --------------------------------------------------------------------------------


def test_a_program_prints_plan_buffers_set_up_and_one_tile() -> None:
    program = program_of((100, 40), (32, 16), f.FP32, f.FP16, RoundMode.CEIL)
    lines = str(program).splitlines()
    assert lines[0] == "TileProgram FP32 -> FP16 CAST_CEIL"
    assert lines[1] == f"  plan    {program.plan}"
    assert [line for line in lines if line.startswith("  buffer ")] == [
        "  buffer  in0: ub+0, 2048 B",
        "  buffer  out0: ub+2048, 1024 B",
        "  buffer  in1: ub+3072, 2048 B",
        "  buffer  out1: ub+5120, 1024 B",
    ]
    assert [line for line in lines if line.startswith("  set up ")] == [
        "  set up  SetCtrl [48] <- 1",
        "  set up  SetCtrl [59] <- 0",
    ]
    assert lines[8] == "  tile 0 of 12; the others alike"
    assert lines[9:] == [
        "    MTE2  DataCopyPad ub+0 <- gm.x+0  blocks=32 x 64 B, srcStride=96, dstStride=0",
        "    MTE2  SetFlag MTE2_V 0",
        "    V     WaitFlag MTE2_V 0",
        "    V     Cast ub+2048:FP16 <- ub+0:FP32  CAST_CEIL, count=512",
        "    V     SetFlag V_MTE2 0",
        "    V     SetFlag V_MTE3 0",
        "    MTE3  WaitFlag V_MTE3 0",
        "    MTE3  DataCopyPad gm.y+0 <- ub+2048  blocks=32 x 32 B, srcStride=0, dstStride=48",
        "    MTE3  SetFlag MTE3_V 0",
    ]


@every_cast
def test_what_is_printed_is_what_core_0_runs_first(
    src: Format, dst: Format, saturate: bool
) -> None:
    program = program_of((6, 64), (2, 64), src, dst, saturate=saturate)
    head, _, tile = str(program).partition("  tile 0 of 3; the others alike\n")
    set_up = [line.split("set up  ")[1] for line in head.splitlines() if "set up  " in line]
    printed = [line.split(maxsplit=1) for line in tile.splitlines()]
    *first, restore, wait_v, wait_mte3 = program.instructions(0)
    assert restore == RestoreCtrl()
    assert set_up + [text for _, text in printed] == [str(i) for i in first]
    assert [pipe for pipe, _ in printed] == [i.pipe.name for i in first[len(set_up) :]]
    assert [str(wait_v), str(wait_mte3)] == ["WaitFlag V_MTE2 0", "WaitFlag MTE3_V 0"]


@every_cast
def test_equal_programs_are_equal_and_hash_alike(src: Format, dst: Format, saturate: bool) -> None:
    first = program_of((6, 64), (2, 64), src, dst, saturate=saturate)
    again = program_of((6, 64), (2, 64), src, dst, saturate=saturate)
    assert first.plan is not again.plan
    assert first == again
    assert hash(first) == hash(again)
    for other in (
        program_of((6, 64), (3, 64), src, dst, saturate=saturate),
        program_of((6, 64), (2, 64), src, dst, saturate=saturate, inf_nan_mode=False),
    ):
        assert first != other
    assert len({first, again, other}) == 2


def test_programs_of_other_modes_differ() -> None:
    programs = {program_of((64,), (64,), mode=mode) for mode in RoundMode}
    assert len(programs) == 6
    assert program_of((64,), (64,)) in programs


def test_a_program_of_two_billion_tiles_is_lazy() -> None:
    program = program_of((2147483647,), (1,))
    tracemalloc.start()
    first = list(itertools.islice(program.instructions(0), 50))
    last = list(itertools.islice(program.instructions(39), 5))
    text = str(program)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 1_000_000
    assert len(first) == 50
    assert isinstance(last[2], DataCopyPad)
    start = program.plan.core_tiles(39).start
    assert str(last[2].src) == f"gm.x+{4 * start}"
    assert "tile 0 of 2147483647" in text


def test_only_cores_with_tiles_run() -> None:
    assert program_of((48,), (16,)).cores == range(3)
    assert program_of((16 * 41,), (16,)).cores == range(40)
    assert program_of((48,), (16,)).chip is DEFAULT_CHIP
