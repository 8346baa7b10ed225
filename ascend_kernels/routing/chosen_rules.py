"""The chosen rules that a chain of casts may rest on.

A chain is exact under the rules as they are. Judged under the other possibility, it may be not:
then its verdict rests on the choice. A rule that the last cast follows too bears on the single
rounding alike, so only the casts before it are looked at.
"""

from __future__ import annotations

from typing import Final

from simulator.arithmetic.cast_choices import (
    ODD_UNDERFLOW_RULE,
    OVERFLOW_RULE,
    ChosenRule,
    CodeStep,
    without_subnormals,
)
from simulator.arithmetic.trust import ASSUME_GRADUAL_UNDERFLOW
from simulator.machine.isa import ScalarOp
from simulator.machine.scalar_work import ScalarWork


def _multiplies(step: CodeStep) -> bool:
    return isinstance(step, ScalarWork) and step.op is ScalarOp.MULS


CHOSEN_RULES: Final = (
    ODD_UNDERFLOW_RULE,
    OVERFLOW_RULE,
    ChosenRule(
        assumption=ASSUME_GRADUAL_UNDERFLOW,
        rule="Muls takes and gives subnormal numbers",
        otherwise="were they zero",
        concerns=_multiplies,
        reads=lambda step, codes: without_subnormals(step.src, codes),
        gives=lambda step, _, results: without_subnormals(step.dst, results),
    ),
)
