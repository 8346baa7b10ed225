"""Softmax in three dimensions."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def softmax_3d(
    x: pypto.Tensor([4, 16, 128], pypto.DT_FP32),
    y: pypto.Tensor([4, 16, 128], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(1, 16, 64)
    m = pypto.amax(x, dim=-1, keepdim=True)
    e = pypto.exp(x - m)
    y[:] = e / pypto.sum(e, dim=-1, keepdim=True)
