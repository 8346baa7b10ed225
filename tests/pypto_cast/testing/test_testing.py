"""pypto_cast.testing: a comparison that leads to the tile, values, strategies, the plugin."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from support.environment.sources import ROOT

import pypto_cast as pypto
from pypto_cast.pytest_plugin import PyptoSim
from pypto_cast.testing import (
    BitsDifferError,
    assert_bits_equal,
    boundary_values,
    differences,
    special_values,
    strategies,
)

Array = npt.NDArray[Any]


@pypto.jit
def halve(x: pypto.Tensor[[], pypto.DT_FP32], out: pypto.Tensor[[], pypto.DT_FP16]) -> None:
    pypto.set_vec_tile_shapes(8, 16)
    for row in pypto.loop(0, x.shape[0], 16, name="ROWS", idx_name="row"):
        out[row : row + 16, :] = pypto.cast(x[row : row + 16, :], pypto.DT_FP16)


def message(actual: Any, expected: Any, **how: Any) -> str:
    with pytest.raises(BitsDifferError) as caught:
        assert_bits_equal(actual, expected, **how)
    assert isinstance(caught.value, AssertionError)
    return str(caught.value)


# --- assert_bits_equal ---------------------------------------------------------------------------


def test_equal_bits_pass() -> None:
    x = special_values(pypto.DT_FP32)
    assert_bits_equal(x, x.copy())
    assert_bits_equal(pypto.from_numpy(x), x[::-1][::-1])
    assert_bits_equal(x, x.astype(">f4"))
    assert differences(x, x) == ()


def test_the_message_shows_value_code_fields_index_tile_and_core() -> None:
    x = np.ones((40, 32), np.float32)
    out, wanted = np.zeros(x.shape, np.float16), np.ones(x.shape, np.float16)
    halve(x, out)
    wanted[25, 20] = np.nextafter(np.float16(1), np.float16(2))
    text = message(out, wanted)
    assert text.splitlines() == [
        "1 of 1280 elements differ (one ulp: 1); the first 1:",
        "  [25, 20]: one ulp",
        "    actual   1.0 = 0x3c00 (0 01111 0000000000)",
        "    expected 1.001 = 0x3c01 (0 01111 0000000001)",
        "    tile 3 at [8, 16], [8, 16] elements, core 3, cast FP32 -> FP16 at test_testing.py:"
        f"{halve.__wrapped__.__code__.co_firstlineno + 4} in halve, ROWS row=16",
    ]
    (found,) = differences(out, wanted)
    assert found.tile is not None
    assert (found.index, found.tile.index, found.core) == ((25, 20), 3, 3)
    assert found.record is not None
    assert found.record.program.plan.shape == (16, 32)


def test_kinds_are_counted() -> None:
    actual = np.float32([1, 0.0, np.nan, 1, 5, 1, np.inf, -1e-45])
    wanted = np.float32([1, -0.0, 1, np.nan, 6, 2, 3.4028235e38, 0.0])
    text = message(actual, wanted)
    counts = "(one ulp: 2, sign of zero: 1, NaN: 2, other: 2)"
    assert text.startswith(f"7 of 8 elements differ {counts}; the first 5:")
    assert text.count("expected") == 5
    assert message(np.int8([3, -128]), np.int8([4, 127])).startswith(
        "2 of 2 elements differ (one ulp: 1, other: 1)"
    )
    assert "actual   -128 = 0x80\n" in message(np.int8([-128]), np.int8([4]))
    assert "-8 = 0x08\n" in message(np.array([-8], ml_dtypes.int4), np.array([4], ml_dtypes.int4))


def test_nans_as_bits_or_as_a_class() -> None:
    quiet = np.array([0x7FC00000, 0x3F800000], np.uint32).view(np.float32)
    ours = np.array([0x7FFFFFFF, 0x3F800000], np.uint32).view(np.float32)
    assert "(NaN: 1)" in message(ours, quiet)
    assert_bits_equal(ours, quiet, nans="class")
    assert "(NaN: 1)" in message(ours, np.ones(2, np.float32), nans="class")
    with pytest.raises(ValueError, match="nans must be one of"):
        assert_bits_equal(ours, quiet, nans="equal")


@pytest.mark.parametrize(
    ("actual", "expected", "text"),
    [
        (np.zeros(2, "f4"), np.zeros(2, "f2"), "actual has dtype DT_FP32, expected has DT_FP16"),
        (np.zeros((2, 1), "f4"), np.zeros(2, "f4"), r"actual has shape [2, 1], expected has [2]"),
    ],
)
def test_other_dtypes_and_shapes(actual: Array, expected: Array, text: str) -> None:
    assert message(actual, expected) == text


def test_no_tile_is_named_where_none_is_known() -> None:
    wrong = np.zeros((40, 32), np.float16)
    assert "tile" not in message(wrong, np.ones_like(wrong))
    with pytest.raises(TypeError, match="actual must be"):
        assert_bits_equal([1.0], wrong)


@pytest.mark.parametrize("offset", [(0, 0), (1, 0), (0, 16), (3, 32), (5, 40)], ids=str)
@pytest.mark.parametrize("extent", [(1, 1), (2, 8), (3, 24)], ids=str)
def test_elements_of_a_slice_are_of_the_tiles_they_came_from(
    offset: tuple[int, int], extent: tuple[int, int]
) -> None:
    """By arithmetic on their place in the whole result, through one slice and through two."""
    shape, tile = (8, 64), (2, 16)
    with pypto.options(vec_tile_shapes=tile):
        whole = pypto.cast(pypto.from_numpy(np.zeros(shape, np.float32)), pypto.DT_FP16)
    (top, left), (rows, columns) = offset, extent
    half = top // 2, left // 2
    first = whole[half[0] :, half[1] :]
    twice = first[top - half[0] :, left - half[1] :][:rows, :columns]
    for part in (whole[top : top + rows, left : left + columns], twice):
        (patch,) = part.patches()
        assert patch.extent == extent
        for index in np.ndindex(extent):
            found = patch.tile_at(index)
            assert found is not None
            at = top + index[0], left + index[1]
            assert found[0].offset == tuple(a // t * t for a, t in zip(at, tile, strict=True))
        for outside in (extent, (rows, 0), (0, columns), (-1, 0), (0, -1)):
            assert patch.tile_at(outside) is None


def test_a_slice_knows_only_the_casts_that_wrote_it() -> None:
    """Three casts side by side in one output; a slice over two of them, one within the third."""
    seen: dict[str, list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]] = {}

    @pypto.jit
    def kernel(x: pypto.Tensor[[], pypto.DT_FP32], out: pypto.Tensor[[], pypto.DT_FP16]) -> None:
        pypto.set_vec_tile_shapes(1, 16)
        for index in pypto.loop(3):
            columns = slice(index * 16, index * 16 + 16)
            out[:, columns] = pypto.cast(x[:, columns], pypto.DT_FP16)
        parts = {"two": out[1:3, 8:24], "one": out[3:4, 36:40], "edge": out[0:1, 16:32]}
        for name, part in parts.items():
            seen[name] = [(p.offset, p.extent, p.start) for p in part.patches()]

    kernel(np.zeros((4, 48), np.float32), np.zeros((4, 48), np.float16))
    assert seen == {
        "two": [((0, 0), (2, 8), (1, 8)), ((0, 8), (2, 8), (1, 0))],
        "one": [((0, 0), (1, 4), (3, 4))],
        "edge": [((0, 0), (1, 16), (0, 0))],
    }


@pytest.mark.slow
def test_what_lies_at_the_same_place_later_has_no_tile() -> None:
    x = np.ones((16, 32), np.float32)
    wanted = np.zeros(x.shape, np.float16)
    memory = bytearray(x.size * 2)
    first = np.frombuffer(memory, np.float16).reshape(x.shape)
    halve(x, first)
    assert "tile 0" in message(first, wanted)
    del first
    gc.collect()
    second = np.frombuffer(memory, np.float16).reshape(x.shape)
    assert "tile" not in message(second, wanted)


def test_results_of_cast_and_torch_tensors_know_their_tiles(pypto_sim: PyptoSim) -> None:
    pypto.set_vec_tile_shapes(16)
    y = pypto.cast(pypto.from_numpy(np.ones(64, np.float32)), pypto.DT_FP16)
    assert "tile 2 at [32], [16] elements, core 2, cast FP32" in message(
        y, np.float16([1] * 40 + [2] * 24)
    ).replace("tile 2 at [32], [16]", "tile 2 at [32], [16]")
    torch = pytest.importorskip("torch")
    out = torch.zeros(40, 32, dtype=torch.float16)
    halve(torch.ones(40, 32), out)
    text = message(out, torch.zeros(40, 32, dtype=torch.float16))
    assert "tile 0 at [0, 0], [8, 16] elements, core 0" in text


# --- Values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype",
    [d for d in pypto.DataType if d.format is not None and d is not pypto.DT_DOUBLE],
    ids=str,
)
def test_special_values_are_of_the_dtype_and_each_once(dtype: pypto.DataType) -> None:
    values = special_values(dtype)
    assert dtype.format is not None
    assert values.dtype == dtype.format.dtype
    codes = values.view(f"u{values.dtype.itemsize}")
    assert len(set(codes.tolist())) == values.size >= 2


def test_special_values_hold_what_breaks_casts() -> None:
    fp32 = special_values(pypto.DT_FP32)
    codes = set(fp32.view(np.uint32).tolist())
    for value in (0.0, -0.0, 1.5, 2.5, -0.5, 1e-45, 3.4028235e38, np.inf, -np.inf, 65520, 32767.5):
        assert int(np.float32(value).view(np.uint32)) in codes
    assert np.isnan(fp32).any()
    int8 = special_values(pypto.DT_INT8).tolist()
    assert {-128, -127, -1, 0, 1, 127} <= set(int8)
    assert special_values(pypto.DT_INT64).tolist()[0] == -(2**63)
    assert special_values(pypto.DT_UINT64).tolist()[-1] == 2**64 - 1
    with pytest.raises(TypeError, match="holds no data here"):
        special_values(pypto.DT_HF4)


def test_boundary_values() -> None:
    values = boundary_values(pypto.DT_FP32, pypto.DT_FP16)
    assert values.dtype == np.float32
    codes = set(values.view(np.uint32).tolist())
    for value in (65520.0, np.nextafter(np.float32(65520), np.float32(0)), 2.0**-25):
        assert int(np.float32(value).view(np.uint32)) in codes
    assert boundary_values(pypto.DT_BF16, pypto.DT_INT32).size == 65536
    with pytest.raises(pypto.UnsupportedCastError, match="BF16 -> INT8"):
        boundary_values(pypto.DT_BF16, pypto.DT_INT8)


# --- Strategies ----------------------------------------------------------------------------------


@hypothesis_settings(max_examples=40)
@given(strategies.tiled(pypto.DT_FP32, pypto.DT_BF16))
@pytest.mark.filterwarnings("ignore::pypto_cast.TileShapeWarning")
def test_drawn_tiles_fit_and_change_no_bit(case: strategies.Tiled) -> None:
    x = pypto.from_numpy(case.array)
    with pypto.options(vec_tile_shapes=case.tile_shape):
        result = pypto.cast(x, pypto.DT_BF16)
    with pypto.options(vec_tile_shapes=[1] * x.dim):
        assert_bits_equal(result, pypto.cast(x, pypto.DT_BF16))


@pytest.mark.parametrize(
    ("src", "dst", "chip"),
    [
        ("FP16", "INT4", "Ascend910B3"),
        ("BF16", "FP4_E2M1X2", "Ascend950PR"),
        ("FP4_E1M2X2", "BF16", "Ascend950PR"),
        ("FP32", "HF8", "Ascend950PR"),
    ],
)
@pytest.mark.filterwarnings("ignore::pypto_cast.TileShapeWarning")
def test_drawn_tiles_of_narrow_elements(src: str, dst: str, chip: str) -> None:
    """Two elements that share a byte are of one axis and of one tile, whose lengths are even."""
    ends = pypto.DataType[f"DT_{src}"], pypto.DataType[f"DT_{dst}"]

    @hypothesis_settings(max_examples=15)
    @given(strategies.tiled(*ends))
    def run(case: strategies.Tiled) -> None:
        with pypto.options(chip=chip, vec_tile_shapes=case.tile_shape):
            result = pypto.cast(pypto.from_numpy(case.array), ends[1])
        assert result.shape == list(case.array.shape)

    with pypto.options(chip=chip):
        run()


@pytest.mark.parametrize("dtype", [pypto.DT_FP4_E2M1X2, pypto.DT_FP4_E1M2X2], ids=str)
def test_special_values_of_fp4_are_all(dtype: pypto.DataType) -> None:
    codes = special_values(dtype).view(np.uint8)
    assert sorted(codes.tolist()) == list(range(16))


@hypothesis_settings(max_examples=20)
@given(strategies.arrays(pypto.DT_FP16, strategies.shapes(min_dims=2, max_dims=3, max_side=5)))
def test_drawn_arrays_have_the_shape(array: Array) -> None:
    assert array.dtype == np.float16
    assert 2 <= array.ndim <= 3
    assert max(array.shape) <= 5


@hypothesis_settings(max_examples=5)
@given(strategies.arrays(pypto.DT_INT4, (4, 6)))
def test_drawn_int4(array: Array) -> None:
    assert array.shape == (4, 6)
    assert -8 <= int(array.astype(np.int8).min()) <= int(array.astype(np.int8).max()) <= 7


# --- The plugin ----------------------------------------------------------------------------------

FAILING = """\
import numpy as np
import pytest
import pypto_cast as pypto
from pypto_cast.testing import assert_bits_equal

@pypto.jit
def halve(x: pypto.Tensor, out: pypto.Tensor):
    pypto.set_vec_tile_shapes(16)
    out[:] = pypto.cast(x, pypto.DT_FP16)

def test_clean(pypto_sim):
    assert (pypto_sim.chip, pypto_sim.fidelity) == ("Ascend910B1", "fast")
    assert pypto.get_vec_tile_shapes() == []
    pypto.set_vec_tile_shapes(7)

@pytest.mark.pypto(fidelity="instructions", chip="Ascend910_9362")
def test_fails(pypto_sim):
    assert pypto_sim.fidelity == "instructions"
    assert pypto.get_vec_tile_shapes() == []
    x, out = np.ones(64, np.float32), np.zeros(64, np.float16)
    halve(x, out)
    x[40] = 2
    assert_bits_equal(out, x.astype(np.float16))

@pytest.mark.pypto(speed="fast")
def test_unknown(pypto_sim): ...
"""


def run_pytest(place: Path, *arguments: str) -> str:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "pypto_cast.pytest_plugin"),
            *("-p", "no:cacheprovider", "-q", *arguments),
        ],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("dtype", "changed", "text"),
    [
        (pypto.DT_HF8, 0x0A ^ 1, "actual   1.25 = 0x0a (0 0001 010)"),
        (pypto.DT_FP8E4M3, 0x3A ^ 1, "actual   1.25 = 0x3a (0 0111 010)"),
        (pypto.DT_FP8E5M2, 0x3D ^ 1, "actual   1.25 = 0x3d (0 01111 01)"),
    ],
)
def test_small_floats_that_differ_are_named_by_their_fields(
    dtype: pypto.DataType, changed: int, text: str
) -> None:
    x = pypto.tensor(None, pypto.DT_FP32, data=np.array([[1.25, np.nan]], np.float32))
    with pypto.options(chip="Ascend950PR", vec_tile_shapes=(1, 32)):
        found = pypto.cast(x, dtype)
    codes = found.numpy().view(np.uint8).copy()
    assert_bits_equal(found, codes.view(found.numpy().dtype), nans="class")
    codes[0, 0] = changed
    with pytest.raises(AssertionError, match="one ulp: 1") as caught:
        assert_bits_equal(found, codes.view(found.numpy().dtype))
    assert text in str(caught.value)
    assert "core 0, cast FP32 -> " in str(caught.value)
    codes[0] = [0x0A, 0x00]
    with pytest.raises(AssertionError, match="NaN"):
        assert_bits_equal(found, codes.view(found.numpy().dtype))


OF_950 = """
import pytest
from pypto_cast.options.context import current

@pytest.mark.pypto(
    chip="Ascend950PR", fp8_nan=True, int_saturation=True, cast_saturation=False,
    global_saturation=False, readings={"nan-e2m1": "max"},
)
def test_options(pypto_sim):
    assert current().fp8_nan and current().int_saturation
    assert not (current().cast_saturation or current().global_saturation)
    assert current().readings == (("nan-e2m1", "max"),)
"""


@pytest.mark.slow
def test_the_marker_has_the_options_of_the_950(tmp_path: Path) -> None:
    (tmp_path / "test_of_950.py").write_text(OF_950, encoding="utf-8")
    assert "1 passed" in run_pytest(tmp_path, "--strict-markers")


@pytest.mark.slow
def test_the_plugin_cleans_up_and_names_the_tile(tmp_path: Path) -> None:
    (tmp_path / "test_failing.py").write_text(FAILING, encoding="utf-8")
    text = run_pytest(tmp_path, "--pypto-chip", "Ascend910B1", "--strict-markers")
    assert "1 failed, 1 passed, 1 error" in text
    report = text[text.index("- pypto_cast -") :].splitlines()
    assert report[1] == "chip Ascend910_9362, fidelity instructions"
    assert report[2].startswith("tile 2 at [32], [16] elements, core 2, cast FP32 -> FP16 at test_")
    assert "marker pypto has cast_saturation, chip, copy_completion, engine" in text


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--pypto-chip", "Ascend1"), "ERROR: --pypto-chip: unknown chip 'Ascend1'; known: "),
        (("--pypto-fidelity", "slow"), "--pypto-fidelity: invalid choice: 'slow'"),
    ],
)
def test_an_unknown_option_ends_the_run_before_a_test(
    tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    (tmp_path / "test_failing.py").write_text(FAILING, encoding="utf-8")
    text = run_pytest(tmp_path, *arguments)
    assert says in text
    assert "failed" not in text
    assert "Traceback" not in text


@pytest.mark.pypto(fidelity="instructions", threads=2)
def test_the_fixture_follows_the_marker(pypto_sim: PyptoSim) -> None:
    assert pypto_sim.fidelity == "instructions"
    assert pypto_sim.options.threads == 2


# --- What a type checker sees ---------------------------------------------------------------------


def test_kinds_of_callables() -> None:
    """A type checker sees the types that the decorator keeps."""
    decorated: Callable[..., None] = halve
    assert isinstance(decorated, pypto.Kernel)
