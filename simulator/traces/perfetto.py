"""A trace as Chrome's trace-event JSON, which Perfetto (ui.perfetto.dev) opens.

Processes are cores, threads are pipes, arrows lead from each set flag to its wait. Times are in
microseconds of the cost set's clock. Source: the Trace Event Format document of Chromium.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from simulator.machine.execute import Program
from simulator.machine.isa import Cast, CastRepeat, Pipe, SetFlag, WaitFlag
from simulator.traces.trace import PIPES, TraceEvent, trace
from tiling.cost import CostParameters

PIPE_NAMES: Final = {
    pipe: f"{pipe.name} ({'vector unit' if pipe is Pipe.V else pipe.value})" for pipe in PIPES
}
"""Pipes as tracks are named."""
_FLOW_CATEGORY: Final = "flag"
_TRACKS_PER_CORE: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The times of a file: cycles of a core clock, counted from a cycle of the file's."""

    clock_hz: float
    start_cycle: float = 0

    def picoseconds(self, cycle: float) -> int:
        """Whole picoseconds, so that neighbours still meet after the conversion."""
        return round((self.start_cycle + cycle) * 1e12 / self.clock_hz)


def perfetto(
    program: Program, parameters: CostParameters, cores: Iterable[int] | None = None
) -> Iterator[str]:
    """Write a trace as JSON, a line at a time.

    Args:
        program: what runs.
        parameters: the figures.
        cores: those to show; all that have work unless given.

    Yields:
        Pieces of one JSON object; joined they are the file.

    Raises:
        ValueError: a core has no work.
        SimulatorFault: what `trace` raises.
    """
    about = {
        "chip": program.chip.name,
        "cost set": parameters.name,
        "note": parameters.standing,
    }
    shown = program.cores if cores is None else cores
    clock = Clock(clock_hz=parameters.clock_hz)
    return trace_text(
        about,
        (entry for core in shown for entry in _core_entries(program, core, parameters, clock)),
    )


def trace_text(about: dict[str, str], entries: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The JSON of a file, a line an entry.

    Args:
        about: the origin of the figures.
        entries: those of `track_names`, `slice_entry` and `flow_end`.

    Yields:
        Pieces of one JSON object.
    """
    yield f'{{"displayTimeUnit":"ns","otherData":{json.dumps(about)},"traceEvents":['
    separator = "\n"
    for entry in entries:
        yield separator + json.dumps(entry, separators=(",", ":"), allow_nan=False)
        separator = ",\n"
    yield "\n]}\n"


def _core_entries(
    program: Program, core: int, parameters: CostParameters, clock: Clock
) -> Iterator[dict[str, Any]]:
    yield from track_names(core)
    for event in trace(program, core, parameters):
        yield _slice(event, clock)
        if event.edge is not None:
            yield _flow(event, clock)


def track_names(core: int) -> Iterator[dict[str, Any]]:
    """The names and the order of a core's tracks, a pipe each."""
    process: dict[str, Any] = {"ph": "M", "pid": _process(core)}
    yield {**process, "name": "process_name", "args": {"name": f"core {core}"}}
    yield {**process, "name": "process_sort_index", "args": {"sort_index": core}}
    for number, pipe in enumerate(PIPES):
        thread = {**process, "tid": _thread(core, pipe)}
        yield {**thread, "name": "thread_name", "args": {"name": PIPE_NAMES[pipe]}}
        yield {**thread, "name": "thread_sort_index", "args": {"sort_index": number}}


def _slice(event: TraceEvent, clock: Clock) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "instruction": str(event.instruction),
        "index": event.index,
        "cycles": round(event.cycles, 3),
    }
    if event.where:
        arguments["tile"] = event.where
    if event.copied_bytes:
        arguments["bytes"] = event.copied_bytes
    cycles = event.start_cycle, event.end_cycle
    return slice_entry(
        _label(event),
        clock,
        event.core,
        event.pipe,
        cycles,
        is_work=event.is_work,
        arguments=arguments,
    )


def slice_entry(
    name: str,
    clock: Clock,
    core: int,
    pipe: Pipe,
    cycles: tuple[float, float],
    *,
    is_work: bool,
    arguments: dict[str, Any],
) -> dict[str, Any]:
    """A complete event: one instruction or operation on its pipe, from cycle to cycle."""
    start, end = map(clock.picoseconds, cycles)
    return {
        "ph": "X",
        "name": name,
        "cat": "work" if is_work else "order",
        "pid": _process(core),
        "tid": _thread(core, pipe),
        "ts": start / 1e6,
        "dur": (end - start) / 1e6,
        "args": arguments,
    }


def _flow(event: TraceEvent, clock: Clock) -> dict[str, Any]:
    edge = event.edge
    assert edge is not None
    is_wait = isinstance(event.instruction, WaitFlag)
    return flow_end(
        f"{edge.event.name} {edge.event_id}",
        clock,
        event.core,
        event.pipe,
        max(event.start_cycle, edge.set_cycle) if is_wait else event.start_cycle,
        number=event.core << 40 | edge.set_index,
        is_wait=is_wait,
    )


def flow_end(
    name: str, clock: Clock, core: int, pipe: Pipe, cycle: float, *, number: int, is_wait: bool
) -> dict[str, Any]:
    """One end of an arrow: at the start of a set, and where its wait sees it.

    A viewer ties it to the slice that is open then on the same track, so it follows that slice.
    """
    return {
        "ph": "f" if is_wait else "s",
        **({"bp": "e"} if is_wait else {}),
        "name": name,
        "cat": _FLOW_CATEGORY,
        "id": number,
        "pid": _process(core),
        "tid": _thread(core, pipe),
        "ts": clock.picoseconds(cycle) / 1e6,
    }


def _label(event: TraceEvent) -> str:
    match event.instruction:
        case Cast(src_format=src, dst_format=dst) | CastRepeat(src_format=src, dst_format=dst):
            return f"Cast {src} -> {dst}"
        case SetFlag() | WaitFlag():
            return str(event.instruction)
    return type(event.instruction).__name__


def _process(core: int) -> int:
    """Not 0, which viewers take for the system's idle process."""
    return core + 1


def _thread(core: int, pipe: Pipe) -> int:
    """A number of its own in the whole file: some viewers want no thread twice."""
    return _process(core) * _TRACKS_PER_CORE + PIPES.index(pipe)
