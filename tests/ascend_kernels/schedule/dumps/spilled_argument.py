"""An argument that is copied in, spilled before its first use, and copied in again twice."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def spilled_argument(
    x0: pypto.Tensor([32, 512], pypto.DT_FP32),
    x1: pypto.Tensor([32, 512], pypto.DT_FP32),
    x2: pypto.Tensor([32, 512], pypto.DT_FP32),
    x3: pypto.Tensor([32, 512], pypto.DT_FP32),
    y: pypto.Tensor([32, 512], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(32, 512)
    b = x0 + x1
    c = x0 * x1
    d = b - x2
    e = c * x3
    y[:] = d * e + b * c + x0 + x1 + x2 + x3
