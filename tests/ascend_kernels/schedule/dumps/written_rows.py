"""Rows written to arguments in GM where indices say."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def written_rows(
    cache: pypto.Tensor([40, 64], pypto.DT_FP32),
    rows: pypto.Tensor([2, 8], pypto.DT_INT32),
    new: pypto.Tensor([16, 64], pypto.DT_FP32),
    table: pypto.Tensor([24, 96], pypto.DT_FP16),
    places: pypto.Tensor([12], pypto.DT_INT64),
    values: pypto.Tensor([12, 96], pypto.DT_FP16),
):
    pypto.set_vec_tile_shapes(16, 64)
    cache[:] = pypto.scatter_update(cache, -2, rows, new * 2.0)
    pypto.set_vec_tile_shapes(12, 32)
    pypto.index_put_(table, (places,), pypto.exp(values))
