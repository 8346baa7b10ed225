"""A tensor that one loop leaves to the next, which gives it back in another shape."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def loop_of_reshape(
    x: pypto.Tensor([32, 64], pypto.DT_FP32),
    z: pypto.Tensor([64, 32], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 64)
    y = pypto.tensor([32, 64], pypto.DT_FP32)
    for _ in pypto.loop(1):
        y[:] = pypto.exp(x)
    for _ in pypto.loop(1):
        z[:] = pypto.reshape(y, [64, 32])
