"""Rows, columns and rows of pages, read in GM by indices."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def selected(
    x: pypto.Tensor([40, 96], pypto.DT_FP32),
    near: pypto.Tensor([8, 96], pypto.DT_FP32),
    rows: pypto.Tensor([16], pypto.DT_INT32),
    columns: pypto.Tensor([20], pypto.DT_INT32),
    tokens: pypto.Tensor([1, 16], pypto.DT_INT32),
    table: pypto.Tensor([1, 4], pypto.DT_INT32),
    sums: pypto.Tensor([16, 96], pypto.DT_FP32),
    picked: pypto.Tensor([40, 20], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(8, 64)
    pages = pypto.experimental.gather_in_ub(x, tokens, table, 4, -2)
    sums[:] = pypto.index_select(near * 2.0, 0, rows) + pages
    picked[:] = pypto.index_select(x, 1, columns)
