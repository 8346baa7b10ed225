"""The atlas of routes as HTML: every pair of formats, its routes, and where a bad one differs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ascend_kernels.routing.chain_check import all_values
from ascend_kernels.routing.chain_ranking import (
    FULL,
    RankedChain,
    differing_shares,
    lookup,
    stretch_codes,
)
from ascend_kernels.routing.chains import ROUTE_FORMATS
from ascend_kernels.routing.verdict_table import TABLE_STEPS, recorded_rows
from pypto_cast.report.page import page_html
from pypto_cast.report.report import Report
from simulator.numbers.formats import FORMATS, Format
from simulator.numbers.literals import number_of, short_text
from simulator.numbers.rounding import RoundMode

_KINDS: Final = (
    ("native", "one cast"),
    ("exact", "an exact route"),
    ("differs", "every route differs"),
    ("none", "no route"),
)
_OPENED: Final = ("FP32", "FP16")
"""The pair that is shown at first."""
_PARTS: Final = 4
"""Of the axis under a picture, between labels."""


def atlas_page() -> str:
    """The whole page, from the committed table; a browser that opens it asks nothing of a network.

    The first route of a pair and mode that differs has a picture.
    """
    found = {
        key: lookup(all_values(FORMATS[key[0]], FORMATS[key[1]]), RoundMode[key[2]], TABLE_STEPS)
        for key in recorded_rows()
    }
    data = {
        "routes": {" ".join(key): _routes(ranked, key[2]) for key, ranked in found.items()},
        "kinds": {" ".join(key): _kind(ranked) for key, ranked in found.items()},
        "ends": {
            fmt.name: [_value(code, fmt) for code in stretch_codes(fmt, _PARTS)]
            for fmt in ROUTE_FORMATS
        },
        "full": FULL,
    }
    exact = sum(_kind(ranked) in ("native", "exact") for ranked in found.values())
    return page_html(
        Report(
            kind="routes",
            title="Routes of native casts",
            lead=f"Chains of at most {TABLE_STEPS} native casts of A2/A3, against one rounding in "
            f"the mode asked for. Of {len(found)} pairs and modes {exact} have an exact route.",
            keys=_KINDS,
        ),
        template="routes/atlas_page.html",
        script="routes/atlas_page.js",
        data=data,
        modes=[mode.name for mode in RoundMode],
        formats=[fmt.name for fmt in ROUTE_FORMATS],
        pairs={key[:2] for key in found},
        opened=_OPENED,
    )


def _kind(ranked: Sequence[RankedChain]) -> str:
    if not ranked:
        return "none"
    if not ranked[0].verdict.is_exact:
        return "differs"
    return "native" if len(ranked[0].chain.casts) == 1 else "exact"


def _routes(ranked: Sequence[RankedChain], mode: str) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = []
    for one in ranked:
        shown.append({"route": str(one.chain), "lines": _lines(one)})
        differs = not one.verdict.is_exact
        if differs and not any("shares" in before for before in shown):
            shown[-1]["shares"] = differing_shares(one.chain, RoundMode[mode])
    return shown


def _lines(one: RankedChain) -> list[str]:
    """The verdict in lines of text."""
    verdict, src, dst = one.verdict, one.chain.src, one.chain.dst
    lines = [f"{verdict}; {verdict.basis}. {one.cycles:,.0f} cycles for 1,048,576 elements."]
    lines += [f"Rests on a choice: {text}." for text in verdict.rests_on]
    if verdict.first:
        first = verdict.first[0]
        lines.append(
            f"First: {_value(first.code, src)} gives {_value(first.found, dst)}, not "
            f"{_value(first.wanted, dst)}. Largest error: {verdict.largest_error:,} numbers."
        )
    if verdict.differing and verdict.exact_range is not None:
        low, high = (_value(code, src) for code in verdict.exact_range)
        lines.append(f"Exact from {low} to {high}.")
    return lines


def _value(code: int, fmt: Format) -> str:
    return short_text(str(number_of(code, fmt)))
