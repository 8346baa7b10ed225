"""The Chinese words of arguments that an operation's docstring describes, by the English."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

ARGUMENTS_ZH: Final[Mapping[str, str]] = MappingProxyType(
    {
        # Operands
        "an operand of the dtypes below": "操作数，dtype 见下",
        "a tensor of the dtypes below": "张量，dtype 见下",
        "any dtype": "任意 dtype",
        "FP32": "FP32",
        "DT_FP32": "DT_FP32",
        "FP32 or FP16": "FP32 或 FP16",
        "FP32, FP16 or BF16": "FP32、FP16 或 BF16",
        "DT_FP32, DT_FP16 or DT_BF16": "DT_FP32、DT_FP16 或 DT_BF16",
        "INT8 or INT16": "INT8 或 INT16",
        "UINT8, of one axis": "一维 UINT8",
        "of the same dtype; shapes broadcast": "dtype 相同；形状会广播",
        "of one dtype; shapes broadcast": "dtype 相同；形状会广播",
        "BOOL; shapes broadcast": "BOOL；形状会广播",
        "the other operand; shapes broadcast": "另一个操作数；形状会广播",
        "the counts": "移位的位数",
        "the number": "数值",
        "FP32, FP16, BF16, INT32 or INT16; integers wrap": (
            "FP32、FP16、BF16、INT32 或 INT16；整数回绕"
        ),
        "FP32, FP16, BF16, integers of up to 32 bits or BOOL": (
            "FP32、FP16、BF16、不超过 32 位的整数或 BOOL"
        ),
        "FP32, FP16, BF16 or integers of 16 or 32 bits": "FP32、FP16、BF16，或 16、32 位整数",
        "FP32, FP16, BF16 or integers of up to 32 bits": "FP32、FP16、BF16 或不超过 32 位的整数",
        "FP32, FP16, BF16 or integers of up to 32 bits, with data everywhere": (
            "FP32、FP16、BF16 或不超过 32 位的整数，处处有数据"
        ),
        "INT8, INT16, INT32 or INT64, of up to three dimensions": (
            "INT8、INT16、INT32 或 INT64，不超过三维"
        ),
        # Dimensions and shapes
        "the dimension; the last one if not given": "维度；未指定时为最后一维",
        "the dimension; a negative one counts from the last": "维度；负数从最后一维数起",
        "the last dimension": "最后一维",
        "one dimension; a negative one counts from the last": "一个维度；负数从最后一维数起",
        "the other": "另一个维度",
        "-2": "-2",
        "the place of the new dimension": "新维度的位置",
        "one dimension or several; all of them if not given": "一个或多个维度；未指定时为全部",
        "the dimensions stay, with one element; one stays of a result without any": (
            "保留这些维度，长度为 1；结果没有维度时保留一维"
        ),
        "taken off the number of elements": "从元素个数中减去的数",
        "as many dimensions; equal, or longer where the input has 1": (
            "维数相同；各维长度相等，输入为 1 之处可以更长"
        ),
        "the part that holds data; by default that of the input, repeated": (
            "有数据的部分；默认为输入的该部分重复后的结果"
        ),
        "plain ints, one of which may be -1": "普通 int，其中一个可以是 -1",
        "the part that holds data; all of it unless given. As many elements as the input holds are "
        "those, in their order": (
            "有数据的部分；未指定时为全部。元素个数与输入中有数据的相同，顺序不变"
        ),
        "in a kernel the result is the same memory: what is written to either, both have, and "
        "outputs get it. The shape may depend on a loop or a dynamic dimension. A view has no "
        "memory of its own: its elements are copied": (
            "在算子中，结果与输入是同一段内存：写入任一方，两者都改变，输出也得到它。"
            "形状可以取决于循环或动态维度。view 没有自己的内存：复制其元素"
        ),
        "each dimension once, from 0; the first of the result comes first": (
            "每个维度出现一次，从 0 起；按结果的维度顺序"
        ),
        "1 to 4 extents": "1 到 4 个维度长度",
        # Creation and random numbers
        "stop; or start and stop; or start, stop and step. The stop is not included": (
            "stop；或 start 与 stop；或 start、stop 与 step。不含 stop"
        ),
        "as of `uniform`": "同 `uniform`",
        "a list of one number of 64 bits": "含一个 64 位数的列表",
        "a list of two; the first is not read, the second is the upper half of the counter": (
            "两个数的列表；第一个不使用，第二个是计数器的高半部分"
        ),
        "[1] or [3], both Philox": "[1] 或 [3]，都是 Philox",
        "the length of the new dimension": "新维度的长度",
        # Writing and reading by index
        "where it goes": "写入的位置",
        "an output of the kernel, or a tensor that it declared, of `src`'s dtype": (
            "算子的输出或其声明的张量，dtype 与 `src` 相同"
        ),
        "a tensor that the kernel writes, FP32 or FP16": "算子写入的张量，FP32 或 FP16",
        "of the same dtype, or FP16 beside FP32; it broadcasts to y, which does not": (
            "dtype 相同，或 y 为 FP32 时为 FP16；它广播到 y，y 不广播"
        ),
        "the factor, as FP32": "因子，按 FP32",
        "INT32 or INT64, of as many dimensions, along others no longer than the input": (
            "INT32 或 INT64，维数相同，其他维不比输入长"
        ),
        "1 and 2: the first, second of every two; 3 to 6: the first to fourth of every four; 7: "
        "all": "1、2：每两个中的第一、第二个；3 到 6：每四个中的第一到第四个；7：全部",
        "INT32 or INT64, [n]": "INT32 或 INT64，[n]",
        "n slices of the input's dtype": "n 个切片，dtype 与输入相同",
        "the factor of the source, converted to the dtype": "source 的因子，转换为该 dtype",
        "a tensor that the kernel writes, of the dtypes below": "算子写入的张量，dtype 见下",
        "as for `index_add`": "同 `index_add`",
        "any numbers; accumulating: FP32, FP16, BF16, INT32 or INT16": (
            "任意数值；累加时为 FP32、FP16、BF16、INT32 或 INT16"
        ),
        "one tensor of integers, of one dimension, for each of the first dimensions": (
            "前若干维每维一个一维整数张量"
        ),
        "[as many as indices, the rest of the input's dimensions], of the input's dtype": (
            "[下标个数, 输入的其余各维]，dtype 与输入相同"
        ),
        "add instead": "改为相加",
        "INT32 or INT64, of one or two dimensions": "INT32 或 INT64，一维或二维",
        "FP32, FP16, BF16, INT8, UINT8, INT16 or INT32; it stays as it is": (
            "FP32、FP16、BF16、INT8、UINT8、INT16 或 INT32；保持不变"
        ),
        "a tensor of the input's dtype, no shorter than the index; or a number": (
            "dtype 与输入相同、不比 index 短的张量；或一个数"
        ),
        '"add" or "multiply" what is there by it, FP16 and BF16 in FP32; not for 8 bits': (
            '"add" 或 "multiply"：与原值相加或相乘，FP16 和 BF16 在 FP32 中计算；不支持 8 位'
        ),
        "FP32, FP16, BF16, INT32, INT16 or INT8; it stays as it is, assign the result to it": (
            "FP32、FP16、BF16、INT32、INT16 或 INT8；保持不变，请把结果赋给它"
        ),
        "[b, s], INT64, INT32 or INT16": "[b, s]，INT64、INT32 或 INT16",
        "as many rows as there are indices, of the input's dtype": (
            "行数等于下标个数，dtype 与输入相同"
        ),
        # Bounds, factors, parts
        "the lower bound, a tensor or a number; none if not given": (
            "下界，张量或数；未指定时没有下界"
        ),
        "the upper bound, of the kind of the lower one; none if not given": (
            "上界，与下界同类；未指定时没有上界"
        ),
        "a finite number, 0 or more; beside FP16 it is rounded to that": (
            "不小于 0 的有限数；操作数为 FP16 时舍入到 FP16"
        ),
        "one axis, of as many elements as the second one of the input; of one element where the "
        "input has one axis": "一维，元素个数等于输入的第二个轴；输入只有一个轴时为一个元素",
        "factors of the last dimension; none if not given": "最后一维的因子；未指定时没有",
        "added to the mean of the squares": "加到平方的平均值上",
        "the number of decimals; a negative one rounds to tens, hundreds": (
            "小数位数；负数舍入到十位、百位等"
        ),
        "a tensor of the dtypes below, of integers beside integers; or a number": (
            "张量，dtype 见下，底数为整数时为整数；或一个数"
        ),
        "the last one that stays: 0 the main one, above it positive": (
            "保留的最后一条对角线：0 为主对角线，其上为正"
        ),
        "the first one that stays: 0 the main one, above it positive": (
            "保留的第一条对角线：0 为主对角线，其上为正"
        ),
        # Movement and padding
        "two or more of one dtype, alike in all other dimensions": (
            "两个或更多，dtype 相同，其他各维相同"
        ),
        "its last axis has an even length": "最后一个轴的长度为偶数",
        "what follows it, of the same dtype and shape; None: nothing": (
            "接在其后的张量，dtype 和形状相同；None 表示没有"
        ),
        "gives the first of each pair; its last axis has an even length": (
            "给出每对中的第一个；最后一个轴的长度为偶数"
        ),
        "gives the second, of the same dtype and shape": "给出第二个，dtype 和形状相同",
        "as for `pad`; the tensor may hold data in a part": "同 `pad`；张量可以只有一部分有数据",
        "[0, right] of one dimension, [0, right, 0, below] of more": (
            "一维时为 [0, 右]，多维时为 [0, 右, 0, 下]"
        ),
        '"constant"': '"constant"',
        "the number, rounded to the dtype; an int beside integers": (
            "填充的数，舍入到该 dtype；整数张量用 int"
        ),
        # Quantisation
        "FP32, without the axis along which it is the same": "FP32，去掉其值相同的那个轴",
        "as for `quantize`": "同 `quantize`",
        "FP32 as `scale`, or none": "FP32，同 `scale`；或没有",
        "DT_INT8; DT_UINT8 with zero points": "DT_INT8；有零点时为 DT_UINT8",
        "the last (-1: a scale for each row) or the one before (-2: for each column)": (
            "最后一个轴（-1：每行一个 scale）或倒数第二个（-2：每列一个）"
        ),
        "DT_FP8E4M3; DT_FP4_E2M1X2 of FP16 and BF16": (
            "DT_FP8E4M3；输入为 FP16、BF16 时可为 DT_FP4_E2M1X2"
        ),
        "pypto.ROUND_DOWN or pypto.ROUND_UP, of the scale": (
            "scale 的舍入：pypto.ROUND_DOWN 或 pypto.ROUND_UP"
        ),
        "the last one, or the one before": "最后一个轴，或倒数第二个",
        "along the last axis True takes rows of whole 256 B and False rows of whole 64 elements; "
        "it changes no bit": (
            "沿最后一个轴时，True 要求每行为 256 字节的整数倍，False 要求为 64 个元素的整数倍；"
            "不改变任何位"
        ),
        # Sorting
        "the greatest first": "最大的在前",
        "of the first element of a row, which the others count on from; 0 if not given": (
            "每行第一个元素的下标，其余依次递增；未指定时为 0"
        ),
        "how many, no more than a row of a tile": "个数，不超过 tile 的一行",
        "False for the least": "False 表示取最小的",
        "MERGE_SORT; the other exists on the 950 only": "MERGE_SORT；另一种只在 950 上有",
        # Products of matrices, convolution
        "[N, C, W], [N, C, H, W] or [N, C, D, H, W], with data everywhere": (
            "[N, C, W]、[N, C, H, W] 或 [N, C, D, H, W]，处处有数据"
        ),
        "[Cout, C / groups, ...] with as many axes, of the same dtype": (
            "[Cout, C / groups, ...]，轴数和 dtype 相同"
        ),
        "the dtype of the operands": "操作数的 dtype",
        "one of 1 to 63 for each axis": "每个轴一个，1 到 63",
        "two of 0 to 255 for each axis, before and after it, smaller than the kernel": (
            "每个轴前后各一个，0 到 255，小于卷积核"
        ),
        "of the channels, 1 to 65535; both channel counts are multiples": (
            "通道的组数，1 到 65535；两个通道数都是它的倍数"
        ),
        "False; upstream does not transpose": "False；上游不支持转置卷积",
        "None or empty; they belong to `transposed`": "None 或空；只用于 `transposed`",
        "a dict of bias_tensor ([Cout], of the dtype; FP32 beside BF16) and relu_type "
        "(ConvReLuType); scale and scale_tensor for none. It is not modified": (
            "字典：bias_tensor（[Cout]，dtype 相同；BF16 时为 FP32）和 relu_type"
            "（ConvReLuType）；不接受 scale 和 scale_tensor。字典不被修改"
        ),
        "[..., M, K], or [..., K, M] with `a_trans`; 2 to 4 dimensions, TILEOP_ND or NZ": (
            "[..., M, K]，`a_trans` 时为 [..., K, M]；2 到 4 维，TILEOP_ND 或 NZ"
        ),
        "[..., K, N], or [..., N, K] with `b_trans`; as many dimensions, of the same dtype": (
            "[..., K, N]，`b_trans` 时为 [..., N, K]；维数和 dtype 相同"
        ),
        "DT_INT32 for DT_INT8 (DT_FP16 with a scale), else DT_FP32, DT_FP16 or DT_BF16, rounded "
        "once from FP32 to the nearest; with a scale DT_INT8 for any, ties to even, clamped": (
            "DT_INT8 时为 DT_INT32（带 scale 时为 DT_FP16），否则为 DT_FP32、DT_FP16 或 DT_BF16，"
            "由 FP32 就近舍入一次；带 scale 时都可为 DT_INT8，平局取偶数，超出时取极值"
        ),
        "a matrix is handed over as its transpose": "矩阵以转置的形式传入",
        "it is handed over as its transpose": "以转置的形式传入",
        "False; upstream refuses a result in NZ": "False；上游不接受 NZ 格式的结果",
        "a dict of bias_tensor, scale or scale_tensor, relu_type; it is not modified": (
            "字典：bias_tensor、scale 或 scale_tensor、relu_type；不被修改"
        ),
        "[..., M, K], or [..., K, M] with `a_trans`; 2 to 4 dimensions": (
            "[..., M, K]，`a_trans` 时为 [..., K, M]；2 到 4 维"
        ),
        "[..., K, N], or [..., N, K] with `b_trans`; as many dimensions. FP8 of either kind meets "
        "FP8 of either kind; FP4 meets FP4": (
            "[..., K, N]，`b_trans` 时为 [..., N, K]；维数相同。"
            "两种 FP8 可以相互搭配；FP4 与 FP4 搭配"
        ),
        "DT_FP32, DT_FP16 or DT_BF16, rounded once from FP32 to the nearest; DT_INT8 with a scale "
        "of `extend_params`": (
            "DT_FP32、DT_FP16 或 DT_BF16，由 FP32 就近舍入一次；"
            "`extend_params` 带 scale 时为 DT_INT8"
        ),
        "DT_FP8E8M0, [M, ceil(K / 64), 2], or [ceil(K / 64), M, 2] with `scale_a_trans`; the same "
        "for every batch": (
            "DT_FP8E8M0，[M, ceil(K / 64), 2]，`scale_a_trans` 时为 [ceil(K / 64), M, 2]；"
            "各 batch 相同"
        ),
        "DT_FP8E8M0, [ceil(K / 64), N, 2], or [N, ceil(K / 64), 2] with `scale_b_trans`": (
            "DT_FP8E8M0，[ceil(K / 64), N, 2]，`scale_b_trans` 时为 [N, ceil(K / 64), 2]"
        ),
        "as of `matmul`; a bias is FP32, FP16 or BF16": ("同 `matmul`；bias 为 FP32、FP16 或 BF16"),
    }
)
"""Whole: an argument without its words here fails the build."""
