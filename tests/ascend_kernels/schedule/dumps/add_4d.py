"""Sums and products in four dimensions, with ragged tiles."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def add_4d(
    a: pypto.Tensor([2, 3, 20, 64], pypto.DT_FP16),
    b: pypto.Tensor([2, 3, 20, 64], pypto.DT_FP16),
    y: pypto.Tensor([2, 3, 20, 64], pypto.DT_FP16),
):
    pypto.set_vec_tile_shapes(1, 2, 16, 64)
    y[:] = (a + b) * a
