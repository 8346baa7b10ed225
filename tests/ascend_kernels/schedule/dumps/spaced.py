"""Evenly spaced numbers, each tile from its own place on."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def spaced(
    x: pypto.Tensor([300], pypto.DT_FP32),
    y: pypto.Tensor([300], pypto.DT_FP32),
    z: pypto.Tensor([300], pypto.DT_INT32),
):
    pypto.set_vec_tile_shapes(128)
    y[:] = pypto.exp(x) * pypto.arange(1.0, 151.0, 0.5)
    z[:] = pypto.arange(5, 605, 2)
