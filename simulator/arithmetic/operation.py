"""A row of the table of operations, and the words it is written in."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from simulator.arithmetic.trust import (
    ASSUME_GRADUAL_CASTS,
    ASSUME_GRADUAL_UNDERFLOW,
    ASSUME_RNE,
    Assumption,
    Bound,
    Trust,
)
from simulator.numbers.formats import BOOL, FloatFormat, Format

Array = npt.NDArray[Any]
Function = Callable[..., object]
"""Called with one array an operand and `out=`, as a numpy ufunc is."""
_CONDITION: Final = BOOL.dtype


class Fidelity(enum.Enum):
    """The degrees to which the bits that a device gives are known."""

    EXACT = "exact"
    ASSUMED = "exact under a named assumption"
    BOUNDED = "bounded"
    UNKNOWN = "unknown"


class IntervalRule(enum.Enum):
    """The ways in which ends of the operands' intervals become ends of the result's."""

    MONOTONE = "each end from one end of every operand, as `directions` says"
    CORNERS = "least and greatest over all combinations of ends"
    QUOTIENT = "corners; anything, where the divisor's interval contains zero"
    POLE = "anything, where the interval contains zero; else it falls"
    EVEN = "corners, and the result at zero where the ends differ in sign"
    EQUAL = "true where the intervals meet, false unless both are one number"
    UNEQUAL = "the negation of EQUAL for numbers; false for NaN"
    TRUTH = "monotone in whether each operand is not zero"
    SELECT = "the hull of the branches that the condition leaves open"
    FOLD = "a reduction: those of the operation that joins two elements"
    MEMBERS = "all combinations of members, where they are few; else anything"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Operation:
    """One vector operation.

    Attributes:
        name: the field's name.
        formats: the formats it runs in; which formats a user may hand over is the caller's table.
        instruction: the AscendC instruction, or the sequence, that it becomes.
        function: the values, as numpy computes them.
        rule: how intervals pass through.
        directions: under MONOTONE, an operand: +1 where the result rises with it, else -1.
        fidelity: how much is known of the result's bits.
        source: public texts that the row rests on; that of `tables` among them.
        tables: numbers of the vendor's boundary tables that give its special values; table 1 says
            what all negative numbers give.
        bound: how far the device may be off; none where it is not.
        assumes: the assumptions that its bits rest on.
        gives_truth: the result is BOOL.
        least_operand: numbers below it have no result but NaN.
        keeps_specials: zero, infinity or NaN as an operand gives zero, infinity or NaN.
        settled: finite operands whose results are certain although the operation has a bound.
        unrounded: finds, of operands in FP32 and their results, the results that are not rounded.
        saturates: under saturation mode integers clamp instead of wrapping.
        copies: elements are moved: a NaN keeps its bits, in either float mode.
    """

    name: str
    formats: tuple[Format, ...]
    instruction: str
    function: Function
    rule: IntervalRule
    fidelity: Fidelity
    source: str
    directions: tuple[int, ...] = ()
    operands: int = 1
    tables: tuple[int, ...] = ()
    bound: Bound | None = None
    assumes: tuple[Assumption, ...] = ()
    gives_truth: bool = False
    least_operand: float | None = None
    keeps_specials: bool = False
    settled: Callable[[Array, FloatFormat], npt.NDArray[np.bool_]] | None = None
    unrounded: Callable[[Sequence[Array], Array], npt.NDArray[np.bool_]] | None = None
    saturates: bool = False
    copies: bool = False

    def check(self, fmt: Format, *dtypes: np.dtype[Any]) -> None:
        """Refuse a format that the operation does not run in, and operands of another.

        Raises:
            ValueError: naming the format, or the operand by its position.
        """
        if fmt not in self.formats:
            names = ", ".join(map(str, self.formats))
            raise ValueError(f"{self.name} does not run in {fmt}; it runs in {names}")
        for position, dtype in enumerate(dtypes):
            wanted = _CONDITION if self.copies and position == 0 else fmt.dtype
            if dtype != wanted:
                raise ValueError(
                    f"operand {position} of {self.name} has dtype {dtype}; in {fmt} it has {wanted}"
                )

    def ulps(self, fmt: Format, trust: Trust) -> int:
        """Counts the codes that a result may be off on either side; 0 in integer formats."""
        if not isinstance(fmt, FloatFormat):
            return 0
        name = self.name if self.bound is None else self.bound.name
        if (name, fmt) in trust.measured:
            return trust.measured[name, fmt]
        if self.bound is not None:
            return 0 if self.bound.name in trust.correctly_rounded else self.bound.ulps[fmt]
        return int(ASSUME_RNE in self.assumes and ASSUME_RNE not in trust.assumed)

    def may_flush(self, fmt: Format, trust: Trust) -> tuple[Assumption, ...]:
        """The assumptions without which subnormal operands and results may be replaced by zero."""
        gradual = (ASSUME_GRADUAL_UNDERFLOW, ASSUME_GRADUAL_CASTS)
        missing = {*self.assumes} - trust.assumed
        return tuple(x for x in gradual if isinstance(fmt, FloatFormat) and x in missing)
