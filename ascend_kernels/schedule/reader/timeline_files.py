"""Reading a timeline that upstream writes of a kernel's run, and the tasks that it is of.

A device's is `tilefwk_L1_prof_data.json`, that of the simulator `_simulate.swim.json`: the tasks of
each core; `_simulate.pipe.swim.json` has the operations of each pipe, and `merged_swimlane.json`
the tasks of either in microseconds. `dyn_topo.txt` of the dump says which task each number is.
Format: upstream pypto at tag r0.2.0, framework/src/machine/runtime/dump_device_perf.cpp and
framework/src/cost_model/simulation; tools/profiling/draw_swim_lane.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ascend_kernels.schedule.document import check_type, whole_number
from ascend_kernels.schedule.reader.dump_calls import calls_before, in_order
from ascend_kernels.schedule.reader.dump_fields import ROOT, read_function
from ascend_kernels.schedule.reader.dump_files import DumpError, FileOf, Texts
from ascend_kernels.schedule.reader.upstream_dump import LAST_PASS, flow_of_kernel
from ascend_kernels.schedule.schedule import Schedule

TIMELINES: Final = tuple(
    f"CostModelSimulationOutput/{name}.json"
    for name in ("_simulate.swim", "_simulate.pipe.swim", "merged_swimlane")
)
"""Those that upstream's simulator writes into a dump: tasks, operations, tasks as a trace."""
_DEVICE_HZ: Final = 50_000_000
"""Of the system clock of A2 and A3 (FREQ_DAV_2201 in upstream's aicpu_perf.h)."""
_RUN_BITS: Final = 20
"""A task's number has its place below, and above the run of a body that it belongs to."""
_TOPOLOGY: Final = "dyn_topo.txt"
_VECTOR_CORE: Final = "AIV"
_VECTOR_KIND: Final = 0
"""The number of that core type in the topology."""
_OPERATION: Final = re.compile(r"\d+ (\w+) .*T(?:ASK|ask)\[(\d+)\]", re.DOTALL)
_CORE: Final = {"blockIdx": int, "coreType": str}
_TASK: Final = {"taskId": int, "seqNo?": int, "execStart": int, "execEnd": int}
_LOG: Final = {"execStart": int, "execEnd": int, "tileOp": str}


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTask:
    """A task as a timeline has it.

    Attributes:
        key: its sequence and number.
        core: such as "AIV 24".
        start_cycle, end_cycle: of the clock of a core.
    """

    key: tuple[int, int]
    core: str
    start_cycle: float
    end_cycle: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredOperation:
    """An operation as a timeline has it; its task's sequence is not known."""

    number: int
    opcode: str
    pipe: str
    start_cycle: float
    end_cycle: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """All that a file of upstream's says of a run.

    Attributes:
        origin: "device", "simulator", or "trace" where the file does not say of which it is.
        tick_cycles: what the clock that measured it counts as one.
        tasks: of vector cores, by their start; empty where the file has operations.
        operations: by their start; empty where the file has tasks.
    """

    origin: str
    tick_cycles: float
    tasks: tuple[MeasuredTask, ...] = ()
    operations: tuple[MeasuredOperation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlace:
    """The task of a schedule that a number of a timeline means.

    Attributes:
        key: sequence and number.
        run: sequence and number of the run of the body.
        body, task: the places of both in the schedule.
    """

    key: tuple[int, int]
    run: tuple[int, int]
    body: int
    task: int


def read_timeline(path: Path, clock_hz: int) -> Timeline:
    """Read a timeline of any of the four forms.

    Args:
        path: the file.
        clock_hz: of a core; the simulator's times are its cycles already.

    Raises:
        DumpError: it is none of them, cut short, or has no task of a vector core.
    """
    with FileOf(path):
        document = json.loads(Texts().read(path), parse_int=whole_number)
        if isinstance(document, dict):
            found = _of_trace(document, clock_hz)
        else:
            check_type(document, [_CORE], "")
            has_pipes = any("pipeLogs" in core for core in document)
            found = _of_pipes(document) if has_pipes else _of_cores(document, clock_hz)
        if not found.tasks and not found.operations:
            raise ValueError("it has no task of a vector core")
        return found


def task_places(schedule: Schedule, folder: Path, kernel: str | None) -> tuple[TaskPlace, ...]:
    """The tasks of a dump's run that run something on a vector core, by the numbers they had.

    Args:
        schedule: read from the dump.
        folder, kernel: of which it was read.

    Raises:
        DumpError: the run is not in the dump, or names tasks that the schedule lacks.
    """
    texts = Texts()
    flow, _ = flow_of_kernel(folder, kernel, texts)
    dump = flow.parent.parent
    bodies = {body.name: place for place, body in enumerate(schedule.bodies)}
    by_root: dict[int, tuple[int, Mapping[int, int]]] = {}
    for path in sorted((dump / LAST_PASS).glob("After_*_ROOT.json")):
        with FileOf(path):
            function = read_function(texts.read(path), ROOT)
            if function["func_magicname"] in bodies:
                calls = function["operations"]
                order = in_order(calls_before(calls))
                magics = {calls[place]["opmagic"]: new for new, place in enumerate(order)}
                by_root[int(function["hash"])] = bodies[function["func_magicname"]], magics
    topology = dump / _TOPOLOGY
    if not topology.is_file():
        raise DumpError(f"{topology} is not there: a run with runtime_debug_mode 1 writes it")
    with FileOf(topology):
        return tuple(_places(texts.read(topology), schedule, by_root))


def _places(
    text: str, schedule: Schedule, by_root: Mapping[int, tuple[int, Mapping[int, int]]]
) -> Iterator[TaskPlace]:
    for line in text.splitlines():
        if not line or line[0].isalpha():
            continue
        fields = [int(each) for each in line.split(",")[:8] if each]
        sequence, number, _, root, magic, _, _, core = fields
        if core != _VECTOR_KIND:
            continue
        if root not in by_root or magic not in by_root[root][1]:
            raise ValueError(f"task {number} is of a root that is not in the dump: {root}, {magic}")
        body, places = by_root[root]
        yield TaskPlace(
            key=(sequence, number),
            run=(sequence, number >> _RUN_BITS),
            body=body,
            task=places[magic],
        )


def _of_cores(document: list[Any], clock_hz: int) -> Timeline:
    check_type(document, [{**_CORE, "tasks": [_TASK]}], "")
    vector = [core for core in document if core["coreType"].startswith(_VECTOR_CORE)]
    is_simulator = any("completeSeq" in task for core in vector for task in core["tasks"])
    tick = 1.0 if is_simulator else clock_hz / _DEVICE_HZ
    tasks = [
        MeasuredTask(
            key=(task.get("seqNo", 0), task["taskId"]),
            core=f"{_VECTOR_CORE} {core['blockIdx']}",
            start_cycle=task["execStart"] * tick,
            end_cycle=task["execEnd"] * tick,
        )
        for core in vector
        for task in core["tasks"]
    ]
    origin = "simulator" if is_simulator else "device"
    return _timeline(origin, tick, tasks, [])


def _of_pipes(document: list[Any]) -> Timeline:
    operations = []
    for core in document:
        logs = core.get("pipeLogs") or {}
        for pipe, found in logs.items() if core["coreType"].startswith(_VECTOR_CORE) else ():
            check_type(found, [_LOG], f"pipeLogs, {pipe}")
            for log in found:
                named = _OPERATION.match(log["tileOp"])
                if named is None:
                    raise ValueError(f"no operation of a task: {log['tileOp'][:80]!r}")
                operations.append(
                    MeasuredOperation(
                        number=int(named[2]),
                        opcode=named[1],
                        pipe=pipe,
                        start_cycle=log["execStart"],
                        end_cycle=log["execEnd"],
                    )
                )
    return _timeline("simulator", 1.0, [], operations)


def _of_trace(document: dict[str, Any], clock_hz: int) -> Timeline:
    """Tasks of a trace, in microseconds; its entries of other kinds are no matter."""
    per_us = clock_hz / 1e6
    entries = document.get("traceEvents")
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise ValueError("it is neither a list of cores nor a trace with traceEvents")
    names = {
        (each.get("pid"), each.get("tid")): str(each["args"]["name"])
        for each in entries
        if each.get("name") == "thread_name"
    }
    tasks = []
    for each in entries:
        name = names.get((each.get("pid"), each.get("tid")), "")
        if each.get("ph") != "X" or not name.startswith(_VECTOR_CORE):
            continue
        about = each.get("args", {})
        if "taskId" not in about:
            raise ValueError("its tasks have no taskId: upstream did not write it")
        tasks.append(
            MeasuredTask(
                key=(int(about.get("seqNo", 0)), int(about["taskId"])),
                core=f"{_VECTOR_CORE} {int(name.rpartition('_')[2]) - 1}",
                start_cycle=float(each["ts"]) * per_us,
                end_cycle=(float(each["ts"]) + float(each["dur"])) * per_us,
            )
        )
    return _timeline("trace", clock_hz / _DEVICE_HZ, tasks, [])


def _timeline(
    origin: str, tick_cycles: float, tasks: list[MeasuredTask], operations: list[MeasuredOperation]
) -> Timeline:
    """The entries by their start, none of which may end before it."""
    both: list[MeasuredTask | MeasuredOperation] = [*tasks, *operations]
    if any(each.end_cycle < each.start_cycle for each in both):
        raise ValueError("an entry ends before it begins")
    return Timeline(
        origin=origin,
        tick_cycles=tick_cycles,
        tasks=tuple(sorted(tasks, key=lambda each: (each.start_cycle, each.key))),
        operations=tuple(sorted(operations, key=lambda each: each.start_cycle)),
    )
