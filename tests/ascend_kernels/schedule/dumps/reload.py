"""Operands that are needed twice and do not fit UB together: they are copied in again."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def reload(
    x0: pypto.Tensor([32, 512], pypto.DT_FP32),
    x1: pypto.Tensor([32, 512], pypto.DT_FP32),
    x2: pypto.Tensor([32, 512], pypto.DT_FP32),
    x3: pypto.Tensor([32, 512], pypto.DT_FP32),
    x4: pypto.Tensor([32, 512], pypto.DT_FP32),
    x5: pypto.Tensor([32, 512], pypto.DT_FP32),
    y: pypto.Tensor([32, 512], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(32, 512)
    s = x0 + x1
    s = s + x2
    s = s + x3
    s = s + x4
    s = s + x5
    s = s * x0
    s = s * x1
    s = s * x2
    s = s * x3
    s = s * x4
    y[:] = s * x5
