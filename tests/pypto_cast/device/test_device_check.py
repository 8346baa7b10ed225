"""The device check on stand-in devices: every planted deviation is found and named, no other."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from support.command import Command, command
from support.twin_programs import needs_twin

from ascend_kernels import npu, twin
from ascend_kernels.npu import Npu, NpuError, RunMode
from ascend_kernels.program import TileProgram
from pypto_cast.cli.commands import device_check_command
from pypto_cast.device import on_npu
from pypto_cast.device.cases import PADDING, UB_LIMIT, CheckCase, cast_cases
from pypto_cast.device.check import check_casts, unmeasured
from pypto_cast.device.conduct import CONDUCTS
from pypto_cast.device.facts import DeviceDescription, DeviceFact, Verdict
from pypto_cast.device.on_npu import CheckedDevice
from simulator.machine.execute import execute
from simulator.numbers import formats as f
from simulator.numbers.convert import values_of
from simulator.numbers.formats import Codes, Format
from simulator.numbers.rounding import RoundMode
from tiling.chips import DEFAULT_CHIP

__all__ = ["command"]

Values = npt.NDArray[Any]
Plant = Callable[[TileProgram, Values, Codes], Codes]
PAIRS = {
    (f.FP32, f.FP16),
    (f.FP16, f.FP32),
    (f.FP32, f.INT16),
    (f.INT64, f.FP32),
    (f.INT32, f.FP16),
    (f.FP16, f.INT4),
}


@functools.cache
def some_cases() -> tuple[CheckCase, ...]:
    """The cases of six pairs, with boundaries and few random codes."""
    return tuple(
        case
        for case in cast_cases(DEFAULT_CHIP, random_codes=1000)
        if (case.program.resolution.rule.src, case.program.resolution.rule.dst) in PAIRS
    )


def checked(plant: Plant | None = None) -> dict[str, DeviceFact]:
    def device(program: TileProgram, values: Values) -> Codes:
        codes = execute(program, values)
        if plant is None:
            return codes
        with np.errstate(invalid="ignore"):
            return plant(program, values.reshape(-1), codes.copy())

    return {fact.name: fact for fact in check_casts(device, some_cases())}


def is_cast(program: TileProgram, src: Format, dst: Format) -> bool:
    rule = program.resolution.rule
    return rule.src is src and rule.dst is dst


# --- Planted deviations --------------------------------------------------------------------------


def quiet_nan(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if is_cast(program, f.FP32, f.FP16):
        codes[codes == 0x7FFF] = 0x7E00
    return codes


def nan_to_largest(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if is_cast(program, f.FP32, f.INT16):
        codes[np.isnan(values)] = 0x7FFF
    return codes


def directed_to_infinity(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if is_cast(program, f.FP32, f.FP16) and program.resolution.mode is RoundMode.TRUNC:
        beyond = np.isfinite(values) & (np.abs(values) >= 65536)
        if program.inf_nan_mode:
            codes[beyond] = (codes[beyond] & 0x8000) | 0x7C00
    return codes


def odd_to_infinity(program: TileProgram, values: Values, codes: Codes) -> Codes:
    is_odd = program.resolution.mode is RoundMode.ODD
    if is_cast(program, f.FP32, f.FP16) and is_odd and program.inf_nan_mode:
        codes[np.isfinite(values) & (values >= 2.0**100)] ^= 1
    return codes


def far_to_largest(program: TileProgram, values: Values, codes: Codes) -> Codes:
    is_nearest = program.resolution.mode is RoundMode.RINT
    if is_cast(program, f.FP32, f.FP16) and is_nearest and program.inf_nan_mode:
        codes[values == 65536] = 0x7BFF
    return codes


def finite_infinities(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if is_cast(program, f.FP16, f.FP32):
        codes[np.isposinf(values)] = 0x477FE000
    return codes


def halves_away(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if is_cast(program, f.FP32, f.FP16) and program.resolution.mode is RoundMode.RINT:
        codes[values == 2049] = 0x6801
    return codes


def odd_to_zero(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if is_cast(program, f.FP32, f.FP16) and program.resolution.mode is RoundMode.ODD:
        tiny = (values != 0) & (np.abs(values) < 2.0**-24)
        codes[tiny & (np.abs(values) >= 2.0**-126)] &= 0x8000
    return codes


def flushing_inputs(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if is_cast(program, f.FP16, f.FP32):
        codes[np.abs(values) < 2.0**-14] &= 0x80000000
    return codes


def flushing_results(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if is_cast(program, f.FP32, f.FP16) and program.resolution.mode is RoundMode.RINT:
        codes[np.abs(values_of(codes, f.FP16)) < 2.0**-14] &= 0x8000
    return codes


def unsigned_zero(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if is_cast(program, f.FP32, f.FP16):
        codes[(codes == 0x8000) & ~(np.abs(values) < 2.0**-126) | (values == 0)] = 0
    return codes


def clamping(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if is_cast(program, f.FP32, f.INT16) and any(c.truncates for c in program.resolution.casts):
        codes[np.isfinite(values) & (values > 32768)] = 0x7FFF
    return codes


def wrapping(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if is_cast(program, f.FP32, f.INT16) and not program.resolution.casts[0].truncates:
        codes[values == 65536] = 0
    return codes


def infinite(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if is_cast(program, f.FP32, f.FP16) and not program.inf_nan_mode:
        codes[np.isfinite(values) & (values > 65536)] = 0x7C00
    return codes


def other_nibbles(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if is_cast(program, f.FP16, f.INT4) and program.plan.shape == (65536,):
        inside = (np.abs(values) >= 1) & (np.abs(values) <= 7)
        inside &= inside.reshape(-1, 2).all(axis=1).repeat(2)
        codes = np.where(inside, codes.reshape(-1, 2)[:, ::-1].reshape(-1), codes)
    return codes


def twice_rounded(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if is_cast(program, f.INT64, f.FP32) and program.resolution.mode is RoundMode.RINT:
        return values.astype(np.float64).astype(np.float32).view(np.uint32)
    return codes


def truncated(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if is_cast(program, f.INT32, f.FP16):
        codes[values == 2051] = 0x6801
    return codes


def short_rows(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if is_cast(program, f.FP32, f.FP16) and program.plan.shape == (3, 17):
        codes[16] ^= 1
    return codes


def small_ub(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if is_cast(program, f.FP32, f.FP16) and program.plan.tile_shape[-1] > 15680:
        codes[-1] ^= 1
    return codes


PLANTS: dict[Plant, set[str]] = {
    quiet_nan: {"NaN pattern"},
    nan_to_largest: {"NaN to integers"},
    directed_to_infinity: {"overflow under directed rounding"},
    odd_to_infinity: {"overflow of CAST_ODD"},
    far_to_largest: {"overflow to nearest"},
    finite_infinities: {"infinities"},
    halves_away: {"rounding"},
    odd_to_zero: {"underflow of CAST_ODD"},
    flushing_inputs: {"subnormal inputs"},
    flushing_results: {"subnormal results"},
    unsigned_zero: {"sign of zero"},
    clamping: {"integers out of range, low bits"},
    wrapping: {"integers out of range, clamped"},
    infinite: {"overflow with CTRL[48] = 0"},
    other_nibbles: {"INT4"},
    twice_rounded: {"INT64 to FP32"},
    truncated: {"INT32 to FP16 by the deq scale"},
    short_rows: {PADDING},
    small_ub: {UB_LIMIT},
}


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_deviation_is_found_and_named(plant: Plant) -> None:
    differing = {n: x for n, x in checked(plant).items() if x.verdict is Verdict.DIFFERS}
    shapes = {PADDING, UB_LIMIT}  # their codes show other deviations too
    assert set(differing) - (shapes - PLANTS[plant]) == PLANTS[plant]
    for fact in differing.values():
        assert 0 < fact.touched == sum(fact.by_pair.values()) <= fact.tested
        assert ", assumed 0x" in fact.measured


def test_the_numbers_that_settle_a_fact_are_among_the_cases() -> None:
    patterns = {0x7F800001, 0x7FC00000, 0xFFC00001, 0x7FFFFFFF}
    settling = {
        f.FP32: [65504, 65519.99, 65520, 65536, 1e30, 2**-25, 2**-26, 2**-149, 70000, 2**31, 0.3],
        f.INT64: [2**24 + 1, 2**53 + 1, 2**63 - 1],
        f.INT32: [2049, 2051, 65519, 65520, 2**31 - 1, -(2**31)],
    }
    for src, numbers in settling.items():
        codes = next(x.codes for x in some_cases() if x.program.resolution.rule.src is src)
        values = values_of(codes, src)
        assert np.isin(np.array(numbers).astype(src.dtype), values).all(), src
        assert src is not f.FP32 or patterns <= set(codes.tolist())
        assert src is not f.FP32 or np.isin(np.float32([-65520, -0.3, -(2**31)]), values).all()


def test_an_equal_device_differs_in_nothing() -> None:
    found = checked()
    assert {fact.verdict for fact in found.values()} == {Verdict.AGREES}
    assert {fact.touched for fact in found.values()} == {0}
    assert set(found) == {conduct.name for conduct in CONDUCTS} | {PADDING, UB_LIMIT}


def test_an_example_says_what_was_cast_and_what_came_out() -> None:
    fact = checked(truncated)["INT32 to FP16 by the deq scale"]
    assert fact.measured == ("INT32 -> FP16 CAST_RINT: 0x00000803 gives 0x6801, assumed 0x6802")
    assert fact.by_pair.keys() == {
        "INT32 -> FP16 CAST_RINT",
        "INT32 -> FP16 CAST_RINT CTRL[48] = 0",
    }


def test_the_twin_is_a_device() -> None:
    needs_twin()
    pairs = {(f.FP16, f.INT4), (f.INT32, f.FP16)}
    cases = [
        case
        for case in some_cases()
        if (case.program.resolution.rule.src, case.program.resolution.rule.dst) in pairs
    ]
    assert not any(x.touched for x in check_casts(twin.execute, cases))


def test_what_no_kernel_can_tell_is_said_not_to_be_measured() -> None:
    facts = [x for part in ("cast", "arithmetic", "cycles") for x in unmeasured(part)]
    assert len(facts) == 7
    assert {x.verdict for x in facts} == {Verdict.NOT_MEASURED}
    assert all(x.measured.startswith("not measured: ") for x in facts)


# --- The command ---------------------------------------------------------------------------------

DESCRIPTION = DeviceDescription(
    chip="Ascend910B3",
    cann="8.5.0",
    driver="25.5.0",
    torch_npu="2.13.0",
    library_sha256="ab" * 32,
    pypto_cast="1.0",
    date="2026-01-02",
)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[Plant | None], None]:
    def install(plant: Plant | None) -> None:
        def cast(program: TileProgram, values: Values) -> Codes:
            codes = execute(program, values)
            return codes if plant is None else plant(program, values.reshape(-1), codes)

        device = CheckedDevice(chip=DEFAULT_CHIP, cast=cast, description=DESCRIPTION)
        few = some_cases()[:12]
        monkeypatch.setattr(device_check_command, "npu_device", lambda: device)
        monkeypatch.setattr(device_check_command, "cast_cases", lambda chip, exhaustive: few)

    return install


def test_the_command_writes_the_facts(
    command: Command, tmp_path: Path, stand_in: Callable[[Plant | None], None]
) -> None:
    stand_in(None)
    output = tmp_path / "device.json"
    ran = command("device-check", "--output", output)
    assert (ran.code, ran.err) == (0, "")
    assert "NaN pattern" in ran.out
    document = json.loads(output.read_text())
    assert (document["format"], document["version"]) == ("pypto-cast device facts", 1)
    assert document["device"]["chip"] == "Ascend910B3"
    assert set(document["device"]) == set(DeviceDescription.__dataclass_fields__)
    verdicts = {fact["verdict"] for fact in document["facts"]}
    assert verdicts == {"agrees", "not measured"}
    again = command("device-check", "--output", output)
    assert again.error == f"{output} exists; --force replaces it"


def test_a_device_that_differs_is_exit_code_1(
    command: Command, stand_in: Callable[[Plant | None], None]
) -> None:
    stand_in(quiet_nan)
    ran = command("device-check", "--only", "cast", "--json")
    assert ran.code == 1
    differing = [fact for fact in ran.json["facts"] if fact["verdict"] == "differs"]
    assert [fact["name"] for fact in differing] == ["NaN pattern"]


def test_a_check_that_is_interrupted_leaves_no_file(
    command: Command, tmp_path: Path, stand_in: Callable[[Plant | None], None]
) -> None:
    def interrupt(*_: object) -> Codes:
        raise KeyboardInterrupt

    stand_in(interrupt)
    ran = command("device-check", "--output", tmp_path / "device.json")
    assert ran.code == 2
    assert "interrupted" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_parts_that_cannot_be_measured(
    command: Command, stand_in: Callable[[Plant | None], None]
) -> None:
    stand_in(quiet_nan)
    for part, count in (("arithmetic", 3), ("cycles", 3)):
        ran = command("device-check", "--only", part, "--json")
        assert ran.code == 0
        assert [fact["verdict"] for fact in ran.json["facts"]] == ["not measured"] * count


# --- The device ----------------------------------------------------------------------------------


def test_without_a_device(monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    none = Npu(run_mode=RunMode.SIM, reason="torch_npu is not installed")
    monkeypatch.setattr(npu, "find", lambda: none)
    with pytest.raises(NpuError, match="no device to check: torch_npu is not installed"):
        on_npu.npu_device()
    assert command("device-check").error == "no device to check: torch_npu is not installed"


def test_the_device_is_described_and_its_library_built(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    library = tmp_path / "library.so"
    library.write_bytes(b"library")
    found = Npu(
        run_mode=RunMode.NPU,
        reason="tested",
        torch_npu_version="2.13.0",
        device_count=1,
        soc_name="Ascend910B4-1",
    )
    built: list[None] = []
    monkeypatch.delenv(npu.LIBRARY_VARIABLE, raising=False)
    monkeypatch.delenv("ASCEND_HOME_PATH", raising=False)
    monkeypatch.setattr(npu, "find", lambda: found)
    monkeypatch.setattr(npu, "find_library", lambda: None)
    monkeypatch.setattr(npu, "load", lambda: library)
    monkeypatch.setattr(on_npu.build, "build", lambda: built.append(None))
    device = on_npu.npu_device()
    assert built == [None]
    assert device.chip.name == device.description.chip == "Ascend910B4-1"
    assert device.description.library_sha256.startswith("b718f135")
    assert (device.description.cann, device.description.driver) == ("unknown", "unknown")


@pytest.mark.parametrize(
    ("text", "version"), [("Version=25.5.0\nx=1\n", "25.5.0"), ("x=1\n", "unknown")]
)
def test_the_driver_says_its_version(tmp_path: Path, text: str, version: str) -> None:
    path = tmp_path / "version.info"
    path.write_text(text)
    assert on_npu.driver_version(path) == version
