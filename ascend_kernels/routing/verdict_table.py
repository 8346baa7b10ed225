"""The committed verdicts: for each pair of formats and mode the best routes of three casts.

`python -m ascend_kernels.routing.make_table` writes them.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from ascend_kernels.matrix import UnsupportedCastError, default_mode, rules_of
from simulator.numbers.formats import FloatFormat, Format
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3

TABLE: Final = Path(__file__).with_name("verdicts.json")
_TABLES: Final = MappingProxyType({A2_A3: TABLE})
"""By family; the casts of another have no recorded routes."""
TABLE_STEPS: Final = 3
"""Casts of a route in the table, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRoute:
    """A route of the table.

    Attributes:
        route: such as "FP32 -> FP16 CAST_ODD -> INT8 CAST_RINT".
        verdict: the fields of its verdict that are not the usual ones.
    """

    route: str
    verdict: Mapping[str, Any]

    @property
    def differing(self) -> int:
        """Codes that are converted otherwise than by one rounding."""
        found: int = self.verdict.get("differing", 0)
        return found

    @property
    def words(self) -> str:
        """The verdict in a sentence."""
        codes = f"{self.verdict['codes']:,} codes"
        if not self.differing:
            return f"{self.route} is exact on all {codes}"
        least = "at least " if self.verdict.get("is_least") else ""
        return f"{self.route} differs from one rounding on {least}{self.differing:,} of {codes}"


Rows = Mapping[tuple[str, str, str], tuple[RecordedRoute, ...]]


@functools.cache
def recorded_rows(family: str = A2_A3) -> Rows:
    """Every row of the table, by names of source, destination and mode; the best route first."""
    table = _TABLES.get(family)
    if table is None or not table.exists():
        return MappingProxyType({})
    document = json.loads(table.read_text(encoding="utf-8"))
    return MappingProxyType(
        {
            (row["from"], row["to"], row["mode"]): tuple(
                RecordedRoute(route=one.pop("route"), verdict=one) for one in row["routes"]
            )
            for row in document["rows"]
        }
    )


def advised(
    error: UnsupportedCastError, family: str, src: Format, dst: Format, mode: RoundMode | None
) -> UnsupportedCastError:
    """The error for a pair outside the matrix, with the best route of casts that the table has.

    Of a family without a table the route is one whose first cast rounds nothing.

    Args:
        error: of `resolve`.
        family: the instructions of the chip.
        src: the source format.
        dst: the destination format.
        mode: None takes TRUNC from float to integer, ROUND to HF8, else RINT.
    """
    asked = mode or default_mode(src, dst)
    best = recorded_rows(family).get((src.name, dst.name, asked.name), ())[:1]
    words = [route.words for route in best] or _in_one_rounding(family, src, dst, mode)
    return UnsupportedCastError("".join([str(error), *(f". {text}" for text in words)]))


def _in_one_rounding(
    family: str, src: Format, dst: Format, mode: RoundMode | None
) -> Iterator[str]:
    """The words for a route of two casts of which the first is exact, to a float without modes."""
    rules = rules_of(family)
    for first in rules.values():
        last = rules.get((first.dst, dst))
        is_exact = isinstance(first.dst, FloatFormat) and not first.modes
        if first.src is not src or not is_exact or last is None:
            continue
        asked = mode or last.default
        if not last.modes or asked in last.modes:
            steps = f"{src} -> {first.dst} -> {dst}" + (f" CAST_{asked}" if last.modes else "")
            yield f"{steps} rounds once: its first cast is exact"
            return
