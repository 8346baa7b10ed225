"""Rows of an argument given back in a loop."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def loop_given_part(
    x: pypto.Tensor([96, 64], pypto.DT_FP32),
    y: pypto.Tensor([96, 64], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 64)
    for i in pypto.loop(3):
        y[i * 32 : i * 32 + 32, :] = x[i * 32 : i * 32 + 32, :]
