"""Choices between two numbers: upstream keeps one of a task, and gives two tasks one leaf."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def select_pairs(
    a: pypto.Tensor([16, 64], pypto.DT_FP32),
    b: pypto.Tensor([16, 64], pypto.DT_FP32),
    x: pypto.Tensor([16, 64], pypto.DT_FP32),
    y: pypto.Tensor([16, 64], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 64)
    x[:] = pypto.where(a > 0.0, 1.5, 2.5) * a + pypto.where(a > 0.0, 3.5, 4.5)
    y[:] = pypto.where(b > 0.0, 5.5, 6.5) * b + pypto.where(b > 0.0, 7.5, 8.5)
