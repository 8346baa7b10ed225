"""Rounding to the nearest whole numbers."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def round_whole(
    x: pypto.Tensor([40, 256], pypto.DT_FP32),
    y: pypto.Tensor([40, 256], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 128)
    y[:] = pypto.round(x)
