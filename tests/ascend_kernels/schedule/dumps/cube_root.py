"""The root of a magnitude with its sign, and products."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def cube_root(
    x: pypto.Tensor([24, 96], pypto.DT_FP16),
    y: pypto.Tensor([24, 96], pypto.DT_FP16),
    z: pypto.Tensor([1, 96], pypto.DT_FP16),
):
    pypto.set_vec_tile_shapes(8, 96)
    y[:] = pypto.cbrt(x)
    z[:] = pypto.prod(x, 0, True)
