"""Operations on few elements: kept programs give numpy's bits for whatever arrays come next."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from support.arithmetic.native_executor import FORMATS, LEVELS, at, by_numpy, operands, same_codes
from support.numbers.codes import SEED

from simulator.arithmetic import DEFAULT, EXACT, OPERATIONS, Enclosure, Tiles, evaluate, reduce
from simulator.arithmetic.interval import Interval
from simulator.arithmetic.native import executor_library, small_programs
from simulator.arithmetic.native.kept_program import KeptProgram
from simulator.arithmetic.native.node_program import Node
from simulator.arithmetic.native.operation_nodes import at_once, deferring, has_function
from simulator.arithmetic.reduction import reduce_tiles
from simulator.arithmetic.trust import NAMING_CHOICES
from simulator.numbers.formats import FP32, FloatFormat

Array = np.ndarray[Any, Any]
SHAPES = ((64,), (8, 8), (1, 64), (64, 1), (2, 4, 8), (1,), (1, 1))


def pieces(fmt: FloatFormat, shape: tuple[int, ...], count: int) -> list[Array]:
    """So many arrays of any codes, apart from each other."""
    elems = int(np.prod(shape))
    codes, others, _ = operands(fmt)
    whole = np.concatenate([codes, others])
    start = np.random.default_rng(SEED + elems).integers(0, whole.size - count * elems)
    cut = whole[start : start + count * elems].copy().reshape(count, *shape)
    return [np.array(x) for x in cut]


@pytest.mark.slow
@pytest.mark.sampled(6)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_values(fmt: FloatFormat, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all operations, twice each, on equal shapes and others; read-only arrays and numbers."""
    executor = at(level)
    monkeypatch.setattr(executor_library, "find", lambda: executor)
    rows = [row for row in OPERATIONS.values() if has_function(executor, row, fmt, True)]
    rows = [row for row in rows if row.rule.name != "FOLD"]
    assert len(rows) > 20
    for row, shape in itertools.product(rows, SHAPES):
        count = row.operands
        for others in {shape, (), (1,), shape[-1:], (*shape[:-1], 1)}:
            for _ in range(2):
                given = pieces(fmt, shape, 1) + pieces(fmt, others, count)[1:]
                given = given[::-1] if others == () else given
                if row.copies:
                    given[0] = np.asarray(np.isfinite(given[0]) & (given[0] > 0))
                given[0].flags.writeable = False
                held = [Enclosure(values=x) for x in given]
                found = evaluate(row, held, fmt, trust=EXACT)
                same_codes(found.values, by_numpy(row, given, fmt), (row.name, shape, others))
                assert not any(np.shares_memory(found.values, x) for x in given)


def opened(rng: Any, shape: tuple[int, ...], cause: Any) -> Enclosure:
    """Positive numbers, most of them some codes apart."""
    values = (np.abs(rng.standard_normal(shape)) + 0.01).astype(np.float32)
    low, high = (
        (values.view(np.int32) + side * rng.integers(0, 4, shape).astype(np.int32)).view(np.float32)
        for side in (-1, 1)
    )
    cause = np.broadcast_to(np.asarray(cause, np.uint16), shape)
    held = Interval(low=low, high=high, may_be_nan=None, cause=cause)
    return Enclosure(values=values, interval=held)


def same(found: Enclosure, expected: Enclosure, named: object) -> None:
    same_codes(found.values, expected.values, named)
    same_codes(found.low, expected.low, named)
    same_codes(found.high, expected.high, named)
    if found.interval is not None and expected.interval is not None:
        is_open = ~expected.certain()
        same_codes(found.interval.cause[is_open], expected.interval.cause[is_open], named)
    assert (found.interval is None) == (expected.interval is None), named


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["add", "mul", "div", "maximum", "exp", "sqrt", "rsqrt", "abs"])
def test_intervals(name: str) -> None:
    """Open, exact and unlike operands of one shape or others, met in turn, under several causes."""
    at("baseline")
    rng, row = np.random.default_rng(SEED), OPERATIONS[name]
    for shape in SHAPES:
        mixed = rng.integers(0, 9, shape)
        for _ in range(2):
            exact = Enclosure(values=opened(rng, shape, 0).values)
            zero = Enclosure(values=np.zeros(shape, np.float32))
            infinite = Enclosure(values=np.full(shape, np.inf, np.float32))
            number = Enclosure(values=np.float32(3) * np.ones((), np.float32))
            each = [opened(rng, shape, 3), opened(rng, shape, mixed), exact, zero, infinite, number]
            cases: list[tuple[Enclosure, ...]] = [(x,) for x in each[:-1]]
            if row.operands == 2:
                cases = [c for c in itertools.product(each, each) if c[0].shape or c[1].shape]
            for case, cause in itertools.product(cases, (1, 7)):
                expected = evaluate(row, case, FP32, trust=DEFAULT, cause=cause, engine="numpy")
                found = evaluate(row, case, FP32, trust=DEFAULT, cause=cause)
                same(found, expected, (name, shape))


def test_a_number_takes_no_program_that_was_kept_for_an_array() -> None:
    at("baseline")
    row, (x,) = OPERATIONS["mul"], pieces(FP32, (4, 16), 1)
    for number in (np.full((), 3, np.float32), np.full((), 3, np.float32), np.float32(3)):
        given = [Enclosure(values=x), Enclosure(values=number)]
        same_codes(evaluate(row, given, FP32, trust=EXACT).values, x * np.float32(3), row.name)


def test_operands_that_are_one_array() -> None:
    """A program that was kept for one array twice does not serve two arrays, nor the reverse."""
    at("baseline")
    a, b = pieces(FP32, (4, 16), 2)
    row = OPERATIONS["sub"]
    for given in ((a, b), (a, a), (b, a), (b, b)):
        taken = [Enclosure(values=x) for x in given]
        found = evaluate(row, taken, FP32, trust=EXACT).values
        same_codes(found, by_numpy(row, given, FP32), row.name)
    x = opened(np.random.default_rng(SEED), (4, 16), 3)
    twin = Enclosure(values=x.values, interval=x.interval)
    for case in ((x, x), (x, twin), (twin, x)):
        expected = evaluate(OPERATIONS["mul"], case, FP32, engine="numpy")
        same(evaluate(OPERATIONS["mul"], case, FP32), expected, "mul")


@pytest.mark.parametrize("name", ["amax", "amin", "sum", "prod"])
def test_rows(name: str) -> None:
    at("baseline")
    row = OPERATIONS[name]
    for shape in ((1, 64), (5, 100), (64,), (3, 1), (2, 3, 9)):
        for array in pieces(FP32, shape, 2):
            x = Enclosure(values=array)
            expected = reduce(row, x, FP32, axis=len(shape) - 1, trust=EXACT, engine="numpy")
            found = reduce(row, x, FP32, axis=len(shape) - 1, trust=EXACT)
            same(found, expected, (name, shape))


def test_sums_of_tiles_are_told_apart() -> None:
    at("baseline")
    (array,) = pieces(FP32, (5, 100), 1)
    whole = Tiles(extent=100, joins=())
    halves = Tiles(extent=50, joins=((0, 1),))
    numbers = np.random.default_rng(SEED).standard_normal(array.shape).astype(np.float32)
    x = Enclosure(values=numbers)
    row = OPERATIONS["add"]
    joined = by_numpy(row, [numbers[:, :50], numbers[:, 50:]], FP32)
    for tiles, given in ((whole, numbers), (halves, joined), (whole, numbers)):
        found = reduce_tiles(OPERATIONS["sum"], x, tiles, FP32, by_numpy=lambda x: x, trust=EXACT)
        assert found is not None
        expected = reduce(
            *(OPERATIONS["sum"], Enclosure(values=given), FP32),
            axis=1,
            trust=EXACT,
            engine="numpy",
        )
        same(found, expected, tiles)


def test_they_never_wait() -> None:
    """An array that is changed afterwards was read before."""
    at("baseline")
    (x,) = pieces(FP32, (4, 16), 1)
    expected = by_numpy(OPERATIONS["neg"], [x], FP32)
    with deferring():
        found = evaluate(OPERATIONS["neg"], [Enclosure(values=x)], FP32, trust=EXACT)
        x.fill(0)
    same_codes(found.values, expected, "neg")


def test_more_elements_are_few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a tile's size: by a kept program where nothing waits, with the bits of one that waits."""
    at("baseline")
    runs: list[int] = []
    run = KeptProgram.run

    def counted(self: KeptProgram, given: Any) -> Any:
        runs.append(given[0].size)
        return run(self, given)

    monkeypatch.setattr(KeptProgram, "run", counted)
    elems = small_programs.FEW_ELEMS
    x = Enclosure(values=np.linspace(-4, 4, 2 * elems, dtype=np.float32).reshape(32, -1))

    def results() -> list[Array]:
        powers = evaluate(OPERATIONS["exp"], [x], FP32, trust=EXACT)
        total = reduce(OPERATIONS["sum"], powers, FP32, axis=-1, trust=EXACT)
        return [each.values for each in (powers, total)]

    with deferring():
        later = results()
        assert runs == []
        with at_once():
            sooner = results()
    assert runs == [2 * elems, 2 * elems]
    for one, other in zip(sooner, later, strict=True):
        same_codes(one, other, "exp and sum")
    most = Enclosure(values=np.zeros(elems * small_programs._MORE_AT_ONCE + 1, np.float32))
    evaluate(OPERATIONS["exp"], [most], FP32, trust=EXACT)
    assert len(runs) == 2


def test_threads_share_a_program() -> None:
    at("baseline")
    arrays = pieces(FP32, (4, 16), 64)
    row = OPERATIONS["add"]
    expected = [by_numpy(row, [x, arrays[0]], FP32) for x in arrays]

    def run(k: int) -> Array:
        taken = [Enclosure(values=arrays[k % 64]), Enclosure(values=arrays[0])]
        return evaluate(row, taken, FP32, trust=EXACT).values

    with ThreadPoolExecutor(8) as pool:
        for k, found in enumerate(pool.map(run, range(1024))):
            same_codes(found, expected[k % 64], k)


def test_findings_are_those_of_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where another thread runs the same program meanwhile, or an interrupt ended one."""
    at("baseline")
    kept = small_programs._Kept()
    monkeypatch.setattr(small_programs, "_INTERVALS", kept)
    evaluate(OPERATIONS["exp"], [Enclosure(values=np.zeros(4, np.float32))], FP32)
    (program,) = kept._programs.values()
    zeros, ones = [np.zeros(4, np.float32)], [np.ones(4, np.float32)]
    expected = [program.run(given)[1] for given in (zeros, ones)]
    assert len(set(expected)) == 2
    native, found = program._call, []

    def meanwhile(*arguments: Any) -> Any:
        program._call = native
        found.append(program.run(ones)[1])
        return native(*arguments)

    program._call = meanwhile
    assert [program.run(zeros)[1], *found] == expected

    def interrupted(*arguments: Any) -> Any:
        native(*arguments)
        raise KeyboardInterrupt

    program._call = interrupted
    with pytest.raises(KeyboardInterrupt):
        program.run(ones)
    program._call = native
    assert [program.run(given)[1] for given in (zeros, ones, zeros)] == [*expected, expected[0]]


def test_what_is_kept_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    at("baseline")
    monkeypatch.setattr(small_programs, "_MOST_KEPT", 4)
    for length in range(1, 12):
        x = Enclosure(values=np.ones(length, np.float32))
        evaluate(OPERATIONS["neg"], [x], FP32, trust=EXACT)
    assert len(small_programs._VALUES._programs) <= 4


def test_a_program_of_copies_is_not_kept() -> None:
    """Rows that do not lie evenly are copied: such a copy is of one array."""
    executor = at("baseline")
    x, y = np.ones((2, 1, 4), np.float32), np.ones((2, 3, 4), np.float32)
    node = Node(executor, "add", (x, y), y.shape, y.dtype)
    assert not KeptProgram([node], [x, y]).depends_on_addresses
    for factor in (1, 2):
        given = [x * np.float32(factor), y]
        found = evaluate(OPERATIONS["add"], [Enclosure(values=a) for a in given], FP32, trust=EXACT)
        same_codes(found.values, by_numpy(OPERATIONS["add"], given, FP32), factor)


def test_a_program_is_kept_for_any_factor() -> None:
    """By documents a product with a power of two is not rounded; the next one may be."""
    at("baseline")
    rng = np.random.default_rng(SEED)
    x = Enclosure(values=rng.standard_normal((4, 9)).astype(np.float32))
    for factor in (2.0, 1.1, -4.0, 0.5, 3.0):
        given = (x, Enclosure(values=np.full((1, 1), factor, np.float32)))
        expected = evaluate(OPERATIONS["mul"], given, FP32, trust=NAMING_CHOICES, engine="numpy")
        found = evaluate(OPERATIONS["mul"], given, FP32, trust=NAMING_CHOICES)
        same_codes(found.low, expected.low, factor)
        same_codes(found.high, expected.high, factor)
        with deferring():  # as many elements wait
            wide = Enclosure(values=np.tile(x.values, (40, 20)))
            one = evaluate(OPERATIONS["mul"], (wide, given[1]), FP32, trust=NAMING_CHOICES)
            other = evaluate(
                OPERATIONS["mul"], (wide, given[1]), FP32, trust=NAMING_CHOICES, engine="numpy"
            )
            same_codes(one.low, other.low, factor)
            assert (one.interval is None) == (other.interval is None)
