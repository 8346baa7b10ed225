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
from pypto_cast.report.markup import page_html, resource
from simulator.numbers.formats import FORMATS, Format
from simulator.numbers.literals import number_of, short_text
from simulator.numbers.rounding import RoundMode

_KINDS: Final = {
    "native": "one cast",
    "exact": "an exact route",
    "differs": "every route differs",
    "none": "no route",
}
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
    document = {
        "routes": {" ".join(key): _routes(ranked, key[2]) for key, ranked in found.items()},
        "kinds": {" ".join(key): _kind(ranked) for key, ranked in found.items()},
        "ends": {fmt.name: _ends(fmt) for fmt in ROUTE_FORMATS},
        "full": FULL,
    }
    exact = sum(_kind(ranked) in ("native", "exact") for ranked in found.values())
    modes = "".join(f"<option value={mode.name}>CAST_{mode}</option>" for mode in RoundMode)
    keys = "".join(
        f'<li><span class="key {kind}"></span>{text}</li>' for kind, text in _KINDS.items()
    )
    heads = "".join(f'<th scope="col">{fmt}</th>' for fmt in ROUTE_FORMATS)
    rows = "\n".join(map(_row, ROUTE_FORMATS))
    return page_html(
        "Routes of native casts",
        f"<p>Chains of at most {TABLE_STEPS} native casts of A2/A3, against one rounding in the "
        f"mode asked for. Of {len(found)} pairs and modes {exact} have an exact route.</p>",
        f"""<p><label for="mode">Round mode </label><select id="mode">{modes}</select></p>
<ul class="keys inline">{keys}</ul>
<div class="scroll" role="region" tabindex="0" aria-label="Pairs"><table id="atlas">
<caption>Source down, destination across. Choose a pair to see its routes.</caption>
<thead><tr><td></td>{heads}</tr></thead>
<tbody>
{rows}
</tbody></table></div>
<section id="pair" aria-live="polite"></section>""",
        script=resource(__package__, "atlas_page.js"),
        document=document,
    )


def _row(src: Format) -> str:
    asked = {(src_name, dst_name) for src_name, dst_name, _ in recorded_rows()}
    cells = (
        f'<td><button type="button" data-pair="{src} {dst}" aria-label="{src} to {dst}">{dst}'
        "</button></td>"
        if (src.name, dst.name) in asked
        else "<td></td>"
        for dst in ROUTE_FORMATS
    )
    return f'<tr><th scope="row">{src}</th>{"".join(cells)}</tr>'


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


def _ends(fmt: Format) -> list[str]:
    return [_value(code, fmt) for code in stretch_codes(fmt, _PARTS)]


def _value(code: int, fmt: Format) -> str:
    return short_text(str(number_of(code, fmt)))
