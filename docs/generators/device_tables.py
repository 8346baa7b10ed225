"""The tables of the page for owners of a device: facts and the sentences they settle, durations.

The words of a sentence stand on the fidelity page of their language, which a test looks up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final

from docs.generators.markdown_text import table
from pypto_cast.device.cases import FP4_NIBBLES, NIBBLE_FACTS, ROUTES, SATMODE, SHAPE_FACTS
from pypto_cast.device.check import reasons_in
from pypto_cast.device.check_steps import CheckPlan
from pypto_cast.device.core_state_check import COPY_TAIL, CTRL_ENTRY, CTRL_LEFT, INT_SUMS
from pypto_cast.device.cycles_check import CYCLE_FACTS, LOOP_PASS, SLOTS, TASK
from pypto_cast.device.device_model import (
    ARG_ORDER,
    ASSUMPTION_FACTS,
    AUTOCAST,
    CAST_FACTS,
    MERGE_ORDER,
    OPERATION_FACTS,
    SORT_ORDER,
    SORTED_SCORES,
    SPECIALS,
    SUBNORMALS,
    SUM_ORDER,
)
from pypto_cast.device.unasked import unasked_of
from simulator.arithmetic.trust import (
    ASSUME_CORRECT_ROUNDING,
    ASSUME_CUBE_HF32,
    ASSUME_CUBE_RNE,
    ASSUME_INF_NAN_MODE,
    BOUNDS,
)
from simulator.corrections import FP4_MODES, FP8_MODES, INT32_FP16
from tiling.chips import ASCEND_950, CHIPS


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Facts, and the words of the sentence that they settle.

    Attributes:
        facts: by name; none: no fact settles it.
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
        facts=tuple(name for name, each in unasked_of(ASCEND_950).items() if each.pair),
        english="round modes of the 950 that its Cast lacks or another reading has",
        chinese="950 的 Cast 所没有的，或只有其他读法才有的舍入模式",
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
        english="figures of the cost sets",
        chinese="性能参数集的数值",
    ),
    Settled(facts=(LOOP_PASS, SLOTS), english="passes of a loop", chinese="循环中一趟的周期数"),
    Settled(facts=(TASK,), english="the cycles of a task", chinese="任务的周期数"),
    Settled(facts=(), english="the cube", chinese="Cube 的"),
    Settled(facts=(), english="sums beyond one repeat", chinese="超过一个 repeat 的求和顺序"),
    Settled(facts=(), english="infinity to E8M0", chinese="无穷大转 E8M0"),
    Settled(facts=(), english="sizes of memories", chinese="存储单元的大小"),
    Settled(facts=(), english="cycles between two tasks", chinese="两个任务之间的周期数"),
)
"""Each fact of a device check once; then the sentences that none settles."""
_BOUNDED: Final = {
    fact: operation
    for fact, operation in OPERATION_FACTS.items()
    if operation in {bound.name for bound in BOUNDS}
}
NAMED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        **{str(name): facts for name, facts in {**ASSUMPTION_FACTS, **CAST_FACTS}.items()},
        str(ASSUME_INF_NAN_MODE): (CTRL_ENTRY,),
        str(ASSUME_CORRECT_ROUNDING): ("vdiv", "vsqrt"),
        str(ASSUME_CUBE_RNE): (),
        str(ASSUME_CUBE_HF32): (),
        **{f"bound of {operation}": (fact,) for fact, operation in _BOUNDED.items()},
        str(FP8_MODES.name): (),
        str(FP4_MODES.name): (),
        str(INT32_FP16.name): ("INT32 to FP16 by the deq scale",),
        "bf16-inf-e8m0": (),
        "fp4-nibbles": (FP4_NIBBLES,),
        "nan-e2m1": ("NaN where results saturate",),
    }
)
"""The facts that settle each choice, bound and reading of the fidelity page; of some none does."""
_WHY_CHINESE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cannot be asked: AscendC's": "无法测量：AscendC 的 Cast 对这种转换只有 CAST_RINT",
        "not asked: the check": "不测量：只测默认读法所有的舍入模式，此处为 CAST_RINT",
        "cannot be asked: the kernels": "无法测量：950 的算子库没有级联转换的算子；"
        "其中的每个转换单独测量",
        "not asked: no cost set": "不测量：没有 950 的性能参数集可供比较，"
        "算子库中也没有计时的算子；厂商给出的每周期元素数"
        "（asc-devkit，Reg 矢量计算接口理论性能汇总，表 10）"
        "针对寄存器上的指令，不含这里的 Cast 所做的读写",
    }
)
"""The reasons in Chinese, by their first words."""


def _facts(names: tuple[str, ...], none: str, separator: str) -> str:
    return separator.join(names) or none


def _settled(headings: tuple[str, str], *, in_chinese: bool) -> str:
    none, separator = ("无", "；") if in_chinese else ("none", "; ")
    rows = (
        (_facts(row.facts, none, separator), row.chinese if in_chinese else row.english)
        for row in SETTLED
    )
    return table(headings, rows)


def _named(headings: tuple[str, str], *, in_chinese: bool) -> str:
    none, separator = ("无", "；") if in_chinese else ("none", "; ")
    return table(headings, ((f"`{x}`", _facts(y, none, separator)) for x, y in NAMED.items()))


def _unasked(headings: tuple[str, str], *, in_chinese: bool) -> str:
    names: dict[str, list[str]] = {}
    for name, why in reasons_in(ASCEND_950).items():
        if in_chinese:
            (why,) = (text for first, text in _WHY_CHINESE.items() if why.startswith(first))
        names.setdefault(why, []).append(name)
    separator = "；" if in_chinese else "; "
    return table(headings, ((separator.join(facts), why) for why, facts in names.items()))


def _durations(headings: tuple[str, str, str]) -> str:
    chips = {chip.isa: chip.name for chip in CHIPS.values()}
    few, every = CheckPlan(), CheckPlan(exhaustive=True)
    return table(
        headings,
        ((family, few.host_time(name), every.host_time(name)) for family, name in chips.items()),
    )


TABLES: Final = MappingProxyType[str, Callable[[], str]](
    {
        "settled": partial(_settled, ("facts", "words of fidelity"), in_chinese=False),
        "settled_zh": partial(_settled, ("事实", "保真度与依据页中的内容"), in_chinese=True),
        "settled_names": partial(_named, ("choice, bound or reading", "facts"), in_chinese=False),
        "settled_names_zh": partial(_named, ("约定、误差界或读法", "事实"), in_chinese=True),
        "unasked": partial(
            _unasked, ("facts of the 950", "not measured because"), in_chinese=False
        ),
        "unasked_zh": partial(_unasked, ("950 的事实", "原因"), in_chinese=True),
        "durations": partial(_durations, ("family", "host's share", "with `--exhaustive`")),
        "durations_zh": partial(_durations, ("系列", "Host 侧的耗时", "`--exhaustive` 时")),
    }
)
