"""Leaky functions, with a number and with weights of columns."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def weighed(
    x: pypto.Tensor([24, 100], pypto.DT_BF16),
    weights: pypto.Tensor([100], pypto.DT_BF16),
    y: pypto.Tensor([24, 100], pypto.DT_BF16),
):
    pypto.set_vec_tile_shapes(8, 64)
    y[:] = pypto.prelu(pypto.lrelu(x, 0.1), weights)
