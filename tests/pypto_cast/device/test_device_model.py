"""A facts file is followed: casts, intervals and costs are those of the device that it is about."""

from __future__ import annotations

import copy
import importlib
import json
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from support.devices.planted_devices import (
    DESCRIPTION,
    Plant,
    checked,
    directed_to_infinity,
    flushing_inputs,
    flushing_results,
    halves_away,
    infinite,
    nan_to_largest,
    odd_to_zero,
    planted,
    quiet_nan,
    some_cases,
    unsigned_zero,
)
from support.environment.command import Command, command

import pypto_cast as pypto
from pypto_cast.device.device_model import (
    DeviceFactsWarning,
    cast_result_facts,
    model_from,
    result_facts,
)
from pypto_cast.device.facts import Agreement, DeviceFact, DeviceFacts
from pypto_cast.options.context import current
from simulator import arithmetic
from simulator.arithmetic import DEFAULT, DOCUMENTED, IEEE, OPERATIONS, Enclosure
from simulator.arithmetic.interval import Interval
from simulator.arithmetic.trust import (
    ASSUME_GRADUAL_UNDERFLOW,
    ASSUME_NAN_PATTERN,
    ASSUME_RNE,
    ASSUME_SIGN_OF_ZERO,
    ASSUME_SUM_ORDER,
    EXP_BOUND,
)
from simulator.corrections import NO_CORRECTIONS
from simulator.machine.execute import execute
from simulator.numbers import formats as f
from simulator.numbers.convert import values_of
from tiling.chips import A2_A3
from tiling.cost import DEFAULT_COST_SET

__all__ = ["command"]

FOLLOWED = [
    quiet_nan,
    nan_to_largest,
    directed_to_infinity,
    odd_to_zero,
    flushing_inputs,
    flushing_results,
    unsigned_zero,
]


def facts_of(*facts: DeviceFact) -> DeviceFacts:
    return DeviceFacts(device=DESCRIPTION, facts=facts)


def file_of(folder: Path, *facts: DeviceFact) -> Path:
    path = folder / "device.json"
    path.write_bytes(facts_of(*facts).to_json())
    return path


def measured(name: str, **fields: object) -> DeviceFact:
    known = {"assumed": "", "measured": "", "verdict": Agreement.AGREES, "tested": 9}
    return DeviceFact(**{"name": name, **known, **fields})


@pytest.mark.sampled(8)
@pytest.mark.parametrize("plant", FOLLOWED, ids=lambda plant: plant.__name__)
def test_casts_are_those_of_the_device(plant: Plant) -> None:
    followed = model_from(facts_of(*checked(plant).values()))
    assert followed.corrections.by_conversion
    assert all(" OFF" in line for line in followed.unfollowed)
    touched = 0
    for case in some_cases():
        if case.about is not None or len(case.cast.conversions) > 1:
            continue
        values = values_of(case.codes, case.cast.src)
        device = planted(plant)(case.program, values)
        got = execute(case.program, values, corrections=followed.corrections)
        np.testing.assert_array_equal(got, device)
        touched += int(np.count_nonzero(got != execute(case.program, values)))
    assert touched > 0


def test_both_fidelities_follow(tmp_path: Path) -> None:
    path = file_of(tmp_path, *checked(directed_to_infinity).values())
    x = pypto.from_numpy(np.float32([[1e30, -1e30, 65520.0, 1.5, np.nan]]))
    for fidelity in ("fast", "instructions"):
        with pypto.options(vec_tile_shapes=[1, 16], facts=path, fidelity=fidelity):
            made = pypto.cast(x, pypto.DT_FP16, pypto.CastMode.CAST_TRUNC).numpy()
        assert made.view(np.uint16).tolist() == [[0x7C00, 0xFC00, 0x7BFF, 0x3E00, 0x7FFF]]


def test_the_option_follows_a_file_and_ends(tmp_path: Path) -> None:
    path = file_of(tmp_path, *checked(quiet_nan).values())
    x = pypto.from_numpy(np.float32([[np.nan, 1.0]]))

    def codes() -> list[int]:
        with pypto.options(vec_tile_shapes=[1, 16]):
            made = pypto.cast(x, pypto.DT_FP16).numpy()
        return made.view(np.uint16).reshape(-1).tolist()

    assert codes() == [0x7FFF, 0x3C00]
    with pypto.options(facts=path):
        assert codes() == [0x7E00, 0x3C00]
        with pypto.options(engine="twin"):
            assert codes() == [0x7E00, 0x3C00]
        with pypto.options(facts=""):
            assert codes() == [0x7FFF, 0x3C00]
    assert codes() == [0x7FFF, 0x3C00]


def test_checkpoints_follow(tmp_path: Path, command: Command) -> None:
    pytest.importorskip("safetensors", reason="safetensors is not installed (extra `cli`)")
    numpy_files = importlib.import_module("safetensors.numpy")
    path = file_of(tmp_path, *checked(quiet_nan).values())
    source, output = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    numpy_files.save_file({"x": np.float32([np.nan, 1.0])}, source)
    with pypto.options(facts=path):
        assert command("checkpoint", source, "--to", "fp16", "-o", output).code == 0
    assert numpy_files.load_file(output)["x"].view(np.uint16).tolist() == [0x7E00, 0x3C00]


@pytest.mark.slow
def test_programs_follow(tmp_path: Path) -> None:
    path = file_of(tmp_path, *checked(quiet_nan).values())
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np, pypto\n"
        "pypto.set_vec_tile_shapes(1, 16)\n"
        "y = pypto.cast(pypto.from_numpy(np.float32([[np.nan]])), pypto.DT_FP16)\n"
        "print(hex(y.numpy().view(np.uint16)[0, 0]))\n"
    )
    words = [sys.executable, "-m", "pypto_cast", "run", "--facts", str(path), str(program)]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    assert ran.stdout == "0x7e00\n"
    assert "measured in part on Ascend910B3, 2026-01-02: 26 of 42 facts" in ran.stderr


def test_options_with_facts_are_copied_and_pickled(tmp_path: Path) -> None:
    with pypto.options(facts=file_of(tmp_path, *checked(quiet_nan).values())) as context:
        for other in (copy.deepcopy(context), pickle.loads(pickle.dumps(context))):
            assert other.facts.facts == context.facts.facts
            assert set(other.corrections.by_conversion) == set(context.corrections.by_conversion)


def test_the_chip_is_the_measured_one(tmp_path: Path) -> None:
    path = file_of(tmp_path, measured("rounding"))
    with pypto.options(chip="Ascend910B1"), pypto.options(facts=path) as context:
        assert context.chip.name == "Ascend910B3"
    for wrong, error, text in (
        ({"facts": path, "chip": "Ascend910B1"}, ValueError, "of Ascend910B3, not of Ascend910B1"),
        ({"facts": 1}, TypeError, "option facts must be the path of a facts file, not 1"),
    ):
        with pytest.raises(error, match=text), pypto.options(**wrong):
            pass


def test_no_facts_change_nothing() -> None:
    context = current()
    assert context.corrections is NO_CORRECTIONS
    assert context.cost_set is DEFAULT_COST_SET


@pytest.mark.parametrize("plant", [halves_away, infinite], ids=lambda plant: plant.__name__)
def test_what_is_not_followed_is_said(plant: Plant, tmp_path: Path) -> None:
    path = file_of(tmp_path, *checked(plant).values())
    said = "does not follow the device in .*FP32 -> FP16"
    with pytest.warns(DeviceFactsWarning, match=said), pypto.options(facts=path):
        pass


# --- Intervals -----------------------------------------------------------------------------------


def test_ends_of_intervals_follow() -> None:
    followed = model_from(facts_of(*checked(directed_to_infinity).values()))
    chain = next(x.cast.conversions for x in some_cases() if "FP16 CAST_TRUNC" in str(x.cast))
    low, high = np.float32([1.0, 7e4]), np.float32([7e4, 8e4])
    cause = np.zeros(2, np.uint16)
    x = Enclosure(values=low, interval=Interval(low=low, high=high, may_be_nan=None, cause=cause))
    got = arithmetic.cast(chain, x, corrections=followed.corrections)
    assert (got.low.tolist(), got.high.tolist()) == ([1.0, np.inf], [np.inf, np.inf])


def test_a_cast_that_is_not_monotone_leaves_everything_open() -> None:
    name = "FP32 -> INT16 CAST_TRUNC"
    fact = measured(
        "integers out of range, clamped",
        verdict=Agreement.DIFFERS,
        touched=1,
        by_pair={name: 1},
        results={name: {"positive": 0x8000, "negative": 0x8000}},
    )
    followed = model_from(facts_of(fact))
    chain = next(iter(followed.corrections.by_conversion))
    low, high = np.float32([1.0, 5.0]), np.float32([7e4, 5.0])
    cause = np.zeros(2, np.uint16)
    x = Enclosure(values=low, interval=Interval(low=low, high=high, may_be_nan=None, cause=cause))
    got = arithmetic.cast((chain,), x, corrections=followed.corrections)
    assert (got.low.tolist(), got.high.tolist()) == ([-32768, 5], [32767, 5])


def test_bounds_of_errors_follow() -> None:
    vexp = measured("vexp", ulps={"FP32": 3, "FP16": 1}, exhausted=["FP16"])
    sampled = measured("vln", ulps={"FP32": 0})
    trust = model_from(facts_of(vexp, sampled)).trusting(DEFAULT)
    exp, log = OPERATIONS["exp"], OPERATIONS["log"]
    assert (exp.ulps(f.FP32, trust), exp.ulps(f.FP16, trust)) == (3, 1)
    assert log.ulps(f.FP32, trust) == log.ulps(f.FP32, DEFAULT)  # a sample narrows no bound
    assert EXP_BOUND.ulps[f.FP32] == exp.ulps(f.FP32, DEFAULT) == 2


def test_measured_errors_come_before_what_is_trusted() -> None:
    trust = model_from(facts_of(measured("vdiv", ulps={"FP32": 1}))).trusting(IEEE)
    assert OPERATIONS["div"].ulps(f.FP32, trust) == 1


def test_assumptions_stand_and_fall_with_the_facts() -> None:
    rounding = [measured(name, ulps={"FP32": 0}) for name in ("vadd", "vsub", "vmul")]
    agreeing = model_from(facts_of(*rounding, measured("order of vcadd")))
    assert agreeing.trusting(DOCUMENTED).assumed == {ASSUME_RNE, ASSUME_SUM_ORDER}
    differing = [
        measured(name, verdict=Agreement.DIFFERS, touched=1, by_pair={"FP32": 1})
        for name in ("order of vcadd", "subnormals in arithmetic")
    ]
    left = model_from(facts_of(*rounding[:1], *differing)).trusting(DEFAULT).assumed
    assert ASSUME_SUM_ORDER not in left
    assert ASSUME_GRADUAL_UNDERFLOW not in left
    assert ASSUME_RNE in left


def test_a_measured_rule_of_casts_is_no_choice_any_more() -> None:
    """Nor is one that the device has its own way of, which casts follow."""
    agreeing = model_from(facts_of(measured("NaN pattern"), measured("subnormal inputs")))
    assert agreeing.trusting(DOCUMENTED).assumed == {ASSUME_NAN_PATTERN}
    name = "FP16 -> FP32"
    for codes, is_followed in (({"negative": 0}, True), ({"negative": None}, False)):
        differs = {"verdict": Agreement.DIFFERS, "touched": 1, "by_pair": {name: 1}}
        own = model_from(facts_of(measured("sign of zero", **differs, results={name: codes})))
        assert (own.unfollowed == ()) is is_followed
        assert (ASSUME_SIGN_OF_ZERO in own.trusting(DOCUMENTED).assumed) is is_followed
        assert (ASSUME_SIGN_OF_ZERO in own.trusting(DEFAULT).assumed) is is_followed


def test_a_part_of_the_cases_makes_nothing_an_assumption() -> None:
    """A part that differs is enough for it to fall."""
    names = ("order of vcadd", "NaN pattern", "subnormals in arithmetic")
    begun = model_from(facts_of(*(measured(name, left=3) for name in names)))
    assert begun.trusting(DOCUMENTED).assumed == DOCUMENTED.assumed
    assert begun.trusting(DEFAULT).assumed == DEFAULT.assumed
    differs = {"verdict": Agreement.DIFFERS, "touched": 1, "by_pair": {"vcadd FP32": 1}}
    fallen = model_from(facts_of(measured(names[0], left=3, **differs))).trusting(DEFAULT)
    assert DEFAULT.assumed - fallen.assumed == {ASSUME_SUM_ORDER}


@pypto.jit
def exponential(
    x: pypto.Tensor[[4, 16], pypto.DT_FP32], y: pypto.Tensor[[4, 16], pypto.DT_FP32]
) -> None:
    pypto.set_vec_tile_shapes(4, 16)
    y[:] = pypto.exp(x)


def test_certainty_says_measured(tmp_path: Path, command: Command) -> None:
    x, y = np.ones((4, 16), np.float32), np.zeros((4, 16), np.float32)
    path = file_of(tmp_path, measured("vexp", ulps={"FP32": 3}))
    assumed = exponential.certainty(x, y)
    with pypto.options(facts=path):
        found = exponential.certainty(x, y)
    assert str(found).endswith("measured in part on Ascend910B3, 2026-01-02: 1 of 42 facts")
    assert "measured" not in str(assumed)
    assert (found.low["y"] < assumed.low["y"]).all()
    assert (found.high["y"] > assumed.high["y"]).all()
    np.save(tmp_path / "x.npy", x)
    ran = command("cast", tmp_path / "x.npy", "--to", "fp16", "--facts", path)
    assert "measured in part on Ascend910B3, 2026-01-02: 0 of 26 facts" in ran.out


def test_only_all_facts_of_a_result_make_it_measured() -> None:
    casts = [measured(name) for name in cast_result_facts(A2_A3)]
    found = model_from(facts_of(*casts))
    assert found.standing(()) == "measured on Ascend910B3, 2026-01-02"
    assert str(found) == "measured in part on Ascend910B3, 2026-01-02: 26 of 42 facts"
    others = [
        measured(name) for name in result_facts(A2_A3) if name not in cast_result_facts(A2_A3)
    ]
    assert str(model_from(facts_of(*casts, *others))) == "measured on Ascend910B3, 2026-01-02"
    begun = [measured("rounding", left=1), *(x for x in casts if x.name != "rounding")]
    assert "25 of 26 facts" in model_from(facts_of(*begun)).standing(())


# --- Costs ---------------------------------------------------------------------------------------


def test_costs_follow(tmp_path: Path, command: Command) -> None:
    path = file_of(tmp_path, measured("cycles", figures={"read_bytes_per_cycle": 1.0}))
    with pypto.options(facts=path):
        slow = pypto.tune([64, 64], pypto.DT_FP32, pypto.DT_FP16)
    fast = pypto.tune([64, 64], pypto.DT_FP32, pypto.DT_FP16)
    assert slow.parameters.read_bytes_per_cycle == 1.0
    assert slow.candidates[0].estimate.cycles > fast.candidates[0].estimate.cycles
    asked = ["--shape", "64,64", "--from", "fp32", "--to", "fp16"]
    shown = command("tune", *asked, "--facts", path)
    assert "figures measured: device-check on Ascend910B3, 2026-01-02" in shown.out
    assert "no figure was measured" in command("tune", *asked).out


def test_a_figure_that_differs_and_that_no_cost_set_takes_is_named(tmp_path: Path) -> None:
    """Copies that take as long whatever their size have no bytes a cycle."""
    rates = {"read_bytes_per_cycle": 1, "read_startup_cycles": 1}
    copies = measured(
        "cycles of copies",
        verdict=Agreement.DIFFERS,
        touched=2,
        by_pair=rates,
        figures={"read_startup_cycles": 900.0},
    )
    said = r"in cycles of copies \(read_bytes_per_cycle\)$"
    with (
        pytest.warns(DeviceFactsWarning, match=said),
        pypto.options(facts=file_of(tmp_path, copies)),
    ):
        pass


def test_impossible_figures_are_refused_by_name(tmp_path: Path) -> None:
    for figures, text in (
        ({"read_bytes_per_cycle": 0.0}, r"device\.json: cost set .* must be positive, is 0"),
        ({"spin_cycles": 1.0}, r"device\.json: no figure spin_cycles; known: "),
    ):
        path = file_of(tmp_path, measured("cycles", figures=figures))
        with pytest.raises(ValueError, match=text), pypto.options(facts=path):
            pass


def test_a_file_that_is_cut_is_refused(tmp_path: Path) -> None:
    path = file_of(tmp_path, measured("rounding"))
    path.write_bytes(path.read_bytes()[:-9])
    says = pytest.raises(ValueError, match=r"device\.json is no whole facts file")
    with says, pypto.options(facts=path):
        pass
    path.write_text(json.dumps({"format": "pypto-cast device facts", "version": 1}))
    with (
        pytest.raises(ValueError, match=r"device\.json is of version 1"),
        pypto.options(facts=path),
    ):
        pass


def test_agreeing_facts_give_no_warning(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pypto.options(facts=file_of(tmp_path, *checked().values())) as context:
            assert not context.corrections.by_conversion
