"""RunMode.NPU in a kernel, with stand-ins for the device: the compiled kernel does its casts."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from support.devices.npu_device import Device, on_npu
from support.programs.twin_programs import CASES

import pypto_cast as pypto
from ascend_kernels import instances, npu
from ascend_kernels.matrix import resolve
from ascend_kernels.npu import NpuError
from pypto_cast.cast.npu import HostCopies
from simulator.numbers import formats as f
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3

torch = pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")

FP16_4 = pypto.Tensor[[4, 64], pypto.DT_FP16]
FP32 = pypto.Tensor[[pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_FP32]
INT8 = pypto.Tensor[[pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_INT8]
ON_NPU = {"run_mode": pypto.RunMode.NPU}


@pypto.jit(runtime_options=ON_NPU)
def to_int8(x: FP32, out: INT8) -> None:
    pypto.set_vec_tile_shapes(4, 32)
    half = pypto.cast(x, pypto.DT_FP16, mode=pypto.CAST_CEIL)
    out[:] = pypto.cast(half, pypto.DT_INT8, satmode=pypto.SaturationMode.OFF)


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """An NPU that the compiled kernel stands in for; what was launched."""
    return Device(monkeypatch).launched


def values() -> npt.NDArray[np.float32]:
    return np.linspace(-200, 200, 5 * 64, dtype=np.float32).reshape(5, 64)


def simulated(x: npt.NDArray[np.float32]) -> npt.NDArray[np.int8]:
    out = np.zeros(x.shape, np.int8)
    pypto.jit(to_int8.__wrapped__)(x, out)
    return out


@pytest.mark.filterwarnings("ignore::pypto_cast.TileShapeWarning")
@pytest.mark.parametrize("kind", ["numpy", "torch", "npu"])
def test_every_cast_is_launched(kind: str, launches: list[tuple[object, ...]]) -> None:
    x, out = values(), np.zeros((5, 64), np.int8)
    given: tuple[Any, Any] = (x, out)
    if kind != "numpy":
        given = (torch.from_numpy(x), torch.from_numpy(out))
    if kind == "npu":
        given = (on_npu(given[0]), on_npu(given[1]))
    to_int8(*given)
    np.testing.assert_array_equal(out, simulated(x))
    modes = [(f.FP32, f.FP16, RoundMode.CEIL), (f.FP16, f.INT8, RoundMode.TRUNC)]
    numbers = [instances.instance_number(resolve(A2_A3, *pair)) for pair in modes]
    assert launches == [(torch.float16, numbers[0], 4), (torch.int8, numbers[1], 4)]


def test_a_kernel_inside_runs_where_the_outer_one_does(launches: list[tuple[object, ...]]) -> None:
    @pypto.jit
    def outer(x: FP32, out: INT8) -> None:
        to_int8(x, out)

    out = np.zeros((5, 64), np.int8)
    outer(values(), out)
    np.testing.assert_array_equal(out, simulated(values()))
    assert not launches


def test_a_cast_outside_of_kernels_is_simulated(launches: list[tuple[object, ...]]) -> None:
    with pypto.options(vec_tile_shapes=(4, 64)):
        pypto.cast(pypto.from_numpy(values()), pypto.DT_FP16)
    assert not launches


def test_what_fails_on_the_device_leaves_the_outputs(
    launches: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("the device is lost")

    monkeypatch.setattr(npu, "launch_from_host", fails)
    out = torch.zeros((5, 64), dtype=torch.int8)
    with pytest.raises(RuntimeError, match="the device is lost"):
        to_int8(torch.from_numpy(values()), on_npu(out))
    assert not out.any()


def test_without_the_library_nothing_runs(
    launches: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise NpuError("the library for the NPU is not built")

    monkeypatch.setattr(npu, "load", missing)
    with pytest.raises(NpuError, match="not built"):
        to_int8(values(), np.zeros((5, 64), np.int8))
    assert not launches


def test_four_bit_elements_share_bytes_on_the_device(launches: list[tuple[object, ...]]) -> None:
    @pypto.jit(runtime_options=ON_NPU)
    def through_int4(x: pypto.Tensor[[4, 64], pypto.DT_FP16], out: FP16_4) -> None:
        pypto.set_vec_tile_shapes(4, 64)
        halves = pypto.cast(x, pypto.DT_INT4, pypto.CastMode.CAST_RINT)
        out[:] = pypto.cast(halves, pypto.DT_FP16)

    x = np.linspace(-9, 9, 256, dtype=np.float16).reshape(4, 64)
    out = np.zeros((4, 64), np.float16)
    through_int4(x, out)
    np.testing.assert_array_equal(out, np.clip(np.rint(x), -8, 7))
    assert len(launches) == 2


def test_overflow_saturates_on_the_device_too(launches: list[tuple[object, ...]]) -> None:
    @pypto.jit(runtime_options=ON_NPU)
    def to_fp16(x: pypto.Tensor[[4, 64], pypto.DT_FP32], out: FP16_4) -> None:
        pypto.set_vec_tile_shapes(4, 64)
        out[:] = pypto.cast(x, pypto.DT_FP16)

    x, out = np.full((4, 64), 1e6, np.float32), np.zeros((4, 64), np.float16)
    for inf_nan_mode, expected in ((True, np.inf), (False, 65504)):
        with pypto.options(inf_nan_mode=inf_nan_mode):
            to_fp16(x, out)
        np.testing.assert_array_equal(out, np.float16(expected))
    assert len(launches) == 2


def test_memory_shared_on_the_device_is_shared_on_the_host(
    launches: list[tuple[object, ...]],
) -> None:
    whole = torch.zeros((2, 4, 64), dtype=torch.float32)
    copies = HostCopies()
    first, again = copies.of(on_npu(whole[1])), copies.of(on_npu(whole))
    assert first.device.type == "cpu"
    assert copies.of(first) is first
    assert (first.shape, first.storage_offset()) == ((4, 64), 256)
    assert first.data_ptr() == again[1].data_ptr() != whole[1].data_ptr()
    first += 1
    copies.send_back([again])
    assert whole[1].all()
    assert not whole[0].any()
    with pytest.raises(ValueError, match="shares memory with"):
        pypto.jit(runtime_options=ON_NPU)(_shifted.__wrapped__)(
            on_npu(whole[0]), on_npu(whole.reshape(8, 64)[2:6])
        )


@pypto.jit
def _shifted(x: FP32, out: FP32) -> None:
    out[:] = x


class Stand:
    """A tensor with nothing but a place."""

    def __init__(self, place: str) -> None:
        self.device = types.SimpleNamespace(type=place)

    def to(self, place: str) -> Stand:
        return Stand(place)

    def cpu(self) -> Stand:
        return Stand("cpu")


def test_a_tensor_of_the_host_goes_there_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, object]] = []

    def launch(x: Stand, *arguments: object) -> Stand:
        calls.append((x.device.type, arguments))
        return x

    program = CASES[0].program((4, 64), (4, 64))
    monkeypatch.setattr(npu, "load", lambda: None)
    monkeypatch.setattr(npu, "launch", launch)
    assert npu.launch_from_host(Stand("cpu"), "float16", program).device.type == "cpu"
    assert calls == [("npu", ("float16", program))]
