"""Cast by repeats: masks, strides and lanes, against a model written from the documents."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.programs.listings import (
    UB_BYTES,
    copy_in,
    copy_out,
    execute_anyway,
    execute_fenced,
    fault,
    fault_at,
    memory,
    ub,
    x_at,
    y_at,
)
from support.programs.repeat_model import BLOCK, LANES, convert_one_by_one, small_integers

from simulator.machine.cast_table import CAST_TABLE
from simulator.machine.isa import CastRepeat, Pipe, PipeBarrier, SetDeqScale
from simulator.numbers import formats as f
from simulator.numbers.formats import Format
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3

RINT = RoundMode.RINT
ALL = (1 << 64) - 1
SCALE = SetDeqScale(scale=1.0)

PAIRS = [pytest.param(src, dst, id=f"{src}-{dst}".lower()) for src, dst in CAST_TABLE[A2_A3]]
every_pair = pytest.mark.parametrize(("src", "dst"), PAIRS)


def repeat(source: Format = f.FP32, target: Format = f.INT32, **changes: Any) -> CastRepeat:
    mode = None if CAST_TABLE[A2_A3][source, target].has_none else RINT
    fields: dict[str, Any] = {
        "dst": ub(65536),
        "src": ub(),
        "dst_format": target,
        "src_format": source,
        "mode": mode,
        "mask": LANES[max(source.bits, target.bits)],
        "repeat_times": 1,
    }
    return CastRepeat(**{**fields, **changes})


def accepted(cast: CastRepeat) -> None:
    execute_fenced(SCALE, cast)


def refused(cast: CastRepeat) -> str:
    return fault(SCALE, cast)


# --- Where lanes lie ---------------------------------------------------------------------------


@st.composite
def repeats(draw: st.DrawFn) -> CastRepeat:
    src, dst = draw(st.sampled_from(list(CAST_TABLE[A2_A3])))
    lanes = LANES[max(src.bits, dst.bits)]
    pairs = 4 in (src.bits, dst.bits)
    if draw(st.booleans()):
        mask: int | tuple[int, int] = draw(st.integers(0, lanes // 2)) * 2
        mask = mask if pairs else max(0, mask - draw(st.integers(0, 1)))
    else:
        bits = draw(st.integers(0, (1 << (lanes // 2 if pairs else lanes)) - 1))
        if pairs:
            bits = sum(3 << 2 * i for i in range(lanes // 2) if bits >> i & 1)
        mask = (bits & ALL, bits >> 64)
    return repeat(
        src,
        dst,
        mask=mask,
        repeat_times=draw(st.integers(0, 3)),
        dst_blk_stride=draw(st.integers(1, 5)),
        src_blk_stride=draw(st.integers(0, 5)),
        dst_rep_stride=draw(st.integers(0, 41)),
        src_rep_stride=draw(st.integers(0, 41)),
    )


SPAN = (2 * 41 + 7 * 5 + 1) * BLOCK
"""Bytes that the farthest of these casts reaches."""


@pytest.mark.slow
@given(repeats())
@settings(max_examples=300)
def test_every_element_lies_where_the_address_rule_says(cast: CastRepeat) -> None:
    source = small_integers(cast.src_format, SPAN, 1, signed=cast.dst_format is not f.UINT8)
    target = small_integers(cast.dst_format, SPAN, 2)
    y = execute_fenced(
        SCALE,
        copy_in(cast.src, x_at(), length=SPAN),
        copy_in(cast.dst, x_at(SPAN), length=SPAN),
        cast,
        copy_out(y_at(), cast.dst, length=SPAN),
        gm=memory(x=np.concatenate([source, target]), y_bytes=SPAN),
    )
    assert y.tobytes() == convert_one_by_one(cast, source.tobytes(), target.tobytes())


@every_pair
def test_natural_strides_are_those_of_whole_repeats(src: Format, dst: Format) -> None:
    """With strides of 8 blocks for the wider type, and fewer for the other, nothing is skipped."""
    lanes = LANES[max(src.bits, dst.bits)]
    sizes = [lanes * fmt.bits // 8 for fmt in (src, dst)]
    cast = repeat(
        src,
        dst,
        repeat_times=3,
        src_rep_stride=sizes[0] // BLOCK,
        dst_rep_stride=sizes[1] // BLOCK,
    )
    assert max(sizes) == 256
    source = small_integers(src, 3 * sizes[0], 3, signed=dst is not f.UINT8)
    y = execute_fenced(
        SCALE,
        copy_in(ub(), x_at(), length=source.size),
        cast,
        copy_out(y_at(), cast.dst, length=3 * sizes[1]),
        gm=memory(x=source, y_bytes=3 * sizes[1]),
    )
    wanted = convert_one_by_one(cast, source.tobytes(), bytes(3 * sizes[1]))
    assert y.tobytes() == wanted
    assert "never written" in fault(
        SCALE,
        copy_in(ub(), x_at(), length=source.size),
        cast,
        copy_out(y_at(), cast.dst, length=3 * sizes[1] + 1),
        gm=memory(x=source, y_bytes=3 * sizes[1] + 1),
    )


# --- Limits ------------------------------------------------------------------------------------


def test_there_are_up_to_255_repeats() -> None:
    accepted(repeat(repeat_times=255, src_rep_stride=0, dst_rep_stride=8))
    for times in (256, -1):
        text = refused(repeat(repeat_times=times, src_rep_stride=0))
        assert text == f"repeatTime must be 0 to 255, is {times}"


@pytest.mark.parametrize("side", ["dst", "src"])
def test_strides_between_repeats_have_8_bits(side: str) -> None:
    accepted(repeat(repeat_times=2, **{f"{side}_rep_stride": 255}))
    accepted(repeat(repeat_times=2, **{f"{side}_rep_stride": 0}))
    for stride in (256, -1):
        text = refused(repeat(repeat_times=2, **{f"{side}_rep_stride": stride}))
        assert text == f"{side}RepStride must be 0 to 255 blocks (8 bits), is {stride}"


def test_strides_between_blocks_have_16_bits() -> None:
    accepted(repeat(mask=8, dst_blk_stride=65535, src_blk_stride=65535))
    accepted(repeat(src_blk_stride=0))
    for side, stride, least in (
        ("dst", 0, 1),
        ("dst", -1, 1),
        ("dst", 65536, 1),
        ("src", -1, 0),
        ("src", 65536, 0),
    ):
        text = refused(repeat(mask=8, **{f"{side}_blk_stride": stride}))
        assert text == f"{side}BlkStride must be {least} to 65535 blocks, is {stride}"


def test_a_source_stride_of_0_reads_the_first_block_again() -> None:
    source = np.arange(1, 65, dtype=np.float32).view(np.uint8)
    y = execute_fenced(
        copy_in(ub(), x_at(), length=256),
        repeat(src_blk_stride=0),
        copy_out(y_at(), ub(65536), length=256),
        gm=memory(x=source),
    )
    assert y.view(np.int32).tolist() == list(range(1, 9)) * 8


@every_pair
def test_a_mask_has_as_many_lanes_as_the_wider_type_allows(src: Format, dst: Format) -> None:
    lanes = LANES[max(src.bits, dst.bits)]
    accepted(repeat(src, dst, mask=lanes))
    accepted(repeat(src, dst, mask=0))
    step = 2 if 4 in (src.bits, dst.bits) else 1
    for mask in (lanes + step, -step):
        text = refused(repeat(src, dst, mask=mask))
        assert text == f"mask must be 0 to {lanes} lanes for this pair, is {mask}"
    bits = (1 << lanes) - 1
    accepted(repeat(src, dst, mask=(bits & ALL, bits >> 64)))
    bits |= 1 << lanes
    words = (bits & ALL, bits >> 64)
    text = refused(repeat(src, dst, mask=words))
    assert text == f"mask {words} has bits beyond the {lanes} lanes of this pair"


@pytest.mark.parametrize("mask", [(1 << 64, 0), (-1, 0), (0, -1)], ids=str)
def test_a_word_of_a_mask_has_64_bits(mask: tuple[int, int]) -> None:
    assert "has bits beyond" in refused(repeat(f.INT16, f.FP16, mask=mask))
    accepted(repeat(f.INT16, f.FP16, mask=(ALL, ALL)))


@pytest.mark.parametrize(("src", "dst"), [(f.INT4, f.FP16), (f.FP16, f.INT4)], ids=["from", "to"])
def test_4_bit_lanes_are_masked_in_pairs(src: Format, dst: Format) -> None:
    for mask in (0, 2, 128, (3, 0), (0b1100, 0b11), (ALL, ALL)):
        accepted(repeat(src, dst, mask=mask))
    for mask in (1, 127, (1, 0), (0b110, 0), (0, 1 << 63)):
        text = refused(repeat(src, dst, mask=mask))
        assert text == "two elements of 4 bits share a byte: mask them in pairs"


@pytest.mark.parametrize(
    "changes",
    [{"repeat_times": 0}, {"mask": 0}, {"mask": (0, 0)}],
    ids=["no-repeat", "no-lane", "no-bit"],
)
def test_nothing_to_do_is_nothing_done(changes: dict[str, Any]) -> None:
    """Not even the addresses are looked at; but a pair that does not exist stays one."""
    accepted(repeat(dst=ub(UB_BYTES), **changes))
    y = execute_fenced(
        copy_in(ub(65536), x_at(), length=256),
        repeat(**changes),
        copy_out(y_at(), ub(65536), length=256),
    )
    assert y.tolist() == list(range(256))


def test_a_repeat_stays_inside_ub() -> None:
    last = UB_BYTES - 256
    accepted(repeat(dst=ub(last)))
    accepted(repeat(dst=ub(last), repeat_times=2, dst_rep_stride=0))
    text = refused(repeat(dst=ub(last), repeat_times=2, dst_rep_stride=1))
    assert text == f"ub: bytes {last} to {UB_BYTES + 32} are outside the {UB_BYTES} B there are"
    text = refused(repeat(src=ub(last), src_blk_stride=2, mask=33))
    assert text == f"ub: bytes {last} to {UB_BYTES + 4} are outside the {UB_BYTES} B there are"
    accepted(repeat(src=ub(last), src_blk_stride=2, mask=32))
    for side in ("src", "dst"):
        assert refused(repeat(**{side: ub(65536 + 16)})) == "ub+65552 is not aligned to 32 B"


def test_pairs_modes_and_the_scale_are_those_of_cast() -> None:
    assert refused(repeat(mode=None)).startswith("Cast has only the modes RINT, ")
    absent = CastRepeat(
        dst=ub(4096),
        src=ub(),
        dst_format=f.BF16,
        src_format=f.FP16,
        mode=RINT,
        mask=1,
        repeat_times=1,
    )
    assert refused(absent) == "Cast has no pair FP16 -> BF16"
    text = fault(repeat(f.INT32, f.FP16))
    assert text.startswith("INT32 -> FP16 multiplies by the deq scale, which is None")
    accepted(repeat(f.INT32, f.FP16))


def test_source_and_destination_of_a_repeat() -> None:
    accepted(repeat(dst=ub(), repeat_times=3))
    accepted(repeat(dst=ub(256)))
    for dst in (32, 224):
        assert "overlap in part" in refused(repeat(dst=ub(dst)))
    assert "overlap in part" in refused(repeat(f.FP32, f.FP16, dst=ub()))


def test_in_place_takes_the_same_strides_on_both_sides() -> None:
    turned = {"dst": ub(), "repeat_times": 8, "dst_blk_stride": 8, "dst_rep_stride": 1}
    assert "overlap" in refused(repeat(**turned))
    accepted(repeat(**turned, src_blk_stride=8, src_rep_stride=1))


@pytest.mark.parametrize("rep_stride", [0, 1, 7])
def test_in_place_no_repeat_reads_what_another_wrote(rep_stride: int) -> None:
    again = repeat(dst=ub(), repeat_times=2, dst_rep_stride=rep_stride, src_rep_stride=rep_stride)
    assert "overlap" in refused(again)


def test_repeats_race_block_by_block() -> None:
    """Every other block is another's: only a block that both write needs a barrier."""
    even = repeat(dst=ub(65536), dst_blk_stride=2, repeat_times=2, dst_rep_stride=16)
    odd = dataclasses.replace(even, dst=ub(65536 + 32))
    execute_anyway(even, odd)
    late = dataclasses.replace(even, dst=ub(65536 + 64))
    text = fault_at(1, even, late)
    assert "while instruction 0" in text
    assert text.endswith("no flag or barrier puts V before V")
    execute_anyway(even, PipeBarrier(of=Pipe.V), late)
