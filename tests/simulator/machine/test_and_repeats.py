"""And by repeats: masks, strides and lanes, against a model written from the documents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.numbers.codes import SEED
from support.programs.listings import (
    copy_in,
    copy_out,
    execute_fenced,
    fault,
    memory,
    ub,
    x_at,
    y_at,
)

from simulator.machine.isa import AndRepeat

SPAN = (2 * 12 + 7 * 3 + 1) * 32
"""Bytes that the farthest of these reaches."""
FIRST, SECOND, TARGET = 0, 8192, 16384


def both(**changes: Any) -> AndRepeat:
    fields: dict[str, Any] = {
        "dst": ub(TARGET),
        "src0": ub(FIRST),
        "src1": ub(SECOND),
        "mask": 128,
        "repeat_times": 2,
    }
    return AndRepeat(**{**fields, **changes})


strides = st.integers(0, 12)


@given(
    st.integers(0, 128) | st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)),
    st.integers(0, 3),
    st.tuples(st.integers(1, 3), st.integers(0, 3), st.integers(0, 3)),
    st.tuples(strides, strides, strides),
)
@settings(max_examples=150, deadline=None)
def test_every_element_lies_where_the_address_rule_says(
    mask: int | tuple[int, int], times: int, blk: tuple[int, ...], rep: tuple[int, ...]
) -> None:
    names = ("dst", "src0", "src1")
    found = both(
        mask=mask,
        repeat_times=times,
        **{f"{name}_blk_stride": stride for name, stride in zip(names, blk, strict=True)},
        **{f"{name}_rep_stride": stride for name, stride in zip(names, rep, strict=True)},
    )
    x = np.random.default_rng(SEED).integers(0, 256, 3 * SPAN, dtype=np.uint8)
    y = execute_fenced(
        copy_in(ub(FIRST), x_at(), length=SPAN),
        copy_in(ub(SECOND), x_at(SPAN), length=SPAN),
        copy_in(ub(TARGET), x_at(2 * SPAN), length=SPAN),
        found,
        copy_out(y_at(), ub(TARGET), length=SPAN),
        gm=memory(x=x, y_bytes=SPAN),
    )
    first, second, target = x.view(np.uint16).reshape(3, -1).copy()
    bits = (1 << mask) - 1 if isinstance(mask, int) else mask[0] | mask[1] << 64
    for repeat in range(times):
        for lane in range(128):
            if bits >> lane & 1:
                at = [
                    (repeat * r + lane // 16 * b) * 16 + lane % 16
                    for r, b in zip(rep, blk, strict=True)
                ]
                target[at[0]] = first[at[1]] & second[at[2]]
    assert y.tobytes() == target.tobytes()


def test_a_mask_of_one_block_meets_every_block_in_place() -> None:
    x = np.arange(1024, dtype=np.uint16)
    mask = np.full(16, 0x00FF, np.uint16)
    y = execute_fenced(
        copy_in(ub(FIRST), x_at(), length=2048),
        copy_in(ub(SECOND), x_at(2048), length=32),
        both(dst=ub(FIRST), repeat_times=8, src1_blk_stride=0, src1_rep_stride=0),
        copy_out(y_at(), ub(FIRST), length=2048),
        gm=memory(x=np.concatenate([x, mask]).view(np.uint8), y_bytes=2048),
    )
    np.testing.assert_array_equal(y.view(np.uint16), x & 0x00FF)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"mask": 129}, "mask must be 0 to 128 lanes"),
        ({"mask": (0, 1 << 64)}, "has bits beyond the 128 lanes"),
        ({"repeat_times": 256}, "repeatTime must be 0 to 255, is 256"),
        ({"dst_rep_stride": 256}, "dstRepStride must be 0 to 255 blocks"),
        ({"src0_rep_stride": -1}, "src0RepStride must be 0 to 255 blocks"),
        ({"src1_rep_stride": 256}, "src1RepStride must be 0 to 255 blocks"),
        ({"dst_blk_stride": 0}, "dstBlkStride must be 1 to 255 blocks, is 0"),
        ({"src0_blk_stride": 256}, "src0BlkStride must be 0 to 255 blocks, is 256"),
        ({"src1_blk_stride": 256}, "src1BlkStride must be 0 to 255 blocks, is 256"),
        ({"dst": ub(FIRST + 32)}, "overlap in part"),
        ({"dst": ub(SECOND - 32)}, "overlap in part"),
        ({"dst": ub(FIRST), "dst_rep_stride": 0, "src0_rep_stride": 0}, "repeats overlap"),
        ({"dst": ub(TARGET + 16)}, "is not aligned to 32 B"),
        ({"src1": ub(196608 - 256)}, "are outside the 196608 B"),
    ],
    ids=str,
)
def test_what_the_hardware_does_not_permit_is_refused(changes: dict[str, Any], text: str) -> None:
    assert text in fault(both(**changes))


def test_garbage_of_either_source_does_not_reach_gm() -> None:
    for written in (FIRST, SECOND):
        text = fault(
            copy_in(ub(written), x_at(), length=512),
            both(),
            copy_out(y_at(), ub(TARGET), length=512),
            gm=memory(x=np.zeros(512, np.uint8), y_bytes=512),
        )
        assert "was written with garbage: garbage would reach GM" in text
