"""The table of all operations that upstream documents, for the pages about operations.

Source of the list: upstream pypto at 883e7dfb0, docs/zh/api/operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from docs.generators.markdown_text import table
from pypto_cast.operations.operation_rows import ROWS, OperationRow
from tiling.chips import A2_A3, ASCEND_950

_BESIDE_THE_TABLE: Final = MappingProxyType(
    {
        "cast": "the [conversion matrix](matrix.md)",
        "view": "a part of a tensor; no dtype is refused",
        "assemble": "writes a part of a tensor; no dtype is refused",
        "experimental.set_operation_options": "takes a setting, which changes no bit",
        "experimental.get_operation_options": "returns the settings",
    }
)
"""Operations without a row, each with a remark."""
_NOT_DOCUMENTED: Final = frozenset({"copysign", "greater", "sort32"})
"""Rows without a page of upstream's."""


def names() -> list[str]:
    """The operations of upstream's pages, experimental ones with that word before them."""
    here = {
        f"experimental.{name}" if row.is_experimental else name
        for name, row in ROWS.items()
        if name not in _NOT_DOCUMENTED
    }
    return sorted({*here, *_BESIDE_THE_TABLE})


def _dtypes(row: OperationRow) -> tuple[str, str]:
    """Those of A2 and A3, and those that the 950 takes besides."""
    here = row.dtypes.get(A2_A3, ())
    besides = [each for each in row.dtypes.get(ASCEND_950, ()) if each not in here]
    shown, more = (
        ", ".join(each.name.removeprefix("DT_") for each in dtypes) for dtypes in (here, besides)
    )
    return shown or ("none: 950 only" if row.dtypes else "any"), more


def _row(name: str) -> tuple[str, str, str, str, str]:
    plain = name.removeprefix("experimental.")
    if name in _BESIDE_THE_TABLE:
        return f"`{name}`", _BESIDE_THE_TABLE[name], "", "", ""
    row = ROWS[ROWS[plain].like or plain]
    is_linked = not row.is_experimental
    link = f"[`{plain}`](operations/{plain}.md)" if is_linked else f"`{name}`"
    absent = "no" if "0.2.0" in ROWS[plain].lacked_by else "yes"
    return link, *_dtypes(row), row.weakest.value, absent


def _all() -> str:
    return table(
        ("operation", "dtypes on A2 and A3", "on the 950 besides", "fidelity", "in release 0.2.0"),
        map(_row, names()),
    )


TABLES: Final[Mapping[str, Callable[[], str]]] = MappingProxyType({"upstream_operations": _all})
"""By name, as the pages give it."""
