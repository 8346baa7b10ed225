"""A trace made into a timeline, a listing, and JSON that a viewer can open; their memory."""

from __future__ import annotations

import itertools
import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from support.programs.perfetto_document import check_document
from support.programs.tile_programs import program_of
from test_trace import PTO, every_set

from simulator.machine.isa import Pipe
from simulator.traces.perfetto import PIPE_NAMES, perfetto
from simulator.traces.trace import PIPES, text, timeline, trace
from tiling.cost import CostParameters

# --- Timeline and listing ----------------------------------------------------------------------


@every_set
def test_busy_and_idle_make_the_makespan(parameters: CostParameters) -> None:
    program = program_of((96, 96), (16, 16))
    events = [event for core in program.cores for event in trace(program, core, parameters)]
    added = timeline(reversed(events))
    assert added.makespan_cycles == max(event.end_cycle for event in events)
    assert [core.core for core in added.cores] == list(program.cores)
    for core in added.cores:
        mine = [event for event in events if event.core == core.core]
        assert core.makespan_cycles == max(event.end_cycle for event in mine)
        for pipe in PIPES:
            busy = sum(event.cycles for event in mine if event.pipe is pipe and event.is_work)
            assert core.busy_cycles[pipe] == pytest.approx(busy)
            assert 0 <= added.busy_share(pipe) <= 1
    assert added.busy_share(added.limiting_pipe) == max(map(added.busy_share, PIPES))


def test_nothing_adds_up_to_nothing() -> None:
    added = timeline([])
    assert (added.makespan_cycles, added.busy_share(Pipe.V), added.copied_bytes) == (0, 0, 0)


TIMES = ("start_cycle", "end_cycle")


def test_the_listing_has_a_line_per_instruction() -> None:
    program = program_of((64, 128), (64, 128))
    heading, *lines = text(trace(program, 0, PTO))
    assert heading.split() == ["core", "index", "pipe", *TIMES, "instruction"]
    assert len(lines) == len(list(program.instructions(0)))
    assert lines[4].split()[:5] == ["0", "4", "V", "2.0", "524.0"]
    assert "WaitFlag MTE2_V 0  (set by 3 at 523.0)  # tile 0" in lines[4]
    assert lines[5].endswith("# tile 0 at [0, 0], [64, 128] elements")
    assert "#" not in lines[0]


def test_memory_does_not_grow_with_the_tiles() -> None:
    program = program_of((40_000_000, 8), (1, 8))
    tracemalloc.start()
    try:
        head = sum(1 for _ in itertools.islice(trace(program, 0, PTO), 1000))
        pieces = sum(1 for _ in itertools.islice(perfetto(program, PTO), 1000))
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (head, pieces) == (1000, 1000)
    assert peak_bytes < 300_000


@pytest.mark.slow
def test_memory_does_not_grow_with_the_events() -> None:
    """Some 11000 events of 1000 tiles: kept, they would take megabytes."""
    program = program_of((1000 * 40, 8), (1, 8))
    tracemalloc.start()
    try:
        added = timeline(trace(program, 0, PTO))
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert added.makespan_cycles > 1000 * 100
    assert peak_bytes < 300_000


# --- Perfetto ----------------------------------------------------------------------------------


def document_of(*arguments: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads("".join(perfetto(*arguments)))
    return found


@every_set
def test_the_json_is_a_trace(parameters: CostParameters) -> None:
    program = program_of((100, 70), (16, 32))
    document = document_of(program, parameters)
    check_document(document)
    slices = [entry for entry in document["traceEvents"] if entry["ph"] == "X"]
    assert len(slices) == sum(1 for core in program.cores for _ in program.instructions(core))
    assert document["otherData"]["cost set"] == parameters.name
    assert "no figure was measured" in document["otherData"]["note"]


def test_the_json_names_cores_pipes_tiles_and_bytes() -> None:
    entries = document_of(program_of((100, 70), (16, 32)), PTO, [2, 5])["traceEvents"]
    processes = [e["args"]["name"] for e in entries if e["name"] == "process_name"]
    assert processes == ["core 2", "core 5"]
    threads = {e["args"]["name"] for e in entries if e["name"] == "thread_name"}
    assert threads == set(PIPE_NAMES.values())
    assert "MTE2 (GM to UB)" in threads
    copy = next(e for e in entries if e["name"] == "DataCopyPad")
    event = next(e for e in trace(program_of((100, 70), (16, 32)), 2, PTO) if e.copied_bytes)
    assert copy["ts"] == pytest.approx(event.start_cycle / 1850, abs=1e-6)
    assert copy["dur"] == pytest.approx(event.cycles / 1850, abs=2e-6)
    assert copy["args"]["bytes"] == event.copied_bytes == 16 * 6 * 4
    assert copy["args"]["tile"] == "tile 2 at [0, 64], [16, 6] elements"
    assert copy["args"]["instruction"] == str(event.instruction)
    assert any(e["name"] == "Cast FP32 -> FP16" for e in entries)


def same_id(entries: list[dict[str, Any]], flows: list[dict[str, Any]]) -> None:
    flows[0]["id"] = flows[2]["id"]


def start_after_end(entries: list[dict[str, Any]], flows: list[dict[str, Any]]) -> None:
    flows[0]["ts"] = 1e9


def end_missing(entries: list[dict[str, Any]], flows: list[dict[str, Any]]) -> None:
    entries.remove(flows[-1])


def key_missing(entries: list[dict[str, Any]], flows: list[dict[str, Any]]) -> None:
    del flows[1]["bp"]


def track_unnamed(entries: list[dict[str, Any]], flows: list[dict[str, Any]]) -> None:
    [entry for entry in entries if entry["ph"] == "X"][-1]["tid"] = 99


def slices_overlap(entries: list[dict[str, Any]], flows: list[dict[str, Any]]) -> None:
    next(entry for entry in entries if entry["ph"] == "X")["dur"] = 1e9


@pytest.mark.parametrize(
    "spoil",
    [same_id, start_after_end, end_missing, key_missing, track_unnamed, slices_overlap],
    ids=lambda spoil: spoil.__name__.replace("_", "-"),
)
def test_the_checks_of_the_json_can_fail(
    spoil: Callable[[list[dict[str, Any]], list[dict[str, Any]]], None],
) -> None:
    document = document_of(program_of((64, 64), (16, 32)), PTO)
    check_document(document)
    entries = document["traceEvents"]
    flows = [entry for entry in entries if entry["ph"] in "sf"]
    assert [entry["ph"] for entry in flows[:2]] == ["s", "f"]
    spoil(entries, flows)
    with pytest.raises((AssertionError, ValueError, KeyError)):
        check_document(document)
