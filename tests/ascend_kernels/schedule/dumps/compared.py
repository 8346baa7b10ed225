"""Comparisons and choices in BF16, and roundings of 16 bits."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def compared(
    a: pypto.Tensor([32, 64], pypto.DT_BF16),
    b: pypto.Tensor([32, 64], pypto.DT_BF16),
    y: pypto.Tensor([32, 64], pypto.DT_BF16),
    z: pypto.Tensor([32, 64], pypto.DT_BF16),
):
    pypto.set_vec_tile_shapes(16, 64)
    y[:] = pypto.where(a < b, pypto.round(a), b)
    z[:] = pypto.where(a > 0.5, -1.0, a)
