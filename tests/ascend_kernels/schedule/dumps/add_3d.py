"""Sums in three dimensions, with ragged tiles."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def add_3d(
    a: pypto.Tensor([4, 30, 64], pypto.DT_FP32),
    b: pypto.Tensor([4, 30, 64], pypto.DT_FP32),
    y: pypto.Tensor([4, 30, 64], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(2, 16, 64)
    y[:] = pypto.maximum(a + b, a - b)
