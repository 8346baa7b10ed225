"""Results that can be, results that cannot, and shares of certain ones."""

from __future__ import annotations

import dataclasses
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from support.devices.certainties import DIV, between, exact, scattered
from support.environment.sources import ROOT
from support.numbers.codes import SEED, as_values

import pypto_cast as pypto
from pypto_cast.kernel.certainty import Certainty, OutputCertainty
from pypto_cast.testing import (
    ImpossibleError,
    UndecidedError,
    assert_certain,
    assert_possible,
    judge,
)


def message(actual: Any, bounds: Any) -> str:
    with pytest.raises(ImpossibleError) as caught:
        assert_possible(actual, bounds)
    assert isinstance(caught.value, AssertionError)
    return str(caught.value)


# --- assert_possible -----------------------------------------------------------------------------


def order(value: Any) -> tuple[float, float]:
    """Numbers in order, -0 before +0."""
    return float(value), math.copysign(1, float(value))


def can_be(value: Any, low: Any, high: Any, may_be_nan: bool) -> bool:
    """By Python's floats and integers, an element at a time."""
    if math.isnan(value):
        return may_be_nan or math.isnan(low)
    return not math.isnan(low) and order(low) <= order(value) <= order(high)


@pytest.mark.slow
@pytest.mark.parametrize(
    "fmt",
    [
        pytest.param(fmt, marks=[pytest.mark.exhaustive] * ((place - SEED) % 2))
        for place, fmt in enumerate(("FP16", "INT8", "BF16", "UINT8"))
    ],
)
@hypothesis_settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_every_element_is_judged_alone(fmt: str, data: st.DataObject) -> None:
    """Any codes, edges of the interval and their neighbours, against Python's own order."""
    bits = 16 if fmt.endswith("16") else 8
    codes = st.one_of(st.integers(0, 2**bits - 1), st.sampled_from([0, 1, 1 << (bits - 1)]))
    triples = data.draw(st.lists(st.tuples(codes, codes, st.booleans()), min_size=1, max_size=9))
    rows = []
    for first, second, nan in triples:
        ends = as_values(np.array([first, second]), fmt)
        low, high = sorted(ends, key=order)
        if math.isnan(low) or math.isnan(high):
            low = high = as_values(np.array([0x7FFF]), fmt)[0]
        near = data.draw(st.sampled_from([first, second, (first + 1) % 2**bits, second - 1, 7]))
        value = as_values(np.array([near % 2**bits]), fmt)[0]
        rows.append((value, low, high, nan and not fmt.endswith("T8")))
    value, low, high = (np.array(column) for column in list(zip(*rows, strict=True))[:3])
    nan = np.array([row[3] for row in rows])
    bounds = between(low, high, may_be_nan=nan)
    wrong = [(n,) for n, row in enumerate(rows) if not can_be(*row)]
    if not wrong:
        assert_possible(value, bounds)
        return
    with pytest.raises(ImpossibleError) as caught:
        assert_possible(value, bounds)
    assert [element.index for element in caught.value.impossible] == wrong[:5]
    assert f"{len(wrong)} of {len(rows)} elements cannot be" in str(caught.value)


def test_the_message_names_interval_cause_and_index() -> None:
    low = np.ones((3, 4), np.float16)
    high = low.copy()
    high[1, 2] = 1.002
    actual = low.copy()
    assert_possible(actual, between(low, high))
    actual[1, 2], actual[2, 0] = 1.003, np.nan
    with pytest.raises(ImpossibleError) as caught:
        assert_possible(actual, between(low, high))
    assert str(caught.value).splitlines() == [
        "out: 2 of 12 elements cannot be; the first 2:",
        "  [1, 2]: cannot be",
        "    actual   1.003 = 0x3c03 (0 01111 0000000011)",
        "    possible from 1.0 to 1.002 = 0x3c00 to 0x3c02, left open by div at norm.py:14",
        "  [2, 0]: cannot be",
        "    actual   nan = 0x7e00 (0 11111 1000000000)",
        "    possible 1.0 = 0x3c00",
    ]
    first, second = caught.value.impossible
    assert (first.index, first.actual_code, first.cause) == ((1, 2), 0x3C03, DIV)
    assert (second.cause, second.tile, second.place) == (None, None, "")


def test_nan_only_where_nan_may_be() -> None:
    low = np.float32([1, 1, np.nan, 1])
    nan = np.array([False, True, False, True])
    bounds = between(low, low, may_be_nan=nan)
    other = np.array([0x3F800000, 0xFFC00001, 0x7F800001, 0x3F800000], np.uint32).view(np.float32)
    assert_possible(other, bounds)
    assert "[0]: cannot be" in message(np.float32([np.nan, 1, np.nan, 1]), bounds)
    assert "possible 1.0 or NaN" in message(np.float32([1, 2, np.nan, 1]), bounds)
    assert "possible NaN" in message(np.float32([1, 1, 0, 1]), bounds)


def test_the_zeros_are_two_results() -> None:
    plus = np.float32([0.0])
    assert_possible(plus, exact("out", plus))
    assert "actual   -0.0 = 0x80000000" in message(-plus, exact("out", plus))
    assert_possible(-plus, between(-plus, plus))


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, np.float32, np.int8])
def test_tensors_of_torch_and_of_pypto(dtype: Any) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
    values = np.array([[1, 2], [3, 4]], dtype)
    bounds = exact("out", values)
    tensor = pypto.from_numpy(values.copy())
    assert_possible(tensor, bounds)
    names = {ml_dtypes.bfloat16: "bfloat16", np.float16: "float16", np.float32: "float32"}
    theirs = torch.tensor([[1, 2], [3, 4]], dtype=getattr(torch, names.get(dtype, "int8")))
    assert_possible(theirs, bounds)
    assert_possible(theirs.t().contiguous().t(), bounds)
    assert "[1, 0]: cannot be" in message(theirs * (theirs != 3), bounds)


def test_results_of_a_device_are_copied_to_the_host() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
    from support.devices.npu_device import on_npu

    bounds = exact("out", np.float16([1, 2]))
    theirs = on_npu(torch.tensor([1, 2], dtype=torch.float16))
    assert theirs.device.type == "npu"
    assert_possible(theirs, bounds)
    assert "[1]: cannot be" in message(on_npu(torch.tensor([1, 3], dtype=torch.float16)), bounds)


def test_big_endian_and_strided_arrays() -> None:
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert_possible(values.astype(">f4"), exact("out", values))
    assert_possible(np.asfortranarray(values), exact("out", values))
    assert "[2, 3]" in message((values - (values == 11)).astype(">f4"), exact("out", values))


def test_tile_and_core_are_named_where_they_are_known() -> None:
    @pypto.jit
    def halve(x: pypto.Tensor[[], pypto.DT_FP32], out: pypto.Tensor[[], pypto.DT_FP16]) -> None:
        pypto.set_vec_tile_shapes(8, 16)
        out[:] = pypto.cast(x, pypto.DT_FP16)

    x = np.ones((40, 32), np.float32)
    out = np.zeros(x.shape, np.float16)
    halve(x, out)
    wanted = np.ones_like(out)
    wanted[25, 20] = 2
    place = "tile 7 at [24, 16], [8, 16] elements, core 7, cast FP32 -> FP16 at test_possible.py:"
    assert place in message(out, exact("out", wanted))  # written here
    assert place in message(wanted, exact("out", out))  # compared with what was written here
    assert "tile" not in message(wanted, exact("out", out.copy()))


def test_bounds_of_a_kernel_name_tile_and_core() -> None:
    @pypto.jit
    def thirds(x: pypto.Tensor[[], pypto.DT_FP32], out: pypto.Tensor[[], pypto.DT_FP16]) -> None:
        pypto.set_vec_tile_shapes(8, 16)
        out[:] = pypto.cast(x / 3, pypto.DT_FP16)

    bounds = thirds.certainty(np.ones((40, 32), np.float32), np.zeros((40, 32), np.float16))
    wanted = bounds.values["out"].copy()
    assert_possible(wanted, bounds)
    wanted[25, 20] = 2
    text = message(wanted, bounds)
    assert "actual   2.0 = 0x4000" in text
    assert "possible 0.3333 = 0x3555" in text
    assert "tile 7 at [24, 16], [8, 16] elements, core 7, cast FP32 -> FP16 at test_poss" in text


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_an_operation_names_tile_and_core_as_a_cast_does(dtype: Any) -> None:
    data = pypto.DT_FP32 if dtype is np.float32 else pypto.DT_BF16

    @pypto.jit
    def thirds(
        x: pypto.Tensor[[], data], out: pypto.Tensor[[], data], total: pypto.Tensor[[], data]
    ) -> None:
        pypto.set_vec_tile_shapes(8, 16)
        for half in pypto.loop(2):
            part = x[20 * half : 20 * half + 20] / 3
            out[20 * half : 20 * half + 20] = part
            total[20 * half : 20 * half + 20] = pypto.sum(part, -1, True)

    x = np.ones((40, 32), dtype)
    bounds = thirds.certainty(x, np.zeros_like(x), np.zeros((40, 1), dtype))
    wanted, total = bounds.values["out"].copy(), bounds.values["total"].copy()
    wanted[30, 20], total[38, 0] = 2, 3
    text = message([wanted, total], bounds)
    assert "tile 3 at [8, 16], [8, 16] elements, core 3, div at test_possible.py:" in text
    assert "tile 2 at [16, 0], [4, 1] elements, core 2, sum at test_possible.py:" in text
    assert text.count(" in thirds, loop idx=1") == 2


def test_elements_without_a_tile_are_counted_by_the_operation_that_leaves_them_open() -> None:
    """A matmul's output has no vector tiles; a copy of an argument is certain."""

    @pypto.frontend.jit
    def kernel(
        a: pypto.Tensor[[16, 32], pypto.DT_FP16],
        b: pypto.Tensor[[32, 16], pypto.DT_FP16],
        c: pypto.Tensor[[16, 16], pypto.DT_FP32],
        d: pypto.Tensor[[8, 32], pypto.DT_FP16],
    ) -> None:
        pypto.set_cube_tile_shapes([16, 16], [16, 16], [16, 16])
        pypto.set_vec_tile_shapes(16, 16)
        c[:] = pypto.matmul(a, b, pypto.DT_FP32)
        d[:] = pypto.view(a, [8, 32], [0, 0])

    a, b = (np.linspace(-1, 2, 512).astype(np.float16).reshape(x) for x in ((16, 32), (32, 16)))
    c, d = np.zeros((16, 16), np.float32), np.zeros((8, 32), np.float16)
    bounds = kernel.certainty(a, b, c, d)
    kernel(a, b, c, d)
    c[3, 4] += 1
    c[9, 9:11] = 500
    d[0, 0] = 7
    product, copy = judge({"c": c, "d": d}, bounds=bounds).outputs
    ((tile, core, written_by, count),) = map(dataclasses.astuple, product.outside)
    assert (tile, core, count) == (None, None, 3)
    assert re.fullmatch(r"matmul at .*test_possible.py:\d+", written_by)
    assert [dataclasses.astuple(each) for each in copy.outside] == [(None, None, "", 1)]


def test_other_dtypes_and_shapes_are_named() -> None:
    bounds = exact("y", np.zeros((2, 3), np.float16))
    assert message(np.zeros((2, 3), np.float32), bounds) == (
        "y: actual has dtype DT_FP32, bounds have DT_FP16"
    )
    assert message(np.zeros((3, 2), np.float16), bounds) == (
        "y: actual has shape [3, 2], bounds have [2, 3]"
    )
    with pytest.raises(TypeError, match="y must be a torch CPU tensor or a numpy array, not str"):
        assert_possible("text", bounds)
    with pytest.raises(TypeError, match="bounds must be what Kernel"):
        assert_possible(np.zeros(2), np.zeros(2))


def test_several_outputs_come_by_name_or_in_order() -> None:
    a, b = np.int8([1, 2]), np.float32([1, 2])
    bounds = Certainty(outputs=(exact("a", a), exact("b", b)))
    assert_possible([a, b], bounds)
    assert_possible({"b": b, "a": a}, bounds)
    assert_possible(a, Certainty(outputs=(exact("a", a),)))
    text = message((a + np.int8(1), b + np.float32(1)), bounds)
    assert "a: 2 of 2 elements cannot be" in text
    assert "b: 2 of 2 elements cannot be" in text
    with pytest.raises(ValueError, match=r"actual has 1 outputs, bounds 2 \(a, b\)"):
        assert_possible(a, bounds)
    with pytest.raises(ValueError, match="actual has a, bounds a, b"):
        assert_possible({"a": a}, bounds)


# --- assert_certain ------------------------------------------------------------------------------


def undecided(count: int, total: int, name: str = "out") -> OutputCertainty:
    low = np.zeros(total, np.int8)
    return between(low, low + (np.arange(total) < count).astype(np.int8), name=name)


def test_a_share_is_reached_or_named() -> None:
    assert_certain(undecided(1, 100))
    assert_certain(undecided(93, 100), at_least=0.07)
    assert_certain(exact("out", np.zeros(3, np.int8)), at_least=1)
    assert_certain(undecided(3, 3), at_least=0)
    with pytest.raises(UndecidedError) as caught:
        assert_certain(undecided(2, 100))
    assert str(caught.value).splitlines() == [
        "less than 0.99 certain: out",
        "out: DT_INT8 [100], 98% certain, 2 of 100 undecided",
        "  2 left open by div at norm.py:14",
    ]


def test_a_small_output_does_not_hide_behind_a_large_one() -> None:
    bounds = Certainty(outputs=(exact("y", np.zeros(10**6, np.int8)), undecided(2, 4, "scale")))
    with pytest.raises(UndecidedError, match=r"less than 0.99 certain: scale\n"):
        assert_certain(bounds)


@pytest.mark.parametrize("share", [-0.1, 1.01, 99, math.nan])
def test_what_is_no_share_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="at_least is a share from 0 to 1"):
        assert_certain(scattered((4,), 0.5), at_least=share)


# --- The option ----------------------------------------------------------------------------------

SUITE = """\
import dataclasses
import sys
import numpy as np
import pytest
from support.devices.certainties import between, exact
from pypto_cast.kernel.certainty import Certainty, announce

@pytest.mark.parametrize("count", [0, 1, 2, 1])
def test_kernel(count):
    low = np.zeros(100, np.int8)
    high = low + (np.arange(100) < count).astype(np.int8)
    announce(Certainty(outputs=(between(low, high),)))

def test_given():
    values = np.zeros(100, np.int8)
    output = dataclasses.replace(exact("out", values), choices=np.ones(100, np.uint32))
    announce(Certainty(outputs=(output,)))

def test_plain(): ...

def test_bad():
    assert False
"""


def run_suite(place: Path, *arguments: str) -> tuple[int, str]:
    (place / "test_suite.py").write_text(SUITE, encoding="utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "pypto_cast.pytest_plugin"),
            *("-p", "no:cacheprovider", "-q", *arguments),
        ],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "PATH": "", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    return done.returncode, done.stdout + done.stderr


SHARES = (
    ("0.99 -k kernel", 0, "certainty: 99% certain, 4 of 400"),
    ("0.991 -k kernel", 1, "FAIL certainty: 99% certain, 4 "),
    (
        "0.5 --certainty-by documents -k given",
        1,
        "FAIL certainty: 100% certain, 100 of them given named choices, below "
        "--fail-under-certainty 0.5 --certainty-by documents",
    ),
    ("0.9 -k plain", 1, "FAIL certainty: no kernel was asked"),
    ("0.9 --collect-only", 0, "7 tests collected"),
    ("0.5", 1, "certainty: 99.2% certain, 100 of them given named choices, 4 of 500 undecided"),
    ("99", 4, "--fail-under-certainty is a share from 0 to 1"),
    ("x", 4, "--fail-under-certainty: invalid float value: 'x'"),
    ("0.9 -k nothing", 5, "FAIL certainty: no kernel"),
)
"""Words behind --fail-under-certainty, the exit code, and what is said."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        pytest.param(*case, marks=[pytest.mark.exhaustive] * ((place - SEED) % len(SHARES) > 1))
        for place, case in enumerate(SHARES)
    ],
)
def test_a_run_fails_below_its_share(tmp_path: Path, words: str, code: int, says: str) -> None:
    found, text = run_suite(tmp_path, "--fail-under-certainty", *words.split())
    assert says in text
    assert found == code
    assert "Traceback" not in text


@pytest.mark.slow
def test_without_the_option_nothing_is_said(tmp_path: Path) -> None:
    code, text = run_suite(tmp_path, "-k", "kernel")
    assert (code, "certainty" in text) == (0, False)


@pytest.mark.exhaustive  # suites in processes of their own, twice
@pytest.mark.parametrize(("share", "code"), [("0.99", 0), ("0.991", 1)])
def test_workers_are_counted_together(tmp_path: Path, share: str, code: int) -> None:
    pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    found, text = run_suite(tmp_path, "-n", "2", "-k", "kernel", "--fail-under-certainty", share)
    assert "certainty: 99% certain, 4 of 400 undecided" in text
    assert found == code
