"""The trace: pipes in order, waits after their sets, the cycles of each instruction, faults."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pytest
from support.programs.listings import set_flag, wait_flag
from support.programs.tile_programs import CAST_IDS, CASTS, program_of

from simulator.machine.isa import (
    Cast,
    CastRepeat,
    DataCopy,
    DataCopyPad,
    GmAddress,
    HardEvent,
    Instruction,
    Pipe,
    PipeBarrier,
    SetCtrl,
    SetFlag,
    UbAddress,
    WaitFlag,
)
from simulator.machine.memory import SimulatorFault
from simulator.numbers import formats as f
from simulator.numbers.formats import Format
from simulator.numbers.rounding import RoundMode
from simulator.traces.trace import TraceEvent, timeline, trace
from tiling.chips import DEFAULT_CHIP, Chip
from tiling.cost import COST_SETS, CostParameters, cost_set

PTO = cost_set("pto-isa-910b3")
DOCUMENTED = cost_set("documented")
ISSUING = PTO.replaced("issuing", issue_cycles=5.0)
every_set = pytest.mark.parametrize("parameters", [*COST_SETS.values(), ISSUING], ids=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A program written out by hand, for any number of cores."""

    listing: Sequence[Instruction]
    cores: range = range(1)
    chip: Chip = DEFAULT_CHIP

    def instructions(self, core: int) -> Iterable[Instruction]:
        return self.listing


def run(
    *listing: Instruction, parameters: CostParameters = PTO, cores: int = 1
) -> list[TraceEvent]:
    events = list(trace(Listed(listing=listing, cores=range(cores)), 0, parameters))
    return sorted(events, key=lambda event: event.index)


def read(size_bytes: int) -> DataCopy:
    gm, ub = GmAddress(tensor="x", offset_bytes=0), UbAddress(offset_bytes=0)
    return DataCopy(dst=ub, src=gm, size_bytes=size_bytes, elem_bytes=4)


def write(size_bytes: int) -> DataCopy:
    gm, ub = GmAddress(tensor="y", offset_bytes=0), UbAddress(offset_bytes=0)
    return DataCopy(dst=gm, src=ub, size_bytes=size_bytes, elem_bytes=4)


def cast(count: int, src: Format = f.FP32, dst: Format = f.FP16) -> Cast:
    at = UbAddress(offset_bytes=0)
    return Cast(dst=at, src=at, dst_format=dst, src_format=src, mode=RoundMode.RINT, count=count)


def check_order(events: Sequence[TraceEvent]) -> None:
    """Asserts the order that every trace of one core keeps."""
    free: dict[Pipe, float] = defaultdict(float)
    sets: dict[int, TraceEvent] = {}
    by_pipe: dict[Pipe, list[int]] = defaultdict(list)
    for event in events:
        assert event.end_cycle >= event.start_cycle >= free[event.pipe]
        free[event.pipe] = event.end_cycle
        by_pipe[event.pipe].append(event.index)
        if isinstance(event.instruction, SetFlag):
            sets[event.index] = event
            assert event.edge is not None
            assert event.edge.set_index == event.index
        if isinstance(event.instruction, WaitFlag):
            assert event.edge is not None
            setter = sets.pop(event.edge.set_index)
            assert setter.end_cycle == event.edge.set_cycle <= event.end_cycle
            assert setter.edge == event.edge
            assert (event.instruction.event, event.instruction.event_id) == (
                event.edge.event,
                event.edge.event_id,
            )
    assert sets == {}
    assert all(indices == sorted(indices) for indices in by_pipe.values())
    assert sorted(event.index for event in events) == list(range(len(events)))


# --- Order and cycles --------------------------------------------------------------------------


@every_set
@pytest.mark.parametrize(("src", "dst", "saturate"), CASTS, ids=CAST_IDS)
def test_every_cast_keeps_order(
    src: Format, dst: Format, saturate: bool, parameters: CostParameters
) -> None:
    program = program_of((37, 300), (5, 64), src, dst, saturate=saturate)
    for core in (0, 1, 39):
        events = list(trace(program, core, parameters))
        assert [event.instruction for event in sorted(events, key=lambda e: e.index)] == list(
            program.instructions(core)
        )
        check_order(events)


@every_set
def test_a_tile_in_parts_keeps_order(parameters: CostParameters) -> None:
    check_order(list(trace(program_of((3, 32768), (1, 32768)), 0, parameters)))


def test_one_copy_one_cast_one_copy() -> None:
    copied, _, waited, done, *_, wrote = run(
        read(65536),
        set_flag(HardEvent.MTE2_V),
        wait_flag(HardEvent.MTE2_V),
        cast(128 * 64),
        set_flag(HardEvent.V_MTE3),
        wait_flag(HardEvent.V_MTE3),
        write(16384),
    )
    assert (copied.start_cycle, copied.end_cycle) == (0, 776)
    assert (waited.start_cycle, waited.end_cycle) == (0, 778)
    assert done.cycles == pytest.approx(142.2)
    assert wrote.start_cycle == pytest.approx(778 + 142.2 + 2)
    assert wrote.cycles == pytest.approx(107.3 + 16384 / 16.36)


def test_a_wait_may_come_before_its_set_in_the_program() -> None:
    wait, _, _ = run(wait_flag(HardEvent.MTE2_V), read(12800), set_flag(HardEvent.MTE2_V))
    assert wait.edge is not None
    assert (wait.edge.set_index, wait.end_cycle) == (2, 264 + 100 + 2)


def test_pipes_run_side_by_side_without_flags() -> None:
    events = run(read(65536), cast(64), write(3200))
    assert [event.start_cycle for event in events] == [0, 0, 0]


def test_the_scalar_pipe_issues_in_program_order() -> None:
    events = run(SetCtrl(bit=48, value=True), read(3200), cast(64), parameters=ISSUING)
    assert [event.start_cycle for event in events] == [0, 6, 11]
    events = run(read(512), set_flag(HardEvent.MTE2_S), wait_flag(HardEvent.MTE2_S), cast(64))
    assert events[-1].start_cycle == events[-2].end_cycle == 264 + 4 + 2


def test_a_barrier_of_every_pipe_holds_them_all() -> None:
    events = run(read(65536), cast(64), PipeBarrier(of=Pipe.ALL), cast(64), write(320))
    assert events[2].pipe is Pipe.S
    assert events[2].end_cycle == 777
    assert [event.start_cycle for event in events[3:]] == [777, 777]
    assert events[3].cycles == pytest.approx(events[1].cycles)


def test_a_stream_pays_its_start_up_once() -> None:
    listing = (cast(64), cast(64), PipeBarrier(of=Pipe.V), cast(64), cast(0))
    assert [e.cycles for e in run(*listing)] == pytest.approx([27.9, 0.9, 1, 27.9, 0])
    scaled = (cast(64, f.INT32, f.FP16), cast(64, f.INT32, f.FP16))
    assert [e.cycles for e in run(*scaled)] == pytest.approx([27.9, 27.9])


def test_repeats_are_of_the_wider_type() -> None:
    def cycles(instruction: Instruction) -> float:
        (event,) = run(instruction, parameters=DOCUMENTED)
        return event.cycles

    assert cycles(cast(65)) == 2
    assert cycles(cast(256, f.FP16, f.INT8)) == 2
    assert cycles(cast(128, f.FP16, f.FP32)) == 2
    assert cycles(cast(256, f.FP16, f.INT4)) == 2
    assert cycles(cast(64, f.INT64, f.FP32)) == 2
    at = UbAddress(offset_bytes=0)
    repeated = CastRepeat(
        **{"dst": at, "src": at, "dst_format": f.FP16, "src_format": f.FP32, "mode": None},
        **{"mask": 64, "repeat_times": 7},
    )
    assert cycles(repeated) == 7


def test_a_plain_copy_moves_whole_lines() -> None:
    whole, rest = run(read(100), read(31))
    # Less than a line of GM, of which three tenths of the bandwidth are lost.
    assert (whole.copied_bytes, whole.cycles) == (96, pytest.approx(264 + 0.75 / 0.7))
    assert (rest.copied_bytes, rest.cycles) == (0, 0)


def test_copies_of_a_core_share_its_part_of_gm() -> None:
    share = 1.6e12 / 1.85e9 / 40
    first, second = run(read(65536), write(65536), parameters=DOCUMENTED, cores=40)
    assert first.end_cycle == pytest.approx(14.2 + 65536 / share)
    assert second.end_cycle == pytest.approx(14.2 + 2 * 65536 / share)
    # Alone on the chip, each goes at its own speed.
    first, second = run(read(65536), write(65536), parameters=DOCUMENTED)
    assert first.end_cycle == second.end_cycle == 14.2 + 512


@pytest.mark.parametrize(
    ("offset", "blocks", "size", "gap", "lost"),
    [
        pytest.param(0, 1, 65536, 0, 0, id="on-lines"),
        pytest.param(0, 4, 512, 512, 0, id="rows-on-lines"),
        pytest.param(32, 1, 65536, 0, 512, id="no-more-than-a-line"),
        pytest.param(32, 1, 512, 0, 512 * 3 / 7, id="three-tenths"),
        pytest.param(0, 1, 65536 - 32, 0, 32, id="the-rest-of-the-last-line"),
        pytest.param(0, 4, 128, 128, 4 * 128 * 3 / 7, id="rows-off-lines"),
    ],
)
def test_blocks_off_the_lines_of_gm_count_for_more(
    offset: int, blocks: int, size: int, gap: int, lost: float
) -> None:
    copy = DataCopyPad(
        dst=UbAddress(offset_bytes=0),
        src=GmAddress(tensor="x", offset_bytes=offset),
        block_count=blocks,
        block_len_bytes=size,
        src_stride=gap,
        dst_stride=0,
        elem_bytes=4,
    )
    (event,) = run(copy, parameters=PTO)
    assert event.cycles == pytest.approx(264 + (blocks * size + lost) / 128)
    assert event.copied_bytes == blocks * size
    (event,) = run(copy, parameters=COST_SETS["pto-isa-any-address"])
    assert event.cycles == pytest.approx(264 + blocks * size / 128)


@pytest.mark.slow
@every_set
@pytest.mark.sampled(2)
def test_gm_is_never_busier_than_it_can_be(parameters: CostParameters) -> None:
    program = program_of((4096, 1024), (32, 256))
    added = timeline(e for core in program.cores for e in trace(program, core, parameters))
    seconds = added.makespan_cycles / parameters.clock_hz
    assert added.copied_bytes == 4096 * 1024 * 6
    rate = added.copied_bytes / seconds / parameters.gm_bytes_per_second
    assert 0.8 < rate <= 1


def test_whose_bytes_are_due_first_goes_first() -> None:
    """The next tile's copy in is later in the program, but starts before this tile's copy out."""
    events = list(trace(program_of((4000, 64), (40, 64)), 0, DOCUMENTED))
    copies = [e for e in events if e.copied_bytes]
    assert [e.pipe for e in copies[:4]] == [Pipe.MTE2, Pipe.MTE2, Pipe.MTE3, Pipe.MTE2]
    asked = [e.start_cycle for e in copies]
    assert asked == sorted(asked)


def test_double_buffering_overlaps_copies_and_casts() -> None:
    """On one core: the copy in of the next tile runs while a tile is cast and copied out."""
    whole = program_of((64 * 400, 128), (64, 128))
    events = [event for event in trace(whole, 0, PTO) if event.is_work]
    for tile in range(9):
        (copy_in,) = (e for e in events if e.pipe is Pipe.MTE2 and f"tile {tile + 1} " in e.where)
        (done,) = (e for e in events if e.pipe is Pipe.V and f"tile {tile} " in e.where)
        assert copy_in.start_cycle < done.end_cycle
        assert done.start_cycle < copy_in.end_cycle
    added = timeline(trace(whole, 0, PTO))
    assert sum(added.cores[0].busy_cycles.values()) > 1.3 * added.makespan_cycles


def test_the_sets_give_other_cycles() -> None:
    program = program_of((256, 128), (64, 128))
    spans = {p.name: timeline(trace(program, 0, p)).makespan_cycles for p in COST_SETS.values()}
    assert spans["documented"] < spans["pto-isa-910b3"]


def test_a_program_need_not_tell_its_tiles() -> None:
    assert {event.where for event in run(read(32), cast(8))} == {""}


# --- Faults ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("listing", "says"),
    [
        ((wait_flag(HardEvent.MTE2_V),), r"instruction 0 \(WaitFlag MTE2_V 0\) waits for ever"),
        ((wait_flag(HardEvent.V_S), set_flag(HardEvent.V_S)), "instruction 0 .* waits for ever"),
        ((set_flag(HardEvent.V_S),), r"instruction 0 \(SetFlag V_S 0\) is never waited for"),
        ((set_flag(HardEvent.V_S),) * 2, "instruction 1 .* is set, by instruction 0"),
        (
            (wait_flag(HardEvent.MTE2_V), PipeBarrier(of=Pipe.ALL), set_flag(HardEvent.MTE2_V)),
            "PipeBarrier ALL.* waits for ever",
        ),
    ],
    ids=["no-set", "dead-lock", "no-wait", "twice", "barrier"],
)
def test_flags_that_do_not_pair(listing: tuple[Instruction, ...], says: str) -> None:
    with pytest.raises(SimulatorFault, match=f"core 0: .*{says}"):
        run(*listing)


def test_a_core_without_work() -> None:
    with pytest.raises(ValueError, match="core 3 has no work"):
        trace(program_of((8, 8), (8, 8)), 3, PTO)
