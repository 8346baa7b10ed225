"""Numbers read of elements that are not certain, to Python: what is computed of them is bounded."""

from __future__ import annotations

import copy
import itertools
import math
import operator
import pickle
import random
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from support.numbers.codes import SEED

import pypto_cast as pypto
from pypto_cast.tensors.symbolic import LoopIndex, RuntimeScalar, SymbolicScalar
from pypto_cast.tensors.undecided import CONTROL_DEPENDENCE, UndecidedScalar, undecided, value_of

BINARY: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {
        **{name: getattr(operator, name) for name in ("add", "sub", "mul", "truediv")},
        **{name: getattr(operator, name) for name in ("floordiv", "mod", "rshift", "lshift")},
        **{name: getattr(operator, name) for name in ("and_", "or_", "xor", "pow")},
        **{name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")},
        "min": pypto.min,
        "max": pypto.max,
        "linear": lambda a, b: 3 * (a + 2) - a * 2 - b,
    }
)
UNARY: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {
        **{name: getattr(operator, name) for name in ("neg", "pos", "invert")},
        "symbolic": pypto.symbolic_scalar,
        "itself": lambda a: (a - a, a < a + 1, a + 1 - a),
    }
)


def ranges(chance: random.Random) -> list[tuple[int, int, int]]:
    """Few and many members, about zero and far from it."""
    found = []
    for width in (0, 1, 5, 40, 3000):
        low = chance.choice((-width // 2, 0, 1, chance.randint(-50, 50), -width))
        found.append((low, chance.randint(low, low + width), low + width))
    return found


def number(low: int, value: int, high: int) -> Any:
    held = RuntimeScalar(value)
    return held if low == high else UndecidedScalar.of(held, low, high, 11)


def is_among(member: Any, found: Any) -> bool:
    if isinstance(member, tuple):
        return all(map(is_among, member, found))
    if undecided(found) is None:
        return bool(member == found and math.copysign(1, member) == math.copysign(1, found))
    return found.bounds is None or bool(found.bounds[0] <= member <= found.bounds[1])


@pytest.mark.parametrize("name", [*BINARY, *UNARY])
def test_what_is_computed_holds_for_every_value(name: str) -> None:
    chance = random.Random(SEED)
    function = {**BINARY, **UNARY}[name]
    most = 6 if name in ("pow", "lshift") else 3000
    for operands in itertools.product(ranges(chance), repeat=1 + (name in BINARY)):
        if any(high > most for _, _, high in operands[1:]):
            continue
        values = [RuntimeScalar(value) for _, value, _ in operands]
        try:
            expected = function(*values)
        except (ArithmeticError, TypeError, ValueError):
            continue
        found = function(*(number(*ends) for ends in operands))
        assert is_among(expected, found)
        assert type(expected) in (type(found), found.__class__)
        for _ in range(40):
            members = [chance.randint(low, high) for low, _, high in operands]
            try:
                member = function(*map(RuntimeScalar, members))
            except (ArithmeticError, TypeError, ValueError):
                assert found.bounds is None
                continue
            assert is_among(member, found), (operands, members, found)


def test_it_is_a_number_of_the_kernel_to_python() -> None:
    n = number(0, 1, 3)
    assert isinstance(n, pypto.SymbolicScalar)
    assert not isinstance(n, int)
    assert not isinstance(n > 1, pypto.Tensor)
    assert (n * 2 + 1).bounds == (1, 7)
    assert (number(-9, 1, 9) // number(-1, 1, 1)).bounds is None
    assert str(n * 2 + 1) == f"{n * 2 + 1}" == "3"
    assert n.is_concrete()
    assert not hasattr(n, "nothing")
    with pytest.raises(TypeError, match="unsupported operand"):
        n + "text"
    with pytest.raises(TypeError, match="float"):
        n * 0.5


@pytest.mark.parametrize(
    ("ways", "steered"),
    [
        (lambda n: n + 1 > 0, []),
        (lambda n: bool(n + 1), []),
        (lambda n: (n > 1) is None, []),
        (lambda n: [bool(n)], [11]),
        (lambda n: n.concrete(), [11]),
        (lambda n: complex(n), [11]),
        (repr, [11]),
        (str, [11]),
        (lambda n: f"{n}", [11]),
        (lambda n: f"{n:2d}", [11]),
        (lambda n: 2 * [n], []),
        (lambda n: n * [2], [11]),
        (lambda n: operator.index(n + 1), [11]),
        (lambda n: np.int32(2) * n + n < np.int64(2), []),
        (lambda n: np.asarray(n), [11]),
        (lambda n: LoopIndex.of(1, is_first=True, is_last=True) + n, []),
        (lambda n: SymbolicScalar("rows", n), []),
        (pickle.dumps, [11]),
        (copy.deepcopy, []),
        (lambda n: 6 // (n + 1) % 7, []),
        (lambda n: number(0, 5, 500) ** (n + 3) + (n << 60), []),
        (lambda n: number(0, 5, 500) ** number(0, 1, 90), [11]),
        (lambda n: number(-9, 5, 500) ** 7 + (number(-9, 5, 99) ^ 77) * 2**50, []),
        (lambda n: (number(0, 1, 900) & 5) + (number(0, 1, 900) | n) + 2**62, []),
        (lambda n: 2**62 * -n, [11]),
        (lambda n: -(2**62) * (n - n) - 2**62 * (n > 1), []),
        (lambda n: number(0, 0, 3000) << number(0, 0, 40), []),
        (lambda n: number(0, 0, 3000) << number(-1, 0, 40), [11]),
    ],
)
def test_it_is_noted_where_it_cannot_be_followed(
    ways: Callable[[Any], object], steered: list[int]
) -> None:
    causes: list[int] = []
    token = CONTROL_DEPENDENCE.set(causes)
    try:
        ways(number(0, 1, 3))
    finally:
        CONTROL_DEPENDENCE.reset(token)
    assert causes == steered


@pytest.mark.parametrize(
    "derive",
    [
        lambda n: n + 1,
        lambda n: 1 + n,
        lambda n: 5 - n,
        lambda n: n // 2,
        lambda n: 7 % n,
        lambda n: 7 // n,
        lambda n: 7 / n,
        lambda n: n % 2,
        lambda n: 9 & n,
        lambda n: n | 0,
        lambda n: ~n,
        lambda n: 2**n >> 1,
        lambda n: n << 1 ^ 5,
        lambda n: n * n,
        lambda n: -n,
        lambda n: n.min(2),
        lambda n: SymbolicScalar(9).max(n),
        lambda n: LoopIndex.of(1, is_first=True, is_last=True) + n,
        lambda n: LoopIndex.of(1, is_first=True, is_last=True) < n,
        lambda n: n > 2,
        lambda n: n != 3,
    ],
)
def test_what_is_computed_of_it_may_be_what_each_member_gives(
    derive: Callable[[Any], Any],
) -> None:
    found = derive(number(1, 3, 3))
    results = [int(derive(SymbolicScalar(member))) for member in (1, 2, 3)]
    assert int(value_of(found)) == results[-1]
    if undecided(found) is None:
        assert set(results) == {int(found)}
    else:
        assert found.cause == 11
        low, high = found.bounds or (min(results), max(results))
        assert low <= min(results) <= max(results) <= high


def test_numbers_that_are_certain_stay_plain() -> None:
    n = SymbolicScalar(3)
    assert type(n + 1) is SymbolicScalar
    assert type(n < 4) is type(n == 3) is SymbolicScalar
    assert {n: 1}[3] == 1
    assert undecided((n, 1, [2], slice(None))) is None
    n = number(0, 1, 3)
    assert undecided([0, slice(n, None)]) is n
