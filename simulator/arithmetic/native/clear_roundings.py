"""Intervals that end in a rounding to BF16: of most elements the values alone tell both ends.

An error analysis of the steps shows how far the ends of a number can lie from its value before it
is rounded. Of an element whose value is farther than that from every tie, both ends round to the
code of the value: it is certain, and no step that makes ends is needed. The other elements, few,
are gathered, and all steps run for them alone.

The analysis is of relative errors, and holds where no step leaves the normal numbers, but for zeros
that come from zeros. `may_round_apart` in the library looks at that too, by element.
"""

from __future__ import annotations

import functools
import hashlib
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol

import numpy as np

from simulator.arithmetic.interval import Rests
from simulator.arithmetic.native.executor_library import Executor
from simulator.arithmetic.native.node_program import (
    HAS_CERTAIN,
    IS_OPEN,
    NEEDS_CARE,
    Node,
    compute_all,
    has_more_steps,
)
from simulator.arithmetic.operation import Array
from simulator.arithmetic.remembered_results import remembered


class Parts(Protocol):
    """The parts of an interval that waits; see `deferred_intervals`."""

    values: Node | Array
    low: Node | Array
    high: Node | Array
    cause: Node | Array
    checks: tuple[Node, ...]


_LEAST_ELEMS: Final = 1 << 17
"""Of fewer elements all steps take no longer than this analysis."""
_FEW: Final = 16
"""At most one of so many elements is computed by itself: of more, all steps run for all."""
_CODES: Final = (32, 512)
"""Ends may lie so far from values: one of these, so that runs of a kernel share their findings."""
_MOST_STEPS: Final = 200
_UNIT: Final = 2.0**-24
"""The greatest relative error of a rounding to FP32."""
_CODE: Final = 2.0**-23
"""The greatest relative distance of neighbouring codes."""
_ROUNDED: Final = (1 + _UNIT) / (1 - _UNIT) * (1 + 2.0**-40)
"""The ratio of two roundings, the operations' own errors in float64 among them."""
_LEAST, _MOST = 2.0**-60, 2.0**60
"""The range of `may_round_apart`."""
_NARROW, _WIDE = 2.0**-62, 2.0**62
"""A product or a quotient of two numbers in this range is normal."""
_GREATEST_POWER: Final = 42.0
"""The magnitude of an exponent whose power is in that range, rounded up."""
_CHECKED: Final = 4
"""Operands of `may_round_apart` whose range it looks at."""
_CORNERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("product_low", "product_high"), "mul"),
        **dict.fromkeys(("square_low", "square_high"), "mul"),
        **dict.fromkeys(("quotient_low", "quotient_high"), "div"),
        **dict.fromkeys(("abs_low", "abs_high"), "abs"),
    }
)
"""The operations on values of those on ends that take both ends of each operand."""
_WIDENED: Final = ("lower", "higher", "lower2", "higher2", "lower_unless", "higher_unless")
_TABLES: Final = (*_WIDENED, "lookup16", "sum_ends")
"""Operations whose last operand is no operand of elements."""
_CHECKS: Final = frozenset(
    (
        *("check_ends", "check_ends1", "check_ends2", "check_normal", "check_normal_ends"),
        *("check_to_bf16", "check_divisor", "check_domain"),
    )
)
"""Checks of ends in FP32, which find nothing to care for in normal numbers and certain zeros."""
_ROUNDING: Final = "bf16_of_fp32"


class _Unknown(Exception):
    """The distance of ends from values is not known here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Range:
    """The magnitudes that values have, but for zeros.

    Attributes:
        least, most: the limits.
        has_zero: zeros are among them.
        is_positive: no negative number is.
    """

    least: float
    most: float
    has_zero: bool
    is_positive: bool


_ANY: Final = _Range(least=_LEAST, most=_MOST, has_zero=True, is_positive=False)


@functools.cache
def _names(executor: Executor) -> Mapping[int, str]:
    return {opcode: name for name, opcode in executor.opcodes.items()}


def _ratio(name: str, errors: Sequence[float]) -> float:
    """The ratio of a result to that of other operands, rounded too, less 1.

    Args:
        name: of an operation.
        errors: the relative distance of each operand from the other one.
    """
    greatest = max(errors)
    if name == "mul":
        return math.prod(1 + error for error in errors) * _ROUNDED - 1
    if name == "div":
        return (1 + errors[0]) / (1 - errors[1]) * _ROUNDED - 1
    if name in ("reciprocal", "rsqrt"):
        return _ROUNDED / (1 - greatest) - 1
    if name == "exp":
        return math.exp(_GREATEST_POWER * greatest) * _ROUNDED - 1
    if name in ("add", "sqrt"):  # terms of one sign
        return (1 + greatest) * _ROUNDED - 1
    return greatest  # a sign, a choice among operands


def _one(array: Array) -> bytes:
    """The bytes of the element that stands for all of an array; none, where they differ."""
    is_one = array.size == 1 or not any(array.strides)
    return array[(0,) * array.ndim].tobytes() if is_one else b""


class _Analysis:
    """The analysis of a value that is rounded to BF16, and of ends beside it.

    Args:
        values: what is rounded.

    Raises:
        _Unknown: a step whose errors are not known.
    """

    def __init__(self, values: Node) -> None:
        self._names = _names(values.executor)
        self._keys: dict[int, bytes] = {}
        self._near: dict[int, tuple[bytes, float]] = {}
        self._ranges: dict[bytes, _Range] = {}
        self.rounded = values
        self.checked: dict[bytes, tuple[Node | Array, bool]] = {}
        """By key the values whose range is looked at; True: zero is in it."""
        self.read: list[Array] = []
        self.key = self.key_of(values)
        self._range_of(values)

    def _step(self, x: Node | Array) -> tuple[str, tuple[Node | Array, ...]] | None:
        """The operation and the operands; None of an array, or of a node that is computed."""
        if not isinstance(x, Node) or (operands := x.pending_operands()) is None:
            return None
        return self._names[x.opcode], operands

    def key_of(self, x: Node | Array) -> bytes:
        """A digest of the steps and the arrays that lead to a value: equal for the same."""
        if id(x) in self._keys:
            return self._keys[id(x)]
        step = self._step(x)
        if step is None:
            array = x.computed() if isinstance(x, Node) else x
            place = _one(array) or (array.ctypes.data, array.strides)
            told: tuple[object, ...] = (array.dtype.str, array.shape, place)
        else:
            told = (step[0], *map(self.key_of, step[1]))
        found = hashlib.blake2b(repr(told).encode(), digest_size=16).digest()
        self._keys[id(x)] = found
        return found

    def _range_of(self, x: Node | Array) -> _Range:
        key = self.key_of(x)
        if key not in self._ranges:
            self._ranges[key] = self._found_range(x)
        return self._ranges[key]

    def _found_range(self, x: Node | Array) -> _Range:
        step = self._step(x)
        if step is None:
            return self._range_of_array(x.computed() if isinstance(x, Node) else x)
        name, operands = step
        if name == "fp32_of_bf16" and self._step(operands[0]) is None:
            leaf = operands[0]
            self.read.append(leaf.computed() if isinstance(leaf, Node) else leaf)
            self._ranges[self.key_of(leaf)] = _ANY
            return self._looked_at(x, takes_zero=True)
        given = [self._range_of(each) for each in operands]
        rule = _RANGES.get(name)
        if rule is None:
            raise _Unknown
        for each in operands[_NOT_ZERO.get(name, len(operands)) :]:
            if self._range_of(each).has_zero:
                self.checked[self.key_of(each)] = (each, False)
        found = rule(*given)
        if name == "mul" and self.key_of(operands[0]) == self.key_of(operands[1]):
            found = _signed(found, is_positive=True)
        if x is self.rounded or (found.least >= _NARROW and found.most <= _WIDE):
            return found
        takes_zero = found.has_zero
        self._looked_at(x, takes_zero=takes_zero)
        return _Range(least=_LEAST, most=_MOST, has_zero=takes_zero, is_positive=found.is_positive)

    def _range_of_array(self, array: Array) -> _Range:
        if array.dtype != np.float32:
            raise _Unknown
        if not _one(array):
            self.read.append(array)
            return self._looked_at(array, takes_zero=True)
        number = float(array.flat[0])
        if not _LEAST <= abs(number) <= _MOST:
            raise _Unknown
        magnitude = abs(number)
        return _Range(least=magnitude, most=magnitude, has_zero=False, is_positive=number > 0)

    def _looked_at(self, x: Node | Array, *, takes_zero: bool) -> _Range:
        key = self.key_of(x)
        self.checked[key] = (x, takes_zero and self.checked.get(key, (x, True))[1])
        return _ANY

    def near(self, x: Node | Array) -> tuple[bytes, float]:
        """The value that an end stands beside, and its greatest relative distance from it."""
        if id(x) not in self._near:
            self._near[id(x)] = self._found_near(x)
        return self._near[id(x)]

    def _found_near(self, x: Node | Array) -> tuple[bytes, float]:
        key = self.key_of(x)
        if key in self._ranges:
            return key, 0.0
        step = self._step(x)
        if step is None:
            raise _Unknown
        name, operands = step
        if name in _WIDENED:
            beside, error = self.near(operands[0])
            table = operands[-1]
            assert isinstance(table, np.ndarray)
            return beside, (1 + error) * (1 + _CODE) ** int(table[0]) - 1
        given = [self.near(each) for each in operands]
        if name in _CORNERS:
            pairs = list(zip(given[::2], given[1::2], strict=True))
            if any(low[0] != high[0] for low, high in pairs):
                raise _Unknown
            given = [(low[0], max(low[1], high[1])) for low, high in pairs]
            given *= 2 if name.startswith("square") else 1
            name = _CORNERS[name]
        told = (name, *(beside for beside, _ in given))
        found = hashlib.blake2b(repr(told).encode(), digest_size=16).digest()
        if found not in self._ranges or name not in _RANGES:
            raise _Unknown
        error = _ratio(name, [error for _, error in given])
        if not 0 <= error < _CODE * 2 * _CODES[-1]:
            raise _Unknown
        return found, error

    def needs_no_care(self, check: Node) -> bool:
        """True if a check finds something to care for in no element that is clear."""
        step = self._step(check)
        if step is None:
            return True
        name, operands = step
        if name == "check_codes":
            return True
        if name == "check_from_bf16":
            return all(self.key_of(x) in self._ranges for x in operands)
        if name not in _CHECKS:
            return False
        ranges = [self._ranges[self.near(x)[0]] for x in operands]
        if name == "check_divisor":
            keys = [self.near(x)[0] for x in operands]
            return all(
                not found.has_zero or (key in self.checked and not self.checked[key][1])
                for found, key in zip(ranges, keys, strict=True)
            )
        return name != "check_domain" or all(found.is_positive for found in ranges)


_SLACK: Final = 1 + 2.0**-20
"""For the roundings of values, and of the limits here."""


def _times(a: _Range, b: _Range) -> _Range:
    return _Range(
        least=a.least * b.least / _SLACK,
        most=a.most * b.most * _SLACK,
        has_zero=a.has_zero or b.has_zero,
        is_positive=a.is_positive and b.is_positive,
    )


def _over(a: _Range, b: _Range) -> _Range:
    inverse = _Range(least=1 / b.most, most=1 / b.least, has_zero=False, is_positive=b.is_positive)
    return _times(a, inverse)


def _plus(a: _Range, b: _Range) -> _Range:
    if not (a.is_positive and b.is_positive):
        raise _Unknown
    surely = [x.least for x in (a, b) if not x.has_zero]
    return _Range(
        least=max(surely) if surely else min(a.least, b.least),
        most=(a.most + b.most) * _SLACK,
        has_zero=a.has_zero and b.has_zero,
        is_positive=True,
    )


def _root(a: _Range) -> _Range:
    if not a.is_positive:
        raise _Unknown
    return _Range(
        least=math.sqrt(a.least) / _SLACK,
        most=math.sqrt(a.most) * _SLACK,
        has_zero=a.has_zero,
        is_positive=True,
    )


def _one_of(a: _Range, b: _Range) -> _Range:
    return _Range(
        least=min(a.least, b.least),
        most=max(a.most, b.most),
        has_zero=a.has_zero or b.has_zero,
        is_positive=a.is_positive and b.is_positive,
    )


def _signed(a: _Range, *, is_positive: bool, has_zero: bool = False) -> _Range:
    return _Range(
        least=a.least, most=a.most, has_zero=a.has_zero or has_zero, is_positive=is_positive
    )


_ONE: Final = _Range(least=1.0, most=1.0, has_zero=False, is_positive=True)
_RANGES: Final[Mapping[str, Callable[..., _Range]]] = MappingProxyType(
    {
        "mul": _times,
        "div": _over,
        "add": _plus,
        "maximum": _one_of,
        "minimum": _one_of,
        "neg": lambda a: _signed(a, is_positive=False),
        "abs": lambda a: _signed(a, is_positive=True),
        "relu": lambda a: _signed(a, is_positive=True, has_zero=True),
        "sqrt": _root,
        "rsqrt": lambda a: _over(_ONE, _root(a)),
        "reciprocal": lambda a: _over(_ONE, a),
        "exp": lambda _: _Range(least=0.0, most=math.inf, has_zero=False, is_positive=True),
    }
)
"""The range of a result by those of the operands."""
_NOT_ZERO: Final[Mapping[str, int]] = MappingProxyType({"div": 1, "rsqrt": 0, "reciprocal": 0})
"""From which operand on none may be zero."""


def _analysis(parts: Parts) -> tuple[_Analysis, int] | None:
    """The analysis of the parts of an interval, and how many codes its ends lie from its values."""
    ends = parts.values, parts.low, parts.high
    nodes = [x for x in ends if isinstance(x, Node) and x.array is None]
    executors = {id(x.executor) for x in nodes}
    if len(executors) != 1 or math.prod(parts.values.shape) < _LEAST_ELEMS:
        return None
    rounding = nodes[0].executor.opcodes[_ROUNDING]
    if len(nodes) < 3 or any(x.opcode != rounding for x in nodes):
        return None
    if has_more_steps([*nodes, *parts.checks], _MOST_STEPS):
        return None
    given = [x.pending_operands() for x in nodes]  # another thread may compute them meanwhile
    rounded = [operands[0] for operands in given if operands is not None]
    if len(rounded) < len(nodes) or not isinstance(rounded[0], Node):
        return None
    try:
        analysis = _Analysis(rounded[0])
        near = [analysis.near(x) for x in rounded]
        if any(beside != analysis.key for beside, _ in near):
            return None
        if not all(map(analysis.needs_no_care, parts.checks)):
            return None
    except _Unknown:
        return None
    # A number below 2**(n + 1) has codes of 2**(n - 23): half as many more, where it is the least
    # of its binade, as those below are half as far apart.
    codes = math.ceil(max(error for _, error in near) / _UNIT * (1 + 2.0**-10)) + 1
    return (analysis, codes) if codes <= _CODES[-1] else None


def find_suspects(parts: Parts, *, computes: Sequence[Node] = ()) -> Array | None:
    """Find the elements of an interval that may be open, or need care.

    Args:
        parts: of an interval that waits.
        computes: nodes that are computed on the way.

    Returns:
        Their places among all elements in C order; None where that is not known, or they are many.
    """
    found = _analysis(parts)
    if found is None:
        return None
    analysis, least = found
    codes = next(each for each in _CODES if each >= least)
    values = parts.values
    assert isinstance(values, Node)
    looked = sorted(analysis.checked.items())
    key = ("may_round_apart", analysis.key, codes, *((each, zero) for each, (_, zero) in looked))
    at = remembered(
        key,
        analysis.read,
        lambda: _suspects(values, analysis.rounded, list(dict(looked).values()), codes, computes),
    )
    return None if at.size * _FEW > math.prod(values.shape) else at


def _suspects(
    values: Node,
    rounded: Node | Array,
    looked: Sequence[tuple[Node | Array, bool]],
    codes: int,
    computes: Sequence[Node],
) -> Array:
    rest, marks = list(looked), list[Node]()
    while rest or not marks:
        taken, rest = rest[:_CHECKED], rest[_CHECKED:]
        taken += [(np.ones(1, np.float32), True)] * (_CHECKED - len(taken))
        table = np.array([codes, *(takes_zero for _, takes_zero in taken)], np.uint32)
        operands = (rounded, *(x for x, _ in taken), table)
        marks.append(
            Node(
                values.executor,
                "may_round_apart",
                operands,
                values.shape,
                np.dtype(np.uint8),
                threads=values.threads,
            )
        )
    compute_all([*computes, *marks], {})
    return functools.reduce(np.union1d, (_places(x.computed()) for x in marks))


def _places(marks: Array) -> Array:
    """The places that are not 0; eight at a time show whether there are any."""
    flat = marks.reshape(-1)
    whole = flat.size // 8 * 8
    eights = np.flatnonzero(flat[:whole].view(np.uint64) != 0)
    among = flat[:whole].reshape(-1, 8)[eights]
    row, column = np.nonzero(among)
    return np.concatenate([8 * eights[row] + column, whole + np.flatnonzero(flat[whole:])])


def settle(parts: Parts) -> bool:
    """Compute an interval that waits, if the values tell most of it.

    Returns:
        False: nothing is known but, perhaps, the values.
    """
    values, own = parts.values, parts.checks[-1] if parts.checks else None
    ends = [x for x in (parts.low, parts.high) if isinstance(x, Node)]
    if not isinstance(values, Node) or own is None or own.array is not None or len(ends) < 2:
        return False
    operands = values.pending_operands()
    made = [*ends, *(x for x in (parts.cause,) if isinstance(x, Node))]
    checks = [x for x in parts.checks if x.array is None]
    if operands is None or not _are_elementwise([*made, *checks]):
        return False
    copies = [
        Node(x.executor, _ROUNDING, operands, x.shape, x.dtype, threads=x.threads) for x in ends
    ]
    at = find_suspects(parts, computes=[values, *copies])
    if at is None:
        return False
    compute_all([values, *copies], {})
    few = at_elements([*made, *checks], values.shape, at)
    compute_all(few, {})
    arrays = [x.computed() for x in copies]
    arrays += [np.zeros(x.shape, x.dtype) for x in made[len(ends) :]]
    for node, array, part in zip(made, arrays, few, strict=False):
        told = part.computed()
        differ = np.flatnonzero(told.view(np.uint16) != array.reshape(-1)[at].view(np.uint16))
        array.reshape(-1)[at[differ]] = told[differ]
        node.array = array
        node.operands = ()
    # Of the checks before, which others may ask, what needs care is known of all elements.
    for check, part in zip(checks, few[len(made) :], strict=True):
        check.findings |= part.findings & (NEEDS_CARE | IS_OPEN)
    own.findings |= HAS_CERTAIN if at.size < math.prod(values.shape) else 0
    own.array = np.empty(0, np.uint8)
    own.operands = ()
    return True


def rests(parts: Parts, node: Node) -> tuple[Rests, int] | None:
    """Compute the choices that elements rest on: none of those whose ends are one code anyhow.

    Args:
        parts: of an interval that waits.
        node: the choices by element, from the parts' ends and other arrays.

    Returns:
        The choices, and what the checks find; None where the values do not tell.
    """
    checks = [x for x in parts.checks if x.array is None]
    if not _are_elementwise([node, *checks]):
        return None
    at = find_suspects(parts)
    if at is None:
        return None
    few, *own = at_elements([node, *checks], node.shape, at)
    compute_all([few, *own], {})
    found = functools.reduce(operator.or_, (x.findings for x in own), 0)
    return Rests(bits=few.computed(), places=at), found


def _are_elementwise(nodes: Iterable[Node]) -> bool:
    left, seen = list(nodes), set[int]()
    while left:
        node = left.pop()
        if node.reduces or node.tiles is not None:
            return False
        operands = node.pending_operands() or ()
        fresh = [x for x in operands if isinstance(x, Node) and id(x) not in seen]
        seen.update(map(id, fresh))
        left += fresh
    return True


def at_elements(nodes: Sequence[Node], shape: tuple[int, ...], at: Array) -> list[Node]:
    """The same steps for some elements alone.

    Args:
        nodes: elementwise steps, whose shapes broadcast to one.
        shape: that one.
        at: the places of the elements, in C order.
    """
    index = np.unravel_index(at, shape)
    made: dict[int, Node | Array] = {}

    def gathered(array: Array) -> Array:
        if _one(array):
            return array[(slice(1),) * array.ndim].reshape(-1)
        return np.broadcast_to(array, shape)[index]

    def of(x: Node | Array) -> Node | Array:
        if id(x) not in made:
            operands = x.pending_operands() if isinstance(x, Node) else None
            if operands is None or not isinstance(x, Node):
                made[id(x)] = gathered(x.computed() if isinstance(x, Node) else x)
            else:
                name = _names(x.executor)[x.opcode]
                elements = len(operands) - (name in _TABLES)
                made[id(x)] = Node(
                    x.executor,
                    name,
                    [*map(of, operands[:elements]), *operands[elements:]],
                    at.shape,
                    x.dtype,
                    checks=x.checks,
                    threads=x.threads,
                )
        return made[id(x)]

    found = [of(x) for x in nodes]
    return [x for x in found if isinstance(x, Node)]
