"""Spoiled schedules against the guards: `PYTHONPATH=tests python -m benchmarks.schedule_damages`.

A damage is one change in upstream's own program of a kernel. A guard reports it; or the damaged
schedule is a legal program, and then an output element is never written, written twice or outside
the interval of the tensor level. What is neither is listed: a sync that another one covers, and
changes after which every result is one that a device may give. The command ends with 1 if a moved
buffer, a grown valid shape or a dropped reload is not found.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from ascend_kernels.schedule.parts import Access, Leaf, Task, TileOperand, TileOperation, lives
from ascend_kernels.schedule.schedule import Schedule
from benchmarks.measuring import Row, date_and_revision, markdown
from pypto_cast.testing.possible import ImpossibleError, assert_possible
from simulator.machine.memory import SimulatorFault

EXCHANGED: Final = {
    **{"ADD": "SUB", "SUB": "ADD", "MUL": "ADD", "DIV": "MUL", "MAXIMUM": "MINIMUM"},
    **{"ADDS": "SUBS", "MULS": "ADDS", "EXP": "ABS", "ABS": "EXP", "SQRT": "ABS", "FLOOR": "CEIL"},
    **{"CEIL": "FLOOR", "TRUNC": "CEIL", "PAIRSUM": "PAIRMAX", "PAIRMAX": "PAIRMIN"},
    **{"ROWSUM_SINGLE": "ROWMAX_SINGLE", "ROWMAX_SINGLE": "ROWMIN_SINGLE"},
    **{"ROWMAXLINE": "ROWMINLINE"},
}
KINDS: Final = (
    "sync removed",
    "buffer moved",
    "copy shifted",
    "valid shape grown",
    "reload dropped",
    "opcode exchanged",
)
MUST_BE_FOUND: Final = ("buffer moved", "valid shape grown", "reload dropped")


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """One damaged schedule."""

    kind: str
    place: str
    schedule: Schedule


def damages(schedule: Schedule) -> Iterator[Damage]:
    """Every damage of a schedule."""
    for place, leaf in enumerate(schedule.leaves):
        calls = [task for body in schedule.bodies for task in body.tasks if task.leaf == place]
        for kind, where, spoiled in _of_leaf(leaf, calls[0].accesses):
            leaves = (*schedule.leaves[:place], spoiled, *schedule.leaves[place + 1 :])
            made = replace(schedule, leaves=leaves)
            yield Damage(kind=kind, place=f"{leaf.name}: {where}", schedule=made)
    for number, body in enumerate(schedule.bodies):
        for place, task in enumerate(body.tasks):
            for kind, where, spoiled_task in _of_task(task):
                tasks = (*body.tasks[:place], spoiled_task, *body.tasks[place + 1 :])
                bodies = (
                    *schedule.bodies[:number],
                    replace(body, tasks=tasks),
                    *schedule.bodies[number + 1 :],
                )
                made = replace(schedule, bodies=bodies)
                yield Damage(kind=kind, place=f"task {place}: {where}", schedule=made)


def with_operations(leaf: Leaf, operations: Sequence[TileOperation]) -> Leaf:
    """A leaf with other operations; the lives of its buffers follow from them."""
    spans = lives(tuple(operations))
    buffers = tuple(
        replace(buffer, first=spans[place][0], last=spans[place][1]) if place in spans else buffer
        for place, buffer in enumerate(leaf.buffers)
    )
    return replace(leaf, operations=tuple(operations), buffers=buffers)


def _of_leaf(leaf: Leaf, accesses: Sequence[Access]) -> Iterator[tuple[str, str, Leaf]]:
    seen: set[Access] = set()
    for index, each in enumerate(leaf.operations):
        others = [*leaf.operations[:index], *leaf.operations[index + 1 :]]
        where = f"{index} {each.opcode}"
        if each.flag is not None:
            yield "sync removed", where, with_operations(leaf, others)
            continue
        if each.opcode == "COPY_IN":
            access = accesses[each.inputs[0].access or 0]
            if access in seen or not access.tensor:
                yield "reload dropped", where, with_operations(leaf, others)
            seen.add(access)
        if each.opcode in EXCHANGED:
            other = replace(each, opcode=EXCHANGED[each.opcode])
            spoiled = [*leaf.operations[:index], other, *leaf.operations[index + 1 :]]
            yield "opcode exchanged", f"{where} to {other.opcode}", with_operations(leaf, spoiled)
        result = each.outputs[0]
        if result.buffer is not None:
            for axis in range(len(result.valid_shape)):
                grown = replace(each, outputs=(_grown(result, axis), *each.outputs[1:]))
                spoiled = [*leaf.operations[:index], grown, *leaf.operations[index + 1 :]]
                yield "valid shape grown", f"{where}, axis {axis}", with_operations(leaf, spoiled)
    for one, other in itertools.permutations(range(len(leaf.buffers)), 2):
        moved, onto = leaf.buffers[one], leaf.buffers[other]
        if moved.first <= onto.last and onto.first <= moved.last:
            buffers = list(leaf.buffers)
            buffers[one] = replace(moved, address=onto.address)
            made = replace(leaf, buffers=tuple(buffers))
            yield "buffer moved", f"{moved.name} onto {onto.name}", made


def _grown(operand: TileOperand, axis: int) -> TileOperand:
    shape = list(operand.valid_shape)
    shape[axis] = ("add", shape[axis], 1)
    return replace(operand, valid_shape=tuple(shape))


def _of_task(task: Task) -> Iterator[tuple[str, str, Task]]:
    for place, access in enumerate(task.accesses):
        for axis in range(len(access.offset)) if access.tensor else ():
            offset = list(access.offset)
            offset[axis] = ("add", offset[axis], 1)
            accesses = list(task.accesses)
            accesses[place] = replace(access, offset=tuple(offset))
            where = f"{access.tensor}, axis {axis}"
            yield "copy shifted", where, replace(task, accesses=tuple(accesses))


def judged(damage: Damage, arrays: Sequence[np.ndarray[Any, Any]], bounds: Any) -> str:
    """Executes a damaged schedule, doubts as faults: "guard", "output" or "unseen"."""
    executed = [array.copy() for array in arrays]
    try:
        counts = damage.schedule.times_written(*executed)
    except SimulatorFault as fault:
        return "output" if "never written" in str(fault).split(",")[0] else "guard"
    if any((count != 1).any() for count in counts.values()):
        return "output"
    written = {
        parameter.name: array
        for parameter, array in zip(damage.schedule.parameters, executed, strict=True)
        if parameter.is_written
    }
    try:
        assert_possible(written, bounds)
    except ImpossibleError:
        return "output"
    return "unseen"


def main(arguments: Sequence[str] | None = None) -> int:
    """Damage the schedules of the fixtures and print a table."""
    from support.programs.upstream_dumps import NAMES, arrays_of, bounds_of, unpacked

    import pypto_cast

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--count", type=int, help="damages of one kernel, drawn by the seed")
    parser.add_argument("--seconds", type=float, help="for all kernels; damages are drawn")
    parser.add_argument("--seed", default="20261123", help="a number, or random")
    chosen = parser.parse_args(arguments)
    seed = secrets.randbits(32) if chosen.seed == "random" else int(chosen.seed)
    rng = np.random.default_rng(seed)
    found: dict[str, collections.Counter[str]] = {kind: collections.Counter() for kind in KINDS}
    unseen: list[Row] = []
    began = time.monotonic()
    for name in chosen.names:
        with tempfile.TemporaryDirectory() as folder:
            schedule = pypto_cast.read_schedule(unpacked(name, Path(folder)))
        arrays = arrays_of(schedule)
        bounds = bounds_of(name, arrays)
        every = list(damages(schedule))
        if chosen.count is not None or chosen.seconds is not None:
            every = [every[place] for place in rng.permutation(len(every))[: chosen.count]]
        end = time.monotonic() + (chosen.seconds or float("inf")) / len(chosen.names)
        for damage in every:
            if time.monotonic() > end:
                break
            verdict = judged(damage, arrays, bounds)
            found[damage.kind][verdict] += 1
            if verdict == "unseen":
                unseen.append({"kind": damage.kind, "kernel": name, "place": damage.place})
        print(name, len(every), file=sys.stderr)
    date, revision = date_and_revision()
    rows: list[Row] = [
        {
            "kind": kind,
            "damages": sum(counts.values()),
            "by_a_guard": counts["guard"],
            "by_an_output": counts["output"],
            "no_result_changed": counts["unseen"],
        }
        for kind, counts in found.items()
    ]
    seconds = time.monotonic() - began
    print("# Damaged schedules against the guards of the machine\n")
    print(
        f"{date}, revision {revision}, seed {seed}, {len(chosen.names)} kernels, {seconds:.0f} s\n"
    )
    print(markdown(rows))
    if unseen:
        print("\nNo result changed:\n")
        print(markdown(unseen))
    return int(any(each["kind"] in MUST_BE_FOUND for each in unseen))


if __name__ == "__main__":
    sys.exit(main())
