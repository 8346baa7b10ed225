"""pypto on A2/A3, as the matrix has it, with FP16 and BF16 results that keep infinity and NaN."""

from __future__ import annotations

from ascend_kernels.matrix import MATRIX, CastStep, Resolution, UnsupportedCastError, resolve
from ascend_kernels.program import conversions
from pypto_cast.dialects.rules.rule import DialectRule, Rule, chain, same
from pypto_cast.dtypes.data_types import CastMode
from simulator.numbers.formats import FloatFormat, Format, IntFormat


def pypto(saturate: bool) -> DialectRule:
    """The rules under SaturationMode.ON or OFF."""

    def rule(src: Format, dst: Format, mode: CastMode) -> Rule:
        if src is dst and ((src, dst) not in MATRIX or mode is CastMode.CAST_NONE):
            return Rule(text="nothing changes", source="pypto.cast document", convert=same)
        try:
            found = resolve(src, dst, mode.round_mode, saturate=saturate)
        except UnsupportedCastError as refusal:
            return Rule(text=str(refusal), source="pypto.cast document, constraint 2")
        return Rule(
            text=_pypto_text(found, mode, saturate),
            source=found.rule.source,
            convert=chain(*conversions(found)),
        )

    return rule


def _pypto_text(found: Resolution, mode: CastMode, saturate: bool) -> str:
    rule = found.rule
    words = ["exact"] if rule.is_exact else []
    if found.mode is not None:
        integral = " to an integral value" if rule.src is rule.dst else ""
        lacking = f" (the pair has no {mode.name})" if mode.round_mode not in rule.modes else ""
        default = mode is CastMode.CAST_NONE
        words.append(f"rounded{integral} by CAST_{found.mode}{'' if default else lacking}")
    if not saturate and rule.off:
        words.append(_low_bits_text(found))
    elif rule.clamps:
        words.append("out of range clamped")
    elif rule.src is rule.dst:
        words.append("every zero +0")
    elif isinstance(rule.dst, FloatFormat) and not rule.is_exact:
        words.append("out of range infinity where the mode rounds there")
    if isinstance(rule.src, FloatFormat):
        words.append("NaN 0" if isinstance(rule.dst, IntFormat) else "NaN the one NaN")
    if not saturate and not rule.off:
        words.append("OFF does not act on this pair")
    return ", ".join(words)


def _low_bits_text(found: Resolution) -> str:
    first = found.steps[0]
    if isinstance(first, CastStep) and first.dst is not found.rule.dst:
        return f"clamped to {first.dst}, then the low bits"
    has_inf = isinstance(found.rule.src, FloatFormat)
    return "the low bits, infinity clamped" if has_inf else "the low bits"
