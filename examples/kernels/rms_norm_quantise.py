"""RMSNorm, then INT8 per token: the tail of many layers of language models.

python examples/kernels/rms_norm_quantise.py
"""

import numpy as np

import pypto_cast as pypto

ROWS, COLUMNS = 16, 512


@pypto.frontend.jit
def rms_norm_quantise(
    x: pypto.Tensor[[pypto.DYNAMIC, COLUMNS], pypto.DT_BF16],
    gamma: pypto.Tensor[[COLUMNS], pypto.DT_BF16],
    codes: pypto.Tensor[[pypto.DYNAMIC, COLUMNS], pypto.DT_INT8],
    scales: pypto.Tensor[[pypto.DYNAMIC, 1], pypto.DT_FP32],
):
    """Divide by the root of the mean square, weigh, and scale each row to -127 to 127."""
    pypto.set_vec_tile_shapes(ROWS, COLUMNS)
    for start in pypto.loop(0, x.shape[0], ROWS, name="tokens", idx_name="start"):
        wide = pypto.cast(pypto.view(x, [ROWS, COLUMNS], [start, 0]), pypto.DT_FP32)
        squares = pypto.sum(wide * wide * (1 / COLUMNS), -1, True)
        normed = wide / pypto.sqrt(squares + 1e-6) * pypto.cast(gamma, pypto.DT_FP32)
        most = pypto.amax(pypto.abs(normed), -1, True)
        scale = pypto.div(pypto.full([ROWS, 1], 127.0, pypto.DT_FP32), most)
        whole = pypto.cast(normed * scale, pypto.DT_INT32, mode=pypto.CastMode.CAST_RINT)
        narrow = pypto.cast(pypto.cast(whole, pypto.DT_FP16), pypto.DT_INT8)
        pypto.assemble(narrow, [start, 0], codes)
        pypto.assemble(most / 127.0, [start, 0], scales)


def main() -> None:
    """128 tokens of 512 features."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((128, COLUMNS)).astype("bfloat16")
    gamma = rng.uniform(0.5, 1.5, COLUMNS).astype("bfloat16")
    codes, scales = np.zeros(x.shape, np.int8), np.zeros((128, 1), np.float32)
    print(rms_norm_quantise.certainty(x, gamma, codes, scales))


if __name__ == "__main__":
    main()
