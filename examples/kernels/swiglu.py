"""SwiGLU: gate * sigmoid(gate) * up, from BF16 to BF16.

python examples/kernels/swiglu.py
"""

import numpy as np

import pypto_cast as pypto

COLUMNS = 256


@pypto.jit
def swiglu(
    gate: pypto.Tensor[[pypto.DYNAMIC, COLUMNS], pypto.DT_BF16],
    up: pypto.Tensor[[pypto.DYNAMIC, COLUMNS], pypto.DT_BF16],
    out: pypto.Tensor[[pypto.DYNAMIC, COLUMNS], pypto.DT_BF16],
) -> None:
    """Compute in FP32 and round once, at the end."""
    pypto.set_vec_tile_shapes(16, COLUMNS)
    wide = pypto.cast(gate, pypto.DT_FP32)
    swish = wide * pypto.sigmoid(wide)
    out[:] = pypto.cast(swish * pypto.cast(up, pypto.DT_FP32), pypto.DT_BF16)


def main() -> None:
    """Normally distributed activations."""
    gate, up = np.random.default_rng(9).standard_normal((2, 128, COLUMNS)).astype("bfloat16")
    print(swiglu.certainty(gate, up, np.zeros(gate.shape, "bfloat16")))


if __name__ == "__main__":
    main()
