"""A column without padding: upstream's option combine_axis."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def packed(
    x: pypto.Tensor([48, 1], pypto.DT_BF16),
    z: pypto.Tensor([1, 1], pypto.DT_FP32),
    y: pypto.Tensor([48, 1], pypto.DT_FP32),
):
    pypto.experimental.set_operation_options(combine_axis=True)
    pypto.set_vec_tile_shapes(32, 16)
    column = pypto.maximum(pypto.cast(x, pypto.DT_FP32), 0.25)
    y[:] = column + pypto.expand_clone(z, [48, 1])
