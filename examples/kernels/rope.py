"""Rotary position embedding of BF16 heads: every bit is certain, for nothing is divided.

python examples/kernels/rope.py
"""

import numpy as np

import pypto_cast as pypto

HALF = 64


@pypto.jit
def rope(
    x: pypto.Tensor[[pypto.DYNAMIC, 2 * HALF], pypto.DT_BF16],
    cos: pypto.Tensor[[pypto.DYNAMIC, HALF], pypto.DT_BF16],
    sin: pypto.Tensor[[pypto.DYNAMIC, HALF], pypto.DT_BF16],
    out: pypto.Tensor[[pypto.DYNAMIC, 2 * HALF], pypto.DT_BF16],
) -> None:
    """Turn the pairs of both halves; the two products keep FP32 until they are added."""
    pypto.set_vec_tile_shapes(32, 2 * HALF)
    left, right = x[:, 0:HALF], x[:, HALF:]
    out[:] = pypto.concat([left * cos - right * sin, right * cos + left * sin], -1)


def main() -> None:
    """32 positions."""
    x = np.random.default_rng(7).standard_normal((32, 2 * HALF)).astype("bfloat16")
    angles = np.arange(32)[:, None] * 10000.0 ** -(np.arange(HALF) / HALF)
    cos, sin = np.cos(angles).astype("bfloat16"), np.sin(angles).astype("bfloat16")
    print(rope.certainty(x, cos, sin, np.zeros(x.shape, "bfloat16")))


if __name__ == "__main__":
    main()
