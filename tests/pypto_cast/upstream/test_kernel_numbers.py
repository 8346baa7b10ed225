"""Numbers of a kernel beside other types: upstream's result on either side, or an error."""

from __future__ import annotations

import copy
import operator
import re
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pypto_cast as pypto
from pypto_cast import UpstreamRefusalError, UpstreamRefusalWarning
from pypto_cast.tensors.symbolic import LoopIndex, RuntimeScalar
from pypto_cast.tensors.undecided import UndecidedScalar, value_of

Operator = Callable[[Any, Any], Any]

ARITHMETIC = [operator.add, operator.sub, operator.mul]
DIVISIONS = [operator.truediv, operator.floordiv, operator.mod]
LOGICAL = [operator.and_, operator.or_]
ORDER = [operator.lt, operator.le, operator.gt, operator.ge]
EQUALITY = [operator.eq, operator.ne]
OURS = [operator.lshift, operator.rshift, operator.xor, operator.pow]
ALL = [*ARITHMETIC, *DIVISIONS, *LOGICAL, *ORDER, *EQUALITY]


def c_value(function: Operator, a: int, b: int) -> int:
    """The operator in C++, of 64-bit integers."""
    if function in DIVISIONS:
        quotient = int(Fraction(a, b))
        return a - b * quotient if function is operator.mod else quotient
    if function in LOGICAL:
        return int(function(bool(a), bool(b)))
    return int(function(a, b))


def opened(value: int) -> Any:
    return UndecidedScalar.of(RuntimeScalar(value), value - 1, value + 1, 1)


KINDS = {
    "constant": pypto.SymbolicScalar,
    "runtime": RuntimeScalar,
    "index": lambda value: LoopIndex.of(value, is_first=True, is_last=False),
    "undecided": opened,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("function", ALL, ids=lambda each: each.__name__)
def test_ints_of_every_type_on_either_side(kind: str, function: Operator) -> None:
    made = KINDS[kind]
    for other in (-7, -1, 2, True, np.int64(-7), np.int8(2), np.uint16(3), np.bool_(True)):
        for value in (-3, 2, 5):
            results = [(function(other, made(value)), c_value(function, int(other), value))]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UpstreamRefusalWarning)
                results.append((function(made(value), other), c_value(function, value, int(other))))
            for result, expected in results:
                assert int(value_of(result)) == expected
                assert isinstance(result, pypto.SymbolicScalar)
                assert isinstance(result, RuntimeScalar) or kind == "constant"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("function", [*ALL, *OURS], ids=lambda each: each.__name__)
@pytest.mark.parametrize(
    "other",
    [2.5, 2.0, 1j, Fraction(7, 2), Decimal(3), np.float32(2), np.array([1, 2]), np.array(3), None],
    ids=repr,
)
@pytest.mark.sampled(3)
def test_other_types_are_refused_on_either_side(
    kind: str, function: Operator, other: object
) -> None:
    made = KINDS[kind](2)
    with pytest.raises(TypeError):
        function(made, other)
    with pytest.raises(TypeError):
        function(other, made)


def test_text_is_refused_but_for_its_format() -> None:
    n = RuntimeScalar(2)
    for function in set(ALL) - {operator.mod, operator.mul}:
        with pytest.raises(TypeError):
            function("a", n)
    for function in set(ALL) - {operator.mul}:
        with pytest.raises(TypeError):
            function(n, "a")
    assert (f"{n:d}", f"{n:3d}", str(n), repr(n)) == ("2", "  2", "2", "2")


@pytest.mark.parametrize("kind", KINDS)
def test_what_upstreams_numbers_lack(kind: str) -> None:
    n = KINDS[kind](3)
    for refused in (
        abs,
        round,
        lambda n: divmod(n, 2),
        lambda n: divmod(7, n),
        lambda n: pow(n, 3, 5),
        lambda n: pow(3, n, 5),
        lambda n: n @ 2,
        lambda n: n.min(None),
        lambda n: n.max(2.5),
        lambda n: pypto.min(2.5, n),
    ):
        with pytest.raises(TypeError):
            refused(n)
    assert not isinstance(n, int)
    assert isinstance(n, pypto.SymbolicScalar)


@pytest.mark.parametrize("function", OURS, ids=lambda each: each.__name__)
def test_operators_of_ours_alone_warn(function: Operator) -> None:
    for call in (
        lambda: function(RuntimeScalar(3), 2),
        lambda: function(3, RuntimeScalar(2)),
        lambda: function(opened(3), opened(2)),
    ):
        with pytest.warns(UpstreamRefusalWarning, match="have no n ") as caught:
            assert int(value_of(call())) == function(3, 2)
        assert len(caught) == 1
        with pypto.options(strict=True), pytest.raises(UpstreamRefusalError, match="have no n "):
            call()


def test_ints_of_numpy_on_the_right_warn() -> None:
    n = RuntimeScalar(5)
    for call in (
        lambda: n - np.int64(2),
        lambda: n.min(np.int64(3)),
        lambda: opened(5) - np.int8(2),
    ):
        with pytest.warns(UpstreamRefusalWarning, match=r"take no int\d+ on their right") as caught:
            assert int(value_of(call())) == 3
        assert len(caught) == 1
        with pypto.options(strict=True), pytest.raises(UpstreamRefusalError):
            call()


@pytest.mark.filterwarnings("ignore::pypto_cast.UpstreamRefusalWarning")
def test_powers_and_shifts_at_their_limits() -> None:
    three: Any = pypto.SymbolicScalar(3)
    assert [three**0, three**39, (-three) ** 3, (three - 2) ** 10**12] == [1, 3**39, -27, 1]
    assert [(three - 5) ** 63, three >> 70] == [-(2**63), 0]
    with pytest.raises(ValueError, match=r"3 \*\* -1: numbers of a kernel are ints"):
        three**-1
    for large in (lambda: three**10**12, lambda: three << 10**12):
        with pytest.raises(OverflowError, match="64 bits"):
            large()
    with pytest.raises(ValueError, match="negative shift count"):
        three << -1


def test_results_of_more_than_64_bits_are_refused() -> None:
    most: Any = pypto.SymbolicScalar(2**63 - 1)
    for large in (lambda: most + 1, lambda: most * 2, lambda: -2 - most, lambda: most - 2**64):
        with pytest.raises(OverflowError, match="numbers of a kernel have 64 bits"):
            large()
    with pytest.raises(OverflowError, match="64 bits"):
        pypto.SymbolicScalar(2**63)
    assert most - 2**63 == -1


def test_pythons_ways_to_a_plain_number() -> None:
    n: Any = RuntimeScalar(2)
    assert (int(n), float(n), complex(n), operator.index(n), hash(n)) == (2, 2.0, 2 + 0j, 2, 2)
    assert ([7, 8, 9][n], list(range(n)), {2: "two"}[n], min(n, 1), max(1, n)) == (
        *(9, [0, 1], "two", 1, 2),
    )
    assert (bool(n), bool(n - 2), type(n.concrete())) == (True, False, int)
    assert np.asarray([n, 4]).dtype == np.int64
    assert np.zeros(n).shape == (2,)
    n += 1
    assert type(n) is RuntimeScalar
    assert copy.deepcopy(n) == 3
    for wrong in (2.0, None, [1]):
        with pytest.raises(TypeError):
            pypto.SymbolicScalar(wrong)


def test_a_number_of_a_kernel_beside_a_tensor() -> None:
    x = pypto.tensor(data=np.ones((8, 8), np.float32))
    for call in (
        lambda: x * RuntimeScalar(2),
        lambda: RuntimeScalar(2) * x,
        lambda: pypto.maximum(x, opened(2)),
    ):
        with pypto.options(vec_tile_shapes=(8, 8)):
            with pytest.warns(UpstreamRefusalWarning, match="beside a tensor") as caught:
                assert call().numpy()[0, 0] == 2
            assert len(caught) == 1
            with pypto.options(strict=True), pytest.raises(UpstreamRefusalError):
                call()
    assert pypto.arange(0, RuntimeScalar(7), 2).numpy().tolist() == [0, 2, 4, 6]


MATRIX: Any = pypto.Tensor[[16, 32], pypto.DT_FP32]
PLACES: Any = pypto.Tensor[[16], pypto.DT_INT32]
BELOW = {
    "assigned": ("c[i - 1] = x[i]", r"'c'\[-1\] of axis 0 starts at a number of the kernel"),
    "assigned slice": ("c[3, i - 8 :] = x[i, 0:8]", r"'c'\[-8:\] of axis 1 starts at a number"),
    "assigned to an end": ("c[: i - 8] = x[0:8]", r"'c'\[:-8\] .* puts it at -8 - 16 = -24"),
    "read": ("c[i] = x[i - 1]", r"'x'\[-1\] of axis 0 starts at a number of the kernel"),
    "read slice": ("c[0:8] = x[i - 8 :]", r"'x'\[-8:\] of axis 0 starts at a number"),
    "read number": ("c[n[i - 1] + i] = x[i]", r"'n'\[-1\] of axis 0 starts at a number"),
    "a constant": ("c[pypto.SymbolicScalar(-1)] = x[i]", r"'c'\[-1\] of axis 0 starts at a"),
    "ints": ("c[-1] = x[-2]", ""),
    "slices of ints": ("c[-3:-1, -32:] = x[-4:-2, -32:32]", ""),
    "from 0": ("c[i - 0] = x[i * 2]", ""),
}


@pytest.mark.parametrize("case", BELOW)
def test_a_number_of_a_kernel_is_not_counted_from_the_end_upstream(case: str) -> None:
    """Only ints are (python/pypto/tensor.py:538 of r0.2.0); others lie before the tensor."""
    line, text = BELOW[case]
    found: dict[str, Any] = {}
    exec(f"def body(x, c, n, i):\n    {line}\n", {"pypto": pypto}, found)

    @pypto.frontend.jit
    def kernel(x: MATRIX, c: MATRIX, n: PLACES) -> None:
        for i in pypto.loop(1):
            found["body"](x, c, n, i)

    x, n = np.arange(512, dtype=np.float32).reshape(16, 32), np.arange(16, dtype=np.int32)
    c, expected = np.zeros((2, 16, 32), np.float32)
    exec(line.replace("pypto.SymbolicScalar", ""), {"x": x, "c": expected, "n": n, "i": 0})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kernel(x, c, n)
    messages = [str(w.message) for w in caught if w.category is UpstreamRefusalWarning]
    assert [*map(bool, messages)] == [True] * bool(text)
    np.testing.assert_array_equal(c, expected)
    if text:
        assert re.search(text, messages[0])
        with pypto.options(strict=True), pytest.raises(UpstreamRefusalError, match=text):
            kernel(x, c, n)
