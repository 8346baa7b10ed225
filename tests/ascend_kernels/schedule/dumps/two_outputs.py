"""Two outputs of the same arguments."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def two_outputs(
    a: pypto.Tensor([64, 256], pypto.DT_FP32),
    b: pypto.Tensor([64, 256], pypto.DT_FP32),
    total: pypto.Tensor([64, 256], pypto.DT_FP32),
    product: pypto.Tensor([64, 256], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 128)
    total[:] = a + b
    product[:] = a * b
