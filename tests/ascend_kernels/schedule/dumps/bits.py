"""Bitwise operations and shifts, with numbers on either side."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def bits(
    a: pypto.Tensor([32, 128], pypto.DT_INT16),
    b: pypto.Tensor([32, 128], pypto.DT_INT16),
    x: pypto.Tensor([32, 128], pypto.DT_INT16),
    y: pypto.Tensor([32, 128], pypto.DT_INT16),
    z: pypto.Tensor([32, 128], pypto.DT_INT16),
):
    pypto.set_vec_tile_shapes(16, 64)
    x[:] = pypto.bitwise_xor(pypto.bitwise_and(a, b), pypto.bitwise_or(pypto.bitwise_not(a), 12))
    y[:] = pypto.bitwise_right_shift(pypto.bitwise_left_shift(a, b), 1)
    z[:] = pypto.bitwise_left_shift(7, b)
