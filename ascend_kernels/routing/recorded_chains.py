"""Chains and verdicts to rows of the committed table, and back."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from ascend_kernels.routing.chain_check import Difference, Evidence, Question, Verdict, all_values
from ascend_kernels.routing.chain_ranking import RankedChain, cycles_of, ranked_chains
from ascend_kernels.routing.chains import Chain, chain_named
from ascend_kernels.routing.verdict_table import TABLE_STEPS, RecordedRoute, recorded_rows
from simulator.numbers.formats import FORMATS
from simulator.numbers.rounding import RoundMode

_ALWAYS: Final = ("standing", "codes", "basis")


def lookup(
    question: Question, mode: RoundMode, steps: int, *, exhaustive: bool = False
) -> tuple[RankedChain, ...]:
    """The ranked chains: from the table where it has them, else computed now.

    Args:
        question: formats and sources.
        mode: of the single rounding.
        steps: native casts of a chain, at most.
        exhaustive: compute, and show that the best one is exact on every code.
    """
    src, dst = question.src, question.dst
    if steps == TABLE_STEPS and not exhaustive and question == all_values(src, dst):
        rows = recorded_rows().get((src.name, dst.name, mode.name), ())
        if rows:
            return tuple(map(_ranked, rows))
    return ranked_chains(question, mode, steps, exhaustive=exhaustive)


def route_row(ranked: RankedChain) -> dict[str, Any]:
    """The row of the table for a chain, without the fields that have their usual values."""
    verdict = ranked.verdict
    fields = {
        field.name: getattr(verdict, field.name)
        for field in dataclasses.fields(Verdict)
        if field.name in _ALWAYS or getattr(verdict, field.name) != field.default
    }
    fields["standing"] = verdict.standing.name
    if verdict.first:
        fields["first"] = [[d.code, d.found, d.wanted] for d in verdict.first]
    return {"route": str(ranked.chain), **fields}


def _ranked(row: RecordedRoute) -> RankedChain:
    fields = dict(row.verdict)
    first = [Difference(code=c, found=f, wanted=w) for c, f, w in fields.get("first", ())]
    ends = fields.get("exact_range")
    verdict = Verdict(
        **{
            **fields,
            "standing": Evidence[fields["standing"]],
            "first": tuple(first),
            "exact_range": None if ends is None else (ends[0], ends[1]),
            "rests_on": tuple(fields.get("rests_on", ())),
        }
    )
    chain = chain_of_text(row.route)
    return RankedChain(chain=chain, verdict=verdict, cycles=cycles_of(chain))


def chain_of_text(text: str) -> Chain:
    """The chain that a text such as "FP32 -> FP16 CAST_ODD -> INT8 CAST_RINT" spells."""
    formats, modes = [], []
    for word in text.split(" -> "):
        name, _, mode = word.partition(" ")
        formats.append(FORMATS[name])
        modes.append(mode)
    return chain_named(tuple(formats), tuple(modes[1:]))
