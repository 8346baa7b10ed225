"""SwiGLU: gate * sigmoid(gate) * up, from BF16 to BF16.

python examples/kernels/swiglu.py
"""

import numpy as np

import pypto_cast as pypto

ROWS, COLUMNS = 16, 256


@pypto.frontend.jit
def swiglu(
    gate: pypto.Tensor[[pypto.DYNAMIC, COLUMNS], pypto.DT_BF16],
    up: pypto.Tensor[[pypto.DYNAMIC, COLUMNS], pypto.DT_BF16],
    out: pypto.Tensor[[pypto.DYNAMIC, COLUMNS], pypto.DT_BF16],
):
    """Compute in FP32 and round once, at the end."""
    pypto.set_vec_tile_shapes(ROWS, COLUMNS)
    for start in pypto.loop(0, gate.shape[0], ROWS, name="rows", idx_name="start"):
        wide = pypto.cast(pypto.view(gate, [ROWS, COLUMNS], [start, 0]), pypto.DT_FP32)
        other = pypto.cast(pypto.view(up, [ROWS, COLUMNS], [start, 0]), pypto.DT_FP32)
        product = wide * pypto.sigmoid(wide) * other
        pypto.assemble(pypto.cast(product, pypto.DT_BF16), [start, 0], out)


def main() -> None:
    """Normally distributed activations."""
    gate, up = np.random.default_rng(9).standard_normal((2, 128, COLUMNS)).astype("bfloat16")
    print(swiglu.certainty(gate, up, np.zeros(gate.shape, "bfloat16")))


if __name__ == "__main__":
    main()
