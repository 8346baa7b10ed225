"""The smallest kernel: FP32 to FP16, rounded to the nearest.

    python examples/hello_cast.py

The kernel, not `main`, is written as for upstream pypto; only the import differs.
"""

import numpy as np

import pypto_cast as pypto


@pypto.frontend.jit
def hello_cast(
    x: pypto.Tensor[[pypto.STATIC, pypto.STATIC], pypto.DT_FP32],
    out: pypto.Tensor[[pypto.STATIC, pypto.STATIC], pypto.DT_FP16],
):
    """Round every element once, ties to even."""
    pypto.set_vec_tile_shapes(16, 64)
    out[:] = pypto.cast(x, pypto.DT_FP16, mode=pypto.CastMode.CAST_RINT)


def main() -> None:
    """Run it, and print the work of the cores."""
    x = np.linspace(0, 4096, 32 * 64, dtype=np.float32).reshape(32, 64)
    out = np.zeros(x.shape, np.float16)
    hello_cast(x, out)
    print(out[:2, :4])
    print(hello_cast.program(x, out))
    print(hello_cast.estimate(x, out))


if __name__ == "__main__":
    main()
