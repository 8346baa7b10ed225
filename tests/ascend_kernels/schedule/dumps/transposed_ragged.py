"""A transposition of ragged tiles, whose result is cut by the tile shape anew."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def transposed_ragged(
    x: pypto.Tensor([24, 40], pypto.DT_FP32),
    y: pypto.Tensor([40, 24], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(8, 16)
    y[:] = pypto.transpose(x, 0, 1) + 1.0
