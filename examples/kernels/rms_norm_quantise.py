"""RMSNorm, then INT8 per token: the tail of many layers of language models.

python examples/kernels/rms_norm_quantise.py
"""

import numpy as np

import pypto_cast as pypto

COLUMNS = 512


@pypto.jit
def rms_norm_quantise(
    x: pypto.Tensor[[pypto.DYNAMIC, COLUMNS], pypto.DT_BF16],
    gamma: pypto.Tensor[[COLUMNS], pypto.DT_BF16],
    codes: pypto.Tensor[[pypto.DYNAMIC, COLUMNS], pypto.DT_INT8],
    scales: pypto.Tensor[[pypto.DYNAMIC, 1], pypto.DT_FP32],
) -> None:
    """Divide by the root of the mean square, weigh, and scale each row to -127 to 127."""
    pypto.set_vec_tile_shapes(16, COLUMNS)
    wide = pypto.cast(x, pypto.DT_FP32)
    squares = pypto.sum(wide * wide * (1 / COLUMNS), -1, True)
    normed = wide / pypto.sqrt(squares + 1e-6) * pypto.cast(gamma, pypto.DT_FP32)
    most = pypto.amax(pypto.abs(normed), -1, True)
    scale = pypto.div(pypto.full(most.shape, 127.0, pypto.DT_FP32), most)
    whole = pypto.cast(normed * scale, pypto.DT_INT32, mode=pypto.CAST_RINT)
    codes[:] = pypto.cast(pypto.cast(whole, pypto.DT_FP16), pypto.DT_INT8)
    scales[:] = most / 127.0


def main() -> None:
    """128 tokens of 512 features."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((128, COLUMNS)).astype("bfloat16")
    gamma = rng.uniform(0.5, 1.5, COLUMNS).astype("bfloat16")
    codes, scales = np.zeros(x.shape, np.int8), np.zeros((128, 1), np.float32)
    print(rms_norm_quantise.certainty(x, gamma, codes, scales))


if __name__ == "__main__":
    main()
