"""A library that makes this thread flush subnormal numbers to zero changes no bit of a cast."""

from __future__ import annotations

import numpy as np
import pytest

import pypto_cast as pypto

torch = pytest.importorskip("torch", reason="torch is not installed; it sets the flush mode")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [pypto.DT_FP16, pypto.DT_BF16, pypto.DT_INT32, pypto.DT_FP32])
@pytest.mark.parametrize("mode", [pypto.CAST_CEIL, pypto.CAST_FLOOR, pypto.CAST_RINT])
def test_subnormals_survive(dtype: pypto.DataType, mode: pypto.CastMode, threads: int) -> None:
    codes = np.arange(1, 1 << 17, dtype=np.uint32)
    x = pypto.from_numpy(np.concatenate([codes, codes | 0x80000000]).view(np.float32))
    with pypto.options(vec_tile_shapes=[8192], threads=threads):
        expected = pypto.cast(x, dtype, mode=mode).numpy()
        if not torch.set_flush_denormal(True):
            pytest.skip("this processor cannot flush subnormal numbers")
        try:
            assert np.float32(1e-40) * np.float32(1) == 0
            flushed = pypto.cast(x, dtype, mode=mode).numpy()
        finally:
            torch.set_flush_denormal(False)
    np.testing.assert_array_equal(
        flushed.view(f"u{flushed.itemsize}"), expected.view(f"u{flushed.itemsize}")
    )
