"""Two roundings to other decimals, which upstream gives one leaf."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def shared_rounds(
    a: pypto.Tensor([16, 64], pypto.DT_FP32),
    b: pypto.Tensor([16, 64], pypto.DT_FP32),
    x: pypto.Tensor([16, 64], pypto.DT_FP32),
    y: pypto.Tensor([16, 64], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 64)
    x[:] = pypto.round(a, 1)
    y[:] = pypto.round(b, 3)
