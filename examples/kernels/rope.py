"""Rotary position embedding of BF16 heads: every bit is certain, for nothing is divided.

python examples/kernels/rope.py
"""

import numpy as np

import pypto_cast as pypto

ROWS, HALF = 16, 64


@pypto.frontend.jit
def rope(
    x: pypto.Tensor[[pypto.DYNAMIC, 2 * HALF], pypto.DT_BF16],
    cos: pypto.Tensor[[pypto.DYNAMIC, HALF], pypto.DT_BF16],
    sin: pypto.Tensor[[pypto.DYNAMIC, HALF], pypto.DT_BF16],
    out: pypto.Tensor[[pypto.DYNAMIC, 2 * HALF], pypto.DT_BF16],
):
    """Turn the pairs of both halves; the two products keep FP32 until they are added."""
    pypto.set_vec_tile_shapes(ROWS, 2 * HALF)
    for start in pypto.loop(0, x.shape[0], ROWS, name="positions", idx_name="start"):
        left = pypto.view(x, [ROWS, HALF], [start, 0])
        right = pypto.view(x, [ROWS, HALF], [start, HALF])
        c = pypto.view(cos, [ROWS, HALF], [start, 0])
        s = pypto.view(sin, [ROWS, HALF], [start, 0])
        turned = pypto.concat([left * c - right * s, right * c + left * s], -1)
        pypto.assemble(turned, [start, 0], out)


def main() -> None:
    """32 positions."""
    x = np.random.default_rng(7).standard_normal((32, 2 * HALF)).astype("bfloat16")
    angles = np.arange(32)[:, None] * 10000.0 ** -(np.arange(HALF) / HALF)
    cos, sin = np.cos(angles).astype("bfloat16"), np.sin(angles).astype("bfloat16")
    print(rope.certainty(x, cos, sin, np.zeros(x.shape, "bfloat16")))


if __name__ == "__main__":
    main()
