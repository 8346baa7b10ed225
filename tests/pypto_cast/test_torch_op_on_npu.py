"""torch.ops.pypto_cast.cast on an NPU, where the compiled kernel does what Python has planned."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from support.devices.npu_device import Device, OnNpu, on_npu
from test_torch_op import PAIRS, REFUSED, codes_of, every_pair, raised, some

import pypto_cast as pypto
from ascend_kernels import instances, npu
from ascend_kernels.matrix import resolve
from ascend_kernels.npu import NpuError
from pypto_cast import torch_op
from simulator.numbers import formats as f
from tiling.chips import A2_A3, CHIPS

torch = pytest.importorskip("torch", reason="torch registers the op; it is not installed")

ON, OFF = (int(mode) for mode in pypto.SaturationMode)
FP16, BF16, INT32 = (int(d) for d in (pypto.DT_FP16, pypto.DT_BF16, pypto.DT_INT32))
ODD = int(pypto.CAST_ODD)
cast = torch.ops.pypto_cast.cast


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    return Device(monkeypatch)


# --- Bits ----------------------------------------------------------------------------------------


@every_pair
@pytest.mark.filterwarnings("ignore")
def test_every_pair_and_mode_as_on_the_cpu(src: Any, dst: Any, device: Device) -> None:
    x, number = some(src, 6, 7, 64), int(torch_op.data_type_of(dst))
    for mode, satmode in itertools.product(pypto.CastMode, (ON, OFF)):
        numbers = (number, int(mode), satmode, [2, 3, 64])
        result = cast(on_npu(x), *numbers)
        assert isinstance(result, OnNpu)
        assert (result.dtype, result.shape) == (dst, x.shape)
        np.testing.assert_array_equal(codes_of(result), codes_of(cast(x, *numbers)))
    assert [dtype for dtype, *_ in device.launched] == [dst] * len(device.launched)
    assert len(device.launched) == 14 - 2 * (src == dst)


def test_every_pair_was_launched() -> None:
    assert len(PAIRS) == 23


@pytest.mark.parametrize("chip", [name for name in CHIPS if CHIPS[name].isa == A2_A3])
def test_the_chip_of_the_device_says_how_many_cores(
    chip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = Device(monkeypatch, chip)
    with pypto.options(chip="Ascend910B3"):
        cast(on_npu(torch.ones(1000, 16)), FP16, 0, ON, [1, 16])
    instance = instances.instance_number(resolve(A2_A3, f.FP32, f.FP16))
    assert device.launched == [(torch.float16, instance, CHIPS[chip].vector_cores)]


def test_strided_inputs(device: Device) -> None:
    x = some(torch.float32, 64, 48)[::2].t()
    result = cast(on_npu(x), BF16, 0, ON, [16, 32])
    np.testing.assert_array_equal(codes_of(result), codes_of(cast(x, BF16, 0, ON, [16, 32])))
    assert result.is_contiguous()


def test_the_dtype_it_has_already_gives_a_copy(device: Device) -> None:
    x = on_npu(some(torch.int16, 4, 32).t())
    result = cast(x, int(pypto.DT_INT16), 0, ON, [32, 4])
    assert result.data_ptr() != x.data_ptr()
    assert result.is_contiguous()
    np.testing.assert_array_equal(codes_of(result), codes_of(x))
    assert not device.launched


def test_a_compiled_graph_runs_on_the_device(device: Device) -> None:
    graphs: list[Any] = []

    def backend(module: Any, inputs: Any) -> Any:
        graphs.append(module)
        return module.forward

    x = torch.randn(8, 64)
    torch.compile(lambda x: cast(x, BF16, 0, ON, [8, 64]), fullgraph=True, backend=backend)(x)
    assert not device.launched
    (result,) = graphs[0](on_npu(x))
    assert torch.equal(result, x.to(torch.bfloat16))
    assert len(device.launched) == 1


# --- What it refuses, and warns of ---------------------------------------------------------------


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.filterwarnings("ignore")
def test_it_refuses_in_the_words_of_the_cpu(name: str, device: Device) -> None:
    x, dtype, tile = REFUSED[name]
    on_meta = raised(lambda: cast(x.to("meta"), int(dtype), 0, ON, list(tile)))
    assert raised(lambda: cast(on_npu(x), int(dtype), 0, ON, list(tile))) == on_meta
    assert not device.launched


@pytest.mark.parametrize(
    "numbers",
    [(99, 0, ON, [32]), (FP16, 7, ON, [32]), (FP16, 0, 2, [32]), (FP16, 0, ON, [0])],
    ids=["dtype", "mode", "satmode", "tile"],
)
def test_numbers_that_name_nothing(numbers: tuple[Any, ...], device: Device) -> None:
    x = torch.zeros(32)
    assert raised(lambda: cast(on_npu(x), *numbers)) == raised(lambda: cast(x, *numbers))
    assert not device.launched


def test_four_bit_results_have_no_torch_tensor(device: Device) -> None:
    x = torch.zeros(64, dtype=torch.float16)
    numbers = (int(pypto.DT_INT4), 0, ON, [64])
    assert raised(lambda: cast(on_npu(x), *numbers)) == raised(lambda: cast(x, *numbers))
    assert not device.launched


def test_no_tile_is_chosen_for_the_device(device: Device) -> None:
    assert raised(lambda: cast(on_npu(torch.zeros(2)), FP16, 0, ON, [])) == (
        pypto.TileShapeError,
        "tile shape [] has 0 entries; the output [2] needs at least 1 entry, "
        "one for each dimension",
    )
    assert not device.launched


def test_saturating_floats_reach_the_device(device: Device) -> None:
    with pypto.options(inf_nan_mode=False):
        y = cast(on_npu(torch.full((32,), 1e6)), FP16, 0, ON, [32])
    assert set(y.as_subclass(torch.Tensor).tolist()) == {65504.0}
    assert len(device.launched) == 1


def test_a_chip_that_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(monkeypatch, "Ascend1")
    kind, text = raised(lambda: cast(on_npu(torch.zeros(32)), FP16, 0, ON, [32]))
    assert kind is ValueError
    assert text.startswith("unknown chip 'Ascend1'; known: ")
    assert not device.launched


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise NpuError("the library for the NPU is not built")

    monkeypatch.setattr(npu, "load", missing)
    with pytest.raises(NpuError, match="not built"):
        cast(on_npu(torch.zeros(32)), FP16, 0, ON, [32])


def test_warnings_are_those_of_the_cpu() -> None:
    said = []
    for place in (on_npu, torch.clone):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            cast(place(torch.zeros(20000)), INT32, ODD, OFF, [1])
        said.append([(entry.category, str(entry.message)) for entry in caught])
    assert said[0] == said[1]
    assert len(said[0]) == 4


def test_under_strict_options_a_mode_that_is_lacking_is_an_error(device: Device) -> None:
    with pypto.options(strict=True), pytest.raises(pypto.CastModeError, match="no mode CAST_ODD"):
        cast(on_npu(torch.zeros(64)), INT32, ODD, ON, [64])
    assert not device.launched
