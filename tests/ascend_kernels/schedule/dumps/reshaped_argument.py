"""An argument given back in another shape; the tile shape has an extent for each dimension."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def reshaped_argument(
    x: pypto.Tensor([20, 100], pypto.DT_FP32),
    y: pypto.Tensor([40, 50], pypto.DT_FP32),
    z: pypto.Tensor([20, 100], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 8)
    y[:] = pypto.reshape(x, [40, 50])
    z[:] = pypto.exp(x)
