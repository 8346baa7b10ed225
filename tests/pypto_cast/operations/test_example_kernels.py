"""The kernels of examples/kernels: bits against float64 step by step, and devices that are off."""

from __future__ import annotations

import csv
import functools
import runpy
import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.devices.kernel_references import EXAMPLES, Arrays, Example, Inputs
from support.devices.other_device import BY_TRUST, Device, is_possible
from support.environment.sources import ROOT

import pypto_cast as pypto

FOLDER = ROOT / "examples" / "kernels"
CERTAIN = {
    "Ascend910B3": Path(__file__).with_name("certain_elements.csv"),
    "Ascend950PR": Path(__file__).with_name("certain_elements_950.csv"),
}
"""By chip, the table of its family; docs/fidelity.md shows both."""

every_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.kernel)


@functools.cache
def module(name: str) -> dict[str, Any]:
    return runpy.run_path(str(FOLDER / f"{name}.py"))


def as_array(values: np.ndarray) -> np.ndarray:
    """Codes of 16 bits are BF16 numbers."""
    return values.view(ml_dtypes.bfloat16) if values.dtype == np.uint16 else values


def certainty(example: Example, inputs: Arrays) -> pypto.Certainty:
    outputs = [np.zeros(shape, dtype) for dtype, shape in example.outputs.values()]
    kernel = module(example.module)[example.kernel]
    return kernel.certainty(*map(as_array, inputs.values()), *outputs, **example.constants)


def on(device: Device, example: Example, inputs: Arrays) -> Arrays:
    return example.reference(device, **inputs, **example.constants)


def codes(values: np.ndarray) -> np.ndarray:
    """Bits, with one NaN."""
    values = np.ascontiguousarray(as_array(values))
    if np.issubdtype(values.dtype, np.integer):
        return values
    unsigned = values.view(f"u{values.itemsize}")
    return np.where(np.isnan(values), np.iinfo(unsigned.dtype).max, unsigned)


@every_example
@pytest.mark.parametrize("tame", [True, False])
@pytest.mark.sampled(3)
def test_bits_are_those_of_float64_rounded_at_each_step(example: Example, tame: bool) -> None:
    for seed in range(2):
        inputs = example.inputs(Inputs(seed, tame=tame))
        found = certainty(example, inputs)
        expected = on(Device(), example, inputs)
        assert set(found) == set(expected)
        for name, values in expected.items():
            np.testing.assert_array_equal(codes(found.values[name]), codes(values), str(name))


def check_devices(example: Example, trust: str, seed: int, devices: int, *, tame: bool) -> None:
    inputs = example.inputs(Inputs(seed, tame=tame))
    with pypto.options(trust=trust):
        found = certainty(example, inputs)
    for number in range(devices):
        results = on(Device.of_trust(trust, seed + number), example, inputs)
        for name, values in results.items():
            output, given = found[name], as_array(values)
            possible = is_possible(given, output.low, output.high, output.may_be_nan)
            at = tuple(np.argwhere(~possible)[0].tolist()) if not possible.all() else ()
            assert possible.all(), (
                f"{example.kernel} {name}{list(at)}, trust {trust}, seed {seed}: {given[at]} is "
                f"not {output.possible(at)}"
            )


@every_example
@pytest.mark.parametrize("trust", BY_TRUST)
@settings(max_examples=2)
@given(seed=st.integers(0, 2**32 - 1), tame=st.booleans())
@pytest.mark.sampled(5)
def test_results_of_other_devices_lie_inside(
    example: Example, trust: str, seed: int, tame: bool
) -> None:
    check_devices(example, trust, seed, 1, tame=tame)


@pytest.mark.exhaustive
@every_example
@pytest.mark.parametrize("trust", BY_TRUST)
@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), tame=st.booleans())
def test_thousands_of_other_devices_lie_inside(
    example: Example, trust: str, seed: int, tame: bool
) -> None:
    check_devices(example, trust, seed, 4, tame=tame)


def counted(example: Example, *, tame: bool) -> list[dict[str, str]]:
    """A row of the table of certain elements for each output."""
    found = certainty(example, example.inputs(Inputs(1, tame=tame)))
    return [
        {
            "kernel": example.kernel,
            "operands": "near 1" if tame else "all codes",
            "output": output.name,
            "elements": str(output.values.size),
            "by documents": str(int(output.by_documents.sum())),
            "certain": str(int(output.certain.sum())),
        }
        for output in found.outputs
    ]


@pytest.mark.parametrize("chip", CERTAIN)
@every_example
@pytest.mark.sampled(3)
def test_as_many_elements_are_certain_as_before(example: Example, chip: str) -> None:
    """The rows of the table: what an operation that is new or mended may not make undecided."""
    with CERTAIN[chip].open(encoding="utf-8", newline="") as file:
        wanted = list(csv.DictReader(file))
    with pypto.options(chip=chip):
        found = [each for tame in (True, False) for each in counted(example, tame=tame)]
    for row in found:
        assert row in wanted, ",".join(row.values())


@every_example
def test_most_codes_are_certain(example: Example) -> None:
    """Outputs that are rounded to 8 or 16 bits; FP32 ones carry the doubt on."""
    found = certainty(example, example.inputs(Inputs(1, tame=True)))
    for output in found.outputs:
        if output.dtype is not pypto.DT_FP32:
            assert output.certain.mean() > 0.98, str(output)


@every_example
@pytest.mark.parametrize("tame", [True, False])
@pytest.mark.sampled(3)
def test_results_by_documents_are_those_that_documents_leave_certain(
    example: Example, tame: bool
) -> None:
    inputs = example.inputs(Inputs(1, tame=tame))
    found = certainty(example, inputs)
    with pypto.options(trust="documented"):
        documented = certainty(example, inputs)
    assert documented.counts.by_choices == 0
    for output, alone in zip(found.outputs, documented.outputs, strict=True):
        np.testing.assert_array_equal(output.by_documents, alone.certain)
        assert sum(output.certain_by_choice.values()) >= output.counts.by_choices


@pytest.mark.parametrize("name", sorted({example.module for example in EXAMPLES}))
@pytest.mark.sampled(3)
def test_each_file_runs_and_prints_its_certainty(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    shown = capsys.readouterr().out
    assert shown.count("% certain") >= 1
    for example in EXAMPLES:
        if example.module == name:
            assert all(f"{output}: DT_" in shown for output in example.outputs)


def test_no_file_is_left_out() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == {e.module for e in EXAMPLES}
