"""Every iteration writes the same output."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def loop_over(
    x: pypto.Tensor([100, 64], pypto.DT_FP32),
    y: pypto.Tensor([20, 64], pypto.DT_FP32),
    z: pypto.Tensor([100, 64], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(20, 64)
    for index in pypto.loop(5, name="write", idx_name="i"):
        part = pypto.view(x, [20, 64], [index * 20, 0])
        pypto.assemble(part + 1.0, [0, 0], y)
        pypto.assemble(part * 3.0, [index * 20, 0], z)
    for index in pypto.loop(4, name="again", idx_name="j"):
        part = pypto.view(x, [20, 64], [index * 20, 0])
        pypto.assemble(part * 2.0, [80 - index * 20, 0], z)
