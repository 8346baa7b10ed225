"""Rows and columns of zeros behind a tensor."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def padded(
    a: pypto.Tensor([30, 120], pypto.DT_FP32),
    y: pypto.Tensor([32, 128], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(32, 128)
    y[:] = pypto.pad(a, [0, 8, 0, 2], "constant", 0.0)
