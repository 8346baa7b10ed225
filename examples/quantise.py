"""The casts of a quantisation kernel: FP32 to INT32 to FP16 to INT8, clamped at the end.

    python examples/quantise.py

The input is scaled already; examples/kernels/int8_per_token.py scales it too. Three casts round
three times, each as its mode says.
"""

import numpy as np

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def quantise(
    scaled: pypto.Tensor[[pypto.STATIC, pypto.STATIC], pypto.DT_FP32],
    out: pypto.Tensor[[pypto.STATIC, pypto.STATIC], pypto.DT_INT8],
):
    """Round to the nearest integer, pass through FP16, clamp to INT8."""
    pypto.set_vec_tile_shapes(16, 128)
    whole = pypto.cast(scaled, pypto.DT_INT32, mode=pypto.CastMode.CAST_RINT)
    half = pypto.cast(whole, pypto.DT_FP16)
    out[:] = pypto.cast(
        half,
        pypto.DT_INT8,
        mode=pypto.CastMode.CAST_TRUNC,
        satmode=pypto.SaturationMode.ON,
    )


def main() -> None:
    """Ties, a clamped value and a NaN."""
    scaled = np.zeros((16, 128), np.float32)
    scaled[0, :6] = [0.5, 1.5, -2.5, 127.5, -1000.0, np.nan]
    out = np.zeros(scaled.shape, np.int8)
    quantise(scaled, out)
    print(scaled[0, :6], "->", out[0, :6])
    print(quantise.estimate(scaled, out))


if __name__ == "__main__":
    main()
