"""Elements at a fixed pattern, and classes of elements."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def chosen(
    x: pypto.Tensor([40, 128], pypto.DT_FP32),
    index: pypto.Tensor([40], pypto.DT_INT32),
    y: pypto.Tensor([40, 32], pypto.DT_FP32),
    z: pypto.Tensor([40, 64], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 64)
    y[:] = pypto.gathermask(pypto.exp(x), 4) * 2.0
    z[:] = pypto.cast(pypto.one_hot(index, 64), pypto.DT_FP32)
