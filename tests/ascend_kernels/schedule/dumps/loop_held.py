"""A tensor that each iteration declares, writes part by part and reads again."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def loop_held(
    x: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP16),
    y: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP16),
):
    pypto.set_vec_tile_shapes(10, 64)
    for i in pypto.loop(x.shape[0] // 20, name="blocks", idx_name="i"):
        held = pypto.tensor([20, 128], pypto.DT_FP16, "held")
        for j in pypto.loop(2, name="write", idx_name="j"):
            part = pypto.view(x, [20, 64], [i * 20, j * 64])
            pypto.assemble(part + 1.0, [0, j * 64], held)
        for k in pypto.loop(2, name="read", idx_name="k"):
            part = pypto.view(held, [20, 64], [0, k * 64])
            pypto.assemble(pypto.abs(part), [i * 20, 64 - k * 64], y)
