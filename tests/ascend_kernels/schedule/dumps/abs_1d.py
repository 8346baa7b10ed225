"""Arithmetic in one dimension."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def abs_1d(
    x: pypto.Tensor([1000], pypto.DT_FP32),
    y: pypto.Tensor([1000], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(256)
    y[:] = pypto.abs(x) * 0.5 - 1.0
