"""The figures that everything is computed from, each with its source."""

from __future__ import annotations

from pypto_cast.report.markup import Table
from pypto_cast.tuning.report.section import Section
from pypto_cast.tuning.tune import TunedCast
from tiling.chips import Chip
from tiling.cost import STARTUP_RULE, CostParameters, figure_names
from tiling.ranking import TuningResult


def figures_table(cast: TunedCast) -> Section:
    """The cost set, the chip, and what other cost sets make of the choice."""
    return Section(
        key="parameters",
        title="Parameters",
        summary=(
            f"Cost set {cast.parameters.name} and chip {cast.chip}, a source per figure; "
            f"{cast.parameters.standing}."
        ),
        notes=(f"{cast.stability[:1].upper()}{cast.stability[1:]}.",),
        tables=(_set(cast.parameters), _chip(cast.chip), _views(cast)),
    )


def _set(parameters: CostParameters) -> Table:
    return Table(
        caption=f"Cost set {parameters.name}",
        headings=("figure", "value", "standing", "source"),
        rows=tuple(
            (
                name,
                _value(getattr(parameters, name)),
                parameters.sources[name].standing.value,
                parameters.sources[name].text,
            )
            for name in (*figure_names(), STARTUP_RULE)
        ),
        is_prose=True,
    )


def _chip(chip: Chip) -> Table:
    return Table(
        caption=f"Chip {chip}",
        headings=("figure", "value", "standing", "source"),
        rows=tuple(
            (name, _value(getattr(chip, name)), source.standing.value, source.text)
            for name, source in chip.sources.items()
        ),
        is_prose=True,
    )


def _views(result: TuningResult) -> Table:
    return Table(
        caption=f"What each cost set makes of {list(result.best)}",
        headings=("cost set", "its best", "cycles of its best", "cycles of the choice", "slower"),
        rows=tuple(
            (
                view.cost_set,
                str(list(view.best)),
                f"{view.best_cycles:,.0f}",
                f"{view.chosen_cycles:,.0f}",
                f"{view.excess:.1%}",
            )
            for view in result.views.values()
        ),
    )


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.15g}" if isinstance(value, (int, float)) else str(value)
