"""The tables of the fidelity page: assumptions, bounds, figures of chips, and their sources."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Final

from ascend_kernels.routing.chosen_rules import CHOSEN_RULES
from documentation.markdown_table import table
from simulator.arithmetic.cast_choices import CAST_RULES
from simulator.arithmetic.cause_codes import NAMED_CHOICES
from simulator.arithmetic.operation import Fidelity
from simulator.arithmetic.table import OPERATIONS
from simulator.arithmetic.trust import ASSUMPTIONS, BOUNDS
from tiling.chips import CHIPS


def _assumptions() -> str:
    named = sorted(NAMED_CHOICES, key=lambda assumption: assumption.name)
    return table(
        ("name", "by default", "statement", "nearest public text"),
        ((f"`{a}`", "yes" if a in ASSUMPTIONS else "no", a.statement, a.source) for a in named),
    )


def _bounds() -> str:
    rows = (
        (b.name, *(str(ulps) for ulps in b.ulps.values()), "yes" if b.published else "no", b.source)
        for b in BOUNDS
    )
    return table(("operation", *(f.name for f in BOUNDS[0].ulps), "published", "source"), rows)


def _by_fidelity() -> str:
    return table(
        ("fidelity", "operations"),
        (
            (
                fidelity.value,
                ", ".join(op.name for op in OPERATIONS.values() if op.fidelity is fidelity),
            )
            for fidelity in Fidelity
        ),
    )


def _sources() -> str:
    return table(
        ("operation", "instruction", "source"),
        ((op.name, op.instruction, op.source) for op in OPERATIONS.values()),
    )


def _chosen() -> str:
    rules = dict.fromkeys((*CAST_RULES, *CHOSEN_RULES))
    return table(
        ("choice", "rule", "the other possibility"),
        ((f"`{r.assumption}`", r.rule, r.otherwise) for r in rules),
    )


def _chip_figures() -> str:
    rows: dict[tuple[str, str, str, str], list[str]] = {}
    for chip in CHIPS.values():
        for field, source in chip.sources.items():
            fact = (field, f"{getattr(chip, field):,}", source.standing.value, source.text)
            rows.setdefault(fact, []).append(chip.name)
    return table(
        ("figure", "value", "standing", "source", "chips"),
        ((*fact, "all" if len(of) == len(CHIPS) else ", ".join(of)) for fact, of in rows.items()),
    )


TABLES: Final = MappingProxyType[str, Callable[[], str]](
    {
        "assumptions": _assumptions,
        "bounds": _bounds,
        "by_fidelity": _by_fidelity,
        "sources": _sources,
        "chosen": _chosen,
        "chips": _chip_figures,
    }
)
