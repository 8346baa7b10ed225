"""Chinese of the generated tables: headings, cells and sentences by their English text.

Sources stay as they are: they quote English documents. A test finds headings without a translation.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final

HEADINGS: Final = MappingProxyType(
    {
        "operation": "操作",
        "operations": "操作",
        "dtypes on A2 and A3": "A2 和 A3 的 dtype",
        "on the 950 besides": "950 另外支持",
        "fidelity": "保真度",
        "in release 0.2.0": "0.2.0 中有",
        "choice": "约定",
        "rule": "规则",
        "the other possibility": "另一种可能",
        "name": "名称",
        "by default": "默认采用",
        "statement": "内容",
        "nearest public text": "最接近的公开文本",
        "published": "已公布",
        "instruction": "指令",
        "boundary tables": "极值表",
        "figure": "参数",
        "value": "数值",
        "standing": "依据",
        "source": "来源",
        "chips": "芯片",
        "release": "版本",
        "reading": "解读",
        "contrary text": "相反的文本",
        "expects": "预期",
        "subject": "内容",
        "default": "默认",
        "otherwise": "另一取值",
        "kernel": "算子",
        "output": "输出",
        "results": "结果数",
        "A2/A3 by documents": "A2/A3，仅凭文档",
        "A2/A3 certain": "A2/A3，唯一",
        "950 by documents": "950，仅凭文档",
        "950 certain": "950，唯一",
        "from \\ to": "源 \\ 目标",
        "destination": "目标类型",
        "modes (**default**)": "模式（**默认**）",
        "overflow": "溢出",
        "from": "源类型",
        "to": "目标类型",
        "modes": "模式",
        "best route": "最好的路径",
        "differs on": "不同的位模式数",
        "library": "库",
        "chain": "转换链",
    }
)
"""Headings; `source` beside `destination` is the source dtype."""

CELLS: Final = MappingProxyType(
    {
        "yes": "是",
        "no": "否",
        "any": "任意",
        "all": "全部",
        "none": "无",
        "none: 950 only": "无：仅 950",
        "a part of a tensor; no dtype is refused": "张量的一部分；任意 dtype",
        "writes a part of a tensor; no dtype is refused": "写张量的一部分；任意 dtype",
        "the [conversion matrix](matrix.md)": "[转换表](matrix.md)",
        "takes a setting, which changes no bit": "接受设置，不改变结果",
        "returns the settings": "返回设置",
        "exact": "精确",
        "exact under a named assumption": "在具名假设下精确",
        "bounded": "有误差界",
        "unknown": "未知",
        "documented": "有文档依据",
        "inferred": "推断",
        "chosen": "自行约定",
        "measured": "实测",
        "no rounding": "不舍入",
        "all, each by its own": "都有，规则各异",
        "clamped": "取极值",
        "clamped, NaN 0": "取极值，NaN 为 0",
        "inf clamped, NaN 0": "inf 取极值，NaN 为 0",
        "inf or max, by mode": "按模式为 inf 或最大值",
        "NaN or max, by mode": "按模式为 NaN 或最大值",
        "max": "最大值",
        "keeps low bits": "保留低位",
        "by hand": "手写",
        "AscendNPU-IR, another version": "AscendNPU-IR，另一版本",
        "pypto models": "pypto 的模型",
        "casts take and give subnormal numbers": "转换保留非规格化的输入和结果",
        "CAST_ODD below the smallest subnormal number gives that number": (
            "低于最小非规格化数时，CAST_ODD 给出最小非规格化数"
        ),
        "overflow to a float follows IEEE 754": "转换为浮点时，溢出遵循 IEEE 754",
        "INF/NAN mode holds by default (CTRL[48] = 1)": "默认为 INF/NAN 模式（CTRL[48] = 1）",
        "FP16 to FP32 keeps the sign of -0": "FP16 转 FP32 时保留 -0 的符号",
        "NaN has one pattern: 0x7FFF in FP16 and BF16, 0x7FFFFFFF in FP32": (
            "NaN 只有一种位模式：FP16 和 BF16 为 0x7FFF，FP32 为 0x7FFFFFFF"
        ),
        "Muls takes and gives subnormal numbers": "Muls 保留非规格化的操作数和结果",
        "were they zero": "结果可能为零",
        "were it flushed to zero": "结果可能被清零",
        "were it the largest finite number": "结果可能为最大有限值",
        "were it infinity under every round mode": "各舍入模式下结果都可能为 inf",
        "were it saturation mode": "可能为饱和模式",
        "were it +0": "结果可能为 +0",
        "were it another": "可能为其他位模式",
        "vadd, vsub and vmul round to nearest, ties to even": (
            "vadd、vsub 和 vmul 舍入到最近值，平局取偶"
        ),
        "vadd, vsub, vmul, vdiv, vsqrt, vrsqrt, vexp, vln, vcadd and the cube keep subnormal "
        "operands and results, and do not replace them by zero": (
            "vadd、vsub、vmul、vdiv、vsqrt、vrsqrt、vexp、vln、vcadd 和 "
            "Cube 单元保留非规格化的操作数和结果，不清零"
        ),
        "vdiv and vsqrt are correctly rounded": (
            'vdiv 和 vsqrt 正确舍入（只在 `trust="ieee"` 时采用）'
        ),
        "the cube rounds products and partial sums to nearest; without it, any way": (
            "Cube 单元把乘积和部分和舍入到最近值；不采用时，可以任意舍入"
        ),
        "FP32 operands of the cube are rounded to 11 mantissa bits, to nearest, ties to even, "
        "before they are multiplied": "Cube 单元的 FP32 操作数相乘之前舍入到 11 位尾数，平局取偶",
        "a sum adds in the order of pto-isa's headers, inside a repeat as a binary tree of "
        "neighbours": ("求和按 pto-isa 头文件中的顺序，一个 repeat 之内为相邻元素的二叉树"),
        "of equal elements the one with the smaller index comes first, in sorts and argmax": (
            "排序和 argmax 中，相等的元素以下标较小者在前"
        ),
        "FP16 add, sub, mul and neg keep FP32 between them": (
            "FP16 的 add、sub、mul、neg 之间保留 FP32 值"
        ),
        "FP16 after each add": "每次 add 之后为 FP16",
        "round modes of FP32 to E4M3FN and E5M2": "FP32 到 E4M3FN 和 E5M2 的舍入模式",
        "round modes of BF16 to E2M1 and E1M2": "BF16 到 E2M1 和 E1M2 的舍入模式",
        "INT32 to FP16": "INT32 到 FP16",
        "infinity of BF16 to E8M0": "BF16 的 inf 到 E8M0",
        "order of two FP4 elements in a byte": "一个字节中两个 FP4 元素的顺序",
        "NaN to E2M1": "NaN 到 E2M1",
        # pages of operations
        "dtypes": "dtype",
        "dtypes of indices": "下标的 dtype",
        "dtypes that are added": "相加的 dtype",
        "runs in FP32 (AutoCast)": "以 FP32 计算（AutoCast）",
        "cast to FP32 inside": "内部转换到 FP32",
        "taken besides": "另外支持",
        "refused": "不支持",
        "not in release": "没有它的版本",
        "dimensions": "维度",
        "as many in each operand": "各操作数相同",
        "bound": "误差界",
        "assumes": "假设",
        "upstream's page": "上游的页面",
        "by its parts; casts are exact": "由各步骤决定；转换是精确的",
        "exact: bits are copied": "精确：逐比特复制",
        "exact: one number, rounded once": "精确：一个数，只舍入一次",
        "in a kernel of RunMode.NPU": "在 RunMode.NPU 的算子中",
        "too few entries, or more UB than there is": "元素个数不够，或所需的 UB 超出容量",
        "too few entries, or a tile beyond UB": "元素个数不够，或 Tile 超出 UB",
        "shapes that do not broadcast, or that no operation takes": (
            "形状不能广播，或没有操作支持"
        ),
        "a shape that no operation takes": "没有操作支持的形状",
        "a layout other than ND": "不是 ND 格式",
        "no tensor, or dtypes that upstream refuses": "不是张量，或上游不支持的 dtype",
        "a dimension that is not there": "没有这个维度",
        "a layout other than ND; a dimension that is not there": "不是 ND 格式，或没有这个维度",
        "an index outside the input": "下标超出输入",
        "another dtype": "其他 dtype",
        "other dtypes": "其他 dtype",
        "any dtype": "任意 dtype",
        "revision": "版本号",
        "run in FP32 by AutoCast": "由 AutoCast 改为以 FP32 计算",
        "cast to FP32 and back inside": "操作内部转换到 FP32 再转换回来",
        "dtypes taken besides": "另外支持的 dtype",
        "dtypes refused": "不支持的 dtype",
        "operations that are not there": "没有的操作",
        "two dimensions or more": "至少需要两个维度",
        "axes along which one operand is repeated": "一个操作数最多沿几个轴重复",
        "a reduction of the last axis needs whole 32 B blocks": (
            "沿最后一个轴归约需要整数个 32 字节的块"
        ),
        "`var` multiplies by 1/n": "`var` 乘以 1/n",
        "`where` takes a float beside FP16 and BF16": "`where` 接受 FP16、BF16 旁边的浮点数",
    }
)
"""Whole cells."""

_SENTENCES: Final = (
    (
        r"Of ([\d,]+) pairs and modes of the nine formats that\s+A2/A3 casts\s+([\d,]+) have an "
        r"exact\s+route of at most three steps,\s+([\d,]+) of ([\d,]+) without CAST_ODD\.",
        r"A2/A3 转换的九种格式共有 \1 个组合与模式，其中 \2 个有不超过三步的"
        r"精确路径；不计 CAST_ODD，\4 个中有 \3 个。",
    ),
    (
        r"Of ([\d,]+) pairs and modes with such an end\s+([\d,]+) have an\s+exact\s+route, "
        r"([\d,]+) of ([\d,]+)\s+of those with\s+UINT16 or\s+BOOL alone\.",
        r"以这些格式为源或目标的组合与模式共 \1 个，其中 \2 个有精确路径；"
        r"只涉及 UINT16 或 BOOL 的 \4 个中有 \3 个。",
    ),
    (r"\bat least (?=[\d,]+)", "至少 "),
)


def in_chinese(text: str) -> str:
    """Generated tables or sentences in Chinese, with all that has no translation as it is."""
    for pattern, made in _SENTENCES:
        text = re.sub(pattern, made, text)
    lines = text.splitlines(keepends=True)
    is_row = [line.startswith("|") for line in lines]
    return "".join(
        _row(line, is_heading=not (place and is_row[place - 1])) if row else line
        for place, (line, row) in enumerate(zip(lines, is_row, strict=True))
    )


def _row(line: str, *, is_heading: bool) -> str:
    cells = [cell.strip() for cell in line.strip()[1:-1].split(" | ")]
    made = [HEADINGS.get(cell, cell) if is_heading else _cell(cell) for cell in cells]
    if is_heading and "destination" in cells:
        made[cells.index("source")] = "源类型"
    return f"| {' | '.join(made)} |\n"


def _cell(text: str) -> str:
    """A whole cell, or one with a remark behind a comma: `refused, release 0.2.0`."""
    words = {**HEADINGS, **CELLS}
    if text in words:
        return words[text]
    first, comma, rest = text.partition(", ")
    kind, _, name = rest.partition(" ")
    if comma and first in words and rest in words:
        return f"{words[first]}，{words[rest]}"
    if comma and first in words and kind in ("release", "on"):
        return f"{words[first]}，{name}"
    return text
