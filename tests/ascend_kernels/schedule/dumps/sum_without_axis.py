"""A sum whose axis goes: a reshape of a tensor in GM, with nothing to run."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def sum_without_axis(
    x: pypto.Tensor([64, 256], pypto.DT_FP32),
    y: pypto.Tensor([64], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 128)
    y[:] = pypto.sum(x, dim=-1)
