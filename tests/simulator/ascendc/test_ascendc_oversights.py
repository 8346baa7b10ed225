"""Kernels that run and leave what nobody means: a warning that names the bytes or the line."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.programs.ascendc_kernels import line_of

from simulator import ascendc as asc
from simulator.ascendc.ascendc_types import GlobalTensor, LocalTensor

ELEMS = 64
RINT = asc.RoundMode.CAST_RINT
MEANT = "they keep what the array held. Where that is meant, launch on a view of the part to be "
MEANT += "written"
CopyOut = Callable[[GlobalTensor, LocalTensor, int], None]


def half_kernel(copy_out: CopyOut) -> asc.JitFunction[Any, None]:
    """A cast of 64 elements a core, float32 to half, whose copy out may be wrong."""

    @asc.jit
    def kernel(x: asc.GlobalAddress, y: asc.GlobalAddress, cores: int) -> None:
        core = asc.get_block_idx()
        if core >= cores:
            return
        x_gm, y_gm = asc.GlobalTensor(), asc.GlobalTensor()
        x_gm.set_global_buffer(x + core * ELEMS)
        y_gm.set_global_buffer(y + core * ELEMS)
        x_local = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, ELEMS)
        y_local = asc.LocalTensor(asc.half, asc.TPosition.VECOUT, 1024, ELEMS)
        asc.data_copy(x_local, x_gm, ELEMS)
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)
        asc.cast(y_local, x_local, RINT, ELEMS)
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)
        copy_out(y_gm, y_local, core)

    return kernel


def whole(y: GlobalTensor, local: LocalTensor, _: int) -> None:
    asc.data_copy(y, local, ELEMS)


def short_tail(y: GlobalTensor, local: LocalTensor, core: int) -> None:
    asc.data_copy_pad(y, local, asc.DataCopyExtParams(1, 2 * (ELEMS - 3 * core)))


def off_by_one(y: GlobalTensor, local: LocalTensor, _: int) -> None:
    asc.data_copy_pad(y[1:], local, asc.DataCopyExtParams(1, 2 * (ELEMS - 1)))


def rounded_down(y: GlobalTensor, local: LocalTensor, _: int) -> None:
    asc.data_copy(y, local, 56)


def every_second(y: GlobalTensor, local: LocalTensor, _: int) -> None:
    asc.data_copy_pad(y, local, asc.DataCopyExtParams(4, 2, 0, 14))


def warned(launch: Callable[[], None]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        launch()
    assert all(each.category is asc.KernelWarning for each in caught)
    assert all(each.filename == __file__ for each in caught)
    return [str(each.message) for each in caught]


# --- Outputs written in part -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("copy_out", "cores", "missing"),
    [
        (short_tail, 2, "6 of its 256 B never are, bytes 250 to 255"),
        (off_by_one, 1, "130 of its 256 B never are, bytes 0 to 1, 128 to 255"),
        (whole, 1, "128 of its 256 B never are, bytes 128 to 255"),
        (rounded_down, 2, "64 of its 256 B never are, bytes 96 to 127, 224 to 255"),
        (
            every_second,
            2,
            "240 of its 256 B never are, bytes 2 to 15, 18 to 31, 34 to 47 and 5 more stretches",
        ),
    ],
    ids=["short-tail", "off-by-one", "forgotten-core", "rounded-down", "many"],
)
def test_an_output_written_in_part(copy_out: CopyOut, cores: int, missing: str) -> None:
    kernel = half_kernel(copy_out)
    x, y = np.ones(2 * ELEMS, np.float32), np.full(2 * ELEMS, 9, np.float16)
    assert warned(lambda: kernel[2](x, y, cores)) == [
        f"gm.y is written in part: {missing}; {MEANT}"
    ]
    assert set(y.tolist()) == {1.0, 9.0}


def test_what_is_written_whole_or_not_at_all_is_no_oversight() -> None:
    kernel = half_kernel(whole)
    x, y = np.ones(2 * ELEMS, np.float32), np.zeros(2 * ELEMS, np.float16)
    assert warned(lambda: kernel[2](x, y, 2)) == []
    assert warned(lambda: kernel[2](x, y[:ELEMS], 1)) == []
    assert warned(lambda: kernel[2](x, y, 0)) == []


def test_a_byte_of_int4_alone() -> None:
    @asc.jit
    def kernel(y: asc.GlobalAddress) -> None:
        y_gm = asc.GlobalTensor()
        y_gm.set_global_buffer(y)
        local = asc.LocalTensor(asc.int4b_t, asc.TPosition.VECOUT, 0, 64)
        source = asc.LocalTensor(asc.half, asc.TPosition.VECIN, 1024, 64)
        fill = asc.LocalTensor(asc.int16, asc.TPosition.VECIN, 1024, 64)
        asc.duplicate(fill, 0, 64)
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)
        asc.cast(local, source, RINT, 64)
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)
        asc.data_copy_pad(y_gm, local, asc.DataCopyExtParams(1, 31))

    (text,) = warned(lambda: kernel[1](np.zeros(64, ml_dtypes.int4)))
    assert text == f"gm.y is written in part: 1 of its 32 B never are, bytes 31; {MEANT}"


# --- Repeats and flags -------------------------------------------------------------------------


def repeated(mask: int | list[int], times: int, params: asc.UnaryRepeatParams) -> list[str]:
    """Returns the warnings about a Cast of float32 to int32 by repeats, on two cores."""

    @asc.jit
    def kernel(x: asc.GlobalAddress) -> None:
        del x
        x_local = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 16384)
        y_local = asc.LocalTensor(asc.int32, asc.TPosition.VECOUT, 65536, 16384)
        asc.cast(y_local, x_local, RINT, mask, times, params)  # the cast

    lines, first = inspect.getsourcelines(repeated)
    (line,) = (n for n, text in enumerate(lines, first) if text.rstrip().endswith("# the cast"))
    texts = warned(lambda: kernel[2](np.zeros(8, np.float32)))
    assert all(text.startswith(f"{__name__}.py:{line}: ") for text in texts)
    return [text.partition(": ")[2] for text in texts]


@pytest.mark.parametrize(
    ("mask", "times", "stride", "lost"),
    [(64, 2, 0, 256), (64, 2, 7, 32), (64, 3, 4, 256), (1, 255, 0, 1016), ([257, 0], 2, 1, 4)],
    ids=str,
)
def test_repeats_that_overwrite_each_other(
    mask: int | list[int], times: int, stride: int, lost: int
) -> None:
    assert repeated(mask, times, asc.UnaryRepeatParams(1, 1, stride, 8)) == [
        f"repeats of one Cast overwrite each other's results, {lost} B are lost: dst_rep_stride is "
        f"{stride} blocks"
    ]


@pytest.mark.parametrize(
    ("mask", "times", "params"),
    [
        (64, 4, asc.UnaryRepeatParams(1, 1, 8, 8)),
        (64, 4, asc.UnaryRepeatParams(1, 1, 8, 0)),
        (64, 1, asc.UnaryRepeatParams(1, 1, 0, 8)),
        (64, 8, asc.UnaryRepeatParams(8, 1, 1, 8)),
        (8, 4, asc.UnaryRepeatParams(1, 1, 1, 8)),
        ([1 | 1 << 9, 0], 4, asc.UnaryRepeatParams(1, 1, 1, 8)),
        (0, 9, asc.UnaryRepeatParams(1, 1, 0, 8)),
    ],
    ids=str,
)
def test_repeats_that_keep_apart(
    mask: int | list[int], times: int, params: asc.UnaryRepeatParams
) -> None:
    """The last but one has its lanes in turn: where one repeat is masked another one writes."""
    assert repeated(mask, times, params) == []


@pytest.mark.parametrize("settings", [(False,), (True, False), (False, True, False)], ids=str)
def test_integer_saturation_left_off(settings: tuple[bool, ...]) -> None:
    @asc.jit
    def kernel(x: asc.GlobalAddress) -> None:
        del x
        for setting in settings:
            asc.set_saturation_flag(asc.SaturationMode.CAST, setting)

    (text,) = warned(lambda: kernel[3](np.zeros(8, np.float32)))
    assert text.partition(": ")[2] == (
        "saturation of integer results is still off when the kernel ends, and would be for the "
        "next one: set_saturation_flag(SaturationMode.CAST, True) puts it back"
    )


@pytest.mark.parametrize("scales", [(2.0,), (1.0, 0.5), (0.5, 1.0, 0.25)], ids=str)
def test_a_deq_scale_that_is_left_set(scales: tuple[float, ...]) -> None:
    @asc.jit
    def kernel(x: asc.GlobalAddress) -> None:
        del x
        for scale in scales:
            asc.set_deq_scale(scale)  # left

    line = line_of(kernel, "# left")
    assert warned(lambda: kernel[2](np.zeros(8, np.float32))) == [
        f"test_ascendc_oversights.py:{line}: the deq scale is still {scales[-1]:g} when the kernel "
        "ends, and would be for the next one: set_deq_scale(1.0) puts it back"
    ]


@pytest.mark.parametrize("scales", [(), (1.0,), (2.0, 1.0)], ids=str)
def test_a_deq_scale_that_is_put_back(scales: tuple[float, ...]) -> None:
    @asc.jit
    def kernel(x: asc.GlobalAddress) -> None:
        del x
        for scale in scales:
            asc.set_deq_scale(scale)

    assert warned(lambda: kernel[2](np.zeros(8, np.float32))) == []


def test_flags_that_are_put_back_or_are_the_streams() -> None:
    @asc.jit
    def kernel(x: asc.GlobalAddress) -> None:
        del x
        asc.set_saturation_flag(asc.SaturationMode.CAST, False)
        asc.set_saturation_flag(asc.SaturationMode.CAST, True)
        asc.set_saturation_flag(asc.SaturationMode.FLOAT, True)
        asc.set_saturation_flag(asc.SaturationMode.FLOAT, False)
        asc.set_saturation_flag(asc.SaturationMode.FLOAT, True)

    assert warned(lambda: kernel[1](np.zeros(8, np.float32))) == []
