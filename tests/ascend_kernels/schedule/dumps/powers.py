"""Powers of 2."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def powers(
    a: pypto.Tensor([32, 128], pypto.DT_FP16),
    b: pypto.Tensor([32, 128], pypto.DT_FP32),
    x: pypto.Tensor([32, 128], pypto.DT_FP16),
    y: pypto.Tensor([32, 128], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 64)
    x[:] = pypto.exp2(a)
    y[:] = pypto.exp2(b)
