"""`pypto-cast operations [NAME]`: the operations of kernels, or the facts of one.

A short file because each command has one.
"""

from __future__ import annotations

from typing import Annotated

import typer

from pypto_cast import loading
from pypto_cast.cli.app import Json
from pypto_cast.operations.operation_report import operation_report, operations_report
from pypto_cast.report import terminal

Name = Annotated[
    str | None, typer.Argument(metavar="NAME", help="Such as exp; all operations if not set.")
]


def run_operations(name: Name = None, json: Json = False) -> None:
    """Show dtypes, bound, source, special values of operations."""
    loading.load()
    report = operations_report() if name is None else operation_report(name)
    terminal.show(report, as_json=json)
