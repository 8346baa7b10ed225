"""Whole arrays: memory stays small whatever is in them, and threads survive a fork."""

from __future__ import annotations

import os
import tracemalloc

import numpy as np
import pytest

import pypto_cast as pypto
from pypto_cast.options.context import Engine

ELEMS = 1 << 21
MOST_BYTES = 8_000_000


@pytest.mark.sampled(28)
@pytest.mark.parametrize("engine", ["auto", "numpy"])
@pytest.mark.parametrize("value", [1.5, np.nan, 1e38, np.inf], ids=str)
@pytest.mark.parametrize(
    "dtype",
    [pypto.DT_FP16, pypto.DT_BF16, pypto.DT_INT16, pypto.DT_INT32, pypto.DT_INT64, pypto.DT_FP32],
    ids=str,
)
def test_memory_above_input_and_output(dtype: pypto.DataType, value: float, engine: Engine) -> None:
    x = pypto.from_numpy(np.full(ELEMS, value, np.float32))
    for mode in (pypto.CAST_FLOOR, pypto.CAST_RINT):
        with pypto.options(vec_tile_shapes=[4096], engine=engine):
            tracemalloc.start()
            y = pypto.cast(x, dtype, mode=mode)
            _, peak_bytes = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert peak_bytes - y.numpy().nbytes < MOST_BYTES


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_threads_after_a_fork() -> None:
    x = pypto.from_numpy(np.arange(1 << 18, dtype=np.float32))
    with pypto.options(vec_tile_shapes=[4096], threads=2):
        before = pypto.cast(x, pypto.DT_FP16).numpy()
        child = os.fork()
        if child == 0:
            after = pypto.cast(x, pypto.DT_FP16).numpy()
            os._exit(0 if (after == before).all() else 1)
        _, status = os.waitpid(child, 0)
    assert status == 0
