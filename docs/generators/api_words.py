"""The Chinese words of the reference: the first sentence of each name, and the text of a page.

Errors and warnings have theirs in `error_words`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

TITLES_ZH: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Tensors": "张量",
        "Dtypes": "数据类型",
        "Operations": "操作",
        "Tiling": "切分",
        "Kernels": "算子",
        "Inspection": "查看与分析",
        "Schedules": "任务调度",
        "Tuning": "调优",
        "Models": "模型",
        "Testing": "测试",
        "Device": "设备",
        "AscendC's objects": "AscendC 对象",
    }
)

TEXTS_ZH: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Operations": "cast 周围的每个操作都有单独的页面：{operations}。",
        "Schedules": "各部分的含义见[算子与任务](../kernel_tasks.md)，"
        "如何规划算子见[从操作到任务](../operations_to_tasks.md)。"
        "只有运行时才知道的数（如 DYNAMIC 轴的长度）写成运算符和操作数的元组："
        '`("extent", "x", 0)`。`Kernel.schedule` 规划 schedule；命令有 '
        "[`pypto-cast schedule`](command.md#schedule)、[`pypto-cast compile`](command.md#compile) "
        "和 [`pypto-cast check-schedule`](command.md#check-schedule)；"
        "测试中的检查见[测试](testing.md)。\n\n"
        "一个 tile 操作在这里是一步，在设备上是若干条指令。下表列出其中的指令，"
        "每种列一次，不带类型后缀；实际执行哪些，取决于格式和形状。"
        "内容取自上游 r0.2.0 和 pto-isa dd3cb0fb 的源码，未经测量；"
        "不含 mask、flag 和 barrier。没有列出的 opcode，其指令未知。\n\n{opcodes}",
        "Models": "[`pypto-cast checkpoint`](command.md#checkpoint) 转换整个模型；"
        "下面是模型来源框架的转换。",
    }
)
"""By the title of a group; links and table fill the marks."""

_SETTINGS: Final = "设置上游的{}（本上下文）；不影响任何位。"
_SETTINGS_READ: Final = "本上下文中上游的{}，包括默认值。"
_OPTION_GROUPS: Final = {
    "codegen_options": "代码生成选项",
    "debug_options": "调试选项",
    "host_options": "主机编译选项",
    "pass_options": "pass 选项",
    "verify_options": "pass 校验选项",
}

_SENTENCES: Final[Mapping[str, str]] = {
    **{f"set_{name}": _SETTINGS.format(text) for name, text in _OPTION_GROUPS.items()},
    **{f"get_{name}": _SETTINGS_READ.format(text) for name, text in _OPTION_GROUPS.items()},
    "set_cube_tile_shapes": _SETTINGS.format(" m、k、n 与 enable_split_k"),
    "get_cube_tile_shapes": _SETTINGS_READ.format(" m、k、n 与 enable_split_k"),
    "set_matrix_size": _SETTINGS.format("矩阵大小"),
    "set_print_options": _SETTINGS.format("打印选项"),
    "set_semantic_label": _SETTINGS.format("标签"),
    "set_conv_tile_shapes": "设置本上下文中 `pypto.conv` 的 tile；求和的顺序可能取决于它。",
    "get_conv_tile_shapes": _SETTINGS_READ.format(" `pypto.conv` 的 tile"),
    # Tensors
    "Tensor": "`cast` 接受和返回的 1 到 4 维张量。",
    "tensor": "`cast` 接受和返回的 1 到 4 维张量。",
    "from_numpy": "由数组构造张量，不复制；dtype 由数组决定。",
    "from_torch": "由 torch 的 CPU 张量构造张量，不复制，支持 BF16。",
    "from_dlpack": "通过 DLPack 由其他库的数组构造张量，不复制。",
    "from_nz": "读取以 fractal 排列的矩阵。",
    "to_nz": "把矩阵排列成 fractal，以零填充。",
    "LoopIndex": "`pypto.loop` 给出的下标，知道循环的首尾。",
    "max": "两个 int、循环下标、维度或符号中较大的。",
    "min": "两个 int、循环下标、维度或符号中较小的。",
    "SatStatus": "一组条件的真假：成立、自相矛盾或未知。",
    "StatusType": "注解中代替维度长度的标记。",
    "Symbol": "只有名称的数，或由其组成的表达式；在注解中是各次调用不同的维度。",
    "symbolic_scalar": "上游作为表达式处理的数，带有上游的 `min` 和 `max`。",
    "SymbolicScalar": "上游作为表达式处理的数，带有上游的 `min` 和 `max`。",
    "TensorAnnotation": "`pypto.Tensor[[shape], dtype, ...]` 对参数的要求。",
    # Dtypes
    "DataType": "张量的元素类型，名称和编号与上游一致。",
    "CastMode": "`cast` 的舍入模式；CAST_NONE 取该对数据类型的默认模式。",
    "SaturationMode": "目标整数类型放不下的值如何处理。",
    "TileOpFormat": "张量的内存排布；cast 接受 ND。",
    "Element": "带有 dtype 的数。",
    "element": "带有 dtype 的数。",
    "AtomicRMWMode": "原子操作合并数值的方式。",
    "AtomicType": "共享内存接收数值的方式。",
    "bytes_of": "一个元素的字节数，按上游的算法：不足 8 位的类型按 1 计。",
    "CachePolicy": "对缓存的提示。",
    "CompStage": "上游编译器停止的阶段。",
    "DequantScaleRoundingMode": "scale 舍入到 2 的幂的方式。",
    "OpType": "`pypto.cmp` 的比较方式。",
    "OutType": "比较结果的形式。",
    "PrecisionType": "函数的计算方式：一条指令，或多条指令以求更精确。",
    "ReduceMode": "各任务的结果在 GM 中合并的方式。",
    "ReLuType": "matmul 的负结果如何处理。",
    "ScatterMode": "分散写入的值与原值合并的方式。",
    "TopKAlgo": "求最大元素的算法。",
    "TransMode": "matmul 的 FP32 操作数的舍入。",
    # Operations
    "cast": "转换到另一种 dtype，结果与该芯片系列的公开资料逐比特一致。",
    "routes": "查找两种 dtype 之间由原生转换组成的转换链，并逐一判断。",
    "Routes": "两种 dtype 之间的转换链，最好的在前。",
    "Route": "由原生转换组成的转换链及其判断。",
    "ceildiv": "a / b 向上取整，`a` 不小于 0，`b` 为正；算法与上游一致。",
    "ChainCheck": "转换链与一次舍入的比较。",
    "check_chain": "统计转换链与一次舍入结果不同的源编码。",
    "RouteStep": "转换链的一步。",
    "Verdict": "转换链与一次舍入的比较结论。",
    # Tiling
    "set_vec_tile_shapes": "设置本上下文中此后的转换所用的 TileShape。",
    "options": "在 `with` 语句体或被装饰的函数中更改选项。",
    "get_vec_tile_shapes": "本上下文的 TileShape；未设置时为空。",
    "reset_options": "清除本上下文的 TileShape 和提示，与上游的 `reset_options` 一致。",
    "Candidate": "一个合法的 TileShape，及其估计和名次。",
    "Chip": "tile 程序所依赖的芯片参数。",
    "CostParameters": "一组有名称的成本参数。",
    "get_global_config": "上游的一项进程级设置，或其默认值。",
    "get_pass_config": "一个 pass 的设置；没有时为 `default_value`。",
    "get_pass_configs": "一个 pass 的全部设置；没有时为所有 pass 的设置。",
    "get_pass_default_config": "没有单独设置的 pass 的设置；未知时为 `default_value`。",
    "Options": "cast 从上下文读取的选项。",
    "PassConfigKey": "`set_pass_config` 接受的设置项。",
    "PassConfigs": "上游编译器一个 pass 的设置，供查看。",
    "Release": "上游的一个 release，由与其他 release 不同的事实组成。",
    "set_global_config": "保存上游的一项进程级设置；这里没有任何东西依赖它。",
    "set_pass_config": "保存一个 pass 的设置；这里不运行上游的 pass，没有任何东西依赖它。",
    "set_pass_default_config": "保存没有单独设置的 pass 的设置；这里没有任何东西依赖它。",
    "TilePlan": "写出指令之前，关于一次转换的全部决定。",
    # Kernels
    "jit": "把函数变成算子：`@pypto.jit` 或 `@pypto.jit(runtime_options={...})`。",
    "Kernel": "由 `jit` 变成算子的函数。",
    "loop": "对每个下标运行 `for` 语句体，与 `range` 相同。",
    "view": "取张量的一部分。",
    "assemble": "把一个或多个张量写入另一个张量的若干部分，其余不变。",
    "function": "把 `with` 语句体作为算子运行，张量来自 `from_torch` 或 `from_numpy`。",
    "loop_unroll": "按区段运行循环体，最长的区段在前。",
    "cond": "`if` 语句的条件；上游要求在 `jit` 之外这样包装。",
    "UBOverflow": "某一时刻 UB 中的内容超出容量。",
    "fit_report": "算子的一次调用能否放进 UB；放不下时给出原因和办法。",
    "FitReport": "算子的 UB：放不下的时刻、造成者和办法。",
    "FitChange": "对算子的一种修改（已规划），及修改后所需的 UB。",
    "as_pypto": "使 `import pypto` 及其子模块的导入得到本包。",
    "ConfigScope": "调用 `get_current_scope` 时本上下文的提示。",
    "get_current_scope": "本上下文的提示，供查看。",
    "get_options_tree": '本上下文的全部提示，每行一项，如 "pass.enable_slice: False"。',
    "is_loop_begin": "循环的第一次迭代为 1，其余为 0。",
    "is_loop_end": "循环的最后一次迭代为 1，其余为 0。",
    "OtherRelease": "算子在另一个 release 下的输出，与当前 release 并列。",
    "pass_verify_print": "打印运行中的算子的张量和数；不影响结果。",
    "pass_verify_save": "保存运行中的算子的张量；不影响结果。",
    "Remedy": "一个操作造成的不唯一结果，以及使其唯一的办法。",
    "set_options": "一次设置上游的多组选项，与各自的设置函数相同。",
    "set_verify_golden_data": "接收上游编译器用来比较各 pass 的数据；这里不做比较。",
    "Signature": "算子的参数。",
    "TaskEstimate": "一次调用的全部任务的估计周期数，按上游模拟器的算法。",
    "trace_values": "打印一个元素经过算子各操作的过程及其区间。",
    "TunedKernel": "一个算子的 TileShape 排名。",
    "ValueTrace": "一个元素的过程。",
    # Inspection
    "Certainty": "算子的结果，以及其中哪些在设备上唯一。",
    "OutputCertainty": "一个输出，以及设备对每个元素可能给出的范围。",
    "CertaintyCounts": "按已知程度统计的结果数。",
    "Cause": "使结果不唯一的操作。",
    "what_if": "在 `with` 语句体中对一个操作做出假设。",
    "KernelProgram": "算子一次调用中的转换（按执行顺序）及周围的操作。",
    "Estimate": "算子一次调用中各次转换的估计成本；其他操作没有估计。",
    "Assumption": "公开资料暗示而没有明确说明的、关于设备的陈述。",
    "CastRecord": "一次已执行的转换。",
    "Interval": "设备对每个元素可能给出的最小数和最大数。",
    "OperationRecord": "一个操作的输出的 tile；与转换的 tile 一样分给各核。",
    "OperationStep": "转换周围被调用的一个操作。",
    "Report": "供人和程序阅读的结果。",
    # Schedules
    "read_schedule": "读取上游编译器 dump 的 schedule。",
    "Schedule": "算子的 tile 程序：各任务的操作和 UB 中的 buffer。",
    "ScheduleDiff": "按 leaf、任务的各部分和源代码行比较两个 schedule。",
    "ascend_kernels.schedule.parts.Parameter": "算子签名中的张量。",
    "ascend_kernels.schedule.parts.Leaf": "一个核的 tile 程序。",
    "ascend_kernels.schedule.parts.TileOperation": "一个 tile 操作，或一个同步。",
    "ascend_kernels.schedule.parts.TileOperand": "UB 中的 tile，或任务在 GM 中的 tile。",
    "ascend_kernels.schedule.parts.Buffer": "UB 中的一段字节及其生存期。",
    "ascend_kernels.schedule.parts.Flag": "同步的流水线和事件；"
    "barrier 的两条流水线相同，没有事件。",
    "ascend_kernels.schedule.parts.Body": "循环体或算子运行一次时交给各核的任务。",
    "ascend_kernels.schedule.parts.Task": "leaf 的一次运行。",
    "ascend_kernels.schedule.parts.Access": "任务从 GM 读取或写入的张量区域。",
    "ascend_kernels.schedule.parts.Temporary": "任务之间在 GM 中传递结果的张量。",
    "ascend_kernels.schedule.parts.Run": "一个 body 的一次运行，以它在 schedule 中的位置表示。",
    "ascend_kernels.schedule.parts.Loop": "对其中各步的循环。",
    "ascend_kernels.schedule.parts.Branch": "条件之下的各步。",
    "ascend_kernels.schedule.parts.Renewal": "槽位换用新内存：分块写入的张量在这里声明。",
    "ascend_kernels.schedule.parts.Barrier": "其后的任务开始时，其前的任务已全部完成。",
    # Tuning
    "tune": "按估计成本为一次转换的合法 TileShape 排序。",
    "TuningResult": "一次转换的合法 TileShape 的排名。",
    "TunedCast": "一次转换的 TileShape 排名，最好的可以规划和运行。",
    # Models
    "dialects.compare": "显示 pypto、torch、ONNX、OpenVINO、Paddle 和 numpy 如何转换一个数。",
    "dialects.compare_formats": "显示各框架按什么规则转换到一种格式。",
    "dialects.Comparison": "一对格式（可带一个值），每个框架一行。",
    "dialects.DialectDifference": "两个框架结果不同的源编码。",
    "dialects.Row": "一个框架的答案。",
    "dialects.onnx.cast": "按 ONNX Cast 转换张量的元素类型。",
    "dialects.onnx.cast_grad": "把 cast 输出的梯度转换回输入的类型，并乘以缩放因子。",
    "dialects.onnx.cast_like": "按 ONNX CastLike 转换到另一个张量的元素类型。",
    "dialects.onnx.route": "给出与 ONNX Cast 相同编码的原生转换链，最好的在前。",
    "dialects.onnx.TensorType": "ONNX 的 TensorProto.DataType，不含 UNDEFINED 和复数类型。",
    "dialects.openvino.convert_promote_types": "按 ConvertPromoteTypes-14 "
    "把两个输入转换到共同类型。",
    "dialects.openvino.fake_convert": "舍入到 8 位浮点数再转换回来："
    "(f8(data * scale - shift) + shift) / scale。",
    "dialects.openvino.promoted_type": "ConvertPromoteTypes-14 的共同类型；与输入的顺序无关。",
    "dialects.openvino.route": "与 scale 为 1、不带 shift 的 FakeConvert 编码相同的 A2/A3 指令。",
    "dialects.paddle.Api": "文档列表中的一行，加上 Paddle 3.3.1 的补充。",
    "dialects.paddle.cast": "按 paddle.cast 转换数组的 dtype。",
    "dialects.paddle.promote_dtype": "一个 API 把两个操作数转换到的 dtype。",
    "dialects.paddle.promote_operands": "把一个 API 的两个操作数转换到共同的 dtype。",
    "dialects.paddle.PromotionRule": "文档的三条规则。",
    "dialects.paddle.result_dtype": "一个 API 的结果的 dtype。",
    "dialects.paddle.Scalars": "Python 标量作为操作数时如何处理。",
    "dialects.paddle.tensor_scalar_table": "`+`、`-`、`*` 的“Tensor-to-Scalar”表；各规则相同。",
    "dialects.paddle.tensor_tensor_table": "`+`、`-`、`*` 的“Tensor-to-Tensor”表。",
    "dialects.paddle.ZeroDim": "0 维张量在类型提升中的作用。",
    # Testing
    "testing.assert_bits_equal": "两个数组的 dtype、形状和位不全相同时失败。",
    "testing.special_values": "转换中容易出错的值：零、一、平局值、极值、次正规数、inf、NaN。",
    "testing.boundary_values": "源 dtype 中决定舍入结果的边界值。",
    "testing.assert_possible": "有元素不是设备可能给出的结果时失败。",
    "testing.assert_certain": "每个输出中唯一的结果达不到要求的比例时失败。",
    "testing.differences": "最前面的不同元素，显示方式同 `assert_bits_equal`。",
    "testing.assert_fits": "算子在 UB 中放不下，或占用超出要求时失败。",
    "testing.assert_schedule_ok": "schedule 不能通过全部检查，或结果不是算子可能给出的，则失败。",
    "testing.Difference": "一个不同的元素。",
    "testing.Impossible": "一个不可能的元素。",
    "testing.judge": "判断结果：设备是否可能给出，与 golden 相差多少。",
    "testing.JudgedOutput": "一个输出的判断。",
    "testing.Judgement": "全部输出的判断。",
    "testing.load_bounds": "读取 `save_bounds` 写的文件。",
    "testing.save_bounds": "把上下界写入压缩的 .npz 文件，要么完整，要么没有。",
    "testing.unknown_lines": '算子源码中 schedule 没有对应操作的行，如 "softmax.py:12"。',
    # Device
    "Platform": "`platform()` 找到的 NPU、其软件和编译器。",
    "RunMode": "程序运行的地方：NPU 或模拟器。",
    "release_memory": "把为后续结果保留的内存还给系统。",
    "TileProgram": "各核执行的一次转换：从 `gm.x` 到 `gm.y`。",
    # AscendC's objects
    "simulator.ascendc.cast": "把 `src` 的元素转换为 `dst` 的格式："
    "`count` 个，或按 mask 和 repeat。",
    "simulator.ascendc.data_copy": "在 GM 与 UB 之间复制 `count` 个连续元素。",
    "simulator.ascendc.data_copy_pad": "在 GM 与 UB 之间复制任意字节数的块；"
    "在 UB 中每块从 32 B 的行首开始。",
    "simulator.ascendc.DataCopyExtParams": "`data_copy_pad` 的块。",
    "simulator.ascendc.DataCopyPadExtParams": "`data_copy_pad` 在 UB 中每块周围的填充。",
    "simulator.ascendc.DataType": "张量元素的类型。",
    "simulator.ascendc.duplicate": "用一个值填充 `count` 个元素；这里只支持 int16。",
    "simulator.ascendc.get_block_idx": "返回当前核的编号，从 0 起。",
    "simulator.ascendc.get_block_num": "本次启动的核数。",
    "simulator.ascendc.GlobalAddress": "GM 中数组的一个元素；算子的参数是数组的第一个元素。",
    "simulator.ascendc.GlobalTensor": "GM 的一段；`tensor[i:]` 是从元素 i 起的其余部分。",
    "simulator.ascendc.HardEvent": "一对流水线：前者到达时置位标志，后者等待。",
    "simulator.ascendc.jit": "把函数变成算子：以 `kernel[core_num](...)` 启动，numpy 数组作为 GM。",
    "simulator.ascendc.JitFunction": "`jit` 下的函数：以 `kernel[core_num](...)` 启动，"
    "或由另一个算子调用。",
    "simulator.ascendc.KernelProgram": "一次启动记录的指令，可由模拟机器执行。",
    "simulator.ascendc.Launch": "若干核上的算子，等待参数。",
    "simulator.ascendc.LaunchOptions": "一次启动的设置。",
    "simulator.ascendc.LocalTensor": "UB 的一段；`tensor[i:]` 是从元素 i 起的其余部分。",
    "simulator.ascendc.pipe_barrier": "使一条流水线等待其上此前的全部工作完成。",
    "simulator.ascendc.PipeID": "向量核的流水线。",
    "simulator.ascendc.RoundMode": "Cast 的舍入模式；CAST_NONE 在丢失位时就近舍入，平局取偶数。",
    "simulator.ascendc.SaturationMode": "`set_saturation_flag` 控制的结果；其值是控制位的编号。",
    "simulator.ascendc.set_deq_scale": "设置 int32 -> half 所需的 FP16 缩放因子；这里只模拟 1。",
    "simulator.ascendc.set_flag": "事件的第一条流水线上此前的工作完成后，置位标志。",
    "simulator.ascendc.set_saturation_flag": "打开或关闭结果的饱和，直到下一次调用"
    "（AscendC 的 SetSaturationFlag）。",
    "simulator.ascendc.TBuf": "没有队列的 buffer，如向量流水线的临时空间；没有等待。",
    "simulator.ascendc.TPipe": "从地址 0 起，依次把 UB 分给队列和 buffer。",
    "simulator.ascendc.TPosition": "UB 中 buffer 的用途。",
    "simulator.ascendc.TQue": "两条流水线之间的 buffer 队列：VECIN 从 MTE2 到 V，"
    "VECOUT 从 V 到 MTE3。",
    "simulator.ascendc.UnaryRepeatParams": "单源指令的步长，以 32 B 的块为单位。",
    "simulator.ascendc.wait_flag": "事件的第二条流水线等待标志置位，并清除它。",
}
SENTENCES_ZH: Final[Mapping[str, str]] = MappingProxyType(dict(_SENTENCES))
"""By the name that users write."""
