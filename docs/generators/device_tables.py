"""The table of the page for owners of a device: the sentence of fidelity that each fact settles.

The words of a sentence stand on the fidelity page of their language, which a test looks up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from docs.generators.markdown_text import table
from pypto_cast.device.cases import NIBBLE_FACTS, ROUTES, SATMODE, SHAPE_FACTS
from pypto_cast.device.core_state_check import COPY_TAIL, CTRL_ENTRY, CTRL_LEFT, INT_SUMS
from pypto_cast.device.cycles_check import CYCLE_FACTS, LOOP_PASS, SLOTS, TASK
from pypto_cast.device.device_model import (
    ARG_ORDER,
    AUTOCAST,
    MERGE_ORDER,
    OPERATION_FACTS,
    SORT_ORDER,
    SORTED_SCORES,
    SPECIALS,
    SUBNORMALS,
    SUM_ORDER,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Facts, and the words of the sentence that they settle.

    Attributes:
        facts: by name.
        english, chinese: words of the fidelity page in each language.
    """

    facts: tuple[str, ...]
    english: str
    chinese: str


SETTLED: Final = (
    Settled(
        facts=(*("NaN pattern", "NaN to integers", "NaN where results saturate", "infinities"),),
        english="NaN payloads",
        chinese="NaN 的位模式",
    ),
    Settled(
        facts=(
            *("overflow to nearest", "overflow under directed rounding", "overflow of CAST_ODD"),
            *("overflow with CTRL[48] = 0", CTRL_ENTRY, CTRL_LEFT),
        ),
        english="overflow under directed rounding",
        chinese="定向舍入下的溢出",
    ),
    Settled(
        facts=("underflow of CAST_ODD",),
        english="`CAST_ODD` below the smallest subnormal number",
        chinese="低于最小非规格化数的 `CAST_ODD`",
    ),
    Settled(facts=("sign of zero",), english="the sign of zero", chinese="零的符号"),
    Settled(
        facts=("subnormal inputs", "subnormal results", SUBNORMALS),
        english="subnormal operands",
        chinese="非规格化的操作数",
    ),
    Settled(
        facts=("integers out of range, low bits", "integers out of range, clamped"),
        english="`SaturationMode.OFF` out of range",
        chinese="`SaturationMode.OFF`",
    ),
    Settled(
        facts=("INT64 to FP32", "INT32 to FP16 by the deq scale", "rounding", ROUTES),
        english="a possible second rounding",
        chinese="是否舍入两次",
    ),
    Settled(
        facts=tuple(NIBBLE_FACTS.values()),
        english="the order of INT4 and FP4 nibbles",
        chinese="两个 INT4 或 FP4 的顺序",
    ),
    Settled(
        facts=("NaN with CTRL[50] = 1", INT_SUMS, SATMODE),
        english="the control bits of the 950",
        chinese="950 的控制位",
    ),
    Settled(
        facts=(*OPERATION_FACTS, SPECIALS, SUM_ORDER, AUTOCAST),
        english="the rounding of arithmetic",
        chinese="算术运算的舍入",
    ),
    Settled(
        facts=(SORTED_SCORES, SORT_ORDER, MERGE_ORDER, ARG_ORDER),
        english="the order of equal elements",
        chinese="相等元素的次序",
    ),
    Settled(
        facts=(*SHAPE_FACTS, COPY_TAIL),
        english="results that depend on the tile shape",
        chinese="结果是否随 TileShape 变化",
    ),
    Settled(
        facts=tuple(name for name in CYCLE_FACTS if name not in (LOOP_PASS, SLOTS, TASK)),
        english="figures of the chips",
        chinese="芯片参数",
    ),
    Settled(facts=(LOOP_PASS, SLOTS, TASK), english="cycles of tasks", chinese="任务的周期数"),
)
"""Each fact of a device check once."""


def _english() -> str:
    rows = (("; ".join(row.facts), row.english) for row in SETTLED)
    return table(("facts", "words of fidelity"), rows)


def _chinese() -> str:
    return table(
        ("事实", "保真度与依据页中的内容"), (("；".join(x.facts), x.chinese) for x in SETTLED)
    )


TABLES: Final = MappingProxyType[str, Callable[[], str]](
    {"settled": _english, "settled_zh": _chinese}
)
