"""A vector kernel that casts FP32 to FP16, written with AscendC's objects and run on the CPU.

    python examples/ascendc_cast.py

Every core takes a contiguous share of the elements, tile by tile, with two buffers in turn: while
one is converted, the next is copied in. The last tile may be shorter, so `data_copy_pad` copies.
"""

from __future__ import annotations

import numpy as np

import pypto_cast as pypto
from simulator import ascendc as asc

CORE_NUM = 8
BUFFER_NUM = 2
TILE_LENGTH = 2048


@asc.jit
def cast_kernel(x: asc.GlobalAddress, y: asc.GlobalAddress, total: int, block_length: int) -> None:
    start = asc.get_block_idx() * block_length
    x_gm, y_gm = asc.GlobalTensor(), asc.GlobalTensor()
    x_gm.set_global_buffer(x + start)
    y_gm.set_global_buffer(y + start)
    pipe = asc.TPipe()
    in_queue = asc.TQue(asc.TPosition.VECIN, 1)
    out_queue = asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(in_queue, BUFFER_NUM, TILE_LENGTH * x.dtype.sizeof())
    pipe.init_buffer(out_queue, BUFFER_NUM, TILE_LENGTH * y.dtype.sizeof())
    mine = min(block_length, total - start)
    for offset in range(0, mine, TILE_LENGTH):
        count = min(TILE_LENGTH, mine - offset)

        x_local = in_queue.alloc_tensor(x.dtype)
        copy_in = asc.DataCopyExtParams(1, count * x.dtype.sizeof())
        asc.data_copy_pad(x_local, x_gm[offset:], copy_in, asc.DataCopyPadExtParams(x.dtype))
        in_queue.enque(x_local)

        x_local = in_queue.deque(x.dtype)
        y_local = out_queue.alloc_tensor(y.dtype)
        asc.cast(y_local, x_local, asc.RoundMode.CAST_RINT, count)
        in_queue.free_tensor(x_local)
        out_queue.enque(y_local)

        y_local = out_queue.deque(y.dtype)
        copy_out = asc.DataCopyExtParams(1, count * y.dtype.sizeof())
        asc.data_copy_pad(y_gm[offset:], y_local, copy_out)
        out_queue.free_tensor(y_local)


def main() -> None:
    """Run the kernel and compare it with `pypto.cast`, bit for bit."""
    rng = np.random.default_rng(7)
    x = rng.standard_normal(100_003, np.float32) * np.float32(2**15)
    y = np.zeros(x.size, np.float16)
    block_length = -(-x.size // CORE_NUM)
    cast_kernel[CORE_NUM](x, y, x.size, block_length)

    pypto.set_vec_tile_shapes(TILE_LENGTH)
    wanted = pypto.cast(pypto.from_numpy(x), pypto.DT_FP16, mode=pypto.CAST_RINT).numpy()
    different = np.count_nonzero(y.view(np.uint16) != wanted.view(np.uint16))
    recorded = len(cast_kernel[CORE_NUM].program(x, y, x.size, block_length).listings[0])
    print(f"{x.size} elements on {CORE_NUM} cores, {recorded} instructions on core 0")
    print(f"{different} elements differ from pypto.cast; {np.isinf(y).sum()} overflow to infinity")


if __name__ == "__main__":
    main()
