"""AdamW with BF16 weights and FP32 moments: one step of training.

    python examples/kernels/adamw_bf16.py

Quotient and root leave the step open by an ulp or two, and the rounding to BF16 hides nearly all
of it. The moments are products and sums, and certain.
"""

import numpy as np

import pypto_cast as pypto

ROWS, COLUMNS = 16, 256
RATE, DECAY, BETA1, BETA2, EPSILON = 1e-2, 0.1, 0.9, 0.999, 1e-8


@pypto.frontend.jit
def adamw_bf16(
    weight: pypto.Tensor[[pypto.DYNAMIC, COLUMNS], pypto.DT_BF16],
    gradient: pypto.Tensor[[pypto.DYNAMIC, COLUMNS], pypto.DT_BF16],
    first: pypto.Tensor[[pypto.DYNAMIC, COLUMNS], pypto.DT_FP32],
    second: pypto.Tensor[[pypto.DYNAMIC, COLUMNS], pypto.DT_FP32],
    step: int,
):
    """Update weights and both moments in place, some rows at a time."""
    pypto.set_vec_tile_shapes(ROWS, COLUMNS)
    for start in pypto.loop(0, weight.shape[0], ROWS, name="rows", idx_name="start"):
        end = start + ROWS
        old = pypto.cast(weight[start:end], pypto.DT_FP32)
        slope = pypto.cast(gradient[start:end], pypto.DT_FP32)
        m = first[start:end] * BETA1 + slope * (1 - BETA1)
        v = second[start:end] * BETA2 + slope * slope * (1 - BETA2)
        root = pypto.sqrt(v / (1 - BETA2**step)) + EPSILON
        change = m / (1 - BETA1**step) / root * RATE
        weight[start:end] = pypto.cast(old * (1 - RATE * DECAY) - change, pypto.DT_BF16)
        first[start:end], second[start:end] = m, v


def main() -> None:
    """The third step, with moments of the two before."""
    rng = np.random.default_rng(10)
    weight, gradient = rng.standard_normal((2, 16 * ROWS, COLUMNS)).astype("bfloat16")
    first = (rng.standard_normal(weight.shape) * 0.2).astype(np.float32)
    second = rng.uniform(0.001, 0.004, weight.shape).astype(np.float32)
    print(adamw_bf16.certainty(weight, gradient, first, second, 3))


if __name__ == "__main__":
    main()
