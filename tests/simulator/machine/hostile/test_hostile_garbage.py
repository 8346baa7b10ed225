"""UB starts as garbage: it may lie in padding lanes and be converted there, but not reach GM."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support.programs.listings import (
    FENCE,
    UNTOUCHED,
    Bytes,
    cast,
    copy_in,
    copy_out,
    execute_anyway,
    execute_fenced,
    fault,
    memory,
    ub,
    x_at,
    y_at,
)

from simulator.machine.cast_table import CAST_TABLE
from simulator.machine.isa import And, CastRepeat, DataCopy, DataCopyPad, Duplicate, SetDeqScale
from simulator.numbers import formats as f
from simulator.numbers.formats import Format
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3

RINT = RoundMode.RINT
A, B = ub(0), ub(1024)

PAIRS = [pytest.param(src, dst, id=f"{src}-{dst}".lower()) for src, dst in CAST_TABLE[A2_A3]]


def garbage(start: int, stop: int, byte: int, *, written: bool = False) -> str:
    why = "was written with garbage" if written else "was never written"
    return f"reads ub+{start}..{stop}, whose byte {byte} {why}: garbage would reach GM"


def test_a_core_that_wrote_nothing_has_nothing_to_send() -> None:
    assert fault(copy_out(y_at(), A)) == garbage(0, 32, 0)
    assert fault(DataCopy(dst=y_at(), src=A, size_bytes=32, elem_bytes=1)) == garbage(0, 32, 0)
    execute_fenced(copy_in(A, x_at()), copy_out(y_at(), A))
    execute_fenced(copy_in(A, x_at()), DataCopy(dst=y_at(), src=A, size_bytes=32, elem_bytes=1))


@pytest.mark.parametrize("length", [1, 31, 32, 33, 63])
def test_a_copy_in_writes_whole_lines(length: int) -> None:
    whole = -(-length // 32) * 32
    load = copy_in(A, x_at(), length=length)
    y = execute_fenced(load, copy_out(y_at(), A, length=whole))
    assert y[:whole].tolist() == [*range(length), *[0] * (whole - length)]
    assert fault(load, copy_out(y_at(), A, length=whole + 1)) == garbage(0, whole + 1, whole)


def test_the_first_byte_of_garbage_is_named() -> None:
    rows = copy_in(A, x_at(), count=3, length=32, ub_gap=1)
    execute_fenced(rows, copy_out(y_at(), A, count=3, length=32, ub_gap=1))
    assert fault(rows, copy_out(y_at(), A, length=160)) == garbage(0, 160, 32)
    assert fault(rows, copy_out(y_at(), A, count=2, length=64, ub_gap=0)) == garbage(0, 128, 32)
    assert fault(rows, copy_out(y_at(), ub(32), count=2, length=32)) == garbage(32, 96, 32)


def test_a_fault_sends_nothing() -> None:
    gm = memory()
    fault(copy_in(A, x_at()), copy_out(y_at(), A, length=33), gm=gm)
    assert (gm["y"] == UNTOUCHED).all()


def test_one_cast_spans_rows_with_what_lies_between_them() -> None:
    """Rows of 8 lie 16 apart in FP32, so that in FP16 they are lines; half of each is garbage."""
    x = np.arange(24, dtype=np.float32)
    gm = memory(x=x.view(np.uint8), y_bytes=96)
    rows = copy_in(A, x_at(), count=3, length=32, ub_gap=1, elem=4)
    spans = cast(f.FP32, f.FP16, RINT, count=2 * 16 + 8, src=A, dst=B)
    y = execute_fenced(rows, spans, copy_out(y_at(), B, count=3, length=16, elem=2), gm=gm)
    assert y[:48].view(np.float16).tolist() == x.tolist()
    text = fault(rows, spans, copy_out(y_at(), B, count=2, length=32, elem=2), gm=gm)
    assert text == garbage(1024, 1088, 1040, written=True)


@pytest.mark.parametrize(("src", "dst"), PAIRS)
def test_garbage_is_garbage_after_being_cast(src: Format, dst: Format) -> None:
    """One line comes in, two are cast, and the results of the first can leave."""
    lanes = 32 * 8 // src.bits
    set_up = SetDeqScale(scale=1.0)
    mode = None if CAST_TABLE[A2_A3][src, dst].has_none else RINT
    both = cast(src, dst, mode, count=2 * lanes, dst=B)
    good = lanes * dst.bits // 8
    ready = (set_up, copy_in(A, x_at()), both)
    execute_fenced(*ready, copy_out(y_at(), B, length=good))
    text = fault(*ready, copy_out(y_at(), B, length=good + 1))
    assert text == garbage(1024, 1024 + good + 1, 1024 + good, written=True)


@pytest.mark.parametrize(("src", "dst"), PAIRS)
def test_garbage_cast_over_data_is_garbage(src: Format, dst: Format) -> None:
    set_up = SetDeqScale(scale=1.0)
    mode = None if CAST_TABLE[A2_A3][src, dst].has_none else RINT
    count = 32 * 8 // src.bits
    out_bytes = count * dst.bits // 8
    ready = (set_up, copy_in(B, x_at(), length=192))
    execute_fenced(*ready, copy_out(y_at(), B, length=out_bytes))
    over = cast(src, dst, mode, count=count, dst=B)
    text = fault(*ready, over, copy_out(y_at(), B, length=out_bytes))
    assert text == garbage(1024, 1024 + out_bytes, 1024, written=True)
    execute_fenced(*ready, over, copy_out(y_at(), ub(1024 + -(-out_bytes // 32) * 32)))


def test_one_byte_of_garbage_spoils_its_element_alone() -> None:
    """Random padding in the middle of an element of 8 B, on either side of it nothing wrong."""
    spoil = dataclasses.replace(
        copy_in(ub(32), x_at(), length=3), left_padding=0, right_padding=1, elem_bytes=1
    )
    ready = (copy_in(A, x_at(), length=96), spoil, cast(f.INT64, f.INT32, None, count=12, dst=B))
    execute_fenced(*ready, copy_out(y_at(), B, length=16))
    execute_fenced(*ready, copy_out(y_at(), ub(1024 + 32), length=16))
    assert fault(*ready, copy_out(y_at(), B, length=17)) == garbage(1024, 1041, 1040, written=True)


@pytest.mark.parametrize(
    "shape",
    [{"left_padding": 2}, {"right_padding": 3}, {"left_padding": 1, "right_padding": 1}],
    ids=str,
)
def test_padding_without_a_value_is_garbage(shape: dict[str, int]) -> None:
    load = dataclasses.replace(copy_in(A, x_at(), length=8, elem=2), **shape)
    left = 2 * shape.get("left_padding", 0)
    whole = copy_out(y_at(), A, length=32)
    assert fault(load, whole) == garbage(0, 32, 0 if left else 8, written=True)
    part = copy_out(y_at(), A, length=left + 9)
    wanted = 0 if left else 8
    assert fault(load, part) == garbage(0, left + 9, wanted, written=True)
    filled = dataclasses.replace(load, is_pad=True, padding_value=0x0102)
    y = execute_fenced(filled, whole).view("<u2")[:16].tolist()
    data = np.arange(8, dtype=np.uint8).view("<u2").tolist()
    assert y == [0x0102] * (left // 2) + data + [0x0102] * (12 - left // 2)


def test_random_padding_over_data_is_garbage_too() -> None:
    spoil = dataclasses.replace(copy_in(A, x_at(), length=30), right_padding=2)
    assert fault(copy_in(A, x_at()), spoil, copy_out(y_at(), A)) == garbage(0, 32, 30, written=True)
    execute_fenced(copy_in(A, x_at()), spoil, copy_out(y_at(), A, length=30))


def test_duplicate_writes_what_it_counts() -> None:
    fill = Duplicate(dst=A, value=3, count=5)
    execute_fenced(fill, copy_out(y_at(), A, length=10))
    assert fault(fill, copy_out(y_at(), A, length=11)) == garbage(0, 11, 10)


@pytest.mark.parametrize("known", [(True, True), (True, False), (False, True), (False, False)])
def test_and_knows_what_both_sides_know(known: tuple[bool, bool]) -> None:
    sources = (A, ub(32))
    ready = [copy_in(a, x_at()) for a, is_known in zip(sources, known, strict=True) if is_known]
    work = (*ready, And(dst=B, src0=sources[0], src1=sources[1], count=16), copy_out(y_at(), B))
    if all(known):
        execute_fenced(*work)
    else:
        assert fault(*work) == garbage(1024, 1056, 1024, written=True)


def test_masked_out_lanes_keep_what_was_known_of_them() -> None:
    """Even lanes are cast from garbage; the odd ones keep their bytes and their good name."""
    even = 0x5555_5555_5555_5555

    def repeat(mask: tuple[int, int]) -> CastRepeat:
        return CastRepeat(
            dst=B,
            src=A,
            dst_format=f.INT32,
            src_format=f.FP32,
            mode=RINT,
            mask=mask,
            repeat_times=1,
        )

    halves = np.full(64, 2.5, np.float32).view(np.uint8)
    ready = (copy_in(B, x_at(), length=256), repeat((even, 0)))
    odd_lane = DataCopyPad(
        dst=y_at(),
        src=B,
        block_count=1,
        block_len_bytes=8,
        src_stride=0,
        dst_stride=0,
        elem_bytes=4,
    )
    assert fault(*ready, odd_lane, gm=memory(x=halves)) == garbage(1024, 1032, 1024, written=True)
    good = (copy_in(A, x_at(), length=256), *ready, copy_out(y_at(), B, length=256))
    y = execute_fenced(*good, gm=memory(x=halves))
    kept = int(np.float32(2.5).view(np.int32))
    assert y.view(np.int32).tolist() == [2, kept] * 32


def test_no_bit_depends_on_what_garbage_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short row is cast with its padding and what lies behind; only the row leaves."""

    def result() -> Bytes:
        return execute_anyway(
            copy_in(A, x_at(), length=6, elem=2),
            FENCE,
            cast(f.FP16, f.FP32, None, count=64, dst=B),
            FENCE,
            copy_out(y_at(), B, length=12),
        )

    first = result()
    for byte in (0x00, 0x7F, 0xFF):
        monkeypatch.setattr("simulator.machine.memory.GARBAGE", byte)
        np.testing.assert_array_equal(result(), first)
