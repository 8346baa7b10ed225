"""A loop whose iterations write over half of what the last one wrote."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def overlapping_rows(
    x: pypto.Tensor([64, 128], pypto.DT_FP32),
    y: pypto.Tensor([64, 128], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 64)
    for index in pypto.loop(0, 3, 1, name="rows", idx_name="index"):
        start = index * 16
        part = pypto.view(x, [32, 128], [start, 0])
        pypto.assemble(part * 2.0, [start, 0], y)
