"""Runs a device check: every case on the device and by this package, compared code by code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from ascend_kernels.program import TileProgram
from pypto_cast.device.arithmetic_check import (
    ARITHMETIC_FACTS,
    CheckOnDevice,
    arithmetic_cases,
    assumed_arithmetic,
    check_arithmetic,
)
from pypto_cast.device.behaviour import BEHAVIOURS, CheckedCast, behaviours_of, is_negative
from pypto_cast.device.cases import PADDING, UB_LIMIT, CheckCase
from pypto_cast.device.core_state_check import (
    COPY_TAIL,
    COPY_TAIL_ASSUMED,
    CTRL_FACTS,
    check_control,
    check_copy_tails,
)
from pypto_cast.device.cycles_check import CYCLE_FACTS, assumed_cycles, check_cycles
from pypto_cast.device.facts import Agreement, DeviceFact, Tally
from simulator.machine.execute import execute
from simulator.numbers import float_environment
from simulator.numbers.convert import values_of
from simulator.numbers.formats import Codes
from tiling.chips import Chip

Part = Literal["cast", "arithmetic", "cycles"]
CastOnDevice = Callable[[TileProgram, npt.NDArray[Any]], Codes]
"""Runs a program on values, 1-D; gives the destination's codes. The twin's `execute` is one."""

_ASSUMED: Final = {
    **{behaviour.name: behaviour.assumed for behaviour in BEHAVIOURS},
    PADDING: "rows that end within a block of 32 B change nothing beyond their end",
    UB_LIMIT: "tiles up to the whole of UB, and those cut into passes, give the same codes",
}
FACTS: Final[Mapping[Part, Mapping[str, str]]] = {
    "cast": {**_ASSUMED, **CTRL_FACTS, COPY_TAIL: COPY_TAIL_ASSUMED},
    "arithmetic": {name: assumed_arithmetic(name) for name in ARITHMETIC_FACTS},
    "cycles": {name: assumed_cycles(name) for name in CYCLE_FACTS},
}
"""Every fact that a part is about, and its assumed value."""


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
def check_casts(device: CastOnDevice, cases: Iterable[CheckCase]) -> tuple[DeviceFact, ...]:
    """Compare a device's casts with this package's.

    Args:
        device: runs a program.
        cases: what is cast.

    Returns:
        A fact for each behaviour, agreeing or not.
    """
    tallies = {name: _CastTally(name=name, assumed=text) for name, text in _ASSUMED.items()}
    for case in cases:
        _compare(device, case, tallies)
    return tuple(tally.fact(results=tally.results) for tally in tallies.values())


@float_environment.quiet()
def check_instructions(
    device: CheckOnDevice, part: Part, chip: Chip, *, exhaustive: bool = False
) -> tuple[DeviceFact, ...]:
    """Run the checks of a part that need kernels of their own.

    Args:
        device: runs a check's kernel.
        part: of which the facts are.
        chip: its own.
        exhaustive: all operands of functions of one.
    """
    if part == "arithmetic":
        return check_arithmetic(device, arithmetic_cases(exhaustive=exhaustive), chip)
    if part == "cycles":
        return check_cycles(device, chip)
    return (*check_control(device, chip), check_copy_tails(device))


def assumed_facts(part: Part, why: str = "not measured") -> tuple[DeviceFact, ...]:
    """The facts of a part as they are assumed, and why they are not measured."""
    return tuple(
        DeviceFact(name=name, assumed=assumed, measured=why, verdict=Agreement.NOT_MEASURED)
        for name, assumed in FACTS[part].items()
    )


def _compare(device: CastOnDevice, case: CheckCase, tallies: dict[str, _CastTally]) -> None:
    program, rule = case.program, case.program.resolution.rule
    values = values_of(case.codes, rule.src)
    expected = execute(program, values)
    measured = device(program, values.reshape(program.plan.shape)).reshape(-1)
    differs = measured != expected
    cast = str(case.cast)

    def example(place: int) -> str:
        found = [
            f"0x{int(codes[place]):0{max(fmt.bits // 4, 1)}X}"
            for codes, fmt in ((case.codes, rule.src), (measured, rule.dst), (expected, rule.dst))
        ]
        return f"{cast}: {found[0]} gives {found[1]}, assumed {found[2]}"

    if case.about is not None:
        tallies[case.about].add(cast, np.ones_like(differs), differs, example)
        return
    behaviours = behaviours_of(case.cast, case.codes, expected)
    for place in np.unique(behaviours):
        tally, here = tallies[BEHAVIOURS[place].name], behaviours == place
        tally.add(cast, here, differs, example)
        tally.note_codes(case.cast, case.codes[here], measured[here], differs[here])
