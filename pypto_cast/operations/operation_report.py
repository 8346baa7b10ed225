"""The table of operations as a report: dtypes, bounds, sources and special values of each."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from pypto_cast.call_sites import silenced
from pypto_cast.cast.api import cast
from pypto_cast.dtypes.data_types import DataType
from pypto_cast.missing_names import REASONS, nearest
from pypto_cast.operations.operation_rows import ROWS, OperationRow
from pypto_cast.options.context import defaults, options
from pypto_cast.options.releases import RELEASES
from pypto_cast.report.report import Fact, Report, Table, Words, columns, plain
from pypto_cast.tensors.arrays import from_numpy
from pypto_cast.tensors.tensor import Tensor
from simulator.arithmetic import OPERATIONS, Operation

_SHORT: Final = "DT_"
_OPERANDS: Final = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0)
_OF_AXES: Final = ("dim", "diagonal")
"""Parameters of operations that are not elementwise."""
_TILE: Final = 8
_LINK: Final = re.compile(r"\[([^]]*)\]\([^)]*\)")
"""A link of Markdown, of which a terminal shows the text."""


def operations_report() -> Report:
    """All operations: dtypes by family, and how much is known of their bits."""
    rows = [
        (name, _by_family(x.dtypes), x.weakest.value, x.standing.value, _listed(x.lacked_by))
        for name, x in sorted(ROWS.items())
    ]
    headings = columns(
        name="operation",
        dtypes="dtypes",
        fidelity="fidelity",
        standing="standing",
        lacked_by="not in release",
    )
    table = Table(key="operations", columns=headings, rows=rows)
    return Report(kind="operations", title="", facts=plain(count=len(rows)), tables=(table,))


def operation_report(name: str) -> Report:
    """One operation: dtypes by family and release, bound, source and special values.

    Raises:
        ValueError: no such operation; names the nearest.
    """
    if name not in ROWS:
        near, reason = nearest(name, (*ROWS, cast.__name__)), REASONS.get(name)
        hint = f", did you mean {near!r}?" if near else ";"
        if reason is not None:
            raise ValueError(f"operation {name!r} is not here: upstream's is {reason}")
        raise ValueError(f"there is no operation {name!r}{hint} `pypto-cast operations` lists them")
    row = ROWS[name]
    parts = row.parts or (row.name, row.like)
    arithmetic = [OPERATIONS[each] for each in parts if each in OPERATIONS]
    dtypes = [
        (family, release, _listed(each.name for each in _taken(row, listed, release)))
        for family, listed in row.dtypes.items()
        for release in RELEASES
    ]
    bounds = [
        (each.name, each.fidelity.value, _bound(each), _listed(map(str, each.assumes)), each.source)
        for each in arithmetic
    ]
    known = row.weakest.value
    told_fidelity = ": ".join(filter(None, (known, _LINK.sub(r"\1", row.remark))))
    special = _special_values(row)
    told = ", ".join(f"{operand}: {result}" for operand, result in special.items())
    facts = (
        Fact(key="name", value=name, label="operation"),
        Fact(key="fidelity", value=Words(value=known, text=told_fidelity), label="fidelity"),
        Fact(key="standing", value=row.standing.value, label="standing"),
        Fact(key="source", value=row.origin, label="source" if row.origin else None),
        Fact(key="special_values", value=Words(value=special, text=told), label="special values"),
    )
    return Report(
        kind="operation",
        title=_first_line(row),
        facts=facts,
        tables=(
            Table(
                key="dtypes",
                columns=columns(family="family", release="release", dtypes="dtypes"),
                rows=dtypes,
            ),
            Table(
                key="bounds",
                columns=columns(
                    part="part",
                    fidelity="fidelity",
                    bound="bound",
                    assumes="assumes",
                    source="source",
                ),
                rows=bounds,
            ),
        ),
    )


def _listed(names: Iterable[str]) -> Words:
    found = list(names)
    return Words(value=found, text=" ".join(found))


def _taken(row: OperationRow, listed: Iterable[DataType], release: Any) -> list[DataType]:
    """The dtypes that a release accepts of those of a family, and those that it accepts besides."""
    found = RELEASES[release]
    if row.name in found.lacks:
        return []
    known = [dtype for dtype in listed if found.offers(row.name, dtype, listed=True)]
    return [*known, *(each for each in found.takes.get(row.name, ()) if each not in known)]


def _by_family(listed: Mapping[str, Iterable[DataType]]) -> Words:
    names = {family: [dtype.name for dtype in dtypes] for family, dtypes in listed.items()}
    texts = (
        f"{family}: {' '.join(name.removeprefix(_SHORT) for name in found)}"
        for family, found in names.items()
    )
    return Words(value=names, text="; ".join(texts) or "any")


def _bound(operation: Operation) -> str:
    if operation.bound is None:
        return ""
    ulps = ", ".join(f"{fmt.name} {count} ulp" for fmt, count in operation.bound.ulps.items())
    return f"{ulps}: {operation.bound.source}"


def _first_line(row: OperationRow) -> str:
    return (inspect.getdoc(row.function) or "").partition("\n")[0]


def _special_values(row: OperationRow) -> dict[str, str]:
    """By special operand in FP32 its result; empty of operations of other or more operands."""
    function, taken = row.function, next(iter(row.dtypes.values()), ())
    if function is None or DataType.DT_FP32 not in taken:
        return {}
    first, *others = inspect.signature(function).parameters.values()
    is_of_one = first.default is first.empty and all(
        each.default is not each.empty and each.name not in _OF_AXES for each in others
    )
    if not is_of_one or not (row.parts or row.name in OPERATIONS):
        return {}
    with defaults(), options(vec_tile_shapes=[_TILE]), silenced():
        result: Any = function(from_numpy(np.array(_OPERANDS, np.float32)))
    if not isinstance(result, Tensor):
        return {}
    shown = [str(each.item()) for each in result.numpy()]
    return {str(each): text for each, text in zip(_OPERANDS, shown, strict=True)}
