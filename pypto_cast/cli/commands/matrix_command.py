"""`pypto-cast matrix`: the pairs that A2/A3 casts, their modes, and the results of overflow.

A short file because each command has one.
"""

from __future__ import annotations

import dataclasses
import json as json_lib

from ascend_kernels import matrix_table
from pypto_cast.cli.app import Json
from pypto_cast.report import terminal
from pypto_cast.report.report import Report, Table, headed


def run_matrix(json: Json = False) -> None:
    """Show the casts of A2/A3, their modes, and the results of overflow."""
    rows = matrix_table.rows()
    if json:
        print(json_lib.dumps([dataclasses.asdict(row) for row in rows], indent=2))
        return
    cells = []
    for row in rows:
        modes = " ".join(f"[{mode}]" if mode == row.default else mode for mode in row.modes)
        off = "low bits" if row.off_acts else ""
        cells.append((row.source, row.destination, modes or row.no_modes, row.overflow, off))
    columns = headed("from", "to", "modes, [default]", "overflow", "sat. OFF")
    terminal.show(Report(kind="matrix", title="", tables=(Table(columns=columns, rows=cells),)))
