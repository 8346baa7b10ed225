"""A loop as long as a number of the first argument says, and a running sum in it."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def loop_data(
    n: pypto.Tensor([2], pypto.DT_INT32),
    x: pypto.Tensor([40, 64], pypto.DT_FP32),
    y: pypto.Tensor([40, 64], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(20, 64)
    total = pypto.full([40, 64], 1.0, pypto.DT_FP32)
    for index in pypto.loop(n[1] + 1, name="times", idx_name="index"):
        if index == n[0]:
            total[:] = total * 0.5
        else:
            total[:] = total + x
    y[:] = total * 2.0
