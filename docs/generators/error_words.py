"""Remedies of errors and warnings, and their Chinese, by class; the English meaning is a docstring.

Groups are in the order of the page: heading, its Chinese, and for each class the remedy, the
meaning in Chinese and the remedy in Chinese.
"""

from __future__ import annotations

from typing import Final

Words = tuple[str, str, str]

GROUPS: Final[tuple[tuple[str, str, dict[str, Words]], ...]] = (
    (
        "Shapes and tiles",
        "形状与 TileShape",
        {
            "ShapeError": (
                "Give 1 to 4 dimensions, none of them 0; reshape the array first.",
                "该形状的张量不能转换。",
                "使用 1 到 4 个维度，且没有长度为 0 的维度；先对数组做 reshape。",
            ),
            "TileShapeError": (
                "Set the tile shape that the text names, by `set_vec_tile_shapes` or `--tile`.",
                "该 TileShape 不能用于这次转换。",
                "用 `set_vec_tile_shapes` 或 `--tile` 设置错误信息给出的 TileShape。",
            ),
            "TileMemoryError": (
                "Set the nearest tile that fits; the text names it.",
                "一个 Tile 所需的 UB 超出芯片的 UB。",
                "改用错误信息给出的最接近的可行 TileShape。",
            ),
            "TileShapeWarning": (
                "Set a tile whose rows are whole blocks of 32 B and that leaves UB free.",
                "该 TileShape 在这里可用，但不建议在设备上使用。",
                "使每行占整数个 32 B 的块，并给 UB 留出余量。",
            ),
            "UBOverflowError": (
                "`pypto-cast schedule FILE::KERNEL` names the culprit and tile shapes that fit.",
                "算子在某一时刻需要的 UB 超出容量；给出操作、代码行和 buffer。",
                "`pypto-cast schedule FILE::KERNEL` 指出原因和可行的 TileShape。",
            ),
        },
    ),
    (
        "Casts",
        "类型转换",
        {
            "UnsupportedCastError": (
                "Cast in two steps, as the text names, or find them with `pypto-cast route`.",
                "该芯片系列不支持这对数据类型的转换。",
                "按错误信息分两步转换，或用 `pypto-cast route` 查找转换链。",
            ),
            "CastModeError": (
                "Take a mode of the pair's row in `pypto-cast matrix`, or leave `strict` out.",
                "严格选项下，这对数据类型没有该舍入模式或饱和模式。",
                "选用 `pypto-cast matrix` 中该行的模式，或不用 `strict`。",
            ),
            "CastModeWarning": (
                "Name the mode that was taken, or one that the pair has.",
                "这对数据类型没有该舍入模式，改用其默认模式。",
                "写明实际采用的模式，或换成支持的模式。",
            ),
            "SaturationModeWarning": (
                "Leave `SaturationMode.OFF` out; where low bits are wanted, cast by another pair.",
                "`SaturationMode.OFF` 对这对数据类型不起作用，结果仍被饱和。",
                "去掉 `SaturationMode.OFF`；需要保留低位时换一对数据类型。",
            ),
            "ReinterpretedMemoryWarning": (
                "Give each dtype memory of its own, or `cast`.",
                "以另一种数据类型读取张量的内存。",
                "为每种数据类型使用各自的内存，或改用 `cast`。",
            ),
            "RouteError": (
                "Ask for other dtypes, a mode that they have, or a range that is not empty.",
                "关于转换链的问题没有答案。",
                "换用其他数据类型、它们支持的模式，或非空的取值范围。",
            ),
        },
    ),
    (
        "Kernels",
        "算子",
        {
            "UpstreamRefusalError": (
                "Write it as the text says: the device's compiler refuses it too.",
                "上游拒绝这种写法。",
                "按错误信息修改：设备的编译器同样会拒绝。",
            ),
            "UpstreamRefusalWarning": (
                "Change it before the kernel goes to a device; `strict=True` makes it an error.",
                "这里可以运行，但上游会拒绝。",
                "上板前修改；`strict=True` 会把它变成错误。",
            ),
            "DynamicOperandWarning": (
                "Take views of a fixed shape in a `pypto.loop`, as [Start](start.md) does.",
                "对带有 DYNAMIC 维度的张量做运算；上游要求在循环中取 view。",
                "在 `pypto.loop` 中取固定形状的 view，见[开始](start.md)。",
            ),
            "PlanError": (
                "Simplify the line that is named; casts and results need no plan.",
                "规划不支持该算子；给出操作和代码行。",
                "简化所指的代码行；转换和结果不依赖规划。",
            ),
            "UnplannedKernelWarning": (
                "Take `fidelity` away, or change the operation that is named.",
                '没有规划出 schedule，在 `fidelity="instructions"` 下逐个转换运行。',
                "去掉 `fidelity`，或修改所指的操作。",
            ),
            "NotExecutedError": (
                "Run the kernel without a schedule, or leave out the part that is named.",
                "schedule 的一部分不能执行；给出原因。",
                "不带 schedule 运行算子，或去掉所指的部分。",
            ),
            "EventReuseWarning": (
                "A doubt, no fault; `--strict` makes it an error.",
                "标志可能在上一次的等待结束前再次被置位。",
                "这是疑点，不是错误；`--strict` 会把它当作错误。",
            ),
            "IgnoredSettingWarning": (
                "Nothing: results do not depend on the setting.",
                "该设置只被保存和读回，这里没有任何东西依赖它。",
                "无需处理：结果与该设置无关。",
            ),
            "EngineWarning": (
                "Install with a C++ compiler for speed; the bits are the same without.",
                "所选引擎无法运行，改用 numpy 引擎，结果逐比特相同。",
                "需要速度时，安装 C++ 编译器后重新安装；否则无需处理。",
            ),
        },
    ),
    (
        "Tests",
        "测试",
        {
            "BitsDifferError": (
                "Look at the first element that differs; [A result that differs](judging.md).",
                "两个应当逐比特相同的数组不同。",
                "查看第一个不同的元素；见[结果不一致时](judging.md)。",
            ),
            "FitError": (
                "Take a change that the text names; [why](tutorials/kernel_fit.md).",
                "算子在 UB 中放不下，或占用超出要求。",
                "采用错误信息给出的修改；见[算子为什么放不下](tutorials/kernel_fit.md)。",
            ),
            "ImpossibleError": (
                "Judge the result: `pypto-cast judge` tries hypotheses.",
                "任何设备都不会给出这些结果。",
                "用 `pypto-cast judge` 判断，它会尝试各种假设。",
            ),
            "UndecidedError": (
                "See the causes with `pypto-cast certainty`, and change the line that is named.",
                "结果唯一的元素少于要求。",
                "用 `pypto-cast certainty` 查看原因，修改所指的代码行。",
            ),
            "ScheduleError": (
                "See the place that is named; report it where the schedule is upstream's.",
                "硬件不允许该 schedule，或它算出的结果不同。",
                "查看所指的位置；如果 schedule 来自上游，请报告。",
            ),
        },
    ),
    (
        "Machine and AscendC's objects",
        "模拟机器与 AscendC 对象",
        {
            "SimulatorFault": (
                "Add the wait, or keep to the bounds that the text names.",
                "硬件不允许的指令或指令顺序。",
                "补上等待，或不超出错误信息给出的边界。",
            ),
            "Fault": (
                "Seen inside a `SimulatorFault`, with the instruction.",
                "某个核的一条指令出错，含序号、内存和字节。",
                "包含在 `SimulatorFault` 中，并带有指令。",
            ),
            "KernelError": (
                "Correct the call at the line that is named.",
                "AscendC 中没有意义的调用，指出代码行。",
                "修改所指代码行的调用。",
            ),
            "KernelWarning": (
                "Free the tensors and wait for the flags that the text names.",
                "算子可以运行，但留下了作者大概不想要的东西。",
                "释放错误信息所指的张量，等待所指的标志。",
            ),
        },
    ),
    (
        "Upstream and its compiler",
        "上游与其编译器",
        {
            "InstalledPyptoError": (
                "Pass `replace_installed=True` or `--replace-installed`.",
                "已安装上游的 pypto，它会被遮蔽。",
                "指定 `replace_installed=True` 或 `--replace-installed`。",
            ),
            "InstalledPyptoWarning": (
                "Nothing: it was asked for.",
                "上游的 pypto 按要求被暂时遮蔽。",
                "无需处理：这是您要求的。",
            ),
            "WheelError": (
                "Correct the kernel as the text says, or name `--python` of the wheel.",
                "上游的编译器拒绝算子，或没有结束。",
                "按错误信息修改算子，或用 `--python` 指定装有 wheel 的解释器。",
            ),
            "DumpError": (
                "Make the dump anew with `pypto-cast compile`.",
                "上游的 dump 无法读取；给出文件。",
                "用 `pypto-cast compile` 重新生成 dump。",
            ),
            "NpuRequestError": (
                "Pass `--npu-on-cpu` to have the CPU stand for the NPU.",
                "驱动程序要用 NPU，而这里没有。",
                "指定 `--npu-on-cpu`，由 CPU 代替 NPU。",
            ),
            "NpuImportError": ("The same.", "程序导入 torch_npu。", "同上。"),
            "NpuAttributeError": ("The same.", "程序使用 torch_npu 增加的属性。", "同上。"),
            "NpuDeviceError": ("The same.", "程序指定了 NPU 设备。", "同上。"),
            "PyptoError": (
                "As the text says; `except` of Python's class catches it too.",
                "上游的错误；文本没有错误码时，前面会加上。",
                "按错误信息修改；用 Python 的异常类也能捕获。",
            ),
            "PyptoGeneralError": (
                "The same.",
                "上游的错误，错误码由 Python 的异常类得出。",
                "同上。",
            ),
            "ParserError": (
                "Change the statement that is named.",
                "上游的解析器拒绝算子中的语句。",
                "修改所指的语句。",
            ),
            "RenderedParserError": (
                "Change the line that is shown.",
                "同 ParserError，文本中含代码行。",
                "修改所示的代码行。",
            ),
            "FeError": ("Change the argument.", "上游前端拒绝的参数。", "修改参数。"),
            "PyptoRtError": ("Change the call.", "上游运行时拒绝的调用。", "修改调用。"),
            "PassError": (
                "Change the setting of the pass.",
                "上游拒绝的编译 pass 设置。",
                "修改该 pass 的设置。",
            ),
            "VerifyError": (
                "Compare the pass with its golden data.",
                "上游某个 pass 与 golden 数据比较失败。",
                "把该 pass 与 golden 数据比较。",
            ),
        },
    ),
    (
        "Models and files",
        "模型与文件",
        {
            "CheckpointError": (
                "Save the file anew; the text says which part is not sound.",
                "不是完好的模型权重文件。",
                "重新保存文件；错误信息指出损坏的部分。",
            ),
            "UnusedPatternWarning": (
                "Correct the pattern of `--include`, `--exclude` or `--to`.",
                "该模式没有匹配任何张量。",
                "修改 `--include`、`--exclude` 或 `--to` 的模式。",
            ),
            "SkippedTensorWarning": (
                "Copy the tensors that are named by hand, if they are needed.",
                "输入中的一些张量不在输出中。",
                "需要时手工复制所列的张量。",
            ),
            "UnreadLayoutWarning": (
                "Take a `--strategy` that the loader of the layout reads.",
                "缩放因子的形状不被该布局的加载程序接受。",
                "选用加载程序支持的 `--strategy`。",
            ),
            "LeftoverWarning": (
                "Nothing: it was removed.",
                "被杀掉的运行留下的部分输出，已删除。",
                "无需处理。",
            ),
            "BusyOutputError": (
                "Wait for the other run, or name another output.",
                "另一个运行正在写同一个输出。",
                "等待另一个运行结束，或换一个输出。",
            ),
            "SkippedJobsWarning": (
                "Leave out the pairs that the text names, if they are not wanted.",
                "sweep 中有些形状不适用于某些数据类型组合。",
                "不需要时去掉所列的组合。",
            ),
            "FormerOptionWarning": (
                "Give the option its present name.",
                "用旧名称指定了命令的选项。",
                "改用现在的名称。",
            ),
            "CertificateError": (
                "Verify anew: `pypto-cast verify`.",
                "验证证书损坏，或与代码给出的结果不符。",
                "用 `pypto-cast verify` 重新验证。",
            ),
        },
    ),
    (
        "Installation and libraries",
        "安装与编译库",
        {
            "ShadowedPackageError": (
                "Rename your file or folder that the text names.",
                "Python 找到了用户的文件或目录，而不是本项目的包。",
                "重命名错误信息所指的文件或目录。",
            ),
            "CompiledLibraryError": (
                "As the text says: it has the cause and the remedy.",
                "库无法在此编译、保存或加载。",
                "错误信息含原因和解决办法。",
            ),
            "NativeUnavailableError": (
                "Install again with a C++ compiler; numpy gives the same bits.",
                "无法使用 C++ 引擎；给出原因。",
                "安装 C++ 编译器后重新安装；numpy 的结果逐比特相同。",
            ),
            "NativeAbsentError": ("The same.", "没有 C++ 引擎的库；没有任何损坏。", "同上。"),
            "TwinUnavailableError": (
                "Install g++ or clang++.",
                "无法编译或加载 Ascend C 算子的 CPU 版本。",
                "安装 g++ 或 clang++。",
            ),
            "BuildError": (
                "Install the part that is named: CANN, torch or torch_npu.",
                "NPU 的库无法在此编译；指出缺少的部分。",
                "安装所指的部分：CANN、torch 或 torch_npu。",
            ),
        },
    ),
    (
        "Devices",
        "设备",
        {
            "NpuError": (
                "Cast on the CPU, or install the part that is named.",
                "这里不能在 NPU 上启动转换；给出原因。",
                "在 CPU 上转换，或安装所指的部分。",
            ),
            "DeviceFault": (
                "As the text says; then start a new process.",
                "设备出错；给出原因和解决办法。",
                "按错误信息处理，然后启动新的进程。",
            ),
            "DeviceGoneError": (
                "Reset the device, then go on with `device-check --resume`.",
                "设备连续多次出错。",
                "复位设备，然后用 `device-check --resume` 继续。",
            ),
            "StepError": (
                "Go on with `device-check --resume`; the step is listed.",
                "有一步无法测量。",
                "用 `device-check --resume` 继续；该步会列出。",
            ),
            "DeviceFactsWarning": (
                "Nothing: the simulator keeps its own rule there, and says so.",
                "实测设备的某些行为模拟器无法跟随，保持自己的规则。",
                "无需处理。",
            ),
        },
    ),
    (
        "Other frameworks",
        "其他框架",
        {
            "OpenVINOError": (
                "Give a type and an input that OpenVINO takes.",
                "OpenVINO 拒绝的类型或输入；以 OpenVINO 的原文开头。",
                "使用 OpenVINO 接受的类型和输入。",
            ),
            "FakeConvertError": (
                "Change the input that is named.",
                "FakeConvert 拒绝的输入。",
                "修改所指的输入。",
            ),
            "PromotionError": (
                "Set the attribute that is named.",
                "没有公共类型。",
                "设置所指的属性。",
            ),
        },
    ),
    (
        "Caught inside",
        "内部捕获",
        {
            "NotCutError": (
                "None: the call is computed whole.",
                "调用的各行互相依赖，不能分块。",
                "无需处理：整体计算。",
            ),
            "UnknownNumberError": (
                "None: the result is undecided.",
                "在设备上运行之前不知道的数。",
                "无需处理：结果不唯一。",
            ),
            "OutOfTimeError": (
                "None: the candidate is left out.",
                "规划超时而被放弃。",
                "无需处理：跳过该候选。",
            ),
        },
    ),
)
