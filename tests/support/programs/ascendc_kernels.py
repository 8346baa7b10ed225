"""Kernels in AscendC's objects that several tests launch."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.numbers.codes import NUMPY, SEED, as_codes, as_values
from support.numbers.oracle import FORMATS, code_dtype

from simulator import ascendc as asc

TILE = 256
NONE, RINT, TRUNC = asc.RoundMode.CAST_NONE, asc.RoundMode.CAST_RINT, asc.RoundMode.CAST_TRUNC

every_completion = pytest.mark.parametrize("copy_completion", ["latest", "earliest"])


def random_codes(fmt: str, size: int) -> np.ndarray:
    rng = np.random.default_rng([SEED, *f"ascendc {fmt}".encode()])
    return rng.integers(0, 1 << FORMATS[fmt].bits, size, dtype=code_dtype(fmt))


def zeros(fmt: str, size: int) -> np.ndarray:
    return np.zeros(size, NUMPY[fmt])


def size_bytes(elems: int, dtype: asc.DataType) -> int:
    return elems * dtype.bitwidth // 8


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
    codes: np.ndarray,
    src: str,
    dst: str,
    mode: str,
    *,
    cores: int = 1,
    copy_completion: Any = "latest",
) -> np.ndarray:
    """Converts these codes by the kernel with queues."""
    y = zeros(dst, codes.size)
    kernel = queued.options(chip="Ascend910B1", copy_completion=copy_completion)
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
