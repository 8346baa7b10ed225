"""RMSNorm, then INT8 a row, of rows of two tiles."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def rmsnorm_int8_two_tiles(
    x: pypto.Tensor([64, 1024], pypto.DT_BF16),
    gamma: pypto.Tensor([1, 1024], pypto.DT_BF16),
    codes: pypto.Tensor([64, 1024], pypto.DT_INT8),
    scales: pypto.Tensor([64, 1], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(8, 512)
    wide = pypto.cast(x, pypto.DT_FP32)
    mean = pypto.sum(wide * wide, dim=-1, keepdim=True) * (1.0 / 1024)
    normed = wide / pypto.sqrt(mean + 1e-6) * pypto.cast(gamma, pypto.DT_FP32)
    scale = pypto.amax(pypto.abs(normed), dim=-1, keepdim=True) * (1.0 / 127)
    whole = pypto.cast(normed / scale, pypto.DT_INT32, pypto.CastMode.CAST_RINT)
    half = pypto.cast(whole, pypto.DT_FP16, pypto.CastMode.CAST_ROUND)
    codes[:] = pypto.cast(half, pypto.DT_INT8, pypto.CastMode.CAST_TRUNC)
    scales[:] = scale
