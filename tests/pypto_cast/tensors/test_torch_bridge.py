"""torch tensors as numpy arrays and back: the same bits in the same memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pypto_cast as pypto
from pypto_cast.tensors.torch_bridge import array_over, data_type_of, tensor_over, torch_dtype_of
from simulator.numbers.convert import codes_of

torch = pytest.importorskip("torch", reason="torch tensors are bridged; torch is not installed")


def holdable() -> list[pypto.DataType]:
    found = []
    for dtype in pypto.DataType:
        try:
            torch_dtype_of(dtype)
        except TypeError:
            continue
        found.append(dtype)
    return found


@pytest.mark.parametrize("dtype", holdable(), ids=str)
def test_every_code_goes_there_and_back(dtype: pypto.DataType) -> None:
    assert dtype.format is not None
    codes = np.arange(1 << min(dtype.format.bits, 16)).astype(dtype.format.code_dtype)
    held = tensor_over(codes.reshape(2, -1), dtype)
    assert (held.dtype, data_type_of(held.dtype)) == (torch_dtype_of(dtype), dtype)
    assert held.data_ptr() == codes.ctypes.data
    values = array_over(held, "x")
    assert values.dtype == dtype.format.dtype
    assert values.ctypes.data == codes.ctypes.data
    np.testing.assert_array_equal(codes_of(values, dtype.format).reshape(-1), codes)


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        (lambda: torch.zeros(2, device="meta"), TypeError, r"x is on meta .* use \.cpu\(\)"),
        (lambda: torch.zeros(2).to_sparse(), TypeError, r"torch\.sparse_coo.* dense tensors"),
        (lambda: torch.tensor([1 + 2j]).conj().imag, RuntimeError, "negative bit"),
        (lambda: torch.zeros(2, dtype=torch.float8_e4m3fnuz), TypeError, r"x is of .*e4m3fnuz"),
        (
            lambda: torch.zeros(2, dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
            TypeError,
            "x is of .*float4_e2m1fn_x2, which no array here holds",
        ),
    ],
    ids=["meta", "sparse", "negative", "no-dtype", "two-a-byte"],
)
def test_no_array_of_a_tensor(given: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        array_over(given(), "x")


def test_four_bits_have_no_torch_tensor() -> None:
    with pytest.raises(TypeError, match=r"no torch tensor holds DT_INT4.*pypto\.cast gives"):
        tensor_over(np.zeros(2, np.uint8), pypto.DT_INT4)
