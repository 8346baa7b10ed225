"""torch.ops.pypto_cast.cast on the CPU: the bits, the errors and the memory of pypto_cast.cast."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.environment.sources import ROOT
from support.numbers.codes import SEED

import pypto_cast as pypto
from ascend_kernels.matrix import MATRIX
from pypto_cast import torch_op
from pypto_cast.dtypes.data_types import DataType
from tiling.chips import A2_A3

torch = pytest.importorskip("torch", reason="torch registers the op; it is not installed")

ON, OFF = (int(mode) for mode in pypto.SaturationMode)
RINT = int(pypto.CAST_RINT)
cast = torch.ops.pypto_cast.cast

TORCH_DTYPES = (
    *(torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8),
    *(torch.float16, torch.float32, torch.bfloat16),
)
PAIRS = [
    (src, dst)
    for src, dst in itertools.product(TORCH_DTYPES, repeat=2)
    if (torch_op.data_type_of(src).format, torch_op.data_type_of(dst).format) in MATRIX[A2_A3]
]

every_pair = pytest.mark.parametrize(
    ("src", "dst"), PAIRS, ids=lambda dtype: str(dtype).removeprefix("torch.")
)


def some(dtype: Any, *shape: int) -> Any:
    """A tensor of random codes."""
    codes = np.random.default_rng(SEED).integers(0, 256, (*shape, dtype.itemsize), dtype=np.uint8)
    return torch.from_numpy(codes.view(f"i{dtype.itemsize}").reshape(shape)).view(dtype)


def codes_of(x: Any) -> Any:
    return x.view(getattr(torch, f"int{8 * x.element_size()}")).numpy()


def as_pypto(x: Any) -> pypto.Tensor:
    dtype = torch_op.data_type_of(x.dtype)
    assert dtype.format is not None
    return pypto.Tensor(dtype=dtype, data=codes_of(x).view(dtype.format.dtype))


def quietly(*arguments: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cast(*arguments)


# --- Bits ----------------------------------------------------------------------------------------


def test_there_are_the_pairs_that_torch_can_hold() -> None:
    four_bits = sum(DataType.DT_INT4.format in pair for pair in MATRIX[A2_A3])
    assert len(PAIRS) == len(MATRIX[A2_A3]) - four_bits == 23


@every_pair
@pytest.mark.parametrize("satmode", pypto.SaturationMode, ids=lambda mode: mode.name)
@pytest.mark.filterwarnings("ignore")
def test_every_pair_and_mode_as_pypto_has_it(
    src: Any, dst: Any, satmode: pypto.SaturationMode
) -> None:
    x = some(src, 6, 7, 64)
    for mode in pypto.CastMode:
        to = torch_op.data_type_of(dst)
        with pypto.options(vec_tile_shapes=(2, 3, 64)):
            expected = pypto.cast(as_pypto(x), to, mode, satmode).numpy()
        result = cast(x, int(to), int(mode), int(satmode), [2, 3, 64])
        assert (result.dtype, result.shape) == (dst, x.shape)
        np.testing.assert_array_equal(codes_of(result), expected.view(f"i{expected.itemsize}"))


@pytest.mark.parametrize("mode", [pypto.CAST_NONE, pypto.CAST_FLOOR], ids=lambda mode: mode.name)
def test_the_wrapper_takes_the_enums(mode: pypto.CastMode) -> None:
    x = torch.linspace(-300, 300, 64).reshape(2, 32)
    for satmode in pypto.SaturationMode:
        wanted = cast(x, int(pypto.DT_INT16), int(mode), int(satmode), [2, 32])
        found = torch_op.cast_torch(x, pypto.DT_INT16, mode, satmode, tile_shape=(2, 32))
        assert torch.equal(found, wanted)
    with pypto.options(strict=True):
        assert torch.equal(
            torch_op.cast_torch(x, pypto.DT_BF16, tile_shape=[2, 32]), x.to(torch.bfloat16)
        )


def test_the_wrapper_is_compiled_without_a_break() -> None:
    def function(x: Any) -> Any:
        return torch_op.cast_torch(x, pypto.DT_BF16, pypto.CAST_RINT, tile_shape=[8, 64]) + 1

    x = torch.randn(8, 64)
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x), function(x))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("DT_BF16",), "dtype must be a pypto.DataType such as pypto.DT_FP16, not 'DT_BF16' (str)"),
        ((8,), "dtype must be a pypto.DataType such as pypto.DT_FP16, not 8 (int)"),
        ((pypto.DT_BF16, "RINT"), "mode must be a pypto.CastMode (CAST_NONE, "),
        ((pypto.DT_BF16, pypto.CAST_RINT, 0), "satmode must be a pypto.SaturationMode (ON, OFF)"),
    ],
    ids=["name", "number", "mode", "satmode"],
)
def test_the_wrapper_takes_nothing_but_the_enums(arguments: Any, text: str) -> None:
    kind, found = raised(lambda: torch_op.cast_torch(torch.zeros(32), *arguments))
    assert kind is TypeError
    assert found.startswith(text)


def test_the_op_says_what_it_takes() -> None:
    kind, text = raised(lambda: cast(torch.zeros(32), "DT_BF16"))
    assert kind is RuntimeError
    assert f"Declaration: pypto_cast::cast{torch_op.SCHEMA}" in text


def test_the_options_of_the_context_hold() -> None:
    x = torch.tensor([70000.0, float("nan")])
    with pypto.options(inf_nan_mode=False):
        result = cast(x, int(pypto.DT_FP16), RINT, ON, [16])
    assert result.tolist() == [65504.0, 0.0]


def test_the_tile_shape_of_the_context_does_not_and_stays() -> None:
    with pypto.options(vec_tile_shapes=(3, 3, 3)):
        assert cast(torch.ones(32), int(pypto.DT_FP16), RINT, ON, [32]).shape == (32,)
        assert pypto.get_vec_tile_shapes() == [3, 3, 3]


@pytest.mark.parametrize("dtype", TORCH_DTYPES, ids=str)
def test_the_dtype_it_has_already_gives_a_copy(dtype: Any) -> None:
    """An op may not return its input."""
    x = some(dtype, 4, 32).t()
    result = cast(x, int(torch_op.data_type_of(dtype)), 0, ON, [32, 4])
    assert result.data_ptr() != x.data_ptr()
    assert result.is_contiguous()
    np.testing.assert_array_equal(codes_of(result), codes_of(x))


# --- Memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TORCH_DTYPES, ids=str)
def test_the_input_shares_memory(dtype: Any) -> None:
    x = some(dtype, 4, 32)
    for view in (x, x.t(), x[1:, ::3], x[0, :1].expand(5)):
        assert np.shares_memory(torch_op._tensor(view).numpy(), codes_of(x))


STRIDED = {
    "transposed": lambda x: x.t(),
    "sliced": lambda x: x[3::2, 5:70],
    "expanded": lambda x: x[:, :1].expand(48, 20),
    "offset": lambda x: x[7],
    "channels last": lambda x: x.reshape(2, 3, 8, 96).to(memory_format=torch.channels_last),
}


@pytest.mark.parametrize("name", STRIDED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.filterwarnings("ignore")
def test_strided_inputs(name: str, dtype: Any) -> None:
    to = torch.int32
    view = STRIDED[name](some(dtype, 48, 96))
    before = codes_of(view).copy()
    numbers = (int(torch_op.data_type_of(to)), RINT, ON, [16] * view.dim())
    result = cast(view, *numbers)
    assert torch.equal(result, cast(view.contiguous(), *numbers))
    assert result.is_contiguous()
    np.testing.assert_array_equal(codes_of(view), before)


# --- torch's tools -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "x",
    [some(torch.float32, 8, 64), some(torch.bfloat16, 8, 64), some(torch.float32, 64, 8).t()],
    ids=["float32", "bfloat16", "strided"],
)
def test_opcheck(x: Any) -> None:
    finite = torch.nan_to_num(x)
    checks = torch.library.opcheck(cast.default, (finite, int(pypto.DT_INT32), RINT, ON, [8, 64]))
    assert set(checks.values()) == {"SUCCESS"}


def test_compiled_without_a_break() -> None:
    def function(x: Any) -> Any:
        return cast(x * 2, int(pypto.DT_BF16), RINT, ON, [8, 64]) + 1

    x = torch.randn(8, 64)
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x), function(x))
    assert compiled(x).dtype == torch.bfloat16


def test_compiled_with_dimensions_that_vary() -> None:
    seen = 0

    def backend(module: Any, inputs: Any) -> Any:
        nonlocal seen
        seen += 1
        return module.forward

    compiled = torch.compile(
        lambda x: cast(x, int(pypto.DT_FP16), RINT, ON, [16, 64]),
        fullgraph=True,
        dynamic=True,
        backend=backend,
    )
    for rows in (2, 3, 70):
        assert compiled(torch.ones(rows, 128)).shape == (rows, 128)
    assert seen == 1


@every_pair
def test_meta_tensors_know_shape_and_dtype(src: Any, dst: Any) -> None:
    x = torch.empty(3, 5, dtype=src, device="meta")
    number = int(torch_op.data_type_of(dst))
    result = cast(x, number, 0, ON, [1, 1])
    assert (result.dtype, result.shape, result.device.type) == (dst, (3, 5), "meta")


def test_no_gradient_is_made_up() -> None:
    x = torch.ones(32, requires_grad=True)
    result = cast(x, int(pypto.DT_FP16), RINT, ON, [32])
    with pytest.raises(RuntimeError, match="is not differentiable: rounding has no useful"):
        result.sum().backward()
    with torch.no_grad():
        assert not cast(x, int(pypto.DT_FP16), RINT, ON, [32]).requires_grad


# --- What it refuses -----------------------------------------------------------------------------


def raised(call: Any) -> tuple[type[BaseException], str]:
    with pytest.raises((TypeError, ValueError, RuntimeError), match=r".") as error:
        call()
    return error.type, str(error.value)


REFUSED = {
    "pair": (torch.zeros(2, 32, dtype=torch.int8), pypto.DT_BF16, (2, 32)),
    "no source": (torch.zeros(2, 32, dtype=torch.bool), pypto.DT_FP16, (2, 32)),
    "tile of another rank": (torch.zeros(2, 32), pypto.DT_FP16, (32,)),
    "tile beyond UB": (torch.zeros(300, 300), pypto.DT_FP16, (300, 300)),
    "no dimension": (torch.tensor(1.0), pypto.DT_FP16, (1,)),
    "five dimensions": (torch.zeros(1, 1, 1, 1, 16), pypto.DT_FP16, (1, 1, 1, 1)),
    "four bits, odd": (torch.zeros(2, 3, dtype=torch.float16), pypto.DT_INT4, (2, 2)),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.filterwarnings("ignore")
def test_it_refuses_in_the_words_of_pypto(name: str, device: str) -> None:
    """A declared tensor is the meta tensor of pypto."""
    x, dtype, tile = REFUSED[name]
    declared = pypto.Tensor(list(x.shape), torch_op.data_type_of(x.dtype))
    with pypto.options(vec_tile_shapes=tile):
        expected = raised(lambda: pypto.cast(declared, dtype))
    if device == "cpu" and x.dim() == 0:
        expected = raised(lambda: as_pypto(x))
    assert raised(lambda: cast(x.to(device), int(dtype), 0, ON, list(tile))) == expected


def test_an_empty_tensor() -> None:
    assert raised(lambda: cast(torch.zeros(0, 3), 6, 0, ON, [1, 1])) == (
        pypto.ShapeError,
        "an operation takes no empty tensor; shape [0, 3] has 0 elements",
    )


@pytest.mark.parametrize("tile", [[0], [-8], [1] * 6], ids=str)
def test_a_tile_that_is_none(tile: list[int]) -> None:
    expected = pypto.TileShapeError, f"a tile shape is 1 to 5 positive ints; got {tile}"
    assert raised(lambda: cast(torch.zeros(32), 6, 0, ON, tile)) == expected


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((25, 0, 0), "dtype must be a pypto.DataType such as pypto.DT_FP16, not 25 (int)"),
        ((6, 7, 0), "mode must be a pypto.CastMode (CAST_NONE, "),
        ((6, 0, 2), "satmode must be a pypto.SaturationMode (ON, OFF), not 2"),
    ],
    ids=["dtype", "mode", "satmode"],
)
def test_numbers_that_name_nothing(numbers: tuple[int, int, int], text: str) -> None:
    kind, found = raised(lambda: cast(torch.zeros(32), *numbers, [32]))
    assert kind is TypeError
    assert found.startswith(text)


def test_a_torch_tensor_is_no_tensor_of_pypto() -> None:
    kind, text = raised(lambda: pypto.cast(torch.zeros(32), pypto.DT_FP16))
    assert kind is TypeError
    assert text.startswith(
        "cast takes a pypto Tensor, not torch.Tensor; make one with pypto.from_t"
    )


def test_a_torch_dtype_without_a_pypto_dtype() -> None:
    kind, text = raised(lambda: cast(torch.zeros(32, dtype=torch.complex64), 6, 0, ON, [32]))
    assert kind is TypeError
    assert text.startswith("torch.complex64 has no pypto dtype; these have: torch.int8, torch.int")


def test_float64_is_cast_to_nothing() -> None:
    kind, text = raised(lambda: cast(torch.zeros(32, dtype=torch.float64), 6, 0, ON, [32]))
    assert kind is pypto.UnsupportedCastError
    assert text.startswith("A2/A3 does not cast FP64 -> FP16: FP64 converts to nothing")


def test_four_bit_results_have_no_torch_tensor() -> None:
    kind, text = raised(
        lambda: quietly(torch.zeros(32, dtype=torch.float16), int(pypto.DT_INT4), 0, ON, [32])
    )
    assert kind is TypeError
    assert text.startswith("no torch tensor holds DT_INT4; these are held: DT_INT8, ")


def test_a_device_without_a_kernel() -> None:
    class Elsewhere:
        device = torch.device("cuda:0")

    kind, text = raised(lambda: torch_op._cast(Elsewhere(), 6, 0, ON, [32]))
    assert kind is RuntimeError
    assert text.endswith("x is on cuda:0")


def test_warnings_are_those_of_pypto() -> None:
    with pytest.warns(pypto.CastModeWarning, match="FP32 -> INT32 has no mode CAST_ODD"):
        cast(torch.zeros(64), int(pypto.DT_INT32), int(pypto.CAST_ODD), ON, [64])
    with pytest.warns(pypto.TileShapeWarning, match="no tile shape is set"):
        cast(torch.zeros(64), int(pypto.DT_INT32), 0, ON, [])


def test_under_strict_options_a_mode_that_is_lacking_is_an_error() -> None:
    with pypto.options(strict=True), pytest.raises(pypto.CastModeError, match="no mode CAST_ODD"):
        cast(torch.zeros(64), int(pypto.DT_INT32), int(pypto.CAST_ODD), ON, [64])


# --- FP8 of the 950 -------------------------------------------------------------------------------

FP8 = [
    (torch.float8_e4m3fn, ml_dtypes.float8_e4m3fn, pypto.DT_FP8E4M3),
    (torch.float8_e5m2, ml_dtypes.float8_e5m2, pypto.DT_FP8E5M2),
]
every_fp8 = pytest.mark.parametrize(("holder", "outside", "dtype"), FP8, ids=["e4m3", "e5m2"])


@every_fp8
@pytest.mark.parametrize("compiled", [False, True])
def test_fp8_of_the_950(holder: Any, outside: Any, dtype: DataType, compiled: bool) -> None:
    """Of FP32 near every number of the format what ml_dtypes gives, and back what it holds."""

    def there(x: Any) -> Any:
        return torch_op.cast_torch(x, dtype, tile_shape=[1, 256])

    call = torch.compile(there, fullgraph=True, backend="eager") if compiled else there
    every = np.arange(256, dtype=np.uint8)
    with np.errstate(all="ignore"):
        held = every.view(outside).astype(np.float32)
        ties = (held[:-1] + held[1:]) / 2
        x = np.concatenate([held, *(np.nextafter(ties, end) for end in (-np.inf, 0, np.inf)), ties])
        x = np.append(x, np.float32([np.inf, -np.inf, np.nan, 1e30, -1e-30]))
        wanted = x.astype(outside)
        is_nan = np.isnan(wanted.astype(np.float32))
    x = np.resize(x, (8, 256))
    wanted, is_nan = np.resize(wanted, x.shape), np.resize(is_nan, x.shape)
    with pypto.options(chip="Ascend950PR"):
        found = call(torch.from_numpy(x))
        back = torch_op.cast_torch(found, pypto.DT_FP32, tile_shape=[1, 256])
        meta = there(torch.from_numpy(x).to("meta"))
    assert (found.dtype, meta.dtype, meta.shape) == (holder, holder, found.shape)
    codes = found.view(torch.uint8).numpy()
    np.testing.assert_array_equal(codes[~is_nan], wanted.view(np.uint8)[~is_nan])
    np.testing.assert_array_equal(back.numpy(), found.float().numpy())
    assert np.isnan(back.numpy()[is_nan]).all()


@pytest.mark.parametrize(
    ("src", "dtype", "text"),
    [
        (torch.float32, pypto.DT_HF8, "no torch tensor holds DT_HF8"),
        (torch.bfloat16, pypto.DT_FP4_E2M1X2, "no torch tensor holds DT_FP4_E2M1X2"),
        (torch.bfloat16, pypto.DT_FP4_E1M2X2, "no torch tensor holds DT_FP4_E1M2X2"),
        (torch.bfloat16, pypto.DT_FP8E8M0, "950 does not cast BF16 -> E8M0"),
        (torch.bfloat16, pypto.DT_FP8E4M3, "BF16 -> FP32 -> E4M3FN CAST_RINT rounds once"),
        (torch.float8_e8m0fnu, pypto.DT_FP32, "E8M0 converts to nothing"),
        (torch.float4_e2m1fn_x2, pypto.DT_BF16, "float4_e2m1fn_x2 has no pypto dtype"),
        (torch.uint8, pypto.DT_HF8, "950 does not cast UINT8 -> HF8"),
    ],
    ids=str,
)
def test_small_floats_that_the_op_refuses(src: Any, dtype: DataType, text: str) -> None:
    x = torch.zeros((1, 256), dtype=torch.uint8)
    x = x.view(src) if src.itemsize == 1 else x.to(src)
    with pypto.options(chip="Ascend950PR"):
        kind, found = raised(lambda: torch_op.cast_torch(x, dtype, tile_shape=[1, 256]))
    assert kind in (TypeError, pypto.UnsupportedCastError)
    assert text in found


# --- Importing -----------------------------------------------------------------------------------


def run(code: str, tmp_path: Path) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_op_is_there_once_the_module_is_imported(tmp_path: Path) -> None:
    code = (
        "import json, sys\nimport pypto_cast\nbefore = 'torch' in sys.modules\n"
        "import pypto_cast.torch_op, torch\n"
        "y = torch.ops.pypto_cast.cast(torch.tensor([2.0, 2049.0]), 6, 1, 0, [16])\n"
        "print(json.dumps([before, y.tolist(), str(torch.ops.pypto_cast.cast.default._schema)]))"
    )
    schema = f"pypto_cast::cast{torch_op.SCHEMA}"
    assert run(code, tmp_path) == [False, [2.0, 2048.0], schema]


def test_without_torch_the_module_still_imports(tmp_path: Path) -> None:
    code = (
        "import importlib.util, json\nfind = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *a: None if name == 'torch' else find(name, *a)\n"
        "import pypto_cast.torch_op, sys\nprint(json.dumps('torch' in sys.modules))"
    )
    assert run(code, tmp_path) is False
