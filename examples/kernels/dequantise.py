"""Dequantisation: INT32 accumulators times the scales of rows and columns, in BF16.

    python examples/kernels/dequantise.py

Two products and three casts: every bit is certain as long as the device rounds products to the
nearest. With `trust="documented"`, which does not assume that, some are not.
"""

import numpy as np

import pypto_cast as pypto

ROWS, COLUMNS = 16, 128


@pypto.frontend.jit
def dequantise(
    sums: pypto.Tensor[[pypto.DYNAMIC, COLUMNS], pypto.DT_INT32],
    of_rows: pypto.Tensor[[pypto.DYNAMIC, 1], pypto.DT_FP32],
    of_columns: pypto.Tensor[[1, COLUMNS], pypto.DT_FP32],
    out: pypto.Tensor[[pypto.DYNAMIC, COLUMNS], pypto.DT_BF16],
):
    """Multiply by the scales of the tokens, then by those of the channels."""
    pypto.set_vec_tile_shapes(ROWS, COLUMNS)
    for start in pypto.loop(0, sums.shape[0], ROWS, name="tokens", idx_name="start"):
        numbers = pypto.cast(pypto.view(sums, [ROWS, COLUMNS], [start, 0]), pypto.DT_FP32)
        scaled = numbers * pypto.view(of_rows, [ROWS, 1], [start, 0]) * of_columns
        pypto.assemble(pypto.cast(scaled, pypto.DT_BF16), [start, 0], out)


def main() -> None:
    """Once under each of the two assumptions."""
    rng = np.random.default_rng(4)
    sums = rng.integers(-(10**6), 10**6, (512, COLUMNS), np.int32)
    of_rows = rng.uniform(1e-3, 1e-1, (512, 1)).astype(np.float32)
    of_columns = rng.uniform(1e-4, 1e-2, (1, COLUMNS)).astype(np.float32)
    out = np.zeros(sums.shape, "bfloat16")
    for trust in ("default", "documented"):
        with pypto.options(trust=trust):
            print(f"{trust}: {dequantise.certainty(sums, of_rows, of_columns, out)}")


if __name__ == "__main__":
    main()
