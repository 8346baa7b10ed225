"""A transposition of rows and columns inside UB, and one on the way to GM."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def transposed(
    a: pypto.Tensor([64, 48], pypto.DT_FP32),
    b: pypto.Tensor([8, 16, 64], pypto.DT_FP16),
    x: pypto.Tensor([48, 64], pypto.DT_FP32),
    y: pypto.Tensor([16, 8, 64], pypto.DT_FP16),
):
    pypto.set_vec_tile_shapes(16, 16)
    x[:] = pypto.transpose(a, 0, 1)
    pypto.set_vec_tile_shapes(4, 8, 64)
    y[:] = pypto.transpose(b * 2.0, 0, 1) + 1.0
