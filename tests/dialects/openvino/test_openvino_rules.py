"""The rules of OpenVINO that `compare` tells, against its own Convert and FakeConvert."""

from __future__ import annotations

import platform

import numpy as np
import pytest
from support.environment import openvino_nodes
from support.numbers.framework_casts import check

from pypto_cast.dialects.openvino.convert import convert
from pypto_cast.dialects.openvino.element_types import HELD_FORMATS
from simulator.numbers.convert import values_of
from simulator.numbers.formats import BF16, E2M1, E4M3FN, E5M2, FP16, FP32, Codes, Format


def test_a_float_without_a_known_rule_is_refused() -> None:
    with pytest.raises(TypeError, match="OpenVINO's conversions from or to E2M1"):
        convert(np.zeros(2, E2M1.dtype), E2M1, FP32)


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"),
    reason=f"out of range the rules are those of x86-64, not {platform.machine()}",
)
@pytest.mark.parametrize("name", HELD_FORMATS)
def test_openvino(name: str) -> None:
    src = HELD_FORMATS[name]
    for other, dst in HELD_FORMATS.items():
        if src is dst:
            continue

        def cast(codes: Codes, dst: Format = dst, other: str = other) -> Codes:
            found = openvino_nodes.convert(values_of(codes, src), other)
            return openvino_nodes.codes_of(found).view(dst.code_dtype)

        assert check("openvino", src, dst, cast)


@pytest.mark.parametrize("dst", [E4M3FN, E5M2], ids=str)
@pytest.mark.parametrize(
    ("dialect", "src"),
    [
        *(("fake-reference", src) for src in (FP32, FP16, BF16)),
        *(("fake-plugin", src) for src in (FP32, FP16)),
    ],
    ids=str,
)
def test_fake_convert(dialect: str, src: Format, dst: Format) -> None:
    """With a scale of 1 every result is a number of the 8-bit type, which numpy's cast keeps."""
    name = openvino_nodes.NAMES[dst.dtype]
    run = openvino_nodes.fake_convert
    if dialect == "fake-plugin":
        run = openvino_nodes.fake_convert_by_plugin

    def cast(codes: Codes) -> Codes:
        kept = run([values_of(codes, src), np.ones(1, src.dtype)], name)
        with np.errstate(all="ignore"):
            narrow = kept.astype(np.float32).astype(dst.dtype)
            back = narrow.astype(np.float32)
            assert np.array_equal(back, kept.astype(np.float32), equal_nan=True)
        return narrow.view(dst.code_dtype)

    assert check(dialect, src, dst, cast)
