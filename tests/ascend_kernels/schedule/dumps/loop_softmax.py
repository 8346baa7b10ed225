"""Softmax in a loop over rows of a tensor whose first dimension is known when the kernel runs."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def loop_softmax(
    x: pypto.Tensor([pypto.DYNAMIC, 256], pypto.DT_FP32),
    y: pypto.Tensor([pypto.DYNAMIC, 256], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 128)
    rows = x.shape[0]
    for index in pypto.loop(0, pypto.ceildiv(rows, 32), 1, name="rows", idx_name="index"):
        start = index * 32
        part = pypto.view(x, [32, 256], [start, 0], valid_shape=[(rows - start).min(32), 256])
        e = pypto.exp(part - pypto.amax(part, dim=-1, keepdim=True))
        pypto.assemble(e / pypto.sum(e, dim=-1, keepdim=True), [start, 0], y)
