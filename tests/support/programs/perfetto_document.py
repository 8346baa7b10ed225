"""Checks on a trace in the Perfetto form."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

KEYS = {
    "M": {"name", "pid", "args"},
    "X": {"name", "cat", "pid", "tid", "ts", "dur", "args"},
    "s": {"name", "cat", "id", "pid", "tid", "ts"},
    "f": {"name", "cat", "id", "pid", "tid", "ts", "bp"},
}


def is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def check_entry(entry: dict[str, Any]) -> None:
    """Keys and types of one entry, by the Trace Event Format document."""
    assert KEYS[entry["ph"]] <= set(entry) - {"ph"} <= KEYS[entry["ph"]] | {"tid"}
    assert isinstance(entry["name"], str)
    assert type(entry["pid"]) is int
    assert entry["pid"] > 0
    assert type(entry.get("tid", 0)) is int
    if "ts" in entry:
        assert is_number(entry["ts"])
        assert entry["ts"] >= 0
    if entry["ph"] == "X":
        assert is_number(entry["dur"])
        assert entry["dur"] >= 0
    if entry["ph"] in "sf":
        assert type(entry["id"]) is int
        assert 0 <= entry["id"] < 2**53
        assert entry.get("bp", "e") == "e"
    assert isinstance(entry.get("args", {}), dict)


def check_document(document: dict[str, Any]) -> None:
    """The whole file: tracks named, slices in order, every arrow with both its ends."""
    assert document["displayTimeUnit"] in ("ms", "ns")
    entries = document["traceEvents"]
    for entry in entries:
        check_entry(entry)
    named = {(e["pid"], e["tid"]) for e in entries if e["name"] == "thread_name"}
    processes = {e["pid"] for e in entries if e["name"] == "process_name"}
    slices = [e for e in entries if e["ph"] == "X"]
    assert {(e["pid"], e["tid"]) for e in slices} <= named
    assert {pid for pid, _ in named} == processes
    assert len({tid for _, tid in named}) == len(named)
    last: dict[int, float] = defaultdict(float)
    for entry in slices:
        assert entry["ts"] >= last[entry["tid"]] - 1e-7
        last[entry["tid"]] = entry["ts"] + entry["dur"]
    check_flows(entries)


def check_flows(entries: Sequence[dict[str, Any]]) -> None:
    """Exactly one start and one end of each arrow, each within the slice written before it."""
    ends: dict[tuple[str, str, int], list[tuple[str, float]]] = defaultdict(list)
    for before, entry in itertools.pairwise(entries):
        if entry["ph"] not in "sf":
            continue
        assert (before["ph"], before["tid"]) == ("X", entry["tid"])
        assert before["ts"] <= entry["ts"] <= before["ts"] + before["dur"] + 1e-7
        assert before["name"] == f"{'Set' if entry['ph'] == 's' else 'Wait'}Flag {entry['name']}"
        ends[entry["cat"], entry["name"], entry["id"]].append((entry["ph"], entry["ts"]))
    assert len({number for _, _, number in ends}) == len(ends)
    for found in ends.values():
        (start, start_us), (end, end_us) = sorted(found, reverse=True)
        assert (start, end) == ("s", "f")
        assert start_us <= end_us
