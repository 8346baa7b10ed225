"""SwiGLU whose shape the tile does not divide."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def swiglu_ragged(
    gate: pypto.Tensor([50, 336], pypto.DT_BF16),
    up: pypto.Tensor([50, 336], pypto.DT_BF16),
    y: pypto.Tensor([50, 336], pypto.DT_BF16),
):
    pypto.set_vec_tile_shapes(16, 128)
    wide = pypto.cast(gate, pypto.DT_FP32)
    silu = wide * pypto.sigmoid(wide)
    y[:] = pypto.cast(silu * pypto.cast(up, pypto.DT_FP32), pypto.DT_BF16)
