"""An argument given back with one more dimension, for which the tile shape has no extent."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def reshaped_column(
    x: pypto.Tensor([32, 64], pypto.DT_BF16),
    y: pypto.Tensor([64, 32, 1], pypto.DT_BF16),
):
    pypto.set_vec_tile_shapes(16, 64)
    y[:] = pypto.reshape(x, [64, 32, 1])
