"""Compares the estimated cost of several tile shapes of a kernel.

    python examples/tune_tile.py

A kernel takes its tile shape as an argument; `estimate` adds up the cycles of its casts without
computing anything. The figures come from a named set; none was measured on a device.
"""

import pypto_cast as pypto

SHAPE = [1024, 2048]
CANDIDATES = [(16, 64), (32, 128), (64, 128), (64, 256), (16, 1024)]


@pypto.frontend.jit
def cast_kernel(
    x: pypto.Tensor[[pypto.STATIC, pypto.STATIC], pypto.DT_FP32],
    out: pypto.Tensor[[pypto.STATIC, pypto.STATIC], pypto.DT_FP16],
    rows: int,
    cols: int,
):
    """Cast all of it with one tile shape."""
    pypto.set_vec_tile_shapes(rows, cols)
    out[:] = pypto.cast(x, pypto.DT_FP16)


def main() -> None:
    """Print the candidates, the fastest first."""
    x, out = pypto.tensor(SHAPE, pypto.DT_FP32), pypto.tensor(SHAPE, pypto.DT_FP16)
    found = [(cast_kernel.estimate(x, out, *tile), tile) for tile in CANDIDATES]
    for estimate, tile in sorted(found, key=lambda pair: pair[0].cycles):
        (plan,) = cast_kernel.plan(x, out, *tile)
        print(f"{tile!s:12} {estimate.cycles:9.0f} cycles, {plan.buffering}")


if __name__ == "__main__":
    main()
