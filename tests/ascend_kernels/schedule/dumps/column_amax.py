"""The greatest element of the first axis."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def column_amax(
    x: pypto.Tensor([64, 256], pypto.DT_FP32),
    y: pypto.Tensor([1, 256], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(32, 128)
    y[:] = pypto.amax(x, dim=0, keepdim=True)
