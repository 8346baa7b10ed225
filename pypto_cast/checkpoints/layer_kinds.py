"""A summary of reports by kind of layer: names that differ in their numbers alone are one kind."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pypto_cast.cast.cast_report import CastReport
from pypto_cast.checkpoints.blocks import Outcome

_NUMBER: Final = re.compile(r"(?<![^._])\d+(?![^._])")


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerKind:
    """The tensors of one kind that were changed.

    Attributes:
        name: with * for the numbers.
        tensors: how many.
        report: of all of them.
        uncertain: codes that the device may give otherwise.
    """

    name: str
    tensors: int
    report: CastReport
    uncertain: int


def kind_of(name: str) -> str:
    """`layer.11.weight` as `layer.*.weight`."""
    return _NUMBER.sub("*", name)


def by_kind(outcomes: Iterable[Outcome]) -> tuple[LayerKind, ...]:
    """The kinds in the order in which they occur."""
    found: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.report is not None:
            found.setdefault(kind_of(outcome.job.stored.name), []).append(outcome)
    return tuple(
        LayerKind(
            name=name,
            tensors=len(same),
            report=sum((one.report for one in same if one.report), CastReport()),
            uncertain=sum(one.uncertain or 0 for one in same),
        )
        for name, same in found.items()
    )


def worst_first(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Outcomes with reports: overflow before all else, then the least signal to noise."""

    def rank(outcome: Outcome) -> tuple[int, float]:
        report = outcome.report or CastReport()
        snr = report.snr_db
        return -report.overflows, float("inf") if snr is None else snr

    return sorted((one for one in outcomes if one.report is not None), key=rank)
