"""Elements of each row, read by indices."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def gathered(
    a: pypto.Tensor([32, 64], pypto.DT_FP32),
    index: pypto.Tensor([32, 16], pypto.DT_INT32),
    y: pypto.Tensor([32, 16], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 64)
    y[:] = pypto.gather(a, 1, index)
