"""Inputs of OpenVINO's dialect besides numpy arrays: lists, and tensors of torch and openvino."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from support.environment import openvino_nodes
from support.numbers.codes import SEED

import pypto_cast as pypto
from pypto_cast.dialects import openvino
from pypto_cast.dialects.openvino.element_types import HELD_FORMATS

ov = openvino_nodes.ov
DATA = np.array([[3.3, -0.07, 500.0], [0.0, -448.0, 1.9]])


@pytest.mark.parametrize(
    ("value", "dtype", "shape"),
    [
        ([1, 2], np.int64, (2,)),
        ([[1.5], [2]], np.float64, (2, 1)),
        ((True, False), np.bool_, (2,)),
        ([np.float16(1.5)], np.float16, (1,)),
        ([], np.float64, (0,)),
    ],
    ids=str,
)
def test_lists_are_constants(value: object, dtype: type, shape: tuple[int, ...]) -> None:
    """Of the types that openvino gives them."""
    node = openvino_nodes.opset14.convert_promote_types(value, value)
    held = openvino_nodes.NAMES[np.dtype(dtype)]
    assert node.input(0).get_element_type().get_type_name() == held
    for converted in openvino.convert_promote_types(value, value):
        np.testing.assert_array_equal(converted, np.array(value, dtype), strict=True)
        assert converted.shape == shape


def test_lists_of_python_floats_are_f64_to_fake_convert_too() -> None:
    with pytest.raises(RuntimeError, match="must be a bf16, f16, f32 but got: f64"):
        openvino_nodes.opset13.fake_convert([3.3], [1.0])
    with pytest.raises(openvino.FakeConvertError, match=r"got: f64; .* Python float is f64"):
        openvino.fake_convert([3.3], [1.0])
    data, scale = [np.float32(3.3)], [np.float32(1.0)]
    np.testing.assert_array_equal(
        openvino.fake_convert(data, scale), np.array([3.25], np.float32), strict=True
    )


@pytest.mark.parametrize("name", ["f16", "bf16", "f32"])
def test_fake_convert_of_openvino_tensors(name: str) -> None:
    dtype = openvino_nodes.NUMPY[name]
    data, scale, shift = (DATA.astype(dtype), np.ones(3, dtype), np.full(3, 0.5, dtype))
    tensors = [openvino_nodes.tensor(values) for values in (data, scale, shift)]
    before = bytes(tensors[0].data)
    found = openvino.fake_convert(*tensors)
    np.testing.assert_array_equal(found, openvino.fake_convert(data, scale, shift), strict=True)
    assert bytes(tensors[0].data) == before


@pytest.mark.parametrize("name", HELD_FORMATS)
@pytest.mark.parametrize("shape", [(3, 5), (), (0,)], ids=str)
def test_openvino_tensors_of_every_type(name: str, shape: tuple[int, ...]) -> None:
    fmt = HELD_FORMATS[name]
    random = np.random.default_rng(SEED)
    codes = random.integers(0, 2 if name == "boolean" else 1 << fmt.bits, shape, np.uint64)
    values = np.asarray(codes).astype(fmt.code_dtype).view(fmt.dtype)
    found, _ = openvino.convert_promote_types(openvino_nodes.tensor(values), values)
    assert (found.dtype, found.shape) == (fmt.dtype, shape)
    np.testing.assert_array_equal(found.view(fmt.code_dtype), values.view(fmt.code_dtype))


def test_a_part_of_an_openvino_tensor() -> None:
    whole = np.arange(12, dtype=np.float32).reshape(3, 4)
    part = ov.Tensor(ov.Tensor(whole), ov.Coordinate([0, 1]), ov.Coordinate([2, 3]))
    found, _ = openvino.convert_promote_types(part, np.float32(0))
    np.testing.assert_array_equal(found, whole[:2, 1:3], strict=True)


@pytest.mark.parametrize("name", ["u1", "nf4", "u2"])
def test_openvino_tensors_that_no_array_holds(name: str) -> None:
    tensor = ov.Tensor(getattr(ov.Type, name), ov.Shape([4]))
    with pytest.raises(TypeError, match=f"input_0 is an openvino.Tensor of {name}, which no numpy"):
        openvino.convert_promote_types(tensor, 1)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_torch_tensors(name: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed (extra torch)")
    dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    data = torch.tensor(DATA.tolist(), dtype=getattr(torch, name), requires_grad=True)
    scale = torch.ones(3, dtype=data.dtype)
    wanted = openvino.fake_convert(DATA.astype(dtype), np.ones(3, dtype))
    np.testing.assert_array_equal(openvino.fake_convert(data.T.T, scale), wanted, strict=True)
    left, right = openvino.convert_promote_types(data[0, 0], data)
    assert (left.shape, right.shape) == ((), (2, 3))
    assert left.dtype == right.dtype == dtype


def test_pypto_tensors() -> None:
    tensor = pypto.from_numpy(np.array([3.3], np.float16))
    found = openvino.fake_convert(tensor, np.ones(1, np.float16))
    np.testing.assert_array_equal(found, np.array([3.25], np.float16), strict=True)


def test_inputs_by_the_operations_names() -> None:
    left, right = openvino.convert_promote_types(input_1=np.int8([1]), input_0=np.int16([300]))
    np.testing.assert_array_equal(left, np.int16([300]), strict=True)
    np.testing.assert_array_equal(right, np.int16([1]), strict=True)


def test_arguments_that_are_no_inputs_raise_pythons_errors() -> None:
    """As the module's text says; what OpenVINO refuses is a RuntimeError."""
    assert "error is a RuntimeError" not in (openvino.__doc__ or "")
    one = np.ones(1, np.float32)
    for arguments, kind in (((one, one, None, 8), TypeError), ((2**63, one), OverflowError)):
        with pytest.raises(kind) as caught:
            openvino.fake_convert(*arguments)
        assert not isinstance(caught.value, RuntimeError)
    with pytest.raises(RuntimeError):
        openvino.fake_convert(one, np.ones(2, np.float32))


@pytest.mark.parametrize(
    ("name", "beyond", "largest", "literal"),
    [("f8e4m3", 465.0, 448.0, np.nan), ("f8e5m2", 61440.0, 57344.0, np.inf)],
)
def test_no_numerics_is_the_operations_text(
    name: str, beyond: float, largest: float, literal: float
) -> None:
    """Convert, which the text names, does not saturate; all numerics do."""
    data, scale = np.array([beyond], np.float32), np.ones(1, np.float32)
    np.testing.assert_array_equal(openvino_nodes.convert(data, name).astype(np.float32), [literal])
    for numerics in ("reference", "plugin", "plugin-avx512fp16", "rne"):
        found = openvino.fake_convert(data, scale, None, name, numerics=numerics)
        np.testing.assert_array_equal(found, np.array([largest], np.float32), strict=True)
    assert "None of them is the literal expression" in (openvino.fake_convert.__doc__ or "")
