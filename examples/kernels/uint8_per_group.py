"""UINT8 per group of 32 elements: a scale and a zero point for each.

    python examples/kernels/uint8_per_group.py

The zero point is itself a rounded product, so that a quotient leaves it open now and then, and with
it a whole group.
"""

import numpy as np

import pypto_cast as pypto

ROWS, COLUMNS, GROUP = 16, 256, 32
GROUPS = ROWS * COLUMNS // GROUP


@pypto.frontend.jit
def uint8_per_group(
    x: pypto.Tensor[[ROWS, COLUMNS], pypto.DT_FP32],
    codes: pypto.Tensor[[ROWS, COLUMNS], pypto.DT_UINT8],
    zero_points: pypto.Tensor[[GROUPS], pypto.DT_FP32],
):
    """Map the least element of a group to 0 and the greatest to 255."""
    pypto.set_vec_tile_shapes(GROUPS, GROUP)
    groups = pypto.reshape(x, [GROUPS, GROUP])
    least = pypto.minimum(pypto.amin(groups, -1), 0.0)
    most = pypto.maximum(pypto.amax(groups, -1), 1e-12)
    scale = pypto.div(pypto.full([GROUPS], 255.0, pypto.DT_FP32), most - least)
    zeros = pypto.round(least * scale * -1.0)
    narrow = pypto.quantize(groups, scale, pypto.DT_UINT8, -1, zeros)
    codes[:] = pypto.reshape(narrow, [ROWS, COLUMNS])
    zero_points[:] = zeros


def main() -> None:
    """Activations after SiLU: few negative ones, near zero."""
    x = np.random.default_rng(3).standard_normal((ROWS, COLUMNS)) * 3
    x = (x / (1 + np.exp(-x))).astype(np.float32)
    codes, zero_points = np.zeros(x.shape, np.uint8), np.zeros(GROUPS, np.float32)
    print(uint8_per_group.certainty(x, codes, zero_points))


if __name__ == "__main__":
    main()
