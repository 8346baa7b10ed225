"""Random programs: what is certain by documents has the bits of devices that choose otherwise."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.devices.choosing_device import BF16, FP16, FP32, ChoosingDevice
from support.programs.bodies import certainty_of

import pypto_cast as pypto

TINY = 2.0**-126  # the least normal FP32 number
POOL = (
    0.0,
    -0.0,
    1,
    -1,
    0.5,
    3,
    7,
    100,
    TINY,
    -TINY / 2,
    TINY * 3,
    2.0**-15,
    -(2.0**-24),
    2.0**-30,
)
POOL += (65504, 65520, -70000, 3.4e38, -3.3961776e38, np.inf, -np.inf, np.nan, 0.1, -1.3, 1e-8, 2.5)
MODES = ("RINT", "FLOOR", "CEIL", "TRUNC")


class Program:
    """A random program over two FP32 tensors, here and on a device."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.steps = [self._step() for _ in range(self.rng.integers(1, 5))]
        self.last = self.rng.choice(["FP32", "FP16", "BF16", "INT32"])
        self.mode = str(self.rng.choice(MODES))
        pool = np.array(POOL, np.float32)
        random = self.rng.standard_normal((2, 2, 8)).astype(np.float32)
        self.inputs = np.where(
            self.rng.random(random.shape) < 0.7, self.rng.choice(pool, random.shape), random
        )

    def _step(self) -> tuple[str, Any]:
        name = str(
            self.rng.choice(["add", "sub", "mul", "scaled", "halves", "brain", "greater", "sum"])
        )
        by = float(self.rng.choice([2.0, 0.5, -1.0, 1.1, 3.0]))
        modes = (*MODES, "ODD") if name == "halves" else MODES
        return name, by if name == "scaled" else str(self.rng.choice(modes))

    def body(self, x: pypto.Tensor, y: pypto.Tensor) -> pypto.Tensor:
        for name, how in self.steps:
            if name in ("add", "sub", "mul"):
                x = getattr(pypto, name)(x, y)
            elif name == "scaled":
                x = x * how
            elif name in ("halves", "brain"):
                narrow = pypto.DT_FP16 if name == "halves" else pypto.DT_BF16
                x = pypto.cast(pypto.cast(x, narrow, mode_named(how)), pypto.DT_FP32)
            elif name == "greater":
                x = pypto.maximum(x, y)
            else:
                x = pypto.maximum(x, pypto.sum(x, -1, keepdim=True))
        if self.last == "FP32":
            return x * 1.0
        return pypto.cast(x, getattr(pypto, f"DT_{self.last}"), mode_named(self.mode))

    def on(self, device: ChoosingDevice) -> np.ndarray:
        rows = [
            self._row(device, *codes)
            for codes in zip(*self.inputs.view(np.uint32).tolist(), strict=True)
        ]
        return np.array(rows)

    def _row(self, device: ChoosingDevice, x: list[int], y: list[int]) -> list[int]:
        for name, how in self.steps:
            if name in ("add", "sub", "mul"):
                x = [device.arithmetic(name, a, b) for a, b in zip(x, y, strict=True)]
            elif name == "scaled":
                by = int(np.float32(how).view(np.uint32))
                x = [device.arithmetic("mul", a, by) for a in x]
            elif name in ("halves", "brain"):
                narrow = FP16 if name == "halves" else BF16
                x = [
                    device.cast(device.cast(a, FP32, narrow, how), narrow, FP32, "RINT") for a in x
                ]
            elif name == "greater":
                x = [device.greater(a, b) for a, b in zip(x, y, strict=True)]
            else:
                total = device.total(x)
                x = [device.greater(a, total) for a in x]
        if self.last == "FP32":
            return [device.arithmetic("mul", a, 0x3F800000) for a in x]
        if self.last == "INT32":
            return [device.to_int32(a, FP32, self.mode) for a in x]
        return [device.cast(a, FP32, FP16 if self.last == "FP16" else BF16, self.mode) for a in x]


def mode_named(mode: str) -> pypto.CastMode:
    return pypto.CastMode[f"CAST_{mode}"]


def check_program(seed: int, devices: int) -> int:
    """Elements by documents have the bits of every device; returns how many there were."""
    program = Program(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = certainty_of(program.body, *program.inputs)[0]
    values = (
        found.values
        if found.values.dtype.kind == "i"
        else found.values.view(f"u{found.values.itemsize}")
    )
    if not any(name == "sum" for name, _ in program.steps):  # whose order is another
        assumed = program.on(ChoosingDevice())
        assert (values == assumed).all(), (program.steps, program.last)
    for number in range(devices):
        device = ChoosingDevice.somehow(seed * devices + number)
        wrong = found.by_documents & (values != program.on(device))
        assert not wrong.any(), (
            program.steps,
            program.last,
            program.mode,
            device,
            program.inputs[:, wrong],
        )
    rest = found.certain & ~found.by_documents
    assert (found.choices[rest] != 0).all()
    return int(found.by_documents.sum())


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_results_by_documents_are_those_of_devices_that_choose_otherwise(seed: int) -> None:
    check_program(seed, 4)


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(15))
def test_thousands_of_programs_by_documents(part: int) -> None:
    found = sum(check_program(seed, 8) for seed in range(part * 200, (part + 1) * 200))
    assert found > 10_000 // 15
