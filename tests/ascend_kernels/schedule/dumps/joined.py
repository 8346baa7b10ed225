"""Two operands put one behind the other, and used further."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def joined(
    a: pypto.Tensor([24, 64], pypto.DT_FP32),
    b: pypto.Tensor([16, 64], pypto.DT_FP32),
    y: pypto.Tensor([24, 128], pypto.DT_FP32),
    z: pypto.Tensor([40, 64], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(8, 64)
    y[:] = pypto.concat([a, pypto.abs(a)], -1) * 2.0
    z[:] = pypto.concat([a, pypto.abs(b)], 0)
