"""A linear layer with INT8 weights: activations are quantised by row, multiplied, scaled back.

    python examples/quantised_linear.py

INT32 sums of INT8 products are exact in any order, so what is open comes from the quotients before
the product: a device may be one step off where a quotient lies next to a tie, and every column of
that row moves with it.
"""

import ml_dtypes
import numpy as np

import pypto_cast as pypto

ROWS, HIDDEN, COLUMNS = 8, 512, 256


@pypto.frontend.jit
def quantised_linear(
    x: pypto.Tensor[[pypto.STATIC, pypto.STATIC], pypto.DT_BF16],
    weight: pypto.Tensor[[pypto.STATIC, pypto.STATIC], pypto.DT_INT8, pypto.TileOpFormat.TILEOP_NZ],
    weight_scale: pypto.Tensor[[1, pypto.STATIC], pypto.DT_FP32],
    out: pypto.Tensor[[pypto.STATIC, pypto.STATIC], pypto.DT_BF16],
):
    """Quantise each row by its greatest magnitude, multiply, scale the sums."""
    pypto.set_vec_tile_shapes(4, 2048)
    wide = pypto.cast(x, pypto.DT_FP32)
    reach = pypto.amax(pypto.abs(wide), -1, True)
    scaled = pypto.mul(wide, pypto.div(pypto.full(reach.shape, 127.0, pypto.DT_FP32), reach))
    whole = pypto.cast(scaled, pypto.DT_INT32, pypto.CastMode.CAST_RINT)
    narrow = pypto.cast(
        pypto.cast(whole, pypto.DT_FP16, pypto.CastMode.CAST_RINT),
        pypto.DT_INT8,
        pypto.CastMode.CAST_TRUNC,
        pypto.SaturationMode.ON,
    )
    pypto.set_cube_tile_shapes([16, 16], [256, 512], [128, 128])
    sums = pypto.matmul(narrow, weight, pypto.DT_INT32)
    restored = pypto.mul(pypto.cast(sums, pypto.DT_FP32), pypto.mul(reach, 1.0 / 127.0))
    out[:] = pypto.cast(pypto.mul(restored, weight_scale), pypto.DT_BF16)


def main() -> None:
    """Random activations and weights, and the share of the results that is certain."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((ROWS, HIDDEN)).astype(np.float32).astype(ml_dtypes.bfloat16)
    weight = rng.integers(-127, 128, (HIDDEN, COLUMNS), np.int8)
    weight_scale = rng.uniform(0.001, 0.002, (1, COLUMNS)).astype(np.float32)
    out = np.zeros((ROWS, COLUMNS), ml_dtypes.bfloat16)
    certainty = quantised_linear.certainty(x, pypto.to_nz(weight), weight_scale, out)
    quantised_linear(x, weight, weight_scale, out)
    assert (certainty["out"].values == out).all()
    print(certainty)


if __name__ == "__main__":
    main()
