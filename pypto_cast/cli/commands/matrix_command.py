"""`pypto-cast matrix`: the pairs that a chip casts, their modes, and the results of overflow.

A short file because each command has one.
"""

from __future__ import annotations

from ascend_kernels import matrix_table
from pypto_cast.cli.app import ChipName, Json, Readings, readings_named
from pypto_cast.options.context import options
from pypto_cast.report import terminal
from pypto_cast.report.report import Report, Table, Words, columns, plain


def run_matrix(chip: ChipName = None, reading: Readings = None, json: Json = False) -> None:
    """Show the casts of a chip, their modes and overflow."""
    with options(chip=chip, readings=readings_named(reading)) as context:
        family = context.chip.isa
    rows = []
    for row in matrix_table.rows(family, context.readings):
        modes = " ".join(f"[{mode}]" if mode == row.default else mode for mode in row.modes)
        modes_cell = Words(value=row.modes, text=modes or row.no_modes)
        off = Words(value=row.off_acts, text="low bits" if row.off_acts else "")
        rows.append((row.source, row.destination, modes_cell, row.default, row.overflow, off))
    headings = columns(
        src="from",
        dst="to",
        modes="modes, [default]",
        default=None,
        overflow="overflow",
        off_acts="sat. OFF",
    )
    table = Table(key="pairs", columns=headings, rows=rows)
    terminal.show(
        Report(kind="matrix", title="", facts=plain(family=family), tables=(table,)), as_json=json
    )
