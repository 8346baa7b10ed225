"""Every case runs several times: what a device does not repeat is told, and corrects nothing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support.devices.flawed_devices import (
    Flaw,
    bad_position,
    broken_core,
    flaky,
    flaky_arithmetic,
    other_core,
)
from support.devices.planted_devices import (
    DESCRIPTION,
    checked,
    other_nibbles,
    planted,
    quiet_nan,
    some_cases,
)
from support.devices.planted_instructions import StandIn

from ascend_kernels.program import TileProgram
from pypto_cast.device.arithmetic_check import arithmetic_cases, check_arithmetic
from pypto_cast.device.cases import NIBBLES, CheckCase, cast_cases
from pypto_cast.device.check import CastOnDevice, check_casts
from pypto_cast.device.core_state_check import check_control, check_copy_tails
from pypto_cast.device.cycles_check import CLOCK, check_cycles
from pypto_cast.device.device_model import model_from
from pypto_cast.device.facts import Agreement, DeviceFact, DeviceFacts
from pypto_cast.device.repetition import Layout, Stability, observe
from simulator.machine.isa import CastRepeat, DataCopyPad, GmAddress
from simulator.numbers import formats as f
from simulator.numbers.formats import Codes
from tiling.chips import DEFAULT_CHIP
from tiling.plan import plan
from tiling.ub import ElementBits


def fp32_to_fp16() -> list[CheckCase]:
    """The codes of FP32 to FP16 in two modes: on many cores."""
    modes = {"FP32 -> FP16 CAST_RINT", "FP32 -> FP16 CAST_TRUNC"}
    return [x for x in some_cases() if x.about is None and str(x.cast) in modes]


def differing(facts: tuple[DeviceFact, ...]) -> dict[str, DeviceFact]:
    return {fact.name: fact for fact in facts if fact.verdict is Agreement.DIFFERS}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("flaw", "stability", "words"),
    [
        (broken_core(1), "core-dependent", "core-dependent: core 1"),
        (bad_position(100), "position-dependent", "position-dependent: position 100"),
        (flaky(), "unstable", "unstable"),
    ],
    ids=["broken core", "bad position", "flaky unit"],
)
def test_results_that_are_not_repeated_correct_nothing(
    flaw: Flaw, stability: str, words: str
) -> None:
    facts = check_casts(flaw(planted(quiet_nan)), fp32_to_fp16())
    found = differing(facts)
    varying = {name: fact for name, fact in found.items() if fact.varying}
    assert {fact.stability for fact in varying.values()} == {stability}
    assert {text for fact in varying.values() for text in fact.varying.values()} == {words}
    followed = model_from(DeviceFacts(device=DESCRIPTION, facts=facts))
    unstable = {(name, cast) for name, fact in found.items() for cast in fact.varying}
    assert unstable
    assert {tuple(line.split(": ", 1)) for line in followed.unfollowed} >= unstable
    corrected = {name for name, fact in found.items() if set(fact.by_pair) - set(fact.varying)}
    assert corrected <= {"NaN pattern"}


def test_a_broken_core_hides_no_stable_fact() -> None:
    """Of the other cores' results the device's own way is as it is."""
    facts = check_casts(planted(quiet_nan), fp32_to_fp16())
    assert {name: fact.stability for name, fact in differing(facts).items()} == {
        "NaN pattern": "stable"
    }
    assert model_from(DeviceFacts(device=DESCRIPTION, facts=facts)).unfollowed == ()


@pytest.mark.slow
def test_nibbles_in_the_other_order_are_one_fact() -> None:
    found = {n: x for n, x in checked(other_nibbles).items() if x.verdict is Agreement.DIFFERS}
    assert list(found) == [NIBBLES]
    assert found[NIBBLES].measured.startswith("the first in the high nibble; FP16 -> INT4")
    followed = model_from(DeviceFacts(device=DESCRIPTION, facts=tuple(found.values())))
    assert not followed.corrections.by_conversion
    assert all(line.startswith(f"{NIBBLES}: ") for line in followed.unfollowed)


def test_each_case_runs_on_other_cores_at_other_positions_and_in_two_orders() -> None:
    runs: list[np.ndarray] = []

    def counting(program: TileProgram, values: np.ndarray) -> Codes:
        runs.append(values.reshape(-1).copy())
        return planted()(program, values)

    case = fp32_to_fp16()[0]
    check_casts(counting, [case])
    layout = Layout.of_plan(case.program.plan)
    first = runs[0].view(np.uint32)
    assert len(runs) == 5
    assert (first == runs[1].view(np.uint32)).all()
    assert (first[::-1] == runs[4].view(np.uint32)).all()
    orders = [np.arange(first.size), *layout.orders()]
    at = [np.argsort(order) for order in orders]
    cores, positions = ([of[each] for each in at] for of in (layout.cores, layout.positions))
    assert (cores[1] != cores[0]).mean() > 0.95
    assert (positions[1] == positions[0]).mean() > 0.95
    assert (positions[2] != positions[0]).all()


@pytest.mark.slow
def test_shapes_have_what_they_are_about() -> None:
    kinds: dict[str, set[str]] = {}
    axes: dict[str, set[int]] = {}
    for case in cast_cases(DEFAULT_CHIP, random_codes=0):
        if case.about is None or case.cast.src is not f.FP32 or case.cast.dst is not f.FP16:
            continue
        assert len(case.program.cores) > 1
        axes.setdefault(case.about, set()).add(len(case.program.plan.shape))
        found = kinds.setdefault(case.about, set())
        instructions = map(case.program.instructions, case.program.cores)
        for each in itertools.chain.from_iterable(instructions):
            if isinstance(each, CastRepeat):
                found.add("repeats")
            if isinstance(each, DataCopyPad) and isinstance(each.src, GmAddress):
                found |= {"misaligned"} if each.src.offset_bytes % 32 else set()
            if isinstance(each, DataCopyPad) and each.block_count > 1:
                found.add("strided" if each.src_stride or each.dst_stride else "blocks")
    assert {name for name, found in kinds.items() if "strided" in found} == {
        "strided copies of several blocks",
        "GM addresses within a block",
        "three and four axes",
        "tails of tiles",
        "Cast by repeats",
    }
    assert [name for name, found in kinds.items() if "repeats" in found] == ["Cast by repeats"]
    assert "misaligned" in kinds["GM addresses within a block"]
    assert axes["three and four axes"] == {3, 4}


def test_the_layout_is_that_of_the_plan() -> None:
    made = plan((7, 5, 40), (2, 3, 32), ElementBits(src=32, dst=16), DEFAULT_CHIP)
    layout = Layout.of_plan(made)
    cores, positions = np.zeros((2, *made.shape), np.intp)
    for core in range(made.busy_cores):
        for tile in made.tiles(core):
            region = tuple(slice(a, a + n) for a, n in zip(tile.offset, tile.shape, strict=True))
            cores[region] = core
            positions[region] = np.arange(192).reshape(2, 3, 32)[
                tuple(slice(n) for n in tile.shape)
            ]
    np.testing.assert_array_equal(layout.cores, cores.reshape(-1))
    np.testing.assert_array_equal(layout.positions, positions.reshape(-1))


def test_a_result_that_depends_on_its_neighbour() -> None:
    layout = Layout.of_passes(64, 16, 4)
    beside = np.arange(64) ^ 1
    expected = np.arange(64, dtype=np.uint8)
    seen = observe(lambda order: order[beside].astype(np.uint8), lambda: layout, expected)
    assert seen.stability(np.ones(64, bool)).startswith("position-dependent")
    assert seen.stability(np.zeros(64, bool)) == "stable"


def test_stabilities_are_ordered_from_the_best_to_the_worst() -> None:
    assert Stability.worst([]) == "stable"
    assert Stability.worst(["stable", "unstable", "core-dependent: core 1"]) == "unstable"
    assert Stability.worst(["position-dependent: x", "core-dependent: y"]) == "core-dependent: y"


# --- What no cast tells --------------------------------------------------------------------------


def test_arithmetic_that_is_not_repeated_bounds_no_error() -> None:
    cases = [x for x in arithmetic_cases(random_codes=2000) if x.instruction in ("vexp", "vcadd")]
    facts = check_arithmetic(flaky_arithmetic(StandIn(), 1000), cases, DEFAULT_CHIP)
    found = {fact.name: fact for fact in facts if fact.varying}
    assert {"vexp", "order of vcadd"} <= set(found)
    assert {fact.stability for fact in found.values()} == {"unstable"}
    followed = model_from(DeviceFacts(device=DESCRIPTION, facts=facts))
    assert not followed._ulps().get(("exp", f.FP16))
    assert "vexp: vexp FP16" in followed.unfollowed


def test_a_core_that_is_not_as_the_others_is_named() -> None:
    device = other_core(StandIn(), 7, ("ctrl_read", "copy_tail", "clock_barrier"))
    for fact in (*check_control(device, DEFAULT_CHIP), check_copy_tails(device, DEFAULT_CHIP)):
        assert (fact.verdict, fact.stability) == (Agreement.DIFFERS, "core-dependent")
        assert set(fact.varying.values()) == {"core-dependent: core 7"}


def test_the_clock_is_compared_with_the_hosts() -> None:
    right = StandIn()
    (fact,) = check_cycles(right, DEFAULT_CHIP, [CLOCK], right.now)
    assert (fact.verdict, fact.measured) == (Agreement.AGREES, "50 MHz")
    wrong = StandIn()
    facts = check_cycles(wrong, DEFAULT_CHIP, now=lambda: wrong.now() * 2)
    assert list(differing(facts)) == [CLOCK]
    followed = model_from(DeviceFacts(device=DESCRIPTION, facts=facts))
    assert followed.cost_set is None  # all cycles rest on the clock
    assert f"{CLOCK}: MHz" in followed.unfollowed


def test_times_that_are_not_repeated_are_no_figures() -> None:
    device = StandIn()
    count = itertools.count()

    def restless(program: object) -> np.ndarray:
        found = device(program)
        if program.kernel == "clock_read":
            found.view(np.uint64)[::4] *= 1 + next(count) % 3
        return found

    facts = check_cycles(restless, DEFAULT_CHIP, now=device.now)
    found = {fact.name: fact for fact in facts}
    assert found["cycles of copies"].stability == "unstable"
    costs = model_from(DeviceFacts(device=DESCRIPTION, facts=facts)).cost_set
    assert costs is not None
    assert "read_bytes_per_cycle" not in {
        name for name, source in costs.sources.items() if "device-check" in source.text
    }


def test_a_device_that_only_differs_by_shape_is_found_by_shape() -> None:
    def wrong_strides(program: TileProgram, values: np.ndarray, codes: Codes) -> Codes:
        if program.plan.shape == (24, 192):
            codes[5] ^= 1
        return codes

    device: CastOnDevice = planted(wrong_strides)
    some = [x for x in some_cases() if x.about is not None and x.cast.src is f.INT64]
    assert list(differing(check_casts(device, some))) == ["strided copies of several blocks"]
