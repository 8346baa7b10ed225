"""Tile operations on one core and tasks over GM: values, and a program that trips each guard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from simulator.arithmetic import OPERATIONS
from simulator.arithmetic.special_steps import OF_ONE, OF_TWO
from simulator.machine.isa import HardEvent, Pipe, PipeBarrier, SetFlag, WaitFlag
from simulator.machine.memory import Effect, SimulatorFault, UbRange
from simulator.machine.tasks import TaskMemory, TileInstruction, TileTask, run_tasks
from simulator.machine.tile_core import TileCore
from simulator.machine.tile_functions import CHAINS
from simulator.machine.tile_opcodes import TILE_OPCODES, TileWork
from simulator.machine.tile_steps import TileBox, TileStep
from simulator.numbers.formats import BOOL, FP16, FP32, INT8, INT32
from tiling.chips import DEFAULT_CHIP

ROWS, COLUMNS = 4, 16
A, B, C = (
    UbRange(name=x, offset_bytes=at, size_bytes=256)
    for x, at in zip("ABC", (0, 256, 512), strict=True)
)


def ub(buffer: UbRange) -> TileBox:
    return TileBox(
        space="ub",
        start_bytes=buffer.offset_bytes,
        tensor_shape=(ROWS, COLUMNS),
        offset=(0, 0),
        shape=(ROWS, COLUMNS),
        format=FP32,
        buffer=buffer,
    )


def gm(name: str, row: int = 0) -> TileBox:
    return TileBox(
        space=f"gm.{name}",
        start_bytes=0,
        tensor_shape=(2 * ROWS, COLUMNS),
        offset=(row, 0),
        shape=(ROWS, COLUMNS),
        format=FP32,
    )


def step(opcode: str, output: TileBox, *inputs: TileBox, scalar: float | None = None) -> TileStep:
    row = TILE_OPCODES[opcode]
    return TileStep(opcode=row, inputs=inputs, outputs=(output,), scalar=scalar)


def flags(event: HardEvent) -> tuple[SetFlag, WaitFlag]:
    return SetFlag(event=event, event_id=0), WaitFlag(event=event, event_id=0)


COPY = step("COPY_IN", ub(A), gm("x"))
HALVED = step("MULS", ub(B), ub(A), scalar=0.5)
SUM = step("ADD", ub(C), ub(A), ub(B))
STORE = step("COPY_OUT", gm("y"), ub(C))
ARRIVED = flags(HardEvent.MTE2_V)
LEAVES = flags(HardEvent.V_MTE3)
BARRIER = PipeBarrier(of=Pipe.V)
PROGRAM: Sequence[TileInstruction] = (COPY, *ARRIVED, HALVED, BARRIER, SUM, *LEAVES, STORE)
BUFFERS = ((A, 0, 5), (B, 3, 5), (C, 5, 8))


def task(
    program: Sequence[TileInstruction] = PROGRAM,
    *,
    buffers: Sequence[tuple[UbRange, int, int]] = BUFFERS,
    after: tuple[int, ...] = (),
) -> TileTask:
    def where(index: int) -> str:
        return f"operation {index}"

    return TileTask(name="leaf", after=after, program=program, buffers=buffers, where=where)


def run(*tasks: TileTask) -> np.ndarray:
    """The rows that the tasks write to y, of x; both have twice the rows of a tile."""
    x = np.arange(2 * ROWS * COLUMNS, dtype=np.float32)
    y = np.zeros_like(x)
    memory = TaskMemory({"x": x.view(np.uint8), "y": y.view(np.uint8)}, ("y",))
    memory.tensors["x"].flags.writeable = True
    run_tasks(tasks, memory, DEFAULT_CHIP)
    return y.reshape(2 * ROWS, COLUMNS)


def moved(tile: TileBox, by: int) -> TileBox:
    return replace(tile, offset=(tile.offset[0] + by, 0))


def exchanged(old: TileInstruction, new: Sequence[TileInstruction]) -> list[TileInstruction]:
    return [each for one in PROGRAM for each in (new if one is old else [one])]


def test_a_program_gives_its_values() -> None:
    expected = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS) * np.float32(1.5)

    np.testing.assert_array_equal(run(task())[:ROWS], expected)


def test_a_step_inside_ub_is_checked_once_and_accesses_to_gm_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checked: Counter[str] = Counter()
    check = TileCore._effect

    def counted(self: TileCore, each: TileStep) -> Effect:
        checked[each.opcode.name] += 1
        return check(self, each)

    monkeypatch.setattr(TileCore, "_effect", counted)
    inside = {each: replace(each) for each in (HALVED, SUM)}
    program = [inside.get(each, each) if each in inside else each for each in PROGRAM]
    second = [replace(x, inputs=(gm("x", ROWS),)) if x is COPY else x for x in program]
    second = [replace(x, outputs=(gm("y", ROWS),)) if x is STORE else x for x in second]
    expected = np.arange(2 * ROWS * COLUMNS, dtype=np.float32).reshape(2 * ROWS, COLUMNS)
    np.testing.assert_array_equal(run(task(program), task(second)), expected * np.float32(1.5))
    assert checked == {"COPY_IN": 2, "MULS": 1, "ADD": 1, "COPY_OUT": 2}
    one, other = TaskMemory({}), replace(DEFAULT_CHIP, ub_bytes=512)
    TileCore(0, DEFAULT_CHIP, one).effect(inside[SUM])
    for _ in range(2):  # what a guard refuses is never kept
        with pytest.raises(SimulatorFault, match="does not fit the 512 B of UB"):
            TileCore(0, other, one).effect(inside[SUM])
    assert checked["ADD"] == 3


GUARDS: dict[str, tuple[Callable[[], Sequence[TileInstruction]], str]] = {
    "no flag to V": (lambda: exchanged(ARRIVED[0], []), "waits for ever"),
    "no wait in V": (
        lambda: exchanged(ARRIVED[1], []),
        "whose byte 0 was never written",
    ),
    "no barrier": (lambda: exchanged(BARRIER, []), "no flag or barrier puts V before V"),
    "no wait before the store": (
        lambda: exchanged(LEAVES[1], []),
        "whose byte 512 was never written",
    ),
    "garbage": (lambda: exchanged(HALVED, [BARRIER]), "was never written"),
    "outside the tensor": (
        lambda: exchanged(COPY, [replace(COPY, inputs=(moved(gm("x"), 5),))]),
        "elements 5 to 9 of axis 0 are outside the 8",
    ),
    "outside its buffer": (
        lambda: exchanged(HALVED, [step("MULS", replace(ub(B), start_bytes=288), ub(A), scalar=1)]),
        r"ub\+288..544 leaves buffer B",
    ),
    "not aligned": (
        lambda: exchanged(
            HALVED,
            [
                step(
                    "MULS",
                    replace(ub(B), start_bytes=260, tensor_shape=(4, 15), shape=(4, 15)),
                    ub(A),
                    scalar=1,
                )
            ],
        ),
        "is not aligned to 32 B",
    ),
    "rows not aligned": (
        lambda: exchanged(
            HALVED,
            [step("MULS", replace(ub(B), tensor_shape=(4, 15), shape=(4, 15)), ub(A), scalar=1)],
        ),
        "rows of .* are not aligned to 32 B",
    ),
    "another shape": (
        lambda: exchanged(HALVED, [step("MULS", replace(ub(B), shape=(3, 16)), ub(A), scalar=1)]),
        "gives 4x16 valid elements, and its output has 3x16",
    ),
    "another format": (
        lambda: exchanged(HALVED, [step("MULS", replace(ub(B), format=FP16), ub(A), scalar=1)]),
        "gives float32, and its output is FP16",
    ),
    "no scalar": (lambda: exchanged(HALVED, [step("MULS", ub(B), ub(A))]), "has no scalar"),
    "an input too few": (lambda: exchanged(SUM, [step("ADD", ub(C), ub(A))]), "ADD reads 2"),
    "over its input": (
        lambda: exchanged(HALVED, [step("DIVS", ub(A), ub(A), scalar=2)]),
        "its output lies over its input",
    ),
    "an index outside": (
        lambda: exchanged(
            HALVED,
            [replace(step("GATHER_ELEMENT", ub(B), ub(A), replace(ub(A), format=INT32)), axis=1)],
        ),
        "along an axis of 16 elements",
    ),
    "an axis outside": (
        lambda: exchanged(HALVED, [replace(step("CUM_SUM", ub(B), ub(A)), axis=2)]),
        r"names \[2\] as axes of ub\+0 4x16 FP32",
    ),
    "one axis to exchange": (
        lambda: exchanged(HALVED, [replace(step("TRANSPOSE_VNCHWCONV", ub(B), ub(A)), axes=(1,))]),
        r"names \[1\] as axes of",
    ),
    "no axes to exchange": (
        lambda: exchanged(HALVED, [step("TRANSPOSE_VNCHWCONV", ub(B), ub(A))]),
        r"names \[\] as axes of",
    ),
    "an axis to exchange outside": (
        lambda: exchanged(
            HALVED, [replace(step("TRANSPOSE_VNCHWCONV", ub(B), ub(A)), axes=(0, 7))]
        ),
        r"names \[0, 7\] as axes of",
    ),
    "a second tile of more axes": (
        lambda: exchanged(
            SUM,
            [
                step(
                    "PAIRSUM",
                    ub(C),
                    ub(A),
                    replace(ub(B), tensor_shape=(1, 4, 16), offset=(0, 0, 0), shape=(1, 1, 16)),
                )
            ],
        ),
        "too many indices",
    ),
    "too little to pad": (
        lambda: exchanged(HALVED, [step("PAD", replace(ub(B), shape=(2, 16)), ub(A), scalar=0)]),
        r"does not pad \(4, 16\) to \(2, 16\)",
    ),
    "weights of another length": (
        lambda: exchanged(
            SUM,
            [
                step(
                    "PRELU",
                    ub(C),
                    ub(A),
                    replace(ub(B), tensor_shape=(8,), offset=(0,), shape=(8,)),
                )
            ],
        ),
        r"has \(8,\) weights for \(4, 16\) elements",
    ),
    "no triangle": (
        lambda: exchanged(HALVED, [replace(step("TRIUL", ub(B), ub(A)), numbers=(1,))]),
        "names no triangle of",
    ),
    "a triangle without a diagonal": (
        lambda: exchanged(HALVED, [replace(step("TRIUL", ub(B), ub(A)), function="tril")]),
        "names no triangle of",
    ),
    "a range without a distance": (
        lambda: exchanged(HALVED, [replace(step("RANGE", ub(B), scalar=0), numbers=(1,))]),
        "has no place and no distance",
    ),
    "no pattern": (
        lambda: exchanged(HALVED, [step("GATHER_MASK", ub(B), ub(A), scalar=8)]),
        "names no pattern, but 8",
    ),
    "a class outside": (
        lambda: exchanged(HALVED, [step("ONEHOT", ub(B), ub(A))]),
        "of 16 classes",
    ),
    "an offset in scratch": (
        lambda: exchanged(HALVED, [reduced(moved(scratch(ROWS), 1))]),
        "elements 1 to 5 of axis 0 are outside the 4",
    ),
    "scratch outside its buffer": (
        lambda: exchanged(HALVED, [reduced(scratch(ROWS + 12))]),
        r"ub\+512..1024 leaves buffer C",
    ),
    "scratch not aligned": (
        lambda: exchanged(HALVED, [reduced(replace(scratch(ROWS), start_bytes=516))]),
        "is not aligned to 32 B",
    ),
    "too little scratch": (
        lambda: exchanged(HALVED, [reduced(replace(scratch(1), format=INT8))]),
        r"ROWSUM_SINGLE of ub\+0 4x16 FP32 works in 32 B of scratch memory, and has 8 B",
    ),
    "too little scratch for lines": (
        lambda: exchanged(HALVED, [reduced(scratch(1, COLUMNS), "ROWSUMLINE")]),
        r"ROWSUMLINE of ub\+0 4x16 FP32 works in 128 B of scratch memory, and has 64 B",
    ),
    "a copy backwards": (
        lambda: exchanged(COPY, [step("COPY_OUT", ub(A), gm("x"))]),
        "copies from gm.x to ub",
    ),
}


def scratch(rows: int, columns: int = 8) -> TileBox:
    return replace(ub(C), tensor_shape=(rows, columns), shape=(rows, columns))


def reduced(memory: TileBox, opcode: str = "ROWSUM_SINGLE") -> TileStep:
    one = replace(ub(B), tensor_shape=(ROWS, 8), shape=(ROWS, 1))
    plain = step(opcode, one, ub(A))
    return replace(plain, outputs=(one, memory), axis=plain.axis if "SINGLE" in opcode else 0)


@pytest.mark.parametrize("name", GUARDS)
def test_a_guard_reports(name: str) -> None:
    program, says = GUARDS[name]

    with pytest.raises(SimulatorFault, match=says):
        run(task(program()))


@pytest.mark.parametrize("opcode", ["EXPAND", "ROWMAXLINE"])
def test_where_sizes_are_equal_upstream_writes_these_over_their_input(opcode: str) -> None:
    result = replace(ub(A), shape=(1, COLUMNS)) if opcode == "ROWMAXLINE" else ub(A)
    source = replace(ub(A), shape=(ROWS, 1)) if opcode == "EXPAND" else ub(A)
    axis = 1 if opcode == "EXPAND" else 0
    program = [COPY, *ARRIVED, replace(step(opcode, result, source), axis=axis), *LEAVES]
    store = step("COPY_OUT", replace(gm("y"), shape=result.shape), result)

    first = run(task([*program, store], buffers=((A, 0, len(program)),)))[0]

    last = (ROWS - 1) * COLUMNS + np.arange(COLUMNS)
    np.testing.assert_array_equal(first, np.zeros(COLUMNS) if opcode == "EXPAND" else last)


def test_live_buffers_may_not_overlap_and_dead_ones_may() -> None:
    onto = replace(C, offset_bytes=B.offset_bytes)
    program = [*PROGRAM[:5], step("ADD", ub(onto), ub(A), ub(B)), *LEAVES, STORE]
    with pytest.raises(SimulatorFault, match=r"buffers B .* and C .* overlap while both are alive"):
        run(task(program, buffers=((A, 0, 5), (B, 3, 5), (onto, 5, 8))))


def transposition(output: UbRange, scratch: UbRange) -> TileStep:
    column = replace(ub(output), tensor_shape=(COLUMNS, 8), shape=(COLUMNS, ROWS))
    row = TILE_OPCODES["TRANSPOSE_VNCHWCONV"]
    return TileStep(opcode=row, inputs=(ub(A),), outputs=(column, ub(scratch)), axes=(0, 1))


def test_a_transposition_writes_its_result_behind_a_barrier_of_its_own() -> None:
    one, other, scratch, more = (
        UbRange(name=x, offset_bytes=at, size_bytes=512)
        for x, at in zip("DEFG", (512, 1024, 1536, 2048), strict=True)
    )
    reused = replace(scratch, name="H")

    def run_two(result: UbRange, second_scratch: UbRange) -> None:
        second = transposition(result, second_scratch)
        program = COPY, *ARRIVED, transposition(one, scratch), second
        lives = (A, 0, 4), (one, 3, 3), (scratch, 3, 3), (result, 4, 4), (second_scratch, 4, 4)
        run(task(program, buffers=lives))

    run_two(reused, more)
    with pytest.raises(SimulatorFault, match="no flag or barrier puts V before V"):
        run_two(other, reused)


def test_a_buffer_holds_garbage_when_its_life_begins() -> None:
    later = UbRange(name="later", offset_bytes=B.offset_bytes, size_bytes=256)
    program = [*PROGRAM[:4], BARRIER, step("ADD", ub(C), ub(A), ub(later)), *LEAVES, STORE]

    with pytest.raises(SimulatorFault, match="was not written since later was allocated anew"):
        run(task(program, buffers=((A, 0, 5), (B, 3, 3), (later, 5, 5), (C, 5, 8))))


def test_tasks_know_of_each_other_by_their_order_alone() -> None:
    second = exchanged(STORE, [replace(STORE, outputs=(gm("y", ROWS),))])
    both = run(task(), task(second))
    np.testing.assert_array_equal(both[:ROWS], both[ROWS:])
    reader = exchanged(COPY, [replace(COPY, inputs=(gm("y"),))])
    reader = [replace(STORE, outputs=(gm("y", ROWS),)) if x is STORE else x for x in reader]
    run(task(), task(reader, after=(0,)))
    for other, verb in ((PROGRAM, "writes"), (reader, "reads")):
        with pytest.raises(
            SimulatorFault, match=f"{verb} byte 0 of gm.y, which task 0 wrote; no data"
        ):
            run(task(), task(other))
    over = exchanged(STORE, [replace(STORE, outputs=(gm("x"),))])
    with pytest.raises(SimulatorFault, match=r"writes byte 0 of gm\.x, which task 0 read; no data"):
        run(task(), task(over))
    with pytest.raises(SimulatorFault, match=r"reads byte 0 of gm\.y, never written"):
        run(task(reader))


def test_the_table_names_functions_that_there_are() -> None:
    computed = {TileWork.ELEMENTS, TileWork.PAIR, TileWork.REDUCE, TileWork.REDUCE_LINES}
    computed |= {TileWork.ACCUMULATE, TileWork.WEIGH}
    named = {*OPERATIONS, *CHAINS, *OF_ONE, *OF_TWO, "copysign", "isfinite"}
    named |= {"expand_exp_dif", "axpy"}
    for row in TILE_OPCODES.values():
        has_function = row.function in named
        assert has_function is (row.work in computed), row
        assert row.pipe in (Pipe.V, Pipe.MTE2, Pipe.MTE3, Pipe.S)
        assert (row.pipe is Pipe.S) is (row.work is TileWork.SCATTER), row


TO_SCALAR, FROM_SCALAR = flags(HardEvent.V_S), flags(HardEvent.S_V)
INDICES = replace(ub(B), format=INT32)
PLACES = step("VEC_DUP", INDICES, scalar=3)
MARK = replace(step("SCATTER_ELEMENT", ub(A), ub(A), INDICES, scalar=7), axis=1)
DOUBLED = step("MULS", ub(C), ub(A), scalar=2)


def scattering(*program: TileInstruction) -> TileTask:
    """A task that marks the element at 3 of each row and doubles all."""
    return task((COPY, PLACES, *program), buffers=((A, 0, 9), (B, 1, 9), (C, 2, 9)))


def test_the_scalar_unit_writes_elements_where_indices_say() -> None:
    at_once = (*flags(HardEvent.MTE2_S), *TO_SCALAR, MARK, *FROM_SCALAR, DOUBLED, *LEAVES, STORE)
    found = run(scattering(*at_once))[:ROWS]
    others = [k for k in range(COLUMNS) if k != 3]
    np.testing.assert_array_equal(found[:, 3], np.full(ROWS, 14, np.float32))
    doubled = 2 * np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)
    np.testing.assert_array_equal(found[:, others], doubled[:, others])


@pytest.mark.parametrize(
    ("before", "behind", "says"),
    [
        (TO_SCALAR, FROM_SCALAR, r"reads ub\+0\.\.256, whose byte 0 was never written"),
        (flags(HardEvent.MTE2_S), FROM_SCALAR, "no flag or barrier puts V before S"),
        ((*flags(HardEvent.MTE2_S), *TO_SCALAR), ARRIVED[:0], "no flag or barrier puts S before V"),
    ],
)
def test_the_scalar_unit_races_with_a_pipe_that_no_flag_orders(
    before: Sequence[TileInstruction], behind: Sequence[TileInstruction], says: str
) -> None:
    with pytest.raises(SimulatorFault, match=says):
        run(scattering(*before, MARK, *behind, DOUBLED, *LEAVES, STORE))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (replace(MARK, axis=2), r"names \[2\] as axes"),
        (replace(MARK, axis=0), "has indices 3 to 3 along an axis of 2 elements"),
        (
            replace(MARK, inputs=(ub(A), replace(INDICES, shape=(2, COLUMNS))), axis=1),
            None,
        ),
        (
            replace(
                MARK,
                inputs=(replace(ub(A), shape=(2, COLUMNS)), INDICES),
                outputs=(replace(ub(A), shape=(2, COLUMNS)),),
            ),
            r"scatters \(4, 16\) elements along axis 1 of \(2, 16\)",
        ),
        (
            replace(MARK, outputs=(ub(C),)),
            r"its output, ub\+512 .*, does not lie over its first input, ub\+0 ",
        ),
        (
            replace(MARK, inputs=(replace(ub(A), format=INT32), replace(ub(A), format=INT32))),
            "its output lies over its input",
        ),
    ],
)
def test_indices_of_a_scatter_lie_inside_its_tile(changed: TileStep, says: str | None) -> None:
    if changed.axis == 0:  # of two rows alone
        narrow = replace(ub(A), shape=(2, COLUMNS))
        changed = replace(changed, inputs=(narrow, INDICES), outputs=(narrow,))
    program = (*flags(HardEvent.MTE2_S), *TO_SCALAR, changed, *FROM_SCALAR, DOUBLED, *LEAVES, STORE)
    if says is None:
        assert (run(scattering(*program))[:ROWS, 3] == 14).sum() == 2
        return
    with pytest.raises(SimulatorFault, match=says):
        run(scattering(*program))


CHOICE = replace(ub(B), tensor_shape=(ROWS, 32), format=BOOL)


@pytest.mark.parametrize(
    ("numbers", "says"), [((7.0, 2.0), ""), ((None, 2.0), "no scalar"), ((7.0, None), "no second")]
)
def test_a_choice_between_two_numbers_has_both(
    numbers: tuple[float | None, float | None], says: str
) -> None:
    first, other = numbers
    chosen = replace(step("WHERE_SS", ub(C), CHOICE, scalar=first), other_scalar=other)
    program = (step("VEC_DUP", CHOICE, scalar=1), BARRIER, chosen, *LEAVES, STORE)
    buffers = ((B, 0, 2), (C, 2, 9))
    if not says:
        assert (run(task(program, buffers=buffers))[:ROWS] == first).all()
        return
    with pytest.raises(SimulatorFault, match=f"has {says}"):
        run(task(program, buffers=buffers))


def test_a_block_repeats_one_element_of_a_packed_column() -> None:
    column = replace(ub(B), tensor_shape=(1, 8), shape=(1, ROWS), format=FP32)
    blocks = replace(ub(C), tensor_shape=(ROWS, 8), shape=(ROWS, 8))
    rows = replace(gm("x"), tensor_shape=(1, 2 * ROWS * COLUMNS), shape=(1, ROWS))
    spread = step("BRCB", blocks, column)
    stored = replace(gm("y"), shape=(ROWS, 8))
    program = (
        step("COPY_IN", column, rows),
        *ARRIVED,
        spread,
        *LEAVES,
        step("COPY_OUT", stored, blocks),
    )
    found = run(task(program, buffers=((B, 0, 3), (C, 3, 9))))

    np.testing.assert_array_equal(found[:ROWS, :8], np.repeat(np.arange(ROWS), 8).reshape(ROWS, 8))
    short = replace(column, shape=(1, ROWS - 1))
    other = tuple(replace(x, inputs=(short,)) if x is spread else x for x in program)
    with pytest.raises(SimulatorFault, match=r"does not repeat \(3, 1\) to \(4, 8\)"):
        run(task(other, buffers=((B, 0, 3), (C, 3, 9))))


def test_bytes_that_make_no_whole_number_of_elements_are_a_fault() -> None:
    line = replace(gm("x"), tensor_shape=(2 * ROWS * COLUMNS,), offset=(0,), shape=(16,))
    bytes_ = replace(ub(B), tensor_shape=(64,), offset=(0,), shape=(63,), format=INT8)
    elements = replace(ub(C), tensor_shape=(16,), offset=(0,), shape=(16,))
    program = (
        step("VEC_DUP", bytes_, scalar=0),
        BARRIER,
        step("UNPACK", elements, bytes_),
        *LEAVES,
        step("COPY_OUT", replace(line, space="gm.y"), elements),
    )
    with pytest.raises(SimulatorFault, match="its size must be a divisor"):
        run(task(program, buffers=((B, 0, 2), (C, 2, 9))))
