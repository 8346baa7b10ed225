"""A reshape of an output."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def reshape_rows(
    x: pypto.Tensor([64, 128], pypto.DT_FP32),
    y: pypto.Tensor([32, 256], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 128)
    y[:] = pypto.reshape(x * 2.0, [32, 256])
