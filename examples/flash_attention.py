"""Attention over tiles of keys, with a running maximum and sum, and how certain its results are.

    python examples/flash_attention.py

No score of all keys is held at once: each tile of keys corrects what the tiles before it gave. The
order in which the cube adds is not public: a score may differ in its last bits, its weight by as
much as one BF16 number, and so each row of results. What is known of the rounding of the cube
(`assume`) decides how many results are certain.
"""

import ml_dtypes
import numpy as np

import pypto_cast as pypto

ROWS, KEYS, WIDTH, TILE = 32, 256, 64, 64


@pypto.frontend.jit
def attention(
    query: pypto.Tensor[[ROWS, WIDTH], pypto.DT_BF16],
    keys: pypto.Tensor[[pypto.DYNAMIC, WIDTH], pypto.DT_BF16],
    values: pypto.Tensor[[pypto.DYNAMIC, WIDTH], pypto.DT_BF16],
    out: pypto.Tensor[[ROWS, WIDTH], pypto.DT_BF16],
):
    """softmax(query @ keys.T / sqrt(WIDTH)) @ values, a tile of keys at a time."""
    pypto.set_vec_tile_shapes(16, TILE)
    pypto.set_cube_tile_shapes([32, 32], [64, 64], [64, 64])
    most = pypto.full([ROWS, 1], -3.0e38, pypto.DT_FP32)
    total = pypto.full([ROWS, 1], 0.0, pypto.DT_FP32)
    result = pypto.full([ROWS, WIDTH], 0.0, pypto.DT_FP32)
    for index in pypto.loop(keys.shape[0] // TILE):
        first = index * TILE
        k = pypto.view(keys, [TILE, WIDTH], [first, 0])
        v = pypto.view(values, [TILE, WIDTH], [first, 0])
        scores = pypto.matmul(query, k, pypto.DT_FP32, b_trans=True) * (WIDTH**-0.5)
        reach = pypto.maximum(most, pypto.amax(scores, -1, True))
        weights = pypto.exp(scores - reach)
        kept = pypto.exp(most - reach)
        part = pypto.matmul(pypto.cast(weights, pypto.DT_BF16), v, pypto.DT_FP32)
        total[:] = total * kept + pypto.sum(weights, -1, True)
        result[:] = result * kept + part
        most[:] = reach
    out[:] = pypto.cast(result / total, pypto.DT_BF16)


def main() -> None:
    """Random queries, keys and values, and the share of the results that is certain."""
    rng = np.random.default_rng(0)
    query, keys, values = (
        rng.standard_normal((rows, WIDTH)).astype(np.float32).astype(ml_dtypes.bfloat16)
        for rows in (ROWS, KEYS, KEYS)
    )
    out = np.zeros((ROWS, WIDTH), ml_dtypes.bfloat16)
    print(attention.certainty(query, keys, values, out))
    with pypto.options(assume=["ASSUME_CUBE_RNE"]):
        print("if the cube rounds to nearest:")
        print(attention.certainty(query, keys, values, out))


if __name__ == "__main__":
    main()
