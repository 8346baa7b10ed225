"""Dumps with a field exchanged at random: a schedule that runs or faults, or one line."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from support.programs.upstream_dumps import arrays_of, unpacked

import pypto_cast as pypto
from ascend_kernels.schedule import task_lowering
from ascend_kernels.schedule.reader.dump_files import DumpError
from ascend_kernels.schedule.schedule import Schedule
from simulator.machine.memory import SimulatorFault

SEED: Final = 47
DRAWN: Final = 30
DUMPS: Final = ("softmax_one_tile", "loop_rows", "cast_1d", "reshape_rows", "ragged_add", "select")
FIELDS: Final = frozenset(
    {"version", "functions", "operations", "incasts", "outcasts", "rawtensors", "tensors", "hash"}
    | {"opcode", "ioperands", "ooperands", "op_attr", "attr", "sync_queue", "latency", "line"}
    | {"pipe_id", "trig_pipe", "event_id", "value", "op_attr_mode", "op_attr_AXIS", "symbol"}
    | {"rawmagic", "rawshape", "datatype", "magic", "rawtensor", "shape", "validshape", "offset"}
    | {"dynvalidshape", "mem_type", "asis", "mem_id", "mem_range", "op_attr_cmp_operation"}
)
"""Some of those that are read."""
VALUES: Final = (
    *(None, True, 0, -1, 1, 2, 7, 2**31, 2**63, 2**70, 10**400, 1e308, float("nan"), float("inf")),
    *("", "x", "\ud800", "\n", "2.0", "CALL", "SYNC_SRC", "BAR.V", "RESHAPE", "a" * 5000),
    *([], [0], [[]], [0, 0], [1, "x"], [2, 16, 3], [2, 3, 0, 1, 0, 2], {}, {"a": 1}, [0] * 5000),
)


def slots(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a document: what holds it, and its key."""
    for key in value if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from slots(value[key])


def mutated(text: str, rng: random.Random) -> str:
    """A document with one thing exchanged, dropped, doubled or changed a little."""
    document = json.loads(text)
    every = list(slots(document))
    field = rng.choice(sorted(FIELDS.intersection(key for _, key in every if isinstance(key, str))))
    holder, key = rng.choice([each for each in every if each[1] == field])
    if isinstance(holder[key], list) and holder[key] and rng.randrange(2):
        holder, key = holder[key], rng.randrange(len(holder[key]))
    old = holder[key]
    match rng.randrange(4):
        case 0:
            del holder[key]
        case 1:
            other, place = rng.choice(every)
            holder[key] = json.loads(json.dumps(other[place]))
        case 2 if isinstance(old, int):
            holder[key] = rng.choice((old + 1, old - 1, -old, old * 2, old * 1000, old + 0.5))
        case _:
            holder[key] = rng.choice(VALUES)
    return json.dumps(document)


def outcome(dump: Path) -> tuple[str, str]:
    """The end of reading and running a dump, and the text of the error."""
    try:
        schedule = pypto.read_schedule(dump)
    except DumpError as error:
        return "refused", str(error)
    assert Schedule.from_json(schedule.to_json()) == schedule
    assert str(schedule)
    try:
        schedule.run(*arrays_of(schedule))
    except (SimulatorFault, ValueError) as error:
        return "fault", str(error)
    return "ran", ""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_mutated_dump_is_a_schedule_or_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_lowering, "MAX_TASKS", 100)
    rng = random.Random(SEED)
    seen = set()
    for name in rng.choices(DUMPS, k=DRAWN):
        dump = unpacked(name, tmp_path)
        path = rng.choice(sorted(dump.glob("Pass_36_*/*.json")))
        path.write_text(mutated(path.read_text(), rng))
        kind, text = outcome(dump)
        seen.add(kind)
        assert not text or text.isprintable()
        assert kind != "refused" or text.startswith(f"{dump}")
    assert seen == {"refused", "ran", "fault"}
