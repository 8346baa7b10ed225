"""A local tensor as long as an argument, read behind a barrier."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def open_temporary(
    x: pypto.Tensor([pypto.DYNAMIC, 64], pypto.DT_FP32),
    y: pypto.Tensor([pypto.DYNAMIC, 64], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(20, 64)
    held = pypto.tensor([x.shape[0], 64], pypto.DT_FP32, "held")
    for i in pypto.loop(x.shape[0] // 20, name="write", idx_name="i"):
        part = pypto.view(x, [20, 64], [i * 20, 0])
        pypto.assemble(part + 1.0, [i * 20, 0], held)
    for j in pypto.loop(x.shape[0] // 20, name="read", idx_name="j", submit_before_loop=True):
        part = pypto.view(held, [20, 64], [j * 20, 0])
        pypto.assemble(part * 2.0, [j * 20, 0], y)
