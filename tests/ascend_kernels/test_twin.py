"""The twin: the compiled AscendC kernel gives the simulator's bits, by the same instructions."""

from __future__ import annotations

import ctypes
import functools
import math
import mmap
import os
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.numbers.codes import SEED
from support.programs.listings import chip_of
from support.programs.twin_programs import (
    CASES,
    DISTINCT,
    OF_A2_A3,
    Case,
    needs_twin,
    random_codes,
)

import pypto_cast as pypto
from ascend_kernels import tiling_data, twin
from ascend_kernels.instances import A2_A3_TARGET
from ascend_kernels.matrix import MATRIX
from ascend_kernels.twin import VISIT
from pypto_cast.dtypes.data_types import DTYPE_OF
from simulator.machine import execute as machine
from simulator.machine.isa import DataCopyPad, Instruction
from simulator.machine.memory import SimulatorFault
from simulator.numbers import formats as f
from simulator.numbers.convert import values_of
from simulator.numbers.formats import Format
from simulator.numbers.rounding import RoundMode, boundary_codes
from tiling.chips import A2_A3, CHIPS

RANDOM_ELEMS = 10**7 if os.environ.get("PYPTO_CAST_LONG_TESTS") else 10**6
LINE_BYTES = 32

every_case = pytest.mark.parametrize("case", CASES, ids=str)
every_distinct_case = pytest.mark.parametrize("case", DISTINCT, ids=str)


@pytest.fixture(autouse=True, scope="module")
def _twin() -> None:
    needs_twin()


def plain(src: Format, dst: Format) -> Case:
    """The cast of a pair of A2 and A3, in its default mode."""
    return next(c for c in DISTINCT if (c.rule.src, c.rule.dst) == (src, dst))


def assert_same_bits(case: Case, values: Any, shape: Any, tile: Any, threads: int = 1) -> None:
    program = case.program(shape, tile)
    expected = machine.execute(program, values)
    np.testing.assert_array_equal(twin.execute(program, values, threads=threads), expected)


def assert_same_instructions(case: Case, shape: Any, tile: Any, chip: str | None = None) -> None:
    program = case.program(shape, tile, CHIPS[chip] if chip else None)
    for core in program.cores:
        assert twin.trace(program, core) == list(program.instructions(core)), f"core {core}"


# --- Bits --------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4)
def worth_casting(fmt: Format) -> np.ndarray:
    """All codes of up to 16 bits; else those at which rounding decides, and random ones."""
    codes = boundary_codes(fmt)
    if fmt.bits > 16:
        codes = np.concatenate([codes, random_codes(fmt, RANDOM_ELEMS, SEED)])
    return values_of(codes[: codes.size // 2 * 2], fmt)


@every_case
@pytest.mark.sampled(8)
def test_the_bits_are_the_simulators(case: Case) -> None:
    values = worth_casting(case.rule.src)
    assert_same_bits(case, values, values.shape, (min(8192, values.size),))


@every_distinct_case
@pytest.mark.sampled(6)
def test_tails_of_every_residue(case: Case) -> None:
    """Rows end anywhere in a 32 B line, of the input and of the output."""
    least = min(case.rule.src.bits, case.rule.dst.bits)
    for cols in range(case.least, 2 * LINE_BYTES * 8 // least + 1, case.least):
        values = values_of(random_codes(case.rule.src, 3 * cols, cols), case.rule.src)
        assert_same_bits(case, values.reshape(3, cols), (3, cols), (2, cols))
        tile = (2, max(cols // 3 // case.least, 1) * case.least)
        assert_same_bits(case, values.reshape(3, cols), (3, cols), tile)


@st.composite
def tilings(
    draw: st.DrawFn, cases: tuple[Case, ...] = CASES
) -> tuple[Case, tuple[int, ...], tuple[int, ...]]:
    """A cast, a shape of 1 to 4 dimensions, and a tile."""
    case = draw(st.sampled_from(cases))
    dims = draw(st.integers(1, 4))
    longest = (600, 40, 12, 7)[dims - 1]
    shape = [draw(st.integers(1, longest)) for _ in range(dims - 1)]
    shape.append(draw(st.integers(1, 3 * longest)) * case.least)
    tile = [draw(st.integers(1, extent + 2)) for extent in shape[:-1]]
    tile.append(draw(st.integers(1, shape[-1] // case.least + 2)) * case.least)
    return case, tuple(shape), tuple(tile)


@settings(max_examples=150)
@given(tilings(), st.integers(1, 4), st.integers(0, 2**32))
def test_no_tiling_changes_a_bit(
    tiling: tuple[Case, tuple[int, ...], tuple[int, ...]], threads: int, seed: int
) -> None:
    case, shape, tile = tiling
    codes = random_codes(case.rule.src, int(np.prod(shape)), seed)
    values = values_of(codes, case.rule.src).reshape(shape)
    assert_same_bits(case, values, shape, tile, threads)


def test_strides_and_byte_order() -> None:
    case = plain(f.FP32, f.FP16)
    values = np.random.default_rng(SEED).standard_normal((60, 44)).astype(np.float32)
    before = values.copy()
    for view in (values.T, values[::2, ::-3], values.astype(">f4"), np.asfortranarray(values)):
        assert_same_bits(case, view, view.shape, (16, 16))
    assert_same_bits(case, values[5:6, 3:4], (1, 1), (1, 1))
    np.testing.assert_array_equal(values, before)


def test_results_that_go_past_the_caches() -> None:
    """Large ones do; rows that start and end anywhere in a cache line, too."""
    case = plain(f.INT16, f.FP32)
    values = random_codes(f.INT16, 2051 * 2053, SEED).view(np.int16).reshape(2051, 2053)
    for tile in ((64, 500), (7, 2053), (500, 13)):
        assert_same_bits(case, values, values.shape, tile, threads=2)


def test_input_that_is_no_ones_to_write() -> None:
    values = np.arange(100, dtype=np.float32)
    values.flags.writeable = False
    assert_same_bits(DISTINCT[0], values, values.shape, (32,))


# --- Instructions ------------------------------------------------------------------------------

SHAPES = [
    ((100,), (32,)),
    ((6,), (6,)),
    ((200_000,), (46_000,)),
    ((33, 50), (8, 16)),
    ((90, 64), (7, 64)),
    ((4, 9000), (2, 9000)),
    ((2000, 4), (1600, 4)),
    ((3, 40, 66), (2, 11, 66)),
    ((1, 200, 34), (1, 64, 34)),
    ((5, 6, 7, 10), (2, 3, 4, 6)),
    ((3, 4, 5, 160), (3, 4, 5, 160)),
    ((2, 1, 70, 48), (2, 1, 33, 16)),
    ((2800, 4), (1400, 2)),
    ((1000, 6), (970, 2)),
    ((6, 10440), (3, 5220)),
    ((9, 5, 4, 40), (7, 2, 3, 18)),
]
"""Of some, rows have no room for one pitch under casts that narrow or widen."""


@every_distinct_case
@pytest.mark.parametrize(("shape", "tile"), SHAPES, ids=str)
@pytest.mark.sampled(32)
def test_the_instructions_are_the_simulators(
    case: Case, shape: tuple[int, ...], tile: tuple[int, ...]
) -> None:
    while True:  # a tile that UB holds for this pair
        try:
            case.program(shape, tile)
            break
        except pypto.TileShapeError:
            tile = (*tile[:-1], tile[-1] // 4 * 2)
    assert_same_instructions(case, shape, tile)


def unbacked(size_bytes: int) -> np.ndarray:
    """Zeros that take no memory until they are written, more of them than a machine may have."""
    no_reserve = 0x4000  # MAP_NORESERVE of Linux
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve
    return np.frombuffer(mmap.mmap(-1, size_bytes, flags=flags), np.uint8)


@pytest.mark.skipif(sys.platform != "linux", reason="memory without reserve is asked of Linux")
@pytest.mark.parametrize("more", [-1, 0], ids=["reached", "out-of-reach"])
def test_rows_as_far_apart_as_a_stride_reaches(more: int) -> None:
    """Rows of INT64 lie 2^32 - 8 bytes apart, then 2^32: one more than a stride of 32 bits."""
    case = plain(f.INT64, f.FP32)
    cols = 2000
    program = case.program((2, 2**29 + cols + more), (2, cols), chip_of(10_000))
    elems = math.prod(program.plan.shape)
    issued: list[Instruction] = []

    def visit(record: Any) -> None:
        issued.append(twin._instruction(program, record.contents))

    x, y = unbacked(elems * 8), unbacked(elems * 4)
    twin._run(twin._launch(program, x, y), range(1), VISIT(visit))
    assert issued == list(program.instructions(0))
    blocks = {each.block_count for each in issued if isinstance(each, DataCopyPad)}
    assert blocks == ({2} if more else {1, 2}), "INT64 row by row where FP32 is still one copy"


@every_case
@pytest.mark.sampled(5)
def test_the_instructions_of_every_instance(case: Case) -> None:
    assert_same_instructions(case, (9, 70), (4, 32))


@pytest.mark.slow
@settings(max_examples=60)
@given(tilings(OF_A2_A3), st.sampled_from([c.name for c in CHIPS.values() if c.isa == A2_A3]))
def test_the_instructions_of_any_tiling(
    tiling: tuple[Case, tuple[int, ...], tuple[int, ...]], chip: str
) -> None:
    case, shape, tile = tiling
    cells = np.prod([-(-s // t) for s, t in zip(shape, tile, strict=True)])
    if cells <= 400:
        assert_same_instructions(case, shape, tile, chip)


# --- What hardware does not permit -------------------------------------------------------------


def launched(**changes: int) -> None:
    """Run a sound launch with some of its fields changed."""
    program = DISTINCT[0].program((10, 100), (4, 64))
    x, y = np.zeros(4000, np.uint8), np.zeros(2000, np.uint8)
    launch = twin._launch(program, x, y)
    for name, value in changes.items():
        target = launch if hasattr(launch, name) else launch.tiling.contents
        field = getattr(target, name)
        words = isinstance(field, ctypes.Array)
        setattr(target, name, type(field)(1, 1, *divmod(value, 1000)) if words else value)
    twin._run(launch, program.cores)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"y_bytes": 1999}, "of gm.y, which has 1999"),
        ({"x_bytes": 100}, "of gm.x, which has 100"),
        ({"shape": 11100}, "of gm."),
        ({"in_bytes": 64}, "where the buffer has"),
        ({"out_bytes": 32}, "where the buffer has"),
        ({"in_bytes": 196608}, "UB has 196608 B"),
        ({"in_bytes": 0}, "a buffer of no size"),
        (
            {"instance": len(A2_A3_TARGET.instances) + len(A2_A3_TARGET.route_instances)},
            "no such instance",
        ),
    ],
    ids=str,
)
def test_a_violation_is_a_text(changes: dict[str, int], text: str) -> None:
    launched()
    with pytest.raises(SimulatorFault, match=text):
        launched(**changes)
    launched()


def test_a_violation_on_a_thread_is_raised_too(monkeypatch: pytest.MonkeyPatch) -> None:
    program = DISTINCT[0].program((64, 64), (4, 64))
    sound = tiling_data.tiling_data(program)
    sound.in_bytes = 32
    monkeypatch.setattr(twin, "tiling_data", lambda _: sound)
    with pytest.raises(SimulatorFault, match="where the buffer has"):
        twin.execute(program, np.zeros((64, 64), np.float32), threads=3)


# --- As an engine ------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("family", MATRIX)
def test_every_pair_through_cast(family: str, threads: int) -> None:
    chip = next(name for name, chip in CHIPS.items() if chip.isa == family)
    for rule in MATRIX[family].values():
        values = values_of(random_codes(rule.src, 4000, SEED), rule.src).reshape(40, 100)
        src, dtype = DTYPE_OF[rule.src], DTYPE_OF[rule.dst]
        mode = pypto.CastMode[f"CAST_{rule.default or RoundMode.RINT}"]
        tensor = pypto.tensor(None, src, data=values)
        with pypto.options(chip=chip, vec_tile_shapes=(16, 64), threads=threads):
            expected = pypto.cast(tensor, dtype, mode)
            with pypto.options(engine="twin"):
                found = pypto.cast(tensor, dtype, mode)
        assert found.numpy().tobytes() == expected.numpy().tobytes()


def test_engines_are_chosen_by_name() -> None:
    unknown: Any = "gpu"
    with pytest.raises(ValueError, match="engine must be one of"), pypto.options(engine=unknown):
        pass
    with pypto.options(engine="twin") as outer:
        assert outer.engine == "twin"
        with pypto.options(threads=2) as inner:
            assert inner.engine == "twin"


def test_the_definition_and_the_instructions_stay_with_the_simulator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(twin, "execute", None)
    x = pypto.from_numpy(np.float32([2.5]))
    choices: tuple[dict[str, Any], ...] = ({"fidelity": "instructions"}, {"exact": True})
    for chosen in choices:
        with pypto.options(engine="twin", vec_tile_shapes=(16,), **chosen):
            assert pypto.cast(x, pypto.DT_INT32).numpy().tolist() == [2]
