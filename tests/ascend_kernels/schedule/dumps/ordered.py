"""Rows in order: pairs of element and index, the greatest of each row, and places of a rise."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def ordered(
    a: pypto.Tensor([24, 64], pypto.DT_FP32),
    pairs: pypto.Tensor([24, 128], pypto.DT_FP32),
    values: pypto.Tensor([24, 5], pypto.DT_FP32),
    places: pypto.Tensor([24, 5], pypto.DT_INT32),
    rising: pypto.Tensor([24, 64], pypto.DT_INT32),
):
    pypto.set_vec_tile_shapes(8, 64)
    pairs[:] = pypto.sort32(a, 7)
    values[:], places[:] = pypto.topk(a * 2.0, 5, -1)
    rising[:] = pypto.argsort(pypto.exp(a), -1)
