"""FakeConvert by instructions of A2/A3: the codes of `openvino.fake_convert`."""

from __future__ import annotations

import numpy as np
import pytest
from support.programs.twin_programs import needs_twin

import pypto_cast as pypto
from ascend_kernels import twin
from pypto_cast.dialects import openvino
from pypto_cast.testing import assert_bits_equal
from simulator.machine.execute import execute

EVERY = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def test_the_route_gives_the_codes_of_fake_convert() -> None:
    route = openvino.route("f16", "f8e5m2")
    assert route.verdict.is_exact
    assert route.verdict.codes == 2 * 0x7C01
    one = np.ones((), np.float16)
    wanted = openvino.fake_convert(EVERY, one, None, "f8e5m2", numerics="rne")
    assert_bits_equal(route.cast(pypto.from_numpy(EVERY)).numpy(), wanted, nans="class")


def test_program_and_compiled_kernel_give_the_same_bits() -> None:
    needs_twin()
    route = openvino.route("f16", "f8e5m2")
    values = EVERY[::17]
    wanted = route.cast(pypto.from_numpy(values)).numpy().view(np.uint16)
    program = route.program(values.shape, (1000,))
    np.testing.assert_array_equal(execute(program, values, fidelity="instructions"), wanted)
    np.testing.assert_array_equal(twin.execute(program, values), wanted)


@pytest.mark.parametrize(
    ("data", "destination", "error", "text"),
    [
        ("f16", "f8e4m3", pypto.RouteError, "no 8-bit floats. The nearest .* f16 to f8e5m2"),
        ("f32", "f8e5m2", pypto.RouteError, "FP32 -> BF16 CAST_RINT, which keeps 8 significant"),
        ("bf16", "f8e4m3", pypto.RouteError, "FakeConvert of bf16 to f8e4m3 has no route"),
        ("i8", "f8e4m3", openvino.FakeConvertError, "takes bf16, f16, f32 to f8e4m3 or f8e5m2"),
        ("f16", "f32", openvino.FakeConvertError, "not f16 to f32"),
    ],
)
def test_what_has_no_route_is_told(
    data: str, destination: str, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        openvino.route(data, destination)


def test_it_has_no_kernel() -> None:
    with pytest.raises(pypto.RouteError, match="pypto has no operation for FP16 -> FP16"):
        openvino.route("f16", "f8e5m2").kernel()
