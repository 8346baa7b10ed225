"""Columns that an operation repeats along rows, of each tile of which they are read."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def repeated_column(
    a: pypto.Tensor([20, 100], pypto.DT_FP32),
    m: pypto.Tensor([20, 1], pypto.DT_FP32),
    x: pypto.Tensor([20, 100], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 128)
    x[:] = pypto.expand_exp_dif(a * 2.0, m) + 1.0
