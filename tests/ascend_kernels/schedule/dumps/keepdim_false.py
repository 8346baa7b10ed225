"""A sum that drops its axis, which is a reshape in GM with nothing to run."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def keepdim_false(
    x: pypto.Tensor([64, 128], pypto.DT_FP32),
    y: pypto.Tensor([64], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 128)
    m = pypto.sum(x, dim=-1, keepdim=False)
    pypto.set_vec_tile_shapes(16)
    y[:] = pypto.exp(m * 0.01)
