"""The page of the command, made of its help, in both languages."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import typer

from docs.generators.command_words import option_zh
from docs.generators.markdown_text import joined, table
from pypto_cast.cli.command_list import COMMANDS, FOUND, GROUPS
from pypto_cast.cli.main import main

_GROUPS_ZH: Final = ("类型转换", "算子", "源码与操作", "TileShape", "模型", "结果与设备")
_SUMMARIES_ZH: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cast": "转换一个数组，报告舍入、溢出和 NaN",
        "explain": "逐位显示每种舍入模式如何舍入一个数",
        "compare": "显示各框架如何转换一个数",
        "matrix": "列出芯片支持的转换、舍入模式和溢出结果",
        "route": "查找两种数据类型之间的转换链，并判断其舍入",
        "trace": "显示一次转换的每条指令何时执行",
        "run": "以本包代替 pypto 运行程序",
        "certainty": "显示算子的哪些结果在设备上唯一",
        "schedule": "显示算子的 Tile 程序：代码行、UB、任务、周期数",
        "compile": "用上游的 wheel 编译算子，并保留 dump",
        "check-schedule": "在全部检查下执行上游生成的 Tile 程序",
        "operations": "显示操作的数据类型、误差界、来源和特殊值",
        "lint": "查找常出错的转换、求和与 Tile，不运行代码",
        "tune": "为一次转换或一个算子的 TileShape 排序",
        "sweep": "为许多转换或算子搜索 TileShape，可断点续跑",
        "checkpoint": "转换或量化模型的张量，其余原样复制",
        "diff": "逐比特比较两个模型或数组",
        "judge": "判断设备的结果是否可能出现，与 golden 相差多少",
        "verify": "逐个位模式比较引擎与定义",
        "device-check": "把 NPU 与本包的假设比较",
        "facts": "显示对设备的假设，以及实测结果",
    }
)
_FOUND_ZH: Final[Mapping[str, str]] = MappingProxyType(
    {
        "run": "程序抛出异常；程序自己的退出码就是命令的退出码",
        "schedule": "`--against` 或 `--timeline` 的两者不同，或指定了 `--fail-over-ub` 而放不下",
        "check-schedule": "某项检查或结果不一致",
        "lint": "有检查结果",
        "checkpoint": "试运行（`--dry-run`）发现会拒绝的张量",
        "diff": "有张量既不相等，也不全是另一方的转换；或指定了 `--bounds` 而有元素超出",
        "judge": "有元素不在可能的结果中；未指定算子时为未达到标准",
        "verify": "引擎与定义或验证证书不一致",
        "device-check": "有一项事实不一致",
    }
)

_SHARED: Final = """\
With `--quiet` a command prints errors alone; with `--no-progress` it draws no bar. Colour is left
out in a pipe, with `NO_COLOR` and with `TERM=dumb`; a bar is drawn in a terminal alone, elsewhere
long work says once on stderr how long the rest will take. `--install-completion` has bash, zsh,
fish or PowerShell complete commands, options, dtypes, modes and chips.
"""
_SHARED_ZH: Final = """\
指定 `--quiet` 时只打印错误；指定 `--no-progress` 时不画进度条。在管道中，或设置了 `NO_COLOR`、
`TERM=dumb` 时不输出颜色；进度条只画在终端上，其他情况下，耗时较长的工作在 stderr 上说明一次
剩余时间。`--install-completion` 为 bash、zsh、fish 或 PowerShell 安装补全：命令、选项、
数据类型、舍入模式和芯片。
"""


@functools.cache
def help_of(*names: str) -> str:
    """The text that `pypto-cast NAMES --help` prints."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        main([*names, "--help"])
    return shown.getvalue().strip()


def page() -> str:
    """The help of the command and of each of its commands, and the exit codes."""
    parts = ["# The command", _shown(help_of()), "## Exit codes", _exit_codes()]
    parts.append(_SHARED.strip())
    return _page([*parts, *(f"## {name}\n\n{_shown(help_of(name))}" for name in COMMANDS)])


def options_of(name: str) -> list[tuple[str, str]]:
    """The arguments and options of a command that its help shows, each with its help.

    Those that all commands share are left out.
    """
    words = name.replace("-", "_")
    module = importlib.import_module(f"pypto_cast.cli.commands.{words}_command")
    app = typer.Typer(add_completion=False)
    app.command()(getattr(module, f"run_{words}"))
    found = []
    for each in typer.main.get_command(app).params:
        text = getattr(each, "help", None)
        if text:
            is_option = each.param_type_name == "option"
            flags = ", ".join([*each.opts, *each.secondary_opts]) if is_option else ""
            label = " ".join(filter(None, (flags, each.metavar)))
            found.append((label or str(each.name).upper(), text))
    return found


def _options_zh(name: str) -> str:
    rows = ((f"`{label}`", option_zh(text)) for label, text in options_of(name))
    return table(("参数、选项", "说明"), rows)


def page_zh() -> str:
    """The same in Chinese; below the words of each command stands its help as it is printed."""
    rows = [
        (group, f"[{name}](#{name})", _SUMMARIES_ZH[name])
        for group, names in zip(_GROUPS_ZH, GROUPS.values(), strict=True)
        for name in names
    ]
    parts = ["# 命令行", table(("分组", "命令", "用途"), rows), "## 退出码", _exit_codes_zh()]
    parts.append(joined(_SHARED_ZH.strip()))
    commands = (
        f"## {name}\n\n{_SUMMARIES_ZH[name]}。\n\n{_options_zh(name)}\n\n"
        f"命令打印的帮助（英文）：\n\n{_shown(help_of(name))}"
        for name in COMMANDS
    )
    return _page([*parts, *commands])


def _exit_codes() -> str:
    every = [("every command", "0", "done"), ("every command", "2", "an error, one line on stderr")]
    rows = every + [(f"`{name}`", "1", f"{text}") for name, text in FOUND.items()]
    return table(("command", "exit code", "meaning"), rows)


def _exit_codes_zh() -> str:
    every = [("所有命令", "0", "完成"), ("所有命令", "2", "出错，stderr 上有一行说明")]
    rows = every + [(f"`{name}`", "1", _FOUND_ZH[name]) for name in FOUND]
    return table(("命令", "退出码", "含义"), rows)


def _page(parts: list[str]) -> str:
    return "\n\n".join(parts) + "\n"


def _shown(text: str) -> str:
    return f"```text\n{text}\n```"


PAGES: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {"reference/command.md": page, "reference/command.zh.md": page_zh}
)
