"""INT8 per token: a scale for every row, from its greatest magnitude.

    python examples/kernels/int8_per_token.py

The quotient that makes the scale is known to 1 ulp, so a code is open where the scaled value lies
at a tie; all others are certain.
"""

import numpy as np

import pypto_cast as pypto

ROWS, COLUMNS = 16, 256


@pypto.frontend.jit
def int8_per_token(
    x: pypto.Tensor[[pypto.DYNAMIC, COLUMNS], pypto.DT_BF16],
    codes: pypto.Tensor[[pypto.DYNAMIC, COLUMNS], pypto.DT_INT8],
    scales: pypto.Tensor[[pypto.DYNAMIC, 1], pypto.DT_FP32],
):
    """Scale each row to -127 to 127; the factors that undo it go out beside the codes."""
    pypto.set_vec_tile_shapes(ROWS, COLUMNS)
    for step in pypto.loop(x.shape[0] // ROWS, name="tokens", idx_name="step"):
        rows = pypto.cast(pypto.view(x, [ROWS, COLUMNS], [step * ROWS, 0]), pypto.DT_FP32)
        most = pypto.amax(pypto.abs(rows), -1, True)
        scale = pypto.div(pypto.full([ROWS, 1], 127.0, pypto.DT_FP32), most)
        whole = pypto.cast(rows * scale, pypto.DT_INT32, mode=pypto.CastMode.CAST_RINT)
        half = pypto.cast(whole, pypto.DT_FP16, mode=pypto.CastMode.CAST_RINT)
        narrow = pypto.cast(half, pypto.DT_INT8, mode=pypto.CastMode.CAST_TRUNC)
        pypto.assemble(narrow, [step * ROWS, 0], codes)
        back = pypto.div(pypto.full([ROWS, 1], 1.0, pypto.DT_FP32), scale)
        pypto.assemble(back, [step * ROWS, 0], scales)


def main() -> None:
    """48 tokens of normally distributed activations."""
    x = np.random.default_rng(1).standard_normal((48, COLUMNS)).astype("bfloat16")
    codes, scales = np.zeros(x.shape, np.int8), np.zeros((48, 1), np.float32)
    print(int8_per_token.certainty(x, codes, scales))


if __name__ == "__main__":
    main()
