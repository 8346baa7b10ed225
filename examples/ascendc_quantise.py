"""The casts of a quantisation kernel: FP32 -RINT-> INT32 -> FP16 -TRUNC-> INT8.

    python examples/ascendc_quantise.py

A2/A3 has no instruction from FP32 to INT8, so the kernels of language models take this way after
scaling. INT32 to FP16 multiplies by the deq scale, which must be set; a barrier stands between
casts that hand data to each other.
"""

from __future__ import annotations

import numpy as np

import pypto_cast as pypto
from simulator import ascendc as asc

CORE_NUM = 4
BUFFER_NUM = 2
TILE_LENGTH = 1024


@asc.jit
def quantise_kernel(x: asc.GlobalAddress, y: asc.GlobalAddress, tiles: int) -> None:
    x_gm, y_gm = asc.GlobalTensor(), asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    y_gm.set_global_buffer(y)
    pipe = asc.TPipe()
    in_queue = asc.TQue(asc.TPosition.VECIN, 1)
    out_queue = asc.TQue(asc.TPosition.VECOUT, 1)
    scratch = asc.TBuf(asc.TPosition.VECCALC)
    pipe.init_buffer(in_queue, BUFFER_NUM, TILE_LENGTH * 4)
    pipe.init_buffer(out_queue, BUFFER_NUM, TILE_LENGTH)
    pipe.init_buffer(scratch, TILE_LENGTH * 2)
    asc.set_deq_scale(1.0)
    for tile in range(asc.get_block_idx(), tiles, asc.get_block_num()):
        copy_in(in_queue, x_gm[tile * TILE_LENGTH :])
        compute(in_queue, out_queue, scratch)
        copy_out(out_queue, y_gm[tile * TILE_LENGTH :])


@asc.jit
def copy_in(in_queue: asc.TQue, x_gm: asc.GlobalTensor) -> None:
    x_local = in_queue.alloc_tensor(asc.float32)
    asc.data_copy(x_local, x_gm, TILE_LENGTH)
    in_queue.enque(x_local)


@asc.jit
def compute(in_queue: asc.TQue, out_queue: asc.TQue, scratch: asc.TBuf) -> None:
    x_local = in_queue.deque(asc.float32)
    y_local = out_queue.alloc_tensor(asc.int8)
    whole = scratch.get(asc.half)
    in_place = x_local.reinterpret_cast(asc.int32)
    asc.cast(in_place, x_local, asc.RoundMode.CAST_RINT, TILE_LENGTH)
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.cast(whole, in_place, asc.RoundMode.CAST_NONE, TILE_LENGTH)
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.cast(y_local, whole, asc.RoundMode.CAST_TRUNC, TILE_LENGTH)
    in_queue.free_tensor(x_local)
    out_queue.enque(y_local)


@asc.jit
def copy_out(out_queue: asc.TQue, y_gm: asc.GlobalTensor) -> None:
    y_local = out_queue.deque(asc.int8)
    asc.data_copy(y_gm, y_local, TILE_LENGTH)
    out_queue.free_tensor(y_local)


def main() -> None:
    """Run the kernel and compare it with the chain of `pypto.cast`, bit for bit."""
    tiles = 30
    rng = np.random.default_rng(7)
    x = rng.standard_normal(tiles * TILE_LENGTH, np.float32) * np.float32(50)
    y = np.zeros(x.size, np.int8)
    quantise_kernel[CORE_NUM](x, y, tiles)

    pypto.set_vec_tile_shapes(TILE_LENGTH)
    whole = pypto.cast(pypto.from_numpy(x), pypto.DT_INT32, mode=pypto.CAST_RINT)
    wanted = pypto.cast(pypto.cast(whole, pypto.DT_FP16), pypto.DT_INT8, mode=pypto.CAST_TRUNC)
    different = np.count_nonzero(y != wanted.numpy())
    print(f"{x[:4].tolist()} -> {y[:4].tolist()}")
    print(f"{different} of {x.size} elements differ from the chain of pypto.cast")


if __name__ == "__main__":
    main()
