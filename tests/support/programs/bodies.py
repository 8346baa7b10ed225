"""Kernels of one output, made of a function from tensors to a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import pypto_cast as pypto
from pypto_cast.kernel.certainty import Certainty

DTYPES = {
    np.dtype(np.float32): pypto.DT_FP32,
    np.dtype(np.float16): pypto.DT_FP16,
    np.dtype(ml_dtypes.bfloat16): pypto.DT_BF16,
    np.dtype(np.int32): pypto.DT_INT32,
}
TILE = (8, 32)
Body = Callable[..., pypto.Tensor]


def certainty_of(body: Body, *inputs: np.ndarray, out: np.ndarray | None = None) -> Certainty:
    """Of a kernel that writes what the body makes of its inputs to an array like `out`."""
    result = result_of(body, *inputs) if out is None else np.zeros_like(out)
    return kernel_of(body, *inputs, result).certainty(*inputs, result)


def result_of(body: Body, *inputs: np.ndarray) -> np.ndarray:
    """An array for the body's result."""
    with pypto.options(vec_tile_shapes=TILE):
        found = body(*(pypto.tensor(x.shape, DTYPES[x.dtype]) for x in inputs))
    dtype = next(array for array, dtype in DTYPES.items() if dtype is found.dtype)
    return np.zeros(tuple(found.shape), dtype)


def kernel_of(body: Body, *arrays: np.ndarray) -> Any:
    """A kernel over inputs and the output, in this order."""

    def run(*tensors: pypto.Tensor) -> None:
        *given, out = tensors
        pypto.set_vec_tile_shapes(*TILE)
        out[:] = body(*given)

    names = [*(f"x{k}" for k in range(len(arrays) - 1)), "out"]
    annotations = [f"pypto.Tensor[{list(x.shape)}, pypto.{DTYPES[x.dtype].name}]" for x in arrays]
    parameters = ", ".join(f"{n}: {a}" for n, a in zip(names, annotations, strict=True))
    found: dict[str, Any] = {"pypto": pypto, "run": run}
    exec(f"def kernel({parameters}) -> None:\n    run({', '.join(names)})\n", found)
    return pypto.jit(found["kernel"])
