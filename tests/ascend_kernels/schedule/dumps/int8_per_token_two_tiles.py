"""INT8 a token, of rows of two tiles."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def int8_per_token_two_tiles(
    x: pypto.Tensor([64, 512], pypto.DT_BF16),
    codes: pypto.Tensor([64, 512], pypto.DT_INT8),
    scales: pypto.Tensor([64, 1], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 256)
    wide = pypto.cast(x, pypto.DT_FP32)
    scale = pypto.amax(pypto.abs(wide), dim=-1, keepdim=True) * (1.0 / 127)
    whole = pypto.cast(wide / scale, pypto.DT_INT32, pypto.CastMode.CAST_RINT)
    half = pypto.cast(whole, pypto.DT_FP16, pypto.CastMode.CAST_ROUND)
    codes[:] = pypto.cast(half, pypto.DT_INT8, pypto.CastMode.CAST_TRUNC)
    scales[:] = scale
