"""Intervals of the native executor: those of numpy, in every code, flag and cause."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from support.arithmetic.native_executor import LEVELS, at, near_ties, operands, same_codes
from support.numbers.codes import SEED

from pypto_cast.operations.reduction_functions import joins
from simulator.arithmetic import DEFAULT, IEEE, OPERATIONS, Enclosure, Tiles, evaluate, reduce
from simulator.arithmetic.casts import cast
from simulator.arithmetic.interval import Interval
from simulator.arithmetic.native import executor_library, interval_nodes, small_programs
from simulator.arithmetic.native.deferred_intervals import DeferredInterval
from simulator.arithmetic.native.operation_nodes import deferring
from simulator.arithmetic.reduction import reduce_tiles
from simulator.arithmetic.trust import NAMING_CHOICES
from simulator.numbers.convert import INF_NAN, Conversion
from simulator.numbers.formats import BF16, BOOL, FP16, FP32, INT32
from simulator.numbers.rounding import RoundMode

TRUSTS = {"default": DEFAULT, "ieee": IEEE}
UNARY, BINARY = (
    sorted(
        name
        for name in interval_nodes.OPERATIONS - {*interval_nodes.TRUTHS}
        if OPERATIONS[name].operands == count
    )
    for count in (1, 2)
)
Case = tuple[Enclosure, ...]


def enclosure(ends: Any, cause: Any, *, closed: int = 3) -> Enclosure:
    """The least, any and the greatest of three arrays; each so many-th element is certain."""
    codes = np.stack(ends).view(np.int32)
    keys = np.sort(codes ^ ((codes >> 31) & 0x7FFFFFFF), axis=0)
    low, values, high = (keys ^ ((keys >> 31) & 0x7FFFFFFF)).view(np.float32)
    low, high = low.copy(), high.copy()
    low.reshape(-1)[::closed] = high.reshape(-1)[::closed] = values.reshape(-1)[::closed]
    is_nan = np.isnan(low) | np.isnan(high)
    low, values, high = (np.where(is_nan, np.float32(1), x) for x in (low, values, high))
    held = Interval(low=low, high=high, may_be_nan=None, cause=np.broadcast_to(cause, low.shape))
    return Enclosure(values=values, interval=held)


def common(rng: Any, shape: tuple[int, ...], cause: Any, *, positive: bool = False) -> Enclosure:
    """Common numbers, some codes apart, with zeros among them."""
    values = (rng.standard_normal(shape) * 4).astype(np.float32)
    values = np.abs(values) + np.float32(0.01) if positive else values
    values.reshape(-1)[::97] = 1.0 if positive else 0.0
    steps = rng.integers(0, 4, shape).astype(np.int32)
    low, high = ((values.view(np.int32) + side * steps).view(np.float32) for side in (-1, 1))
    low, high = (np.where(values == 0, values, end) for end in (low, high))
    return enclosure((low, values, high), cause)


NAN = np.array(0x7FFFFFFF, np.uint32).view(np.float32)
SPECIAL = np.array([np.inf, -np.inf, 0.0, -0.0, NAN, -2.0], np.float32)


def with_special_points(x: Enclosure) -> Enclosure:
    """Infinities, both zeros and the one NaN as certain elements among others."""
    with_points(x, slice(None, None, 11), SPECIAL)
    return with_points(x, slice(5, None, 11), SPECIAL[1:])


def with_points(x: Enclosure, where: slice, points: Any) -> Enclosure:
    """Certain elements at some places of all in a row."""
    assert x.interval is not None
    for array in (x.values, x.interval.low, x.interval.high):
        flat = array.reshape(-1)
        flat[where] = np.resize(points, flat[where].size)
    return x


def same(found: Enclosure, expected: Enclosure, named: object) -> None:
    same_codes(found.values, expected.values, named)
    assert (found.interval is None) == (expected.interval is None), named
    if found.interval is None or expected.interval is None:
        return
    same_codes(found.low, expected.low, named)
    same_codes(found.high, expected.high, named)
    flags = [x.interval.may_be_nan for x in (found, expected) if x.interval is not None]
    none = np.zeros(found.shape, np.bool_)
    one, other = (none if flag is None else flag for flag in flags)
    same_codes(one, other, named)
    is_open = ~expected.certain()
    same_codes(found.interval.cause[is_open], expected.interval.cause[is_open], named)


def at_level(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    executor = at(level)
    monkeypatch.setattr(executor_library, "find", lambda: executor)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("trust", TRUSTS.values(), ids=list(TRUSTS))
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
@pytest.mark.sampled(32)
def test_operations(name: str, trust: Any, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at_level(level, monkeypatch)
    row, rng = OPERATIONS[name], np.random.default_rng(SEED)
    any_codes, others, third = operands(FP32, 3000)
    wild = enclosure((any_codes, others, third), np.uint16(3))
    point = Enclosure(values=any_codes)
    causes = rng.integers(0, 9, (60, 70)).astype(np.uint16)
    tame = [common(rng, (60, 70), causes), common(rng, (60, 1), np.uint16(2), positive=True)]
    tame += [common(rng, (60, 70), np.uint16(8), positive=True), Enclosure(values=tame[0].values)]
    far = np.linspace(-200, 200, 4200, dtype=np.float32).reshape(60, 70)
    tame.append(enclosure((far - 1, far, far + np.float32(0.5)), np.uint16(4)))
    special = with_special_points(common(rng, (60, 70), causes))
    late = with_points(common(rng, (60, 70), causes, positive=True), slice(600, 606), SPECIAL)
    given: list[Case] = [(wild,), (point,), *((x,) for x in tame), (special,), (late,)]
    if row.operands == 2:
        given = [(wild, point), (point, wild), (wild, wild), *itertools.product(tame, tame)]
        given += [(special, tame[2]), (tame[2], special), (special, Enclosure(values=far + 300))]
        given += [(late, tame[2]), (tame[2], late)]
    covered = []
    for case in given:
        expected = evaluate(row, case, FP32, trust=trust, cause=5, engine="numpy")
        same(evaluate(row, case, FP32, trust=trust, cause=5), expected, name)
        with deferring():
            found = evaluate(row, case, FP32, trust=trust, cause=5)
            if isinstance(found, DeferredInterval):
                found.parts.computed()
                if not found.parts.fell_back:
                    covered.append(case)
            same(found, expected, name)
    # The rules of the executor are used, not numpy's each time.
    is_exact = row.bound is not None and trust is IEEE and row.operands == 1
    assert covered or is_exact
    # Certain infinities and NaN are among what they cover.
    is_cut = name in ("log", "sqrt", "rsqrt", "reciprocal")  # intervals reach below zero
    assert is_exact or is_cut or any(x is special for case in covered for x in case)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("number", [2.5, -1.0, 0.0, -0.0, 3e38, -3e38, np.inf, np.nan])
@pytest.mark.sampled(20)
def test_products_with_numbers_and_their_sums(
    number: float, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sum with a number stands for the check of its product: infinity and NaN are seen in it."""
    at_level(level, monkeypatch)
    rng = np.random.default_rng(SEED)
    tame, positive = (common(rng, (60, 70), np.uint16(k), positive=k > 0) for k in (0, 1))
    special = with_special_points(common(rng, (60, 70), np.uint16(2)))
    wild = [enclosure(operands(FP32, 3000), np.uint16(k)) for k in (3, 4)]
    beyond = np.float32([[-2.0, 1.0, 2.0], [-0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]) * np.float32(3e38)
    few = [enclosure(np.roll(beyond, k, axis=1), np.uint16(5)) for k in range(3)]
    once = Enclosure(values=np.array([number], np.float32))
    pairs = [(tame, positive), (positive, special), (special, tame), (wild[0], wild[1])]
    pairs += [*itertools.product(few, few), (tame, once), (once, positive), (special, once)]

    def run(pair: Case, engine: Any) -> Enclosure:
        how = {"trust": DEFAULT, "cause": 6, "engine": engine}
        product = evaluate(OPERATIONS["mul"], pair, FP32, **how)
        sums = [
            evaluate(OPERATIONS[name], case, FP32, **how)
            for name, case in (
                *(("add", (product, once)), ("sub", (once, product)), ("add", (product, product))),
            )
        ]
        found = evaluate(OPERATIONS["maximum"], (sums[0], sums[1]), FP32, **how)
        return evaluate(OPERATIONS["mul"], (found, sums[2]), FP32, **how)

    waited = 0
    for pair in pairs:
        with deferring():
            found = run(pair, "auto")
            if isinstance(found, DeferredInterval):
                found.parts.computed()
                waited += not found.parts.fell_back
            same(found, run(pair, "numpy"), pair)
    assert waited or not np.isfinite(number)


def test_an_operand_that_is_computed_first_may_be_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long program is cut before the operation, and numpy evaluates what comes before it."""
    monkeypatch.setattr(interval_nodes, "_MOST_STEPS", 0)
    x = np.full((60, 70), 0.5, np.float32)
    cause = np.ones(x.shape, np.uint16)
    ends = Interval(low=x - 1, high=x, may_be_nan=None, cause=cause)

    def run(engine: Any) -> Enclosure:
        how = {"trust": DEFAULT, "cause": 6, "engine": engine}
        root = evaluate(OPERATIONS["sqrt"], (Enclosure(values=x, interval=ends),), FP32, **how)
        return evaluate(OPERATIONS["add"], (root, root), FP32, **how)

    with deferring():
        found = run("auto")
        assert isinstance(found, DeferredInterval)
        assert found.interval is not None
        assert found.interval.may_be_nan is not None
    same(found, run("numpy"), "sqrt")


def by_choices(shape: tuple[int, ...], rng: Any, *, positive: bool = False) -> Enclosure:
    """Common numbers whose causes are bits of choices, also where they are certain."""
    x = common(rng, shape, rng.integers(0, 1 << 13, shape).astype(np.uint16), positive=positive)
    few = np.round(x.values * 2) / 2  # whose sums and products are exact
    exact = few.reshape(-1)[::5]
    assert x.interval is not None
    for array in (x.values, x.interval.low, x.interval.high):
        array.reshape(-1)[::5] = np.where(exact == 0, 1, exact)
    return x


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
@pytest.mark.sampled(24)
def test_operations_by_documents(name: str, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Causes are all choices that would close an element; subnormal numbers are numpy's."""
    at_level(level, monkeypatch)
    row, rng = OPERATIONS[name], np.random.default_rng(SEED)
    wild = enclosure(operands(FP32, 3000), np.uint16(3))
    tame = [by_choices((60, 70), rng), by_choices((60, 1), rng, positive=True)]
    tame += [by_choices((60, 70), rng, positive=True), Enclosure(values=tame[0].values)]
    tame.append(Enclosure(values=np.round(tame[2].values * 4) + np.float32(1)))
    beyond = [x + np.float32(2) for x in (tame[2].low, tame[2].values, tame[2].high)]
    tame.append(enclosure(beyond, np.uint16(6)))
    given: list[Case] = [(wild,), *((x,) for x in tame)]
    if row.operands == 2:
        given = [(wild, wild), *itertools.product(tame, tame)]
    covered = 0
    for case, is_small in itertools.product(given, (False, True)):
        if is_small:
            case = tuple(x[:2].map(np.ascontiguousarray) for x in case)
        expected = evaluate(row, case, FP32, trust=NAMING_CHOICES, engine="numpy")
        same(evaluate(row, case, FP32, trust=NAMING_CHOICES), expected, name)
        with deferring():
            found = evaluate(row, case, FP32, trust=NAMING_CHOICES)
            if isinstance(found, DeferredInterval):
                found.parts.computed()
                covered += not found.parts.fell_back
            same(found, expected, name)
    assert covered > 0


def truths(rng: Any, shape: tuple[int, ...], cause: Any) -> Enclosure:
    """True, false, and open ones of either value."""
    low, high, values = (rng.integers(0, 2, shape).astype(np.bool_) for _ in range(3))
    low, high = low & high, low | high
    held = Interval(low=low, high=high, may_be_nan=None, cause=np.broadcast_to(cause, shape))
    return Enclosure(values=low | high & values, interval=held)


TRUTH_TRUSTS = pytest.mark.parametrize(
    "trust", [DEFAULT, NAMING_CHOICES], ids=["default", "by documents"]
)


@pytest.mark.parametrize("level", LEVELS)
@TRUTH_TRUSTS
def test_truths(trust: Any, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at_level(level, monkeypatch)
    rng = np.random.default_rng(SEED)
    causes = rng.integers(0, 9, (60, 70)).astype(np.uint16)
    held = [truths(rng, (60, 70), causes), truths(rng, (60, 1), np.uint16(7))]
    held.append(Enclosure(values=held[0].values))
    covered = 0
    for name in interval_nodes.TRUTHS:
        row = OPERATIONS[name]
        for case in itertools.product(held, repeat=row.operands):
            for taken in (case, [x[:3].map(np.ascontiguousarray) for x in case]):
                expected = evaluate(row, taken, BOOL, trust=trust, cause=5, engine="numpy")
                same(evaluate(row, taken, BOOL, trust=trust, cause=5), expected, name)
                with deferring():
                    found = evaluate(row, taken, BOOL, trust=trust, cause=5)
                    covered += isinstance(found, DeferredInterval)
                    same(found, expected, name)
    assert covered >= 5


@pytest.mark.slow
@pytest.mark.sampled(4)
@pytest.mark.parametrize("level", LEVELS)
@TRUTH_TRUSTS
def test_selection(trust: Any, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An open condition leaves both branches; a NaN beside a number there is numpy's."""
    at_level(level, monkeypatch)
    rng = np.random.default_rng(SEED)
    causes = rng.integers(0, 9, (60, 70)).astype(np.uint16)
    conditions = [truths(rng, (60, 70), causes), truths(rng, (60, 1), np.uint16(7))]
    conditions.append(Enclosure(values=conditions[0].values))
    codes = operands(FP32, 3000)[0][:4200].reshape(60, 70)
    branches = [common(rng, (60, 70), causes), with_special_points(common(rng, (60, 70), causes))]
    branches += [Enclosure(values=codes), common(rng, (60, 1), np.uint16(2))]
    branches.append(Enclosure(values=np.float32([2.5])))
    row, covered = OPERATIONS["where"], 0
    for case in itertools.product(conditions, branches, branches):
        for taken in (case, tuple(x[:2].map(np.ascontiguousarray) for x in case)):
            expected = evaluate(row, taken, FP32, trust=trust, cause=5, engine="numpy")
            same(evaluate(row, taken, FP32, trust=trust, cause=5), expected, "where")
            with deferring():
                found = evaluate(row, taken, FP32, trust=trust, cause=5)
                if isinstance(found, DeferredInterval):
                    found.parts.computed()
                    covered += not found.parts.fell_back
                same(found, expected, "where")
    assert covered > 30


@pytest.mark.parametrize("level", LEVELS)
@TRUTH_TRUSTS
@pytest.mark.parametrize("mode", interval_nodes.INT32_OF_FP32, ids=lambda mode: mode.name)
def test_casts_to_integers(
    mode: RoundMode, trust: Any, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ends are rounded and clamped; NaN gives 0."""
    at_level(level, monkeypatch)
    monkeypatch.setattr(small_programs, "FEW_ELEMS", 0)
    rng = np.random.default_rng(SEED)
    there = (Conversion(src=FP32, dst=INT32, mode=mode, policy=INF_NAN),)
    back = (Conversion(src=INT32, dst=FP32, mode=RoundMode.RINT, policy=INF_NAN),)
    causes = rng.integers(0, 9, (60, 70)).astype(np.uint16)
    limits = np.float32([2**31, -(2**31), 2**24, 2**23, 0.5, 1.5, -2.5, 2**22 + 0.5, 0.49999997])
    near = np.nextafter(limits, np.float32([[-np.inf], [np.inf]]))
    exact = np.concatenate([limits, near.reshape(-1), operands(FP32, 3000)[0]])
    wild = enclosure(operands(FP32, 3000), np.uint16(2))
    given = [common(rng, (60, 70), causes), by_choices((60, 70), rng, positive=True), wild]
    given += [with_special_points(common(rng, (60, 70), causes)), Enclosure(values=exact)]
    covered = 0
    for x in given:
        expected = cast(there, x, trust=trust, engine="numpy")
        wide = cast(back, expected, trust=trust, engine="numpy")
        with deferring():
            found = cast(there, x, trust=trust)
            same(cast(back, found, trust=trust), wide, mode)
            if isinstance(found, DeferredInterval):
                found.parts.computed()
                covered += not found.parts.fell_back
            same(found, expected, mode)
    assert covered > 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fmt", [FP16, BF16], ids=str)
def test_casts_by_documents(fmt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers that no rule of casts concerns are converted natively, the others by numpy."""
    at("baseline")
    monkeypatch.setattr(small_programs, "FEW_ELEMS", 0)
    rng = np.random.default_rng(SEED)
    there, back = (
        (Conversion(src=src, dst=dst, mode=RoundMode.RINT, policy=INF_NAN),)
        for src, dst in ((FP32, fmt), (fmt, FP32))
    )
    tame = by_choices((40, 50), rng, positive=True)
    wide = evaluate(OPERATIONS["mul"], (tame, Enclosure(values=np.float32([1.001]))), FP32)
    edges = [2**-126, 2**-14, 2**-24, 65504, 65519.99, 65520, 3.3895314e38, 3.4e38, np.inf, np.nan]
    edges = [*edges, 0, 1e-39, -0.0, -65504, -(2.0**-14), -65520]
    near = [np.nextafter(np.float32(x), np.float32(side)) for x in edges for side in (-9, 9)]
    single = [np.full((40, 50), x, np.float32) for x in (*edges, *near)]
    given = [tame, wide, Enclosure(values=tame.values), *(Enclosure(values=x) for x in single)]
    natively = 0
    for x in given:
        expected = cast(there, x, trust=NAMING_CHOICES, engine="numpy")
        again = cast(back, expected, trust=NAMING_CHOICES, engine="numpy")
        with deferring():
            found = cast(there, x, trust=NAMING_CHOICES)
            assert isinstance(found, DeferredInterval)
            same(cast(back, found, trust=NAMING_CHOICES), again, x.values.flat[0])
            same(found, expected, x.values.flat[0])
            natively += not found.parts.fell_back
    assert 3 < natively < len(given)


@pytest.mark.parametrize("fmt", [FP16, BF16], ids=str)
def test_casts(fmt: Any) -> None:
    at("baseline")
    rng = np.random.default_rng(SEED)
    x = common(rng, (40, 50), rng.integers(0, 9, (40, 50)).astype(np.uint16))
    wild = enclosure(operands(FP32, 3000), np.uint16(2))
    there, back = (
        (Conversion(src=src, dst=dst, mode=RoundMode.RINT, policy=INF_NAN),)
        for src, dst in ((FP32, fmt), (fmt, FP32))
    )
    for given in (x, wild):
        expected = cast(there, given, engine="numpy")
        wide = cast(back, expected, engine="numpy")
        with deferring():
            found = cast(there, given)
            assert isinstance(found, DeferredInterval)
            same(cast(back, found), wide, fmt)
            same(found, expected, fmt)


@pytest.mark.parametrize("name", ["amax", "amin", "sum"])
def test_reductions(name: str) -> None:
    at("baseline")
    rng = np.random.default_rng(SEED)
    row = OPERATIONS[name]
    for columns in (1, 7, 64, 200, 1000):
        mixed = rng.integers(0, 9, (20, columns)).astype(np.uint16)
        infinite = common(rng, (20, columns), np.uint16(1))
        assert infinite.interval is not None
        infinite.interval.high[3] = np.inf
        for x in (common(rng, (20, columns), np.uint16(3)), common(rng, (20, columns), mixed)):
            expected = reduce(row, x, FP32, axis=-1, cause=5, engine="numpy")
            same(reduce(row, x, FP32, axis=-1, cause=5), expected, (name, columns))
            with deferring():
                same(reduce(row, x, FP32, axis=-1, cause=5), expected, (name, columns))
        expected = reduce(row, infinite, FP32, axis=-1, engine="numpy")
        same(reduce(row, infinite, FP32, axis=-1), expected, (name, columns))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["amax", "amin", "sum"])
def test_reductions_of_special_points(
    name: str, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Terms that are one infinity or NaN, alone and beside ends that are far or infinite."""
    at_level(level, monkeypatch)
    row, rng, columns = OPERATIONS[name], np.random.default_rng(SEED), 700

    def special(far: float) -> Enclosure:
        x = common(rng, (20, columns), np.uint16(3))
        rows = ([NAN], [np.inf], [-np.inf], [np.inf, -np.inf], [-np.inf, NAN, np.inf])
        for k, points in enumerate(rows):
            first = k * columns + 600
            with_points(x, slice(first, first + len(points)), np.array(points, np.float32))
        assert x.interval is not None
        x.interval.low[:3, 90], x.interval.high[:3, 90] = -far, far
        x.values[:3, 90] = 0
        return x

    for far in (2.0**99, 3e38, np.inf):
        x = special(far)
        expected = reduce(row, x, FP32, axis=-1, engine="numpy")
        with deferring():
            found = reduce(row, x, FP32, axis=-1)
            assert isinstance(found, DeferredInterval)
            same(found, expected, (name, far))
            # Of extremes an infinite end beside another one, of sums any far one.
            assert found.parts.fell_back is (far > 2.0**99 if name == "sum" else far == np.inf)


def test_sums_of_tiles() -> None:
    """Both ends are added in the order of the values."""
    at("baseline")
    rng = np.random.default_rng(SEED)
    x = common(rng, (20, 300), np.uint16(3))
    tiles = Tiles(extent=64, joins=joins(5))

    def by_numpy(_: Enclosure) -> Enclosure:
        raise AssertionError("all ends are finite")

    found = reduce_tiles(OPERATIONS["sum"], x, tiles, FP32, by_numpy=by_numpy)
    assert found is not None
    for part in ("values", "low", "high"):
        given = Enclosure(values=getattr(x, part))
        expected = reduce_tiles(OPERATIONS["sum"], given, tiles, FP32, by_numpy=by_numpy)
        assert expected is not None
        same_codes(getattr(found, part), expected.values, part)


@pytest.mark.parametrize(
    "seed", [*range(5), *(pytest.param(s, marks=pytest.mark.exhaustive) for s in range(5, 20))]
)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("few", [0, small_programs.FEW_ELEMS], ids=["all wait", "large ones wait"])
@pytest.mark.parametrize("trust", [DEFAULT, NAMING_CHOICES], ids=["default", "by documents"])
@pytest.mark.sampled(9)
def test_programs(
    seed: int, threads: int, few: int, trust: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many operations wait together; some meet infinities, NaN and divisors around zero."""
    at("baseline")
    monkeypatch.setattr(small_programs, "FEW_ELEMS", few)
    rng = np.random.default_rng(SEED + seed)
    names = [*UNARY, *BINARY, *("sum", "amax", "lt", "where", "where", "where")]
    shapes = ((6, 10, 33), (6, 10, 1), (10, 33), (1,))
    given = [common(rng, s, np.uint16(k), positive=k % 2 == 0) for k, s in enumerate(shapes)]
    given.append(Enclosure(values=np.linspace(0.1, 3, 33, dtype=np.float32)))
    steps = [(str(rng.choice(names)), rng.integers(0, 1000, 2)) for _ in range(24)]

    def run(engine: Any) -> list[Enclosure]:
        held, conditions = list(given), [Enclosure(values=np.arange(33) % 3 == 0)]
        for place, (name, which) in enumerate(steps):
            row = OPERATIONS[name]
            taken = [held[k % len(held)] for k in which]
            if name == "where":
                taken.insert(0, conditions[which.sum() % len(conditions)])
            how = {"trust": trust, "cause": 10 + place, "engine": engine, "threads": threads}
            if name in ("sum", "amax"):
                found = reduce(row, taken[0], FP32, axis=len(taken[0].shape) - 1, **how)
            else:
                found = evaluate(row, taken[: row.operands], FP32, **how)
            (conditions if row.gives_truth else held).append(found)
        return [*held, *conditions]

    expected = run("numpy")
    with deferring():
        found = run("auto")
        for k in rng.permutation(len(found))[:8]:
            same(found[k], expected[k], steps)
    for one, other in zip(found, expected, strict=True):
        same(one, other, steps)


@pytest.mark.parametrize("level", LEVELS)
def test_numbers_near_ties(level: str) -> None:
    found, expected = near_ties(at(level))
    np.testing.assert_array_equal(found != 0, expected)
    assert 0 < np.count_nonzero(expected) < expected.size
