"""The rules of OpenVINO that `explain` tells, against the evaluation of Convert."""

from __future__ import annotations

import platform

import openvino_nodes
import pytest
from framework_casts import check

from pypto_cast.frontends.openvino.element_types import HELD_FORMATS
from simulator.convert import values_of
from simulator.formats import Codes, Format


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
