"""The native executor gives numpy's bits: every operation, alone and in programs of several."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.arithmetic.native_executor import (
    FORMATS,
    LEVELS,
    by_numpy,
    cases,
    operands,
    rows_to_sum,
    same_codes,
)
from support.arithmetic.native_executor import at as executor_at
from support.numbers.codes import SEED

from pypto_cast.operations.reduction_functions import joins
from simulator.arithmetic import OPERATIONS, Enclosure, Tiles, evaluate, reduce
from simulator.arithmetic.computed import native_node
from simulator.arithmetic.elementary import HARD_OPERANDS, to_odd
from simulator.arithmetic.indexed.running_sums import prefix_scan
from simulator.arithmetic.native import executor_library, row_scans, small_programs
from simulator.arithmetic.native.interval_nodes import TRUTHS
from simulator.arithmetic.native.node_program import Deferred, Node, compute_all
from simulator.arithmetic.native.operation_nodes import deferring, has_function, row_node
from simulator.arithmetic.operation import IntervalRule
from simulator.arithmetic.reduction_order import ORDERS
from simulator.arithmetic.trust import EXACT
from simulator.numbers.convert import INF_NAN, Conversion, codes_of, values_of
from simulator.numbers.formats import BF16, BOOL, FP16, FP32, FloatFormat, IntFormat
from simulator.numbers.rounding import RoundMode

LENGTHS = (1, 2, 3, 7, 63, 64, 65, 100, 127, 128, 129, 191, 192, 200, 320, 448, 513, 4096, 5000)
at_levels = pytest.mark.parametrize("level", LEVELS)


@pytest.mark.sampled(4)
@at_levels
@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_operations(level: str, fmt: FloatFormat) -> None:
    executor = executor_at(level)
    tried = 0
    for operation in OPERATIONS.values():
        if operation.rule is IntervalRule.FOLD or fmt not in operation.formats:
            continue
        if has_function(executor, operation, fmt, True):
            tried += 1
            for given in cases(operation, fmt):
                expected = by_numpy(operation, given, fmt)
                node = native_node(executor, operation, given, fmt, expected.shape)
                same_codes(node.computed(), expected, operation.name)
    assert tried == (27 if fmt is FP32 else 26)


@at_levels
@pytest.mark.parametrize("exact", HARD_OPERANDS, ids=lambda exact: str(exact.__name__))
def test_hard_operands(level: str, exact: Any) -> None:
    name = {"scaled_exp": "exp", "scaled_log": "log"}[exact.__name__]
    given = np.array(HARD_OPERANDS[exact], np.uint32).view(np.float32)
    expected = np.array([to_odd(exact, x) for x in given.tolist()]).astype(np.float32)
    node = native_node(executor_at(level), OPERATIONS[name], [given], FP32, given.shape)
    same_codes(node.computed(), expected, name)


def test_table_of_powers_is_correctly_rounded() -> None:
    """An entry that is off changes the codes of few operands in all 2**32."""
    header = Path(__file__).parents[4] / "simulator/arithmetic/native/csrc/elementary.h"
    (table,) = re.findall(r"POWERS\[16\] = \{(.*?)\}", header.read_text(), re.DOTALL)
    powers = [float.fromhex(each) for each in re.findall(r"0x[\w.+]+", table)]
    assert len(powers) == 16
    for place, power in enumerate(powers):
        doubled = int(power * 2**53)  # between its neighbours' middles lies 2**(place / 16)
        assert (doubled - 1) ** 16 <= 2 ** (53 * 16 + place) <= (doubled + 1) ** 16, place


@at_levels
@pytest.mark.parametrize("fmt", [FP16, BF16], ids=str)
def test_casts(level: str, fmt: FloatFormat) -> None:
    executor = executor_at(level)
    name = str(fmt).lower()
    numbers = operands(FP32)[0]
    every = np.arange(1 << 16).astype(np.uint16)
    for src, dst, codes in ((FP32, fmt, codes_of(numbers, FP32)), (fmt, FP32, every)):
        expected = Conversion(src=src, dst=dst, mode=RoundMode.RINT, policy=INF_NAN)
        step = f"{name}_of_fp32" if dst is fmt else f"fp32_of_{name}"
        given = values_of(codes, src)
        found = Node(executor, step, [given], given.shape, dst.dtype).computed()
        same_codes(codes_of(found, dst), expected.reference(codes), step)


@pytest.mark.sampled(5)
@at_levels
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("shape", [(2500, 1001), (3, 900_001), (1, 2_500_003)], ids=str)
def test_large_results(level: str, threads: int, shape: tuple[int, ...]) -> None:
    """They are written past the caches, to any address; steps of the same block read them too."""
    executor, count = executor_at(level), shape[0] * shape[1]
    x = np.resize(operands(FP32)[1], count).reshape(shape)
    memory = np.full(count + 9, 7, np.float32)
    out = memory[5 : 5 + count].reshape(shape)
    first = Node(executor, "neg", [x], shape, x.dtype, threads=threads)
    nodes = [first, Node(executor, "add", [first, x[:, :1]], shape, x.dtype, threads=threads)]
    compute_all(nodes, {id(nodes[1]): out})
    negated = by_numpy(OPERATIONS["neg"], [x], FP32)
    same_codes(nodes[0].computed(), negated, "neg")
    assert nodes[1].array is out
    same_codes(out, by_numpy(OPERATIONS["add"], [negated, x[:, :1]], FP32), "add")
    assert (np.delete(memory, slice(5, 5 + count)) == 7).all()


@pytest.mark.sampled(5)
@at_levels
@pytest.mark.parametrize("shape", [(3000, 1001), (3, 900_001), (1, 2_500_003)], ids=str)
@pytest.mark.parametrize("step", ["mul", "fp16_of_fp32", "lt", "where"])
def test_large_results_of_one_step(level: str, shape: tuple[int, ...], step: str) -> None:
    """They leave by pieces of 256 elements: of any size, beside columns and single elements."""
    executor, count = executor_at(level), shape[0] * shape[1]
    x = np.resize(operands(FP32)[0], count).reshape(shape)
    column, one = x[:, 7:8], x[:1, 3:4]
    half, whole, two, three = np.float16(), np.float32(), [x, column], [x > 1, one, x]
    given, dtype = {"mul": (two, whole), "lt": (two, np.bool_()), "where": (three, whole)}.get(
        step, ([x], half)
    )
    memory = np.full(count + 77, 1, dtype)
    out = memory[3 : 3 + count].reshape(shape)
    node = Node(executor, step, given, shape, out.dtype)
    compute_all([node], {id(node): out})
    if step == "fp16_of_fp32":
        convert = Conversion(src=FP32, dst=FP16, mode=RoundMode.RINT, policy=INF_NAN)
        same_codes(codes_of(out, FP16), convert.reference(codes_of(x, FP32)), step)
    else:
        same_codes(out, by_numpy(OPERATIONS[step], given, FP32), step)
    assert (np.delete(memory, slice(3, 3 + count)) == 1).all()


@pytest.mark.sampled(12)
@at_levels
@pytest.mark.parametrize("family", ORDERS)
@pytest.mark.parametrize("name", ["amax", "amin", "sum", "prod"])
def test_reductions(level: str, name: str, family: str) -> None:
    executor, called = executor_at(level), ORDERS[family].native.get(name, name)
    for length in LENGTHS[name == "prod" :]:  # one factor is never handed over
        rows = rows_to_sum(length)
        rows[3] = -0.0
        for given in (rows, rows[:, ::-1]):
            expected = reduce(
                OPERATIONS[name],
                Enclosure(values=given.copy()),
                FP32,
                axis=-1,
                trust=EXACT,
                engine="numpy",
                family=family,
            )
            found = row_node(executor, called, given, None, 1).computed()
            same_codes(found, expected.values, (name, length))


@at_levels
@pytest.mark.parametrize("family", ORDERS)
@pytest.mark.parametrize(("name", "join"), [("sum", np.add), ("prod", np.multiply)])
def test_joined_tiles(level: str, name: str, join: Any, family: str) -> None:
    """Tiles are joined one by one, then the first is reduced; the last one may be short."""
    executor, called = executor_at(level), ORDERS[family].native[name]
    for length, extent in itertools.product((5, 64, 200, 1000), (8, 64, 72, 512)):
        rows, count = rows_to_sum(length), -(-length // extent)
        tiles = [rows[:, k * extent : (k + 1) * extent].copy() for k in range(count)]
        with np.errstate(all="ignore"):
            for to, of in joins(count):
                part = tiles[to][:, : tiles[of].shape[1]]
                join(part, tiles[of], out=part)
        expected = reduce(
            OPERATIONS[name],
            Enclosure(values=tiles[0]),
            FP32,
            axis=-1,
            trust=EXACT,
            engine="numpy",
            family=family,
        )
        order = Tiles(extent=extent, joins=joins(count))
        found = row_node(executor, called, rows, order, 1).computed()
        same_codes(found, expected.values, (length, extent))


@pytest.mark.sampled(32)
@at_levels
@pytest.mark.parametrize("step", ["add", "mul"])
@pytest.mark.parametrize("by_scalars", [False, True], ids=["by tiles", "by scalars"])
@pytest.mark.parametrize("threads", [1, 3])
def test_running_sums_and_products(
    level: str, step: Any, by_scalars: bool, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = executor_at(level)
    monkeypatch.setattr(executor_library, "find", lambda: executor)
    for module, name in ((row_scans, "_THREAD_ELEMS"), (row_scans, "_CALL_ELEMS")):
        monkeypatch.setattr(module, name, 64)
    for length, extent in itertools.product((1, 2, 5, 64, 65, 200, 1000), (1, 8, 64, 72, 2000)):
        rows = rows_to_sum(length)
        rows[2, length // 3 :: 7] *= -1
        rows[1, 0] = rows[3, length // 2]
        given = Enclosure(values=rows.reshape(3, 2, length))
        order: Any = {"step": step, "axis": 2, "extent": extent, "by_scalars": by_scalars}
        found, expected = (
            prefix_scan(given, FP32, **order, trust=EXACT, cause=1, engine=engine, threads=threads)
            for engine in ("native", "numpy")
        )
        same_codes(found.values, expected.values, (length, extent))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("few", [0, small_programs.FEW_ELEMS], ids=["all wait", "large ones wait"])
@pytest.mark.parametrize("columns", [1, 5, 64, 700])
def test_programs(columns: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations that wait give the bits of operations one by one, in any order of reading."""
    executor_at("baseline")
    monkeypatch.setattr(small_programs, "FEW_ELEMS", few)
    rng = np.random.default_rng(SEED + columns)
    names = [
        row.name
        for row in OPERATIONS.values()
        if FP32 in row.formats and not (row.gives_truth or row.copies)
    ]
    for _ in range(20):
        shapes = [(3, 40, columns), (3, 40, 1), (1, 40, columns), (columns,), (1,)]
        given = [
            Enclosure(values=(rng.standard_normal(shape) * 4).astype(np.float32))
            for shape in shapes
        ]
        steps = [(str(rng.choice(names)), rng.integers(0, 1000, 3)) for _ in range(25)]

        def run(engine: str, steps: list = steps, given: list = given) -> list[Enclosure]:
            held = list(given)
            for name, which in steps:
                row = OPERATIONS[name]
                taken = [held[k % len(held)] for k in which]
                if row.rule is IntervalRule.FOLD:
                    axis = len(taken[0].shape) - 1
                    found = reduce(row, taken[0], FP32, axis=axis, trust=EXACT, engine=engine)
                else:
                    found = evaluate(row, taken[: row.operands], FP32, trust=EXACT, engine=engine)
                held.append(found)
            return held

        expected = run("numpy")
        with deferring():
            found = run("auto")
            dropped = rng.permutation(len(found))
            for k in dropped[:6]:
                same_codes(found[k].values, expected[k].values, steps)
            for k in dropped[6:20]:
                if k >= len(given):
                    found[k] = expected[k]
        for one, other in zip(found, expected, strict=True):
            same_codes(one.values, other.values, steps)


def test_intermediate_results_are_computed_only_if_held(monkeypatch: pytest.MonkeyPatch) -> None:
    executor_at("baseline")
    x = Enclosure(values=np.linspace(-4, 4, 3000, dtype=np.float32).reshape(10, 300))
    monkeypatch.setattr(small_programs, "FEW_ELEMS", 0)
    with deferring():
        between = evaluate(OPERATIONS["exp"], [x], FP32, trust=EXACT)
        assert isinstance(between, Deferred)
        node = between.node
        total = reduce(OPERATIONS["sum"], between, FP32, axis=-1, trust=EXACT)
        del between
        assert total.shape == (10, 1)
        assert total.dtype == np.float32
        total.values  # noqa: B018
        assert node.array is None
        held = evaluate(OPERATIONS["exp"], [x], FP32, trust=EXACT)
        last = evaluate(OPERATIONS["neg"], [held], FP32, trust=EXACT)
        last.values  # noqa: B018
        assert isinstance(held, Deferred)
        assert held.node.array is not None
    assert isinstance(evaluate(OPERATIONS["neg"], [x], FP32, trust=EXACT), Enclosure)


def test_formats_and_modes_without_a_function_are_numpy_s() -> None:
    executor = executor_at("baseline")
    for row in OPERATIONS.values():
        for fmt in row.formats:
            if fmt is BOOL:
                assert has_function(executor, row, fmt, True) == (row.name in TRUTHS)
            elif isinstance(fmt, IntFormat) or fmt not in FORMATS:
                assert not has_function(executor, row, fmt, True)
    assert not has_function(executor, OPERATIONS["add"], FP16, False)
    assert has_function(executor, OPERATIONS["add"], FP32, False)
