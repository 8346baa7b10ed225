"""Two tile shapes that cross, with a temporary."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def two_tile_shapes(
    x: pypto.Tensor([64, 256], pypto.DT_FP32),
    y: pypto.Tensor([64, 256], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 128)
    scaled = x * 2.0
    pypto.set_vec_tile_shapes(32, 64)
    y[:] = scaled + 1.0
