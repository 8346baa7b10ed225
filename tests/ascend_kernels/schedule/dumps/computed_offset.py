"""A number that a task wrote, read as an offset."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def computed_offset(
    table: pypto.Tensor([1, 8], pypto.DT_INT32),
    x: pypto.Tensor([160, 64], pypto.DT_FP32),
    y: pypto.Tensor([20, 64], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(20, 64)
    t = pypto.tensor([1, 8], pypto.DT_INT32, "t")
    for _ in pypto.loop(1, name="first", idx_name="i"):
        t[:] = table + 1
    for _ in pypto.loop(1, name="second", idx_name="j"):
        part = pypto.view(x, [20, 64], [t[0, 0] * 20, 0])
        y[:] = part * 2.0
