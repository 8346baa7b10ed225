"""Two loops over the same output, the second one behind a barrier."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def loop_barrier(
    x: pypto.Tensor([80, 64], pypto.DT_FP32),
    y: pypto.Tensor([80, 64], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(20, 64)
    for i in pypto.loop(4, name="first", idx_name="i"):
        part = pypto.view(x, [20, 64], [i * 20, 0])
        pypto.assemble(part + 1.0, [i * 20, 0], y)
    for j in pypto.loop(2, name="second", idx_name="j", submit_before_loop=True):
        part = pypto.view(x, [20, 64], [j * 20, 0])
        pypto.assemble(part * 2.0, [j * 20, 0], y)
