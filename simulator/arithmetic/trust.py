"""The named assumptions about a device and the bounds of its errors, each of them once.

What documents state of a family's precision is a row of `PRECISION`; of A2 and A3 they state none.

An assumption says that an operation's rounding is known although no public text states it. A bound
says how far the result of an operation may lie from the rounded exact one. `Trust` chooses among
them; everything else reads the choice.

The cause of an open element is the caller's index of an operation, or the choices that would close
it. A choice is an assumption. Under a `Trust` that names choices a cause holds a bit for each, and
where elements meet, the bits of all go on; else it is an index, and that of one of them goes on.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from simulator.numbers.formats import FP16, FP32, FloatFormat
from tiling.chips import ASCEND_950


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """A statement about the device that public texts suggest and none makes.

    Attributes:
        name: for tables and messages.
        statement: the assumption itself.
        source: the public text nearest to it.
    """

    name: str
    statement: str
    source: str

    def __str__(self) -> str:
        return self.name


ASSUME_RNE: Final = Assumption(
    name="ASSUME_RNE",
    statement="vadd, vsub and vmul round to nearest, ties to even",
    source="asc-devkit, boundary values of the memory vector interfaces: results agree with IEEE "
    "754; the rounding itself is stated nowhere",
)
ASSUME_GRADUAL_UNDERFLOW: Final = Assumption(
    name="ASSUME_GRADUAL_UNDERFLOW",
    statement="vadd, vsub, vmul, vdiv, vsqrt, vrsqrt, vexp, vln, vcadd and the cube keep subnormal "
    "operands and results, and do not replace them by zero",
    source="asc-devkit, boundary values, table 5: the reciprocal of the largest FP32 number is "
    "2.938736e-39, a subnormal number",
)
ASSUME_SUM_ORDER: Final = Assumption(
    name="ASSUME_SUM_ORDER",
    statement="a sum adds in the order of pto-isa's headers, inside a repeat as a binary tree of "
    "neighbours",
    source="pto-isa a2a3/TRowSum.hpp, TRowReduceOps.hpp, TColSum.hpp; a5/TRowReduce.hpp, "
    "TColSum.hpp; asc-devkit ReduceRepeat.md, "
    "ReduceDataBlock.md",
)
ASSUME_STABLE_SORT: Final = Assumption(
    name="ASSUME_STABLE_SORT",
    statement="of equal elements the one with the smaller index comes first, in sorts and argmax",
    source="pto-isa docs/isa/TSORT32.md and vmrgsort.md; asc-devkit ReduceMax.md; upstream pypto "
    "docs/zh/api/operation/pypto-argsort.md; none says it of merges of unequal length",
)
ASSUME_IEEE_OVERFLOW: Final = Assumption(
    name="ASSUME_IEEE_OVERFLOW",
    statement="overflow to a float follows IEEE 754",
    source="asc-devkit, boundary values, table 32: the largest number gives infinity; for which "
    "round mode is not said",
)
ASSUME_NAN_PATTERN: Final = Assumption(
    name="ASSUME_NAN_PATTERN",
    statement="NaN has one pattern: 0x7FFF in FP16 and BF16, 0x7FFFFFFF in FP32",
    source="asc-devkit, boundary values, table 1: NaN has no sign; its bits are stated nowhere",
)
ASSUME_GRADUAL_CASTS: Final = Assumption(
    name="ASSUME_GRADUAL_CASTS",
    statement="casts take and give subnormal numbers",
    source="asc-devkit, precision_conversion.md, shows them for the 950; nothing for A2/A3",
)
ASSUME_SIGN_OF_ZERO: Final = Assumption(
    name="ASSUME_SIGN_OF_ZERO",
    statement="FP16 to FP32 keeps the sign of -0",
    source="asc-devkit, boundary values, table 32, prints 0 for +0 and -0; FP32 to BF16 gives -0",
)
ASSUME_ODD_UNDERFLOW: Final = Assumption(
    name="ASSUME_ODD_UNDERFLOW",
    statement="CAST_ODD below the smallest subnormal number gives that number",
    source="asc-devkit, precision_conversion.md, the rule's text; its test_scalar.cpp for 910b1 "
    "expects 0",
)
ASSUME_INF_NAN_MODE: Final = Assumption(
    name="ASSUME_INF_NAN_MODE",
    statement="INF/NAN mode holds by default (CTRL[48] = 1)",
    source="asc-devkit, boundary values: the default for half and integers; SetCtrlSpr.md, table "
    "5, gives 0 for A2: they conflict",
)
ASSUME_CUBE_RNE: Final = Assumption(
    name="ASSUME_CUBE_RNE",
    statement="the cube rounds products and partial sums to nearest; without it, any way",
    source="none: asc-devkit Mmad.md gives the formats, half, bfloat16 and float to float, and no "
    "rounding",
)
ASSUME_CUBE_HF32: Final = Assumption(
    name="ASSUME_CUBE_HF32",
    statement="FP32 operands of the cube are rounded to 11 mantissa bits, to nearest, ties to "
    "even, before they are multiplied",
    source="asc-devkit Mmad HF32.md, asc_enable_hf32.md: a mode of the core, off unless the kernel "
    "sets it; upstream's kernels on A2/A3 do not",
)
CHOICES: Final = MappingProxyType({a.name: a for a in (ASSUME_CUBE_RNE, ASSUME_CUBE_HF32)})
"""Assumptions that hold under no trust unless they are named besides."""
ASSUME_CORRECT_ROUNDING: Final = Assumption(
    name="ASSUME_CORRECT_ROUNDING",
    statement="vdiv and vsqrt are correctly rounded",
    source="pypto-lib#866: FP32 quotients captured on a device were; holds under trust ieee alone",
)


NAMED_CHOICES: Final = (
    ASSUME_RNE,
    ASSUME_GRADUAL_UNDERFLOW,
    ASSUME_SUM_ORDER,
    ASSUME_STABLE_SORT,
    ASSUME_IEEE_OVERFLOW,
    ASSUME_NAN_PATTERN,
    ASSUME_GRADUAL_CASTS,
    ASSUME_SIGN_OF_ZERO,
    ASSUME_ODD_UNDERFLOW,
    ASSUME_INF_NAN_MODE,
    ASSUME_CORRECT_ROUNDING,
    *CHOICES.values(),
)
"""All assumptions, by the bit that stands for each in a cause; at most 16."""
ASSUMPTIONS: Final = frozenset(NAMED_CHOICES) - {ASSUME_CORRECT_ROUNDING, *CHOICES.values()}
_BITS: Final = {choice: 1 << k for k, choice in enumerate(NAMED_CHOICES)}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bound:
    """A limit to how far a device's result lies from the exact one rounded once.

    Attributes:
        name: the operation that the bound is named after.
        ulps: by format that the instruction runs in, the distance in codes.
        published: a document gives the figure for these devices.
        source: the document, and what it says.
    """

    name: str
    ulps: Mapping[FloatFormat, int]
    published: bool
    source: str


def _bound(name: str, fp32: int, fp16: int, source: str) -> Bound:
    ulps = MappingProxyType({FP32: fp32, FP16: fp16})
    return Bound(name=name, ulps=ulps, published=False, source=source)


_950_INTRINSIC: Final = "assumed; asc-devkit states at most 1 ulp for the 950's instruction"

DIV_BOUND: Final = _bound("div", 1, 1, _950_INTRINSIC)
SQRT_BOUND: Final = _bound("sqrt", 1, 1, _950_INTRINSIC)
EXP_BOUND: Final = _bound("exp", 2, 2, _950_INTRINSIC)
LOG_BOUND: Final = _bound("log", 2, 2, _950_INTRINSIC)
RSQRT_BOUND: Final = _bound(
    "rsqrt",
    # A relative distance r is at most r * 2**precision codes: 2 * 0.0002 and 2 * 0.002.
    6711,
    9,
    "no bound is published; asc-devkit Rsqrt.md says that 2/10000 (float) and 2/1000 (half) are "
    "missed: twice that is taken",
)
BOUNDS: Final = (DIV_BOUND, SQRT_BOUND, EXP_BOUND, LOG_BOUND, RSQRT_BOUND)


_NOT_MEASURED: Final[Mapping[tuple[str, FloatFormat], int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """A choice of assumptions to take for granted.

    Attributes:
        name: for messages.
        assumed: the assumptions that hold; the others widen results, by 1 ulp where they are
            rounded (ASSUME_RNE), to zero (ASSUME_GRADUAL_UNDERFLOW, ASSUME_GRADUAL_CASTS), to every
            order (ASSUME_SUM_ORDER, ASSUME_STABLE_SORT), or to the other possibility of a cast.
        correctly_rounded: the bounds that are taken as 0 ulp.
        measured: ulp by operation and format, where a device was measured or a document states
            them for the chip's family; they precede bounds, assumptions and `correctly_rounded`.
        names_choices: causes hold the assumptions that would close an element, as bits; see
            the module.
    """

    name: str
    assumed: frozenset[Assumption] = ASSUMPTIONS
    correctly_rounded: frozenset[str] = frozenset()
    measured: Mapping[tuple[str, FloatFormat], int] = field(
        default_factory=lambda: _NOT_MEASURED, hash=False
    )
    names_choices: bool = False

    def without(self, assumption: Assumption) -> Trust:
        """The same choice with one assumption less."""
        name = f"{self.name} without {assumption}"
        return replace(self, name=name, assumed=self.assumed - {assumption})

    def also(self, assumption: Assumption) -> Trust:
        """The same choice with one assumption more."""
        name = f"{self.name} with {assumption}"
        return replace(self, name=name, assumed=self.assumed | {assumption})


DEFAULT: Final = Trust(name="default")
DOCUMENTED: Final = Trust(name="documented", assumed=frozenset())
"""Only public statements; the bounds stay, for without them nothing could be said."""
NAMING_CHOICES: Final = replace(DOCUMENTED, names_choices=True)
"""As DOCUMENTED, with causes that hold the assumptions that would close an element."""
IEEE: Final = Trust(
    name="ieee",
    assumed=ASSUMPTIONS | {ASSUME_CORRECT_ROUNDING},
    correctly_rounded=frozenset({DIV_BOUND.name, SQRT_BOUND.name}),
)
MATMUL: Final = "matmul"
"""The name under which sums of products are taken as the values that this library computes."""
EXACT: Final = Trust(
    name="exact", correctly_rounded=frozenset({MATMUL, *(bound.name for bound in BOUNDS)})
)
"""Nothing is open: for callers that ask for values alone, and for an operation supposed so."""
TRUSTS: Final = MappingProxyType({trust.name: trust for trust in (DEFAULT, DOCUMENTED, IEEE)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Statements about the operations of a family.

    Attributes:
        stated: by operation, assumptions that a document states, which hold under every trust.
        denied: by operation, assumptions that it denies.
        ulps: by operation and format, the codes that a result may be off.
        fuses: an addition of a product by one instruction rounds once.
        source: the documents.
    """

    stated: Mapping[str, frozenset[Assumption]]
    denied: Mapping[str, frozenset[Assumption]]
    ulps: Mapping[tuple[str, FloatFormat], int]
    fuses: bool
    source: str


_WITHIN_1_ULP: Final = tuple(each.name for each in (DIV_BOUND, SQRT_BOUND, EXP_BOUND, LOG_BOUND))
_EXACTLY_ROUNDED: Final = ("add", "sub", "mul", "neg", "sum", "prod")

PRECISION: Final[Mapping[str, Precision]] = MappingProxyType(
    {
        ASCEND_950: Precision(
            stated=dict.fromkeys(
                _EXACTLY_ROUNDED, frozenset({ASSUME_RNE, ASSUME_GRADUAL_UNDERFLOW})
            ),
            denied=dict.fromkeys(_WITHIN_1_ULP, frozenset({ASSUME_GRADUAL_UNDERFLOW})),
            ulps={(name, fmt): 1 for name in _WITHIN_1_ULP for fmt in (FP32, FP16)},
            fuses=True,
            source="CANN asc-devkit 82b89a15, appendix on the precision of Reg vector interfaces: "
            "Add, Sub, Mul of FP16 and FP32 0 ulp with subnormal numbers, and each addition of a "
            "reduction; Div, Sqrt, Exp, Ln 1 ulp without them; MulAddDst, Axpy as FMA",
        )
    }
)


@functools.lru_cache(maxsize=1 << 10)
def stated_for(trust: Trust, family: str, operation: str) -> Trust:
    """The trust with documented precision in place of assumptions; measurements stay.

    Args:
        trust: what is taken for granted.
        family: of the chip.
        operation: the row's name.
    """
    precision = PRECISION.get(family)
    if precision is None:
        return trust
    stated = precision.stated.get(operation, frozenset())
    denied = precision.denied.get(operation, frozenset())
    return replace(
        trust,
        assumed=(trust.assumed | stated) - denied,
        measured=MappingProxyType({**precision.ulps, **trust.measured}),
    )


Causes = npt.NDArray[np.uint16]


def choice_bits(*choices: Assumption) -> int:
    """The bits that stand for choices."""
    return sum(_BITS[choice] for choice in set(choices))


def own_cause(cause: int, trust: Trust, *assumptions: Assumption) -> int:
    """The cause of elements that an operation itself leaves open.

    Args:
        cause: the caller's index of the operation.
        trust: what is taken for granted.
        assumptions: those that would close it.
    """
    if not trust.names_choices:
        return cause
    return choice_bits(*(each for each in assumptions if each not in trust.assumed))


def meeting(trust: Trust, chosen: Any, other: Any) -> Any:
    """The cause of elements where two meet: the one that was chosen, or the choices of both."""
    return chosen | other if trust.names_choices else chosen


def cause_along(trust: Trust, causes: Causes, at: Any, is_open: Any, axis: int) -> Causes:
    """The cause at a place of each line, or the choices of all open elements of the line."""
    if not trust.names_choices:
        return np.take_along_axis(causes, at, axis)
    joined: Causes = np.bitwise_or.reduce(causes * is_open, axis=axis, keepdims=True)
    return joined
