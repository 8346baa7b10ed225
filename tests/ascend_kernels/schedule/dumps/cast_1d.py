"""A cast in one dimension."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def cast_1d(
    x: pypto.Tensor([1000], pypto.DT_FP32),
    y: pypto.Tensor([1000], pypto.DT_FP16),
):
    pypto.set_vec_tile_shapes(256)
    y[:] = pypto.cast(x, pypto.DT_FP16)
