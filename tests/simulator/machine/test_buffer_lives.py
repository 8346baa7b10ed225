"""A buffer that is allocated again holds garbage; one that is handed on keeps what was written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.programs.ascendc_kernels import RINT, every_completion, line_of
from support.programs.listings import (
    FENCE,
    MappedListing,
    buffer,
    chip_of,
    copy_in,
    copy_out,
    fault_and_writer,
    fault_of,
    fenced,
    flag,
    memory,
    ub,
    x_at,
    y_at,
)

from ascend_kernels.matrix import resolve
from ascend_kernels.program import TileProgram, lower
from benchmarks.mutant_programs import CastProgram
from simulator import ascendc as asc
from simulator.machine.execute import run
from simulator.machine.isa import Cast, DataCopyPad, HardEvent, Instruction
from simulator.machine.memory import UbRange
from simulator.machine.pipes import COPY_COMPLETIONS
from simulator.numbers import formats as f
from tiling.chips import A2_A3
from tiling.plan import plan
from tiling.ub import ElementBits

TILE, TILES = 64, 4
Planted = dict[str, Any]


@asc.jit
def tiles(x: asc.GlobalAddress, y: asc.GlobalAddress, planted: Planted) -> None:
    """Casts whole tiles; in the last one, something may be wrong."""
    x_gm, y_gm = asc.GlobalTensor(), asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    y_gm.set_global_buffer(y)
    pipe = asc.TPipe()
    in_queue, out_queue = asc.TQue(asc.TPosition.VECIN), asc.TQue(asc.TPosition.VECOUT)
    pipe.init_buffer(in_queue, 2, 4 * TILE)
    pipe.init_buffer(out_queue, 2, 2 * TILE)
    for tile in range(TILES):
        now = {"in": TILE, "cast": TILE, "src": 0, "dst": 0}
        now |= planted if tile == TILES - 1 else {}
        x_local = in_queue.alloc_tensor(asc.float32)
        blocks = asc.DataCopyExtParams(1, 4 * now["in"])
        pad = asc.DataCopyPadExtParams(asc.float32, False, 0, now.get("pad", 0))
        asc.data_copy_pad(x_local, x_gm[tile * TILE :], blocks, pad)
        in_queue.enque(x_local)
        x_local = in_queue.deque(asc.float32)
        y_local = out_queue.alloc_tensor(asc.half)
        asc.cast(y_local[now["dst"] :], x_local[now["src"] :], RINT, now["cast"])
        in_queue.free_tensor(x_local)
        out_queue.enque(y_local)
        y_local = out_queue.deque(asc.half)
        asc.data_copy(y_gm[tile * TILE :], y_local, TILE)  # the copy out
        out_queue.free_tensor(y_local)


def launch(planted: Planted, copy_completion: Any = "latest") -> list[float]:
    x, y = np.arange(TILE * TILES, dtype=np.float32), np.zeros(TILE * TILES, np.float16)
    tiles.options(copy_completion=copy_completion)[1](x, y, planted)
    numbers: list[float] = y.tolist()
    return numbers


ANEW = r"was not written since out_queue1 was allocated anew"
MADE = r"was written with garbage"


@every_completion
@pytest.mark.parametrize(
    ("planted", "byte", "why"),
    [
        ({"in": 0}, 0, MADE),
        ({"in": TILE - 8}, 2 * (TILE - 8), MADE),
        ({"in": TILE - 1, "pad": 1}, 2 * (TILE - 1), MADE),
        ({"cast": 0}, 0, ANEW),
        ({"cast": TILE - 1}, 2 * (TILE - 1), ANEW),
        ({"src": 8, "cast": TILE - 8}, 2 * (TILE - 8), ANEW),
        ({"dst": 16, "cast": TILE - 16}, 0, ANEW),
    ],
    ids=str,
)
def test_what_the_tile_before_left_in_a_buffer_is_garbage(
    planted: Planted, byte: int, why: str, copy_completion: Any
) -> None:
    """Both buffers of both queues hold whole tiles by then."""
    line = line_of(tiles, "# the copy out")
    at = 2 * 4 * TILE + 2 * TILE + byte
    place = rf"^core 0, instruction \d+, test_buffer_lives\.py:{line} \(DataCopy .*"
    writer = rf"byte {at} of ub was last written.* by instruction \d+, test_buffer_lives"
    text = rf"{place}byte {at} {why}.*; {writer}"
    with pytest.raises(asc.SimulatorFault, match=text):
        launch(planted, copy_completion)
    assert launch({}, copy_completion) == list(range(TILE * TILES))


def one_buffer(*body: Callable[[asc.LocalTensor], None]) -> asc.JitFunction[Any, None]:
    """A kernel that works on one scratch buffer, taken anew by get for each step."""

    @asc.jit
    def kernel(x: asc.GlobalAddress, y: asc.GlobalAddress) -> None:
        x_gm, y_gm = asc.GlobalTensor(), asc.GlobalTensor()
        x_gm.set_global_buffer(x)
        y_gm.set_global_buffer(y)
        pipe, scratch = asc.TPipe(), asc.TBuf()
        pipe.init_buffer(scratch, 64)
        asc.data_copy(scratch.get(asc.int16), x_gm, 32)
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)
        for step in body:
            step(scratch.get(asc.int16))
            asc.pipe_barrier(asc.PipeID.PIPE_ALL)
        asc.data_copy(y_gm, scratch.get(asc.int16), 32)

    return kernel


def test_scratch_and_what_is_taken_out_of_a_queue_keep_what_was_written() -> None:
    x, y = np.arange(32, dtype=np.int16), np.zeros(32, np.int16)
    one_buffer(lambda local: asc.duplicate(local, 7, 8))[1](x, y)
    assert y.tolist() == [7] * 8 + list(range(8, 32))

    @asc.jit
    def kernel(x: asc.GlobalAddress, y: asc.GlobalAddress) -> None:
        """A tensor that V fills before MTE2 and that passes through the queue twice."""
        x_gm, y_gm = asc.GlobalTensor(), asc.GlobalTensor()
        x_gm.set_global_buffer(x)
        y_gm.set_global_buffer(y)
        pipe, queue = asc.TPipe(), asc.TQue(asc.TPosition.VECIN)
        pipe.init_buffer(queue, 1, 64)
        local = queue.alloc_tensor(asc.int16)
        asc.duplicate(local, 5, 32)
        asc.set_flag(asc.HardEvent.V_MTE2, 7)
        asc.wait_flag(asc.HardEvent.V_MTE2, 7)
        asc.data_copy(local, x_gm, 16)
        queue.enque(local)
        local = queue.deque(asc.int16)
        asc.set_flag(asc.HardEvent.V_MTE2, 7)
        asc.wait_flag(asc.HardEvent.V_MTE2, 7)
        queue.enque(local)
        local = queue.deque(asc.int16)
        asc.set_flag(asc.HardEvent.V_MTE3, 0)
        asc.wait_flag(asc.HardEvent.V_MTE3, 0)
        asc.data_copy(y_gm, local, 32)
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)
        queue.free_tensor(local)

    for copy_completion in COPY_COMPLETIONS:
        kernel.options(copy_completion=copy_completion)[1](x, y)
        assert y.tolist() == [*range(16), *[5] * 16]


# --- Lives in instructions ---------------------------------------------------------------------

IN, OUT = buffer("in", 0, 64), buffer("out", 64, 64)


def lives(*body: Instruction | UbRange) -> MappedListing:
    return MappedListing({0: body}, buffers=(IN, OUT))


@pytest.mark.parametrize("copy_completion", COPY_COMPLETIONS)
def test_program_order_decides_the_life_of_a_buffer(copy_completion: Any) -> None:
    """Whichever pipe runs ahead: V overtakes MTE2, and the reader belongs to the life before."""
    load, store = copy_in(ub(), x_at()), copy_out(y_at(), ub())
    into = flag(HardEvent.MTE2_MTE3)
    text = "reads ub+0..32, whose byte 0 was not written since in was allocated anew: garbage would"
    found = fault_of(lives(IN, load, *into, IN, store), copy_completion=copy_completion)
    assert found.startswith("core 0, instruction 3, line 3 of core 0 ")
    assert text in found
    run(lives(IN, load, *into, store, IN), memory(), copy_completion=copy_completion)
    run(lives(IN, load, *into, OUT, store), memory(), copy_completion=copy_completion)
    late = (IN, load, FENCE, store, IN, FENCE, store)
    assert "since in was allocated anew" in fault_of(lives(*late), copy_completion=copy_completion)


def test_part_of_a_buffer_that_is_written_anew() -> None:
    long, short = (copy_in(ub(), x_at(), length=length) for length in (64, 32))
    body = (IN, long, FENCE, IN, short, FENCE)
    run(lives(*body, copy_out(y_at(), ub(), length=32)), memory())
    text, writer = fault_and_writer(lives(*body, copy_out(y_at(), ub(), length=33)))
    assert "whose byte 32 was not written since in was allocated anew" in text
    assert writer == f"byte 32 of ub was last written by instruction 0, line 0 of core 0 ({long})"


# --- Tile programs -----------------------------------------------------------------------------


def spoiled(program: TileProgram, kind: type, number: int) -> tuple[str, str]:
    """The fault of a cast on one core without its n-th instruction of a kind."""
    (body,) = (tuple(program.issued(core)) for core in program.cores)
    places = [place for place, each in enumerate(body) if isinstance(each, kind)]
    dropped = (*body[: places[number]], *body[places[number] + 1 :])
    layouts = (program.ub_ranges(0),)
    made = CastProgram(program.chip, (dropped,), layouts, program.conversions)
    return fault_and_writer(made, {name: np.zeros(4096, np.uint8) for name in "xy"})


@pytest.mark.parametrize(
    ("dst", "kind", "step", "name"),
    [
        (f.INT16, DataCopyPad, 2, "in"),
        (f.INT16, Cast, 1, "out"),
        (f.INT8, DataCopyPad, 2, "in"),
        (f.INT8, Cast, 4, "tmp"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)).lower(),
)
def test_nothing_is_handed_from_a_part_to_the_next(
    dst: f.Format, kind: type, step: int, name: str
) -> None:
    """Neither by a slot nor by the scratch, which all parts use."""
    resolution = resolve(A2_A3, f.FP16, dst, saturate=dst is not f.INT8)
    bits = ElementBits(src=16, dst=dst.bits, tmp=resolution.tmp_bits)
    program = lower(plan((6, 64), (1, 64), bits, chip_of(1)), resolution)
    for number in range(1, 6):
        # Of the casts of a part the first one, of its copies the one in.
        text, writer = spoiled(program, kind, number * step)
        assert "garbage would reach GM" in text
        assert "was last written" in writer or number < 2
    (body,) = (tuple(program.issued(core)) for core in program.cores)
    assert sum(isinstance(each, UbRange) and each.name.startswith(name) for each in body) == 6


def test_fences_do_not_hide_what_was_not_written() -> None:
    body = fenced(copy_in(ub(), x_at()), copy_out(y_at(), ub(), length=33))
    text, writer = fault_and_writer(MappedListing({0: body}, buffers=(IN, OUT)))
    assert text.endswith("byte 32 was never written: garbage would reach GM")
    assert writer == "no instruction wrote byte 32 of ub"
