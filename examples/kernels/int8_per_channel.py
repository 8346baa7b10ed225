"""INT8 per channel: a scale for every column of a weight, and `pypto.quantize`.

python examples/kernels/int8_per_channel.py
"""

import numpy as np

import pypto_cast as pypto

ROWS, COLUMNS = 64, 128


@pypto.frontend.jit
def int8_per_channel(
    weight: pypto.Tensor[[ROWS, COLUMNS], pypto.DT_FP32],
    codes: pypto.Tensor[[ROWS, COLUMNS], pypto.DT_INT8],
    scales: pypto.Tensor[[COLUMNS], pypto.DT_FP32],
):
    """Scale each column to -127 to 127; a column of zeros keeps them."""
    pypto.set_vec_tile_shapes(ROWS, COLUMNS)
    most = pypto.maximum(pypto.amax(pypto.abs(weight), 0), 1e-12)
    scale = pypto.div(pypto.full([COLUMNS], 127.0, pypto.DT_FP32), most)
    codes[:] = pypto.quantize(weight, scale, pypto.DT_INT8, -2)
    scales[:] = most / 127.0


def main() -> None:
    """A weight whose columns differ in magnitude; one of them is zero."""
    rng = np.random.default_rng(2)
    weight = rng.standard_normal((ROWS, COLUMNS)) * 2.0 ** rng.integers(-6, 3, COLUMNS)
    weight[:, 5] = 0
    codes, scales = np.zeros(weight.shape, np.int8), np.zeros(COLUMNS, np.float32)
    print(int8_per_channel.certainty(weight.astype(np.float32), codes, scales))


if __name__ == "__main__":
    main()
