"""Softmax of attention scores, written out: the exponential is known to 2 ulp.

python examples/kernels/attention_weights.py
"""

import numpy as np

import pypto_cast as pypto

ROWS, KEYS = 16, 128


@pypto.frontend.jit
def attention_weights(
    scores: pypto.Tensor[[pypto.DYNAMIC, KEYS], pypto.DT_FP32],
    weights: pypto.Tensor[[pypto.DYNAMIC, KEYS], pypto.DT_BF16],
):
    """Scale by 1/8, subtract each row's greatest, and divide the exponentials by their sum."""
    pypto.set_vec_tile_shapes(ROWS, KEYS)
    for start in pypto.loop(0, scores.shape[0], ROWS, name="rows", idx_name="start"):
        scaled = pypto.view(scores, [ROWS, KEYS], [start, 0]) * 0.125
        powers = pypto.exp(scaled - pypto.amax(scaled, -1, True))
        narrow = pypto.cast(powers / pypto.sum(powers, -1, True), pypto.DT_BF16)
        pypto.assemble(narrow, [start, 0], weights)


def main() -> None:
    """8 heads of 128 queries; each sees the keys up to its own, the others are -inf."""
    scores = np.random.default_rng(8).standard_normal((8, KEYS, KEYS)).astype(np.float32) * 8
    scores[:, np.arange(KEYS) > np.arange(KEYS)[:, None]] = -np.inf
    scores = scores.reshape(-1, KEYS)
    print(attention_weights.certainty(scores, np.zeros(scores.shape, "bfloat16")))


if __name__ == "__main__":
    main()
