"""Two runs of a body of several tasks, for the timelines that upstream's simulator wrote of it."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def timeline(
    x: pypto.Tensor([128, 128], pypto.DT_FP32),
    y: pypto.Tensor([128, 128], pypto.DT_FP16),
):
    for k in pypto.loop(2, name="rows", idx_name="k"):
        pypto.set_vec_tile_shapes(32, 64)
        part = pypto.view(x, [64, 128], [k * 64, 0])
        turned = pypto.transpose(pypto.exp(part) + part, 0, 1)
        pypto.set_vec_tile_shapes(64, 32)
        half = pypto.cast(pypto.transpose(turned * 2.0, 0, 1), pypto.DT_FP16)
        pypto.assemble(half, [k * 64, 0], y)
