"""Quantisation-aware training, 4 bits per row: forward, and the gradients backward.

    python examples/kernels/qat.py

A quotient decides which code a weight takes and whether it lies in range, so an open quotient at a
tie opens the output, and one at the edge of the range the gradients.
"""

import numpy as np

import pypto_cast as pypto

ROWS, COLUMNS = 16, 128
LEAST, MOST = -8.0, 7.0

WEIGHTS = pypto.Tensor[[pypto.DYNAMIC, COLUMNS], pypto.DT_BF16]
SCALES = pypto.Tensor[[pypto.DYNAMIC, 1], pypto.DT_FP32]


@pypto.frontend.jit
def qat_forward(weight: WEIGHTS, scale: SCALES, out: WEIGHTS):
    """Round to multiples of a row's scale, -8 to 7 of them."""
    pypto.set_vec_tile_shapes(ROWS, COLUMNS)
    for start in pypto.loop(0, weight.shape[0], ROWS, name="rows", idx_name="start"):
        wide = pypto.cast(pypto.view(weight, [ROWS, COLUMNS], [start, 0]), pypto.DT_FP32)
        unit = pypto.maximum(pypto.view(scale, [ROWS, 1], [start, 0]), 1e-6)
        level = pypto.clip(pypto.round(wide / unit), LEAST, MOST)
        pypto.assemble(pypto.cast(level * unit, pypto.DT_BF16), [start, 0], out)


@pypto.frontend.jit
def qat_backward(
    weight: WEIGHTS, scale: SCALES, gradient: WEIGHTS, of_weight: WEIGHTS, of_scale: SCALES
):
    """Pass the gradient of weights in range; add up each row's for its scale."""
    pypto.set_vec_tile_shapes(ROWS, COLUMNS)
    for start in pypto.loop(0, weight.shape[0], ROWS, name="rows", idx_name="start"):
        slope = pypto.cast(pypto.view(gradient, [ROWS, COLUMNS], [start, 0]), pypto.DT_FP32)
        wide = pypto.cast(pypto.view(weight, [ROWS, COLUMNS], [start, 0]), pypto.DT_FP32)
        ratio = wide / pypto.maximum(pypto.view(scale, [ROWS, 1], [start, 0]), 1e-6)
        inside = pypto.where(pypto.logical_and(ratio >= LEAST, ratio <= MOST), 1.0, 0.0)
        pypto.assemble(pypto.cast(slope * inside, pypto.DT_BF16), [start, 0], of_weight)
        level = pypto.clip(pypto.round(ratio), LEAST, MOST)
        per_row = pypto.sum(slope * (level - ratio * inside), -1, True)
        pypto.assemble(per_row, [start, 0], of_scale)


def main() -> None:
    """Weights of which some are out of range, and scales of which some make ties."""
    rng = np.random.default_rng(11)
    weight, gradient = rng.standard_normal((2, 512, COLUMNS)).astype("bfloat16")
    scale = (rng.integers(12, 21, (512, 1)) / 64).astype(np.float32)
    out, of_weight = np.zeros(weight.shape, "bfloat16"), np.zeros(weight.shape, "bfloat16")
    print(qat_forward.certainty(weight, scale, out))
    print(qat_backward.certainty(weight, scale, gradient, of_weight, np.zeros_like(scale)))


if __name__ == "__main__":
    main()
