"""Rows that are taken from where a table says."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def offset_data(
    table: pypto.Tensor([4, 1], pypto.DT_INT32),
    x: pypto.Tensor([160, 64], pypto.DT_FP32),
    y: pypto.Tensor([80, 64], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(20, 64)
    for index in pypto.loop(4, name="rows", idx_name="index"):
        block = table[index, 0]
        part = pypto.view(x, [20, 64], [block * 20, 0])
        pypto.assemble(part * 2.0, [index * 20, 0], y)
