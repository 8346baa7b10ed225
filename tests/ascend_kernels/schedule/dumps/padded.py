"""Rows and columns of a number behind a tensor, and in the place of what is not valid."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def padded(
    a: pypto.Tensor([30, 120], pypto.DT_FP32),
    y: pypto.Tensor([32, 128], pypto.DT_FP32),
    z: pypto.Tensor([30, 120], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(32, 128)
    y[:] = pypto.pad(a, [0, 8, 0, 2], "constant", 0.0)
    part = pypto.view(a, [30, 120], [0, 0], valid_shape=[20, 100])
    z[:] = pypto.fillpad(part, "constant", float("-inf"))
