"""The conversion matrix as a table for people, made of the matrix itself."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from ascend_kernels.matrix import MATRIX, CastRule, rules_of
from simulator.corrections import Readings
from simulator.numbers.formats import FloatFormat, Format, IntFormat
from simulator.numbers.literals import number_of
from simulator.numbers.rounding import rounds_away
from tiling.chips import A2_A3

_NO_OVERFLOW: Final = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    """A pair that a family converts.

    Attributes:
        source: name of the source format.
        destination: name of the destination format.
        modes: names of the round modes; none where every result is exact or clamped.
        default: the mode that CAST_NONE stands for; None where there are no modes.
        overflow: what becomes of values out of range, by default.
        off_acts: SaturationMode.OFF keeps low bits.
    """

    source: str
    destination: str
    modes: tuple[str, ...]
    default: str | None
    overflow: str
    off_acts: bool

    @property
    def no_modes(self) -> str:
        """The reason why there are no modes to choose from."""
        return "exact" if self.overflow == _NO_OVERFLOW else "no rounding"


def rows(family: str = A2_A3, readings: Readings = ()) -> list[MatrixRow]:
    """One row per pair of a family under readings, in the order of the matrix."""
    return [
        MatrixRow(
            source=rule.src.name,
            destination=rule.dst.name,
            modes=tuple(mode.name for mode in rule.modes),
            default=rule.default.name if rule.default is not None else None,
            overflow=_overflow(rule),
            off_acts=bool(rule.off),
        )
        for rule in rules_of(family, readings).values()
    ]


def markdown(family: str = A2_A3) -> str:
    """The table of a family in Markdown; the default mode of each pair is bold."""
    lines = [
        "| source | destination | modes (**default**) | overflow | `SaturationMode.OFF` |",
        "|---|---|---|---|---|",
    ]
    for row in rows(family):
        modes = ", ".join(f"**{m}**" if m == row.default else m for m in row.modes)
        off = "keeps low bits" if row.off_acts else ""
        cells = (row.source, row.destination, modes or row.no_modes, row.overflow, off)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def grid() -> str:
    """All pairs of all families in one table in Markdown, a row for each source.

    A cell names the families that convert the pair: "all" where each does and by the same rule, and
    "all, each by its own" where their modes, default, overflow or SaturationMode.OFF differ.
    """
    found: dict[tuple[str, str], dict[str, MatrixRow]] = {}
    for family in MATRIX:
        for row in rows(family):
            found.setdefault((row.source, row.destination), {})[family] = row
    sources = dict.fromkeys(source for source, _ in found)
    destinations = dict.fromkeys(destination for _, destination in found)

    def cell(by_family: dict[str, MatrixRow]) -> str:
        if len(by_family) < len(MATRIX):
            return ", ".join(by_family)
        return "all" if len(set(by_family.values())) == 1 else "all, each by its own"

    lines = [f"| from \\ to | {' | '.join(destinations)} |", "|---" * (len(destinations) + 1) + "|"]
    for source in sources:
        cells = [cell(found.get((source, destination), {})) for destination in destinations]
        lines.append(f"| {source} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _overflow(rule: CastRule) -> str:
    """Describes the results out of range, in INF/NAN mode and with SaturationMode.ON."""
    fits = _largest(rule.src) <= _largest(rule.dst) and _smallest(rule.src) >= _smallest(rule.dst)
    if isinstance(rule.dst, IntFormat):
        if isinstance(rule.src, IntFormat):
            return "clamped" if rule.clamps else _NO_OVERFLOW
        return "inf clamped, NaN 0" if fits else "clamped, NaN 0"
    if fits:
        return _NO_OVERFLOW
    beyond = "NaN" if rule.dst.inf_code is None else "inf"
    if rule.overflow.overflow.saturates:
        return "max"
    return beyond if _overflows_to_inf(rule) else f"{beyond} or max, by mode"


def _overflows_to_inf(rule: CastRule) -> bool:
    """Every mode of the pair takes overflow of either sign to infinity."""
    signs, beyond = np.array([False, True]), np.array([True, True])
    return all(
        rounds_away(mode, guard=beyond, sticky=beyond, odd=beyond, negative=signs).all()
        for mode in rule.modes
    )


def _largest(fmt: Format) -> Fraction:
    """The largest finite value."""
    if isinstance(fmt, FloatFormat):
        return number_of(fmt.max_code, fmt).magnitude
    return Fraction(fmt.max)


def _smallest(fmt: Format) -> Fraction:
    return -_largest(fmt) if isinstance(fmt, FloatFormat) else Fraction(fmt.min)
