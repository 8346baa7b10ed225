"""A cast in four dimensions."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def cast_4d(
    x: pypto.Tensor([2, 2, 32, 64], pypto.DT_FP32),
    y: pypto.Tensor([2, 2, 32, 64], pypto.DT_BF16),
):
    pypto.set_vec_tile_shapes(1, 2, 16, 64)
    y[:] = pypto.cast(x * 0.5, pypto.DT_BF16)
