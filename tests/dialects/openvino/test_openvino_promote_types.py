"""ConvertPromoteTypes without openvino: the document's examples, the rules, values, refusals."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pypto_cast.dialects import openvino
from pypto_cast.dialects.openvino.element_types import ELEMENT_TYPES

INTEGER_TO_REAL = "Integer input cannot be safely promoted to floating-point."
SCALAR = "Scalar input cannot be PyTorch-like promoted using safe promotion rules."
UNSIGNED = "Unsigned integer input cannot be safely promoted into any supported signed integer."
NO_RULE = "Unsupported input element types for ConvertPromoteTypes with given attributes."
DTYPES = {name: row.format.dtype for name, row in ELEMENT_TYPES.items() if row.format is not None}


def scalar_and_dimensioned(scalar: str, dimensioned: str, unsafe: bool = False) -> str:
    return openvino.promoted_type(
        scalar,
        dimensioned,
        rank0=0,
        rank1=1,
        promote_unsafe=unsafe,
        pytorch_scalar_promotion=True,
    )


# --- The document's examples ------------------------------------------------------------------


@pytest.mark.parametrize(("type0", "type1", "common"), [("i8", "f32", "f32"), ("i32", "u8", "i32")])
def test_regular_promotions(type0: str, type1: str, common: str) -> None:
    assert openvino.promoted_type(type0, type1) == common


@pytest.mark.parametrize(
    ("type0", "type1", "common", "refusal"),
    [
        ("f16", "i64", "f16", INTEGER_TO_REAL),
        ("f64", "u64", "f64", INTEGER_TO_REAL),
        ("i8", "u8", "i16", UNSIGNED),
        ("f16", "bf16", "f32", NO_RULE),
        # The document prints f8m4e3 and f8m5e3, which are no types.
        ("f8e4m3", "f8e5m2", "f16", NO_RULE),
        ("u64", "i8", "f32", UNSIGNED),
    ],
)
def test_promotions_that_are_unsafe(type0: str, type1: str, common: str, refusal: str) -> None:
    for pair in ((type0, type1), (type1, type0)):
        assert openvino.promoted_type(*pair, promote_unsafe=True) == common
        with pytest.raises(openvino.PromotionError) as caught:
            openvino.promoted_type(*pair)
        assert str(caught.value).startswith(refusal)
        assert str(caught.value).endswith(f"promote_unsafe=True gives {common}")


def test_pytorch_like_promotions() -> None:
    # The document gives u8 without saying that it takes promote_unsafe: the runtime refuses.
    with pytest.raises(openvino.PromotionError, match=SCALAR):
        scalar_and_dimensioned("i64", "u8")
    assert scalar_and_dimensioned("i64", "u8", unsafe=True) == "u8"
    assert scalar_and_dimensioned("f16", "i8") == "f16"


@pytest.mark.parametrize(
    ("types", "shapes", "unsafe", "common"),
    [
        (("f16", "f32"), ((256, 56), (3,)), False, "f32"),
        (("i16", "u32"), ((256, 56), (3,)), True, "i64"),
        (("i16", "u64"), ((256, 56), (3,)), True, "f32"),
    ],
    ids=["example-1-floats", "example-2-integers-unsafe", "example-3-u64-and-signed-unsafe"],
)
def test_layers(
    types: tuple[str, str],
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
    unsafe: bool,
    common: str,
) -> None:
    """The document's three layers: types and shapes of their ports, and values."""
    rng = np.random.default_rng(14)
    inputs = [
        rng.integers(0, 1000, shape).astype(DTYPES[name])
        for name, shape in zip(types, shapes, strict=True)
    ]
    outputs = openvino.convert_promote_types(*inputs, unsafe, False, "f32")
    for given, output in zip(inputs, outputs, strict=True):
        assert output.dtype == DTYPES[common]
        assert output.shape == given.shape
        np.testing.assert_array_equal(output, given)


# --- What the document's prose says otherwise ---------------------------------------------------


@pytest.mark.parametrize(
    ("type0", "type1", "common"),
    [("f16", "f32", "f32"), ("u8", "i16", "i16"), ("u1", "u4", "u4"), ("i4", "i64", "i64")],
)
def test_widening_to_one_of_both_is_safe(type0: str, type1: str, common: str) -> None:
    assert openvino.promoted_type(type0, type1) == common


@pytest.mark.parametrize(
    ("scalar", "dimensioned"),
    [("u64", "i32"), ("u8", "i4"), ("f16", "bf16"), ("f8e4m3", "f8e5m2")],
)
def test_lossy_pairs_of_the_safe_pytorch_mode(scalar: str, dimensioned: str) -> None:
    assert scalar_and_dimensioned(scalar, dimensioned) == dimensioned


@pytest.mark.parametrize("target", ["f64", "i4", "boolean", "dynamic", "string", "U1"])
def test_target_of_u64_and_signed(target: str) -> None:
    for signed in ("i4", "i8", "i16", "i32", "i64"):
        found = openvino.promoted_type(
            signed, "u64", promote_unsafe=True, u64_integer_promotion_target=target
        )
        assert found == target.lower()
        with pytest.raises(openvino.PromotionError, match=UNSIGNED):
            openvino.promoted_type(signed, "u64", u64_integer_promotion_target=target)
    for other, common in (("u32", "u64"), ("f16", "f16"), ("boolean", "u64")):
        found = openvino.promoted_type(
            other, "u64", promote_unsafe=True, u64_integer_promotion_target=target
        )
        assert found == common


# --- Properties of the rules ----------------------------------------------------------------------


def outcome(type0: str, type1: str, **attributes: Any) -> str:
    try:
        return openvino.promoted_type(type0, type1, **attributes)
    except openvino.PromotionError as error:
        return str(error).split(" Asked")[0]


def test_order_plays_no_part() -> None:
    for type0, type1 in itertools.combinations(ELEMENT_TYPES, 2):
        for rank0, rank1 in itertools.product((None, 0, 1), repeat=2):
            for unsafe, pytorch in itertools.product((False, True), repeat=2):
                flags = {"promote_unsafe": unsafe, "pytorch_scalar_promotion": pytorch}
                assert outcome(type0, type1, rank0=rank0, rank1=rank1, **flags) == outcome(
                    type1, type0, rank0=rank1, rank1=rank0, **flags
                )


def test_ranks_matter_to_the_pytorch_mode_only() -> None:
    for type0, type1 in itertools.combinations(ELEMENT_TYPES, 2):
        for ranks in itertools.product((None, 0, 1), repeat=2):
            assert outcome(type0, type1, rank0=ranks[0], rank1=ranks[1]) == outcome(type0, type1)


def test_dynamic_types_and_ranks() -> None:
    assert openvino.promoted_type("dynamic", "f32") == "dynamic"
    assert openvino.promoted_type("i32", "i8", pytorch_scalar_promotion=True) == "dynamic"
    assert openvino.promoted_type("i32", "i32", pytorch_scalar_promotion=True) == "i32"
    assert openvino.promoted_type("f64", "i8", pytorch_scalar_promotion=True) == "f64"


# --- Values -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "wanted"),
    [
        (np.int64(300), np.uint8([1]), 44),
        (np.int64(-1), np.uint8([1]), 255),
        (np.int64(70000), np.float16([1]), np.inf),
        (np.int32(70000), np.float16([1]), 65504),
        (np.uint64(2**64 - 1), np.float32([1]), 2.0**64),
        (np.uint64(2**63), np.float32([1]), 2.0**63),
        (np.float32(-0.0), np.float64([1]), -0.0),
        (True, np.int16([1]), 1),
        (True, np.float16([1]), 1),
        (2**24 + 1, np.float32([1]), 2.0**24),
        (np.float32(1.005), np.zeros(1, ml_dtypes.bfloat16), 1.0),
        (np.float64(1.0625 + 2**-30), np.zeros(1, ml_dtypes.float8_e4m3fn), 1.0),
    ],
    ids=lambda value: f"{value!r}" if np.isscalar(value) else str(np.asarray(value).dtype),
)
def test_values(left: Any, right: np.ndarray, wanted: float) -> None:
    converted, other = openvino.convert_promote_types(left, right, True, True)
    assert converted.dtype == other.dtype == right.dtype
    assert converted.shape == ()
    assert float(converted) == wanted
    assert np.signbit(float(converted)) == np.signbit(wanted)


def test_beyond_f8e4m3_is_nan() -> None:
    converted, _ = openvino.convert_promote_types(
        np.array([1000, -1000, 448], np.int32), np.zeros(1, ml_dtypes.float8_e4m3fn), True
    )
    assert converted.view(np.uint8).tolist() == [0x7F, 0xFF, 0x7E]


def test_bfloat16_takes_nan_for_a_number() -> None:
    codes = np.array([0x7FC00001, 0xFF800001, 0x7FFFFFFF, 0xFFFFFFFF], np.uint32)
    converted, _ = openvino.convert_promote_types(
        codes.view(np.float32)[0], np.zeros(1, ml_dtypes.bfloat16), True, True
    )
    assert converted.view(np.uint16) == 0x7FC0
    results = [
        openvino.convert_promote_types(nan, np.zeros(1, ml_dtypes.bfloat16), True, True)[0]
        for nan in codes.view(np.float32)
    ]
    assert [int(nan.view(np.uint16)) for nan in results] == [0x7FC0, 0xFF80, 0x8000, 0x0000]


def test_scalars_have_openvinos_types() -> None:
    for value, name in ((3, "i64"), (1.5, "f64"), (True, "boolean"), (np.int16(3), "i16")):
        left, right = openvino.convert_promote_types(value, value)
        assert left.dtype == right.dtype == DTYPES[name]
        assert left.shape == ()


def test_outputs_are_new_and_inputs_stay() -> None:
    for dtype in (np.int8, np.int16):
        left, right = np.arange(6, dtype=np.int8).reshape(2, 3)[:, ::-1], np.arange(3, dtype=dtype)
        left.flags.writeable = right.flags.writeable = False
        outputs = openvino.convert_promote_types(left, right)
        for given, output in zip((left, right), outputs, strict=True):
            assert not np.shares_memory(given, output)
            assert output.flags.writeable
            np.testing.assert_array_equal(output, given)


def test_other_byte_order_and_empty() -> None:
    left, right = openvino.convert_promote_types(np.array([258], ">i2"), np.zeros((0, 2), np.int64))
    assert left.tolist() == [258]
    assert left.dtype == right.dtype == np.int64
    assert right.shape == (0, 2)


# --- Refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["u2", "u3", "u6", "nf4", "f4e2m1", "f8e8m0", "string"])
def test_types_that_are_not_promoted(name: str) -> None:
    for other in ("f32", "dynamic", name):
        with pytest.raises(
            openvino.PromotionError, match=r"is_type_supported.*failed: .* not prom"
        ):
            openvino.promoted_type(other, name)


def test_unknown_names() -> None:
    with pytest.raises(openvino.OpenVINOError, match='"f33" is not a member of enum element'):
        openvino.promoted_type("f32", "f33")
    with pytest.raises(openvino.OpenVINOError, match='"f33" is not a member of enum element'):
        openvino.promoted_type("f32", "f32", u64_integer_promotion_target="f33")
    with pytest.raises(TypeError, match=r"named by a str such as 'f32', not 5 \(int\)"):
        openvino.promoted_type("f32", 5)


@pytest.mark.parametrize(
    ("attributes", "error", "message"),
    [
        ({"rank0": -1}, ValueError, "at least 0, not -1"),
        ({"rank1": True}, TypeError, "a rank is an int, or None if it is dynamic, not True"),
        ({"rank0": 1.0}, TypeError, "a rank is an int"),
        ({"promote_unsafe": 1}, TypeError, "promote_unsafe is True or False, not 1"),
        ({"pytorch_scalar_promotion": "no"}, TypeError, "pytorch_scalar_promotion is True or Fal"),
    ],
)
def test_arguments(attributes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        openvino.promoted_type("i8", "i16", **attributes)


@pytest.mark.parametrize("target", ["u1", "dynamic", "string", "nf4"])
def test_common_types_that_no_array_holds(target: str) -> None:
    with pytest.raises(openvino.PromotionError, match=f"promoted to {target}, which no numpy"):
        openvino.convert_promote_types(np.uint64([1]), np.int8([1]), True, False, target)


@pytest.mark.parametrize(
    ("dtype", "message"),
    [
        (ml_dtypes.float4_e2m1fn, "f4e2m1 is not promoted"),
        (ml_dtypes.float8_e8m0fnu, "f8e8m0 is not promoted"),
        (ml_dtypes.uint2, "u2 is not promoted"),
        ("U3", "string is not promoted"),
    ],
)
def test_arrays_of_types_that_are_not_promoted(dtype: Any, message: str) -> None:
    with pytest.raises(openvino.PromotionError, match=message):
        openvino.convert_promote_types(np.zeros(1, dtype), np.zeros(1))


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("1", TypeError, "input_1 must be a torch CPU tensor or a numpy array, not str; a number"),
        ([[1], [2, 3]], TypeError, "input_1 is no regular list of numbers"),
        (np.zeros(1, complex), TypeError, "complex128 is no element type of OpenVINO; these are"),
        (np.zeros(1, ml_dtypes.float8_e4m3fnuz), TypeError, "float8_e4m3fnuz is no element type"),
        (np.ma.masked_array([1]), TypeError, "input_1 is a masked array"),
        (2**63, OverflowError, "too large"),
    ],
)
def test_no_numbers(value: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        openvino.convert_promote_types(np.zeros(1), value)
