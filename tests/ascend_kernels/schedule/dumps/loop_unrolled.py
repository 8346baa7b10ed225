"""A loop of which upstream compiles one, two and four iterations as one body."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def loop_unrolled(
    x: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP32),
    y: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 128)
    rows = x.shape[0]
    for index in pypto.loop(
        pypto.ceildiv(rows, 16), name="rows", idx_name="index", unroll_list=[1, 2, 4]
    ):
        start = index * 16
        part = pypto.view(x, [16, 128], [start, 0], valid_shape=[(rows - start).min(16), 128])
        pypto.assemble(part / pypto.sum(part, dim=-1, keepdim=True), [start, 0], y)
