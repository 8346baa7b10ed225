"""Kernels as written for upstream pypto; with another import this package runs the file too."""

import pypto
import torch

SIM = {"run_mode": pypto.RunMode.SIM}


@pypto.frontend.jit(runtime_options=SIM)
def whole(x: pypto.Tensor([], pypto.DT_FP32), out: pypto.Tensor([], pypto.DT_FP16)):
    pypto.set_vec_tile_shapes(*[8] * len(x.shape))
    out[:] = pypto.cast(x, pypto.DT_FP16)


@pypto.frontend.jit(runtime_options=SIM)
def rows_in_views(
    x: pypto.Tensor[[pypto.DYNAMIC, 64], pypto.DT_FP32],
    out: pypto.Tensor[[pypto.DYNAMIC, 64], pypto.DT_BF16],
):
    """A dynamic first axis and a tail."""
    pypto.set_vec_tile_shapes(16, 64)
    rows = x.shape[0]
    for index in pypto.loop((rows + 31) // 32, name="ROWS", idx_name="index"):
        start = index * 32
        part = pypto.view(x, [32, 64], [start, 0], valid_shape=[(rows - start).min(32), 64])
        pypto.assemble(pypto.cast(part, pypto.DT_BF16), [start, 0], out)


@pypto.frontend.jit(runtime_options=SIM)
def slices(
    x: pypto.Tensor[[64, 64], pypto.DT_INT32],
    out: pypto.Tensor[[pypto.STATIC, pypto.STATIC], pypto.DT_FP32],
    tile: list,
):
    pypto.set_vec_tile_shapes(*tile)
    for index in pypto.loop(0, 64, 16):
        out[index : index + 16, 0:] = pypto.cast(x[index : index + 16, :], pypto.DT_FP32)


@pypto.frontend.jit(runtime_options=SIM, host_options={}, pass_options={})
def quantise(
    x: pypto.Tensor[[16, 128], pypto.DT_FP32],
    out: pypto.Tensor[[16, 128], pypto.DT_INT8],
):
    pypto.set_vec_tile_shapes(16, 128)
    number = pypto.cast(x, pypto.DT_INT32, pypto.CastMode.CAST_RINT)
    half = pypto.cast(number, pypto.DT_FP16, mode=pypto.CastMode.CAST_ROUND)
    out[:] = pypto.cast(
        half,
        pypto.DT_INT8,
        mode=pypto.CastMode.CAST_TRUNC,
        satmode=pypto.SaturationMode.ON,
    )


def main():
    torch.manual_seed(7)
    x = torch.randn(3, 20)
    out = torch.full((3, 20), -99, dtype=torch.float16)
    whole(x, out)
    yield "whole", out, x.to(torch.float16)

    x = torch.randn(70, 64)
    out = torch.full((70, 64), -99, dtype=torch.bfloat16)
    rows_in_views(x, out)
    yield "rows_in_views", out, x.to(torch.bfloat16)

    x = torch.randint(-(2**31), 2**31 - 1, (64, 64), dtype=torch.int32)
    out = torch.full((64, 64), -99, dtype=torch.float32)
    slices(x, out, [16, 64])
    yield "slices", out, x.to(torch.float32)

    x = torch.randn(16, 128) * 100
    out = torch.full((16, 128), -99, dtype=torch.int8)
    quantise(x, out)
    yield "quantise", out, x.round().clamp(-128, 127).to(torch.int8)


if __name__ == "__main__":
    for name, out, expected in main():
        print(f"{name}: accepted", "and right" if torch.equal(out, expected) else "")
