"""A loop over columns inside one over rows."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def loop_nested(
    x: pypto.Tensor([pypto.DYNAMIC, 256], pypto.DT_FP32),
    y: pypto.Tensor([pypto.DYNAMIC, 256], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 64)
    rows = x.shape[0]
    for i in pypto.loop(pypto.ceildiv(rows, 32), name="rows", idx_name="i"):
        for j in pypto.loop(2, name="columns", idx_name="j"):
            part = pypto.view(
                x, [32, 128], [i * 32, j * 128], valid_shape=[(rows - i * 32).min(32), 128]
            )
            pypto.assemble(part * part - 1.0, [i * 32, j * 128], y)
