"""A choice between a tensor and a number, on either side."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def select_number(
    a: pypto.Tensor([32, 128], pypto.DT_FP32),
    b: pypto.Tensor([32, 128], pypto.DT_FP32),
    x: pypto.Tensor([32, 128], pypto.DT_FP32),
    y: pypto.Tensor([32, 128], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 64)
    x[:] = pypto.where(a > b, a, 2.5)
    y[:] = pypto.where(a > b, -1.0, b)
