"""The tables of the fidelity page: assumptions, bounds, figures of chips, and their sources."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ascend_kernels.routing.chain_ranking import CHOSEN_RULES
from docs.generators.markdown_text import table
from pypto_cast.dtypes.data_types import DataType
from pypto_cast.options.releases import CONFLICTS, RELEASES, Dtypes, Release
from simulator.arithmetic.cast_choices import CAST_RULES
from simulator.arithmetic.operation import Fidelity
from simulator.arithmetic.table import OPERATIONS
from simulator.arithmetic.trust import ASSUMPTIONS, BOUNDS, NAMED_CHOICES
from simulator.corrections import READINGS
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
        ("operation", "instruction", "source", "boundary tables"),
        (
            (op.name, op.instruction, op.source, ", ".join(map(str, op.tables)))
            for op in OPERATIONS.values()
        ),
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


def _by_dtype(operations: Mapping[str, Dtypes]) -> str:
    listed = {dtype: [name for name, of in operations.items() if dtype in of] for dtype in DataType}
    texts = (f"{d.name}: {', '.join(names)}" for d, names in listed.items() if names)
    return "; ".join(texts) or "none"


_RELEASE_FACTS: Final[Mapping[str, Callable[[Release], str]]] = {
    "revision": lambda release: release.revision,
    "run in FP32 by AutoCast": lambda release: _by_dtype(release.run_in_fp32),
    "cast to FP32 and back inside": lambda release: _by_dtype(release.cast_to_fp32),
    "dtypes taken besides": lambda release: _by_dtype(release.takes),
    "dtypes refused": lambda release: _by_dtype(release.refuses),
    "operations that are not there": lambda release: ", ".join(sorted(release.lacks)) or "none",
    "two dimensions or more": lambda release: ", ".join(release.least_dims) or "none",
    "axes along which one operand is repeated": lambda release: str(release.repeated_axes),
    "a reduction of the last axis needs whole 32 B blocks": lambda release: (
        "yes" if release.reduces_whole_blocks else "no"
    ),
    "`var` multiplies by 1/n": lambda release: "yes" if release.var_multiplies else "no",
    "`where` takes a float beside FP16 and BF16": lambda release: (
        "yes" if release.selects_floats else "no"
    ),
}


def _releases() -> str:
    return table(
        ("", *RELEASES),
        (
            (fact, *(of(release) for release in RELEASES.values()))
            for fact, of in _RELEASE_FACTS.items()
        ),
    )


def _conflicts() -> str:
    return table(
        ("release", "reading", "source", "contrary text", "expects"),
        ((c.release, c.reading, c.source, c.contrary, c.against) for c in CONFLICTS),
    )


def _readings() -> str:
    return table(
        ("reading", "subject", "default", "otherwise"),
        (
            (f"`{name}`", reading.subject, *(f"`{v}`: {t}" for v, t in reading.values.items()))
            for name, reading in READINGS.items()
        ),
    )


_COUNTED: Final = Path(__file__).parents[2] / "tests" / "pypto_cast" / "operations"
"""Two files of counts, which a test compares with the kernels of examples/kernels."""


def _example_kernels() -> str:
    a2_a3, ascend_950 = (
        list(csv.DictReader((_COUNTED / name).read_text(encoding="utf-8").splitlines()))
        for name in ("certain_elements.csv", "certain_elements_950.csv")
    )
    rows = [
        (
            *(here[key] for key in ("kernel", "output", "elements", "by documents", "certain")),
            *(there[key] for key in ("by documents", "certain")),
        )
        for here, there in zip(a2_a3, ascend_950, strict=True)
        if here["operands"] == "near 1"
    ]
    families = ("A2/A3 by documents", "A2/A3 certain", "950 by documents", "950 certain")
    return table(("kernel", "output", "results", *families), rows)


TABLES: Final = MappingProxyType[str, Callable[[], str]](
    {
        "assumptions": _assumptions,
        "bounds": _bounds,
        "by_fidelity": _by_fidelity,
        "example_kernels": _example_kernels,
        "sources": _sources,
        "chosen": _chosen,
        "chips": _chip_figures,
        "releases": _releases,
        "conflicts": _conflicts,
        "readings": _readings,
    }
)
