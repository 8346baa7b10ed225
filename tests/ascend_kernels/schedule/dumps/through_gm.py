"""Parts that begin within a block, or are too large together, so that they pass through GM."""

import pypto_cast as pypto


@pypto.frontend.jit
def through_gm(
    x: pypto.Tensor([2, 7, 117], pypto.DT_FP32),
    y: pypto.Tensor([2, 7, 117], pypto.DT_FP32),
    z: pypto.Tensor([2, 7, 21], pypto.DT_FP32),
    large: pypto.Tensor([1, 128, 256], pypto.DT_FP32),
    w: pypto.Tensor([1, 128, 256], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(2, 4, 128)
    rows = pypto.exp(x)
    pypto.set_vec_tile_shapes(1, 64, 256)
    halves = pypto.abs(large)
    pypto.set_vec_tile_shapes(2, 8, 128)
    y[:] = pypto.abs(rows)
    columns = x * 2.0
    z[:] = pypto.exp(columns[:, :, 3:24]) + columns[:, :, 5:26]
    pypto.set_vec_tile_shapes(1, 128, 256)
    w[:] = halves * 3.0
