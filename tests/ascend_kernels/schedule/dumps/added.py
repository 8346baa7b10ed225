"""Rows added at places that indices name: in FP32 to several tiles, in BF16 rounded one by one."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def added(
    a: pypto.Tensor([40, 64], pypto.DT_FP32),
    terms: pypto.Tensor([8, 64], pypto.DT_FP32),
    index: pypto.Tensor([8], pypto.DT_INT32),
    y: pypto.Tensor([40, 64], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(16, 64)
    b = a * 1.0
    pypto.index_add_(b, 0, index, terms, alpha=0.3)
    c = pypto.cast(b, pypto.DT_BF16)
    short = pypto.cast(terms, pypto.DT_BF16)
    y[:] = pypto.cast(pypto.index_add(c, 0, index, short), pypto.DT_FP32)
