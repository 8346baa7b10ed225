"""FakeConvert against the installed openvino: its core bit for bit, its CPU plugin."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from support.environment import openvino_nodes as peer
from support.numbers.codes import SEED
from test_openvino_fake_convert import DIGESTS, all_codes, digest

from pypto_cast.dialects import openvino
from simulator.numbers.formats import FP32
from simulator.numbers.rounding import boundary_codes

TYPES = ("f16", "bf16", "f32")
DESTINATIONS = ("f8e4m3", "f8e5m2")
MOVES = (1, 0.5, 3, 0.1, -1, 1e-5, 1000, 0, np.inf, np.nan, -np.nan)
SHIFTS = (None, 0.0, -0.0, 1, 0.3, -7, 1e4, np.inf, np.nan, -np.nan)
SHAPES = (
    (),
    (1,),
    (8,),
    (64, 1, 1),
    (1, 64, 1, 1),
    (4, 1, 1, 8),
    (4, 64, 1, 1),
    (4, 64, 32, 8),
)


def every_number(name: str) -> np.ndarray:
    """All codes of 16 bits; of f32 those around every cut, and random ones of usual sizes."""
    dtype = peer.NUMPY[name]
    if name != "f32":
        return np.arange(1 << 16, dtype=np.uint16).view(dtype)
    rng = np.random.default_rng([SEED, 13])
    usual = rng.standard_normal(200_000) * np.exp2(rng.integers(-30, 20, 200_000))
    return np.concatenate([boundary_codes(FP32).view(dtype), usual.astype(dtype)])


def inputs_of(name: str, shape: tuple[int, ...], *, wild: bool) -> Iterator[list[np.ndarray]]:
    """Data of shape (4, 64, 32, 8) with a scale of another shape, without and with a shift."""
    rng = np.random.default_rng([SEED, wild, *shape])
    dtype = peer.NUMPY[name]
    data = rng.permutation(every_number(name))[: 1 << 16].reshape(4, 64, 32, 8)
    if wild:
        words = rng.integers(0, 1 << dtype.itemsize * 8, (2, *shape), dtype=f"u{dtype.itemsize}")
        scale, shift = (np.array(word).view(dtype) for word in words)
    else:
        usual = rng.standard_normal((2, *shape)) * 3 + 0.1
        scale, shift = (np.array(number).astype(dtype) for number in usual)
    yield [data, scale]
    yield [data, scale, shift]


def assert_same_codes(actual: np.ndarray, wanted: np.ndarray) -> None:
    assert actual.dtype == wanted.dtype
    np.testing.assert_array_equal(peer.codes_of(actual), peer.codes_of(wanted))


@pytest.mark.parametrize("destination", DESTINATIONS)
@pytest.mark.parametrize("scale", MOVES)
@pytest.mark.parametrize("name", TYPES)
def test_reference_on_all_codes(name: str, scale: float, destination: str) -> None:
    data = every_number(name)
    factor = np.array([scale]).astype(data.dtype)
    for shift in SHIFTS:
        inputs = [data, factor]
        if shift is not None:
            inputs.append(np.array([shift]).astype(data.dtype))
        wanted = peer.fake_convert(inputs, destination)
        assert_same_codes(openvino.fake_convert(*inputs, destination_type=destination), wanted)


@pytest.mark.parametrize("destination", DESTINATIONS)
@pytest.mark.parametrize("wild", [False, True], ids=["usual", "any"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", TYPES)
def test_reference_broadcasts(
    name: str, shape: tuple[int, ...], wild: bool, destination: str
) -> None:
    for inputs in inputs_of(name, shape, wild=wild):
        wanted = peer.fake_convert(inputs, destination)
        assert_same_codes(openvino.fake_convert(*inputs, destination_type=destination), wanted)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", [(), (1,), (0,), (0, 3), (3, 0, 2), (7,), (5, 3)], ids=str)
def test_reference_of_small_shapes(name: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng([SEED, *shape])
    inputs = [rng.standard_normal(shape).astype(peer.NUMPY[name]) * 3 for _ in range(3)]
    inputs = [np.asarray(values, peer.NUMPY[name]) for values in inputs]
    wanted = peer.fake_convert(inputs, "f8e5m2")
    assert_same_codes(openvino.fake_convert(*inputs, destination_type="f8e5m2"), wanted)


def test_reference_of_long_random_numbers() -> None:
    rng = np.random.default_rng([SEED, 22])
    words = rng.integers(0, 1 << 32, (3, 1 << 21), dtype=np.uint32)
    for destination in DESTINATIONS:
        inputs = list(words.view(np.float32))
        wanted = peer.fake_convert(inputs, destination)
        assert_same_codes(openvino.fake_convert(*inputs, destination_type=destination), wanted)


@pytest.mark.parametrize(("name", "destination", "shift"), DIGESTS)
def test_digests_are_openvinos(name: str, destination: str, shift: float | None) -> None:
    wanted = peer.fake_convert(all_codes(name, shift), destination)
    assert digest(wanted) == DIGESTS[name, destination, shift]


# --- The CPU plugin ---------------------------------------------------------------------------


@pytest.mark.parametrize("destination", DESTINATIONS)
@pytest.mark.parametrize("scale", [1, 0.3, -2.5, 1e-3, 100, 0])
@pytest.mark.parametrize("name", ["f16", "f32"])
def test_plugin(name: str, scale: float, destination: str) -> None:
    """With a shift, even of 0, the sign of a zero is the graph optimisations' affair."""
    data = every_number(name)
    factor = np.array([scale]).astype(data.dtype)
    for shift in (None, 0, 0.7, -3):
        inputs = [data, factor]
        if shift is not None:
            inputs.append(np.array([shift]).astype(data.dtype))
        wanted = peer.fake_convert_by_plugin(inputs, destination)
        numerics = peer.plugin_numerics()
        actual = openvino.fake_convert(*inputs, destination_type=destination, numerics=numerics)
        nan = np.isnan(wanted)
        np.testing.assert_array_equal(np.isnan(actual), nan)
        actual, wanted = actual[~nan], wanted[~nan]
        if shift is not None:
            actual, wanted = actual + actual.dtype.type(0), wanted + wanted.dtype.type(0)
        assert_same_codes(actual, wanted)


def test_plugin_without_avx512_fp16() -> None:
    """oneDNN, told before it loads to leave these instructions alone, has the core's class."""
    if peer.plugin_numerics() == "plugin":
        return  # which the tests above hold against it
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-k", "test_plugin[", "-p", "no:xdist", __file__],
        env=os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
