"""Bytes of which a format says less than all: bools other than 0 and 1, bits above a short code."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from pypto_cast.dialects import onnx, openvino, paddle
from pypto_cast.dialects.onnx.types import FORMATS, TensorType
from pypto_cast.dialects.openvino.element_types import HELD_FORMATS
from simulator.numbers import elementwise
from simulator.numbers.convert import SATURATE, WRAP, Conversion, canonical_bools
from simulator.numbers.formats import BOOL, E8M0, INT2, INT4, UINT2, UINT4, Format, IntFormat
from simulator.numbers.rounding import RoundMode

BYTES = np.arange(256, dtype=np.uint8)
DIRTY = np.resize(BYTES, 3 * 256).view(bool).reshape(3, 256)
CLEAN = np.resize(BYTES, 3 * 256).reshape(3, 256) != 0
LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "contiguous": lambda array: array,
    "strided": lambda array: array[:, ::-3],
    "transposed": lambda array: array.T,
    "scalar": lambda array: array[1, 2, ...],
    "empty": lambda array: array[:0],
}

every_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)


def assert_any_byte_but_0_is_true(
    cast: Callable[[np.ndarray], np.ndarray], layout: Callable[[np.ndarray], np.ndarray]
) -> None:
    before = DIRTY.view(np.uint8).copy()
    found, wanted = cast(layout(DIRTY)), cast(layout(CLEAN))
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if found.dtype == object:
        assert found.tolist() == wanted.tolist()
    else:
        assert found.tobytes() == wanted.tobytes()
    np.testing.assert_array_equal(DIRTY.view(np.uint8), before)


@every_layout
def test_bools_of_onnx(layout: Callable[[np.ndarray], np.ndarray]) -> None:
    for to in TensorType:
        assert_any_byte_but_0_is_true(lambda x, to=to: onnx.cast(x, to), layout)


@every_layout
def test_bools_of_openvino(layout: Callable[[np.ndarray], np.ndarray]) -> None:
    for fmt in HELD_FORMATS.values():
        other = np.zeros(1, fmt.dtype)
        for side in (0, 1):
            assert_any_byte_but_0_is_true(
                lambda x, y=other, side=side: openvino.convert_promote_types(x, y)[side], layout
            )


@every_layout
@pytest.mark.parametrize("dtype", paddle.DTYPES)
def test_bools_of_paddle(dtype: str, layout: Callable[[np.ndarray], np.ndarray]) -> None:
    assert_any_byte_but_0_is_true(lambda x: paddle.cast(x, dtype), layout)


def test_clean_bools_are_not_copied() -> None:
    assert canonical_bools(CLEAN) is CLEAN


@pytest.mark.parametrize("way", ["auto", "numpy", "exact"])
@pytest.mark.parametrize("dst", [fmt for fmt in FORMATS.values() if fmt is not E8M0], ids=str)
@pytest.mark.parametrize("src", [INT2, UINT2, INT4, UINT4], ids=str)
@pytest.mark.sampled(3)
def test_bits_above_a_short_integer_say_nothing(src: IntFormat, dst: Format, way: str) -> None:
    """The low bits alone are the number, in arrays of values and in codes."""
    numbers = BYTES.astype(np.int64) & ((1 << src.bits) - 1)
    if src.signed:
        numbers -= (numbers >> (src.bits - 1)) << src.bits
    for policy in (SATURATE, WRAP) if isinstance(dst, IntFormat) else (SATURATE,):
        conversion = Conversion(src=src, dst=dst, mode=RoundMode.RINT, policy=policy)
        for values in (BYTES, BYTES.view(src.dtype), BYTES[::-1].view(src.dtype)[::-1]):
            out = np.empty(BYTES.size, dst.code_dtype)
            chosen = {"exact": True} if way == "exact" else {"engine": way}
            elementwise.run((conversion,), values, out, **chosen)
            if isinstance(dst, IntFormat):
                held = numbers if policy is WRAP else np.clip(numbers, dst.min, dst.max)
                held = numbers != 0 if dst is BOOL else held
                wanted = held.astype(np.uint64) & np.uint64((1 << dst.bits) - 1)
            else:
                limits = ml_dtypes.finfo(dst.dtype)
                held = np.clip(numbers, float(limits.min), float(limits.max)).astype(dst.dtype)
                wanted = held.view(dst.code_dtype)
            np.testing.assert_array_equal(out, wanted.astype(dst.code_dtype))
