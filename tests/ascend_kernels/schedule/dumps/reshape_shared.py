"""Rows that are flattened for one output, and taken as they are for another."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def reshape_shared(
    x: pypto.Tensor([32, 16], pypto.DT_FP32),
    flat: pypto.Tensor([512], pypto.DT_FP32),
    y: pypto.Tensor([32, 16], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 16)
    e = pypto.exp(x)
    y[:] = e + 1.0
    pypto.set_vec_tile_shapes(128)
    flat[:] = pypto.reshape(e, [512]) * 2.0
