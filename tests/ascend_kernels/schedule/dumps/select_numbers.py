"""A choice between two numbers, which the dump lacks."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def select_numbers(
    a: pypto.Tensor([20, 64], pypto.DT_FP32),
    x: pypto.Tensor([20, 64], pypto.DT_FP16),
):
    pypto.set_vec_tile_shapes(16, 64)
    high = pypto.Element(pypto.DT_FP16, 3.0)
    low = pypto.Element(pypto.DT_FP16, 0.25)
    x[:] = pypto.where(a > 0.0, high, low) * 2.0
