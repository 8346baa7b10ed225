"""A running maximum and a running sum, declared before the loop and read after it."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def loop_full(
    x: pypto.Tensor([pypto.DYNAMIC, 64], pypto.DT_FP32),
    y: pypto.Tensor([20, 64], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(20, 64)
    total = pypto.full([20, 64], 0.0, pypto.DT_FP32)
    most = pypto.full([20, 64], -100.0, pypto.DT_FP32)
    for index in pypto.loop(x.shape[0] // 20, name="rows", idx_name="index"):
        part = pypto.view(x, [20, 64], [index * 20, 0])
        total[:] = total + part
        most[:] = pypto.maximum(most, part)
    y[:] = total / most
