"""Softmax of rows and columns that the tile does not divide."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def softmax_ragged(
    x: pypto.Tensor([100, 136], pypto.DT_FP32),
    y: pypto.Tensor([100, 136], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(32, 64)
    m = pypto.amax(x, dim=-1, keepdim=True)
    e = pypto.exp(x - m)
    y[:] = e / pypto.sum(e, dim=-1, keepdim=True)
