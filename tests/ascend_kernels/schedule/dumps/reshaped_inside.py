"""A reshape in GM in the task that reads its result, which other tasks read on."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def reshaped_inside(
    a: pypto.Tensor([24, 128], pypto.DT_FP16),
    g: pypto.Tensor([128], pypto.DT_FP16),
    x: pypto.Tensor([24, 128], pypto.DT_FP16),
):
    pypto.set_vec_tile_shapes(8, 128)
    x[:] = a * pypto.exp(pypto.reshape(g, [1, 128]))
