"""An operation inside which the argument loses its name."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def logarithm(
    x: pypto.Tensor([40, 256], pypto.DT_FP32),
    y: pypto.Tensor([40, 256], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 128)
    y[:] = pypto.log(x)
