"""A choice by a comparison."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def select(
    a: pypto.Tensor([64, 128], pypto.DT_FP32),
    b: pypto.Tensor([64, 128], pypto.DT_FP32),
    y: pypto.Tensor([64, 128], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 128)
    y[:] = pypto.where(a > b, a, b * 2.0)
