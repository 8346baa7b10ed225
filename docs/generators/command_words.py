"""The Chinese words of the command's arguments and options, by their English help.

Help that lists names is a pattern, so that a new name needs no new words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

OPTIONS_ZH: Final[Mapping[str, str]] = MappingProxyType(
    {
        # Casts
        "The array to cast.": "要转换的数组。",
        "Destination, such as DT_BF16.": "目标类型，如 DT_BF16。",
        "Destination, such as DT_INT8.": "目标类型，如 DT_INT8。",
        "Destination, such as int8 or DT_INT8.": "目标类型，如 int8 或 DT_INT8。",
        "Source, such as DT_FP32.": "源类型，如 DT_FP32。",
        "Source, such as float16 or DT_FP16.": "源类型，如 float16 或 DT_FP16。",
        "Dtype stored in the file: DT_BF16, DT_INT4.": "文件中存储的 dtype：DT_BF16、DT_INT4。",
        "Round mode, such as CAST_RINT; CAST_NONE: default.": (
            "舍入模式，如 CAST_RINT；CAST_NONE 为默认模式。"
        ),
        "Round mode, such as CAST_RINT.": "舍入模式，如 CAST_RINT。",
        "Round mode of the pypto rows; CAST_NONE: default.": (
            "pypto 各行的舍入模式；CAST_NONE 为默认模式。"
        ),
        "ON clamps integers out of range, OFF keeps low bits.": (
            "ON：超出范围的整数取极值；OFF：保留低位。"
        ),
        "ON clamps integers out of range.": "ON：超出范围的整数取极值。",
        "OFF takes more vector work on some pairs.": "OFF：某些组合需要更多的向量指令。",
        "Tile shape; the planner chooses if not set.": "TileShape；未指定时由切分模块选择。",
        "Treat replaced modes and unaligned tiles as errors.": (
            "被替换的模式和未对齐的 tile 视为错误。"
        ),
        "CTRL[48]: keep infinities and NaN, or saturate.": "CTRL[48]：保留 inf 和 NaN，或饱和。",
        "CTRL[50] of 950: keep NaN in FP8 that saturates.": (
            "950 的 CTRL[50]：饱和的 FP8 保留 NaN。"
        ),
        "CTRL[60] of 950: --inf-nan decides on floats, or --satmode.": (
            "950 的 CTRL[60]：浮点数由 --inf-nan 决定，或由 --satmode 决定。"
        ),
        "Follow the device that device-check measured.": "按 device-check 实测的设备模拟。",
        "Write the result there.": "把结果写入该文件。",
        "Replace the output file if it exists.": "输出文件已存在时替换。",
        "Print JSON instead of text.": "输出 JSON，不输出文本。",
        "0.1, 0x1.8p3, inf, nan, or code:0x3dcccccd.": (
            "数值：0.1、0x1.8p3、inf、nan 或 code:0x3dcccccd。"
        ),
        "0.1, 0x1.8p3, inf, nan, or code:0x3c00.": (
            "数值：0.1、0x1.8p3、inf、nan 或 code:0x3c00。"
        ),
        "Count the codes of an 8/16-bit source that differ.": (
            "统计 8 位或 16 位源类型中结果不同的编码。"
        ),
        "Of the one rounding that is wanted; CAST_RINT, to HF8 CAST_ROUND, if not given.": (
            "所需的一次舍入的模式；未指定时为 CAST_RINT，目标为 HF8 时为 CAST_ROUND。"
        ),
        "Only values between, such as --values=-128:127.": (
            "只考虑该范围内的值，如 --values=-128:127。"
        ),
        "Steps of a route, at most.": "转换链的最多步数。",
        "Judge this chain, such as FP16:RINT,INT8:RINT, instead of finding some.": (
            "判断这条转换链（如 FP16:RINT,INT8:RINT），不查找。"
        ),
        "Count the differing elements of a .npy too.": "另外统计 .npy 中结果不同的元素。",
        "Show the best on all codes of a 32-bit source.": (
            "在 32 位源类型的全部位模式上检验最好的转换链。"
        ),
        "Every pair and mode, as one page; goes with --html.": (
            "全部组合与模式，写成一页；与 --html 同用。"
        ),
        "Write the page of --all there.": "把 --all 的页面写入该文件。",
        "Such as 0-3,8; if not set all, in a picture 4.": (
            "核，如 0-3,8；未指定时为全部，图片中为 4 个。"
        ),
        "Write a trace for ui.perfetto.dev.": "写出供 ui.perfetto.dev 打开的 trace。",
        "Draw the timeline there.": "把时间线画入该文件。",
        "List every instruction.": "列出每条指令。",
        # Kernels
        "A Python program.": "Python 程序。",
        "What it is given.": "传给程序的参数。",
        "Write the tensors of each operation of kernels to a new folder.": (
            "把算子中每个操作的张量写入新目录。"
        ),
        "Write the planned timeline of each kernel where upstream's simulation does: "
        "output_.../CostModelSimulationOutput/merged_swimlane.json, for ui.perfetto.dev.": (
            "把每个算子规划的时间线写到上游模拟器所写的位置："
            "output_.../CostModelSimulationOutput/merged_swimlane.json，供 ui.perfetto.dev 打开。"
        ),
        "Have torch_npu and .npu() mean the CPU.": "使 torch_npu 和 .npu() 指 CPU。",
        "Hide a pypto that is installed.": "屏蔽已安装的 pypto。",
        "A Python file and a kernel in it.": "Python 文件和其中的一个算子。",
        "Arrays by the names of the parameters; outputs may be left out.": (
            "以参数名命名的数组；可以不含输出。"
        ),
        "Arrays by the names of the parameters.": "以参数名命名的数组。",
        "Draw what is undecided there.": "把结果不唯一的部分画入该文件。",
        "Write what a device may give, for diff --bounds.": (
            "写出设备可能给出的范围，供 diff --bounds 使用。"
        ),
        "Write the outputs, BF16 as uint16 codes.": "写出各输出，BF16 写为 uint16 编码。",
        "Another chip, whose certainty is shown beside.": "另一种芯片，并列显示其唯一性。",
        "Try what would settle N causes.": "尝试使 N 个成因的结果唯一的办法。",
        "A dump of upstream's compiler instead.": "改用上游编译器的 dump。",
        "Choose this kernel of the dump's.": "选择 dump 中的这个算子。",
        "Shape of a tensor, where it is open.": "未确定的张量形状。",
        "Tile shape in place of all of as many entries, or of that line's; of more entries than a "
        "tensor has dimensions the leading ones count.": (
            "替换所有项数相同的 TileShape，或该行的 TileShape；项数多于张量维数时，取前面的若干项。"
        ),
        "Compare: tile=N,N, release=NAME, chip=NAME, FILE::KERNEL, or a dump's DIR.": (
            "比较对象：tile=N,N、release=NAME、chip=NAME、FILE::KERNEL，或 dump 的目录。"
        ),
        "Compare with this timeline of the dump's run: of a device, or of upstream's simulator.": (
            "与 dump 运行时的时间线比较：设备的，或上游模拟器的。"
        ),
        "Draw UB and the timeline there.": "把 UB 和时间线画入该文件。",
        "Exit code 1 if it does not fit in UB.": "UB 中放不下时退出码为 1。",
        "A new folder for the dump; required.": "存放 dump 的新目录；必填。",
        "The interpreter of an environment with the wheel.": "装有 wheel 的环境的 Python 解释器。",
        "Limit of time in seconds.": "时间上限（秒）。",
        "A kernel to compile and check.": "要编译并检查的算子。",
        "Compare with this kernel at tensor level; a name alone chooses of a dump's, and each "
        "output is expected to be written whole.": (
            "与该算子的张量级结果比较；只写名称时从 dump 中选择，且要求每个输出都被完整写入。"
        ),
        "Compare with this one's results: 0.2.0, head; the wheel's own if not set.": (
            "与该 release 的结果比较：0.2.0、head；未指定时为 wheel 自己的 release。"
        ),
        "Treat a doubt as an error.": "存疑之处视为错误。",
        # Sources
        "Such as exp; all operations if not set.": "操作名，如 exp；未指定时为全部操作。",
        "Python or C++, or folders of them.": "Python 或 C++ 文件，或其目录。",
        "Findings of --format json that are not shown.": "--format json 的检查结果，不再显示。",
        # Tile shapes
        "A kernel in place of a cast.": "以算子代替转换。",
        "The tensor's, such as 32,127,128,64; of a kernel NAME=N,N.": (
            "张量的形状，如 32,127,128,64；算子则写 NAME=N,N。"
        ),
        "Of a kernel: limit of time in seconds, 1 or more.": "用于算子：时间上限（秒），不小于 1。",
        "Of a kernel: processes; all cores if not given.": "用于算子：进程数；未指定时用全部核。",
        "Of a kernel: keep planned candidates there; a run resumes from them.": (
            "用于算子：保存已规划的候选，供续跑。"
        ),
        "Of a kernel: print the lines to paste, alone.": "用于算子：只打印可粘贴的代码行。",
        "Least time, least UB near it, or least bad over all cost sets.": (
            "时间最少、时间相近时 UB 最少，或在所有成本参数下最坏情况损失最小。"
        ),
        "Candidates to show.": "显示的候选数。",
        "Leave out what makes so many tiles.": "略去 tile 数达到该值的候选。",
        "Write a report with figures there.": "把带图的报告写入该文件。",
        "Write a row per candidate there; -: print.": "每个候选写一行；- 表示打印。",
        "Write the result there as JSON.": "把结果以 JSON 写入该文件。",
        "Write the candidates there for upstream's tuner.": "把候选写入该文件，供上游调优器使用。",
        "Where the kernel that --config is for calls set_vec_tile_shapes.": (
            "--config 对应的算子调用 set_vec_tile_shapes 的位置。"
        ),
        "Replace files that exist.": "替换已存在的文件。",
        "Shapes, pairs, modes, chips; or kernels.": "形状、组合、模式、芯片；或算子。",
        "Processes; all cores if not given.": "进程数；未指定时用全部核。",
        "Run on this Dask cluster instead; it must be trusted.": (
            "改在该 Dask 集群上运行；集群必须可信。"
        ),
        "Write a row per candidate there, too.": "另外把每个候选写成一行。",
        "Replace the CSV if it exists.": "CSV 已存在时替换。",
        # Models
        "A file of safetensors, .npz, .npy, torch.save or GGUF, or a directory of safetensors "
        "with its index.": (
            "safetensors、.npz、.npy、torch.save 或 GGUF 文件，或带索引的 safetensors 目录。"
        ),
        "DT_BF16, or lm_head=DT_FP16 for some tensors; repeat.": (
            "DT_BF16；部分张量写作 lm_head=DT_FP16；可重复。"
        ),
        "Settings; options go over them.": "设置文件；命令行选项优先。",
        "Change only tensors with this; repeat.": "只处理名称含此文本的张量；可重复。",
        "Leave tensors with this; repeat.": "不处理名称含此文本的张量；可重复。",
        "The same, as in 'norm|router'; repeat.": "同上，如 'norm|router'；可重复。",
        "Make codes with scales: int8, fp8, mxfp8, mxfp4.": (
            "生成带 scale 的编码：int8、fp8、mxfp8、mxfp4。"
        ),
        "A scale for each channel, tensor or block of 128x128.": (
            "每个通道、张量或 128x128 的块一个 scale。"
        ),
        "Axis of the channels; 0: one scale a row.": "通道所在的轴；0 表示每行一个 scale。",
        "absmax, percentile:99.9 or mse.": "absmax、percentile:99.9 或 mse。",
        "Without zero points, or with them.": "不带零点，或带零点。",
        "Quantise tensors of N dimensions; 2 if not given; repeat.": (
            "量化 N 维的张量；未指定时为 2；可重复。"
        ),
        "Tile shape of tensors with as many dimensions; repeat.": (
            "维数相同的张量的 TileShape；可重复。"
        ),
        "Of all blocks together; 256MiB.": "全部数据块共用的内存；256MiB。",
        "Threads; all cores if not given.": "线程数；未指定时用全部核。",
        "Write a directory with files of at most this.": "写成目录，其中每个文件不超过该大小。",
        "Measure what the casts do.": "统计转换造成的变化。",
        "Show what would be written, copied, replaced and refused; exit code 1 if anything would "
        "be refused.": "显示会写入、复制、替换和拒绝的内容；有会被拒绝的则退出码为 1。",
        "Write the report as a page there.": "把报告写成页面。",
        # Results and devices
        "A model file, directory or array.": "模型文件、目录或数组。",
        "Another one; the kinds may differ.": "另一方；种类可以不同。",
        "Written by certainty --bounds: report elements outside the intervals.": (
            "certainty --bounds 写的文件：报告超出区间的元素。"
        ),
        "A file or folder of a device's.": "设备结果的文件或目录。",
        "What it should be, in the same dtype.": "期望的结果（golden），dtype 相同。",
        "The same in a wider dtype, for 2.1.": "更宽 dtype 的期望结果，用于 2.1。",
        "The kernel that gave it.": "给出该结果的算子。",
        "The kernel's inputs, by name.": "算子的输入，按名称。",
        "The output that RESULT is; more outputs, each in a file.": (
            "RESULT 对应的输出；更多输出时每个一个文件。"
        ),
        "Of files that do not say it.": "文件中没有写明的 dtype。",
        "Of .bin files.": ".bin 文件的形状。",
        "Try every two hypotheses together too.": "另外尝试每两个假设的组合。",
        "Write the verdicts there.": "把判断写入该文件。",
        "Write a test case for each output.": "每个输出写一个测试用例（JUnit）。",
        "Write the least part of the inputs that differs; a script.": (
            "写出仍有差异的最小输入；为一个脚本。"
        ),
        "Judge a kernel that needs more, as 8G, in parts.": (
            "需要更多内存（如 8G）的算子分块判断。"
        ),
        "Such as fp32-fp16; all if not given.": "组合，如 fp32-fp16；未指定时为全部。",
        "Such as CAST_RINT; all of the pair if not given.": (
            "模式，如 CAST_RINT；未指定时为该组合的全部模式。"
        ),
        "All 2^32 codes of FP32 and INT32 sources.": "源类型 FP32 和 INT32 的全部 2^32 个位模式。",
        "Also SaturationMode.OFF and saturated overflow.": "也包括 SaturationMode.OFF 和溢出饱和。",
        "What is compared with the definition.": "与定义比较的引擎。",
        "Write certificates there; an interrupted run resumes. Where there is one of the same "
        "codes, the engine has to give its digests without the definition.": (
            "写出验证证书；中断后可续跑。已有同样编码的证书时，引擎须给出相同的摘要，不再运行定义。"
        ),
        "Replace certificates.": "替换验证证书。",
        "Compute the digests of the certificates there by the engine alone where its code has "
        "changed since (all with --force), and note it in them.": (
            "引擎代码改动之后，只用引擎重算各证书的摘要（--force 时为全部），并记入证书。"
        ),
        "Write the facts there.": "把测得的事实写入该文件。",
        "All 2^32 codes of 32-bit sources.": "32 位源类型的全部 2^32 个位模式。",
        "One part alone.": "只做一个部分。",
        "Go on with the file of a check that ended early.": "从提前结束的检查的文件继续。",
        "Show steps and duration; needs no device.": "显示步骤和时长；不需要设备。",
        "Of the dry run; Ascend910B3 if not set.": "试运行所用的芯片；不设时为 Ascend910B3。",
        "Seconds without an answer that end a step.": "多少秒没有应答即结束一步。",
        "Facts file of device-check.": "device-check 的事实文件。",
        "Write the measured cost set there.": "写出实测的成本参数。",
    }
)
"""Whole texts; a heading above tells the command of the first of them."""

_LISTS: Final = (
    (r"One of (.+), or a file; (\S+) if not set\.", r"可选 {}，或文件；未指定时为 {}。"),
    (r"One of (.+); (\S+) if not set\.", r"可选 {}；未指定时为 {}。"),
    (r"One of (.+)\.", "可选 {}。"),
    (r"Of a kernel: one of (.+)\.", "用于算子：可选 {}。"),
    (r"Count between two of (.+)\.", "统计其中两者之间的不同：{}。"),
    (r"Of 950, where texts disagree; NAME is (.+)\.", "950 的文档互相矛盾之处；NAME 为 {}。"),
)
"""A text that lists names, and the Chinese around them."""


def option_zh(text: str) -> str:
    """The Chinese of an option's help.

    Raises:
        LookupError: it has none.
    """
    if text in OPTIONS_ZH:
        return OPTIONS_ZH[text]
    for pattern, words in _LISTS:
        if found := re.fullmatch(pattern, text):
            return words.format(*(part.replace(", ", "、") for part in found.groups()))
    raise LookupError(f"an option has no Chinese words in command_words.py: {text}")
