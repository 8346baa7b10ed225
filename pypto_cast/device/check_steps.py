"""The steps of a device check: each measures some facts, and is done whole or not at all."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from ascend_kernels.checks.check_program import BINARY, SUM, UNARY, WIDENED
from ascend_kernels.matrix import MATRIX, CastRule
from pypto_cast.device.arithmetic_check import (
    CHECKED_FORMATS,
    arithmetic_cases,
    check_arithmetic,
    facts_of_instruction,
)
from pypto_cast.device.behaviour import behaviours_in, casts_of
from pypto_cast.device.cases import (
    NIBBLE_FACTS,
    RANDOM_CODES,
    ROUTES,
    SATMODE,
    SHAPE_FACTS,
    code_cases,
    route_cases,
    route_sources,
    satmode_cases,
    shape_cases,
)
from pypto_cast.device.check import check_casts, facts_in, reasons_in
from pypto_cast.device.core_state_check import (
    COPY_TAIL,
    INT_SUM_FACTS,
    check_control,
    check_copy_tails,
    check_integer_sums,
    control_facts,
)
from pypto_cast.device.cycles_check import CYCLES_IN, check_cycles
from pypto_cast.device.facts import PARTS, DeviceFact, Part
from pypto_cast.device.on_npu import CheckedDevice
from pypto_cast.device.sort_check import ARG_FACTS, SORT_FACTS, check_extremes, check_sorts
from pypto_cast.report.report import Column, Report, Table, plain
from simulator.numbers.formats import FP16, FloatFormat, Format
from tiling.chips import CHIPS, Chip

RUNS: Final = 5
"""Of each case, as `repetition` has them; more where results differ. All codes of a 32-bit format
run once."""
RESULTS_PER_SECOND: Final[Mapping[Part, int]] = {
    "cast": 10_000_000,
    "arithmetic": 4_000_000,
    "cycles": 10_000_000,
}
"""Results that a host compares, measured with a stand-in on one core; a device takes longer."""
_MANY: Final = 1 << 32
_SHAPES: Final = 500_000
"""Results of all shapes of a pair, about."""
_FEW: Final = 5_000

Run = Callable[[CheckedDevice], tuple[DeviceFact, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckStep:
    """A step of a check.

    Attributes:
        name: what files and people call it.
        part: of the check.
        facts: those that it measures; no other step need measure them.
        results: about how many it compares.
        run: measures them on a device.
    """

    name: str
    part: Part
    facts: tuple[str, ...]
    results: int
    run: Run


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckPlan:
    """The measurements of a check.

    Attributes:
        parts: in their order.
        exhaustive: all codes of 32-bit sources.
        random_codes: of larger sources, where it is not.
    """

    parts: tuple[Part, ...] = PARTS
    exhaustive: bool = False
    random_codes: int = RANDOM_CODES

    def steps(self, chip: str) -> tuple[CheckStep, ...]:
        """The steps in their order."""
        found = (*self._casts(CHIPS[chip]), *self._arithmetic(CHIPS[chip]), *_cycles(CHIPS[chip]))
        return tuple(step for step in found if step.part in self.parts)

    def report(self, chip: str, output: Path | None, done: Collection[str] = ()) -> Report:
        """The plan in words, with the time that a host needs at least.

        Args:
            chip: of the device.
            output: where the facts are to be written.
            done: steps that an earlier run has measured.
        """
        steps = self._left(chip, done)
        rows = []
        for part in self.parts:
            own = [step for step in steps if step.part == part]
            results = sum(step.results for step in own)
            rows.append((part, len(own), results, _duration(own)))
        results = sum(step.results for step in steps)
        return Report(
            kind="device-check-plan",
            title=f"device-check on {chip}, nothing is run",
            facts=plain(steps=len(steps), results=results, chip=chip, output=output),
            tables=(
                Table(
                    key="parts",
                    caption="Parts",
                    columns=tuple(
                        Column(key=key, heading=heading)
                        for key, heading in (
                            ("part", "part"),
                            ("steps", "steps"),
                            ("results", "results"),
                            ("host", "host's share"),
                        )
                    ),
                    rows=rows,
                ),
                Table(
                    key="unasked",
                    caption="Facts that are not measured",
                    columns=(
                        Column(key="why", heading="why"),
                        Column(key="facts", heading="not measured"),
                    ),
                    rows=list(self._unasked(chip).items()),
                ),
            ),
            notes=tuple(self._notes(chip, done)),
        )

    def _notes(self, chip: str, done: Collection[str]) -> Iterator[str]:
        """The duration, and that of all codes."""
        yield self.duration(chip, done)
        if not (self.exhaustive or done) and set(self.parts) != {"cycles"}:
            every = dataclasses.replace(self, exhaustive=True).duration(chip)
            yield f"with --exhaustive {every}"

    def _unasked(self, chip: str) -> dict[str, str]:
        """The facts that no step asks for, by their reason."""
        family = CHIPS[chip].isa
        names: dict[str, list[str]] = {}
        for part in self.parts:
            for name in facts_in(family)[part]:
                if reason := reasons_in(family).get(name):
                    names.setdefault(reason, []).append(name)
        return {reason: "; ".join(same) for reason, same in names.items()}

    def _left(self, chip: str, done: Collection[str]) -> list[CheckStep]:
        return [step for step in self.steps(chip) if step.name not in done]

    def host_time(self, chip: str, done: Collection[str] = ()) -> str:
        """The time of the host alone, such as "8 h 1 min"; arguments as of `report`."""
        return _duration(self._left(chip, done))

    def duration(self, chip: str, done: Collection[str] = ()) -> str:
        """The least duration of the check, in words; arguments as of `report`."""
        steps = self._left(chip, done)
        results = sum(step.results for step in steps)
        return (
            f"{results:,} results to compare: the host takes about {self.host_time(chip, done)} "
            "for them, measured with a stand-in on one core; the device's share is not known"
        )

    def _casts(self, chip: Chip) -> Iterator[CheckStep]:
        behaviours, casts = tuple(behaviours_in(chip.isa)), casts_of(chip.isa)

        def codes(name: str, device: CheckedDevice) -> tuple[DeviceFact, ...]:
            cases = code_cases(
                casts[name], chip, exhaustive=self.exhaustive, random_codes=self.random_codes
            )
            return check_casts(device.cast, cases, chip.isa)

        for name, cast in casts.items():
            facts = (*behaviours, *_nibbles(chip, cast.src, cast.dst))
            results = self._results(cast.src)
            yield _step(f"codes of {name}", "cast", facts, results, partial(codes, name))
        for rule in MATRIX[chip.isa].values():
            facts = (*SHAPE_FACTS, *_nibbles(chip, rule.src, rule.dst))

            def shapes(device: CheckedDevice, rule: CastRule = rule) -> tuple[DeviceFact, ...]:
                return check_casts(device.cast, shape_cases(rule, chip), chip.isa)

            yield _step(f"shapes of {rule}", "cast", facts, _SHAPES * RUNS, shapes)

            def satmodes(device: CheckedDevice, rule: CastRule = rule) -> tuple[DeviceFact, ...]:
                return check_casts(device.cast, satmode_cases(rule, chip), chip.isa)

            if any(satmode_cases(rule, chip)):
                yield _step(f"SatMode of {rule}", "cast", (SATMODE,), _FEW * RUNS, satmodes)

        for src in route_sources(chip.isa):

            def routes(device: CheckedDevice, src: Format = src) -> tuple[DeviceFact, ...]:
                return check_casts(device.cast, route_cases(src, chip), chip.isa)

            yield _step(f"routes from {src}", "cast", (ROUTES,), _FEW * RUNS, routes)

        def control(device: CheckedDevice) -> tuple[DeviceFact, ...]:
            return check_control(device.check, chip)

        def tails(device: CheckedDevice) -> tuple[DeviceFact, ...]:
            return (check_copy_tails(device.check, chip),)

        yield _step("control register", "cast", tuple(control_facts(chip.isa)), _FEW, control)
        yield _step("tails of copies", "cast", (COPY_TAIL,), _FEW, tails)

    def _arithmetic(self, chip: Chip) -> Iterator[CheckStep]:
        for fmt in CHECKED_FORMATS:
            for name in (*UNARY, *BINARY, SUM, *(WIDENED if fmt is FP16 else ())):

                def run(
                    device: CheckedDevice, name: str = name, fmt: Format = fmt
                ) -> tuple[DeviceFact, ...]:
                    cases = arithmetic_cases(
                        exhaustive=self.exhaustive, random_codes=self.random_codes, only=name
                    )
                    own = (case for case in cases if case.fmt is fmt)
                    return check_arithmetic(device.check, own, chip)

                is_unary = WIDENED.get(name, name) in UNARY
                count = self._results(fmt) if is_unary else self.random_codes * RUNS
                facts = facts_of_instruction(name)
                yield _step(f"{name} in {fmt}", "arithmetic", facts, count, run)

            def sorts(device: CheckedDevice, fmt: FloatFormat = fmt) -> tuple[DeviceFact, ...]:
                return check_sorts(device.check, fmt, chip)

            yield _step(f"sorts in {fmt}", "arithmetic", tuple(SORT_FACTS), _FEW, sorts)

            def extremes(device: CheckedDevice, fmt: FloatFormat = fmt) -> tuple[DeviceFact, ...]:
                return (check_extremes(device.check, fmt, chip),)

            facts = tuple(ARG_FACTS)
            yield _step(f"argmax and argmin in {fmt}", "arithmetic", facts, _FEW * RUNS, extremes)

        def integers(device: CheckedDevice) -> tuple[DeviceFact, ...]:
            return (check_integer_sums(device.check, chip),)

        if facts := tuple(INT_SUM_FACTS[chip.isa]):
            yield _step("sums of integers", "arithmetic", facts, _FEW, integers)

    def _results(self, src: Format) -> int:
        """Results of all runs of a source's codes."""
        if src.bits <= 16:
            return RUNS << src.bits
        return self.random_codes * RUNS + _MANY * (self.exhaustive and src.bits == 32)


def _duration(steps: Iterable[CheckStep]) -> str:
    seconds = math.ceil(sum(step.results / RESULTS_PER_SECOND[step.part] for step in steps))
    hours, minutes = divmod(round(seconds / 60), 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min" if minutes else f"{seconds} s"


def _step(name: str, part: Part, facts: tuple[str, ...], results: int, run: Run) -> CheckStep:
    return CheckStep(name=name, part=part, facts=facts, results=results, run=run)


def _nibbles(chip: Chip, *formats: Format) -> tuple[str, ...]:
    return (NIBBLE_FACTS[chip.isa],) if 4 in (fmt.bits for fmt in formats) else ()


def _cycles(chip: Chip) -> Iterator[CheckStep]:
    for fact in CYCLES_IN[chip.isa]:

        def run(device: CheckedDevice, fact: str = fact) -> tuple[DeviceFact, ...]:
            return check_cycles(device.check, chip, [fact], device.now)

        yield _step(fact, "cycles", (fact,), _FEW, run)
