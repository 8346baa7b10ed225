"""Sums of all elements up to each, along either axis."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def running_sums(
    a: pypto.Tensor([32, 128], pypto.DT_FP32),
    x: pypto.Tensor([32, 128], pypto.DT_FP32),
    y: pypto.Tensor([32, 128], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 64)
    x[:] = pypto.cumsum(a, 0)
    y[:] = pypto.cumsum(a, 1)
