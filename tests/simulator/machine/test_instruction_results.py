"""The effect of each instruction, each one done before the next, and how it prints."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from support.programs.listings import (
    UNTOUCHED,
    Listing,
    cast,
    cast_values,
    copy_in,
    copy_out,
    fenced,
    memory,
    ub,
    x_at,
    y_at,
)
from support.programs.listings import execute_fenced as execute

from simulator.machine.cast_table import CTRL_CAST, CTRL_FLOAT
from simulator.machine.execute import run
from simulator.machine.isa import And, Duplicate, Instruction, Pipe, SetCtrl, SetDeqScale
from simulator.machine.memory import SimulatorFault
from simulator.numbers import formats as f
from simulator.numbers.formats import Format
from simulator.numbers.rounding import RoundMode

RINT, TRUNC = RoundMode.RINT, RoundMode.TRUNC


# --- What the instructions do ------------------------------------------------------------------


def test_a_copy_in_fills_lines_with_the_first_element_of_the_block() -> None:
    y = execute(
        copy_in(ub(), x_at(8), count=2, length=6, gap=4, elem=2),
        copy_out(y_at(), ub(), length=64),
    )
    first = [8, 9, 10, 11, 12, 13] + [8, 9] * 13
    second = [18, 19, 20, 21, 22, 23] + [18, 19] * 13
    assert y[:64].tolist() == first + second
    assert (y[64:] == UNTOUCHED).all()


@pytest.mark.parametrize("elem", [1, 2, 4, 8])
def test_padding_is_the_first_element_whatever_its_width(elem: int) -> None:
    y = execute(
        copy_in(ub(), x_at(40), length=40, elem=elem),
        copy_out(y_at(), ub(), length=64),
    )
    padding = (list(range(40, 40 + elem)) * 24)[:24]
    assert y[:64].tolist() == list(range(40, 80)) + padding


def test_a_copy_out_drops_what_is_beyond_the_block() -> None:
    y = execute(
        copy_in(ub(), x_at(), length=128),
        copy_out(y_at(1), ub(), count=2, length=3, gap=5, ub_gap=2),
    )
    wanted = np.full(256, UNTOUCHED, np.uint8)
    wanted[1:4] = [0, 1, 2]
    wanted[9:12] = [96, 97, 98]
    np.testing.assert_array_equal(y, wanted)


def test_strides_are_gaps_in_bytes_of_gm_and_in_lines_of_ub() -> None:
    y = execute(
        copy_in(ub(), x_at(200), length=32),
        copy_in(ub(32), x_at(200), length=32),
        copy_in(ub(64), x_at(200), length=32),
        copy_in(ub(), x_at(), count=2, length=32, gap=10, ub_gap=1),
        copy_out(y_at(), ub(), length=96),
    )
    assert y[:96].tolist() == [*range(32), *range(200, 232), *range(42, 74)]


@pytest.mark.parametrize(
    ("count", "length"), [(0, 64), (0, 6), (0, 0), (3, 0)], ids=["none", "short", "zero", "empty"]
)
def test_no_blocks_are_no_work(count: int, length: int) -> None:
    y = execute(
        copy_in(ub(), x_at(), length=64),
        copy_in(ub(), x_at(128), count=count, length=length),
        copy_out(y_at(), ub(), length=64),
        copy_out(y_at(), ub(32), count=count, length=length),
    )
    assert y[:64].tolist() == list(range(64))
    assert (y[64:] == UNTOUCHED).all()


def test_every_core_has_its_own_ub_and_control_bits() -> None:
    def body(core: int, set_up: tuple[Instruction, ...]) -> list[Instruction]:
        return fenced(
            *set_up,
            copy_in(ub(), x_at()),
            cast(f.INT32, f.INT16, None, count=1),
            copy_out(y_at(2 * core), ub(4096), length=2),
        )

    gm = memory(x=np.full(256, 0x11, np.uint8))
    run(Listing({0: body(0, (SetCtrl(bit=CTRL_CAST, value=True),)), 1: body(1, ())}), gm)
    assert gm["y"].view(np.int16)[:2].tolist() == [0x1111, 0x7FFF]

    # Core 1 does not find in its UB what core 0 has in its own.
    here = body(0, ())
    with pytest.raises(SimulatorFault, match=r"^core 1, .* whose byte 0 was never written"):
        run(Listing({0: here, 1: [copy_out(y_at(32), ub())]}), gm)


def test_cast_in_place() -> None:
    halves = [1.5, -2.5, 3.5, 0.5]
    assert cast_values(halves, f.FP32, f.INT32, RINT, in_place=True) == [2, -2, 4, 0]
    assert cast_values(halves, f.FP32, f.INT32, RINT) == [2, -2, 4, 0]
    assert cast_values([7, -8], f.INT16, f.FP16, RINT, in_place=True) == [7.0, -8.0]


@pytest.mark.parametrize(
    ("src", "dst", "mode"),
    [
        (f.FP32, f.FP16, RINT),
        (f.FP32, f.INT16, TRUNC),
        (f.FP16, f.INT8, RINT),
        (f.INT64, f.INT32, None),
        (f.INT64, f.FP32, RINT),
    ],
    ids=str,
)
def test_narrowing_in_place_over_many_repeats(
    src: Format, dst: Format, mode: RoundMode | None
) -> None:
    values = [(7 * i) % 251 - 125 for i in range(1000)]
    assert cast_values(values, src, dst, mode, in_place=True) == values


def test_cast_converts_count_elements_and_no_more() -> None:
    data = np.arange(1, 17, dtype=np.float32).view(np.uint8)
    y = execute(
        copy_in(ub(), x_at(), length=64),
        copy_in(ub(4096), x_at(), length=64),
        cast(f.FP32, f.FP16, RINT, count=3),
        cast(f.FP32, f.FP16, RINT, count=0, dst=ub(4096)),
        copy_out(y_at(), ub(4096), length=64),
        gm=memory(x=data, y_bytes=64),
    )
    assert y[:6].view(np.float16).tolist() == [1.0, 2.0, 3.0]
    np.testing.assert_array_equal(y[6:], data[6:])


def test_4_bit_codes_lie_low_nibble_first() -> None:
    codes = np.array([0xF1, 0x87], np.uint8)
    y = execute(
        copy_in(ub(), x_at(), length=2),
        cast(f.INT4, f.FP16, None),
        copy_out(y_at(), ub(4096), length=8),
        cast(f.FP16, f.INT4, TRUNC, src=ub(4096), dst=ub(8192)),
        copy_out(y_at(8), ub(8192), length=2),
        gm=memory(x=codes),
    )
    assert y[:8].view(np.float16).tolist() == [1.0, -1.0, 7.0, -8.0]
    np.testing.assert_array_equal(y[8:10], codes)


def test_mode_none_is_to_nearest_even() -> None:
    near = [2049.0, 2051.0, -2049.0]
    assert cast_values(near, f.FP32, f.FP16, None) == cast_values(near, f.FP32, f.FP16, RINT)
    assert cast_values(near, f.FP32, f.FP16, None) == [2048.0, 2052.0, -2048.0]
    assert cast_values([1.5, 2.5], f.FP16, f.INT8, None) == [2, 2]


def test_control_bit_48_decides_on_infinities() -> None:
    off = SetCtrl(bit=CTRL_FLOAT, value=False)
    huge = [70000.0, float("-inf"), 1.0]
    assert cast_values(huge, f.FP32, f.FP16, RINT) == [float("inf"), float("-inf"), 1.0]
    assert cast_values(huge, f.FP32, f.FP16, RINT, off) == [65504.0, -65504.0, 1.0]
    nan = cast_values([float("nan")], f.FP32, f.FP16, RINT)
    assert np.isnan(nan).all()
    assert cast_values([float("nan")], f.FP32, f.FP16, RINT, off) == [0.0]
    largest = float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)
    assert cast_values([float("inf")], f.FP32, f.BF16, RINT, off) == [largest]
    # FP32 results do not hear of it.
    assert cast_values([float("inf")], f.FP16, f.FP32, None, off) == [float("inf")]
    on_again = SetCtrl(bit=CTRL_FLOAT, value=True)
    assert cast_values(huge, f.FP32, f.FP16, RINT, off, on_again)[0] == float("inf")


def test_control_bit_59_decides_on_clamping() -> None:
    on = SetCtrl(bit=CTRL_CAST, value=True)
    assert cast_values([40000, -40000], f.INT32, f.INT16, None) == [32767, -32768]
    assert cast_values([40000, -40000], f.INT32, f.INT16, None, on) == [-25536, 25536]
    assert cast_values([300.0, float("inf")], f.FP16, f.UINT8, RINT) == [255, 255]
    assert cast_values([300.0, float("inf")], f.FP16, f.UINT8, RINT, on) == [44, 255]
    assert cast_values([70000.0], f.FP32, f.FP16, RINT, on) == [float("inf")]


def test_duplicate_and_and() -> None:
    x = np.arange(0x0100, 0x0120, dtype=np.int16)
    y = execute(
        copy_in(ub(), x_at(), length=64),
        Duplicate(dst=ub(64), value=0x00FF, count=20),
        And(dst=ub(), src0=ub(), src1=ub(64), count=20),
        copy_out(y_at(), ub(), length=64),
        copy_out(y_at(64), ub(64), length=40),
        gm=memory(x=x.view(np.uint8)),
    ).view(np.int16)
    assert y[:20].tolist() == list(range(20))
    np.testing.assert_array_equal(y[20:32], x[20:])
    assert y[32:52].tolist() == [0x00FF] * 20


def test_fp32_to_itself_rounds_to_integral() -> None:
    values = [2.5, -0.25, 1e30]
    assert cast_values(values, f.FP32, f.FP32, RINT) == [2.0, 0.0, float(np.float32(1e30))]


# --- How instructions read ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("instruction", "pipe", "text"),
    [
        (
            copy_in(ub(64), x_at(8), count=2, length=6, gap=4, ub_gap=1),
            Pipe.MTE2,
            "DataCopyPad ub+64 <- gm.x+8  blocks=2 x 6 B, srcStride=4, dstStride=1",
        ),
        (
            copy_out(y_at(8), ub(64), gap=3),
            Pipe.MTE3,
            "DataCopyPad gm.y+8 <- ub+64  blocks=1 x 32 B, srcStride=0, dstStride=3",
        ),
        (
            cast(f.FP32, f.FP16, RINT),
            Pipe.V,
            "Cast ub+4096:FP16 <- ub+0:FP32  CAST_RINT, count=4",
        ),
        (
            cast(f.FP16, f.FP32, None),
            Pipe.V,
            "Cast ub+4096:FP32 <- ub+0:FP16  CAST_NONE, count=4",
        ),
        (
            Duplicate(dst=ub(), value=255, count=3),
            Pipe.V,
            "Duplicate ub+0:INT16 <- 0xff  count=3",
        ),
        (
            And(dst=ub(), src0=ub(32), src1=ub(64), count=3),
            Pipe.V,
            "And ub+0:INT16 <- ub+32, ub+64  count=3",
        ),
        (SetCtrl(bit=48, value=False), Pipe.S, "SetCtrl [48] <- 0"),
        (SetDeqScale(scale=1.0), Pipe.S, "SetDeqScale 1"),
    ],
    ids=["copy-in", "copy-out", "cast", "cast-none", "duplicate", "and", "ctrl", "deq-scale"],
)
def test_instructions_print_and_know_their_pipe(
    instruction: Instruction, pipe: Pipe, text: str
) -> None:
    assert str(instruction) == text
    assert instruction.pipe is pipe
