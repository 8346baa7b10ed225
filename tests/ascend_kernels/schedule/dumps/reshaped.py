"""Reshapes of tiles in UB, one to one."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def reshaped(
    a: pypto.Tensor([4, 16, 64], pypto.DT_FP32),
    x: pypto.Tensor([64, 64], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(2, 16, 64)
    e = pypto.exp(a)
    pypto.set_vec_tile_shapes(32, 64)
    x[:] = pypto.reshape(e, [64, 64]) * 2.0
