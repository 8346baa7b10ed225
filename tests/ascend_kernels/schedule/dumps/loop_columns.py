"""Nested loops: two tiles repeat one column, the last one short, and two bodies are alike."""

import pypto_cast as pypto


@pypto.frontend.jit
def loop_columns(
    x: pypto.Tensor([32, 112], pypto.DT_FP32),
    y: pypto.Tensor([32, 112], pypto.DT_FP32),
    z: pypto.Tensor([32, 112], pypto.DT_FP32),
    w: pypto.Tensor([32, 112], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(8, 32)
    for i in pypto.loop(2, name="rows", idx_name="i"):
        for j in pypto.loop(2, name="columns", idx_name="j"):
            part = pypto.view(x, [16, 64], [i * 16, j * 64])
            pypto.assemble(part - pypto.amax(part, -1, True), [i * 16, j * 64], y)
        for k in pypto.loop(2, name="again"):
            part = pypto.view(x, [16, 64], [i * 16, k * 64])
            pypto.assemble(pypto.exp(part), [i * 16, k * 64], z)
    for row in pypto.loop(2):
        part = pypto.view(x, [16, 112], [row * 16, 0])
        pypto.assemble(pypto.exp(part), [row * 16, 0], w)
