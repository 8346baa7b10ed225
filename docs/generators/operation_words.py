"""The words of the pages of operations in English and Chinese: headings, titles, and summaries.

The English summary of an operation is the first line of its docstring; the Chinese one is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class PageWords:
    """The words around the facts of an operation.

    Attributes:
        headings: of prototype, parameters, returns, constraints, fidelity and example.
        of_parameters: the columns of the parameters.
        of_errors: the columns of errors and warnings.
        of_parts: the columns of the parts of an operation.
        group: of a group's page: the sentence above its table, and the table's first column.
        note: under the summary.
    """

    headings: tuple[str, str, str, str, str, str]
    of_parameters: tuple[str, str, str, str]
    of_errors: tuple[str, str]
    of_parts: tuple[str, str, str]
    group: tuple[str, str]
    note: str = ""


ENGLISH: Final = PageWords(
    headings=("Prototype", "Parameters", "Returns", "Constraints", "Fidelity", "Example"),
    of_parameters=("name", "type", "default", ""),
    of_errors=("raises, warns", "on"),
    of_parts=("part", "fidelity", "bound"),
    group=(
        "Their common rules (formats, AutoCast, sums, memory) are in "
        "[Operations around the cast](../../operations.md).",
        "operation",
    ),
)
CHINESE: Final = PageWords(
    headings=("原型", "参数", "返回值", "约束", "保真度", "示例"),
    of_parameters=("名称", "类型", "默认值", ""),
    of_errors=("错误、警告", "触发条件"),
    of_parts=("步骤", "保真度", "误差界"),
    group=(
        "格式、AutoCast、求和、内存等共同规则见[cast 周围的操作](../../operations.md)。",
        "操作",
    ),
    note="约束和保真度的说明取自代码，为英文。",
)

PARAMETERS_ZH: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("input", "a", "self", "input1", "first"), "操作数，dtype 见下"),
        **dict.fromkeys(("other", "input2", "second"), "另一个操作数；形状会广播"),
        "dim": "维度；负数从最后一维数起",
        "keepdim": "是否保留该维度，长度为 1",
        "precision_type": "上游的参数，在 A2/A3 上不改变任何位",
        "dtype": "结果的 dtype",
        "valid_shape": "结果中有数据的部分；未指定时为全部",
        "size": "各维长度，为若干 int 或一个列表",
    }
)
"""Parameters that mean the same in every operation whose docstring does not say them."""

RETURNS_ZH: Final[Mapping[str, str]] = MappingProxyType(
    {
        "A tensor of the operands' dtype and broadcast shape.": "张量，dtype 与操作数相同，"
        "形状为广播后的形状。",
        "A tensor of the input's dtype without the dimension; with `keepdim` it has one element.": (
            "张量，dtype 与输入相同，去掉该维度；指定 `keepdim` 时该维度长度为 1。"
        ),
        "A tensor of the input's dtype and shape.": "张量，dtype 和形状与输入相同。",
        "A new tensor.": "新的张量。",
        "A new tensor of the input's dtype.": "新的张量，dtype 与输入相同。",
        "A BOOL tensor of the broadcast shape.": "BOOL 张量，形状为广播后的形状。",
        "Nothing: it writes to an argument.": "无返回值：写入参数。",
        "An INT32 tensor without the dimension; with `keepdim` it has one element.": (
            "INT32 张量，去掉该维度；指定 `keepdim` 时该维度长度为 1。"
        ),
        "An INT32 tensor of the input's shape.": "INT32 张量，形状与输入相同。",
        "y.": "y。",
        "A new tensor, as long along `dim` as all of them together.": (
            "新的张量，沿 `dim` 的长度为各张量长度之和。"
        ),
        "[N, Cout, ...] of the operands' dtype.": "[N, Cout, ...]，dtype 与操作数相同。",
        "A tensor of the dtype of floats; FP32 of integers.": (
            "张量；操作数为浮点数时 dtype 与其相同，为整数时是 FP32。"
        ),
        "A tensor of the input's shape and dtype.": "张量，形状和 dtype 与输入相同。",
        "A tensor of the input's shape and dtype; INT64 of integers.": (
            "张量，形状和 dtype 与输入相同；输入为整数时 dtype 是 INT64。"
        ),
        "Two tensors; of one operand each is half as long along the last axis.": (
            "两个张量；只有一个操作数时，每个张量沿最后一个轴的长度减半。"
        ),
        "An FP32 tensor of the input's shape.": "FP32 张量，形状与输入相同。",
        "A tensor of the operands' dtype and broadcast shape; FP32 of integers.": (
            "张量，dtype 与操作数相同（整数时是 FP32），形状为广播后的形状。"
        ),
        "A tensor of the input's dtype and shape; FP32 of integers.": (
            "张量，dtype 和形状与输入相同；输入为整数时 dtype 是 FP32。"
        ),
        "A tensor of the input's dtype and the index's shape.": (
            "张量，dtype 与输入相同，形状与下标相同。"
        ),
        "A tensor of the input's dtype, so much shorter along the last axis.": (
            "张量，dtype 与输入相同，最后一个轴按所取的份数变短。"
        ),
        "The input.": "输入本身。",
        "A tensor of the input's dtype.": "张量，dtype 与输入相同。",
        "Two tensors of the operands' shape and dtype.": "两个张量，形状和 dtype 与操作数相同。",
        "A BOOL tensor of the operand's shape.": "BOOL 张量，形状与操作数相同。",
        "[..., M, N].": "[..., M, N]。",
        "A tensor of the shape and dtype.": "张量，形状和 dtype 由参数给出。",
        "An INT64 tensor of the input's shape and one more dimension.": (
            "INT64 张量，形状为输入的形状再加一维。"
        ),
        "A UINT8 tensor of one axis.": "一维 UINT8 张量。",
        "A tensor of the input's dtype beside numbers, but FP32 of INT32 and INT16 to a float "
        "other than 0; of two dtypes the wider one, FP32 of FP16 and BF16.": (
            "张量；指数为数时 dtype 与输入相同，但 INT32、INT16 以非零浮点数为指数时是 FP32；"
            "两个 dtype 不同时取较宽的，FP16 与 BF16 时是 FP32。"
        ),
        "The codes, in the input's shape, and scales in DT_FP8E8M0: [..., ceil(n / 64), 2] along "
        "the last axis, [..., m / 64, n, 2] along the one before.": (
            "编码（形状与输入相同）和 DT_FP8E8M0 的 scale：沿最后一个轴时为 "
            "[..., ceil(n / 64), 2]，沿倒数第二个轴时为 [..., m / 64, n, 2]。"
        ),
        "A tensor of `otype`; each of the three casts rounds to the nearest, ties to even.": (
            "dtype 为 `otype` 的张量；三次转换都就近舍入，平局取偶数。"
        ),
        "An FP32 tensor, twice as long along the last dimension: element and index by turns.": (
            "FP32 张量，最后一维的长度加倍：元素与下标交替排列。"
        ),
        "Two tensors, k long along the last dimension: values, and INT32 indices.": (
            "两个张量，最后一维的长度为 k：值，以及 INT32 下标。"
        ),
        "A tensor of one axis and the dtype.": "一维张量，dtype 由参数给出。",
        "A tensor of the input's dtype without the dimensions.": (
            "张量，dtype 与输入相同，去掉这些维度。"
        ),
    }
)
"""By the English, of every operation."""

TITLES_ZH: Final[Mapping[str, str]] = MappingProxyType(
    {
        "elementwise_functions": "逐元素运算",
        "truth_and_bits": "比较、逻辑与位运算",
        "reduction_functions": "归约",
        "composites": "复合运算与取整",
        "special_functions": "幂与特殊函数",
        "creation": "创建",
        "random_numbers": "随机数",
        "movement": "数据搬运",
        "padding": "填充",
        "quantization": "量化",
        "gathering": "按索引读取",
        "scattering": "按索引写入",
        "additions": "按索引相加与原地相加",
        "sorting": "排序与累计",
        "matrix_functions": "矩阵乘积",
        "convolution": "卷积",
    }
)
"""The titles of groups, by module."""

SUMMARIES_ZH: Final[Mapping[str, str]] = MappingProxyType(
    {
        "abs": "绝对值。",
        "acos": "反余弦（弧度），等于 π/2 减去反正弦；绝对值大于 1 时为 NaN。",
        "acosh": "反双曲余弦；小于 1 时为 NaN。",
        "add": "与张量或数相加。",
        "amax": "沿一个维度的最大元素；有 NaN 时为 NaN，+0 与 -0 之间取 +0。",
        "amin": "沿一个维度的最小元素；有 NaN 时为 NaN，+0 与 -0 之间取 -0。",
        "arange": "生成等间距的数：边界全为整数时是 INT32，有浮点数时是 FP32。",
        "argmax": "沿一个维度的最大元素的 INT32 下标，相等时取第一个；见 `topk`。",
        "argmin": "沿一个维度的最小元素的 INT32 下标；规则同 `argmax`。",
        "argsort": "使元素沿一个维度有序的 INT32 下标；规则同 `topk`。",
        "asin": "反正弦（弧度）；绝对值大于 1 时为 NaN，两种零都得 +0。",
        "asinh": "反双曲正弦；绝对值小于 0.000244 时取 abs(x) 本身，两种零都得 +0。",
        "atan": "反正切（弧度）；两种零都得 +0，inf得 π/2。",
        "atan2": "点 (x, y) 的角度（弧度），在 -π 与 π 之间。",
        "atanh": "反双曲正切；1 和 -1 得 inf，超出时为 NaN。",
        "atomic_add": "把张量原地加到另一个张量的一部分，多个核可能同时相加。",
        "axpy_": "原地计算 y = alpha * x + y，在 FP32 中计算；FP16 在最后舍入。",
        "bitwise_and": "按位与。",
        "bitwise_left_shift": "INT16 或 UINT16 左移；移位数小于 0 或大于 16 时得 0。",
        "bitwise_not": "按位取反；BOOL 为逻辑非。",
        "bitwise_or": "按位或。",
        "bitwise_right_shift": "INT16 或 UINT16 右移，INT16 保留符号；"
        "移位数小于 0 或大于 16 时按 16。",
        "bitwise_xor": "按位异或。",
        "cbrt": "立方根：绝对值的 1/3 次幂，符号与元素相同。",
        "ceil": "不小于元素的最小整数值；零都得 +0。",
        "ceil_div": "不小于 INT32 之商的最小整数，在 FP32 中相除。",
        "clip": "minimum(maximum(input, min), max)；没有边界时为输入本身。",
        "clone": "复制张量。",
        "concat": "沿一个维度依次拼接张量。",
        "conv": "沿一个、两个或三个轴对特征图做卷积。",
        "copysign": "取一个操作数的绝对值和另一个的符号，也取 -0 的符号；整数在 FP32 中计算。",
        "cos": "角度（弧度）的余弦，在 FP32 中计算；inf得 NaN。见 `sin`。",
        "cosh": "双曲余弦，由 e**(x / 2) 和 e**(-3x / 2) 得出；inf得 inf。",
        "cumprod": "沿一个维度到每个元素为止的乘积；位取决于 tile 形状。",
        "cumsum": "沿一个维度到每个元素为止的和；位取决于 tile 形状。",
        "deinterleave": "最后一轴上偶数位置和奇数位置的元素；输入是一个张量或并排的两个。",
        "dequantize": "转换到 FP32，减去零点，乘以缩放因子。",
        "div": "除以张量或数；整数的商是 FP32。",
        "eq": "BOOL：相等为真；NaN 为假。",
        "erf": "误差函数：x 限制在 -3.92 与 3.92 之间的多项式之商。",
        "erfc": "1 减误差函数：e**(-x * x) 乘以 abs(x) 的多项式之商。",
        "exp": "e 的幂；`precision_type` 在 A2/A3 上不改变任何位。",
        "exp2": "2 的幂：在 FP32 中计算 exp(x * log(2))；整数的结果是 FP32。",
        "expand_clone": "沿长度为 1 的维度重复张量。",
        "expand_exp_dif": "差的 e 次幂，差先舍入：FP16 舍入到 FP16。",
        "expm1": "exp(x) - 1，在 FP32 中计算；整数的结果是 FP32。",
        "fillpad": "用一个数填充一维或二维张量中没有数据的部分。",
        "floor": "不大于元素的最大整数值；零都得 +0。",
        "floor_div": "不大于商的最大整数；零都得 +0。",
        "fmod": "input - trunc(input / other) * other，商和乘积都舍入。",
        "full": "用一个数生成张量；BF16 和 FP16 由 FP32 就近舍入一次。",
        "gather": "沿一个维度读取：两维中的最后一维上 out[i][j] = input[i][index[i][j]]。",
        "gathermask": "按固定模式取最后一轴的元素。",
        "gcd": "最大公约数；两个零得 0。",
        "ge": "BOOL：大于或等于为真。",
        "greater": "BOOL：大于为真。",
        "gt": "BOOL：大于为真。",
        "hypot": "两个平方之和的平方根。",
        "index_add": "按下标加切片：维度 0 上 "
        "out[index[i]] = input[index[i]] + alpha * source[i]。",
        "index_add_": "原地的 `index_add`：返回输入本身，其内容为结果。",
        "index_add__ub": "原地的 `index_add_ub`：返回输入本身，其内容为结果。",
        "index_add_ub": "在 UB 中的 `index_add`：各项按下标的顺序依次相加。",
        "index_put_": "写入输入：input[indices[0][i], indices[1][i], ...] = values[i]。",
        "index_select": "读取整个切片：该维度被下标的各维取代。",
        "interleave": "两个张量的元素沿最后一轴交替排列，分为前半和后半两个结果。",
        "isfinite": "BOOL：inf和 NaN 为假，其余为真；整数为真。",
        "isnan": "BOOL：只有 NaN 为真。",
        "le": "BOOL：小于或等于为真。",
        "log": "自然对数；`precision_type` 在 A2/A3 上不改变任何位。",
        "log10": "以 10 为底的对数：自然对数除以最接近 ln 10 的 FP32 数。",
        "log1p": "x + 1 的对数，在 FP32 中计算：x + 1 为 1 时取 x，"
        "否则取 log(x + 1) * x / (x + 1 - 1)。",
        "log2": "以 2 为底的对数：自然对数除以最接近 ln 2 的 FP32 数。",
        "logical_and": "BOOL：两者都不为零时为真；dtype 可以不同，NaN 为真。",
        "logical_not": "BOOL：为零时为真；NaN 为假。",
        "lrelu": "元素不小于 0 时取自身，否则乘以斜率。",
        "lt": "BOOL：小于为真。",
        "matmul": "矩阵乘；前面的维度是 batch，会广播。",
        "maximum": "两者中较大的，+0 与 -0 之间取 +0；与整数在一起的浮点数去掉小数部分。",
        "minimum": "两者中较小的，+0 与 -0 之间取 -0；与整数在一起的浮点数去掉小数部分。",
        "mul": "与张量或数相乘。",
        "ne": "BOOL：小于或大于为真；按厂商的表，NaN 为假。",
        "neg": "乘以 -1：0 变成 -0。",
        "normal": "正态分布的随机数，按 Box-Muller 的步骤在 FP32 中计算。",
        "one_hot": "INT64：在新的最后一维上，元素所指的位置为 1，其余为 0。",
        "ones": "生成全 1 的张量，未指定 dtype 时为 FP32。",
        "pack": "所有元素的字节排在一个轴上，每个元素低字节在前，UINT8。",
        "pad": "用一个数向右、向下加长最后两维。",
        "permute": "改变维度的顺序。",
        "pow": "元素的幂；`precision_type` 在 A2/A3 上不改变任何位。",
        "prelu": "元素大于 0 时取自身，否则乘以第二轴上对应的权重。",
        "prod": "沿一个维度的乘积；浮点数的位取决于该维度上的 tile 形状。",
        "quant_mx": "量化为 MX：沿一个轴每 32 个元素共享一个 2 的幂，即 scale。",
        "quantize": "乘以缩放因子，加零点，经 FP32、INT32、FP16 转换到 8 位并饱和。",
        "reciprocal": "1 除以元素；`precision_type` 在 A2/A3 上不改变任何位。",
        "relu": "与 +0 之间较大的。",
        "remainder": "input - floor(input / other) * other，符号与除数相同。",
        "reshape": "按整个形状的行优先顺序改变形状。",
        "rms_norm": "沿最后一维计算 x / sqrt(mean(x * x) + epsilon) * gamma，在 FP32 中。",
        "round": "最近的 10**-decimals 的倍数，平局取偶数。",
        "rsqrt": "1 除以平方根，都在 FP32 中；`precision_type` 在 A2/A3 上不改变任何位。",
        "scaled_mm": "MX 矩阵乘：沿 K 每 32 个编码有一个 scale。",
        "scatter": "沿一个维度写入：两维中的最后一维上 out[i][index[i][j]] = src[i][j]。",
        "scatter_": "原地的 `scatter`：返回输入本身，其内容为结果。",
        "scatter_update": "写入行：两维时 out[index[i][j]] = src[i * s + j]，s = index.shape[1]。",
        "sigmoid": "1 / (exp(-x) + 1)，在 FP32 中。",
        "sign": "1、0 或 -1：元素限制在格式的最小正负数之间，再经乘法变成 1。",
        "signbit": "BOOL：负数和 -0 为真；按上游文档，NaN 为假。",
        "sin": "角度（弧度）的正弦，在 FP32 中计算；inf得 NaN。",
        "sinh": "双曲正弦：小于 0.48 时用多项式，否则由 e**(x / 2) 和 e**(-3x / 2) 得出。",
        "softmax": "沿一个维度计算 exp(x - max) / sum(exp(x - max))，在 FP32 中。",
        "sort32": "最后一维每 32 个元素排序，最大的在前；每个元素旁边是它的下标。",
        "sqrt": "平方根；`precision_type` 在 A2/A3 上不改变任何位。",
        "sub": "减去张量或数；第一个操作数是张量。",
        "sum": "沿一个维度的和；浮点数的位取决于该维度上的 tile 形状。",
        "tan": "角度（弧度）的正切；inf得 NaN。",
        "tanh": "双曲正切：小于 0.55 时用多项式，否则为 (e**2x - 1) / (e**2x + 1)。",
        "topk": "每行中最大或最小的元素，按顺序排列，并给出其 INT32 下标。",
        "transpose": "交换两个维度；四维时只能交换上游支持的维度。",
        "tril": "最后两轴的下三角：乘以 1，其上乘以 0。",
        "triu": "最后两轴的上三角：乘以 1，其下乘以 0。",
        "trunc": "去掉小数部分；零都得 +0。",
        "uniform": "0 到 1（不含）的随机数，十轮 Philox 4x32。",
        "unpack": "由一个轴上的字节组成某个 dtype 的元素，低字节在前。",
        "unsqueeze": "插入长度为 1 的维度；负数从最后一维之后数起。",
        "var": "在若干维度上计算 sum((x - mean)**2 / (n - correction))，"
        "在 FP32 中；n - correction 不小于 0。",
        "where": "BOOL 张量为真处取 `input`，否则取 `other`，逐位复制。",
        "zeros": "生成全 0 的张量，未指定 dtype 时为 FP32。",
    }
)
"""The first sentence of each operation's page."""
