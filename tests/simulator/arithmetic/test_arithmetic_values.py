"""Values of the operations against exact fractions, and the conduct that the tables leave out."""

from __future__ import annotations

import decimal
import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from support.numbers.codes import SEED

from benchmarks import hard_operands
from simulator.arithmetic.elementary import BOUND, HARD_OPERANDS
from simulator.arithmetic.evaluation import evaluate
from simulator.arithmetic.interval import Enclosure, pieces
from simulator.arithmetic.operation import Fidelity, IntervalRule
from simulator.arithmetic.reduction import reduce
from simulator.arithmetic.table import OPERATIONS
from simulator.arithmetic.trust import DEFAULT, DOCUMENTED, IEEE
from simulator.numbers.convert import INF_NAN, Conversion
from simulator.numbers.formats import BF16, FP16, FP32, INT16, INT32, UINT16
from simulator.numbers.rounding import RoundMode

WIDTHS = {"FP32": (FP32, np.uint32, 8, 23), "FP16": (FP16, np.uint16, 5, 10)}


def interesting_codes(name: str, count: int, seed: int) -> np.ndarray:
    """Random codes, most of them of like magnitude, and every kind of special one."""
    _, dtype, exp_bits, man_bits = WIDTHS[name]
    rng = np.random.default_rng(seed)
    anything = rng.integers(0, 1 << (1 + exp_bits + man_bits), count, dtype=np.uint64)
    bias = (1 << (exp_bits - 1)) - 1
    near = (
        rng.integers(0, 2, count) << (exp_bits + man_bits)
        | rng.integers(bias - 3, bias + 4, count) << man_bits
        | rng.integers(0, 1 << man_bits, count)
    ).astype(np.uint64)
    tiny = rng.integers(0, 1 << (man_bits + 2), count, dtype=np.uint64)
    inf = ((1 << exp_bits) - 1) << man_bits
    sign = 1 << (exp_bits + man_bits)
    special = np.array(
        [c | s for c in (0, 1, 1 << man_bits, inf - 1, inf, bias << man_bits) for s in (0, sign)]
        + [sign - 1],
        np.uint64,
    )
    kinds = np.stack([anything, near, near, tiny, special[rng.integers(0, special.size, count)]])
    codes = np.choose(rng.integers(0, 5, count), kinds)
    return codes.astype(dtype)


def fraction(code: int, name: str) -> Fraction | float:
    """The number a code stands for; inf and nan as floats, -0 as float too."""
    _, _, exp_bits, man_bits = WIDTHS[name]
    sign, field = code >> (exp_bits + man_bits), code >> man_bits & ((1 << exp_bits) - 1)
    rest = code & ((1 << man_bits) - 1)
    if field == (1 << exp_bits) - 1:
        return math.nan if rest else (-math.inf if sign else math.inf)
    if field == rest == 0 and sign:
        return -0.0
    bias = (1 << (exp_bits - 1)) - 1
    significand = rest | (1 << man_bits if field else 0)
    magnitude = significand * Fraction(2) ** (max(field, 1) - bias - man_bits)
    return -magnitude if sign else magnitude


def nearest(x: Fraction, negative: bool, name: str) -> int:
    """The code of an exact number rounded to nearest, ties to even."""
    _, _, exp_bits, man_bits = WIDTHS[name]
    bias = (1 << (exp_bits - 1)) - 1
    sign = int(negative) << (exp_bits + man_bits)
    x = abs(x)
    exponent = 1 - bias
    if x:
        exponent = max(exponent, x.numerator.bit_length() - x.denominator.bit_length() - 1)
        while x >= Fraction(2) ** (exponent + 1):
            exponent += 1
    kept = round(x / Fraction(2) ** (exponent - man_bits))  # Python rounds ties to even
    code = ((exponent + bias - 1) << man_bits) + kept
    return sign | min(code, ((1 << exp_bits) - 1) << man_bits)


def root(x: Fraction, name: str) -> int:
    """The code of a square root: a root of far more bits, with its remainder as a sticky bit."""
    scaled = x * 4**400
    whole = math.isqrt(scaled.numerator // scaled.denominator)
    exact = Fraction(whole) ** 2 == scaled
    return nearest(Fraction(whole * 2 + (not exact), 2) / 2**400, False, name)


def expected(operation: str, a: int, b: int, name: str) -> int | None:
    """The code of a result, None where IEEE 754 specials decide and the tables are the test."""
    x, y = fraction(a, name), fraction(b, name)
    if isinstance(x, float) or isinstance(y, float):
        return None
    sign_bit = WIDTHS[name][2] + WIDTHS[name][3]
    if operation == "sqrt":
        return None if x < 0 else root(x, name)
    if operation in ("add", "sub"):
        total = x + y if operation == "add" else x - y
        return nearest(total, total < 0, name)
    negative = bool((a ^ b) >> sign_bit)
    if operation == "mul":
        return nearest(x * y, negative, name)
    return None if y == 0 else nearest(x / y, negative, name)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", WIDTHS)
@pytest.mark.parametrize("operation", ["add", "sub", "mul", "div", "sqrt", "reciprocal"])
def test_rounded_once(operation: str, name: str) -> None:
    fmt = WIDTHS[name][0]
    a = interesting_codes(name, 4000, SEED)
    b = interesting_codes(name, 4000, SEED + 1)
    one = np.full_like(a, ((1 << (WIDTHS[name][2] - 1)) - 1) << WIDTHS[name][3])
    row = OPERATIONS[operation]
    operands = [Enclosure(values=x.view(fmt.dtype)) for x in (a, b)[: row.operands]]
    found = evaluate(row, operands, fmt).values.view(a.dtype)
    if operation == "reciprocal":
        a, b, operation = one, a, "div"
    checked = 0
    for x, y, z in zip(a.tolist(), b.tolist(), found.tolist(), strict=True):
        wanted = expected(operation, x, y, name)
        if wanted is not None:
            assert z == wanted, (hex(x), hex(y), hex(z), hex(wanted))
            checked += 1
    assert checked > 1000


ELEMENTARY = {
    "exp": decimal.Decimal.exp,
    "log": decimal.Decimal.ln,
    "rsqrt": lambda x: 1 / x.sqrt(),
}


PARTS = 64
"""Of all codes, each a test of its own."""
HARD_CODES = [*itertools.chain(*HARD_OPERANDS.values())]


def drawn(name: str) -> np.ndarray:
    codes = interesting_codes(name, 3000, SEED)
    return np.append(codes, np.array(HARD_CODES, np.uint32)) if name == "FP32" else codes


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("name", "codes"),
    [
        pytest.param("FP32", drawn, id="FP32"),
        pytest.param("FP16", drawn, id="FP16"),
        pytest.param(
            "FP32",
            lambda _: np.arange(1 << 16, dtype=np.uint32) << np.uint32(16),
            marks=pytest.mark.exhaustive,
            id="all-BF16",
        ),
        pytest.param(
            "FP16",
            lambda _: np.arange(1 << 16, dtype=np.uint16),
            marks=pytest.mark.exhaustive,
            id="all-FP16",
        ),
    ],
)
@pytest.mark.parametrize("operation", ELEMENTARY)
def test_elementary_functions_round_once(
    operation: str, name: str, codes: Callable[[str], np.ndarray]
) -> None:
    given = codes(name)
    operands = given.view(WIDTHS[name][0].dtype)
    found = evaluate(OPERATIONS[operation], [Enclosure(values=operands)], WIDTHS[name][0])
    checked = 0
    with decimal.localcontext() as context:
        context.prec = 120
        for x, z in zip(operands.tolist(), found.values.view(given.dtype).tolist(), strict=True):
            if abs(x) < 200 if operation == "exp" else 0 < x < math.inf:
                exact = ELEMENTARY[operation](decimal.Decimal(x))
                assert z == nearest(Fraction(exact), exact < 0, name), (x, hex(z))
                checked += 1
    assert checked > 600


@pytest.mark.parametrize("operation", ["exp", "log"])
def test_the_loop_of_numpy_decides_no_bit(monkeypatch: pytest.MonkeyPatch, operation: str) -> None:
    operands = drawn("FP32").view(np.float32)
    given = [Enclosure(values=operands)]
    right = evaluate(OPERATIONS[operation], given, FP32).values.view(np.uint32)
    loop = getattr(np, operation)

    def planted(off: int) -> Callable[..., None]:
        def worse(x: np.ndarray, *, out: np.ndarray, **_: object) -> None:
            near = loop(x, dtype=np.float64)
            moved = near.view(np.int64) + off * (np.isfinite(near) & (near != 0))
            np.copyto(out, moved.view(np.float64), casting="unsafe")

        return worse

    wrong = 0
    for off in (-4, -3, 3, 4):
        monkeypatch.setattr(np, operation, planted(off))
        found = evaluate(OPERATIONS[operation], given, FP32).values.view(np.uint32)
        np.testing.assert_array_equal(found, right)
        rounded = np.empty_like(operands)
        with np.errstate(all="ignore"):
            planted(off)(operands, out=rounded)
        wrong += np.count_nonzero((rounded.view(np.uint32) != right) & ~np.isnan(rounded))
    assert wrong > 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("operation", ELEMENTARY)
def test_float64_decides_all_other_operands(operation: str, part: int) -> None:
    half = hard_operands.undecided(
        operation, np.arange(1 << 16, dtype=np.uint16).view(np.float16), np.float16
    )
    assert half.size == 0
    hard = hard_operands.hard_operands(
        operation, BOUND / 2, range(part, hard_operands.PIECES, PARTS)
    )
    found = evaluate(OPERATIONS[operation], [Enclosure(values=hard)], FP32).values
    exact = [hard_operands.exact(operation, x, np.float32) for x in hard.tolist()]
    np.testing.assert_array_equal(found, exact)
    if operation != "rsqrt":
        assert {*hard.view(np.uint32).tolist()} <= {*HARD_CODES}


@pytest.mark.parametrize("mode", ["round", "floor", "ceil", "trunc"])
@pytest.mark.parametrize("name", WIDTHS)
def test_integral_values_follow_the_cast_instruction(mode: str, name: str) -> None:
    fmt = WIDTHS[name][0]
    codes = interesting_codes(name, 20_000, SEED)
    modes = {"round": "RINT", "floor": "FLOOR", "ceil": "CEIL", "trunc": "TRUNC"}
    conversion = Conversion(src=fmt, dst=fmt, mode=RoundMode[modes[mode]], policy=INF_NAN)
    found = evaluate(OPERATIONS[mode], [Enclosure(values=codes.view(fmt.dtype))], fmt)
    np.testing.assert_array_equal(found.values.view(codes.dtype), conversion.reference(codes))


@pytest.mark.parametrize("fmt", [INT16, INT32], ids=str)
@pytest.mark.parametrize("mode", ["round", "floor", "ceil", "trunc"])
def test_integral_values_of_integers_stay(mode: str, fmt) -> None:
    x = np.array([fmt.min, -1, 0, 7, fmt.max], fmt.dtype)
    found = evaluate(OPERATIONS[mode], [Enclosure(values=x)], fmt)
    np.testing.assert_array_equal(found.values, x)


def test_clip_is_a_maximum_and_a_minimum() -> None:
    x = np.float32([-5, -0.0, 0.0, 5, np.nan, np.inf])

    def clip(least: float, most: float) -> list[int]:
        operands = [Enclosure(values=np.asarray(v, np.float32)) for v in (x, least, most)]
        return evaluate(OPERATIONS["clip"], operands, FP32).values.view(np.uint32).tolist()

    one, two, nan = 0x3F800000, 0x40000000, 0x7FFFFFFF
    assert clip(1, 2) == [one, one, one, two, nan, two]
    assert clip(2, 1) == [one, one, one, one, nan, one], "crossed bounds give the upper one"
    assert clip(-0.0, 0.0) == [0x80000000, 0x80000000, 0, 0, nan, 0]
    assert clip(np.nan, 1) == [nan] * 6


def test_where_moves_bits_of_every_format() -> None:
    condition = Enclosure(values=np.array([True, False, True]))
    for fmt in (FP32, FP16, BF16, INT16):
        codes = [
            np.array([first, first + 1, first + 2], fmt.code_dtype)
            for first in ((1 << fmt.bits) - 8, 3)
        ]
        operands = [condition, *(Enclosure(values=c.view(fmt.dtype)) for c in codes)]
        for inf_nan_mode in (True, False):
            found = evaluate(OPERATIONS["where"], operands, fmt, inf_nan_mode=inf_nan_mode)
            expected = [codes[0][0], codes[1][1], codes[0][2]]
            np.testing.assert_array_equal(found.values.view(fmt.code_dtype), expected)


def test_truth_of_nan_and_of_negative_zero() -> None:
    x = Enclosure(values=np.float32([0.0, -0.0, np.nan, 1e-45]))
    ones = Enclosure(values=np.float32([1.0]))
    assert evaluate(OPERATIONS["logical_not"], [x], FP32).values.tolist() == [
        True,
        True,
        False,
        False,
    ]
    found = evaluate(OPERATIONS["logical_and"], [x, ones], FP32)
    assert found.values.tolist() == [False, False, True, True]


def test_shifts_out_of_range_shift_every_bit_out() -> None:
    counts = np.array([-1, 0, 1, 15, 16, 17, 32767], np.int16)
    x = np.full_like(counts, -3)
    operands = [Enclosure(values=x), Enclosure(values=counts)]
    right = evaluate(OPERATIONS["bitwise_right_shift"], operands, INT16).values
    left = evaluate(OPERATIONS["bitwise_left_shift"], operands, INT16).values
    assert right.tolist() == [-1, -3, -2, -1, -1, -1, -1]
    assert left.tolist() == [0, -3, -6, -32768, 0, 0, 0]
    operands = [Enclosure(values=v.view(np.uint16)) for v in (x, counts)]
    right = evaluate(OPERATIONS["bitwise_right_shift"], operands, UINT16).values
    assert right.tolist() == [0, 65533, 32766, 1, 0, 0, 0]


def test_a_result_has_one_nan() -> None:
    nans = np.array([0x7FC00000, 0xFFC00001, 0x7F800001], np.uint32).view(np.float32)
    infinities = Enclosure(values=np.float32([np.inf, np.inf, np.inf]))
    for operation in ("add", "sub", "mul", "div", "maximum", "minimum"):
        for a in (Enclosure(values=nans), infinities):
            found = evaluate(OPERATIONS[operation], [a, Enclosure(values=nans)], FP32).values
            assert found.view(np.uint32).tolist() == [0x7FFFFFFF] * 3
    for operation in ("abs", "neg", "relu", "exp", "sqrt", "floor"):
        found = evaluate(OPERATIONS[operation], [Enclosure(values=nans)], FP32).values
        assert found.view(np.uint32).tolist() == [0x7FFFFFFF] * 3


@pytest.mark.parametrize("shapes", [((3, 1, 5), (4, 1)), ((), ()), ((0, 3), (3,)), ((70_000,), ())])
def test_operands_broadcast(shapes: tuple[tuple[int, ...], ...]) -> None:
    rng = np.random.default_rng(SEED)
    operands = [np.asarray(rng.standard_normal(shape), np.float32) for shape in shapes]
    found = evaluate(OPERATIONS["add"], [Enclosure(values=x) for x in operands], FP32)
    wanted = np.asarray(operands[0] + operands[1])
    assert found.interval is None
    assert found.values.shape == wanted.shape
    np.testing.assert_array_equal(found.values, wanted)


@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 5), (2, 3, 70), (2, 0, 4), (100_000,)])
def test_pieces_cover_an_array_once(shape: tuple[int, ...]) -> None:
    seen = np.zeros(shape, np.int64)
    for index in pieces(shape, 64):
        assert seen[index].size <= 64
        seen[index] += 1
    assert (seen == 1).all()


def test_operands_are_not_modified_and_wrong_ones_refused() -> None:
    x = np.float32([np.nan, -1, 0])
    x.setflags(write=False)
    q = Enclosure(values=x)
    for row in OPERATIONS.values():
        if row.rule is IntervalRule.FOLD:
            reduce(row, q, FP32, axis=0)
        elif FP32 in row.formats and not row.copies:
            evaluate(row, [q] * row.operands, FP32)
    with pytest.raises(ValueError, match="add takes 2 operands, 1 were given"):
        evaluate(OPERATIONS["add"], [q], FP32)
    with pytest.raises(ValueError, match="add does not run in BF16; it runs in FP32, FP16"):
        evaluate(OPERATIONS["add"], [q, q], BF16)
    with pytest.raises(ValueError, match="operand 0 of add has dtype float32; in FP16 it has"):
        evaluate(OPERATIONS["add"], [q, q], FP16)
    with pytest.raises(ValueError, match="sum is a reduction"):
        evaluate(OPERATIONS["sum"], [q], FP32)
    with pytest.raises(ValueError, match="add is no reduction"):
        reduce(OPERATIONS["add"], q, FP32, axis=0)
    with pytest.raises(ValueError, match="axis 1 of an array of 1 dimensions"):
        reduce(OPERATIONS["sum"], q, FP32, axis=1)
    with pytest.raises(ValueError, match="axis 0 is empty"):
        reduce(OPERATIONS["sum"], Enclosure(values=x[:0]), FP32, axis=0)


def test_each_row_says_how_sure_it_is() -> None:
    for row in OPERATIONS.values():
        for fmt in row.formats:
            exact = row.ulps(fmt, DEFAULT) == 0 and not row.may_flush(fmt, DEFAULT)
            bounded = row.fidelity in (Fidelity.BOUNDED, Fidelity.UNKNOWN)
            assert exact == (not bounded), row.name
            if row.fidelity is Fidelity.EXACT:
                assert row.ulps(fmt, DOCUMENTED) == 0
                assert not row.may_flush(fmt, DOCUMENTED)
        assert bool(row.assumes) == (row.fidelity is not Fidelity.EXACT)
    assert OPERATIONS["div"].ulps(FP32, IEEE) == 0
    assert OPERATIONS["exp"].ulps(FP32, IEEE) == 2
