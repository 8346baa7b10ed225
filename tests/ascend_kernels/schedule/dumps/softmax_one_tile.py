"""Softmax of rows of one tile."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def softmax_one_tile(
    x: pypto.Tensor([64, 256], pypto.DT_FP32),
    y: pypto.Tensor([64, 256], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 256)
    m = pypto.amax(x, dim=-1, keepdim=True)
    e = pypto.exp(x - m)
    y[:] = e / pypto.sum(e, dim=-1, keepdim=True)
