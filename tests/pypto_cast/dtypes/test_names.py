"""The names of dtypes and modes: one table of spellings for the command and every dialect."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.environment.command import Command, command

import pypto_cast as pypto
from pypto_cast.dialects import compare_formats, onnx, openvino, paddle
from pypto_cast.dialects.onnx.types import tensor_type
from pypto_cast.dialects.openvino.element_types import known_name
from pypto_cast.dialects.paddle.cast import dtype_name
from pypto_cast.dtypes import names
from pypto_cast.tuning.sweep.config import read_config
from simulator.numbers.formats import FORMATS, Format

__all__ = ["command"]  # a fixture

TYPED = {
    "float16": "DT_FP16 FP16 fp16 float16 half f16 F16 torch.float16 torch.half np.float16 "
    "tensor(float16) numpy.float16 paddle.float16 pypto.DT_FP16 DataType.DT_FP16 <f2 FLOAT16",
    "bfloat16": "DT_BF16 bf16 BF16 bfloat16 torch.bfloat16 ml_dtypes.bfloat16 tensor(bfloat16)",
    "float32": "DT_FP32 fp32 f32 F32 single torch.float torch.float32 tensor(float) >f4",
    "float64": "DT_DOUBLE double DOUBLE fp64 f64 torch.double tensor(double) np.double",
    "int8": "DT_INT8 i8 I8 int8 torch.int8 tensor(int8)",
    "int32": "DT_INT32 i32 torch.int INT32",
    "int64": "DT_INT64 i64 long torch.long np.int64",
    "uint8": "DT_UINT8 u8 uint8 U8",
    "bool": "DT_BOOL bool BOOL boolean torch.bool np.bool_ tensor(bool)",
}
"""The names that people type, by numpy's name; every dialect has these types."""
SPELLED = [(text, name) for name, typed in TYPED.items() for text in typed.split()]
ONNX_OF = {"float32": "FLOAT", "float64": "DOUBLE"}
OPENVINO_OF = {
    **{"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "bool": "boolean"},
    **{"int8": "i8", "int32": "i32", "int64": "i64", "uint8": "u8"},
}


@pytest.mark.parametrize(("text", "name"), SPELLED, ids=[text for text, _ in SPELLED])
def test_one_spelling_in_every_dialect(text: str, name: str) -> None:
    dtype = names.dtype_named(text)
    assert dtype.format is not None
    assert dtype.format.dtype.name == name
    assert names.format_named(f" {text} ") is dtype.format
    assert tensor_type(text).name == ONNX_OF.get(name, name.upper())
    assert known_name(text) == OPENVINO_OF[name]
    assert dtype_name(text) == name


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=str)
def test_every_format_has_its_names_and_numpys(fmt: Format) -> None:
    assert names.format_named(fmt.name) is fmt
    assert names.format_named(names.name_of_numpy(fmt.dtype)) is fmt
    assert names.format_named(fmt.dtype) is fmt
    if fmt.is_in_numpy:
        assert tensor_type(fmt.name) is tensor_type(fmt.dtype)


@pytest.mark.parametrize("dtype", [d for d in pypto.DataType if d is not pypto.DataType.DT_BOTTOM])
def test_every_dtype_of_pypto_by_name_and_number(dtype: pypto.DataType) -> None:
    for given in (dtype, dtype.name, dtype.name.removeprefix("DT_"), int(dtype), str(int(dtype))):
        assert names.dtype_named(given) is dtype


def test_no_spelling_has_two_meanings() -> None:
    found: dict[str, str] = {}
    for spelling, name in names._spellings():
        assert found.setdefault(names._key(spelling), name) == name, spelling


def test_a_width_counts_bits_in_a_text_and_bytes_in_numpys_dtype() -> None:
    for asked, name in (("i8", "int8"), (np.dtype("i8"), "int64")):
        assert dtype_name(asked) == name
        assert paddle.cast(np.float32([3.5]), asked).dtype == name
        assert paddle.promote_dtype("add", asked, asked) == name
        assert onnx.cast(np.float32([3.5]), asked).dtype == name
        assert known_name(asked) == name.replace("int", "i")
        assert compare_formats("float32", asked).dst.dtype == name
    for text in ("f8", "u1", "c8", "i7"):  # numpy's float64, uint8, complex64; no type at all
        with pytest.raises(TypeError, match=f"data type '{text}' not understood"):
            dtype_name(text)


def test_dialects_keep_words_of_their_own() -> None:
    assert [dtype_name(text) for text in ("float", "int", "uint16")] == [
        *("float64", "int64", "bfloat16")
    ]
    assert [dtype_name(text) for text in ("c64", "c128")] == ["complex64", "complex128"]
    assert known_name("u1") == "u1"
    assert known_name("f8e8m0") == "f8e8m0"
    assert tensor_type("tensor(string)") is tensor_type("string") is onnx.TensorType.STRING
    assert names.dtype_named("float") is pypto.DT_FP32
    for text in ("float8_e4m3", "int", "banana.float16", "string"):
        with pytest.raises(ValueError, match=f"unknown dtype '{text}'"):
            names.dtype_named(text)


def test_a_number_is_a_type_where_the_dialect_numbers_them() -> None:
    assert names.dtype_named("6") is pypto.DT_FP16
    assert tensor_type("6") is tensor_type(6) is onnx.TensorType.INT32
    for number in (6, "6"):
        with pytest.raises(TypeError, match="not understood"):
            dtype_name(number)
        with pytest.raises((TypeError, openvino.OpenVINOError)):
            known_name(number)
        with pytest.raises((TypeError, ValueError)):
            names.format_named(number)
    with pytest.raises(ValueError, match="unknown dtype '24'"):
        names.dtype_named("24")
    with pytest.raises(ValueError, match="unknown dtype True"):
        names.dtype_named(True)


@pytest.mark.parametrize("framework", ["torch", "paddle", "openvino"])
def test_dtypes_of_frameworks(framework: str) -> None:
    module = pytest.importorskip(framework, reason=f"{framework} is not installed")
    half = module.Type.f16 if framework == "openvino" else module.float16
    assert names.dtype_named(half) is pypto.DT_FP16
    assert tensor_type(half) is onnx.TensorType.FLOAT16
    assert known_name(half) == "f16"
    assert dtype_name(half) == "float16"
    assert compare_formats(half, pypto.DT_INT8).src.name == "FP16"


def test_modes() -> None:
    for mode in pypto.CastMode:
        short = mode.name.removeprefix("CAST_")
        for given in (mode, mode.name, short, short.lower(), f"pypto.{mode.name}", str(int(mode))):
            assert names.mode_named(given) is mode
    with pytest.raises(ValueError, match=r"unknown mode 'rnit' \(did you mean CAST_RINT\?\)"):
        names.mode_named("rnit")
    assert names.satmode_named("off") is pypto.SaturationMode.OFF
    with pytest.raises(ValueError, match="unknown satmode '0'"):
        names.satmode_named("0")


@pytest.mark.parametrize(
    ("ask", "typo", "says"),
    [
        (names.dtype_named, "fp17", r"\(did you mean DT_FP16\?\); known: "),
        (names.dtype_named, "flaot16", r"\(did you mean DT_FP16"),
        (names.format_named, "bflaot16", r"\(did you mean bfloat16"),
        (tensor_type, "FLOAT15", r"has no 'FLOAT15' \(did you mean FLOAT16"),
        (known_name, "boolen", r"\(did you mean boolean\?\); members: "),
        (dtype_name, "complex46", r"\(did you mean complex64"),
    ],
    ids=lambda part: getattr(part, "__name__", str(part)[:12]),
)
def test_did_you_mean(ask: object, typo: str, says: str) -> None:
    with pytest.raises((TypeError, ValueError, openvino.OpenVINOError), match=says):
        ask(typo)


@pytest.mark.parametrize(
    "ask", [names.dtype_named, names.format_named, tensor_type, known_name, dtype_name]
)
def test_a_slip_in_any_spelling_is_named(ask: Callable[[str], object]) -> None:
    for spelling in names.SPELLINGS:
        with pytest.raises(
            (TypeError, ValueError, openvino.OpenVINOError), match=re.escape(f"{spelling}~")
        ):
            ask(f"{spelling}~")


def test_the_end_of_upstreams_list_is_no_dtype() -> None:
    for text in ("DT_BOTTOM", "bottom", "24"):
        with pytest.raises(ValueError, match=f"unknown dtype '{text}'"):
            names.dtype_named(text)


def test_the_command_and_a_sweep_take_them(command: Command, tmp_path: Path) -> None:
    told = [
        command("explain", "0.1", "--from", source, "--to", target, "--json").out
        for source, target in itertools.product(
            ("fp32", "torch.float32", "7", "single"), ("half", "np.float16", "tensor(float16)")
        )
    ]
    assert set(told) == {told[0]}
    assert '"error"' not in told[0]
    compared = command("compare", "1", "--from", "f32", "--to", "torch.half")
    assert compared.out.startswith("1: FP32 -> FP16\n")
    config = tmp_path / "sweep.toml"
    config.write_text('shapes = [[64]]\npairs = [["torch.float32", "half"], [7, "bf16"]]\n')
    assert [(job.src.name, job.dst.name) for job in read_config(config).jobs] == [
        ("DT_FP32", "DT_FP16"),
        ("DT_FP32", "DT_BF16"),
    ]
    config.write_text('shapes = [[64]]\npairs = [["fp23", "half"]]\n')
    with pytest.raises(ValueError, match=r"unknown dtype 'fp23' \(did you mean DT_FP32"):
        read_config(config)
