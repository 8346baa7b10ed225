"""AscendC's objects in Python: the bits of pypto.cast, faults with a line, wrong use refused."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.codes import NUMPY, SEED, as_codes, as_values, cast_codes
from support.oracle import FORMATS, code_dtype

from simulator import ascendc as asc
from tiling.chips import CHIPS

ROOT = Path(__file__).parents[3]
TILE = 256
NONE, RINT, TRUNC = asc.RoundMode.CAST_NONE, asc.RoundMode.CAST_RINT, asc.RoundMode.CAST_TRUNC

every_landing = pytest.mark.parametrize("landing", ["latest", "earliest"])


def random_codes(fmt: str, size: int) -> np.ndarray:
    rng = np.random.default_rng([SEED, *f"ascendc {fmt}".encode()])
    return rng.integers(0, 1 << FORMATS[fmt].bits, size, dtype=code_dtype(fmt))


def zeros(fmt: str, size: int) -> np.ndarray:
    return np.zeros(size, NUMPY[fmt])


def size_bytes(elems: int, dtype: asc.DataType) -> int:
    return elems * dtype.bitwidth // 8


# --- Kernels -----------------------------------------------------------------------------------


@asc.jit
def queued(
    x: asc.GlobalAddress,
    y: asc.GlobalAddress,
    total: int,
    share: int,
    mode: asc.RoundMode,
    buffers: asc.ConstExpr[int] = 2,
) -> None:
    """Cast with queues, a contiguous share for each core, tails by data_copy_pad."""
    start = asc.get_block_idx() * share
    x_gm, y_gm = asc.GlobalTensor(), asc.GlobalTensor()
    x_gm.set_global_buffer(x + start, share)
    y_gm.set_global_buffer(y + start, share)
    pipe = asc.TPipe()
    in_queue = asc.TQue(asc.TPosition.VECIN, 1)
    out_queue = asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(in_queue, buffers, size_bytes(TILE, x.dtype))
    pipe.init_buffer(out_queue, buffers, size_bytes(TILE, y.dtype))
    for offset in range(0, min(share, total - start), TILE):
        count = min(TILE, share - offset, total - start - offset)
        x_local = in_queue.alloc_tensor(x.dtype)
        blocks = asc.DataCopyExtParams(1, size_bytes(count, x.dtype))
        asc.data_copy_pad(x_local, x_gm[offset:], blocks, asc.DataCopyPadExtParams(x.dtype))
        in_queue.enque(x_local)
        x_local = in_queue.deque(x.dtype)
        y_local = out_queue.alloc_tensor(y.dtype)
        asc.cast(y_local, x_local, mode, count)
        in_queue.free_tensor(x_local)
        out_queue.enque(y_local)
        y_local = out_queue.deque(y.dtype)
        blocks = asc.DataCopyExtParams(1, size_bytes(count, y.dtype))
        asc.data_copy_pad(y_gm[offset:], y_local, blocks)
        out_queue.free_tensor(y_local)


def cast_by_kernel(
    codes: np.ndarray, src: str, dst: str, mode: str, *, cores: int = 1, landing: Any = "latest"
) -> np.ndarray:
    """Converts these codes by the kernel with queues."""
    y = zeros(dst, codes.size)
    kernel = queued.options(chip="Ascend910B1", landing=landing)
    share = -(-codes.size // cores)
    share += share % 2
    kernel[cores](as_values(codes, src), y, codes.size, share, asc.RoundMode[f"CAST_{mode}"])
    return as_codes(y, dst)


@asc.jit
def flagged(
    x: asc.GlobalAddress, y: asc.GlobalAddress, tiles: int, *, without: tuple[str, ...] = ()
) -> None:
    """Cast with tensors placed by hand and flags written out, in two slots."""
    event = asc.HardEvent
    x_gm, y_gm = asc.GlobalTensor(), asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    y_gm.set_global_buffer(y)
    x_local = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 2 * TILE)
    y_local = asc.LocalTensor(asc.half, asc.TPosition.VECOUT, 8 * TILE, 2 * TILE)
    for slot in range(2):
        asc.set_flag(event.MTE3_MTE2, slot)
    for tile in range(tiles):
        slot = tile % 2
        asc.wait_flag(event.MTE3_MTE2, slot)
        asc.data_copy(x_local[slot * TILE :], x_gm[tile * TILE :], TILE)
        if "MTE2_V" not in without:
            asc.set_flag(event.MTE2_V, slot)
            asc.wait_flag(event.MTE2_V, slot)
        asc.cast(y_local[slot * TILE :], x_local[slot * TILE :], TRUNC, TILE)  # the cast
        if "V_MTE3" not in without:
            asc.set_flag(event.V_MTE3, slot)
            asc.wait_flag(event.V_MTE3, slot)
        asc.data_copy(y_gm[tile * TILE :], y_local[slot * TILE :], TILE)  # the copy out
        asc.set_flag(event.MTE3_MTE2, slot)
    for slot in range(2):
        asc.wait_flag(event.MTE3_MTE2, slot)


def line_of(kernel: Callable[..., None], text: str) -> int:
    lines, first = inspect.getsourcelines(inspect.unwrap(kernel))
    (found,) = (number for number, line in enumerate(lines, first) if text in line)
    return found


# --- Bits --------------------------------------------------------------------------------------


@every_landing
@pytest.mark.parametrize(
    ("src", "dst", "mode"),
    [
        ("FP32", "FP16", "RINT"),
        ("FP32", "FP16", "ODD"),
        ("FP32", "BF16", "FLOOR"),
        ("FP32", "INT32", "CEIL"),
        ("FP32", "INT64", "TRUNC"),
        ("FP16", "INT8", "TRUNC"),
        ("FP16", "UINT8", "ROUND"),
        ("FP16", "INT4", "RINT"),
        ("INT4", "FP16", "NONE"),
        ("BF16", "FP32", "NONE"),
        ("INT64", "FP32", "ROUND"),
        ("INT16", "FP16", "NONE"),
    ],
    ids=lambda word: word.lower(),
)
def test_a_kernel_gives_the_bits_of_pypto_cast(src: str, dst: str, mode: str, landing: str) -> None:
    codes = random_codes(src, 5 * TILE + 86)
    actual = cast_by_kernel(codes, src, dst, mode, cores=2, landing=landing)
    np.testing.assert_array_equal(actual, cast_codes(codes, src, dst, mode))


@every_landing
@pytest.mark.parametrize("cores", [1, 2, 7, 40, 48])
@pytest.mark.parametrize("size", [1, 3, TILE, 4099])
def test_neither_cores_nor_tails_change_a_bit(size: int, cores: int, landing: str) -> None:
    codes = random_codes("FP32", size)
    actual = cast_by_kernel(codes, "FP32", "FP16", "RINT", cores=cores, landing=landing)
    np.testing.assert_array_equal(actual, cast_codes(codes, "FP32", "FP16", "RINT"))


def test_the_definition_gives_the_same_bits() -> None:
    codes = random_codes("FP32", 1000)
    y = zeros("BF16", 1000)
    queued.options(exact=True)[1](as_values(codes, "FP32"), y, 1000, 1000, TRUNC)
    np.testing.assert_array_equal(as_codes(y, "BF16"), cast_codes(codes, "FP32", "BF16", "TRUNC"))


@every_landing
def test_flags_written_out_give_the_same_bits(landing: Any) -> None:
    codes = random_codes("FP32", 7 * TILE)
    y = zeros("FP16", codes.size)
    flagged.options(landing=landing)[1](as_values(codes, "FP32"), y, 7)
    np.testing.assert_array_equal(as_codes(y, "FP16"), cast_codes(codes, "FP32", "FP16", "TRUNC"))


def one_tile(compute: Callable[[asc.LocalTensor, asc.LocalTensor], None]) -> asc.JitFunction:
    """A kernel that copies 128 elements in, computes, and copies 128 out."""

    @asc.jit
    def kernel(x: asc.GlobalAddress, y: asc.GlobalAddress) -> None:
        x_gm, y_gm = asc.GlobalTensor(), asc.GlobalTensor()
        x_gm.set_global_buffer(x)
        y_gm.set_global_buffer(y)
        x_local = asc.LocalTensor(x.dtype, asc.TPosition.VECIN, 0, 128)
        y_local = asc.LocalTensor(y.dtype, asc.TPosition.VECOUT, 1024, 128)
        asc.data_copy(x_local, x_gm, 128)
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)
        compute(y_local, x_local)
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)
        asc.data_copy(y_gm, y_local, 128)

    return kernel


def run_one_tile(
    codes: np.ndarray, src: str, dst: str, compute: Callable[[Any, Any], None]
) -> np.ndarray:
    y = zeros(dst, 128)
    one_tile(compute)[1](as_values(codes, src), y)
    return as_codes(y, dst)


@pytest.mark.parametrize("mask", [64, [2**64 - 1, 0]], ids=["lanes", "words"])
def test_the_form_with_repeats_is_the_form_with_a_count(mask: Any) -> None:
    codes = random_codes("FP32", 128)
    strides = asc.UnaryRepeatParams(1, 1, 4, 8)
    forms = [
        lambda y, x: asc.cast(y, x, RINT, 128),
        lambda y, x: asc.cast(y, x, RINT, count=128),
        lambda y, x: asc.cast(y, x, RINT, mask, 2, strides),
        lambda y, x: asc.cast(y, x, RINT, mask=mask, repeat_times=2, repeat_params=strides),
    ]
    wanted = cast_codes(codes, "FP32", "FP16", "RINT")
    for form in forms:
        np.testing.assert_array_equal(run_one_tile(codes, "FP32", "FP16", form), wanted)


def test_lanes_that_a_mask_leaves_out_keep_what_was_there() -> None:
    codes = random_codes("FP32", 128)

    def compute(y: asc.LocalTensor, x: asc.LocalTensor) -> None:
        asc.cast(y, x, asc.RoundMode.CAST_FLOOR, 128)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        mask = [0x5555555555555555, 0]
        asc.cast(y, x, asc.RoundMode.CAST_CEIL, mask, 2, asc.UnaryRepeatParams(1, 1, 4, 8))

    actual = run_one_tile(codes, "FP32", "FP16", compute)
    wanted = cast_codes(codes, "FP32", "FP16", "FLOOR")
    wanted[::2] = cast_codes(codes, "FP32", "FP16", "CEIL")[::2]
    np.testing.assert_array_equal(actual, wanted)


def test_the_saturation_flags() -> None:
    halves, singles = random_codes("FP16", 128), random_codes("FP32", 128)

    def wrap(y: asc.LocalTensor, x: asc.LocalTensor) -> None:
        asc.set_saturation_flag(asc.SaturationMode.CAST, False)
        asc.cast(y, x, TRUNC, 128)
        asc.set_saturation_flag(asc.SaturationMode.CAST, True)

    def clamp(y: asc.LocalTensor, x: asc.LocalTensor) -> None:
        asc.set_saturation_flag(asc.SaturationMode.FLOAT, True)
        asc.cast(y, x, RINT, 128)

    np.testing.assert_array_equal(
        run_one_tile(halves, "FP16", "UINT8", wrap),
        cast_codes(halves, "FP16", "UINT8", "TRUNC", "OFF"),
    )
    np.testing.assert_array_equal(
        run_one_tile(singles, "FP32", "FP16", clamp),
        cast_codes(singles, "FP32", "FP16", "RINT", inf_nan_mode=False),
    )


def test_the_low_byte_by_duplicate_and_bitwise_and() -> None:
    codes = random_codes("FP32", 128)

    def compute(y: asc.LocalTensor, x: asc.LocalTensor) -> None:
        mask = asc.LocalTensor(asc.int16, asc.TPosition.VECCALC, 2048, 128)
        asc.cast(y, x, TRUNC, 128)
        asc.duplicate(mask, 0x00FF, 128)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        asc.bitwise_and(y, y, mask, 128)

    wanted = cast_codes(codes, "FP32", "INT16", "TRUNC") & 0xFF
    np.testing.assert_array_equal(run_one_tile(codes, "FP32", "INT16", compute), wanted)


def test_padding_is_filled_as_asked() -> None:
    @asc.jit
    def kernel(x: asc.GlobalAddress, y: asc.GlobalAddress) -> None:
        x_gm, y_gm = asc.GlobalTensor(), asc.GlobalTensor()
        x_gm.set_global_buffer(x)
        y_gm.set_global_buffer(y)
        local = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 16)
        pad = asc.DataCopyPadExtParams(asc.float32, True, 1, 2, 1.5)
        asc.data_copy_pad(local, x_gm, asc.DataCopyExtParams(2, 20, 4), pad)
        asc.set_flag(asc.HardEvent.MTE2_MTE3, 7)
        asc.wait_flag(asc.HardEvent.MTE2_MTE3, 7)
        asc.data_copy(y_gm, local, 16)

    y = np.zeros(16, np.float32)
    kernel[1](np.arange(11, dtype=np.float32), y)
    assert y.tolist() == [1.5, 0, 1, 2, 3, 4, 1.5, 1.5, 1.5, 6, 7, 8, 9, 10, 1.5, 1.5]


def test_input_is_not_touched_and_may_be_read_only() -> None:
    x = np.arange(-4, 4).astype(ml_dtypes.int4)
    x.flags.writeable = False
    y = np.zeros(8, np.float16)
    queued[1](x, y, 8, 8, NONE)
    assert y.tolist() == [-4, -3, -2, -1, 0, 1, 2, 3]
    with pytest.raises(asc.SimulatorFault, match=r"gm\.y is read-only"):
        queued[1](np.zeros(8, np.float16), x, 8, 8, TRUNC)


# --- Flags, faults and listings ----------------------------------------------------------------


def test_queues_set_and_wait_for_flags_as_ascendc_does() -> None:
    size = 3 * TILE
    program = queued[1].program(zeros("FP32", size), zeros("FP16", size), size, size, RINT)
    tile = [
        *("DataCopyPad", "SetFlag MTE2_V {0}", "WaitFlag MTE2_V {0}"),
        *("Cast", "SetFlag V_MTE2 {0}", "SetFlag V_MTE3 {0}", "WaitFlag V_MTE3 {0}"),
        *("DataCopyPad", "SetFlag MTE3_V {0}"),
    ]
    again = ["WaitFlag V_MTE2 {0}", *tile[:3], "WaitFlag MTE3_V {0}", *tile[3:]]
    wanted = [word.format(0) for word in tile] + [word.format(1) for word in tile]
    wanted += [word.format(0) for word in again]
    wanted += [f"WaitFlag {event} {slot}" for event in ("V_MTE2", "MTE3_V") for slot in (0, 1)]
    for instruction, words in zip(program.instructions(0), wanted, strict=True):
        assert str(instruction).startswith(words)


def test_a_listing_shows_buffers_instructions_and_lines() -> None:
    program = queued[2].program(zeros("FP32", 300), zeros("FP16", 300), 300, 150, RINT)
    text = str(program)
    line = line_of(queued, "asc.cast(")
    assert "KernelProgram queued, cores: 2 of Ascend910B3" in text
    assert "buffer  in_queue1: ub+1024, 1024 B" in text
    assert (
        f"V     Cast ub+2048:FP16 <- ub+0:FP32  CAST_RINT, count=150  # test_ascendc.py:{line}"
    ) in text
    assert "# the end of queued" in text
    assert "gm.x+600" in program.listing(1)


NEVER_WRITTEN = "was never written: garbage would reach GM"


@pytest.mark.parametrize(
    ("without", "landing", "line", "text"),
    [
        ("MTE2_V", "latest", "# the copy out", NEVER_WRITTEN),
        ("MTE2_V", "earliest", "# the cast", "no flag or barrier puts MTE2 before V"),
        ("V_MTE3", "latest", "# the copy out", NEVER_WRITTEN),
        ("V_MTE3", "earliest", "# the copy out", NEVER_WRITTEN),
    ],
    ids=["mte2-v-latest", "mte2-v-earliest", "v-mte3-latest", "v-mte3-earliest"],
)
def test_a_missing_wait_faults_and_names_the_line(
    without: str, landing: Any, line: str, text: str
) -> None:
    place = rf"^core 0, instruction \d+, test_ascendc\.py:{line_of(flagged, line)} \("
    with pytest.raises(asc.SimulatorFault, match=f"{place}.*{text}"):
        flagged.options(landing=landing)[1](
            zeros("FP32", TILE), zeros("FP16", TILE), 1, without=(without,)
        )


def test_a_flag_that_nobody_waits_for_faults_at_its_line() -> None:
    @asc.jit
    def kernel() -> None:
        asc.set_flag(asc.HardEvent.MTE2_V, 3)

    line = line_of(kernel, "set_flag")
    place = re.escape(f"core 0, instruction 0, test_ascendc.py:{line} (SetFlag MTE2_V 3)")
    with pytest.raises(asc.SimulatorFault, match=f"{place}: is never waited for"):
        kernel[1]()


def test_a_fault_names_the_buffer_and_the_line_in_a_part_of_the_kernel() -> None:
    @asc.jit
    def part(local: asc.LocalTensor, x_gm: asc.GlobalTensor) -> None:
        pad = asc.DataCopyPadExtParams(asc.float32)
        asc.data_copy_pad(local, x_gm, asc.DataCopyExtParams(1, 72), pad)  # too long

    @asc.jit
    def kernel(x: asc.GlobalAddress) -> None:
        x_gm = asc.GlobalTensor()
        x_gm.set_global_buffer(x)
        pipe = asc.TPipe()
        small_queue = asc.TQue(asc.TPosition.VECIN, 1)
        pipe.init_buffer(small_queue, 2, 60)
        local = small_queue.alloc_tensor(asc.float32)
        part(local, x_gm)
        small_queue.free_tensor(local)

    line = line_of(part, "# too long")
    text = rf"test_ascendc\.py:{line} .*leaves buffer small_queue0, which ends at ub\+64"
    with pytest.raises(asc.SimulatorFault, match=text):
        kernel[1](zeros("FP32", 32))


def test_int32_to_half_needs_its_scale() -> None:
    codes = random_codes("INT32", 128)

    def scaled(y: asc.LocalTensor, x: asc.LocalTensor) -> None:
        asc.set_deq_scale(1.0)
        asc.cast(y, x, NONE, 128)

    actual = run_one_tile(codes, "INT32", "FP16", scaled)
    np.testing.assert_array_equal(actual, cast_codes(codes, "INT32", "FP16"))
    with pytest.raises(asc.SimulatorFault, match="SetDeqScale 1 first"):
        run_one_tile(codes, "INT32", "FP16", lambda y, x: asc.cast(y, x, NONE, 128))


def test_a_chain_without_a_barrier_faults_and_names_the_line() -> None:
    def compute(y: asc.LocalTensor, x: asc.LocalTensor) -> None:
        asc.cast(x, x, TRUNC, 128)
        asc.cast(y, x, TRUNC, 128)  # too early

    line = line_of(compute, "# too early")
    text = rf"test_ascendc\.py:{line} \(Cast .*no flag or barrier puts V before V"
    with pytest.raises(asc.SimulatorFault, match=text):
        run_one_tile(random_codes("FP32", 128), "FP32", "INT16", compute)


def test_tensors_know_their_size() -> None:
    def compute(y: asc.LocalTensor, x: asc.LocalTensor) -> None:
        sizes = [t.get_size() for t in (x, x[28:], x[16], x[16:].reinterpret_cast(asc.int64))]
        assert sizes == [128, 100, 112, 56]
        assert x[16:].reinterpret_cast(asc.int4b_t)[4:].get_size() == 892
        asc.cast(y, x, TRUNC, 128)

    run_one_tile(random_codes("FP32", 128), "FP32", "INT16", compute)


def test_cores_may_lay_ub_out_differently() -> None:
    @asc.jit
    def kernel() -> None:
        pipe = asc.TPipe()
        first, second = asc.TBuf(), asc.TBuf()
        pipe.init_buffer(first, 64 * asc.get_block_idx() + 64)
        pipe.init_buffer(second, 512)

    ranges = kernel[2].program().ub_ranges
    assert [(r.name, r.offset_bytes, r.size_bytes) for r in ranges] == [("first|second", 0, 640)]


def test_a_buffer_without_a_name_in_the_kernel_is_named_by_its_position() -> None:
    @asc.jit
    def kernel() -> None:
        held = [asc.TQue(asc.TPosition.VECOUT)]
        asc.TPipe().init_buffer(held[0], 1, 32)

    assert [r.name for r in kernel[1].program().ub_ranges] == ["vecout00"]


# --- Wrong use ---------------------------------------------------------------------------------


class Bench:
    """The tensors and queues that the wrong uses work on."""

    def __init__(self, x: asc.GlobalAddress) -> None:
        self.address = x
        self.x_gm = asc.GlobalTensor()
        self.x_gm.set_global_buffer(x)
        self.pipe = asc.TPipe()
        self.que = asc.TQue(asc.TPosition.VECIN, 1)
        self.out = asc.TQue(asc.TPosition.VECOUT, 2)
        self.buf = asc.TBuf(asc.TPosition.VECCALC)
        que = self.que
        self.pipe.init_buffer(que, 2, 256)

    def taken(self, dtype: asc.DataType = asc.float32) -> asc.LocalTensor:
        return self.que.alloc_tensor(dtype)


def used_after_free(b: Bench) -> None:
    tensor = b.taken()
    b.que.free_tensor(tensor)
    asc.data_copy(tensor, b.x_gm, 8)


def slice_used_after_enque(b: Bench) -> None:
    tensor = b.taken()
    part = tensor[8:]
    b.que.enque(tensor)
    asc.data_copy(part, b.x_gm, 8)


def freed_twice(b: Bench) -> None:
    tensor = b.taken()
    b.que.free_tensor(tensor)
    b.que.free_tensor(tensor)


def queue_too_full(b: Bench) -> None:
    b.que.enque(b.taken())
    b.que.enque(b.taken())


def other_dtype_dequeued(b: Bench) -> None:
    b.que.enque(b.taken())
    b.que.deque(asc.int32)


def foreign_tensor(b: Bench) -> None:
    b.pipe.init_buffer(b.out, 1, 256)
    b.out.enque(b.taken())


def too_many_buffers(b: Bench) -> None:
    for _ in range(4):
        b.pipe.init_buffer(asc.TQue(asc.TPosition.VECIN, 1), 2, 32)


def sharing_with_tpipe(b: Bench) -> None:
    asc.LocalTensor(asc.int8, asc.TPosition.VECCALC, 256, 300)


def overlapping_tpipe(b: Bench) -> None:
    asc.LocalTensor(asc.int8, asc.TPosition.VECCALC, 512, 300)
    b.pipe.init_buffer(b.buf, 32)


def never_set() -> asc.GlobalTensor:
    return asc.GlobalTensor()


def int4_at_odd(b: Bench) -> None:
    asc.LocalTensor(asc.int4b_t, asc.TPosition.VECCALC, 512, 64)[3:]


def scratch(b: Bench, dtype: asc.DataType = asc.int16) -> asc.LocalTensor:
    return asc.LocalTensor(dtype, asc.TPosition.VECCALC, 1024, 64)


BLOCKS = asc.DataCopyExtParams(1, 32)
WRONG: list[tuple[str, Callable[[Bench], object], str]] = [
    ("deque-empty", lambda b: b.que.deque(asc.half), "que is empty: enque a tensor before deque"),
    (
        "no-free-buffer",
        lambda b: [b.taken() for _ in range(3)],
        "que has no free buffer: all 2 are in use",
    ),
    ("queue-full", queue_too_full, "que is full: its depth is 1"),
    ("no-buffers", lambda b: b.out.alloc_tensor(asc.half), "a VECOUT queue has no buffers yet"),
    ("buffers-twice", lambda b: b.pipe.init_buffer(b.que, 2, 256), "has its buffers already"),
    (
        "beyond-ub",
        lambda b: b.pipe.init_buffer(b.out, 2, 98304),
        "of 98304 B does not fit UB: 98816 of 196608 B are taken",
    ),
    ("no-bytes", lambda b: b.pipe.init_buffer(b.buf, 0), "must have at least one byte, not 0"),
    ("no-len", lambda b: b.pipe.init_buffer(b.out, 2), "takes at least one buffer"),
    ("buf-num-len", lambda b: b.pipe.init_buffer(b.buf, 2, 32), "a TBuf is one buffer"),
    ("flags", too_many_buffers, "has no flag left: V_MTE2 has 8"),
    ("not-a-queue", lambda b: b.pipe.init_buffer(b.x_gm, 1), "takes a TQue or a TBuf"),
    ("second-pipe", lambda b: asc.TPipe(), "a kernel has one TPipe"),
    ("queue-position", lambda b: asc.TQue(asc.TPosition.VECCALC, 1), "scratch is a TBuf"),
    ("queue-depth", lambda b: asc.TQue(asc.TPosition.VECIN, 0), "at least 1, not 0"),
    ("buf-not-given", lambda b: b.buf.get(asc.half), "the TBuf has no buffer yet"),
    (
        "buf-too-long",
        lambda b: (b.pipe.init_buffer(b.buf, 64), b.buf.get(asc.half, 33)),
        "holds 1 to 32 elements of float16, not 33",
    ),
    ("used-after-free", used_after_free, "tensor of que0 is used after free_tensor"),
    ("used-after-enque", slice_used_after_enque, "used after enque; take the tensor that que."),
    ("freed-twice", freed_twice, "used after free_tensor"),
    ("foreign", foreign_tensor, "the tensor of que0 is none of"),
    ("enque-gm", lambda b: b.que.enque(b.x_gm), "enque takes a LocalTensor, not GlobalTensor"),
    ("left-in-queue", lambda b: b.que.enque(b.taken()), "ends with a tensor in que, allocated in"),
    ("not-freed", lambda b: b.taken(), "ends before free_tensor of que0, taken in test_ascendc.py"),
    ("deque-dtype", other_dtype_dequeued, "deque(int32) of a tensor that was queued as float32"),
    ("dtype", lambda b: b.que.alloc_tensor(np.float32), "unknown dtype <class 'numpy.float32'>"),
    ("local-dtype", lambda b: asc.LocalTensor("half", tile_size=1), "unknown dtype 'half'; asc"),
    ("local-empty", lambda b: asc.LocalTensor(asc.half), "has at least one element, not 0"),
    (
        "local-unaligned",
        lambda b: asc.LocalTensor(asc.half, asc.TPosition.VECIN, 520, 8),
        "VECIN@520: UB addresses are multiples of 32 B",
    ),
    (
        "local-beyond-ub",
        lambda b: asc.LocalTensor(asc.half, asc.TPosition.VECIN, 196576, 17),
        "ends at ub+196640, beyond the 196608 B of UB",
    ),
    ("local-in-tpipe", sharing_with_tpipe, "VECCALC@256 (ub+256..576) and que1 (ub+256..512)"),
    ("tpipe-in-local", overlapping_tpipe, "TPipe and tensors placed by hand"),
    ("gm-not-set", lambda b: never_set()[1:], "set_global_buffer first"),
    (
        "gm-of-an-array",
        lambda b: never_set().set_global_buffer(np.zeros(3)),
        "takes a GlobalAddress, a kernel's array parameter, not ndarray",
    ),
    (
        "gm-count",
        lambda b: asc.data_copy(b.taken(), b.x_gm[96:], 33),
        "count 33 is beyond the 32 elements of gm.x[96:]",
    ),
    (
        "ub-count",
        lambda b: asc.data_copy(b.taken()[60:], b.x_gm, 8),
        "count 8 is beyond the 4 elements of tensor of que0",
    ),
    (
        "cast-count",
        lambda b: asc.cast(scratch(b), scratch(b, asc.float32), TRUNC, 65),
        "count 65 is beyond the 64 elements of tensor of VECCALC@1024",
    ),
    ("negative", lambda b: asc.data_copy(b.taken(), b.x_gm, -1), "must not be negative, is -1"),
    ("not-int", lambda b: asc.data_copy(b.taken(), b.x_gm, 1.5), "must be an integer, not 1.5"),
    ("index", lambda b: b.x_gm[129:], "index 129 is beyond the 128 elements of gm.x[0:]"),
    ("slice", lambda b: b.x_gm[1:2], "sliced as [i:], without stop and step"),
    ("int4-index", int4_at_odd, "is in the middle of a byte"),
    (
        "copy-dtype",
        lambda b: asc.data_copy(b.taken(asc.int32), b.x_gm, 8),
        "data_copy of float32 to int32: it copies, cast converts",
    ),
    (
        "copy-within-ub",
        lambda b: asc.data_copy(b.taken(), b.taken(), 8),
        "between a GlobalTensor and a LocalTensor, not LocalTensor to LocalTensor",
    ),
    (
        "pad-missing",
        lambda b: asc.data_copy_pad(b.taken(), b.x_gm, BLOCKS),
        "data_copy_pad to UB takes a DataCopyPadExtParams",
    ),
    (
        "pad-to-gm",
        lambda b: asc.data_copy_pad(
            b.x_gm, b.taken(), BLOCKS, asc.DataCopyPadExtParams(asc.float32)
        ),
        "data_copy_pad to GM takes no padding",
    ),
    (
        "pad-dtype",
        lambda b: asc.data_copy_pad(b.taken(), b.x_gm, BLOCKS, asc.DataCopyPadExtParams(asc.half)),
        "padding of float16 for a copy of float32",
    ),
    (
        "rsv",
        lambda b: asc.data_copy_pad(b.x_gm, b.taken(), asc.DataCopyExtParams(1, 32, rsv=1)),
        "rsv is reserved and must be 0, is 1",
    ),
    ("cast-gm", lambda b: asc.cast(b.x_gm, b.taken(), RINT, 8), "cast works on LocalTensors"),
    (
        "cast-mode",
        lambda b: asc.cast(scratch(b), b.taken(), "RINT", 8),
        "cast takes a RoundMode, not 'RINT'",
    ),
    (
        "cast-mask-words",
        lambda b: asc.cast(scratch(b), b.taken(), TRUNC, [1], 1, asc.UnaryRepeatParams()),
        "a mask is a number of lanes or two words of 64 bits, not [1]",
    ),
    (
        "cast-mask-register",
        lambda b: asc.cast(scratch(b), b.taken(), TRUNC, 64, 1, asc.UnaryRepeatParams(), False),
        "the mask register is not simulated",
    ),
    ("and-dtype", lambda b: asc.duplicate(b.taken(), 1, 8), "simulated for int16, not float32"),
    ("event", lambda b: asc.set_flag("MTE2_V", 0), "a flag takes a HardEvent, not 'MTE2_V'"),
    ("barrier", lambda b: asc.pipe_barrier("V"), "pipe_barrier takes a PipeID, not 'V'"),
    (
        "saturation",
        lambda b: asc.set_saturation_flag(True, True),
        "set_saturation_flag takes a SaturationMode, not True",
    ),
    ("nested", lambda b: flagged[1](), "a kernel cannot launch another"),
]


@pytest.mark.parametrize(("body", "text"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_wrong_use_is_refused_at_the_call(body: Callable[[Bench], object], text: str) -> None:
    @asc.jit
    def kernel(x: asc.GlobalAddress) -> None:
        body(Bench(x))

    with pytest.raises(asc.KernelError, match=re.escape(text)):
        kernel[1](zeros("FP32", 128))


@pytest.mark.parametrize(
    "call",
    [
        asc.get_block_idx,
        asc.TPipe,
        lambda: asc.TQue(asc.TPosition.VECIN, 1),
        lambda: asc.LocalTensor(asc.half, asc.TPosition.VECIN, 0, 16),
        lambda: asc.pipe_barrier(asc.PipeID.PIPE_V),
        queued,
    ],
    ids=["get_block_idx", "TPipe", "TQue", "LocalTensor", "pipe_barrier", "kernel"],
)
def test_nothing_works_outside_a_kernel(call: Callable[[], object]) -> None:
    with pytest.raises(asc.KernelError, match="outside a kernel"):
        call()


def test_a_kernel_that_failed_leaves_none_running() -> None:
    with pytest.raises(asc.KernelError):
        queued[1](zeros("FP32", 8), zeros("FP16", 8), 8, 8, "RINT")
    with pytest.raises(asc.KernelError, match="outside a kernel"):
        asc.get_block_num()


@pytest.mark.parametrize(
    ("x", "y", "text"),
    [
        (zeros("FP32", 16)[::2], zeros("FP16", 8), "x is not contiguous"),
        (np.zeros(8), zeros("FP16", 8), "unknown dtype float64"),
        (np.zeros(8, ">f4"), zeros("FP16", 8), "unknown dtype >f4"),
        (zeros("FP16", 9), zeros("INT4", 9), "y has 9 elements of int4b_t: two share a byte"),
    ],
    ids=["strided", "fp64", "big-endian", "odd-int4"],
)
def test_arrays_that_are_no_global_memory(x: np.ndarray, y: np.ndarray, text: str) -> None:
    with pytest.raises(asc.KernelError, match=re.escape(text)):
        queued[1](x, y, 8, 8, RINT)


def test_one_array_is_one_parameter() -> None:
    x = zeros("FP32", 16)
    with pytest.raises(asc.KernelError, match="x and y share memory"):
        queued[1](x, x[8:], 8, 8, RINT)


@pytest.mark.parametrize("cores", [0, 41, -1, 2.0, (8, None)])
def test_only_the_cores_of_the_chip(cores: Any) -> None:
    with pytest.raises(asc.KernelError, match=r"1 to 40, the vector cores of Asc|without a stream"):
        queued[cores]


def test_options_make_another_kernel() -> None:
    kernel = queued.options(chip=CHIPS["Ascend910_9392"], landing="earliest")
    assert (kernel.launch_options.chip.name, kernel.launch_options.landing) == (
        "Ascend910_9392",
        "earliest",
    )
    assert kernel.options(exact=True).launch_options.chip.name == "Ascend910_9392"
    assert queued.launch_options == asc.LaunchOptions()
    assert kernel[np.int64(48)].core_num == 48
    with pytest.raises(ValueError, match="landing must be one of"):
        queued.options(landing="sometimes")
    with pytest.raises(ValueError, match="unknown chip 'Ascend310'"):
        queued.options(chip="Ascend310")


def test_dtypes_know_their_size() -> None:
    assert asc.float32.sizeof() == 4
    assert asc.half is asc.float16
    with pytest.raises(ValueError, match="two elements of int4b_t share a byte"):
        asc.int4b_t.sizeof()


# --- Examples ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ascendc_cast", "ascendc_quantise"])
def test_an_example_runs_and_agrees_with_pypto_cast(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / f"{name}.py")],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^0 (of \d+ )?elements differ from ", done.stdout, re.MULTILINE)
