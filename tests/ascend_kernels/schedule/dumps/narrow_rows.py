"""Rows of one block, whose sum is repeated in its own place."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def narrow_rows(
    a: pypto.Tensor([64, 8], pypto.DT_FP32),
    y: pypto.Tensor([64, 8], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(32, 8)
    y[:] = a * pypto.sum(a, dim=-1, keepdim=True)
