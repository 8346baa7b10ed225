"""Hand-made programs, each instruction done before the next: Cast's pairs, limits of operands."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.programs.listings import (
    UB_BYTES,
    UNTOUCHED,
    Listing,
    cast,
    cast_values,
    copy_in,
    copy_out,
    fault,
    fault_of,
    memory,
    ub,
    x_at,
    y_at,
)
from support.programs.listings import execute_fenced as execute

from simulator.machine.cast_table import CAST_TABLE, CTRL_CAST, CTRL_FLOAT
from simulator.machine.isa import (
    And,
    Duplicate,
    GmAddress,
    Instruction,
    SetCtrl,
    SetDeqScale,
    UbAddress,
)
from simulator.numbers import formats as f
from simulator.numbers.formats import FORMATS, Format
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3

RINT, ODD = RoundMode.RINT, RoundMode.ODD


# --- The table of pairs ------------------------------------------------------------------------


def test_the_table_has_25_pairs() -> None:
    assert len(CAST_TABLE[A2_A3]) == 25
    for (src, dst), row in CAST_TABLE[A2_A3].items():
        assert (row.src, row.dst) == (src, dst)
        assert row.modes or row.has_none
    odd = [
        (str(src), str(dst)) for (src, dst), row in CAST_TABLE[A2_A3].items() if ODD in row.modes
    ]
    assert odd == [("FP32", "FP16")]


ABSENT = [
    (src, dst)
    for src in FORMATS.values()
    for dst in FORMATS.values()
    if (src, dst) not in CAST_TABLE[A2_A3]
]


def test_pairs_that_cast_lacks() -> None:
    for src, dst in ABSENT:
        assert fault(cast(src, dst, RINT)) == f"Cast has no pair {src} -> {dst}"


CHOICES = [(src, dst, mode) for src, dst in CAST_TABLE[A2_A3] for mode in (None, *RoundMode)]


@pytest.mark.parametrize(
    ("src", "dst", "mode"),
    CHOICES,
    ids=[f"{s}-{d}-{m.name if m else 'none'}".lower() for s, d, m in CHOICES],
)
def test_a_pair_has_the_modes_of_the_table(
    src: Format, dst: Format, mode: RoundMode | None
) -> None:
    row = CAST_TABLE[A2_A3][src, dst]
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
    assert fault(*program, gm=gm) == "writes gm.y+0..32, but gm.y is read-only"
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
