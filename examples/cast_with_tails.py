"""Any number of rows, 32 at a time: loop, view, valid_shape and assemble.

python examples/cast_with_tails.py
"""

import numpy as np

import pypto_cast as pypto

ROWS, COLS = 32, 64


@pypto.frontend.jit
def cast_with_tails(
    x: pypto.Tensor[[pypto.DYNAMIC, COLS], pypto.DT_FP32],
    out: pypto.Tensor[[pypto.DYNAMIC, COLS], pypto.DT_BF16],
):
    """Cast a view at a time; the last one holds the remaining rows."""
    pypto.set_vec_tile_shapes(16, COLS)
    rows = x.shape[0]
    for index in pypto.loop((rows + ROWS - 1) // ROWS, name="rows", idx_name="index"):
        offset = index * ROWS
        left = (rows - offset).min(ROWS)
        part = pypto.view(x, [ROWS, COLS], [offset, 0], valid_shape=[left, COLS])
        pypto.assemble(pypto.cast(part, pypto.DT_BF16), [offset, 0], out)


def main() -> None:
    """70 rows are two whole views and a tail of 6."""
    x = np.random.default_rng(7).normal(size=(70, COLS)).astype(np.float32)
    out = np.zeros(x.shape, "bfloat16")
    cast_with_tails(x, out)
    for cast in cast_with_tails.program(x, out).casts:
        print(cast, "-", cast.program.plan)


if __name__ == "__main__":
    main()
