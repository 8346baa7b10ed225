"""`pypto-cast matrix`: the pairs that A2/A3 casts, their modes, and the results of overflow.

A short file because each command has one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ascend_kernels import matrix_table
from ascend_kernels.matrix_table import MatrixRow
from pypto_cast.cli import text as render
from pypto_cast.cli.app import Json
from pypto_cast.cli.text import Column, FittedTable


def run_matrix(json: Json = False) -> None:
    """Show the casts of A2/A3, their modes, and the results of overflow."""
    rows = matrix_table.rows()
    if json:
        render.json([dataclasses.asdict(row) for row in rows])
    else:
        _show(rows)


def _show(rows: Sequence[MatrixRow]) -> None:
    """Show the support table; the default mode is the one in brackets."""
    cells = []
    for row in rows:
        modes = " ".join(f"[{mode}]" if mode == row.default else mode for mode in row.modes)
        off = "low bits" if row.off_acts else ""
        cells.append((row.source, row.destination, modes or row.no_modes, row.overflow, off))
    headers = ("from", "to", "modes, [default]", "overflow", "sat. OFF")
    render.show(FittedTable(columns=tuple(Column(header=name) for name in headers), rows=cells))
