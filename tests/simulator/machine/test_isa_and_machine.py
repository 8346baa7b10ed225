"""The machine on hand-made programs: the effect of each instruction, and its faults.

Order between pipes is not the question here, so every instruction is done before the next.
"""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest
from support.programs.listings import (
    UB_BYTES,
    UNTOUCHED,
    Listing,
    cast,
    copy_in,
    copy_out,
    fault,
    fault_of,
    fenced,
    memory,
    ub,
    x_at,
    y_at,
)
from support.programs.listings import execute_fenced as execute

from simulator.machine.cast_table import CAST_TABLE, CTRL_CAST, CTRL_FLOAT
from simulator.machine.execute import run
from simulator.machine.isa import (
    And,
    Duplicate,
    GmAddress,
    Instruction,
    Pipe,
    SetCtrl,
    SetDeqScale,
    UbAddress,
)
from simulator.machine.memory import SimulatorFault
from simulator.numbers import formats as f
from simulator.numbers.formats import FORMATS, Format
from simulator.numbers.rounding import RoundMode

RINT, TRUNC, ODD = RoundMode.RINT, RoundMode.TRUNC, RoundMode.ODD


def cast_values(
    values: list[float] | list[int],
    src: Format,
    dst: Format,
    mode: RoundMode | None,
    *set_up: Instruction,
    in_place: bool = False,
) -> list[float] | list[int]:
    """Copy values in, cast them, copy the result out."""
    data = np.array(values, src.dtype).view(np.uint8)
    target = ub() if in_place else ub(4096)
    out_bytes = len(values) * dst.bits // 8
    y = execute(
        *set_up,
        copy_in(ub(), x_at(), length=data.size),
        cast(src, dst, mode, count=len(values), dst=target),
        copy_out(y_at(), target, length=out_bytes),
        gm=memory(x=data, y_bytes=out_bytes),
    )
    result: list[float] | list[int] = y.view(dst.dtype).tolist()
    return result


# --- The table of pairs ------------------------------------------------------------------------


def test_the_table_has_25_pairs() -> None:
    assert len(CAST_TABLE) == 25
    for (src, dst), row in CAST_TABLE.items():
        assert (row.src, row.dst) == (src, dst)
        assert row.modes or row.has_none
    odd = [(str(src), str(dst)) for (src, dst), row in CAST_TABLE.items() if ODD in row.modes]
    assert odd == [("FP32", "FP16")]


ABSENT = [
    (src, dst)
    for src in FORMATS.values()
    for dst in FORMATS.values()
    if (src, dst) not in CAST_TABLE
]


def test_pairs_that_cast_lacks() -> None:
    for src, dst in ABSENT:
        assert fault(cast(src, dst, RINT)) == f"Cast has no pair {src} -> {dst}"


CHOICES = [(src, dst, mode) for src, dst in CAST_TABLE for mode in (None, *RoundMode)]


@pytest.mark.parametrize(
    ("src", "dst", "mode"),
    CHOICES,
    ids=[f"{s}-{d}-{m.name if m else 'none'}".lower() for s, d, m in CHOICES],
)
def test_a_pair_has_the_modes_of_the_table(
    src: Format, dst: Format, mode: RoundMode | None
) -> None:
    row = CAST_TABLE[src, dst]
    instruction = cast(src, dst, mode)
    set_up = SetDeqScale(scale=1.0)
    if (mode is None and row.has_none) or mode in row.modes:
        execute(set_up, instruction)
        return
    has = ", ".join([m.name for m in row.modes] + (["NONE"] if row.has_none else []))
    assert fault(set_up, instruction) == f"Cast has only the modes {has} for this pair"


@pytest.mark.parametrize("set_up", [(), (SetDeqScale(scale=0.5),)], ids=["unset", "half"])
def test_int32_to_fp16_wants_the_scale_1(set_up: tuple[Instruction, ...]) -> None:
    text = fault(*set_up, cast(f.INT32, f.FP16, None))
    assert text == (
        f"INT32 -> FP16 multiplies by the deq scale, which is {0.5 if set_up else None}; "
        "SetDeqScale 1 first"
    )
    assert cast_values([3, -70000], f.INT32, f.FP16, None, SetDeqScale(scale=1.0)) == [
        3.0,
        float("-inf"),
    ]
    execute(cast(f.INT32, f.FP32, None))


# --- Addresses ---------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [1, 16, 31, 33])
def test_ub_addresses_are_whole_lines(offset: int) -> None:
    wanted = f"ub+{offset} is not aligned to 32 B"
    assert fault(copy_in(ub(offset), x_at())) == wanted
    assert fault(copy_out(y_at(), ub(offset))) == wanted
    assert fault(cast(f.FP16, f.FP32, None, src=ub(offset))) == wanted
    assert fault(cast(f.FP16, f.FP32, None, dst=ub(offset))) == wanted
    assert fault(Duplicate(dst=ub(offset), value=0, count=1)) == wanted
    assert fault(And(dst=ub(), src0=ub(), src1=ub(offset), count=1)) == wanted
    execute(copy_in(ub(64), x_at(offset)), copy_out(y_at(offset), ub(64)))


def outside(name: str, first: int, last: int, there: int) -> str:
    return f"{name}: bytes {first} to {last} are outside the {there} B there are"


def test_ub_ends() -> None:
    last = UB_BYTES - 32
    execute(copy_in(ub(last), x_at()), copy_out(y_at(), ub(last)))
    assert fault(copy_in(ub(UB_BYTES), x_at())) == outside("ub", UB_BYTES, UB_BYTES + 32, UB_BYTES)
    assert fault(copy_in(ub(last), x_at(), length=33)) == outside("ub", last, last + 64, UB_BYTES)
    assert fault(copy_in(ub(last), x_at(), count=2)) == outside("ub", last, last + 64, UB_BYTES)
    assert fault(copy_out(y_at(), ub(UB_BYTES))) == outside("ub", UB_BYTES, UB_BYTES + 32, UB_BYTES)
    assert fault(copy_out(y_at(), ub(last), count=2, ub_gap=7)) == outside(
        "ub", last, last + 288, UB_BYTES
    )


@pytest.mark.parametrize("offset", [-32, -64])
def test_ub_begins_at_0(offset: int) -> None:
    wanted = outside("ub", offset, offset + 32, UB_BYTES)
    assert fault(copy_in(ub(offset), x_at())) == wanted
    assert fault(copy_out(y_at(), ub(offset))) == wanted
    assert fault(cast(f.FP16, f.FP32, None, src=ub(offset), count=16)) == wanted


def test_cast_stays_inside_ub() -> None:
    last = UB_BYTES - 32
    execute(cast(f.FP32, f.FP16, RINT, src=ub(last), count=8))
    execute(cast(f.FP16, f.FP32, None, dst=ub(last), count=8))
    assert fault(cast(f.FP32, f.FP16, RINT, src=ub(last), count=9)) == outside(
        "ub", last, last + 36, UB_BYTES
    )
    assert fault(cast(f.FP16, f.FP32, None, dst=ub(last), count=9)) == outside(
        "ub", last, last + 36, UB_BYTES
    )
    assert fault(Duplicate(dst=ub(last), value=0, count=17)) == outside(
        "ub", last, last + 34, UB_BYTES
    )


def test_gm_ends() -> None:
    execute(copy_in(ub(), x_at(224)), copy_out(y_at(224), ub()))
    assert fault(copy_in(ub(), x_at(225))) == outside("gm.x", 225, 257, 256)
    assert fault(copy_out(y_at(225), ub())) == outside("gm.y", 225, 257, 256)
    assert fault(copy_in(ub(), x_at(), count=2, gap=193)) == outside("gm.x", 0, 257, 256)
    execute(copy_in(ub(), x_at(), count=2, gap=192))
    assert fault(copy_out(y_at(), ub(), count=2, gap=193)) == outside("gm.y", 0, 257, 256)


def test_gm_begins_at_0() -> None:
    assert fault(copy_in(ub(), x_at(-1))) == outside("gm.x", -1, 31, 256)
    assert fault(copy_out(y_at(-32), ub())) == outside("gm.y", -32, 0, 256)


def test_gm_has_the_tensors_it_was_given() -> None:
    nowhere = GmAddress(tensor="z", offset_bytes=0)
    assert fault(copy_in(ub(), nowhere)) == "GM has no tensor 'z', only x, y"
    assert fault(copy_out(nowhere, ub())) == "GM has no tensor 'z', only x, y"


def test_a_read_only_output_is_not_written() -> None:
    gm = memory()
    gm["y"].flags.writeable = False
    program = (copy_in(ub(), x_at()), copy_out(y_at(), ub()))
    assert fault(*program, gm=gm) == "gm.y is read-only"
    assert (gm["y"] == UNTOUCHED).all()
    gm = memory()
    gm["x"].flags.writeable = False
    assert execute(*program, gm=gm)[:32].tolist() == list(range(32))


@pytest.mark.parametrize(("dst", "src"), [(ub(), ub(64)), (y_at(), x_at())], ids=["ub-ub", "gm-gm"])
def test_copies_cross_between_gm_and_ub(
    dst: GmAddress | UbAddress, src: GmAddress | UbAddress
) -> None:
    assert fault(copy_in(dst, src)) == "DataCopyPad moves between GM and UB"


# --- Limits of a copy --------------------------------------------------------------------------


def test_block_count_has_12_bits() -> None:
    x = np.zeros(4096, np.uint8)
    gm = memory(x=x, y_bytes=4096)
    wanted = "blockCount must be 0 to 4095, is"
    assert fault(copy_in(ub(), x_at(), count=4096, length=1), gm=gm) == f"{wanted} 4096"
    assert fault(copy_out(y_at(), ub(), count=4096, length=1), gm=gm) == f"{wanted} 4096"
    assert fault(copy_in(ub(), x_at(), count=-1)) == f"{wanted} -1"
    y = execute(
        copy_in(ub(), x_at(), count=4095, length=1),
        copy_out(y_at(), ub(), count=4095, length=1),
        gm=gm,
    )
    assert (y == 0).sum() == 4095


def test_block_length_has_21_bits() -> None:
    x = np.zeros(2097152, np.uint8)
    wanted = "blockLen must be 0 to 2097151 B, is"
    assert fault(copy_in(ub(), x_at(), length=2097152), gm=memory(x=x)) == f"{wanted} 2097152"
    assert fault(copy_out(y_at(), ub(), length=-1)) == f"{wanted} -1"
    # One byte less passes this check, and UB is too small for it.
    text = fault(copy_in(ub(), x_at(), length=2097151), gm=memory(x=x))
    assert text == outside("ub", 0, 2097152, UB_BYTES)


@pytest.mark.parametrize(("length", "elem"), [(31, 2), (30, 4), (12, 8)])
def test_blocks_are_whole_elements(length: int, elem: int) -> None:
    wanted = f"blockLen is no multiple of the element's {elem} B"
    assert fault(copy_in(ub(), x_at(), length=length, elem=elem)) == wanted
    assert fault(copy_out(y_at(), ub(), length=length, elem=elem)) == wanted
    execute(copy_in(ub(), x_at(), length=elem * (length // elem), elem=elem))


@pytest.mark.parametrize("gap", [-1, -32, 2**32, 2**40])
def test_gm_strides_have_32_bits(gap: int) -> None:
    wanted = f"GM stride must be 0 to 4294967295 B, is {gap}"
    assert fault(copy_in(ub(), x_at(), count=2, gap=gap)) == wanted
    assert fault(copy_out(y_at(), ub(), count=2, gap=gap)) == wanted
    execute(copy_in(ub(), x_at(), count=1, gap=2**32 - 1))


@pytest.mark.parametrize("ub_gap", [-1, -2])
def test_ub_strides_are_not_negative(ub_gap: int) -> None:
    """The bytes would lie inside UB, but there is no such stride."""
    wanted = f"UB stride must not be negative, is {ub_gap} blocks"
    assert fault(copy_out(y_at(), ub(96), count=3, ub_gap=ub_gap)) == wanted
    assert fault(copy_in(ub(96), x_at(), count=3, ub_gap=ub_gap)) == wanted
    execute(copy_in(ub(96), x_at(), length=96), copy_out(y_at(), ub(96), count=3, ub_gap=0))


# --- Other operands ----------------------------------------------------------------------------


@pytest.mark.parametrize("bit", [0, 47, 49, 60])
def test_control_bits_are_those_of_cast(bit: int) -> None:
    assert fault(SetCtrl(bit=bit, value=True)) == f"A2/A3 has no control bit {bit} for Cast"
    execute(SetCtrl(bit=48, value=True), SetCtrl(bit=59, value=False))
    assert (CTRL_FLOAT, CTRL_CAST) == (48, 59)


@pytest.mark.parametrize("count", [1, 3, -1, -2])
def test_int4_counts_are_whole_bytes(count: int) -> None:
    for src, dst, mode in ((f.INT4, f.FP16, None), (f.FP16, f.INT4, RINT)):
        text = fault(cast(src, dst, mode, count=count))
        bits = "4" if count == 1 or count == 3 else r"(4|16)"
        wanted = rf"count {count} is no whole number of bytes of {bits}-bit elements"
        assert re.fullmatch(wanted, text)
    execute(cast(f.INT4, f.FP16, None, count=2), cast(f.FP16, f.INT4, RINT, count=2))


@pytest.mark.parametrize("count", [-1, -16])
def test_no_instruction_takes_a_negative_count(count: int) -> None:
    assert f"count {count}" in fault(cast(f.FP32, f.FP16, RINT, count=count))
    assert f"count {count}" in fault(Duplicate(dst=ub(64), value=1, count=count))
    assert f"count {count}" in fault(And(dst=ub(64), src0=ub(64), src1=ub(128), count=count))


def test_a_fault_names_core_and_instruction() -> None:
    body = (Duplicate(dst=ub(), value=1, count=1), SetCtrl(bit=1, value=True))
    text = fault_of(Listing({7: body, 8: body}))
    assert text == "core 7, instruction 1 (SetCtrl [1] <- 1): A2/A3 has no control bit 1 for Cast"


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
