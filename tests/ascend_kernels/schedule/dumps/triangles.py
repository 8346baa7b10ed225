"""Triangles of tiles that the diagonal crosses, that lie on one side of it, and a last one."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def triangles(
    x: pypto.Tensor([40, 200], pypto.DT_FP32),
    y: pypto.Tensor([40, 200], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 64)
    y[:] = pypto.tril(pypto.exp(x), 3) + pypto.triu(x, -2)
