"""The tables of lint: the defaults of casts in each kernel language, and the checks."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Final

from docs.generators.markdown_text import table
from pypto_cast.lint.checks import CHECKS
from pypto_cast.lint.dsl_casts import DSL_CASTS, Beyond
from tiling.chips import Standing

_HEADINGS: Final = (
    *("language", "cast", "to an integer", "to a narrower float", "beyond an integer"),
    *("beyond a float", "arguments that name them", "source"),
)
_HEADINGS_ZH: Final = (
    *("语言", "cast 写法", "转为整数", "转为更窄的浮点", "超出整数范围"),
    *("超出浮点范围", "指定它们的参数", "来源"),
)
_BEYOND_ZH: Final = {
    Beyond.CLAMPED: "饱和到上下限",
    Beyond.LOW_BITS: "取低位",
    Beyond.OPEN: "未定义",
}
_STANDING_ZH: Final = {Standing.DOCUMENTED: "文档", Standing.INFERRED: "推断"}
_BEYOND_FLOAT_ZH: Final = {
    "infinity": "无穷",
    "infinity; the limit where CTRL[48] is 0": "无穷；CTRL[48] 为 0 时饱和到上下限",
    "infinity; of FP8 the limit": "无穷；FP8 饱和到上下限",
}
_ORIGIN_ZH: Final = {
    "pypto_cast": "pypto.cast 文档约束 3；这里 satmode 为 ON",
    "pypto": (
        "上游 pypto 883e7dfb0，docs/zh/api/operation/pypto-cast.md 和 datatype/CastMode.md；"
        "OFF 对 A2/A3 的六对类型生效（pto-isa，TCvt.hpp）"
    ),
    "AscendC": (
        "CANN asc-devkit，Cast：会丢位时 CAST_NONE 即 CAST_RINT，且必须给出模式；"
        "SetSaturationFlag：CTRL[59] 为 0 时饱和"
    ),
    "AscendC Reg": (
        "CANN asc-devkit，CastTrait：不指定时两者为 UNKNOWN，没有文档解释；此行取 Cast 的行为"
    ),
    "pyasc": "pyasc，asc.language.basic.cast：调用 AscendC 的 Cast",
    "pto-isa": (
        "hw-native-sys/pto-isa 3186c38，include/pto/npu/a2a3/TCvt.hpp：CAST_NONE 的模式是各对类型"
        "switch 的 default"
    ),
    "triton": (
        "triton 3.x，python/triton/language/semantic.py，cast：fp_downcast_rounding 为 RTNE，仅用于"
        "浮点；整数由 fptosi 得到，向零截断，超出范围的结果是 poison（LLVM LangRef）"
    ),
    "triton-ascend": (
        "triton-ascend，docs/zh/triton_api/Creation_Ops/cast.md：rtne；不给 overflow_mode "
        "时为 trunc；"
        "后来的版本没有 overflow_mode（triton-ascend#716）"
    ),
    "tilelang": (
        "tilelang：C++ 的转换（C++17 [conv.fpint]）；tile-ai/tilelang#2049 要求舍入和饱和，"
        "#2944 有 FP8；0.1.11 及以前整数转 BF16 时直接截断（#2483）"
    ),
    "tilelang-ascend": (
        "tile-ai/tilelang-ascend，tilelang/language/ascend_tile.py，cast：模式即它所调用的 AscendC "
        "Cast 的模式"
    ),
    "tilelang-mlir-ascend": (
        "tile-ai/tilelang-mlir-ascend，tilelang/language/customize_npuir.py，npuir_cast；"
        "超出范围：与未设置 CTRL[59] 的指令相同"
    ),
}
_CHECKS_ZH: Final = {
    "PC101": ("浮点转整数未指定模式，而各语言的默认不同", "指定模式，或在 cast 前取整"),
    "PC102": ("一个值被舍入两次", "只 cast 一次，先用 CAST_ODD，或经过 INT32"),
    "PC103": ("浮点转窄整数未指定饱和", "指定 satmode，或在 cast 前限幅"),
    "PC104": ("回绕之后比较 INT8", "在 cast 前比较，或使用饱和"),
    "PC201": ("对许多元素做 FP16 求和", "求和前转为 FP32"),
    "PC301": ("循环之外对 DYNAMIC 维度做运算", "在 pypto.loop 中取固定形状的 view"),
    "PC302": ("tile 放不进 UB，或维数不足", "设置更小的 tile shape"),
}


def _dsl_casts(headings: tuple[str, ...], chinese: bool) -> str:
    def cells(name: str) -> tuple[str, ...]:
        row = DSL_CASTS[name]
        named = [f"`{a}`" for a in (row.mode_argument, row.saturation_argument) if a]
        standing = row.origin.standing
        beyond = row.beyond
        return (
            name,
            f"`{row.call}`",
            str(row.to_integer),
            str(row.to_float),
            _BEYOND_ZH[beyond] if chinese else beyond.value,
            _BEYOND_FLOAT_ZH[row.beyond_float] if chinese else row.beyond_float,
            ", ".join(named) or ("无" if chinese else "none"),
            f"{_STANDING_ZH[standing]}：{_ORIGIN_ZH[name]}"
            if chinese
            else f"{standing.value}: {row.origin.text}",
        )

    return table(headings, map(cells, DSL_CASTS))


def _checks() -> str:
    return table(
        ("code", "finding", "remedy"), ((c.code, c.summary, c.remedy) for c in CHECKS.values())
    )


def _checks_zh() -> str:
    return table(("编号", "发现", "改法"), ((code, *_CHECKS_ZH[code]) for code in CHECKS))


TABLES: Final = MappingProxyType[str, Callable[[], str]](
    {
        "dsl_casts": lambda: _dsl_casts(_HEADINGS, chinese=False),
        "dsl_casts_zh": lambda: _dsl_casts(_HEADINGS_ZH, chinese=True),
        "lint_checks": _checks,
        "lint_checks_zh": _checks_zh,
    }
)
