"""A loop whose first, last and odd iterations do something else."""

import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM})
def loop_paths(
    x: pypto.Tensor([pypto.DYNAMIC, 64], pypto.DT_FP16),
    y: pypto.Tensor([pypto.DYNAMIC, 64], pypto.DT_FP16),
):
    pypto.set_vec_tile_shapes(20, 64)
    for index in pypto.loop(x.shape[0] // 20, name="rows", idx_name="index"):
        part = pypto.view(x, [20, 64], [index * 20, 0])
        if pypto.is_loop_begin(index):
            pypto.assemble(part + 1.0, [index * 20, 0], y)
        elif pypto.is_loop_end(index):
            pypto.assemble(part * 2.0, [index * 20, 0], y)
        else:
            if index == 2:
                pypto.assemble(part - 3.0, [index * 20, 0], y)
            else:
                pypto.assemble(pypto.abs(part), [index * 20, 0], y)
