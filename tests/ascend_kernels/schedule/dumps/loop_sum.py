"""A running sum: each iteration reads what the one before wrote."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def loop_sum(
    x: pypto.Tensor([pypto.DYNAMIC, 64], pypto.DT_FP32),
    y: pypto.Tensor([20, 64], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(20, 64)
    total = pypto.tensor([20, 64], pypto.DT_FP32, "total")
    for index in pypto.loop(x.shape[0] // 20, name="rows", idx_name="index"):
        part = pypto.view(x, [20, 64], [index * 20, 0])
        if pypto.is_loop_begin(index):
            total[:] = part * 1.0
        else:
            total[:] = total + part
    y[:] = total * 0.5
