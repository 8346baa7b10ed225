"""Transpositions of the last axis with one that is not beside it: on the way in, in UB, and out."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def transposed_apart(
    a: pypto.Tensor([3, 9, 40], pypto.DT_FP16),
    b: pypto.Tensor([4, 8, 64], pypto.DT_FP32),
    x: pypto.Tensor([40, 9, 3], pypto.DT_FP16),
    y: pypto.Tensor([64, 8, 4], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(4, 8, 32)
    x[:] = pypto.transpose(a, 0, 2)
    pypto.set_vec_tile_shapes(2, 8, 64)
    y[:] = pypto.transpose(pypto.abs(b), 0, 2)
