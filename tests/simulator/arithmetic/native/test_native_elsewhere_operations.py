"""The native executor on aarch64 under qemu-user gives numpy's bits."""

from __future__ import annotations

import ctypes
import itertools
import shutil
import struct
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from support.arithmetic.native_executor import (
    FORMATS,
    at,
    by_numpy,
    cases,
    near_ties,
    rows_to_sum,
    same_codes,
)
from support.environment.sources import ROOT
from support.numbers.codes import SEED

from pypto_cast.operations.reduction_functions import joins
from simulator.arithmetic import OPERATIONS, Enclosure, Tiles, evaluate, reduce
from simulator.arithmetic.computed import native_node
from simulator.arithmetic.elementary import HARD_OPERANDS, to_odd
from simulator.arithmetic.interval import Interval
from simulator.arithmetic.native import executor_library, node_program, small_programs
from simulator.arithmetic.native.deferred_intervals import DeferredInterval
from simulator.arithmetic.native.executor_library import Executor
from simulator.arithmetic.native.node_program import Node
from simulator.arithmetic.native.operation_nodes import deferring, has_function, row_node
from simulator.arithmetic.operation import IntervalRule
from simulator.arithmetic.trust import DEFAULT, EXACT, NAMING_CHOICES, Trust
from simulator.numbers.convert import INF_NAN, Conversion, codes_of, values_of
from simulator.numbers.formats import BF16, FP16, FP32
from simulator.numbers.native import library as casts
from simulator.numbers.rounding import RoundMode

COMPILER, EMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64"


class Emulated:
    """The library's function, run by a driver under the emulator; results come back into memory.

    Buffers are arrays that this process has: their extents follow from rows and columns.
    """

    def __init__(self, driver: Path) -> None:
        self._driver = driver

    def pypto_cast_arithmetic_scratch(self, *_: Any) -> int:
        """The driver takes memory of its own."""
        return 0

    def pypto_cast_arithmetic_run(
        self, level: int, steps: Any, count: int, pairs: Any, buffers: Any, _: int, *given: int
    ) -> int:
        *span, findings, _, _ = given
        row_end, column_end = span[1], span[3]
        head = struct.pack(
            "9q", level, count, ctypes.sizeof(steps), len(pairs) // 2, len(buffers), *span
        )
        job = [head, bytes(steps), bytes(pairs)]
        places = []
        for k, buffer in enumerate(buffers):
            size = start = 0
            if buffer.data:
                table = next(
                    (
                        elems
                        for s in steps
                        for place, elems in [self.tables.get(s.opcode, (0, 0))]
                        if elems and s.operands[place] == k
                    ),
                    0,
                )
                columns = column_end if buffer.is_wide else 1
                last = (row_end - 1) * buffer.row_bytes
                start = max(0, -last)
                size = abs(last) + columns * buffer.elem_bytes
                size = table * buffer.elem_bytes if table else size
                places.append((buffer.data - start, size))
            job.append(
                struct.pack("5q", buffer.row_bytes, buffer.elem_bytes, buffer.is_wide, size, start)
            )
            if size:
                job.append(ctypes.string_at(buffer.data - start, size))
        done = subprocess.run(
            [EMULATOR, str(self._driver)], input=b"".join(job), capture_output=True, check=False
        )
        assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
        at_byte = 0
        written = {s.out for s in steps}
        ends = [b for b in buffers if b.data]
        for (address, size), buffer in zip(places, ends, strict=True):
            if any(buffers[k].data == buffer.data for k in written):
                ctypes.memmove(address, done.stdout[at_byte : at_byte + size], size)
            at_byte += size
        assert at_byte + count == len(done.stdout)
        ctypes.memmove(findings, done.stdout[at_byte:], count)
        return 0

    tables: Mapping[int, tuple[int, int]] = MappingProxyType({})
    """By opcode, which operand is a table, and of how many elements."""


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Executor:
    if shutil.which(COMPILER) is None or shutil.which(EMULATOR) is None:
        pytest.skip(f"{COMPILER} and {EMULATOR} are not both installed")
    driver = tmp_path_factory.mktemp("emulated") / "driver"
    sources = [str(executor_library.SOURCES / f"{part}.cpp") for part in ("executor", "baseline")]
    flags = ["-std=c++17", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
    flags += ["-static", f"-I{executor_library.SOURCES}", f"-I{casts.SOURCES}"]
    macro = f'-DPYPTO_CAST_DIGEST="{executor_library.digest()}"'
    own = str(ROOT / "tests" / "support" / "arithmetic" / "native_executor_driver.cpp")
    subprocess.run([COMPILER, *flags, macro, *sources, own, "-o", str(driver)], check=True)
    here = at("baseline")
    library: Any = Emulated(driver)
    places = {"lookup16": (1, 1 << 16), "lower": (3, 3), "higher": (3, 3)}
    places.update({"lower2": (5, 3), "higher2": (5, 3)})
    places.update({"lower_unless": (2, 3), "higher_unless": (2, 3), "sum_ends": (2, 3)})
    places["may_round_apart"] = (5, 5)
    library.tables = {here.opcodes[name]: place for name, place in places.items()}
    return replace(here, library=library)


@pytest.mark.native
def test_operations_on_aarch64(emulated: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_program, "_THREAD_ELEMS", 1 << 30)  # a call for each program
    for fmt, operation in itertools.product(FORMATS, OPERATIONS.values()):
        is_there = fmt in operation.formats and has_function(emulated, operation, fmt, True)
        if is_there and operation.rule is not IntervalRule.FOLD:
            for given in cases(operation, fmt):
                expected = by_numpy(operation, given, fmt)
                node = native_node(emulated, operation, given, fmt, expected.shape)
                same_codes(node.computed(), expected, operation.name)
    for name, exact in zip(("exp", "log"), HARD_OPERANDS, strict=True):
        hard = np.array(HARD_OPERANDS[exact], np.uint32).view(np.float32)
        rounded = np.array([to_odd(exact, x) for x in hard.tolist()]).astype(np.float32)
        found = native_node(emulated, OPERATIONS[name], [hard], FP32, hard.shape)
        same_codes(found.computed(), rounded, name)


@pytest.mark.native
def test_casts_and_reductions_on_aarch64(emulated: Executor) -> None:
    every = np.arange(1 << 16).astype(np.uint16)
    wide = (np.arange(1 << 16, dtype=np.uint32) * np.uint32(65521)) ^ np.uint32(0x9E3779B9)
    for fmt in (FP16, BF16):
        for src, dst, codes in ((FP32, fmt, wide), (fmt, FP32, every)):
            expected = Conversion(src=src, dst=dst, mode=RoundMode.RINT, policy=INF_NAN)
            name = f"{str(dst).lower()}_of_{str(src).lower()}"
            node = Node(emulated, name, [values_of(codes, src)], codes.shape, dst.dtype)
            same_codes(codes_of(node.computed(), dst), expected.reference(codes), name)
    for name, length in itertools.product(("amax", "amin", "sum"), (1, 64, 100, 320, 1000)):
        rows = rows_to_sum(length)
        row = OPERATIONS[name]
        whole = Enclosure(values=rows)
        reduced = reduce(row, whole, FP32, axis=-1, trust=EXACT, engine="numpy")
        same_codes(row_node(emulated, name, rows, None, 1).computed(), reduced.values, name)
    rows = rows_to_sum(1000)
    order = Tiles(extent=72, joins=joins(14))
    same_codes(
        row_node(emulated, "sum", rows, order, 1).computed(),
        row_node(at("baseline"), "sum", rows, order, 1).computed(),
        "tiles",
    )


@pytest.mark.native
def test_numbers_near_ties_on_aarch64(emulated: Executor) -> None:
    found, expected = near_ties(emulated)
    np.testing.assert_array_equal(found != 0, expected)


@pytest.mark.native
@pytest.mark.parametrize("trust", [DEFAULT, NAMING_CHOICES], ids=["default", "by documents"])
def test_intervals_on_aarch64(
    emulated: Executor, trust: Trust, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor_library, "find", lambda: emulated)
    monkeypatch.setattr(small_programs, "FEW_ELEMS", 0)
    rng = np.random.default_rng(SEED)
    values = (np.abs(rng.standard_normal((2, 50, 60))) + 2).astype(np.float32)
    low, high = ((values.view(np.int32) + k).view(np.float32) for k in (-1, 2))
    if trust is DEFAULT:  # by documents such numbers are numpy's
        nan = np.array(0x7FFFFFFF, np.uint32).view(np.float32)
        for array in (values, low, high):
            array[0, 7:12, 3] = [np.inf, -np.inf, 0.0, -0.0, nan]
    causes = rng.integers(0, 9, values.shape).astype(np.uint16)
    a, b = (
        Enclosure(
            values=values[k],
            interval=Interval(low=low[k], high=high[k], may_be_nan=None, cause=causes[k]),
        )
        for k in range(2)
    )
    exact = Enclosure(values=np.round(values[0]))
    for name in ("add", "sub", "mul", "div", "exp", "log", "rsqrt", "abs"):
        pairs = [(a, b), (a, exact), (a, a)] if OPERATIONS[name].operands == 2 else [(a,)]
        for case in pairs:
            expected = evaluate(OPERATIONS[name], case, FP32, trust=trust, cause=4, engine="numpy")
            with deferring():
                found = evaluate(OPERATIONS[name], case, FP32, trust=trust, cause=4)
                assert isinstance(found, DeferredInterval), name
                for part in ("values", "low", "high"):
                    same_codes(getattr(found, part), getattr(expected, part), (name, part))
                assert not found.parts.fell_back, name
                assert found.interval is not None
                assert expected.interval is not None
                open_ = ~expected.certain()
                same_codes(
                    found.interval.cause[open_], expected.interval.cause[open_], (name, "cause")
                )


@pytest.mark.native
def test_reductions_of_special_points_on_aarch64(
    emulated: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor_library, "find", lambda: emulated)
    values = np.random.default_rng(SEED).standard_normal((6, 700)).astype(np.float32)
    low, high = np.nextafter(values, -np.inf), np.nextafter(values, np.inf)
    nan = np.array(0x7FFFFFFF, np.uint32).view(np.float32)
    for array in (values, low, high):
        array[:4, 600] = [np.inf, -np.inf, nan, np.inf]
        array[3, 650] = -np.inf
    held = Interval(
        low=low, high=high, may_be_nan=None, cause=np.broadcast_to(np.uint16(3), (6, 700))
    )
    given = Enclosure(values=values, interval=held)
    for name in ("sum", "amax", "amin"):
        expected = reduce(OPERATIONS[name], given, FP32, axis=-1, engine="numpy")
        with deferring():
            found = reduce(OPERATIONS[name], given, FP32, axis=-1)
            assert isinstance(found, DeferredInterval), name
            for part in ("values", "low", "high"):
                same_codes(getattr(found, part), getattr(expected, part), (name, part))
            assert not found.parts.fell_back, name


def test_a_program_of_the_driver_has_the_layout_of_here() -> None:
    """The structs of Python have the sizes that program.h gives."""
    assert ctypes.sizeof(node_program._Step) == 11 * 4
    assert ctypes.sizeof(node_program._Buffer) == 8 + 8 + 4 + 4
