"""A local tensor that one loop writes row by row and another reads."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def loop_partial(
    x: pypto.Tensor([100, 64], pypto.DT_FP32),
    y: pypto.Tensor([100, 64], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(20, 64)
    held = pypto.tensor([100, 64], pypto.DT_FP32, "held")
    for index in pypto.loop(5, name="write", idx_name="i"):
        part = pypto.view(x, [20, 64], [index * 20, 0])
        pypto.assemble(part + 1.0, [index * 20, 0], held)
    for index in pypto.loop(5, name="read", idx_name="j"):
        part = pypto.view(held, [20, 64], [index * 20, 0])
        pypto.assemble(part * 2.0, [80 - index * 20, 0], y)
