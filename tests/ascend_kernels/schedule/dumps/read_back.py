"""An output that a second loop reads."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def read_back(
    x: pypto.Tensor([pypto.DYNAMIC, 64], pypto.DT_FP32),
    y: pypto.Tensor([pypto.DYNAMIC, 64], pypto.DT_FP32),
    z: pypto.Tensor([pypto.DYNAMIC, 64], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(20, 64)
    for i in pypto.loop(x.shape[0] // 20, name="write", idx_name="i"):
        part = pypto.view(x, [20, 64], [i * 20, 0])
        pypto.assemble(part + 1.0, [i * 20, 0], y)
    for j in pypto.loop(x.shape[0] // 20, name="read", idx_name="j"):
        part = pypto.view(y, [20, 64], [j * 20, 0])
        pypto.assemble(part * 2.0, [j * 20, 0], z)
