"""Operations on intervals as nodes of programs: values, both ends and causes in one pass.

The rules are those of `simulator.arithmetic.propagation` and `simulator.arithmetic.widen` for FP32
numbers that stay finite, or are one infinity or NaN that is certain, under a trust that widens by
rounding alone; where causes name choices, for zeros and normal numbers. Checks in the same program
find elements that these rules do not cover; such an operation is evaluated by numpy instead.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from simulator.arithmetic.interval import Enclosure
from simulator.arithmetic.native.deferred_intervals import (
    DeferredInterval,
    Part,
    Parts,
)
from simulator.arithmetic.native.executor_library import Executor
from simulator.arithmetic.native.node_program import Deferred, Node, has_more_steps
from simulator.arithmetic.operation import Array, Operation
from simulator.arithmetic.total_order import from_keys
from simulator.numbers.formats import BOOL, FP32
from simulator.numbers.rounding import RoundMode

_MOST_STEPS: Final = 400
"""Operands that need more are computed before a further operation joins them."""
_CAUSE: Final = np.dtype(np.uint16)
_CLAIM: Final = np.dtype(np.uint64)
_NAN: Final = np.array([np.nan], np.float32)
"""Of operands that may be NaN, which no rule here covers."""
_MONOTONE: Final = (
    *("add", "sub", "neg", "maximum", "minimum", "relu", "exp", "sqrt", "log"),
    *("round", "floor", "ceil", "trunc"),
)
_CORNERS: Final[Mapping[str, str]] = MappingProxyType({"mul": "product", "div": "quotient"})
_FALLING: Final = ("reciprocal", "rsqrt")
_EQUALITIES: Final = ("eq", "ne")
TRUTHS: Final[Mapping[str, str]] = MappingProxyType({"logical_and": "and8", "logical_not": "not8"})
"""Operations on truths, as the library spells them."""
_COMPARISONS: Final = (*_EQUALITIES, "lt", "le", "gt", "ge", "signbit", *TRUTHS)
OPERATIONS: Final = frozenset(
    (*_MONOTONE, *_CORNERS, *_FALLING, *_COMPARISONS, "abs", "where"),
)
"""The elementwise operations whose rules the executor has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """The part of an interval that an operation itself adds.

    Attributes:
        ulps: how many codes it moves ends outward.
        width: how many codes it usually adds; 0: none.
        cause: the caller's index.
        choices: the bits of the choice that would close it; None: causes are indices.
    """

    ulps: int
    width: int
    cause: int
    choices: int | None = None


class _Operand:
    """The parts of an operand."""

    def __init__(self, x: Enclosure) -> None:
        self.checks: tuple[Node, ...] = ()
        self.cause: Part | None = None
        if isinstance(x, DeferredInterval) and x.is_pending:
            parts = x.parts
            self.values, self.low, self.high, self.cause = (
                parts.values,
                parts.low,
                parts.high,
                parts.cause,
            )
            self.checks = parts.checks
        elif isinstance(x, Deferred) and x.node.array is None:
            self.values = self.low = self.high = x.node
        else:
            self.values, self.low, self.high = x.values, x.low, x.high
            if x.interval is not None:
                self.cause = _single(x.interval.cause)
        if self.low is self.values and self.high is self.values:
            self.cause = None  # certain everywhere

    @property
    def is_exact(self) -> bool:
        return self.cause is None


def _single(cause: Array) -> Array:
    return cause if any(cause.strides) or not cause.size else cause.reshape(-1)[:1]


class Builder:
    """Makes the nodes of one operation.

    Args:
        executor: the library.
        operands: of FP32, or of the format of a cast.
        threads: that share the work, at most.
        again: evaluates the operation by numpy; it holds operands as `unheld` gives them.
        is_kept: the nodes are to serve other operands of the same layout, too.
    """

    def __init__(
        self,
        executor: Executor,
        operands: Sequence[Enclosure],
        threads: int,
        again: Callable[[], Enclosure],
        *,
        is_kept: bool = False,
    ) -> None:
        self._executor, self._threads, self._again = executor, threads, again
        self._is_kept = is_kept
        pending = [x for x in operands if isinstance(x, DeferredInterval) and x.is_pending]
        if has_more_steps((node for x in pending for node in x.parts.nodes()), _MOST_STEPS):
            for x in pending:
                x.parts.computed()
        self._operands = [_Operand(x) for x in operands]
        self._is_square = len(operands) == 2 and operands[0] is operands[1]
        checks = dict.fromkeys(check for x in self._operands for check in x.checks)
        self._checks: list[Node] = list(checks)
        for x in pending:  # numpy may have evaluated one just now
            found = x.parts.found
            if found and found.interval and found.interval.may_be_nan is not None:
                self._check("check_ends", _NAN, _NAN)

    def elementwise(
        self,
        operation: Operation,
        shape: tuple[int, ...],
        added: Added,
    ) -> DeferredInterval:
        """An operation of `OPERATIONS` on FP32.

        Args:
            operation: the row.
            shape: of the result.
            added: by the operation.
        """
        name, given = operation.name, self._operands
        if name == "where" or name in _COMPARISONS:
            return self._chosen(operation, shape, names_choices=added.choices is not None)
        node = functools.partial(self._node, shape=shape)
        values = node(name, *(x.values for x in given))
        if all(x.is_exact for x in given):
            low = high = values
        elif name == "abs" or (name == "mul" and self._is_square):
            kind = "abs" if name == "abs" else "square"
            low, high = (node(f"{kind}_{end}", given[0].low, given[0].high) for end in _ENDS)
        elif name == "mul" and (number := self._number_beside(0)) is not None:
            a, b = given
            low, high = (node(name, end, b.values) for end in (a.low, a.high))
            if math.copysign(1.0, number) < 0:
                low, high = high, low
        elif name in _CORNERS:
            a, b = given
            low, high = (
                node(f"{_CORNERS[name]}_{end}", a.low, a.high, b.low, b.high) for end in _ENDS
            )
        elif name in _FALLING:
            low, high = node(name, given[0].high), node(name, given[0].low)
        else:
            paired = list(zip(given, operation.directions, strict=True))
            low, high = (
                node(name, *(x.low if rises * side > 0 else x.high for x, rises in paired))
                for side in (1, -1)
            )
        self._check_operands(name)
        inner = low, high
        is_scaled = name == "mul" and low is values and not self._is_kept and self._scales()
        if added.ulps and not is_scaled:
            ends = [end for x in given for end in (x.low, x.high)]
            suffix, beside = "2" if len(given) == 2 else "", ends
            if operation.unrounded is not None:
                stays = node(f"stays_{name}", *ends, low, dtype=np.dtype(np.uint8))
                suffix, beside = "_unless", [stays]
            by = _widening(operation, added.ulps)
            low, high = (
                node(f"{side}{suffix}", end, *beside, by)
                for side, end in (("lower", low), ("higher", high))
            )
        if added.choices is not None:
            for x in given:
                if not any(self._is_checked(name, x.low, x.high) for name in _NORMAL):
                    self._check("check_normal", x.low, x.high)
        if added.choices is None:
            if name in ("add", "sub"):
                self._drop_check_of_product()
            ends = [end for x in given for end in (x.low, x.high)]
            self._check(f"check_ends{len(given)}", low, high, *ends)
            cause = self._cause(low, high, added.width, added.cause)
        else:
            self._check("check_normal_ends", low, high)
            cause = self._choices(inner, (low, high), added.choices)
        return self._made(values, low, high, cause)

    def _chosen(
        self, operation: Operation, shape: tuple[int, ...], *, names_choices: bool
    ) -> DeferredInterval:
        """Truths of numbers, and elements that are chosen by a truth: nothing is computed."""
        name, given = operation.name, self._operands
        dtype = BOOL.dtype if operation.gives_truth else FP32.dtype
        node = functools.partial(self._node, shape=shape, dtype=dtype)
        values = node(TRUTHS.get(name, name), *(x.values for x in given))
        if name in _EQUALITIES:
            ends = [end for x in given for end in (x.low, x.high)]
            low, high = (node(f"{name}_{end}", *ends) for end in _ENDS)
        elif operation.gives_truth:
            paired = list(zip(given, operation.directions, strict=True))
            low, high = (
                node(
                    TRUTHS.get(name, name),
                    *(x.low if rises * side > 0 else x.high for x, rises in paired),
                )
                for side in (1, -1)
            )
        else:
            condition, a, b = given
            branches = (a.low, b.low), (a.high, b.high)
            if condition.is_exact:
                low, high = (node("where", condition.values, *pair) for pair in branches)
            else:
                low, high = (
                    node(f"select_{end}", condition.low, condition.high, *pair)
                    for end, pair in zip(_ENDS, branches, strict=True)
                )
        self._check("check_truth" if operation.gives_truth else "check_hull", low, high)
        if names_choices:
            cause = self._choices((low, high), (low, high), 0)
        else:
            cause = self._cause(low, high, 0, 0)
        return self._made(values, low, high, cause)

    def cast(self, name: str, dtype: np.dtype[np.generic], *, names_choices: bool) -> Enclosure:
        """A conversion of each end; where causes name choices, of numbers that none concerns."""
        (x,) = self._operands
        node = functools.partial(self._node, name, shape=x.values.shape, dtype=dtype)
        values = node(x.values)
        low, high = (values, values) if x.is_exact else (node(x.low), node(x.high))
        cause: Part = np.zeros(1, _CAUSE) if x.cause is None else x.cause
        if names_choices:
            self._check(_CONCERNED[name], x.low, x.high)
            if not x.is_exact:
                kind = f"choices_if_open{_SUFFIXES[x.low.dtype.itemsize]}"
                cause = self._node(kind, cause, x.low, x.high, shape=x.low.shape, dtype=_CAUSE)
        kind = "check_codes"
        if dtype.itemsize == FP32.dtype.itemsize:
            kind = "check_ends" if dtype == FP32.dtype else "check_integers"
        self._check(kind, low, high)
        return self._made(values, low, high, cause)

    def rows(self, reduction: Callable[[Part], Node]) -> Enclosure | None:
        """A reduction along rows; None where causes differ among elements."""
        (x,) = self._operands
        assert x.cause is not None
        if x.cause.shape != (1,):
            return None
        values, low, high = (reduction(part) for part in (x.values, x.low, x.high))
        opcodes = self._executor.opcodes
        if values.opcode in (opcodes["sum"], opcodes["sum_by_repeats"]):
            self._check("check_sum", low, high, x.low, x.high)
        elif values.opcode in (opcodes["amax"], opcodes["amin"]):
            self._check("check_hull", low, high)
        else:
            self._check("check_ends", low, high)
        return self._made(values, low, high, x.cause)

    def rows_by_choices(self, reduction: Callable[[Part], Node]) -> DeferredInterval:
        """A maximum or minimum along rows, where causes name choices."""
        (x,) = self._operands
        values = low = high = reduction(x.values)
        cause: Part = np.zeros(1, _CAUSE)
        if x.cause is not None:
            low, high = reduction(x.low), reduction(x.high)
            along = self._choices_along(x, values.shape)
            cause = self._node("choices_if_open", along, low, high, shape=low.shape, dtype=_CAUSE)
        self._check("check_ends", low, high)
        return self._made(values, low, high, cause)

    def sum_in_any_order(
        self, reduction: Callable[[Part], Node], rule: Array, own: int
    ) -> DeferredInterval:
        """A sum along rows in any order, where causes name choices.

        Args:
            reduction: gives the sum of the values.
            rule: the struct SumRule in C++.
            own: the choices that would close it.
        """
        (x,) = self._operands
        values = reduction(x.values)
        node = functools.partial(self._node, shape=values.shape)
        ends = self._row_node("sum_ends", x.low, x.high, rule, shape=values.shape, dtype=_CLAIM)
        low, high = (node(f"{end}_of", ends) for end in _ENDS)
        self._check("check_normal_ends", low, high)
        cause: Part = np.array([own], _CAUSE)
        if x.cause is not None:
            along = self._choices_along(x, values.shape)
            cause = node("all_choices", along, cause, dtype=_CAUSE)
        cause = node("choices_if_open", cause, low, high, dtype=_CAUSE)
        return self._made(values, low, high, cause)

    def _choices_along(self, x: _Operand, shape: tuple[int, ...]) -> Node:
        assert x.cause is not None
        return self._row_node("choices_along", x.cause, x.low, x.high, shape=shape, dtype=_CAUSE)

    def _row_node(
        self, name: str, *operands: Part, shape: tuple[int, ...], dtype: np.dtype[np.generic]
    ) -> Node:
        return Node(
            self._executor, name, operands, shape, dtype, reduces=True, threads=self._threads
        )

    def _node(
        self,
        name: str,
        *operands: Part,
        shape: tuple[int, ...],
        dtype: np.dtype[np.generic] = FP32.dtype,
    ) -> Node:
        return Node(self._executor, name, operands, shape, dtype, threads=self._threads)

    def _number_beside(self, place: int) -> float | None:
        """The one finite number that stands beside an open operand; None where none does."""
        if len(self._operands) != 2 or self._is_kept or self._operands[place].is_exact:
            return None
        beside = self._operands[1 - place].values
        if not isinstance(beside, np.ndarray) or beside.size != 1:
            return None
        number = float(beside.flat[0])
        return number if math.isfinite(number) else None

    def _drop_check_of_product(self) -> None:
        """Leave the check of a product to that of its sum with a number, which finds the same.

        Ends that are not finite stay so in the sum. NaN at both ends is the same there too, and
        that of the product: of factors that are checked only infinity times zero makes it.
        """
        codes = self._executor.opcodes["mul"], self._executor.opcodes["check_ends2"]
        for place, x in enumerate(self._operands):
            if isinstance(x.values, Node) and x.checks:
                is_product = (x.values.opcode, x.checks[-1].opcode) == codes
                if is_product and self._number_beside(place) is not None:
                    self._checks.remove(x.checks[-1])

    def _scales(self) -> bool:
        """True if one factor is a power of two, 1 or greater: where no product overflows, which is
        checked, none is rounded.
        """
        for x in self._operands:
            if isinstance(x.values, np.ndarray) and x.values.size == 1:
                mantissa, exponent = math.frexp(abs(float(x.values.flat[0])))
                if mantissa == 0.5 and exponent >= 1:
                    return True
        return False

    def _is_checked(self, name: str, *operands: Part) -> bool:
        """True if an operation before this one has made a check, or the program makes it."""
        opcode = self._executor.opcodes[name]
        return any(
            x.opcode == opcode and all(map(operator.is_, x.operands, operands))
            for x in self._checks
            if x.array is None
        )

    def _check(self, name: str, *operands: Part) -> None:
        shape = np.broadcast_shapes(*(x.shape for x in operands)) or (1,)
        self._checks.append(
            Node(
                self._executor,
                name,
                operands,
                shape,
                np.dtype(np.uint8),
                checks=True,
                threads=self._threads,
            )
        )

    def _check_operands(self, name: str) -> None:
        last = self._operands[-1]
        if last.is_exact:
            return
        if name in ("div", *_FALLING):
            self._check("check_divisor", last.low, last.high)
        if name in ("sqrt", "log", "rsqrt"):
            self._check("check_domain", last.low, last.high)

    def _cause(self, low: Node, high: Node, width: int, own: int) -> Part:
        """Of several causes the wider interval's; see `BoundsCollector`."""
        sources = [x for x in self._operands if x.cause is not None]
        mine = np.array([own], _CAUSE)
        if not sources:
            return mine
        if not width and all(x.cause is sources[0].cause for x in sources):
            assert sources[0].cause is not None
            return sources[0].cause
        if not self._is_kept:
            causes = [*(x.cause for x in sources), *([mine] if width else [])]
            single = [x for x in causes if isinstance(x, np.ndarray) and x.shape == (1,)]
            if len(single) == len(causes) and len({int(x[0]) for x in single}) == 1:
                return single[0]
        node = functools.partial(self._node, shape=low.shape)
        parts = [y for x in sources if x.cause is not None for y in (x.low, x.high, x.cause)]
        are_fp32 = all(x.dtype == FP32.dtype for x in (low, *(each.low for each in sources)))
        own_claim = np.array([width << 32 | 0xFFFF - own], _CLAIM)
        if are_fp32 and len(sources) == 1:
            return node("cause_beside", *parts, own_claim, dtype=_CAUSE)
        if are_fp32 and len(sources) == 2:
            one, other = (x.cause for x in sources)
            assert one is not None
            named: Part = one  # of a cause and itself the stronger is that
            if one is not other:
                named = node("cause_between", *parts, dtype=_CAUSE)
            ends = (part for k, part in enumerate(parts) if k % 3 < 2)
            return node("cause_with", *ends, named, own_claim, dtype=_CAUSE) if width else named
        claims: list[Part] = [self._claim(x, x.cause) for x in sources if x.cause is not None]
        if width:
            claims.append(own_claim)
        whole = claims[0]
        for each in claims[1:]:
            whole = node("stronger", whole, each, dtype=_CLAIM)
        suffix = _SUFFIXES[low.dtype.itemsize]
        return node(f"cause_of{suffix}", whole, low, high, dtype=_CAUSE)

    def _choices(self, inner: tuple[Part, Part], ends: tuple[Node, Node], own: int) -> Part:
        """The choices of all operands, and those of an operation that moves ends by itself."""
        node = functools.partial(self._node, shape=ends[0].shape, dtype=_CAUSE)
        parts: list[Part] = [x.cause for x in self._operands if x.cause is not None]
        if own and inner[0] is not ends[0]:
            bits = np.array([own], _CAUSE)
            parts.append(node("choices_of", inner[0], ends[0], inner[1], ends[1], bits))
        if not parts:
            return np.zeros(1, _CAUSE)
        joined = functools.reduce(lambda one, other: node("all_choices", one, other), parts)
        return node(f"choices_if_open{_SUFFIXES[ends[0].dtype.itemsize]}", joined, *ends)

    def _claim(self, x: _Operand, cause: Part) -> Node:
        shape = np.broadcast_shapes(x.low.shape, cause.shape)
        name = f"claim{_SUFFIXES[x.low.dtype.itemsize]}"
        return self._node(name, x.low, x.high, cause, shape=shape, dtype=_CLAIM)

    def _made(self, values: Part, low: Part, high: Part, cause: Part) -> DeferredInterval:
        return DeferredInterval(
            Parts(
                values=values,
                low=low,
                high=high,
                cause=cause,
                checks=tuple(self._checks),
                again=self._again,
            )
        )


_ENDS: Final = ("low", "high")
_NORMAL: Final = ("check_normal_ends", "check_normal")
_SUFFIXES: Final[Mapping[int, str]] = MappingProxyType({1: "8", 2: "16", 4: ""})
"""Of a loop over ends, by the bytes of an element."""
INT32_OF_FP32: Final[Mapping[RoundMode, str]] = MappingProxyType(
    {
        RoundMode.RINT: "int32_of_fp32_rint",
        RoundMode.ROUND: "int32_of_fp32_round",
        RoundMode.FLOOR: "int32_of_fp32_floor",
        RoundMode.CEIL: "int32_of_fp32_ceil",
        RoundMode.TRUNC: "int32_of_fp32_trunc",
    }
)
"""Conversions that clamp, by their mode."""
_CONCERNED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "bf16_of_fp32": "check_to_bf16",
        "fp16_of_fp32": "check_to_fp16",
        "fp32_of_bf16": "check_from_bf16",
        "fp32_of_fp16": "check_from_fp16",
        "fp32_of_int32": "check_integers",
        **dict.fromkeys(INT32_OF_FP32.values(), "check_normal"),
    }
)
"""Of a conversion the check for numbers that a choice concerns; see `concerned`."""


@functools.cache
def _widening(operation: Operation, ulps: int) -> Array:
    """The struct Widening in C++, as codes."""
    limits = np.array([-np.inf, np.inf], np.float32)
    if operation.settled is not None:
        limits = np.array([_limit(operation, side) for side in (-1, 1)], np.float32)
    return np.concatenate([np.array([ulps], np.int32), limits.view(np.int32)])


def _limit(operation: Operation, side: int) -> float:
    """The operand farthest from zero on a side whose result is not settled yet."""
    assert operation.settled is not None
    near, far = 0, int(np.float32(np.inf).view(np.int32))
    while far - near > 1:
        middle = (near + far) // 2
        x = np.array([middle], np.int32).view(np.float32) * np.float32(side)
        if operation.settled(x, FP32).any():
            far = middle
        else:
            near = middle
    return float(from_keys(np.array([near], np.int32), FP32)[0]) * side
