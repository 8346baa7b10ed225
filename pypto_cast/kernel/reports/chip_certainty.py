"""The certainty of one kernel on several chips, side by side."""

from __future__ import annotations

from collections.abc import Mapping

from pypto_cast.kernel.certainty import Certainty
from pypto_cast.report.report import Table, columns


def chips_table(by_chip: Mapping[str, Certainty]) -> Table:
    """A row for each output on each chip, the chips of an output one below the other.

    Args:
        by_chip: certainties of one kernel on the same operands, by the chip's name.
    """
    names = next(iter(by_chip.values()))
    return Table(
        key="chips",
        caption="By chip",
        columns=columns(
            name="output",
            chip="chip",
            share="certain",
            by_documents="by documents",
            by_choices="given choices",
            undecided="undecided",
        ),
        rows=[
            (
                *(name, chip, counts.share),
                *(counts.by_documents, counts.by_choices, counts.undecided),
            )
            for name in names
            for chip, counts in ((c, certainty[name].counts) for c, certainty in by_chip.items())
        ],
    )
