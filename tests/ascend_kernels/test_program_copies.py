"""TileProgram: which bytes its copies move, and within which limits."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.programs.tile_programs import (
    CASTS,
    all_instructions,
    copies,
    copies_among,
    program_of,
    shapes,
)

from ascend_kernels.program import TileProgram
from simulator.machine.isa import (
    AndRepeat,
    Cast,
    CastRepeat,
    DataCopyPad,
    Duplicate,
    GmAddress,
    Instruction,
    UbAddress,
)
from simulator.numbers import formats as f
from simulator.numbers.formats import Format
from tiling.grid import Shape


def count_bytes(
    program: TileProgram, x_bytes: int, y_bytes: int
) -> dict[str, npt.NDArray[np.int64]]:
    """Counts how often each byte of GM is moved, replayed from the copies' documented meaning."""
    moved = {"x": np.zeros(x_bytes, np.int64), "y": np.zeros(y_bytes, np.int64)}
    for copy in copies(program):
        coming = isinstance(copy.src, GmAddress)
        gm = copy.src if coming else copy.dst
        assert isinstance(gm, GmAddress)
        assert gm.tensor == ("x" if coming else "y")
        gap = copy.src_stride if coming else copy.dst_stride
        for block in range(copy.block_count):
            start = gm.offset_bytes + block * (copy.block_len_bytes + gap)
            assert start >= 0
            assert start + copy.block_len_bytes <= moved[gm.tensor].size
            moved[gm.tensor][start : start + copy.block_len_bytes] += 1
    return moved


@given(shapes(), st.sampled_from(CASTS))
@settings(deadline=None, max_examples=120)
@example(((2, 3, 4, 30), (1, 2, 3, 16)), CASTS[0])
@example(((5, 1, 3, 6), (2, 1, 2, 6)), CASTS[6])
@example(((4, 4, 2), (3, 3, 2)), CASTS[10])
def test_every_byte_is_read_once_and_written_once(
    drawn: tuple[Shape, Shape], what: tuple[Format, Format, bool]
) -> None:
    (shape, tile), (src, dst, saturate) = drawn, what
    program = program_of(shape, tile, src, dst, saturate=saturate)
    elems = math.prod(shape)
    moved = count_bytes(program, elems * src.bits // 8, elems * dst.bits // 8)
    assert (moved["x"] == 1).all()
    assert (moved["y"] == 1).all()


def ub_spans(instruction: Instruction) -> list[tuple[int, int]]:
    """The bytes of UB that an instruction touches: first and one beyond the last."""
    if isinstance(instruction, DataCopyPad):
        coming = isinstance(instruction.dst, UbAddress)
        address = instruction.dst if coming else instruction.src
        assert isinstance(address, UbAddress)
        line_gap = instruction.dst_stride if coming else instruction.src_stride
        line = -(-instruction.block_len_bytes // 32) * 32
        size = instruction.block_count * line + (instruction.block_count - 1) * line_gap * 32
        return [(address.offset_bytes, address.offset_bytes + size)]
    if isinstance(instruction, Cast):
        ends = [
            (instruction.src, instruction.src_format),
            (instruction.dst, instruction.dst_format),
        ]
        return [
            (a.offset_bytes, a.offset_bytes + instruction.count * fmt.bits // 8) for a, fmt in ends
        ]
    if isinstance(instruction, Duplicate):
        start = instruction.dst.offset_bytes
        return [(start, start + 2 * instruction.count)]
    if isinstance(instruction, AndRepeat):
        assert isinstance(instruction.mask, int)
        end = (instruction.repeat_times - 1) * 256 + 2 * instruction.mask
        mask = instruction.src1.offset_bytes
        data = {instruction.dst.offset_bytes, instruction.src0.offset_bytes}
        return [*((start, start + end) for start in data), (mask, mask + 32)]
    if isinstance(instruction, CastRepeat):
        assert isinstance(instruction.mask, int)
        sides = [
            (instruction.src, instruction.src_format, instruction.src_rep_stride),
            (instruction.dst, instruction.dst_format, instruction.dst_rep_stride),
        ]
        return [
            (
                address.offset_bytes,
                address.offset_bytes
                + (instruction.repeat_times - 1) * stride * 32
                + instruction.mask * fmt.bits // 8,
            )
            for address, fmt, stride in sides
        ]
    return []


@pytest.mark.slow
@given(shapes(last=3000), st.sampled_from(CASTS))
@settings(deadline=None, max_examples=80)
@example(((4, 5000), (4, 5000)), CASTS[10])
@example(((3, 1000), (2, 1000)), CASTS[9])
@example(((2800, 4), (1400, 2)), CASTS[0])
@example(((1960, 66), (980, 34)), CASTS[10])
def test_instructions_stay_inside_the_buffers_of_the_plan(
    drawn: tuple[Shape, Shape], what: tuple[Format, Format, bool]
) -> None:
    (shape, tile), (src, dst, saturate) = drawn, what
    rows = math.prod(min(t, s) for t, s in zip(tile[:-1], shape[:-1], strict=True))
    tile = (*tile[:-1], min(tile[-1], max(2, 8000 // rows // 64 * 64)))
    program = program_of(shape, tile, src, dst, saturate=saturate)
    buffers = [(b.offset_bytes, b.offset_bytes + b.size_bytes) for b in program.plan.ub.buffers]
    for instruction in all_instructions(program):
        for start, stop in ub_spans(instruction):
            assert start % 32 == 0
            assert any(low <= start and stop <= high for low, high in buffers), str(instruction)


@given(shapes(), st.sampled_from(CASTS))
@settings(deadline=None, max_examples=60)
def test_copies_respect_the_documented_limits(
    drawn: tuple[Shape, Shape], what: tuple[Format, Format, bool]
) -> None:
    (shape, tile), (src, dst, saturate) = drawn, what
    for copy in copies(program_of(shape, tile, src, dst, saturate=saturate)):
        assert_within_limits(copy)


def assert_within_limits(copy: DataCopyPad) -> None:
    assert 1 <= copy.block_count <= 4095
    assert 1 <= copy.block_len_bytes <= 2097151
    assert copy.block_len_bytes % copy.elem_bytes == 0
    assert 0 <= copy.src_stride <= 2**32 - 1
    assert 0 <= copy.dst_stride <= 2**32 - 1


@pytest.mark.parametrize(
    ("shape", "tile"),
    [
        ((10000, 2), (3072, 2)),
        ((100, 100, 2), (100, 30, 2)),
        ((16, 16, 16, 16), (8, 16, 16, 16)),
        ((65536,), (32768,)),
    ],
    ids=str,
)
def test_the_largest_tiles_respect_the_documented_limits(shape: Shape, tile: Shape) -> None:
    found = list(copies(program_of(shape, tile)))
    for copy in found:
        assert_within_limits(copy)
    assert sum(copy.block_count for copy in found) == 2 * sum(
        math.prod(part.shape[:-1])
        for core in program_of(shape, tile).cores
        for part in program_of(shape, tile).parts(core)
    )


def test_rows_too_far_apart_for_a_stride_are_copied_one_by_one() -> None:
    """5.7 GB from row to row are beyond 32 bits in INT64, 2.9 GB in FP32 are not."""
    shape = (3, 715_827_880)
    program = program_of(shape, (3, 8), f.INT64, f.FP32)
    found = list(itertools.islice(copies_among(program.instructions(0)), 4))
    assert [(str(c.src), c.block_count) for c in found[:3]] == [
        (f"gm.x+{row * shape[1] * 8}", 1) for row in range(3)
    ]
    assert [c.dst for c in found[:3]] == [UbAddress(offset_bytes=64 * row) for row in range(3)]
    assert (found[3].block_count, found[3].dst_stride) == (3, (shape[1] - 8) * 4)
    for copy in found:
        assert_within_limits(copy)


@pytest.mark.parametrize(("more", "counts"), [(31, [2, 2]), (32, [1, 1, 2])])
def test_the_largest_stride(more: int, counts: list[int]) -> None:
    """Rows of INT64 lie 2^32 - 8 bytes apart, then 2^32: one more than a stride of 32 bits."""
    shape = (2, 2**29 + more)
    program = program_of(shape, (2, 32), f.INT64, f.FP32)
    found = list(itertools.islice(copies_among(program.instructions(0)), len(counts)))
    assert [copy.block_count for copy in found] == counts
    assert found[0].src_stride == (2**32 - 8 if more == 31 else 0)
    for copy in found:
        assert_within_limits(copy)


def blocks(shape: Shape, tile: Shape) -> set[tuple[int, int]]:
    """The numbers of blocks that copies move, and their bytes in FP32."""
    found = copies(program_of(shape, tile, f.FP32, f.FP32))
    return {(c.block_count, c.block_len_bytes) for c in found}


def test_neighbouring_rows_are_one_copy() -> None:
    assert blocks((4, 6, 32), (4, 6, 32)) == {(1, 4 * 6 * 32 * 4)}
    assert blocks((4, 6, 32), (4, 3, 32)) == {(4, 3 * 32 * 4)}
    assert blocks((4, 6, 32), (4, 6, 16)) == {(24, 16 * 4)}
    assert blocks((4, 6, 32), (1, 6, 32)) == {(1, 6 * 32 * 4)}


def test_the_longest_axis_of_rows_goes_into_the_copy() -> None:
    """Of equal ones the innermost; rows lie in UB as they are copied."""
    assert blocks((10, 4, 32), (5, 2, 16)) == {(5, 64)}
    assert blocks((4, 10, 32), (2, 5, 16)) == {(5, 64)}
    program = program_of((10, 4, 32), (5, 2, 16), f.FP32, f.FP32)
    first, second = list(copies_among(program.instructions(0)))[:2]
    assert (str(first.src), str(first.dst)) == ("gm.x+0", "ub+0")
    assert (str(second.src), str(second.dst)) == ("gm.x+128", f"ub+{5 * 64}")
    assert first.src_stride == (4 * 32 - 16) * 4
    equal = list(copies_among(program_of((8, 8, 32), (4, 4, 16)).instructions(0)))
    assert equal[0].src_stride == (32 - 16) * 4


def test_rows_of_one_pitch_are_whole_blocks_on_both_sides() -> None:
    """20 elements, 32 apart: a gap of a block in FP32, none in FP16."""
    read, written = list(copies_among(program_of((3, 40), (3, 20)).instructions(0)))[:2]
    assert (read.block_len_bytes, read.src_stride, read.dst_stride) == (80, 80, 1)
    assert (written.block_len_bytes, written.src_stride, written.dst_stride) == (40, 0, 40)
