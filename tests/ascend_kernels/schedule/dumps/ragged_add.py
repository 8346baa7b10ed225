"""Addition of a shape that the tile does not divide."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def ragged_add(
    a: pypto.Tensor([50, 200], pypto.DT_FP16),
    b: pypto.Tensor([50, 200], pypto.DT_FP16),
    y: pypto.Tensor([50, 200], pypto.DT_FP16),
):
    pypto.set_vec_tile_shapes(16, 64)
    y[:] = a + b
