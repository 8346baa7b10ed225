"""LayerNorm in BF16."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def layernorm_bf16(
    x: pypto.Tensor([64, 512], pypto.DT_BF16),
    gamma: pypto.Tensor([1, 512], pypto.DT_BF16),
    beta: pypto.Tensor([1, 512], pypto.DT_BF16),
    y: pypto.Tensor([64, 512], pypto.DT_BF16),
):
    pypto.set_vec_tile_shapes(16, 512)
    mean = pypto.sum(x, dim=-1, keepdim=True) * (1.0 / 512)
    centred = x - mean
    variance = pypto.sum(centred * centred, dim=-1, keepdim=True) * (1.0 / 512)
    y[:] = centred / pypto.sqrt(variance + 1e-5) * gamma + beta
