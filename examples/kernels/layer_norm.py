"""LayerNorm in BF16 without a cast: upstream's AutoCast carries FP32 from the sum to the output.

python examples/kernels/layer_norm.py
"""

import numpy as np

import pypto_cast as pypto

ROWS, COLUMNS = 16, 128


@pypto.frontend.jit
def layer_norm(
    x: pypto.Tensor[[pypto.DYNAMIC, COLUMNS], pypto.DT_BF16],
    gamma: pypto.Tensor[[1, COLUMNS], pypto.DT_BF16],
    beta: pypto.Tensor[[1, COLUMNS], pypto.DT_BF16],
    out: pypto.Tensor[[pypto.DYNAMIC, COLUMNS], pypto.DT_BF16],
):
    """Centre each row, divide by its deviation, weigh and shift."""
    pypto.set_vec_tile_shapes(ROWS, COLUMNS)
    for start in pypto.loop(0, x.shape[0], ROWS, name="rows", idx_name="start"):
        rows = pypto.view(x, [ROWS, COLUMNS], [start, 0])
        centred = rows - pypto.sum(rows, -1, True) / COLUMNS
        variance = pypto.sum(centred * centred, -1, True) / COLUMNS
        normed = centred / pypto.sqrt(variance + 1e-5) * gamma + beta
        pypto.assemble(normed, [start, 0], out)


def main() -> None:
    """As upstream rounds, and for comparison with a rounding after each operation."""
    rng = np.random.default_rng(6)
    x = rng.standard_normal((256, COLUMNS)).astype("bfloat16")
    gamma = rng.uniform(0.5, 1.5, (1, COLUMNS)).astype("bfloat16")
    beta = rng.standard_normal((1, COLUMNS)).astype("bfloat16")
    out = np.zeros(x.shape, "bfloat16")
    once = layer_norm.certainty(x, gamma, beta, out)
    print(once)
    with pypto.options(auto_cast="every op"):
        often = layer_norm.certainty(x, gamma, beta, out)
    different = np.count_nonzero(once.values["out"] != often.values["out"])
    print(f"rounded after each operation {different:,} of {out.size:,} results are others")


if __name__ == "__main__":
    main()
