"""A host that traps floating-point exceptions: no cast ends its process, and its traps stay."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

_TRAPPING = """
import ctypes
import warnings
import numpy as np
import pypto_cast as pypto
from ascend_kernels.matrix import MATRIX
from pypto_cast.dialects import onnx, openvino, paddle
from pypto_cast.dtypes.data_types import DataType
from simulator.numbers.rounding import boundary_codes
from simulator.numbers.convert import values_of
from simulator.numbers.formats import FP16, FP32
from tiling.chips import A2_A3

warnings.simplefilter("ignore")
library = ctypes.CDLL("libm.so.6")
TRAPS = 0x1D  # invalid, division by zero, overflow, underflow: numbers of x86-64's fenv.h
DTYPES = {dtype.format: dtype for dtype in DataType if dtype.format is not None}
library.feenableexcept(TRAPS)

for fidelity in ("fast", "instructions"):
    for src, dst in MATRIX[A2_A3]:
        codes = boundary_codes(src)
        x = values_of(codes[: codes.size // 2 * 2][-2000:], src)
        for exact in (False, True):
            with pypto.options(
                vec_tile_shapes=[1024], fidelity=fidelity, engine="numpy", exact=exact
            ):
                pypto.cast(pypto.from_numpy(x), DTYPES[dst])


@pypto.jit
def kernel(
    x: pypto.Tensor([], pypto.DT_FP32),
    y: pypto.Tensor([], pypto.DT_FP32),
    out: pypto.Tensor([], pypto.DT_FP32),
) -> None:
    pypto.set_vec_tile_shapes(32, 32)
    pypto.set_cube_tile_shapes([32, 32], [32, 32], [32, 32])
    total = pypto.sum(x, -1, True) + pypto.exp(x) / y
    out[:] = pypto.matmul(pypto.maximum(total, x), y, pypto.DT_FP32)


x = values_of(boundary_codes(FP32)[-1024:], FP32).reshape(32, 32)
kernel(x, x.T.copy(), np.zeros_like(x))
kernel.certainty(x, x.T.copy(), np.zeros_like(x))
half = values_of(boundary_codes(FP16)[-1024:], FP16)
for dtype in ("DOUBLE", "FLOAT8E4M3FN", "INT8", "STRING"):
    onnx.cast(half, dtype)
paddle.cast(x, "float16")
openvino.fake_convert(half, np.float16([1.5]))
tensor = pypto.tensor([3], pypto.DT_FP16, data=[float("nan"), 1e300, 1e-300])
repr(tensor), tensor._repr_html_()
print(library.fegetexcept() == TRAPS)
"""


@pytest.mark.slow
def test_no_cast_ends_a_process_that_traps() -> None:
    if not sys.platform.startswith("linux") or not hasattr(ctypes.CDLL(None), "feenableexcept"):
        pytest.skip("how to trap floating-point exceptions here is not known")
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", _TRAPPING],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("True\n", "")
