"""ONNX casts by native casts: the codes of `onnx.cast`, NaN as a class."""

from __future__ import annotations

import numpy as np
import pytest
from support.numbers.codes import as_values, source_codes

import pypto_cast as pypto
from pypto_cast.dialects import onnx
from pypto_cast.testing import assert_bits_equal


@pytest.mark.parametrize(
    ("src", "to", "fmt"),
    [
        ("FLOAT16", "BFLOAT16", "FP16"),
        ("BFLOAT16", "INT8", "BF16"),
        ("INT16", "BFLOAT16", "INT16"),
        ("UINT8", "INT32", "UINT8"),
        ("FLOAT16", "BOOL", "FP16"),
        ("BFLOAT16", "UINT16", "BF16"),
    ],
)
def test_an_exact_route_gives_the_codes_of_the_cast(src: str, to: str, fmt: str) -> None:
    found = onnx.route(src, to)
    assert found.best.verdict.is_exact
    assert found.values is None or (src, to) == ("UINT8", "INT32")
    values = as_values(source_codes(fmt, fmt), fmt)
    with pypto.options(vec_tile_shapes=[8192]):
        result = found.best.cast(pypto.from_numpy(values)).numpy()
    assert_bits_equal(result, onnx.cast(values, to), nans="class")


def test_low_bits_are_asked_about_where_nothing_is_lost() -> None:
    found = onnx.route("INT32", "INT8")
    assert found.values == (-128, 127)
    assert found.best.verdict.codes == 256
    values = np.arange(-128, 128, dtype=np.int32)
    with pypto.options(vec_tile_shapes=[64]):
        result = found.best.cast(pypto.from_numpy(values)).numpy()
    assert_bits_equal(result, onnx.cast(values, "INT8"))


def test_floats_are_rounded_to_nearest_and_truncated_to_integers() -> None:
    assert onnx.route("FLOAT", "INT8").mode is pypto.CAST_TRUNC
    assert onnx.route("INT64", "FLOAT16").mode is pypto.CAST_RINT


@pytest.mark.parametrize(
    ("src", "to", "text"),
    [
        ("FLOAT8E4M3FN", "INT8", "A2/A3 casts nothing from or to E4M3FN"),
        ("FLOAT", "UINT4", "no dtype for UINT4"),
        ("STRING", "INT8", "no dtype for STRING"),
        ("INT8", "INT8", "changes nothing"),
    ],
)
def test_what_has_no_route_is_told(src: str, to: str, text: str) -> None:
    with pytest.raises(pypto.RouteError, match=text):
        onnx.route(src, to)
