"""Several cores over one GM, the buffers of UB, and where a fault says it happened."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from support.programs.listings import (
    UB_BYTES,
    UNTOUCHED,
    Bytes,
    Listing,
    MappedListing,
    buffer,
    cast,
    chip_of,
    copy_in,
    copy_out,
    fault_of,
    fenced,
    memory,
    ub,
    x_at,
    y_at,
)

from ascend_kernels.matrix import resolve
from ascend_kernels.program import TileProgram, lower
from simulator.machine.execute import ElementwiseProgram, MappedProgram, run
from simulator.machine.isa import (
    Cast,
    DataCopyPad,
    Duplicate,
    GmAddress,
    HardEvent,
    Instruction,
    SetFlag,
    UbAddress,
    WaitFlag,
)
from simulator.machine.memory import UbRange
from simulator.machine.pipes import COPY_COMPLETIONS, CopyCompletion
from simulator.numbers import formats as f
from tiling.chips import A2_A3
from tiling.plan import plan
from tiling.ub import ElementBits

NOT_ORDERED = "cores are not ordered"


# --- Several cores -----------------------------------------------------------------------------


def through(core: int, *, at: int, length: int = 32) -> list[Instruction]:
    """Returns the instructions by which a core brings the first bytes of x to y."""
    return fenced(copy_in(ub(), x_at(), length=length), copy_out(y_at(at), ub(), length=length))


@pytest.mark.parametrize("overlap", [1, 5, 32])
def test_a_byte_of_gm_is_written_by_one_core(overlap: int) -> None:
    at = 32 - overlap
    program = Listing({0: through(0, at=0), 1: through(1, at=at)})
    assert fault_of(program) == (
        f"core 1, instruction 2 ({program.bodies[1][-1]}): writes byte {at} of gm.y, which core 0 "
        f"wrote; {NOT_ORDERED}"
    )
    gm = memory()
    run(Listing({0: through(0, at=0), 1: through(1, at=32)}), gm)
    assert gm["y"][:64].tolist() == [*range(32), *range(32)]


def test_not_even_the_same_bytes_are_written_twice() -> None:
    program = Listing({core: through(core, at=64) for core in range(3)})
    assert "writes byte 64 of gm.y, which core 0 wrote" in fault_of(program)


def test_rows_of_two_cores_interleave() -> None:
    def rows(at: int) -> list[Instruction]:
        return fenced(
            copy_in(ub(), x_at(at), count=4, length=8, gap=8),
            copy_out(y_at(at), ub(), count=4, length=8, gap=8),
        )

    gm = memory()
    run(Listing({0: rows(0), 1: rows(8)}), gm)
    assert gm["y"][:64].tolist() == list(range(64))
    text = fault_of(Listing({0: rows(0), 1: rows(7)}))
    assert "writes byte 7 of gm.y, which core 0 wrote" in text


def test_what_another_core_wrote_is_not_read() -> None:
    program = Listing({0: through(0, at=0), 1: [copy_in(ub(), y_at(31))]})
    assert fault_of(program) == (
        f"core 1, instruction 0 ({program.bodies[1][0]}): reads byte 31 of gm.y, which core 0 "
        f"wrote; {NOT_ORDERED}"
    )
    run(Listing({0: through(0, at=0), 1: [copy_in(ub(), y_at(32))]}), memory())
    run(Listing({core: [copy_in(ub(), x_at())] for core in range(4)}), memory())


def test_what_another_core_will_write_is_not_read_either() -> None:
    program = Listing({0: [copy_in(ub(), y_at(31))], 1: through(1, at=0)})
    assert NOT_ORDERED in fault_of(program)


def test_one_core_may_read_and_overwrite_its_own() -> None:
    body = fenced(*through(0, at=0), copy_in(ub(64), y_at()), copy_out(y_at(16), ub(64)))
    gm = memory()
    run(Listing({5: body}), gm)
    assert gm["y"][:48].tolist() == [*range(16), *range(32)]


def test_48_cores_have_48_names() -> None:
    bodies = {core: through(core, at=32 * core) for core in range(48)}
    gm = memory(y_bytes=48 * 32)
    run(Listing(bodies, chip=chip_of(48)), gm)
    assert (gm["y"].reshape(48, 32) == np.arange(32)).all()
    bodies[47] = through(47, at=32 * 46)
    text = fault_of(Listing(bodies), memory(y_bytes=48 * 32))
    assert text.startswith("core 47, instruction 2 ")
    assert "which core 46 wrote" in text


# --- Buffers -----------------------------------------------------------------------------------

BUFFERS = (buffer("in", 64, 64), buffer("out", 160, 96))


def in_buffers(*body: Instruction, ranges: Sequence[UbRange] = BUFFERS) -> MappedListing:
    return MappedListing({0: body}, buffers=ranges)


REACHES: dict[str, Callable[[int, int], Instruction]] = {
    "copy": lambda at, size: copy_in(ub(at), x_at(), length=size),
    "fill": lambda at, size: Duplicate(dst=ub(at), value=0, count=size // 2),
}


@pytest.mark.parametrize("reach", ["copy", "fill"])
def test_an_access_lies_in_one_buffer(reach: str) -> None:
    access = REACHES[reach]
    for at, size in ((64, 64), (96, 32), (160, 96), (224, 32)):
        run(in_buffers(access(at, size)), memory())
    for at, size, name, end in ((64, 96, "in", 128), (96, 64, "in", 128), (224, 64, "out", 256)):
        one = access(at, size)
        assert fault_of(in_buffers(one)) == (
            f"core 0, instruction 0, line 0 of core 0 ({one}): ub+{at}..{at + size} leaves buffer "
            f"{name}, which ends at ub+{end}"
        )
    for at, size in ((0, 32), (0, 96), (32, 64), (128, 32), (128, 128), (256, 32)):
        one = access(at, size)
        assert fault_of(in_buffers(one)) == (
            f"core 0, instruction 0, line 0 of core 0 ({one}): ub+{at}..{at + size} lies in no "
            "buffer"
        )


def test_both_ends_of_a_cast_keep_to_their_buffers() -> None:
    def halves(src: int, dst: int, count: int) -> Instruction:
        return cast(f.FP32, f.FP16, None, count=count, src=ub(src), dst=ub(dst))

    run(in_buffers(halves(64, 160, 16)), memory())
    assert "ub+64..132 leaves buffer in" in fault_of(in_buffers(halves(64, 160, 17)))
    wider = cast(f.FP16, f.FP32, None, count=9, src=ub(64), dst=ub(224))
    assert "ub+224..260 leaves buffer out" in fault_of(in_buffers(wider))
    assert "ub+256..288 lies in no buffer" in fault_of(in_buffers(halves(64, 256, 16)))


def test_rows_with_gaps_may_not_reach_into_the_next_buffer() -> None:
    rows = copy_in(ub(64), x_at(), count=2, length=32, ub_gap=2)
    assert "ub+64..192 leaves buffer in" in fault_of(in_buffers(rows))
    run(in_buffers(copy_in(ub(64), x_at(), count=2, length=32)), memory())


@pytest.mark.parametrize(
    ("ranges", "text"),
    [
        (
            (buffer("a", 0, 64), buffer("b", 32, 64)),
            "buffers a (to ub+64) and b (from ub+32) overlap",
        ),
        (
            (buffer("b", 96, 32), buffer("a", 0, 97)),
            "buffers a (to ub+97) and b (from ub+96) overlap",
        ),
        (
            (buffer("a", 16, 32),),
            "buffer a starts at ub+16, which is not aligned to 32 B",
        ),
        (
            (buffer("a", UB_BYTES - 32, 64),),
            f"buffer a, ub+{UB_BYTES - 32}..{UB_BYTES + 32}, does not fit the {UB_BYTES} B of UB",
        ),
        (
            (buffer("a", -32, 64),),
            f"buffer a, ub+-32..32, does not fit the {UB_BYTES} B of UB",
        ),
    ],
    ids=["overlap", "overlap-by-a-byte", "misaligned", "too-far", "too-early"],
)
def test_buffers_are_sound(ranges: Sequence[UbRange], text: str) -> None:
    assert fault_of(in_buffers(ranges=ranges)) == f"core 0: {text}"
    neighbours = (buffer("a", 0, 96), buffer("b", 96, 32), buffer("c", UB_BYTES - 64, 64))
    run(in_buffers(ranges=neighbours), memory())


# --- Tile programs -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Edited:
    """A tile program one of whose instructions is another."""

    program: TileProgram
    core: int
    index: int
    instruction: Instruction

    chip = property(lambda self: self.program.chip)
    cores = property(lambda self: self.program.cores)
    conversions = property(lambda self: self.program.conversions)
    input = property(lambda self: self.program.input)
    output = property(lambda self: self.program.output)

    def ub_ranges(self, core: int) -> Sequence[UbRange]:
        return self.program.ub_ranges(core)

    def where(self, core: int, index: int) -> str:
        return self.program.where(core, index)

    def issued(self, core: int) -> list[Instruction | UbRange]:
        body = list(self.program.issued(core))
        places = [i for i, each in enumerate(body) if not isinstance(each, UbRange)]
        if core == self.core:
            body[places[self.index]] = self.instruction
        return body

    def instructions(self, core: int) -> list[Instruction]:
        return [each for each in self.issued(core) if not isinstance(each, UbRange)]


def tile_program() -> TileProgram:
    """[6, 40] in 9 tiles of [2, 16] on 2 cores: five tiles for core 0, four for core 1."""
    bits = ElementBits(src=32, dst=16)
    made = plan((6, 40), (2, 16), bits, chip_of(2))
    return lower(made, resolve(A2_A3, f.FP32, f.FP16))


def gm_of_tiles() -> dict[str, Bytes]:
    x = np.arange(240, dtype=np.float32).view(np.uint8)
    return {"x": x, "y": np.full(480, UNTOUCHED, np.uint8)}


def edited(kind: type, core: int, number: int, **changes: object) -> tuple[Edited, str]:
    """The program with its `number`-th instruction of a kind changed, and its name in a fault."""
    program = tile_program()
    body = list(program.instructions(core))
    index = [i for i, each in enumerate(body) if isinstance(each, kind)][number]
    changed = dataclasses.replace(body[index], **changes)
    place = f"core {core}, instruction {index}, {program.where(core, index)} ({changed}): "
    return Edited(program, core, index, changed), place


def tile_fault(program: Edited, copy_completion: CopyCompletion = "latest") -> str:
    return fault_of(program, gm_of_tiles(), copy_completion=copy_completion)


def test_a_tile_program_is_a_program_with_a_map() -> None:
    program = tile_program()
    assert isinstance(program, MappedProgram)
    assert isinstance(program, ElementwiseProgram)
    assert not isinstance(Listing({}), (MappedProgram, ElementwiseProgram))
    assert program.where(1, 0) == "outside the tiles"
    index = next(i for i, each in enumerate(program.instructions(1)) if isinstance(each, Cast))
    assert program.where(1, index) == "tile 5 at [2, 32], [2, 8] elements"
    last = len(list(program.instructions(1))) - 1
    assert program.where(1, last) == "outside the tiles"
    gm = gm_of_tiles()
    run(program, gm)
    assert gm["y"].view(np.float16).tolist() == list(range(240))


@pytest.mark.parametrize("copy_completion", COPY_COMPLETIONS)
def test_a_fault_in_a_tile_names_it(copy_completion: CopyCompletion) -> None:
    program, place = edited(Cast, 1, 1, src=UbAddress(offset_bytes=0x2FF0))
    assert "tile 6 at [4, 0], [2, 16] elements" in place
    text = tile_fault(program, copy_completion)
    assert text == place + "ub+12272 is not aligned to 32 B"

    program, place = edited(DataCopyPad, 1, 2, dst=UbAddress(offset_bytes=64 * 100))
    assert "tile 6 at" in place or "tile 5 at" in place
    assert tile_fault(program, copy_completion).startswith(place + "ub+6400..")
    assert tile_fault(program, copy_completion).endswith(" lies in no buffer")

    program, place = edited(Cast, 0, 2, count=33)
    assert tile_fault(program, copy_completion).startswith(place)

    program, place = edited(DataCopyPad, 0, 4, src=GmAddress(tensor="x", offset_bytes=959))
    wanted = place + "gm.x: bytes 959 to "
    assert tile_fault(program, copy_completion).startswith(wanted)


def test_a_tile_that_leaves_its_buffer_names_it() -> None:
    program, place = edited(DataCopyPad, 0, 0, block_count=3)
    assert tile_fault(program) == place + "ub+0..192 leaves buffer in0, which ends at ub+128"


def test_set_up_is_outside_the_tiles() -> None:
    program = tile_program()
    wait = WaitFlag(event=HardEvent.MTE2_V, event_id=7)
    assert tile_fault(Edited(program, 1, 0, wait)).startswith(
        "core 1, instruction 0, outside the tiles (WaitFlag MTE2_V 7): waits for ever"
    )
    left = SetFlag(event=HardEvent.S_V, event_id=7)
    assert tile_fault(Edited(program, 1, 0, left)) == (
        "core 1, instruction 0, outside the tiles (SetFlag S_V 7): is never waited for: the flag "
        "is still set at the end"
    )


def test_the_output_is_written_to_the_last_byte() -> None:
    program, _ = edited(DataCopyPad, 1, 7, block_count=1)
    text = tile_fault(program)
    assert text == "the program ends with 16 B of gm.y never written, the first at byte 464"
    program, _ = edited(DataCopyPad, 0, 1, block_len_bytes=30, dst_stride=50)
    text = tile_fault(program)
    assert text == "the program ends with 4 B of gm.y never written, the first at byte 30"


def test_a_tile_on_the_wrong_core_meets_the_owner() -> None:
    program, place = edited(DataCopyPad, 1, 1, dst=GmAddress(tensor="y", offset_bytes=0))
    assert tile_fault(program) == f"{place}writes byte 0 of gm.y, which core 0 wrote; {NOT_ORDERED}"
