"""A row whose shape is changed outside a loop, and which its body reads."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def loop_reshaped(
    x: pypto.Tensor([64, 128], pypto.DT_FP32),
    row: pypto.Tensor([128], pypto.DT_FP32),
    y: pypto.Tensor([64, 128], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 128)
    line = pypto.reshape(row, [1, 128], inplace=True)
    for index in pypto.loop(4):
        part = x[index * 16 : index * 16 + 16, :]
        y[index * 16 : index * 16 + 16, :] = part * line
