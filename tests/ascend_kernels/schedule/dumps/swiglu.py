"""SwiGLU."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def swiglu(
    gate: pypto.Tensor([64, 512], pypto.DT_BF16),
    up: pypto.Tensor([64, 512], pypto.DT_BF16),
    y: pypto.Tensor([64, 512], pypto.DT_BF16),
):
    pypto.set_vec_tile_shapes(16, 256)
    wide = pypto.cast(gate, pypto.DT_FP32)
    silu = wide * pypto.sigmoid(wide)
    y[:] = pypto.cast(silu * pypto.cast(up, pypto.DT_FP32), pypto.DT_BF16)
