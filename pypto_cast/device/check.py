"""Runs a device check: every case on the device and by this package, compared code by code."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ascend_kernels.program import TileProgram
from pypto_cast.device.arithmetic_check import (
    ARITHMETIC_FACTS,
    assumed_arithmetic,
)
from pypto_cast.device.behaviour import (
    BEHAVIOURS,
    CheckedCast,
    behaviours_in,
    behaviours_of,
    is_negative,
)
from pypto_cast.device.cases import (
    NIBBLE_FACTS,
    ROUTES,
    ROUTES_ASSUMED,
    SATMODE_FACTS,
    SHAPE_FACTS,
    CheckCase,
    route_sources,
)
from pypto_cast.device.core_state_check import (
    COPY_TAIL,
    COPY_TAIL_ASSUMED,
    INT_SUM_FACTS,
    control_facts,
)
from pypto_cast.device.cycles_check import CYCLE_FACTS, CYCLES_IN, assumed_cycles
from pypto_cast.device.facts import Agreement, DeviceFact, Part, Tally
from pypto_cast.device.repetition import Layout, Places, observe
from pypto_cast.device.sort_check import ARG_FACTS, SORT_FACTS
from pypto_cast.device.unasked import UNTIMED, unasked_of
from simulator.machine.execute import execute
from simulator.numbers import float_environment
from simulator.numbers.convert import values_of
from simulator.numbers.formats import Codes
from tiling.chips import A2_A3

CastOnDevice = Callable[[TileProgram, npt.NDArray[Any]], Codes]
"""Runs a program on values, 1-D; gives the destination's codes. The twin's `execute` is one."""


def _assumed(family: str) -> dict[str, str]:
    """The facts that casts of a family tell, and the assumption of each."""
    return {
        **behaviours_in(family),
        NIBBLE_FACTS[family]: "two in a byte, the first in the low nibble",
        **SHAPE_FACTS,
        **({ROUTES: ROUTES_ASSUMED} if route_sources(family) else {}),
        **SATMODE_FACTS[family],
    }


@functools.cache
def facts_in(family: str) -> Mapping[Part, Mapping[str, str]]:
    """Every fact that a part is about on chips of a family, and its assumed value.

    Those that no case asks for are there too: `reasons_in` has their reasons.
    """
    unasked = {each.name: each.assumed for each in unasked_of(family).values()}
    cycles = {name: assumed_cycles(name) for name in CYCLES_IN[family]}
    if family in UNTIMED:
        cycles = dict.fromkeys(CYCLE_FACTS, f"nothing: no figure of the {family} is known")
    arithmetic = {name: assumed_arithmetic(name) for name in ARITHMETIC_FACTS}
    return MappingProxyType(
        {
            "cast": {
                **_assumed(family),
                **control_facts(family),
                COPY_TAIL: COPY_TAIL_ASSUMED,
                **unasked,
            },
            "arithmetic": {**arithmetic, **SORT_FACTS, **ARG_FACTS, **INT_SUM_FACTS[family]},
            "cycles": cycles,
        }
    )


@functools.cache
def reasons_in(family: str) -> Mapping[str, str]:
    """The facts about chips of a family that no case asks for, and the reason of each."""
    found = {each.name: each.why for each in unasked_of(family).values()}
    if family in UNTIMED:
        found |= dict.fromkeys(CYCLE_FACTS, UNTIMED[family])
    return MappingProxyType(found)


@dataclass(slots=True, kw_only=True)
class _CastTally(Tally):
    """Findings about casts, with the only code that they gave, if there is one."""

    codes: dict[tuple[str, str], int | None] = field(default_factory=dict)
    differing: set[tuple[str, str]] = field(default_factory=set)

    def note_codes(
        self,
        cast: CheckedCast,
        sources: Codes,
        results: Codes,
        differs: npt.NDArray[np.bool_],
    ) -> None:
        """Remember the only code that sources of a sign give, or that there are several."""
        negative = is_negative(sources, cast.src)
        for sign, here in (("negative", negative), ("positive", ~negative)):
            key = str(cast), sign
            if (differs & here).any():
                self.differing.add(key)
            if self.codes.get(key, 0) is None or not here.any():
                continue
            first = int(results[np.argmax(here)])
            is_one = self.codes.setdefault(key, first) == first and bool(
                np.all(results[here] == first)
            )
            self.codes[key] = first if is_one else None

    @property
    def results(self) -> dict[str, dict[str, int | None]]:
        """The codes of the casts that differ."""
        found: dict[str, dict[str, int | None]] = {}
        for cast, sign in sorted(self.differing):
            found.setdefault(cast, {})[sign] = self.codes[cast, sign]
        return found


@float_environment.quiet()
def check_casts(
    device: CastOnDevice, cases: Iterable[CheckCase], family: str = A2_A3
) -> tuple[DeviceFact, ...]:
    """Compare a device's casts with this package's.

    Args:
        device: runs a program.
        cases: what is cast.
        family: of the device's chip.

    Returns:
        A fact for each behaviour, agreeing or not.
    """
    tallies = {name: _CastTally(name=name, assumed=text) for name, text in _assumed(family).items()}
    for case in cases:
        _compare(device, case, tallies)
    return tuple(tally.fact(results=tally.results) for tally in tallies.values())


def assumed_facts(
    part: Part, why: str = "not measured", family: str = A2_A3
) -> tuple[DeviceFact, ...]:
    """The facts of a part as they are assumed, and why they are not measured.

    Those that no case asks for have a reason of their own.
    """
    reasons = reasons_in(family)
    return tuple(
        DeviceFact(
            name=name,
            assumed=assumed,
            measured=reasons.get(name, why),
            verdict=Agreement.NOT_MEASURED,
        )
        for name, assumed in facts_in(family)[part].items()
    )


def _compare(device: CastOnDevice, case: CheckCase, tallies: dict[str, _CastTally]) -> None:
    program, rule = case.program, case.program.resolution.rule
    values = values_of(case.codes, rule.src)
    expected = execute(program, values)
    nibbles = tallies[NIBBLE_FACTS[rule.family]]
    cast, run = str(case), _runs(device, case, expected, nibbles)

    def plain(one: CheckCase) -> Codes:
        of_one = execute(one.program, values_of(one.codes, one.cast.src))
        return _runs(device, one, of_one, nibbles)(np.arange(of_one.size))

    if case.is_relative:
        expected = case.alone(plain)
    layout_of = partial(Layout.of_plan, program.plan)
    seen = observe(
        run, layout_of, expected, lambda codes: case.is_once and np.array_equal(codes, expected)
    )
    is_about = case.about is not None and not case.is_relative
    if is_about and any((codes != expected).any() for codes in seen.distinct):
        is_value = case.alone(plain) == seen.codes  # no matter of the shape, or the route
        expected = np.where(is_value, seen.codes, expected)
    measured = seen.codes
    differs = np.logical_or.reduce([codes != expected for codes in seen.distinct])

    def example(place: int) -> str:
        wrong = (codes for codes in seen.distinct if codes[place] != expected[place])
        return _example(case, next(wrong), expected, place)

    if case.about is not None:
        tallies[case.about].add(cast, np.ones_like(differs), differs, example, seen)
        return
    behaviours = behaviours_of(case.cast, case.codes, expected)
    for place in np.flatnonzero(np.bincount(behaviours)):
        tally, here = tallies[BEHAVIOURS[place].name], behaviours == place
        tally.add(cast, here, differs, example, seen)
        tally.note_codes(case.cast, case.codes[here], measured[here], differs[here])


def _runs(
    device: CastOnDevice, case: CheckCase, expected: Codes, tally: Tally
) -> Callable[[Places], Codes]:
    """Runs of a case by the order of its elements, with nibbles in the order that is assumed.

    An exchange of two elements that share a byte looks like wrong results of both. It is one if
    exchanging all of them back leaves fewer wrong; then it is counted, and exchanged back.
    """
    program, rule = case.program, case.program.resolution.rule
    values = values_of(case.codes, rule.src)

    def run(order: Places) -> Codes:
        return device(program, values[order].reshape(program.plan.shape)).reshape(-1)

    if 4 not in (rule.src.bits, rule.dst.bits):
        return run
    found = run(np.arange(values.size))
    wrong = found != expected
    is_exchanged = (_exchanged(found) != expected).sum() < wrong.sum()
    tally.add(
        str(case.cast),
        np.ones_like(wrong),
        wrong if is_exchanged else np.zeros_like(wrong),
        lambda place: f"the first in the high nibble; {_example(case, found, expected, place)}",
    )
    return (lambda order: _exchanged(run(order))) if is_exchanged else run


def _exchanged(codes: Codes) -> Codes:
    return codes.reshape(-1, 2)[:, ::-1].reshape(-1)


def _example(case: CheckCase, measured: Codes, expected: Codes, place: int) -> str:
    src, dst = case.cast.src, case.cast.dst
    found = [
        f"0x{int(codes[place]):0{max(fmt.bits // 4, 1)}X}"
        for codes, fmt in ((case.codes, src), (measured, dst), (expected, dst))
    ]
    return f"{case}: {found[0]} gives {found[1]}, assumed {found[2]}"
