"""Rounding to whole numbers."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def rounding(
    x: pypto.Tensor([64, 128], pypto.DT_FP32),
    y: pypto.Tensor([64, 128], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 128)
    y[:] = pypto.floor(x) + pypto.ceil(x * 0.5) + pypto.trunc(x)
