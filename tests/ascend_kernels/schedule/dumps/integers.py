"""Quotients, remainders and running sums of integers."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def integers(
    a: pypto.Tensor([24, 100], pypto.DT_INT32),
    b: pypto.Tensor([24, 100], pypto.DT_INT32),
    x: pypto.Tensor([24, 100], pypto.DT_INT32),
    y: pypto.Tensor([24, 100], pypto.DT_INT64),
):
    pypto.set_vec_tile_shapes(8, 64)
    x[:] = pypto.remainder(a, b) + pypto.ceil_div(a, b)
    y[:] = pypto.cumsum(a, 0)
