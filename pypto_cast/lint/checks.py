"""The one table of checks: a code, the use of a tensor that each looks at, and its rule."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from ascend_kernels.matrix import MATRIX
from pypto_cast.lint.dsl_casts import DSL_CASTS, Beyond, others_round
from pypto_cast.lint.tracked import (
    Cast,
    Comparison,
    DynamicOperation,
    Sum,
    TiledOperation,
    Unnamed,
    Use,
    loses_bits,
    named_mode,
    rounds,
)
from simulator.numbers.formats import FP16, FloatFormat, Format, IntFormat
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3, DEFAULT_CHIP
from tiling.ub import ElementBits, charged_bytes, padded_row_bytes

MANY_ELEMS: Final = 256
"""Elements from which PC201 reports a sum (chosen): the worst case loses 8 of 11 bits."""
_WRAPPED: Final[frozenset[Format]] = frozenset(
    rule.dst for rule in MATRIX[A2_A3].values() if rule.off and isinstance(rule.src, FloatFormat)
)
"""Integers for which SaturationMode.OFF acts on a cast from a float."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Figures that settings change; `many_elems` is that of PC201."""

    many_elems: int = MANY_ELEMS


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A kind of finding.

    Attributes:
        code: as findings and settings name it.
        summary: in a line.
        remedy: a change that removes the finding.
        message: the finding in a use of a tensor; None: there is none.
    """

    code: str
    summary: str
    remedy: str
    message: Callable[[Use, Limits], str | None]


def _default_mode(use: Use, limits: Limits) -> str | None:
    if not isinstance(use, Cast) or not isinstance(use.to, IntFormat):
        return None
    if use.mode is not Unnamed.DEFAULT or not rounds(use):
        return None
    others = sorted({row.to_integer.name for row in others_round(use.dsl)})
    example = next(row.name for row in others_round(use.dsl))
    name = use.dsl.mode_argument
    advice = f"name {name}" if name else "round before the cast"
    return (
        f"{use.source.format} to {use.to} without a mode is {use.dsl.to_integer} in "
        f"{use.dsl.name}, {' or '.join(others)} elsewhere ({example}): {advice}"
    )


_SAME_TWICE: Final = frozenset({RoundMode.TRUNC, RoundMode.FLOOR, RoundMode.CEIL})
"""Modes that round twice as they do once."""


def _double_rounding(use: Use, limits: Limits) -> str | None:
    if not isinstance(use, Cast) or not rounds(use):
        return None
    first, second = use.source.rounding, named_mode(use)
    if first is None:
        return None
    middle = first.to
    if isinstance(use.to, FloatFormat) and not loses_bits(middle, use.to):
        return None
    if isinstance(first.mode, Unnamed) or isinstance(second, Unnamed):
        return None
    if first.mode is RoundMode.ODD or (first.mode is second and second in _SAME_TWICE):
        return None
    return (
        f"double rounding: {first.source} to {middle} by {first.mode} on line {first.line}, then "
        f"to {use.to} by {second}: pypto-cast route --from {first.source} --to {use.to} --through "
        f"{middle}:{first.mode},{use.to}:{second} counts the results that differ"
    )


def _default_saturation(use: Use, limits: Limits) -> str | None:
    if not isinstance(use, Cast) or use.to not in _WRAPPED:
        return None
    if use.saturation is not Unnamed.DEFAULT or use.source.is_clamped:
        return None
    if not _from_float(use) or (use.dsl.beyond is Beyond.CLAMPED and use.dsl.name != "pypto_cast"):
        return None
    name = use.dsl.saturation_argument
    beyond = f"out of range it is {use.dsl.beyond.value} in {use.dsl.name}"
    if use.dsl.name == "pypto_cast":
        beyond += f", {DSL_CASTS['pypto'].beyond.value} in upstream pypto"
    advice = f"name {name}" if name else "clamp before the cast"
    return f"float to {use.to} without saturation: {beyond}: {advice}"


def _from_float(use: Cast) -> bool:
    """The source is known to be a float, or every pair of A2/A3 that gives the integer has one."""
    if use.source.format is not None:
        return isinstance(use.source.format, FloatFormat)
    sources = [rule.src for rule in MATRIX[A2_A3].values() if rule.dst is use.to]
    is_pypto = use.dsl.name in ("pypto", "pypto_cast")
    return is_pypto and all(isinstance(source, FloatFormat) for source in sources)


def _wrapped_comparison(use: Use, limits: Limits) -> str | None:
    if not isinstance(use, Comparison):
        return None
    lines = sorted({each.wrapped_line for each in use.operands if each.wrapped_line})
    if not lines:
        return None
    return (
        f"compares numbers of eight bits that were wrapped on line {lines[0]}: 300 and 44 are "
        "equal; compare before the cast, or saturate"
    )


def _half_sum(use: Use, limits: Limits) -> str | None:
    if not isinstance(use, Sum) or use.source.format is not FP16 or use.elems is None:
        return None
    if use.elems < limits.many_elems:
        return None
    lost = min(math.ceil(math.log2(use.elems)), FP16.man_bits + 1)
    return (
        f"sum of {use.elems} elements in FP16, which release 0.2.0 adds in FP16: up to {lost} of "
        f"{FP16.man_bits + 1} bits are lost; cast to FP32 before it"
    )


def _dynamic(use: Use, limits: Limits) -> str | None:
    if not isinstance(use, DynamicOperation):
        return None
    return (
        f"{use.operation} on a tensor with a DYNAMIC dimension outside the loops of {use.kernel}: "
        "upstream refuses it; take a view of fixed shape in pypto.loop"
    )


def _tile(use: Use, limits: Limits) -> str | None:
    if not isinstance(use, TiledOperation):
        return None
    chip = DEFAULT_CHIP
    shape = use.tile if use.shape is None else use.shape
    if len(use.tile) < len(shape):
        return (
            f"tile shape {list(use.tile)} has {len(use.tile)} entries for {len(shape)} "
            "dimensions; it needs one for each"
        )
    *rows, cols = (t if s is None else min(t, s) for t, s in zip(use.tile, shape, strict=False))
    bits = ElementBits(src=use.source.bits, dst=use.to.bits)
    count = math.prod(rows)
    if use.source is use.to:  # the result may lie in the place of an operand
        needed = count * padded_row_bytes(cols, bits.src, chip)
    else:
        needed = charged_bytes(count, cols, bits, chip)
    if needed <= chip.ub_bytes:
        return None
    is_known = use.shape is not None and None not in use.shape
    smaller = "" if is_known else ", unless the tensor is smaller than its tile"
    return (
        f"tile {[*rows, cols]} of {use.source}{'' if use.source is use.to else f' to {use.to}'} "
        f"needs {needed} B of UB; {chip.name} has {chip.ub_bytes} B{smaller}"
    )


CHECKS: Final[Mapping[str, Check]] = MappingProxyType(
    {
        check.code: check
        for check in (
            Check(
                code="PC101",
                summary="float to integer without a mode, whose default differs between languages",
                remedy="name the mode, or round before the cast",
                message=_default_mode,
            ),
            Check(
                code="PC102",
                summary="a value is rounded twice",
                remedy="cast once, use CAST_ODD first, or go through INT32",
                message=_double_rounding,
            ),
            Check(
                code="PC103",
                summary="float to a narrow integer without saturation given",
                remedy="name satmode, or clamp before the cast",
                message=_default_saturation,
            ),
            Check(
                code="PC104",
                summary="INT8 compared after a wrap",
                remedy="compare before the cast, or saturate",
                message=_wrapped_comparison,
            ),
            Check(
                code="PC201",
                summary="FP16 sum over many elements",
                remedy="cast to FP32 before the sum",
                message=_half_sum,
            ),
            Check(
                code="PC301",
                summary="operation on a DYNAMIC dimension without a loop",
                remedy="take a view of fixed shape in pypto.loop",
                message=_dynamic,
            ),
            Check(
                code="PC302",
                summary="tile that does not fit UB, or has too few entries",
                remedy="set a smaller tile shape",
                message=_tile,
            ),
        )
    }
)
"""By code."""
