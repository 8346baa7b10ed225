"""The facts of a family that a device check cannot ask for, each by name and with its reason.

They are in every facts file of the family as "not measured", so that none is left out in silence,
and a result that rests on one is never said to be measured.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from ascend_kernels.instances import TARGETS, modes_of_api
from ascend_kernels.matrix import MATRIX, READ_OTHERWISE, Pair, Resolution
from pypto_cast.device.cases import ROUTES, ROUTES_ASSUMED
from simulator.numbers.rounding import RoundMode
from tiling.chips import ASCEND_950

_BY_THE_MODE: Final = "one rounding, by the mode"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unasked:
    """A fact that no case of a check is about.

    Attributes:
        name: of the fact.
        assumed: what this package assumes.
        why: the reason for which it is not asked.
        pair: the casts that rest on it, by source and destination; None: it is about no cast.
        modes: of those, the round modes.
    """

    name: str
    assumed: str
    why: str
    pair: Pair | None = None
    modes: tuple[RoundMode, ...] = ()


@functools.cache
def unasked_of(family: str) -> Mapping[str, Unasked]:
    """The facts that the casts of a family rest on, and that no case of a check is about."""
    found = [*_modes_without_instruction(family), *_modes_of_readings(family)]
    if not TARGETS[family].route_instances:
        found.append(
            Unasked(
                name=ROUTES,
                assumed=ROUTES_ASSUMED,
                why=f"cannot be asked: the kernels of the {family} have no routes; each cast of a "
                "chain is asked alone",
            )
        )
    return MappingProxyType({each.name: each for each in found})


def unasked_for(family: str, resolution: Resolution | None) -> tuple[str, ...]:
    """The names of those that a cast rests on; None: those that any cast of the family does."""
    rule = None if resolution is None else resolution.rule
    return tuple(
        each.name
        for each in unasked_of(family).values()
        if each.pair is not None
        and (
            rule is None
            or resolution is None
            or (each.pair == (rule.src, rule.dst) and resolution.mode in each.modes)
        )
    )


def _modes_without_instruction(family: str) -> list[Unasked]:
    """The modes of each row of the matrix that AscendC's Cast lacks."""
    found = []
    for pair, rule in MATRIX[family].items():
        had = modes_of_api(rule, rule.modes)
        if lacked := tuple(mode for mode in rule.modes if mode not in had):
            found.append(
                Unasked(
                    name=f"{rule} in modes that Cast lacks",
                    assumed=f"{_BY_THE_MODE}: {_words(lacked)}",
                    why=f"cannot be asked: AscendC's Cast of the {family} has {_words(had)} alone "
                    "for the pair",
                    pair=pair,
                    modes=lacked,
                )
            )
    return found


def _modes_of_readings(family: str) -> list[Unasked]:
    """The modes that a row has under a reading that is not the default one."""
    found = []
    for (reading, value), rows in READ_OTHERWISE.get(family, {}).items():
        for pair, fields in rows.items():
            rule, modes = MATRIX[family][pair], (fields or {}).get("modes", ())
            if more := tuple(mode for mode in modes if mode not in rule.modes):
                found.append(
                    Unasked(
                        name=f"{rule} in modes of the reading {reading}={value}",
                        assumed=f"{_BY_THE_MODE}: {_words(more)}",
                        why="not asked: the check has the modes of the default readings alone, "
                        f"here {_words(rule.modes)}",
                        pair=pair,
                        modes=more,
                    )
                )
    return found


def _words(modes: tuple[RoundMode | None, ...]) -> str:
    return ", ".join(f"CAST_{mode}" for mode in modes)


UNTIMED: Final[Mapping[str, str]] = MappingProxyType(
    {
        ASCEND_950: "not asked: no cost set has figures of the 950 to compare with, and its "
        "library has no kernels that time; the vendor's elements a cycle by pair (CANN "
        "asc-devkit, theoretical performance of the Reg API, table 10) are of an instruction on "
        "registers, not of the Cast that is launched here, which also loads and stores"
    }
)
"""The families whose cycles are not measured, and why."""
