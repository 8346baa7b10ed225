"""INT8 per group of 64 elements of a row, with `pypto.quantize` on a reshaped tensor.

python examples/kernels/int8_per_group.py
"""

import numpy as np

import pypto_cast as pypto

ROWS, COLUMNS, GROUP = 16, 512, 64
GROUPS = ROWS * COLUMNS // GROUP


@pypto.frontend.jit
def int8_per_group(
    weight: pypto.Tensor[[ROWS, COLUMNS], pypto.DT_BF16],
    codes: pypto.Tensor[[ROWS, COLUMNS], pypto.DT_INT8],
    scales: pypto.Tensor[[ROWS, COLUMNS // GROUP], pypto.DT_FP16],
):
    """Scale each group to -127 to 127; the inverse of the scale goes out in FP16."""
    pypto.set_vec_tile_shapes(GROUPS, GROUP)
    wide = pypto.cast(weight, pypto.DT_FP32)
    groups = pypto.reshape(wide, [GROUPS, GROUP])
    most = pypto.maximum(pypto.amax(pypto.abs(groups), -1), 1e-6)
    scale = pypto.div(pypto.full([GROUPS], 127.0, pypto.DT_FP32), most)
    narrow = pypto.quantize(groups, scale, pypto.DT_INT8, -1)
    codes[:] = pypto.reshape(narrow, [ROWS, COLUMNS])
    back = pypto.cast(most / 127.0, pypto.DT_FP16)
    scales[:] = pypto.reshape(back, [ROWS, COLUMNS // GROUP])


def main() -> None:
    """A weight with some columns of larger magnitude."""
    rng = np.random.default_rng(12)
    weight = rng.standard_normal((ROWS, COLUMNS)) * 2.0 ** rng.integers(-3, 3, COLUMNS)
    codes = np.zeros(weight.shape, np.int8)
    scales = np.zeros((ROWS, COLUMNS // GROUP), np.float16)
    print(int8_per_group.certainty(weight.astype("bfloat16"), codes, scales))


if __name__ == "__main__":
    main()
