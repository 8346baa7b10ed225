"""Softmax of rows of four tiles."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def softmax_four_tiles(
    x: pypto.Tensor([64, 2048], pypto.DT_FP32),
    y: pypto.Tensor([64, 2048], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(8, 512)
    m = pypto.amax(x, dim=-1, keepdim=True)
    e = pypto.exp(x - m)
    y[:] = e / pypto.sum(e, dim=-1, keepdim=True)
