"""Rows whose intermediate results do not fit UB together: they are stored and copied in again."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def spill(
    x: pypto.Tensor([64, 1024], pypto.DT_FP32),
    y: pypto.Tensor([64, 1024], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 1024)
    e = pypto.exp(x)
    f = pypto.abs(x) + 1.0
    s = pypto.sum(e, dim=-1, keepdim=True)
    t = pypto.sum(f, dim=-1, keepdim=True)
    y[:] = e / s + f / t - x
