"""Records of tuning results: dicts that JSON gives back as they were, and rows for CSV."""

from __future__ import annotations

import csv
import enum
import io
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pypto_cast.kernel.tuned_kernel import KernelCandidate, TunedKernel
from tiling.chips import Chip
from tiling.ranking import Candidate, TuningResult

Record = dict[str, Any]
PLANNED: Final = "planned"
"""The outcome of a candidate that has figures."""
_Expected = type | list[Any] | Mapping[str, Any]
"""The kind of a field: a type of JSON, a list of a kind, or fields with their kinds."""

_ASKED: Final[Mapping[str, _Expected]] = {
    "shape": [int],
    "src": str,
    "dst": str,
    "mode": str,
    "satmode": str,
    "chip": str,
    "objective": str,
    "top": int,
    "max_tiles": int,
    "cost_set": str,
}
_FOUND: Final[Mapping[str, _Expected]] = {
    "legal_count": int,
    "bound_cycles": float,
    "is_stable": bool,
    "stability": str,
    "notes": [str],
}
_CANDIDATE: Final[Mapping[str, _Expected]] = {
    "rank": int,
    "tile_shape": [int],
    "cycles": float,
    "low_cycles": float,
    "high_cycles": float,
    "microseconds": float,
    "gb_per_second": float,
    "bound_share": float,
    "limit": str,
    "tile_count": int,
    "busy_cores": int,
    "ub_bytes": int,
    "is_double_buffered": bool,
    "tail_waste": float,
    "warnings": [str],
    "reason": str,
}
_KERNEL_ASKED: Final[Mapping[str, _Expected]] = {
    "kernel": str,
    "shapes": [str],
    "release": str,
    "chip": str,
    "top": int,
    "seconds": int,
}
_KERNEL_FOUND: Final[Mapping[str, _Expected]] = {
    "model": str,
    "looked_at": int,
    "combinations": int,
    "planned": int,
    "excluded": int,
    "not_fitting": int,
    "left": int,
    "notes": [str],
}
_KERNEL_CANDIDATE: Final[Mapping[str, _Expected]] = {
    "rank": int,
    "tiles": [str],
    "cycles": int,
    "least_cycles": int,
    "tasks": int,
    "leaves": int,
    "busy_cores": int,
    "peak_ub_bytes": int,
    "needed_ub_bytes": int,
    "reason": str,
}
_PLANNED: Final[Mapping[str, _Expected]] = {
    **{key: kind for key, kind in _KERNEL_CANDIDATE.items() if kind is int},
    "moved_bytes": int,
    "pipe": str,
    "pipe_cycles": int,
}
_PLANNED_RECORD: Final[Mapping[str, _Expected]] = {
    "key": str,
    "outcome": str,
    "planned": [_PLANNED],
}
COLUMNS: Final = (*_ASKED, *_CANDIDATE, *_FOUND)
"""Of the CSV: one row per candidate, the best of a job first."""
_RECORD: Final[Mapping[str, _Expected]] = {
    "key": str,
    **_ASKED,
    **_FOUND,
    "candidates": [_CANDIDATE],
}

_KERNEL_COLUMNS: Final = (*_KERNEL_ASKED, *_KERNEL_CANDIDATE, *_KERNEL_FOUND)
_KERNEL_RECORD: Final[Mapping[str, _Expected]] = {
    "key": str,
    **_KERNEL_ASKED,
    **_KERNEL_FOUND,
    "candidates": [_KERNEL_CANDIDATE],
}


def request_fields(asked: object) -> Record:
    """The fields that a job of a sweep asks for, or a tuning result was asked for."""
    return _fields(_ASKED, asked, getattr(asked, "job", None))


def result_fields(result: TuningResult) -> Record:
    """The fields that were found, without the candidates."""
    return _fields(_FOUND, result)


def candidate_fields(candidate: Candidate) -> Record:
    """A candidate: cycles, their range over all cost sets, time in us, and why."""
    return _fields(_CANDIDATE, candidate, candidate.estimate)


def record_of(key: str, result: TuningResult) -> Record:
    """All that is kept of a result, under the key of its job."""
    return {
        "key": key,
        **request_fields(result),
        **result_fields(result),
        "candidates": [candidate_fields(candidate) for candidate in result.candidates],
    }


def kernel_fields(asked: object) -> Record:
    """The fields that a job of a kernel asks for."""
    return _fields(_KERNEL_ASKED, asked)


def kernel_record(key: str, asked: object, found: TunedKernel) -> Record:
    """All that is kept of the tuning of a kernel, under the key of its job."""
    return {
        "key": key,
        **kernel_fields(asked),
        **_fields(_KERNEL_FOUND, found),
        "candidates": [_fields(_KERNEL_CANDIDATE, each) for each in found.candidates],
    }


def planned_record(key: str, outcome: str, found: KernelCandidate | None) -> Record:
    """The record of a candidate that a search planned: its outcome, and its figures if any."""
    figures = [] if found is None else [_fields(_PLANNED, found)]
    return {"key": key, "outcome": outcome, "planned": figures}


def _fields(kinds: Mapping[str, _Expected], *holders: object) -> Record:
    """The attributes of these names, each of the first holder that has it, as JSON takes them."""
    return {
        name: _plain(next(getattr(one, name) for one in holders if hasattr(one, name)))
        for name in kinds
    }


def _plain(value: object) -> object:
    if isinstance(value, enum.Enum | Chip):
        return value.name
    if isinstance(value, Mapping):  # tile shapes by line, as `schedule --tile` takes them
        return [f"{line}={','.join(map(str, tile))}" for line, tile in value.items()]
    return list(value) if isinstance(value, tuple) else value


def record_fault(read: object) -> str:
    """Say where something read from JSON is not as a record is; empty if it is one."""
    if isinstance(read, dict) and "outcome" in read:
        fault = _fault(read, _PLANNED_RECORD, "")
        is_other = not fault and len(read["planned"]) != (read["outcome"] == PLANNED)
        return "planned is not as outcome says" if is_other else fault
    fault = _fault(read, _KERNEL_RECORD if _is_of_a_kernel(read) else _RECORD, "")
    if not fault and isinstance(read, dict) and not read["candidates"]:
        return "candidates is empty"
    return fault


def _is_of_a_kernel(read: object) -> bool:
    return isinstance(read, dict) and "kernel" in read


def _fault(read: object, kind: _Expected, name: str) -> str:
    where = name or "it"
    if isinstance(kind, Mapping):
        if not isinstance(read, dict) or set(read) != set(kind):
            return f"{where} has other fields"
        faults = (_fault(read[key], of, f"{name} {key}".strip()) for key, of in kind.items())
        return next(filter(None, faults), "")
    if isinstance(kind, list):
        if not isinstance(read, list):
            return f"{where} is no list"
        return next(filter(None, (_fault(entry, kind[0], where) for entry in read)), "")
    return "" if _is_scalar(read, kind) else f"{where} is no {kind.__name__}"


def _is_scalar(read: object, kind: type) -> bool:
    if kind is not float:
        return type(read) is kind  # A bool is an int to Python and none to JSON.
    most = sys.float_info.max
    # JSON may write a float without a fraction, and with any number of digits.
    return type(read) in (int, float) and isinstance(read, (int, float)) and -most <= read <= most


def csv_text(records: Iterable[Record]) -> str:
    """CSV of records of one kind, a row per candidate; a shape is as `--tile` takes it: 64,128."""
    records = list(records)
    columns = _KERNEL_COLUMNS if any(map(_is_of_a_kernel, records)) else COLUMNS
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for record in records:
        for candidate in record["candidates"]:
            fields = {**record, **candidate}
            writer.writerow([_cell(fields[column]) for column in columns])
    return text.getvalue()


def _cell(value: object) -> object:
    if not isinstance(value, list):
        return value
    return (",", "; ")[any(isinstance(entry, str) for entry in value)].join(map(str, value))
