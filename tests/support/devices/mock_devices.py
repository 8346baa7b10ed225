"""Mock devices, a row each: their deviation, and what a check must make of it.

A deviation is *followed* if the model of the measured facts gives the device's own results, *named*
if a DeviceFactsWarning tells it, or the file of a check that ended early. *Wrong* is a model that
gives results which are neither assumed nor the device's, *silent* a deviation that no fact tells.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from support.devices import flawed_devices as flawed
from support.devices import planted_devices as plants
from support.devices.checked_devices import FEW_STEPS, SmallPlan, check_of, stand_in, write
from support.devices.mock_devices_950 import CASTS_950, CHECKS_950, CHIP_950, cases_950
from support.devices.planted_devices import (
    DESCRIPTION,
    Plant,
    Where,
    gives,
    is_cast,
    planted,
    some_cases,
)
from support.devices.planted_instructions import (
    StandIn,
    flushed,
    halves,
    last_first,
    last_greatest,
    later_lists_first,
    lost_score,
    three_off,
    truncated,
)

from ascend_kernels import npu
from ascend_kernels.build import BuildError
from ascend_kernels.program import TileProgram
from pypto_cast.device.arithmetic_check import ArithmeticCase, arithmetic_cases, check_arithmetic
from pypto_cast.device.cases import ROUTES, SATMODE, CheckCase
from pypto_cast.device.check import CastOnDevice, check_casts
from pypto_cast.device.check_run import DeviceGoneError
from pypto_cast.device.core_state_check import (
    check_control,
    check_copy_tails,
    check_integer_sums,
)
from pypto_cast.device.cycles_check import (
    CAST_PAIRS,
    CLOCK,
    COPIES,
    CYCLE_FACTS,
    GM_RATE,
    LOOP_PASS,
    SLOTS,
    SYNCHRONIZATION,
    TASK,
    check_cycles,
)
from pypto_cast.device.cycles_check import CASTS as CAST_CYCLES
from pypto_cast.device.device_model import (
    ARG_ORDER,
    AUTOCAST,
    MERGE_ORDER,
    SORT_ORDER,
    SORTED_SCORES,
    DeviceModel,
    model_from,
)
from pypto_cast.device.device_process import DeviceProcess
from pypto_cast.device.facts import Agreement, DeviceFact, DeviceFacts, read_facts
from pypto_cast.device.on_npu import CheckedDevice
from pypto_cast.device.sort_check import check_extremes, check_sorts
from simulator.machine.execute import execute
from simulator.numbers import formats as f
from simulator.numbers.convert import values_of
from simulator.numbers.formats import Codes, Format
from simulator.numbers.rounding import RoundMode
from tiling.chips import DEFAULT_CHIP, Chip
from tiling.cost import DEFAULT_COST_SET

Outcome = Literal["as assumed", "followed", "named", "wrong", "silent"]
OUTCOMES: Final[tuple[Outcome, ...]] = ("as assumed", "followed", "named", "wrong", "silent")
_SHAPED: Final = (f.FP32, f.FP16), (f.FP16, f.INT4)
"""Pairs of which the shapes are tried too."""
Values = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Mock:
    """A device.

    Attributes:
        name: what it does otherwise.
        outcome: what must become of that.
        cast: its casts; None: as assumed.
        check: opens what runs its other kernels; None: as assumed, and not asked.
        lost: a whole check that its device does not survive: the facts that its file has.
        slow_host: how many times as fast the host's clock is.
        facts: those that must differ; empty: any.
        chip: what it is; of a 950 cycles are not asked.
    """

    name: str
    outcome: Outcome
    cast: CastOnDevice | None = None
    check: Callable[[], Any] | None = None
    lost: Callable[[Path], DeviceFacts] | None = None
    slow_host: float = 1.0
    facts: set[str] = field(default_factory=set)
    chip: Chip = DEFAULT_CHIP


def _shape(shape: tuple[int, ...], src: Format = f.FP32, dst: Format = f.FP16) -> Plant:
    """A cast whose last result is wrong in one shape."""

    def plant(program: TileProgram, values: Values, codes: Codes) -> Codes:
        if is_cast(program, src, dst) and program.plan.shape == shape:
            codes[-1] ^= 1
        return codes

    return plant


def _repeats(program: TileProgram, values: Values, codes: Codes) -> Codes:
    if is_cast(program, f.FP32, f.FP16) and program.plan.shape[-1:] == (14,):
        codes[-1] ^= 1
    return codes


def _all_nan(program: TileProgram, values: Values, codes: Codes) -> Codes:
    fmt = program.resolution.rule.dst
    codes[:] = getattr(fmt, "nan_code", None) or 0
    return codes


def _both(*found: Plant) -> Plant:
    def plant(program: TileProgram, values: Values, codes: Codes) -> Codes:
        for each in found:
            codes = each(program, values, codes)
        return codes

    return plant


def _nan(values: Values, _: Codes) -> npt.NDArray[np.bool_]:
    return np.isnan(values)


def _beyond(least: float, sign: int = 1) -> Where:
    return lambda values, _: np.isfinite(values) & (values * sign >= least)


_RINT, _FLOOR, _CEIL, _TRUNC = RoundMode.RINT, RoundMode.FLOOR, RoundMode.CEIL, RoundMode.TRUNC
_NEGATIVE_NAN = gives(f.FP32, f.FP16, lambda v, _: np.isnan(v) & np.signbit(v), 0xFFFF)
_NAN_TO_LEAST = gives(f.FP32, f.INT16, _nan, 0x8000, inf_nan=None)
_INF_TO_ZERO = gives(f.FP32, f.INT16, lambda v, _: np.isinf(v), 0, inf_nan=None)
_CLAMP_LOW = gives(f.FP32, f.INT16, _beyond(40000.0, -1), 0x8001, inf_nan=None)
_RINT_TO_MOST = gives(f.FP32, f.FP16, _beyond(65520.0), 0x7BFF, (_RINT, RoundMode.ROUND))
_FLOOR_TO_INF = gives(f.FP32, f.FP16, _beyond(65536.0), 0x7C00, (_FLOOR,))
_INF_TO_NAN = gives(f.FP16, f.FP32, lambda v, _: np.isinf(v), 0x7FFFFFFF)
_INT_MOST = gives(f.INT32, f.FP16, _beyond(65520), 0x7BFF, (_RINT,))
_OFF_BY_ONE = gives(f.INT64, f.FP32, lambda v, _: v == 2**24 + 1, 0x4B800001)

_STABLE: Final[dict[str, tuple[Plant, Outcome]]] = {
    "quiet NaN": (plants.quiet_nan, "followed"),
    "sign of NaN kept": (_NEGATIVE_NAN, "followed"),
    "NaN to the largest integer": (plants.nan_to_largest, "named"),
    "NaN to the least integer": (_NAN_TO_LEAST, "named"),
    "infinity to integer 0": (_INF_TO_ZERO, "named"),
    "infinity to a finite number": (plants.finite_infinities, "followed"),
    "infinity to NaN": (_INF_TO_NAN, "followed"),
    "TRUNC overflows to infinity": (plants.directed_to_infinity, "followed"),
    "FLOOR overflows to infinity": (_FLOOR_TO_INF, "followed"),
    "ODD overflows otherwise, far away": (plants.odd_to_infinity, "named"),
    "RINT overflows to the largest number": (_RINT_TO_MOST, "followed"),
    "RINT overflows otherwise at 65536": (plants.far_to_largest, "named"),
    "overflow to infinity with CTRL[48] = 0": (plants.infinite, "named"),
    "a tie away from zero": (plants.halves_away, "named"),
    "ODD underflows to zero": (plants.odd_to_zero, "followed"),
    "subnormal inputs flushed": (plants.flushing_inputs, "followed"),
    "subnormal results flushed": (plants.flushing_results, "followed"),
    "zero without a sign": (plants.unsigned_zero, "followed"),
    "low bits clamped": (plants.clamping, "named"),
    "clamped otherwise at 65536": (plants.wrapping, "named"),
    "clamped to another least integer": (_CLAMP_LOW, "named"),
    "nibbles in the other order": (plants.other_nibbles, "named"),
    "INT64 rounded twice": (plants.twice_rounded, "named"),
    "INT64 wrong at 2^24 + 1": (_OFF_BY_ONE, "named"),
    "deq scale wrong at 2051": (plants.truncated, "named"),
    "deq scale overflows to the largest": (_INT_MOST, "followed"),
    "padding": (_shape((6, 17)), "named"),
    "end of UB": (plants.small_ub, "named"),
    "32 rows": (_shape((64, 48)), "named"),
    "255 rows": (_shape((510, 24)), "named"),
    "strided copies": (_shape((24, 192)), "named"),
    "rows that begin within a block": (_shape((24, 180)), "named"),
    "three axes": (_shape((4, 6, 32)), "named"),
    "four axes": (_shape((4, 4, 6, 32)), "named"),
    "tails": (_shape((13, 23)), "named"),
    "Cast by repeats": (_repeats, "named"),
    "routes": (plants.other_routes, "named"),
    "shapes of INT4": (_shape((24, 192), f.FP16, f.INT4), "named"),
    "NaN for all": (_all_nan, "named"),
    "quiet NaN and flushed results": (_both(plants.quiet_nan, plants.flushing_results), "followed"),
    "quiet NaN and no sign of zero": (_both(plants.quiet_nan, plants.unsigned_zero), "followed"),
    "quiet NaN and a wrong tie": (_both(plants.quiet_nan, plants.halves_away), "named"),
    "other nibbles and NaN kept": (_both(_NEGATIVE_NAN, plants.other_nibbles), "named"),
    "flushed inputs and infinity to NaN": (_both(plants.flushing_inputs, _INF_TO_NAN), "followed"),
    "TRUNC to infinity, padding": (_both(plants.directed_to_infinity, _shape((6, 17))), "named"),
    "ODD to zero, RINT to the largest": (_both(plants.odd_to_zero, _RINT_TO_MOST), "followed"),
    "strided copies and tails": (_both(_shape((24, 192)), _shape((13, 23))), "named"),
}


def _three_off(a: Any, b: Any) -> Any:
    exact = a / b
    is_far = (np.abs(exact) > 1) & (np.abs(exact) < 1000)
    codes = f"u{exact.itemsize}"
    return (exact.view(codes) + 3 * is_far.astype(codes)).view(a.dtype)


def _as_numpy(terms: Any) -> Any:
    return np.sum(terms, axis=1)


def _twice(a: Any, b: Any) -> Any:
    exact = a.astype(np.float64) + b.astype(np.float64)
    coarse = (exact.astype(np.float32).view(np.uint32) & 0xFFFFF000).view(np.float32)
    return coarse.astype(np.float16)


def _of_size(a: Any) -> Any:
    return np.sqrt(np.abs(a))


def _sorting(sorts: Callable[..., Any]) -> Callable[[], Any]:
    return lambda: StandIn(sorts=sorts)


def _less(**figures: float) -> Callable[[], Any]:
    return lambda: StandIn(costs=DEFAULT_COST_SET.replaced("planted", **figures))


def _planted(name: str, function: Callable[..., Any]) -> Callable[[], Any]:
    def own(*operands: Any) -> Any:
        is_other = function is truncated and operands[0].dtype != np.float32
        return operands[0] + operands[1] if is_other else function(*operands)

    return lambda: StandIn(planted={name: own})


def _restless() -> Any:
    device, random = StandIn(), np.random.default_rng(3)

    def run(program: Any) -> Any:
        found = device(program)
        if program.kernel in ("clock_read", "clock_write"):
            found[: 32 * program.cores].view(np.uint64)[::4] *= np.uint64(random.integers(1, 4))
        return found

    return run


def _flaw(flaw: flawed.Flaw, plant: Plant | None = None) -> CastOnDevice:
    return flaw(planted(plant))


def _hanging_device() -> CheckedDevice:
    def check(_: object) -> Any:
        time.sleep(3600)

    return dataclasses.replace(stand_in(), check=check)


def _hangs(path: Path) -> DeviceFacts:
    plan = SmallPlan(names=FEW_STEPS[2:5])
    check = check_of(path, plan=plan)
    check.open_device = lambda: DeviceProcess(_hanging_device, plan, 2.0)
    check.measure()
    return read_facts(path)


def _stops_with(code: int, path: Path) -> DeviceFacts:
    """Every one of the small kernels ends with an error of the runtime."""

    def start() -> CheckedDevice:
        def check(_: object) -> Any:
            with npu.told():
                raise RuntimeError(f"rtStreamSynchronize failed, error code is {code}")

        return dataclasses.replace(stand_in(), check=check)

    with contextlib.suppress(DeviceGoneError):
        check_of(path, start).measure()
    return read_facts(path)


def _loses_its_files(path: Path) -> DeviceFacts:
    """From the fourth step on nothing can be written; the third step has failed."""
    writes = itertools.count()

    def keep(facts: DeviceFacts) -> None:
        if next(writes) > 4:
            raise OSError(5, "Input/output error", str(path))
        write(path)(facts)

    with contextlib.suppress(OSError, DeviceGoneError):
        check_of(path, functools.partial(stand_in, planted_check=_no_library), keep).measure()
    return read_facts(path)


def _no_library(_: object) -> Any:
    raise BuildError("bisheng ended with status 1")


def mocks() -> tuple[Mock, ...]:
    """The devices, as assumed first."""
    tail = "UB after copies of 1 to 31 B"
    return (
        Mock(name="as assumed, casts", outcome="as assumed", cast=planted()),
        Mock(name="as assumed, other kernels", outcome="as assumed", check=StandIn),
        *(
            Mock(name=name, outcome=outcome, cast=planted(plant))
            for name, (plant, outcome) in _STABLE.items()
        ),
        Mock(name="broken core 0", outcome="named", cast=_flaw(flawed.broken_core(0))),
        Mock(name="broken core 1", outcome="named", cast=_flaw(flawed.broken_core(1))),
        Mock(
            name="broken core 1 and quiet NaN",
            outcome="named",
            cast=_flaw(flawed.broken_core(1), plants.quiet_nan),
        ),
        Mock(name="bad position 3", outcome="named", cast=_flaw(flawed.bad_position(3))),
        Mock(name="flaky unit, 1 in 10^4", outcome="named", cast=_flaw(flawed.flaky())),
        Mock(
            name="flaky unit and quiet NaN",
            outcome="named",
            cast=_flaw(flawed.flaky(), plants.quiet_nan),
        ),
        *(
            Mock(name=f"{name} {does}", outcome=outcome, check=_planted(name, run), facts={fact})
            for name, does, run, fact, outcome in (
                ("vadd", "rounds toward zero", truncated, "vadd", "followed"),
                ("vmul", "flushes", flushed, "subnormals in arithmetic", "followed"),
                ("vexp", "is 3 ulp off", three_off, "vexp", "followed"),
                ("vdiv", "is 3 ulp off", _three_off, "vdiv", "followed"),
                ("vcadd", "adds halves", halves, "order of vcadd", "followed"),
                ("vcadd", "adds as numpy", _as_numpy, "order of vcadd", "followed"),
                ("vsqrt", "has no NaN", _of_size, "special values of arithmetic", "named"),
                ("autocast_vadd", "rounds twice", _twice, AUTOCAST, "named"),
            )
        ),
        *(
            Mock(name=name, outcome=outcome, check=_sorting(run), facts={fact})
            for name, run, fact, outcome in (
                ("sorts take the last equal", last_first, SORT_ORDER, "followed"),
                ("merges take the last list", later_lists_first, MERGE_ORDER, "followed"),
                ("sorts lose a score", lost_score, SORTED_SCORES, "named"),
            )
        ),
        Mock(
            name="argmax takes the last equal",
            outcome="followed",
            check=lambda: StandIn(planted={"argmax": last_greatest}),
            facts={ARG_ORDER},
        ),
        Mock(
            name="flaky arithmetic",
            outcome="named",
            check=lambda: flawed.flaky_arithmetic(StandIn(), 1000),
        ),
        Mock(
            name="CTRL 0 at entry",
            outcome="named",
            check=lambda: StandIn(ctrl=0),
            facts={"CTRL at kernel entry"},
        ),
        Mock(
            name="CTRL forgotten",
            outcome="named",
            check=lambda: StandIn(forgets=True),
            facts={"CTRL after a kernel that left it changed"},
        ),
        Mock(
            name="CTRL of core 7",
            outcome="named",
            check=lambda: flawed.other_core(StandIn(), 7, ("ctrl_read",)),
        ),
        Mock(
            name="blocks not filled",
            outcome="named",
            check=lambda: StandIn(fills=False),
            facts={tail},
        ),
        Mock(
            name="blocks of core 7",
            outcome="named",
            check=lambda: flawed.other_core(StandIn(), 7, ("copy_tail",)),
            facts={tail},
        ),
        Mock(
            name="clock twice as fast", outcome="named", check=StandIn, slow_host=2.0, facts={CLOCK}
        ),
        Mock(
            name="clock half as fast", outcome="named", check=StandIn, slow_host=0.5, facts={CLOCK}
        ),
        Mock(
            name="a slow pair",
            outcome="named",
            check=lambda: StandIn(slower={"clock_int64_fp32": 2.0}),
            facts={CAST_PAIRS},
        ),
        Mock(
            name="slow passes of a loop",
            outcome="named",
            check=lambda: StandIn(slower={"clock_pass": 1.4}),
            facts={LOOP_PASS},
        ),
        Mock(
            name="two slots that do not overlap",
            outcome="named",
            check=lambda: StandIn(slower={"clock_slots": 1.6}),
            facts={SLOTS},
        ),
        Mock(
            name="slow tasks",
            outcome="named",
            check=lambda: StandIn(slower={"clock_task": 1.4}),
            facts={TASK},
        ),
        Mock(name="restless clock of copies", outcome="named", check=_restless),
        Mock(name="hangs", outcome="named", lost=_hangs),
        *(
            Mock(name=f"error {code}", outcome="named", lost=functools.partial(_stops_with, code))
            for code in (507014, 507015, 507054)
        ),
        Mock(name="loses its file system", outcome="named", lost=_loses_its_files),
        *(
            Mock(
                name=f"{next(iter(figures))}", outcome="followed", check=_less(**figures), facts={n}
            )
            for figures, n in (
                ({"read_bytes_per_cycle": 50.0}, COPIES),
                ({"write_startup_cycles": 500.0}, COPIES),
                ({"cast_cycles_per_repeat": 3.0}, CAST_CYCLES),
                ({"barrier_cycles": 40.0}, SYNCHRONIZATION),
                ({"flag_cycles": 60.0}, SYNCHRONIZATION),
                ({"gm_bytes_per_second": 1.2e12}, GM_RATE),
            )
        ),
        *(
            Mock(name=name, outcome=outcome, cast=planted(plant), facts=facts, chip=CHIP_950)
            for name, (plant, outcome, facts) in CASTS_950.items()
        ),
        *(
            Mock(name=name, outcome=outcome, check=check, facts=facts, chip=CHIP_950)
            for name, (check, outcome, facts) in CHECKS_950.items()
        ),
    )


# --- What becomes of them ------------------------------------------------------------------------


@functools.cache
def cast_cases(chip: Chip) -> tuple[CheckCase, ...]:
    """All codes of six pairs, and the shapes of two of them."""
    if chip is CHIP_950:
        return cases_950()
    return tuple(
        case
        for case in some_cases()
        if case.about in (None, ROUTES) or (case.cast.src, case.cast.dst) in _SHAPED
    )


@functools.cache
def operand_cases() -> tuple[ArithmeticCase, ...]:
    return tuple(arithmetic_cases(random_codes=1000))


def outcome_of(mock: Mock) -> tuple[Outcome, DeviceFacts]:
    """Check a device, and say what becomes of its deviation."""
    if mock.lost is not None:
        with tempfile.TemporaryDirectory() as folder:
            found = mock.lost(Path(folder) / "device.json")
        assert found.run is not None
        is_told = found.run.done and not found.run.is_whole
        left = [fact for fact in found.facts if not fact.is_whole]
        return ("named" if is_told and left and found.run.failed else "silent"), found
    facts = _measured(mock)
    found = DeviceFacts(device=dataclasses.replace(DESCRIPTION, chip=mock.chip.name), facts=facts)
    model = model_from(found)
    differing = {fact.name: fact for fact in facts if fact.verdict is Agreement.DIFFERS}
    if not mock.facts <= set(differing):
        return "silent", found
    named = {tuple(line.split(": ", 1)) for line in model.unfollowed}
    if mock.cast is not None:
        casts = {cast for _, cast in named}
        return _outcome_of_casts(mock.cast, model, casts, differing, mock.chip), found
    if not differing:
        return ("named" if named else "as assumed"), found
    return ("named" if named else _followed(model, differing)), found


def _measured(mock: Mock) -> tuple[DeviceFact, ...]:
    if mock.cast is not None:
        return check_casts(mock.cast, cast_cases(mock.chip), mock.chip.isa)
    assert mock.check is not None
    device = mock.check()
    if mock.chip is CHIP_950:
        return (*check_control(device, CHIP_950), check_integer_sums(device, CHIP_950))
    clock = device if hasattr(device, "now") else StandIn()
    facts = [*check_control(device, DEFAULT_CHIP), check_copy_tails(device, DEFAULT_CHIP)]
    facts += check_arithmetic(device, operand_cases(), DEFAULT_CHIP)
    facts += check_sorts(device, f.FP32, DEFAULT_CHIP)
    facts.append(check_extremes(device, f.FP32, DEFAULT_CHIP))
    names = list(CYCLE_FACTS)
    if clock is not device:
        names.remove(CLOCK)
    facts += check_cycles(device, DEFAULT_CHIP, names, lambda: clock.now() / mock.slow_host)
    return tuple(facts)


def _outcome_of_casts(
    device: CastOnDevice,
    model: DeviceModel,
    named: set[str],
    differing: dict[str, DeviceFact],
    chip: Chip,
) -> Outcome:
    is_named = False
    for case in cast_cases(chip):
        if case.about not in (None, SATMODE):
            continue
        values = values_of(case.codes, case.cast.src)
        one, two, three = (device(case.program, values) for _ in range(3))
        own = np.where(one == two, one, three)  # of a flaky unit what it does mostly
        assumed = execute(case.program, values)
        followed = execute(case.program, values, corrections=model.corrections)
        wrong = followed != own
        if (wrong & (followed != assumed)).any():
            return "wrong"
        if wrong.any() and not named.intersection(map(str, (case.cast, *case.parts))):
            return "silent"
        is_named |= bool(wrong.any())
    if is_named or named:
        return "named"
    return "followed" if differing else "as assumed"


def _followed(model: DeviceModel, differing: dict[str, DeviceFact]) -> Outcome:
    """Bounds are as wide as errors, assumptions that do not hold are none, figures are taken."""
    for name, fact in differing.items():
        kept = model.cost_set.sources if fact.figures and model.cost_set is not None else {}
        if fact.figures and not all("device-check" in kept[x].text for x in fact.by_pair):
            return "silent"
        bounds = {(op, fmt.name): most for (op, fmt), most in model._ulps().items()}
        operation = {"vadd": "add", "vdiv": "div", "vexp": "exp"}.get(name)
        if operation and any(bounds[operation, x] < most for x, most in fact.ulps.items()):
            return "silent"
    return "followed"
