"""What a sweep keeps of a result: a dict that JSON gives back as it was, and its rows for CSV."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tiling.tune import Candidate

Record = dict[str, Any]

_ASKED: Final = (
    "shape",
    "src",
    "dst",
    "mode",
    "satmode",
    "chip",
    "objective",
    "top",
    "max_tiles",
    "cost_set",
)
_FOUND: Final = ("legal_count", "bound_cycles", "is_stable", "stability", "notes")
_CANDIDATE: Final = (
    "rank",
    "tile_shape",
    "cycles",
    "low_cycles",
    "high_cycles",
    "microseconds",
    "gb_per_second",
    "bound_share",
    "limit",
    "tile_count",
    "busy_cores",
    "ub_bytes",
    "is_double_buffered",
    "tail_waste",
    "warnings",
    "reason",
)
COLUMNS: Final = (*_ASKED, *_CANDIDATE, *_FOUND)
"""Of the CSV: one row per candidate, the best of a job first."""
_FIELDS: Final = {"key", *_ASKED, *_FOUND, "candidates"}


def candidate_fields(candidate: Candidate) -> Record:
    """A candidate: cycles, their range over all cost sets, time in us, and why."""
    estimate = candidate.estimate
    return {
        "rank": candidate.rank,
        "tile_shape": list(candidate.tile_shape),
        "cycles": estimate.cycles,
        "low_cycles": estimate.low_cycles,
        "high_cycles": estimate.high_cycles,
        "microseconds": estimate.microseconds,
        "gb_per_second": estimate.gb_per_second,
        "bound_share": estimate.bound_share,
        "limit": str(estimate.limit),
        "tile_count": candidate.tile_count,
        "busy_cores": candidate.busy_cores,
        "ub_bytes": candidate.ub_bytes,
        "is_double_buffered": candidate.is_double_buffered,
        "tail_waste": candidate.tail_waste,
        "warnings": list(candidate.warnings),
        "reason": candidate.reason,
    }


def is_record(read: object) -> bool:
    """Whether something read from JSON has the fields of a record."""
    if not isinstance(read, dict) or set(read) != _FIELDS:
        return False
    candidates = read["candidates"]
    return (
        isinstance(read["key"], str)
        and isinstance(candidates, list)
        and len(candidates) > 0
        and all(isinstance(one, dict) and set(one) == set(_CANDIDATE) for one in candidates)
    )


def csv_rows(record: Record) -> Iterator[list[object]]:
    """The rows of a record under `COLUMNS`; a shape is written as `--tile` takes it: 64,128."""
    for candidate in record["candidates"]:
        fields = {**record, **candidate}
        yield [_cell(fields[column]) for column in COLUMNS]


def _cell(value: object) -> object:
    if not isinstance(value, list):
        return value
    return (",", "; ")[any(isinstance(entry, str) for entry in value)].join(map(str, value))
