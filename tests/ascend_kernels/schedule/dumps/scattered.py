"""A number, and then elements, at places of each row that indices name."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def scattered(
    a: pypto.Tensor([40, 64], pypto.DT_FP32),
    index: pypto.Tensor([40, 16], pypto.DT_INT32),
    values: pypto.Tensor([40, 16], pypto.DT_FP32),
    y: pypto.Tensor([40, 64], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 64)
    marked = pypto.scatter(a, 1, index, 9.0)
    y[:] = pypto.scatter(marked, 1, index, values * 0.5) * 2.0
