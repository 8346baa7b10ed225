"""AscendC's objects in Python: the bits of pypto.cast, flags, faults with a line, examples."""

from __future__ import annotations

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
from support.environment.sources import ROOT
from support.numbers.codes import as_codes, as_values, cast_codes
from support.programs.ascendc_kernels import (
    NONE,
    RINT,
    TILE,
    TRUNC,
    cast_by_kernel,
    every_completion,
    flagged,
    line_of,
    queued,
    random_codes,
    zeros,
)

from simulator import ascendc as asc


@every_completion
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
def test_a_kernel_gives_the_bits_of_pypto_cast(
    src: str, dst: str, mode: str, copy_completion: str
) -> None:
    codes = random_codes(src, 5 * TILE + 86)
    actual = cast_by_kernel(codes, src, dst, mode, cores=2, copy_completion=copy_completion)
    np.testing.assert_array_equal(actual, cast_codes(codes, src, dst, mode))


@every_completion
@pytest.mark.parametrize("cores", [1, 2, 7, 40, 48])
@pytest.mark.parametrize("size", [1, 3, TILE, 4099])
def test_neither_cores_nor_tails_change_a_bit(size: int, cores: int, copy_completion: str) -> None:
    codes = random_codes("FP32", size)
    actual = cast_by_kernel(
        codes, "FP32", "FP16", "RINT", cores=cores, copy_completion=copy_completion
    )
    np.testing.assert_array_equal(actual, cast_codes(codes, "FP32", "FP16", "RINT"))


def test_the_definition_gives_the_same_bits() -> None:
    codes = random_codes("FP32", 1000)
    y = zeros("BF16", 1000)
    queued.options(exact=True)[1](as_values(codes, "FP32"), y, 1000, 1000, TRUNC)
    np.testing.assert_array_equal(as_codes(y, "BF16"), cast_codes(codes, "FP32", "BF16", "TRUNC"))


@every_completion
def test_flags_written_out_give_the_same_bits(copy_completion: Any) -> None:
    codes = random_codes("FP32", 7 * TILE)
    y = zeros("FP16", codes.size)
    flagged.options(copy_completion=copy_completion)[1](as_values(codes, "FP32"), y, 7)
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


def test_repeats_follow_each_other_where_no_stride_is_given() -> None:
    codes = random_codes("FP32", 128)

    def compute(y: asc.LocalTensor, x: asc.LocalTensor) -> None:
        asc.cast(y, x, asc.RoundMode.CAST_RINT, 64, 2, asc.UnaryRepeatParams())

    wanted = cast_codes(codes, "FP32", "INT32", "RINT")
    np.testing.assert_array_equal(run_one_tile(codes, "FP32", "INT32", compute), wanted)


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


def test_a_copy_is_one_block_without_padding_where_nothing_else_is_given() -> None:
    @asc.jit
    def kernel(x: asc.GlobalAddress, y: asc.GlobalAddress) -> None:
        x_gm, y_gm = asc.GlobalTensor(), asc.GlobalTensor()
        x_gm.set_global_buffer(x)
        y_gm.set_global_buffer(y)
        local = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 16)
        block, pad = asc.DataCopyExtParams(block_len=20), asc.DataCopyPadExtParams(asc.float32)
        asc.data_copy_pad(local, x_gm, block, pad)
        asc.set_flag(asc.HardEvent.MTE2_MTE3, 0)
        asc.wait_flag(asc.HardEvent.MTE2_MTE3, 0)
        asc.data_copy_pad(y_gm, local, block)

    y = np.zeros(16, np.float32)
    kernel[1](np.arange(1, 17, dtype=np.float32), y[:5])
    assert y.tolist() == [1, 2, 3, 4, 5, *[0] * 11]


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
        f"V     Cast ub+2048:FP16 <- ub+0:FP32  CAST_RINT, count=150  # ascendc_kernels.py:{line}"
    ) in text
    assert "# the end of queued" in text
    assert "gm.x+600" in program.listing(1)


NEVER_WRITTEN = "was never written: garbage would reach GM"
CAST_OF_GARBAGE = r"was written with garbage: .* last written, with garbage, by .*py:\d+ \(Cast"


@pytest.mark.parametrize(
    ("without", "copy_completion", "line", "text"),
    [
        ("MTE2_V", "latest", "# the copy out", CAST_OF_GARBAGE),
        ("MTE2_V", "earliest", "# the cast", "no flag or barrier puts MTE2 before V"),
        ("V_MTE3", "latest", "# the copy out", NEVER_WRITTEN),
        ("V_MTE3", "earliest", "# the copy out", NEVER_WRITTEN),
    ],
    ids=["mte2-v-latest", "mte2-v-earliest", "v-mte3-latest", "v-mte3-earliest"],
)
def test_a_missing_wait_faults_and_names_the_line(
    without: str, copy_completion: Any, line: str, text: str
) -> None:
    place = rf"^core 0, instruction \d+, ascendc_kernels\.py:{line_of(flagged, line)} \("
    with pytest.raises(asc.SimulatorFault, match=f"{place}.*{text}"):
        flagged.options(copy_completion=copy_completion)[1](
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

    program = kernel[2].program()
    layouts = [[(r.offset_bytes, r.size_bytes) for r in program.ub_ranges(c)] for c in range(2)]
    assert layouts == [[(0, 64), (64, 512)], [(0, 128), (128, 512)]]
    assert [r.name for r in program.ub_ranges(1)] == ["first", "second"]


@pytest.mark.parametrize("core", [0, 1, 2])
def test_an_overrun_is_seen_on_each_core_by_its_own_layout(core: int) -> None:
    """The first buffer of core 1 ends where on core 0 the second one goes on."""

    @asc.jit
    def kernel(x: asc.GlobalAddress, y: asc.GlobalAddress, beyond: int) -> None:
        me = asc.get_block_idx()
        size = 32 * (me + 1)
        x_gm, y_gm = asc.GlobalTensor(), asc.GlobalTensor()
        x_gm.set_global_buffer(x)
        y_gm.set_global_buffer(y + 32 * (2 ** (me + 1) - 2))
        pipe = asc.TPipe()
        first, second = asc.TBuf(), asc.TBuf()
        pipe.init_buffer(first, size)
        pipe.init_buffer(second, 512)
        blocks = asc.DataCopyExtParams(1, size + (beyond if me == core else 0))
        pad = asc.DataCopyPadExtParams(asc.int8)
        asc.data_copy_pad(first.get(asc.int8), x_gm, blocks, pad)  # the overrun
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)
        asc.data_copy_pad(y_gm, first.get(asc.int8), asc.DataCopyExtParams(1, size))

    x, y = np.arange(120, dtype=np.int8), np.zeros(448, np.int8)
    line = line_of(kernel, "# the overrun")
    end = 32 * (core + 1)
    wanted = f"core {core}, instruction 0, test_ascendc.py:{line} (DataCopyPad ub+0 <- gm.x+0 "
    text = f"ub+0..{end + 32} leaves buffer first, which ends at ub+{end}; no instruction wrote "
    with pytest.raises(asc.SimulatorFault) as caught:
        kernel[3](x, y, 1)
    assert str(caught.value).startswith(wanted)
    assert text + f"byte {end} of ub" in str(caught.value)
    with pytest.warns(asc.KernelWarning, match="written in part"):
        kernel[3](x, y, 0)


def test_tensors_placed_by_hand_may_share_bytes_and_keep_to_their_own() -> None:
    @asc.jit
    def kernel(x: asc.GlobalAddress, length: int) -> None:
        x_gm = asc.GlobalTensor()
        x_gm.set_global_buffer(x)
        for _ in range(3):
            first = asc.LocalTensor(asc.int8, asc.TPosition.VECIN, 0, 96)
            asc.LocalTensor(asc.int8, asc.TPosition.VECOUT, 64, 96)
        pad = asc.DataCopyPadExtParams(asc.int8)
        asc.data_copy_pad(first, x_gm, asc.DataCopyExtParams(1, length), pad)

    kernel[1](np.zeros(128, np.int8), 96)
    with pytest.raises(asc.SimulatorFault, match=r"leaves buffer VECIN@0, which ends at ub\+96"):
        kernel[1](np.zeros(128, np.int8), 97)
    assert [r.name for r in kernel[1].program(np.zeros(128, np.int8), 96).ub_ranges(0)] == [
        "VECIN@0",
        "VECOUT@64",
    ]


def test_what_the_scalar_pipe_waited_for_is_done() -> None:
    """The cast is issued behind the wait, and needs no flag of its own."""

    def kernel_of(event: asc.HardEvent) -> asc.JitFunction[Any, None]:
        @asc.jit
        def kernel(x: asc.GlobalAddress, y: asc.GlobalAddress) -> None:
            x_gm, y_gm = asc.GlobalTensor(), asc.GlobalTensor()
            x_gm.set_global_buffer(x)
            y_gm.set_global_buffer(y)
            x_local = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 64)
            y_local = asc.LocalTensor(asc.half, asc.TPosition.VECOUT, 256, 64)
            asc.data_copy(x_local, x_gm, 64)
            asc.set_flag(event, 0)
            asc.wait_flag(event, 0)
            asc.cast(y_local, x_local, RINT, 64)
            asc.set_flag(asc.HardEvent.V_S, 0)
            asc.wait_flag(asc.HardEvent.V_S, 0)
            asc.data_copy(y_gm, y_local, 64)

        return kernel

    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float16)
    for copy_completion in ("latest", "earliest"):
        kernel_of(asc.HardEvent.MTE2_S).options(copy_completion=copy_completion)[1](x, y)
        assert y.tolist() == x.tolist()
        y[:] = 0
        with pytest.raises(asc.SimulatorFault, match=r"no flag or barrier puts|garbage"):
            kernel_of(asc.HardEvent.MTE3_S).options(copy_completion=copy_completion)[1](x, y)


def test_a_buffer_without_a_name_in_the_kernel_is_named_by_its_position() -> None:
    @asc.jit
    def kernel() -> None:
        held = [asc.TQue(asc.TPosition.VECOUT)]
        asc.TPipe().init_buffer(held[0], 1, 32)

    assert [r.name for r in kernel[1].program().ub_ranges(0)] == ["vecout00"]


@pytest.mark.sampled(4)
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
