"""The rules of numpy, torch and pypto that `compare` tells, against the installed ones."""

from __future__ import annotations

import platform
import warnings

import numpy as np
import pytest
from support.numbers.framework_casts import check, source_codes

import pypto_cast as pypto
from ascend_kernels.matrix import MATRIX
from pypto_cast.dialects import onnx
from pypto_cast.dialects.systems import DIALECTS
from pypto_cast.dtypes.data_types import CastMode, DataType, SaturationMode
from simulator.numbers import formats as f
from simulator.numbers.convert import codes_of, values_of
from simulator.numbers.formats import Codes, Format
from tiling.chips import A2_A3

WIDE = (f.FP64, f.FP32, f.FP16, f.BF16)
FLOAT8 = (f.E4M3FN, f.E4M3FNUZ, f.E5M2, f.E5M2FNUZ)
INTS = (f.INT8, f.INT16, f.INT32, f.INT64, f.UINT8, f.UINT16, f.UINT32, f.UINT64)
COMMON = (*WIDE, *FLOAT8, f.BOOL, *INTS)
TORCH = (*COMMON, f.E8M0)
NUMPY = (*COMMON, f.INT4, f.UINT4, f.E8M0, f.E2M1)
BESIDE_E8M0 = {*FLOAT8, f.INT4, f.UINT4, f.E2M1}
"""Types of ml_dtypes that it does not cast to E8M0 or from it."""

x86 = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"),
    reason=f"out of range the rules are those of x86-64, not {platform.machine()}",
)


def names(formats: tuple[Format, ...]) -> list[str]:
    return [fmt.name.lower() for fmt in formats]


@x86
@pytest.mark.parametrize("src", NUMPY, ids=names(NUMPY))
@pytest.mark.sampled(3)
def test_numpy(src: Format) -> None:
    for dst in NUMPY:
        if src is dst or not has_cast(src, dst):
            continue
        mask = dst.code_dtype.type((1 << dst.bits) - 1)

        def cast(codes: Codes, dst: Format = dst, mask: np.unsignedinteger = mask) -> Codes:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return codes.view(src.dtype).astype(dst.dtype).view(dst.code_dtype) & mask

        assert check("numpy", src, dst, cast)


def has_cast(src: Format, dst: Format) -> bool:
    """Of ml_dtypes and numpy."""
    of_scale = f.E8M0 in (src, dst) and {src, dst} & BESIDE_E8M0
    return {src, dst} != {f.INT4, f.UINT4} and not of_scale


def test_casts_that_numpy_lacks() -> None:
    lacking = [(src, dst) for src in NUMPY for dst in NUMPY if not has_cast(src, dst)]
    assert len(lacking) == 2 + 2 * len(BESIDE_E8M0)
    for src, dst in lacking:
        assert DIALECTS["numpy"].rule(src, dst, CastMode.CAST_NONE).convert is None
        with pytest.raises(TypeError, match="Cannot cast"):
            np.zeros(2, src.dtype).astype(dst.dtype)


@x86
@pytest.mark.parametrize("src", TORCH, ids=names(TORCH))
def test_torch(src: Format) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed (extra torch)")
    spelled = {
        f.FP64: "float64",
        f.FP32: "float32",
        f.FP16: "float16",
        f.BF16: "bfloat16",
        f.E4M3FN: "float8_e4m3fn",
        f.E4M3FNUZ: "float8_e4m3fnuz",
        f.E5M2: "float8_e5m2",
        f.E5M2FNUZ: "float8_e5m2fnuz",
        f.E8M0: "float8_e8m0fnu",
        **{fmt: fmt.name.lower() for fmt in (f.BOOL, *INTS)},
    }

    def dtype(fmt: Format) -> object:
        return getattr(torch, spelled[fmt])

    def bits(fmt: Format) -> object:
        return getattr(torch, fmt.code_dtype.name)

    for dst in TORCH:
        if src is dst:
            continue

        def cast(codes: Codes, dst: Format = dst) -> Codes:
            tensor = torch.from_numpy(codes.copy()).view(dtype(src))
            return tensor.to(dtype(dst)).view(bits(dst)).numpy()

        assert check("torch", src, dst, cast)


def test_torch_has_no_cast_of_its_packed_floats() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed (extra torch)")
    assert DIALECTS["torch"].rule(f.FP32, f.E2M1, CastMode.CAST_NONE).convert is None
    with pytest.raises((NotImplementedError, RuntimeError), match="not implemented"):
        torch.zeros(2).to(torch.float4_e2m1fn_x2)


@pytest.mark.parametrize("satmode", SaturationMode, ids=str)
@pytest.mark.parametrize("rule", MATRIX[A2_A3].values(), ids=str)
@pytest.mark.sampled(3)
def test_pypto(rule, satmode: SaturationMode) -> None:
    """The rows are what `pypto.cast` gives in every mode, those that the pair lacks too."""
    src, dst = (next(d for d in DataType if d.format is fmt) for fmt in (rule.src, rule.dst))
    codes = source_codes(rule.src)
    codes = codes[: codes.size // 2 * 2]
    tensor = pypto.from_numpy(values_of(codes, rule.src))
    name = "pypto" if satmode is SaturationMode.ON else "pypto-off"
    for mode in CastMode:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = pypto.cast(tensor, dst, mode, satmode).numpy()
        found = DIALECTS[name].rule(rule.src, rule.dst, mode).convert
        assert found is not None
        np.testing.assert_array_equal(found(codes), codes_of(wanted, rule.dst))
    assert tensor.dtype is src


def test_pypto_refuses_what_the_matrix_lacks() -> None:
    for dialect in ("pypto", "pypto-off"):
        rule = DIALECTS[dialect].rule(f.FP32, f.UINT8, CastMode.CAST_NONE)
        assert rule.convert is None
        assert "A2/A3 does not cast FP32 -> UINT8" in rule.text


@pytest.mark.parametrize("dst", onnx.types.FORMATS.values(), ids=str)
def test_onnx(dst: Format) -> None:
    for src in onnx.types.FORMATS.values():
        found = DIALECTS["onnx"].rule(src, dst, CastMode.CAST_NONE).convert
        assert found is not None
        codes = source_codes(src)[:4096]
        wanted = codes_of(onnx.cast(values_of(codes, src), dst.dtype), dst)
        np.testing.assert_array_equal(found(codes), wanted)


@pytest.mark.parametrize(
    ("dialect", "options"),
    [("onnx", {}), ("onnx-off", {"saturate": False}), ("onnx-19", {"opset": 19})],
)
@pytest.mark.parametrize("dst", [*FLOAT8, f.E8M0], ids=str)
def test_settings_of_onnx(dialect: str, options: dict[str, int], dst: Format) -> None:
    """Over every float, with the texts of what each does out of range."""
    for src in (f.FP64, f.FP32, f.FP16, f.BF16, f.INT32):
        rule = DIALECTS[dialect].rule(src, dst, CastMode.CAST_NONE)
        assert rule.convert is not None
        codes = source_codes(src)
        wanted = codes_of(onnx.cast(values_of(codes, src), dst.dtype, **options), dst)
        np.testing.assert_array_equal(rule.convert(codes), wanted)
        default = DIALECTS["onnx"].rule(src, dst, CastMode.CAST_NONE)
        assert default.convert is not None
        acts = bool((wanted != default.convert(codes)).any())
        assert acts is (DIALECTS[dialect].applies(src, dst) and dialect != "onnx")
        assert (rule.text != default.text) is acts
        assert rule.source == f"ONNX Cast-{options.get('opset', 25)}, saturate=" + (
            "0" if dialect == "onnx-off" else "1"
        )


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_pair_has_words(dialect: str) -> None:
    for src in f.FORMATS.values():
        for dst in f.FORMATS.values():
            rule = DIALECTS[dialect].rule(src, dst, CastMode.CAST_NONE)
            assert rule.text
            assert rule.source or rule.convert is None
