"""LayerNorm of rows of two tiles."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def layernorm_two_tiles(
    x: pypto.Tensor([64, 512], pypto.DT_FP32),
    gamma: pypto.Tensor([1, 512], pypto.DT_FP32),
    beta: pypto.Tensor([1, 512], pypto.DT_FP32),
    y: pypto.Tensor([64, 512], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 256)
    mean = pypto.sum(x, dim=-1, keepdim=True) * (1.0 / 512)
    centred = x - mean
    variance = pypto.sum(centred * centred, dim=-1, keepdim=True) * (1.0 / 512)
    y[:] = centred / pypto.sqrt(variance + 1e-5) * gamma + beta
