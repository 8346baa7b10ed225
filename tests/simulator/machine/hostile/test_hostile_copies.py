"""DataCopy and DataCopyPad: limits, alignment and what they put around a block."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.programs.listings import (
    UNTOUCHED,
    Address,
    copy_in,
    copy_out,
    execute_fenced,
    fault,
    memory,
    ub,
    x_at,
    y_at,
)

from simulator.machine.isa import DataCopy, Pipe

A, B = ub(0), ub(1024)


def plain(dst: Address, src: Address, size_bytes: int, elem: int = 1) -> DataCopy:
    return DataCopy(dst=dst, src=src, size_bytes=size_bytes, elem_bytes=elem)


# --- DataCopy ----------------------------------------------------------------------------------


@given(st.integers(0, 256))
def test_a_plain_copy_rounds_down_to_whole_lines(size_bytes: int) -> None:
    whole = size_bytes // 32 * 32
    y = execute_fenced(plain(A, x_at(), size_bytes), copy_out(y_at(), A, length=whole))
    assert y[:whole].tolist() == list(range(whole))
    assert (y[whole:] == UNTOUCHED).all()
    y = execute_fenced(copy_in(A, x_at(), length=256), plain(y_at(), A, size_bytes))
    assert y[:whole].tolist() == list(range(whole))
    assert (y[whole:] == UNTOUCHED).all()


def test_what_a_plain_copy_left_out_is_garbage() -> None:
    load = plain(A, x_at(), 63)
    execute_fenced(load, copy_out(y_at(), A))
    assert fault(load, copy_out(y_at(), A, length=33)) == (
        "reads ub+0..33, whose byte 32 was never written: garbage would reach GM"
    )


def test_a_plain_copy_of_less_than_a_line_is_nothing() -> None:
    execute_fenced(plain(ub(16), x_at(), 31), plain(y_at(10_000), A, 31), plain(A, x_at(), 0))
    assert fault(plain(A, x_at(), -1)) == "size must not be negative, is -1 B"


@pytest.mark.parametrize("elem", [2, 4, 8])
def test_gm_of_a_plain_copy_is_aligned_to_the_element(elem: int) -> None:
    for offset in (1, elem // 2, elem + 1):
        text = f"is not aligned to its elements of {elem} B"
        assert fault(plain(A, x_at(offset), 32, elem)) == f"gm.x+{offset} {text}"
        store = plain(y_at(offset), A, 32, elem)
        assert fault(copy_in(A, x_at()), store) == f"gm.y+{offset} {text}"
    execute_fenced(plain(A, x_at(elem), 32, elem), plain(y_at(3 * elem), A, 32, elem))
    execute_fenced(plain(A, x_at(1), 32), plain(y_at(3), A, 32))
    # DataCopyPad does not mind.
    execute_fenced(copy_in(A, x_at(1), elem=elem), copy_out(y_at(3), A, elem=elem))


def test_ub_of_a_plain_copy_is_aligned_to_a_line() -> None:
    assert fault(plain(ub(16), x_at(), 32)) == "ub+16 is not aligned to 32 B"
    assert fault(plain(y_at(), ub(16), 32)) == "ub+16 is not aligned to 32 B"
    execute_fenced(plain(ub(32), x_at(), 32), plain(y_at(), ub(32), 32))


def test_a_plain_copy_stays_inside_both_memories() -> None:
    ends = "are outside the {} B there are"
    assert fault(plain(A, x_at(), 288)) == f"gm.x: bytes 0 to 288 {ends.format(256)}"
    assert fault(plain(ub(196576), x_at(), 64)) == (
        f"ub: bytes 196576 to 196640 {ends.format(196608)}"
    )
    assert fault(plain(A, x_at(-32), 32)) == f"gm.x: bytes -32 to 0 {ends.format(256)}"
    execute_fenced(plain(A, x_at(), 287), plain(y_at(), A, 256))
    assert fault(plain(A, ub(64), 32)) == "DataCopy moves between GM and UB"
    assert fault(plain(y_at(), x_at(), 32)) == "DataCopy moves between GM and UB"


def test_a_plain_copy_knows_its_pipe() -> None:
    load, store = plain(A, x_at(8), 64), plain(y_at(), A, 64)
    assert (load.pipe, store.pipe) == (Pipe.MTE2, Pipe.MTE3)
    assert str(load) == "DataCopy ub+0 <- gm.x+8  64 B"
    assert str(store) == "DataCopy gm.y+0 <- ub+0  64 B"


# --- Padding -----------------------------------------------------------------------------------


def padded(length: int, elem: int, left: int, right: int, **changes: Any) -> Any:
    load = copy_in(A, x_at(), length=length, elem=elem)
    return dataclasses.replace(load, left_padding=left, right_padding=right, **changes)


@pytest.mark.parametrize("elem", [1, 2, 4, 8])
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_is_a_line_at_most(elem: int, side: str) -> None:
    most = 32 // elem

    def one_side(elems: int) -> Any:
        left, right = (elems, 0) if side == "left" else (0, elems)
        return padded(elem, elem, left, right, is_pad=True)

    execute_fenced(one_side(most), copy_out(y_at(), A, length=64))
    for elems in (most + 1, -1):
        assert fault(one_side(elems)) == (f"{side}Padding must be 0 to 32 B, is {elems * elem} B")


def test_the_value_for_8_bytes_is_0() -> None:
    assert fault(padded(8, 8, 1, 0, is_pad=True, padding_value=1)) == (
        "paddingValue must be 0 for elements of 8 B"
    )
    y = execute_fenced(padded(8, 8, 1, 2, is_pad=True), copy_out(y_at(), A))
    assert y[:32].tolist() == [0] * 8 + list(range(8)) + [0] * 16
    execute_fenced(padded(8, 4, 1, 0, is_pad=True, padding_value=1))


def test_a_copy_to_gm_takes_no_padding() -> None:
    for changes in ({"left_padding": 1}, {"right_padding": 1}):
        store = dataclasses.replace(copy_out(y_at(), A, length=8), **changes)
        assert fault(copy_in(A, x_at()), store) == "a copy to GM takes no padding"
    execute_fenced(copy_in(A, x_at()), copy_out(y_at(), A, length=8))


@given(
    st.sampled_from([1, 2, 4]),
    st.integers(1, 3),
    st.integers(1, 20),
    st.integers(0, 8),
    st.integers(0, 8),
    st.integers(0, 2),
)
def test_blocks_with_padding_of_a_value(
    elem: int, blocks: int, elems: int, left: int, right: int, ub_gap: int
) -> None:
    """Each block: padding, data, padding, up to whole lines; the gap in UB is left alone."""
    length = elems * elem
    value = 0x7B5A3918 & ((1 << 8 * elem) - 1)
    load = dataclasses.replace(
        copy_in(A, x_at(), count=blocks, length=length, gap=3, ub_gap=ub_gap, elem=elem),
        is_pad=True,
        left_padding=left,
        right_padding=right,
        padding_value=value,
    )
    width = -(-(length + (left + right) * elem) // 32) * 32
    gm = memory(y_bytes=blocks * width)
    y = execute_fenced(load, copy_out(y_at(), A, count=blocks, length=width, ub_gap=ub_gap), gm=gm)
    code = value.to_bytes(elem, "little")
    for block, row in enumerate(y.reshape(blocks, width)):
        data = bytes(range(block * (length + 3), block * (length + 3) + length))
        filler = (width - length - left * elem) // elem
        assert row.tobytes() == code * left + data + code * filler


@pytest.mark.parametrize("elem", [1, 2, 4, 8])
def test_without_padding_the_line_is_filled_with_the_first_element(elem: int) -> None:
    load = copy_in(A, x_at(8), count=2, length=elem, gap=7, elem=elem)
    y = execute_fenced(load, copy_out(y_at(), A, length=64))
    for row, start in zip(y[:64].reshape(2, 32), (8, 15 + elem), strict=True):
        assert row.tolist() == list(range(start, start + elem)) * (32 // elem)


def test_padding_pushes_the_next_block_a_line_on() -> None:
    load = dataclasses.replace(
        copy_in(A, x_at(), count=2, length=32), is_pad=True, right_padding=1, padding_value=9
    )
    y = execute_fenced(load, copy_out(y_at(), A, length=128))
    line = list(range(32))
    assert y[:128].tolist() == [*line, *[9] * 32, *range(32, 64), *[9] * 32]
    assert fault(dataclasses.replace(load, dst=ub(196608 - 96))).startswith("ub: bytes 196512 to")


# --- Limits ------------------------------------------------------------------------------------


def test_blocks_are_up_to_4095_both_ways() -> None:
    x = np.arange(4096, dtype=np.uint16).view(np.uint8)
    gm = memory(x=x, y_bytes=8192)
    y = execute_fenced(
        copy_in(A, x_at(), count=4095, length=2, elem=2),
        copy_out(y_at(), A, count=4095, length=2, elem=2),
        gm=gm,
    )
    np.testing.assert_array_equal(y[:8190], x[:8190])
    assert (y[8190:] == UNTOUCHED).all()
    for load in (copy_in(A, x_at(), count=4096, length=2), copy_out(y_at(), A, count=4096)):
        assert fault(load) == "blockCount must be 0 to 4095, is 4096"


@pytest.mark.parametrize("elem", [1, 2, 4, 8])
def test_a_block_is_up_to_2097151_bytes(elem: int) -> None:
    """UB is smaller, so the largest block is refused for another reason."""
    x = np.zeros(2097152, np.uint8)
    for make, at in ((copy_in, (A, x_at())), (copy_out, (x_at(), A))):
        text = fault(make(*at, length=2097152, elem=elem), gm=memory(x=x))
        assert text == "blockLen must be 0 to 2097151 B, is 2097152"
        most = 2097151 // elem * elem
        text = fault(make(*at, length=most, elem=elem), gm=memory(x=x))
        assert text.startswith("ub: bytes 0 to 20971")
        assert text.endswith("are outside the 196608 B there are")


def test_a_block_as_long_as_ub_passes() -> None:
    x = np.arange(196608 // 4, dtype=np.uint32).view(np.uint8)
    gm = memory(x=x, y_bytes=x.size)
    y = execute_fenced(copy_in(A, x_at(), length=196608), copy_out(y_at(), A, length=196608), gm=gm)
    np.testing.assert_array_equal(y, x)
    longer = copy_in(A, x_at(), length=196609)
    assert fault(longer, gm=memory(x=np.zeros(196609, np.uint8))) == (
        "ub: bytes 0 to 196640 are outside the 196608 B there are"
    )
