"""Instructions that touch the same bytes without an order between them, in UB and in GM."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
from support.programs.listings import (
    FENCE,
    assert_race,
    cast,
    copy_in,
    copy_out,
    execute,
    execute_anyway,
    fault_at,
    flag,
    ub,
    x_at,
    y_at,
)

from simulator.machine.cast_table import CAST_TABLE
from simulator.machine.isa import (
    And,
    CastRepeat,
    Duplicate,
    HardEvent,
    Instruction,
    Pipe,
    PipeBarrier,
    SetDeqScale,
    SetFlag,
    WaitFlag,
)
from simulator.machine.memory import SimulatorFault
from simulator.numbers import formats as f
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3

RINT = RoundMode.RINT
A, B, C = ub(0), ub(1024), ub(2048)

UB_WRITES: dict[Pipe, Instruction] = {
    Pipe.MTE2: copy_in(A, x_at()),
    Pipe.V: Duplicate(dst=A, value=7, count=16),
}
UB_READS: dict[Pipe, Instruction] = {
    Pipe.V: cast(f.INT16, f.FP16, RINT, count=16, src=A, dst=B),
    Pipe.MTE3: copy_out(y_at(), A),
}
SET_UP = (copy_in(A, x_at()), copy_in(B, x_at()), copy_in(C, x_at()), FENCE)
"""All three lines hold something, and everybody knows it."""

Race = tuple[Instruction, str, Instruction, str]


def races() -> list[Race]:
    """Every pair of accesses to line A, one of them writing, by whichever pipes can make them."""
    accesses = [(i, "writes") for i in UB_WRITES.values()]
    accesses += [(i, "reads") for i in UB_READS.values()]
    return [
        (first, doing, second, verb)
        for (first, doing), (second, verb) in itertools.product(accesses, repeat=2)
        if "writes" in (doing, verb)
    ]


def race_id(race: object) -> str:
    if not isinstance(race, tuple):
        return str(race)
    first, doing, second, verb = race
    kind = {"writes-reads": "raw", "reads-writes": "war", "writes-writes": "waw"}
    return f"{kind[f'{doing}-{verb}']}-{first.pipe.name}-{second.pipe.name}".lower()


every_race = pytest.mark.parametrize("race", races(), ids=race_id)


def test_the_races_are_all_there_are() -> None:
    """Two pipes write UB, two read it: 4 RAW, 4 WAR, 4 WAW."""
    kinds = [race_id(race).split("-")[0] for race in races()]
    assert {kind: kinds.count(kind) for kind in kinds} == {"raw": 4, "war": 4, "waw": 4}


def order(first: Instruction, second: Instruction) -> tuple[Instruction, ...]:
    """Returns what puts one instruction before another: a flag, or a barrier on their own pipe."""
    if first.pipe is second.pipe:
        return (PipeBarrier(of=first.pipe),)
    return flag(HardEvent((first.pipe, second.pipe)))


def assert_they_race(race: Race, index: int, *body: Instruction) -> None:
    """The two accesses race in this program, where the first one is instruction `index`."""
    first, doing, second, verb = race
    last = max(i for i in range(len(body)) if body[i] == second)
    assert body[index] == first
    assert_race((last, verb, "ub+0..32"), (index, doing, "ub+0..32"), *body)


@every_race
def test_two_accesses_to_the_same_bytes_of_ub_have_an_order(race: Race) -> None:
    first, _, second, _ = race
    assert_they_race(race, 4, *SET_UP, first, second)
    execute_anyway(*SET_UP, first, *order(first, second), second)
    execute_anyway(*SET_UP, first, FENCE, second)


@every_race
def test_a_flag_set_before_the_access_says_nothing_of_it(race: Race) -> None:
    first, _, second, _ = race
    set_it, *wait = order(first, second)
    assert_they_race(race, 5, *SET_UP, set_it, first, *wait, second)


@every_race
def test_a_wait_after_the_access_comes_too_late(race: Race) -> None:
    first, _, second, _ = race
    *set_it, wait = order(first, second)
    assert_they_race(race, 4, *SET_UP, first, *set_it, second, wait)


@every_race
def test_a_flag_between_other_pipes_orders_nothing(race: Race) -> None:
    first, _, second, _ = race
    for event in HardEvent:
        # What the scalar pipe has waited for is over for all that it issues behind.
        if event.value not in ((first.pipe, second.pipe), (first.pipe, Pipe.S)):
            assert_they_race(race, 4, *SET_UP, first, *flag(event), second)


@every_race
def test_a_barrier_of_another_pipe_orders_nothing(race: Race) -> None:
    first, _, second, _ = race
    for pipe in (Pipe.S, Pipe.MTE2, Pipe.V, Pipe.MTE3):
        if not first.pipe is second.pipe is pipe:
            assert_they_race(race, 4, *SET_UP, first, PipeBarrier(of=pipe), second)


def test_other_bytes_have_no_quarrel() -> None:
    """Neither the line before nor the line after, whichever pipes they are."""
    for (near, far), line in itertools.product(itertools.permutations((0, 64)), (0, 1)):
        first = Duplicate(dst=ub(near), value=1, count=16)
        second = copy_in(ub(32 + 64 * line), x_at())
        third = cast(f.INT16, f.FP16, RINT, count=16, src=ub(far), dst=B)
        execute_anyway(first, second, third)
    execute_anyway(*SET_UP, copy_out(y_at(), C), UB_WRITES[Pipe.V])


def test_two_who_read_have_no_quarrel() -> None:
    reads = (*UB_READS.values(), copy_out(y_at(64), A), *UB_READS.values())[:3]
    execute_anyway(*SET_UP, *reads)
    execute_anyway(
        copy_in(A, x_at()), copy_in(B, x_at()), FENCE, copy_out(y_at(), A), copy_out(y_at(32), B)
    )


def test_knowledge_travels_with_flags() -> None:
    """MTE3 hears of MTE2 from V, which has waited for it."""
    store = copy_out(y_at(), A)
    chain = (*flag(HardEvent.MTE2_V), *flag(HardEvent.V_MTE3))
    assert execute_anyway(copy_in(A, x_at()), *chain, store)[:32].tolist() == list(range(32))
    # The other way round V set its flag before it had heard.
    mte2_v, v_waits = flag(HardEvent.MTE2_V)
    v_mte3, mte3_waits = flag(HardEvent.V_MTE3)
    body = (*SET_UP, copy_in(A, x_at()), mte2_v, v_mte3, v_waits, mte3_waits, store)
    assert_race((9, "reads", "ub+0..32"), (4, "writes", "ub+0..32"), *body)


def test_knowledge_travels_through_the_scalar_pipe() -> None:
    store = copy_out(y_at(), A)
    execute_anyway(copy_in(A, x_at()), *flag(HardEvent.MTE2_S), *flag(HardEvent.S_MTE3), store)
    execute_anyway(copy_in(A, x_at()), *flag(HardEvent.MTE2_S), store)
    early = (*SET_UP, *flag(HardEvent.MTE2_S), copy_in(A, x_at()), store)
    assert_race((7, "reads", "ub+0..32"), (6, "writes", "ub+0..32"), *early)
    body = (*SET_UP, copy_in(A, x_at()), *flag(HardEvent.S_MTE3), store)
    assert_race((7, "reads", "ub+0..32"), (4, "writes", "ub+0..32"), *body)


def test_a_round_trip_stands_for_a_barrier() -> None:
    """Once MTE2 has waited for V, and V for MTE2, V's own work before that is done."""
    first, second = UB_WRITES[Pipe.V], UB_READS[Pipe.V]
    execute_anyway(first, *flag(HardEvent.V_MTE2), *flag(HardEvent.MTE2_V), second)
    body = (first, *flag(HardEvent.MTE2_V), *flag(HardEvent.V_MTE2), second)
    assert_race((5, "reads", "ub+0..32"), (0, "writes", "ub+0..32"), *body)


def test_a_race_is_found_however_long_ago_the_other_was_issued() -> None:
    """The other pipes know of the first access only through a flag, never through time."""
    elsewhere = (Duplicate(dst=C, value=1, count=16), PipeBarrier(of=Pipe.V)) * 200
    body = (copy_in(A, x_at()), *elsewhere, UB_READS[Pipe.V])
    assert_race((401, "reads", "ub+0..32"), (0, "writes", "ub+0..32"), *body)
    execute_anyway(
        copy_in(A, x_at()), *elsewhere, *flag(HardEvent.MTE2_V), *elsewhere, UB_READS[Pipe.V]
    )


def test_gaps_between_rows_are_free() -> None:
    """Two copies may interleave their rows, but not by a line less."""
    rows = copy_in(A, x_at(), count=4, length=32, ub_gap=1)
    between = Duplicate(dst=ub(32), value=1, count=16)
    execute_anyway(rows, between, copy_in(ub(96), x_at(), count=2, length=32, ub_gap=1))
    mine = (0, "writes", "ub+0..224")
    longer = Duplicate(dst=ub(32), value=1, count=17)
    assert_race((1, "writes", "ub+32..66"), mine, rows, longer)
    wider = copy_in(ub(64), x_at(), count=2, length=32, ub_gap=3)
    assert_race((1, "writes", "ub+64..224"), mine, rows, wider)


def test_a_line_is_written_to_its_end() -> None:
    """A copy in fills its last line, a copy out reads no more than its blocks."""
    short = copy_in(A, x_at(), length=2)
    accesses = (1, "writes", "ub+0..32"), (0, "writes", "ub+0..32")
    assert_race(*accesses, short, copy_in(A, x_at(64), length=2))
    execute_anyway(short, copy_in(ub(32), x_at(64), length=2))


@pytest.mark.parametrize("reader", ["MTE3", "V"])
@pytest.mark.parametrize("knower", ["MTE2", "nobody"])
def test_a_race_does_not_age(reader: str, knower: str) -> None:
    """A hundred accesses later it is one still, even where another pipe knows of the first."""
    pipe = Pipe[reader]
    first = UB_READS[pipe]
    told = flag(HardEvent((pipe, Pipe.MTE2))) if knower == "MTE2" else ()
    between = {
        Pipe.MTE3: [copy_out(y_at(64 + i), C, length=1) for i in range(100)],
        Pipe.V: [Duplicate(dst=ub(4096 + 32 * i), value=1, count=1) for i in range(100)],
    }[pipe]
    last = Duplicate(dst=A, value=9, count=16) if pipe is Pipe.MTE3 else copy_out(y_at(), B)
    body = (*SET_UP, first, *told, *between, last)
    accesses = ("writes", "ub+0..32"), ("reads", "ub+0..32")
    if pipe is Pipe.V:
        accesses = ("reads", "ub+1024..1056"), ("writes", "ub+1024..1056")
    assert_race((len(body) - 1, *accesses[0]), (4, *accesses[1]), *body)
    execute_anyway(*body[:-1], *flag(HardEvent((pipe, last.pipe))), last)


# --- Masks -------------------------------------------------------------------------------------


def by_mask(mask: int | tuple[int, int], dst: int = 1024, times: int = 1) -> CastRepeat:
    """INT16 to FP16: 128 lanes of two bytes in eight blocks."""
    return CastRepeat(
        dst=ub(dst),
        src=ub(4096),
        dst_format=f.FP16,
        src_format=f.INT16,
        mode=RINT,
        mask=mask,
        repeat_times=times,
    )


EVEN, ODD = 0x5555_5555_5555_5555, 0xAAAA_AAAA_AAAA_AAAA


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (5, (2**64 - 2**5, 2**64 - 1)),
        ((EVEN, EVEN), (ODD, ODD)),
        ((0, EVEN), (2**64 - 1, ODD)),
        (64, (0, 2**64 - 1)),
        ((1, 0), (2, 0)),
    ],
    ids=str,
)
@pytest.mark.parametrize("times", [1, 3])
def test_lanes_that_masks_choose_are_all_that_is_written(
    one: int | tuple[int, int], other: int | tuple[int, int], times: int
) -> None:
    first, second = by_mask(one, times=times), by_mask(other, times=times)
    fill = Duplicate(dst=ub(4096), value=3, count=128 * times)
    execute_anyway(fill, FENCE, first, second)
    lanes = (one, 0) if isinstance(one, int) else one
    bits = (1 << one) - 1 if isinstance(one, int) else lanes[0] | lanes[1] << 64
    words = other if isinstance(other, tuple) else (other, 0)
    for lane in (0, 4, 63, 64, 127):
        if bits >> lane & 1:
            shared = (
                (words[0] | 1 << lane, words[1])
                if lane < 64
                else (words[0], words[1] | 1 << lane - 64)
            )
            with pytest.raises(SimulatorFault, match="no flag or barrier puts V before V"):
                execute(fill, FENCE, first, by_mask(shared, times=times))


def test_masked_lanes_of_a_later_repeat_are_written_too() -> None:
    first = by_mask((EVEN, EVEN), times=3)
    fill = Duplicate(dst=ub(4096), value=3, count=384)
    execute_anyway(fill, FENCE, first, by_mask((ODD, ODD), dst=1024 + 512))
    assert "puts V before V" in fault_at(3, fill, FENCE, first, by_mask((EVEN, 0), dst=1024 + 512))


@pytest.mark.parametrize("times", [1, 2])
def test_the_last_block_may_be_active_in_part(times: int) -> None:
    """Lanes 16 to 20 are ten bytes of the second block, of the last repeat too."""
    first = by_mask(21, times=times)
    fill = Duplicate(dst=ub(4096), value=3, count=128 * times)
    end = 1024 + 256 * (times - 1) + 42
    behind = Duplicate(dst=ub(end // 32 * 32), value=1, count=5)
    assert "puts V before V" in fault_at(3, fill, FENCE, first, behind)
    rest = by_mask((0b111 << 21, 0), times=times)
    execute_anyway(fill, FENCE, first, rest)
    execute_anyway(fill, FENCE, first, Duplicate(dst=ub(end // 32 * 32 + 32), value=1, count=5))
    assert "puts V before V" in fault_at(
        3, fill, FENCE, first, by_mask((0b111 << 20, 0), times=times)
    )


def test_a_repeat_may_write_between_the_blocks_of_another() -> None:
    spread = dataclasses.replace(by_mask(128), dst_blk_stride=2)
    shifted = dataclasses.replace(spread, dst=ub(1024 + 32))
    fill = Duplicate(dst=ub(4096), value=3, count=128)
    execute_anyway(fill, FENCE, spread, shifted)
    touching = dataclasses.replace(spread, dst=ub(1024 + 64))
    assert "puts V before V" in fault_at(3, fill, FENCE, spread, touching)


# --- GM ----------------------------------------------------------------------------------------


def test_a_core_reads_back_what_it_wrote_once_it_is_there() -> None:
    store, load = copy_out(y_at(), A), copy_in(B, y_at())
    again = (*flag(HardEvent.MTE2_MTE3), copy_out(y_at(32), B))
    accesses = (5, "reads", "gm.y+0..32"), (4, "writes", "gm.y+0..32")
    assert_race(*accesses, *SET_UP, store, load)
    y = execute_anyway(*SET_UP, store, *flag(HardEvent.MTE3_MTE2), load, *again)
    assert y[32:64].tolist() == list(range(32))


def test_a_core_overwrites_what_it_has_read() -> None:
    load, store = copy_in(C, y_at()), copy_out(y_at(), A)
    ready = (copy_in(A, x_at()), FENCE)
    accesses = (3, "writes", "gm.y+0..32"), (2, "reads", "gm.y+0..32")
    assert_race(*accesses, *ready, load, store)
    execute_anyway(*ready, load, *flag(HardEvent.MTE2_MTE3), store)
    execute_anyway(*ready, load, copy_out(y_at(32), A))


def test_a_core_writes_gm_twice_in_order() -> None:
    first, second = copy_out(y_at(), A), copy_out(y_at(31), C)
    accesses = (5, "writes", "gm.y+31..63"), (4, "writes", "gm.y+0..32")
    assert_race(*accesses, *SET_UP, first, second)
    y = execute_anyway(*SET_UP, first, PipeBarrier(of=Pipe.MTE3), second)
    assert y[:63].tolist() == [*range(31), *range(32)]
    execute_anyway(*SET_UP, first, copy_out(y_at(32), C))


def test_rows_of_gm_interleave() -> None:
    even = copy_out(y_at(), A, count=4, length=8, gap=8)
    odd = copy_out(y_at(8), B, count=4, length=8, gap=8)
    lines = (copy_in(A, x_at(), length=128), copy_in(B, x_at(), length=128), FENCE)
    execute_anyway(*lines, even, odd)
    accesses = (4, "writes", "gm.y+7..63"), (3, "writes", "gm.y+0..56")
    assert_race(*accesses, *lines, even, copy_out(y_at(7), B, count=4, length=8, gap=8))


# --- The same instruction ----------------------------------------------------------------------


def test_source_and_destination_are_the_same_bytes_or_none() -> None:
    ready = (copy_in(A, x_at(), length=256), FENCE)

    def moved(offset: int) -> Instruction:
        return cast(f.FP32, f.INT32, RINT, count=16, src=ub(256), dst=ub(256 + offset))

    for offset in (0, 64, -64, 96):
        execute_anyway(*ready, moved(offset))
    for offset in (32, -32):
        assert fault_at(2, *ready, moved(offset)) == (
            f"source ub+256..320 and destination ub+{256 + offset}..{320 + offset} overlap in "
            "part; only the same bytes may be both"
        )


@pytest.mark.parametrize(("src", "dst"), CAST_TABLE[A2_A3], ids=str)
def test_in_place_no_format_widens(src: f.Format, dst: f.Format) -> None:
    ready = (SetDeqScale(scale=1.0), FENCE)
    mode = None if CAST_TABLE[A2_A3][src, dst].has_none else RoundMode.RINT
    in_place = cast(src, dst, mode, count=16, src=A, dst=A)
    if dst.bits > src.bits:
        assert "overlap in part" in fault_at(2, *ready, in_place)
    else:
        execute_anyway(*ready, in_place)


@pytest.mark.parametrize("offset", [32, -32])
def test_narrowing_in_place_starts_where_its_source_does(offset: int) -> None:
    moved = cast(f.FP32, f.FP16, None, count=32, src=ub(256), dst=ub(256 + offset))
    assert "overlap in part" in fault_at(0, moved)
    execute_anyway(cast(f.FP32, f.FP16, None, count=16, src=ub(256), dst=ub(256 + 64)))


def test_and_writes_where_it_reads() -> None:
    ready = (copy_in(A, x_at(), length=256), FENCE)
    execute_anyway(*ready, And(dst=A, src0=A, src1=ub(128), count=16))
    execute_anyway(*ready, And(dst=ub(64), src0=A, src1=ub(32), count=16))


def test_and_may_not_overlap_itself_in_part() -> None:
    ready = (copy_in(A, x_at(), length=256), FENCE)
    assert "overlap in part" in fault_at(2, *ready, And(dst=ub(32), src0=A, src1=A, count=32))


def test_a_wait_and_a_set_touch_nothing() -> None:
    writes = UB_WRITES[Pipe.V]
    event = HardEvent.V_MTE3
    execute_anyway(writes, SetFlag(event=event, event_id=1), WaitFlag(event=event, event_id=1))
