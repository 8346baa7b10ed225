"""Every dialect takes the threads of `options(threads=)`, no more, and gives the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import pypto_cast as pypto
from pypto_cast.dialects import onnx, openvino, paddle
from simulator.numbers import elementwise

Array = npt.NDArray[Any]

SHAPE = (3, 70_001)
ROW = np.float32([[0.5], [-3.0], [np.nan]])
CALLS: dict[str, Callable[[Array], Array]] = {
    "onnx": lambda x: onnx.cast(x, "FLOAT8E4M3FN"),
    "paddle": lambda x: paddle.cast(x, "bfloat16"),
    "paddle-complex": lambda x: paddle.cast(x, "complex128"),
    "openvino-promotion": lambda x: openvino.convert_promote_types(x, np.float64(0))[0],
    **{
        f"openvino-{numerics}": lambda x, numerics=numerics: openvino.fake_convert(
            x, ROW, 2 * ROW, numerics=numerics
        )
        for numerics in ("reference", "plugin", "plugin-avx512fp16", "rne")
    },
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_dialect_takes_the_threads_it_is_given(
    call: Callable[[Array], Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    pool = elementwise._pool

    def counted(threads: int) -> object:
        asked.append(threads)
        return pool(threads)

    monkeypatch.setattr(elementwise, "_pool", counted)
    monkeypatch.setattr(elementwise, "_NATIVE_THREAD_ELEMS", elementwise._THREAD_ELEMS)
    x = np.random.default_rng(5).integers(0, 1 << 32, SHAPE, np.uint32).view(np.float32)
    alone = call(x)
    assert asked == []
    with pypto.options(threads=3):
        shared = call(x)
    assert set(asked) == {2}  # the caller is the third
    assert shared.dtype == alone.dtype
    np.testing.assert_array_equal(shared.view(np.uint8), alone.view(np.uint8))
