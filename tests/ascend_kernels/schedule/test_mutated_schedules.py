"""Schedules with one value exchanged, in JSON or directly: refused in one line, or judged."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.programs.upstream_dumps import arrays_of, unpacked

import pypto_cast as pypto
from ascend_kernels.schedule import line_work, task_lowering
from ascend_kernels.schedule.parts import Barrier, Buffer, Flag, Loop, Run
from ascend_kernels.schedule.schedule import Schedule
from pypto_cast.testing.schedule_checks import synthetic_arrays
from simulator.machine.memory import SimulatorFault
from simulator.numbers.formats import FP16, INT8

EXAMPLES: Final = int(os.environ.get("PYPTO_CAST_MUTATIONS", "12"))
DUMPS: Final = ("abs_1d", "cast_1d", "softmax_one_tile", "loop_sum", "reshape_rows", "select")
PLAIN: Final = (
    *(None, True, 0, -1, 1, 2, 3, 7, 2**31, 2**63, 2**70, 10**400, 0.5, 1e308),
    *("", "x", "V", "S", "MTE3", "HUB", "AIC", "COPY_IN", "SYNC_SRC", "BAR.V", "a" * 5000, "a\nb"),
    *("FP16", "INT8", "nan", "inf", "\ud800"),
)
ODD: Final = (float("nan"), float("inf"), np.int64(1), np.float32("nan"), b"x", 1j, object(), int)


@functools.cache
def schedule_of(name: str) -> Schedule:
    with tempfile.TemporaryDirectory() as folder:
        return pypto.read_schedule(unpacked(name, Path(folder)))


@functools.cache
def arrays(name: str) -> tuple[np.ndarray, ...]:
    return tuple(arrays_of(schedule_of(name)))


def slots(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to each value in a document or a tree of dataclasses and tuples."""
    if path:
        yield path
    if isinstance(value, dict):
        keys = [(key, value[key]) for key in value]
    elif isinstance(value, (list, tuple)):
        keys = list(enumerate(value))
    elif dataclasses.is_dataclass(value) and type(value).__module__.startswith("ascend_kernels"):
        keys = [(each.name, getattr(value, each.name)) for each in dataclasses.fields(value)]
    else:
        keys = []
    for key, inner in keys:
        yield from slots(inner, (*path, key))


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = getattr(value, key) if dataclasses.is_dataclass(value) else value[key]
    return value


def exchanged(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy with the value at a path exchanged."""
    if not path:
        return new
    key, *rest = path
    inner = exchanged(at(value, (key,)), tuple(rest), new)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(value, **{key: inner})
    if isinstance(value, dict):
        return {**value, key: inner}
    held = [*value]
    held[key] = inner
    return type(value)(held)


def mutations(old: Any, others: list[Any], direct: bool) -> st.SearchStrategy[Any]:
    """Other values: of another type, near, doubled, dropped, or from elsewhere in the schedule."""
    found = [st.sampled_from(PLAIN), st.sampled_from(others)]
    if direct:
        more = (*ODD, Run(body=0), Barrier(), Flag(setter="V", waiter="S", event_id=0), {}, [])
        found.append(st.sampled_from(more))
    if isinstance(old, int) and not isinstance(old, bool):
        found.append(st.sampled_from([old + 1, old - 1, -old, old * 2, old * 1000]))
    if isinstance(old, (list, tuple)):
        found.append(st.sampled_from([old[:-1], old[1:], old + old, old[::-1], type(old)([old])]))
    return st.one_of(found)


def judged(name: str, schedule: Schedule) -> str:
    """Run a schedule: it gives a verdict, and nothing else."""
    assert Schedule.from_json(schedule.to_json()) == schedule
    assert str(schedule)
    assert isinstance(hash(schedule), int)
    given_arrays = [each.copy() for each in arrays(name)]
    text = ""
    try:
        schedule.run(*given_arrays)
    except (SimulatorFault, pypto.NotExecutedError) as error:
        text = str(error)
    except ValueError as error:  # nothing but arrays that the changed parameters do not take
        text = str(error)
        if not text.startswith((f"{schedule.kernel}: ", f"{schedule.kernel} takes ")):
            raise
    assert text.isprintable()
    return "fault" if text else "ran"


def outcome(name: str, direct: bool, data: st.DataObject) -> str:
    """Exchange one value; the end of making the schedule and running it."""
    schedule = schedule_of(name)
    tree = schedule if direct else json.loads(schedule.to_json())["schedule"]
    paths = list(slots(tree))
    path = data.draw(st.sampled_from(paths), label="path")
    others = [at(tree, each) for each in paths if each[-1] == path[-1]]
    new = data.draw(mutations(at(tree, path), others, direct), label="new")
    try:
        if direct:
            changed = exchanged(tree, path, new)
        else:
            document = {"version": 1, "schedule": exchanged(tree, path, new)}
            changed = Schedule.from_json(json.dumps(document))
    except (TypeError, ValueError) as error:
        refused: Exception | None = error
    else:
        refused = None
    if refused is None:
        return judged(name, changed)
    assert direct or isinstance(refused, ValueError)
    assert str(refused).isprintable()
    return "refused"


def place_of(opcode: str, schedule: Schedule) -> int:
    return [each.opcode for each in schedule.leaves[0].operations].index(opcode)


def buffer(**changed: Any) -> Buffer:
    return Buffer(**{"name": "a", "address": 0, "size_bytes": 32, "first": 0, "last": 1, **changed})


WRONG: Final[Mapping[str, tuple[Callable[[Schedule], object], str]]] = {
    "a text for a number": (
        lambda _: buffer(address="0"),
        "Buffer.address: a whole number of 64 bits is wanted, not '0'",
    ),
    "a number of too many bits where none may be": (
        lambda given: exchanged(
            given, ("leaves", 0, "operations", 0, "outputs", 0, "buffer"), 1 << 64
        ),
        "TileOperand.buffer: a whole number of 64 bits or None is wanted, not 18446744073709551616",
    ),
    "NaN for a number": (lambda _: buffer(size_bytes=math.nan), "Buffer.size_bytes: .* not nan"),
    "a list for a tuple": (
        lambda given: replace(given, leaves=list(given.leaves)),
        r"Schedule.leaves: a tuple, each a Leaf, is wanted, not \[Leaf",
    ),
    "a task for a leaf": (
        lambda given: replace(given, leaves=given.bodies[0].tasks),
        "Schedule.leaves: a tuple, each a Leaf, is wanted",
    ),
    "a negative address": (
        lambda given: exchanged(given, ("leaves", 0, "buffers", 0, "address"), -32),
        "buffer .*: 16384 B at -32, from operation 0 to",
    ),
    "a negative offset": (
        lambda given: exchanged(
            given, ("leaves", 0, "operations", 0, "outputs", 0, "offset", 0), -1
        ),
        r"operation 0 COPY_IN: a tile at byte 0 of its buffer, \(.*\) from \(-1,",
    ),
    "tasks in a circle": (
        lambda given: exchanged(given, ("bodies", 0, "tasks", 0, "successors"), (0,)),
        r"task 0: its successors, \(0,\), do not follow it",
    ),
    "a number of another kind": (
        lambda given: exchanged(given, ("bodies", 0, "tasks", 0, "accesses", 0, "offset", 0), 0.5),
        "Access.offset: a tuple, each whole numbers and texts in lists, is wanted",
    ),
    "a fraction in the valid shape of what lies in GM": (
        lambda given: exchanged(
            given,
            ("leaves", 0, "operations", 0, "inputs", 0, "valid_shape"),
            (("add", 1.5, 2),),
        ),
        "operation 0 COPY_IN: whole numbers and texts in lists is wanted, not 1.5",
    ),
    "a sync with tiles": (
        lambda given: exchanged(
            given,
            ("leaves", 0, "operations", 1, "inputs"),
            given.leaves[0].operations[0].inputs,
        ),
        "operation 1 SYNC_SRC: it has tiles, and is a sync",
    ),
    "a list in a number": (
        lambda given: exchanged(
            given, ("bodies", 0, "tasks", 0, "accesses", 0, "offset", 0), ("add", [1], 2)
        ),
        r"task 0: whole numbers and texts in lists is wanted, not \[1\]",
    ),
    "axes that a tile in GM lacks": (
        lambda given: exchanged(
            given, ("leaves", 0, "operations", 0, "inputs", 0, "valid_shape"), (1,)
        ),
        "operation 0 COPY_IN: a tile of 0 axes, whose valid shape has 1",
    ),
    "an operator without its operands": (
        lambda given: exchanged(
            given, ("bodies", 0, "tasks", 0, "accesses", 0, "offset", 0), ("add", 1)
        ),
        r"task 0: add\(1\) has 1 operands, not 2",
    ),
    "no scratch memory": (
        lambda given: exchanged(
            given,
            ("leaves", 0, "operations", place_of("ROWSUM_SINGLE", given), "outputs"),
            given.leaves[0].operations[place_of("ROWSUM_SINGLE", given)].outputs[:1],
        ),
        "ROWSUM_SINGLE: it has no scratch memory, which the opcode works in",
    ),
    "a number that no parameter gives": (
        lambda given: exchanged(
            given, ("bodies", 0, "tasks", 0, "accesses", 0, "offset", 0), ("data", "z", 0)
        ),
        "parameter z is not read, and a loop, a condition or an offset goes by it",
    ),
    "no output": (
        lambda given: exchanged(given, ("leaves", 0, "operations", 0, "outputs"), ()),
        "operation 0 COPY_IN: it writes no tile",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_parts_that_are_malformed_are_refused_as_they_are_made(case: str) -> None:
    make, said = WRONG[case]
    with pytest.raises((TypeError, ValueError), match=said):
        make(schedule_of("softmax_one_tile"))


SCRATCH: Final = ("leaves", 0, "operations", 6, "outputs", 1)
CONTRADICTED: Final[Mapping[str, tuple[str, tuple[Any, ...], Any, str]]] = {
    "lines before scratch": (
        "softmax",
        (*SCRATCH, "offset"),
        (100, 0),
        r"operation 6 ROWMAX_SINGLE.* elements 100 to 132 of axis 0 are outside the 32",
    ),
    "elements before scratch": (
        "softmax",
        (*SCRATCH, "offset"),
        (0, 127),
        r"operation 6 ROWMAX_SINGLE.* elements 127 to 255 of axis 1 are outside the 128",
    ),
    "the format of scratch": (
        "softmax",
        (*SCRATCH, "format"),
        INT8,
        r"operation 6 ROWMAX_SINGLE.* works in 16384 B of scratch memory, and has 4096 B",
    ),
    "a format": (
        "softmax_one_tile",
        ("leaves", 0, "operations", 0, "inputs", 0, "format"),
        FP16,
        r"task 0 \(.*\), operation 0 COPY_IN.*: its tile of \w+ is FP16, and that FP32",
    ),
    "a tensor": (
        "softmax_one_tile",
        ("bodies", 0, "tasks", 0, "accesses", 0, "tensor"),
        "total",
        "task 0: no tensor 'total' is in GM",
    ),
    "a parameter that is said not to be read": (
        "softmax_one_tile",
        ("parameters", 0, "is_read"),
        False,
        r"operation 0 COPY_IN.*: reads gm\.x.*, but gm\.x is said not to be read",
    ),
    "the axes of a tensor": (
        "softmax_one_tile",
        ("bodies", 0, "tasks", 0, "accesses", 0, "offset"),
        (0,),
        "task 0: ",
    ),
    "a loop's step": ("loop_sum", ("steps",), None, "loop index goes by 0"),
    "a division": (
        "softmax_one_tile",
        ("bodies", 0, "tasks", 0, "accesses", 0, "offset", 0),
        ("div", 1, 0),
        r"task 0: div\(1, 0\) divides by zero",
    ),
}
"""The dump, the part, its new value, and the fault."""


@pytest.mark.parametrize("case", CONTRADICTED)
def test_parts_that_contradict_each_other_are_a_fault_with_its_place(case: str) -> None:
    name, path, new, said = CONTRADICTED[case]
    schedule = schedule_of(name)
    if case == "a loop's step":
        path, new = next(
            ((*path, place, "step"), 0)
            for place, step in enumerate(schedule.steps)
            if isinstance(step, Loop)
        )
        said = f"loop {at(schedule, (*path[:-1], 'variable'))} goes by 0"
    given_arrays = [each.copy() for each in arrays(name)]
    with pytest.raises(SimulatorFault, match=said):
        exchanged(schedule, path, new).run(*given_arrays)
    for found, before in zip(given_arrays, arrays(name), strict=True):
        np.testing.assert_array_equal(found.view(np.uint8), before.view(np.uint8))


def test_a_symbol_that_nothing_defines_is_named_with_its_task() -> None:
    path = ("bodies", 0, "tasks", 0, "accesses", 0, "offset", 0)
    changed = exchanged(schedule_of("softmax_one_tile"), path, ("symbol", "idx"))
    with pytest.raises(pypto.NotExecutedError, match="task 0: idx is no variable of a loop around"):
        changed.run(*(each.copy() for each in arrays("softmax_one_tile")))


def test_json_of_other_fields_is_refused() -> None:
    text = schedule_of("abs_1d").to_json()
    inner = text.removeprefix('{"version": 1, ')
    for changed, said in (
        ('{"version": true, ' + inner, "no schedule of version 1"),
        ('{"version": 1.0, ' + inner, "no schedule of version 1"),
        ('{"version": 1, "version": 1, ' + inner, '"version" is there twice'),
        ('{"version": 1, "notes": "", ' + inner, "a schedule has no field 'notes'"),
        (text.replace('"kernel"', '"kernel": "a", "kernel"', 1), '"kernel" is there twice'),
    ):
        with pytest.raises(ValueError, match=said):
            Schedule.from_json(changed)


def test_arguments_of_another_type_are_refused() -> None:
    schedule = schedule_of("abs_1d")
    given_arrays = [each.copy() for each in arrays("abs_1d")]
    wrong: dict[str, Any] = {"yes": "yes", "late": "late", "x": "x", "none": None}
    with pytest.raises(TypeError, match="strict is True or False, not 'yes'"):
        schedule.run(*given_arrays, strict=wrong["yes"])
    with pytest.raises(ValueError, match=r"copy_completion must be one of .* not 'late'"):
        schedule.run(*given_arrays, copy_completion=wrong["late"])
    with pytest.raises(TypeError, match=r"a schedule is what read_schedule .* returns, not 'x'"):
        pypto.testing.assert_schedule_ok(wrong["x"])
    with pytest.raises(ValueError, match="not an empty path"):
        pypto.read_schedule("")
    with pytest.raises(TypeError, match="a folder is a path, not None"):
        pypto.read_schedule(wrong["none"])


ARGUMENTS: Final[Mapping[str, tuple[dict[str, Any], type[Exception], str]]] = {
    "no list": ({"arrays": 5}, TypeError, "arrays is a list, one for each parameter, not 5"),
    "a text": ({"arrays": "ab"}, TypeError, "arrays is a list, one for each parameter, not 'ab'"),
    "no array": ({"arrays": [None, None]}, TypeError, "abs_1d: x is an array of numpy.* NoneType"),
    "lists": ({"arrays": [[1.0], [1.0]]}, TypeError, "abs_1d: x is an array of numpy.* a list"),
    "no mapping": ({"numbers": 5}, TypeError, "numbers is a mapping of names, not 5"),
    "numbers alone": ({"numbers": {"n": 1}}, ValueError, "numbers are those of a kernel.*: n"),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments_of_the_assertion_are_checked_before_anything_runs(case: str) -> None:
    given, kind, said = ARGUMENTS[case]
    with pytest.raises(kind, match=said):
        pypto.testing.assert_schedule_ok(schedule_of("abs_1d"), **given)


def test_synthetic_integers_reach_the_ends_of_their_dtype_unless_they_are_indices() -> None:
    for name, reaches in (("bits", True), ("gathered", False)):
        drawn = [each for each in synthetic_arrays(schedule_of(name)) if each.dtype.kind in "iu"]
        assert drawn
        assert [bool((each == np.iinfo(each.dtype).max).any()) for each in drawn] == [
            reaches
        ] * len(drawn)


def test_temporaries_in_the_memory_of_each_other_are_refused() -> None:
    schedule = schedule_of("loop_sum")
    place = next(k for k, body in enumerate(schedule.bodies) if body.temporaries)
    first = schedule.bodies[place].temporaries[0]
    path = ("bodies", place, "temporaries")
    for held, said in (
        ((first, first), "two temporaries have one name"),
        ((replace(first, alias=first.name),), "it lies in the memory of .*, in a circle"),
    ):
        with pytest.raises(ValueError, match=said):
            exchanged(schedule, path, held)


def test_operations_without_source_lines_read_each_other_to_any_number() -> None:
    schedule = schedule_of("softmax_one_tile")
    (leaf,) = schedule.leaves
    one = replace(leaf.operations[place_of("EXP", schedule)], file="", line=0)
    long = (one,) * sys.getrecursionlimit()
    buffers = tuple(replace(each, first=0, last=len(long)) for each in leaf.buffers)
    made = replace(leaf, operations=long, buffers=buffers)

    assert line_work.place_of(made, 0) == line_work.NO_LINE
    assert line_work.place_of(made, len(long) - 1) == line_work.NO_LINE


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::pypto_cast.EventReuseWarning")
@pytest.mark.parametrize("direct", [False, True], ids=["json", "direct"])
def test_a_mutated_schedule_is_refused_or_judged(
    direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_lowering, "MAX_TASKS", 100)
    ends = set()

    @settings(
        max_examples=EXAMPLES,
        derandomize="PYPTO_CAST_MUTATIONS" not in os.environ,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from(DUMPS), st.data())
    def mutate(name: str, data: st.DataObject) -> None:
        ends.add(outcome(name, direct, data))

    mutate()
    assert {"refused", "fault"} <= ends
