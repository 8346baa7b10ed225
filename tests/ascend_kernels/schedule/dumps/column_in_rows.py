"""A column that fills rows, beside tiles that are put together and rows that are added up."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def column_in_rows(
    a: pypto.Tensor([4, 64], pypto.DT_FP32),
    m: pypto.Tensor([4, 1], pypto.DT_FP32),
    x: pypto.Tensor([4, 64], pypto.DT_FP32),
    y: pypto.Tensor([1, 64], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(1, 16)
    lines = pypto.abs(a)
    pypto.set_vec_tile_shapes(8, 16)
    x[:] = pypto.expand_exp_dif(lines, m)
    y[:] = pypto.sum(pypto.expand_exp_dif(a, m), 0, True)
