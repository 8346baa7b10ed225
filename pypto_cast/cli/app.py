"""The command in typer's terms: how it is run, and the options its commands share."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, get_type_hints

import typer
import typer.core

from pypto_cast.cli.command_list import COMMANDS, GROUPS, exit_codes
from pypto_cast.report import terminal
from simulator.corrections import READINGS
from tiling.chips import CHIPS, DEFAULT_CHIP

_COMPLETE: Final = "_PYPTO_CAST_COMPLETE"
"""Set by the shell while it asks for completions."""
_VERSION_HELP: Final = "Show the version, the engine that converts, and why not a better one."
_TAKE_NUMBERS: Final = ("explain", "compare")
"""Commands whose argument may begin with a minus."""
_TAKE_THE_REST: Final = ("run",)
"""Commands whose arguments after the first are not theirs."""


def _dump_folder(text: str) -> Path:
    """A folder of a dump; an empty text would be the working directory."""
    if not text:
        raise typer.BadParameter("the folder of a dump is empty; '.' is this one")
    return Path(text)


def _beginning(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Completes a word to the names that begin with it."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def _dtypes() -> list[str]:
    from pypto_cast.dtypes.data_types import DataType

    return [dtype.name for dtype in DataType]


def _modes() -> list[str]:
    from pypto_cast.dtypes.data_types import CastMode

    return [mode.name for mode in CastMode]


Array = Annotated[Path, typer.Argument(metavar="IN.npy", help="The array to cast.")]
Held = Annotated[
    str | None,
    typer.Option("--from", metavar="DTYPE", help="Dtype stored in the file: DT_BF16, DT_INT4."),
]
From = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="DTYPE",
        autocompletion=_beginning(_dtypes),
        help="Source, such as DT_FP32.",
    ),
]
To = Annotated[
    str,
    typer.Option(
        "--to",
        metavar="DTYPE",
        autocompletion=_beginning(_dtypes),
        help="Destination, such as DT_BF16.",
    ),
]
Mode = Annotated[
    str,
    typer.Option(
        metavar="MODE",
        autocompletion=_beginning(_modes),
        help="Round mode, such as CAST_RINT; CAST_NONE: default.",
    ),
]
Satmode = Annotated[
    str, typer.Option(metavar="ON|OFF", help="ON clamps integers out of range, OFF keeps low bits.")
]
Tile = Annotated[
    str | None, typer.Option(metavar="N,N", help="Tile shape; the planner chooses if not set.")
]
ChipName = Annotated[
    str | None,
    typer.Option(
        "--chip",
        metavar="NAME",
        autocompletion=_beginning(lambda: CHIPS),
        help=f"One of {', '.join(CHIPS)}; {DEFAULT_CHIP} if not set.",
    ),
]
InfNan = Annotated[
    bool,
    typer.Option("--inf-nan/--no-inf-nan", help="CTRL[48]: keep infinities and NaN, or saturate."),
]
Fp8Nan = Annotated[
    bool, typer.Option("--fp8-nan", help="CTRL[50] of 950: keep NaN in FP8 that saturates.")
]
GlobalSaturation = Annotated[
    bool,
    typer.Option(
        "--global-saturation/--no-global-saturation",
        help="CTRL[60] of 950: --inf-nan decides on floats, or --satmode.",
    ),
]
Readings = Annotated[
    list[str] | None,
    typer.Option(
        "--reading",
        metavar="NAME=VALUE",
        help=f"Of 950, where texts disagree; NAME is {', '.join(READINGS)}.",
    ),
]
Facts = Annotated[
    Path | None,
    typer.Option(metavar="FILE.json", help="Follow the device that device-check measured."),
]
NpuOnCpu = Annotated[
    bool, typer.Option("--npu-on-cpu", help="Have torch_npu and .npu() mean the CPU.")
]
ReplaceInstalled = Annotated[
    bool, typer.Option("--replace-installed", help="Hide a pypto that is installed.")
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the result there.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace the output file if it exists.")]
UpstreamDump = Annotated[
    Path | None,
    typer.Option(metavar="DIR", parser=_dump_folder, help="A dump of upstream's compiler instead."),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="tcp://HOST:PORT", help="Run on this Dask cluster instead; it must be trusted."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
_SHARED: Final[Mapping[str, Any]] = {
    "quiet": Annotated[
        bool,
        typer.Option(
            "--quiet", "-q", help="Print errors alone; files, JSON and exit codes are as before."
        ),
    ],
    "no_progress": Annotated[
        bool, typer.Option("--no-progress", help="Draw no bar, and say no remaining time.")
    ],
}
"""Options that every command but `run` has besides its own."""


def _root(
    version: Annotated[bool, typer.Option("--version", help=_VERSION_HELP)] = False,
) -> None:
    """Number conversion on Ascend A2/A3 and 950 NPUs, bit for bit, on any CPU."""


def readings_named(given: Sequence[str] | None) -> dict[str, str]:
    """`NAME=VALUE` of each option, as `options(readings=)` takes them; none where none is given.

    Raises:
        ValueError: a text without "=", or a name given twice.
    """
    texts = given or ()
    pairs = [text.split("=", 1) for text in texts]
    if wrong := [text for text, pair in zip(texts, pairs, strict=True) if len(pair) < 2]:
        raise ValueError(f"--reading takes NAME=VALUE, such as nan-e2m1=max, not {wrong[0]!r}")
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"--reading gives a name twice: {' '.join(texts)}")
    return found


def refuse_unread(context: typer.Context, names: Collection[str], reason: str) -> None:
    """Refuse options of the command line that the command would not read.

    Args:
        context: of the command.
        names: of their parameters.
        reason: what makes them needless, to go on with after "would change nothing".

    Raises:
        ValueError: one of them was given; names all that were.
    """
    given = [
        each.opts[0]
        for each in context.command.params
        if each.name in names
        and getattr(context.get_parameter_source(each.name), "name", "") == "COMMANDLINE"
    ]
    if given:
        raise ValueError(f"{' and '.join(given)} would change nothing {reason}")


class _Commands(typer.core.TyperGroup):
    """The list of commands in the help, by group."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one section for each group."""
        width = max(map(len, COMMANDS))
        for title, names in GROUPS.items():
            found = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(title):
                room = formatter.width - formatter.current_indent - width - 2
                rows = [(n, x.get_short_help_str(room)) for n, x in found if x is not None]
                formatter.write_dl([(name.ljust(width), text) for name, text in rows])


def _with_shared_options(run: Callable[..., None]) -> Callable[..., None]:
    """The function of a command with the options that all have, which set how much is printed."""

    @functools.wraps(run)
    def command(*, quiet: bool, no_progress: bool, **own: Any) -> None:
        with contextlib.ExitStack() as stack:
            if quiet:
                stack.enter_context(warnings.catch_warnings())
                warnings.simplefilter("ignore")
            shown = terminal.Verbosity(report=not quiet, progress=not (quiet or no_progress))
            stack.enter_context(terminal.printing(shown))
            run(**own)

    hints = {**get_type_hints(run, include_extras=True), **_SHARED}
    parameters = [
        *inspect.signature(run).parameters.values(),
        *(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False)
            for name in _SHARED
        ),
    ]
    resolved = [each.replace(annotation=hints[each.name]) for each in parameters]
    command.__annotations__ = hints
    vars(command).update(__signature__=inspect.Signature(resolved))
    return command


def invoke(commands: Mapping[str, Callable[..., None]], arguments: list[str]) -> int:
    """Parse the arguments and run the command they name; errors are raised, not printed.

    Args:
        commands: by name, in the order of the help.
        arguments: those of the command line.

    Returns:
        The exit code that the command asked for, 0 unless it did.
    """
    app = typer.Typer(
        cls=_Commands,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(_root)
    for name, run in commands.items():
        settings = {
            "ignore_unknown_options": name in _TAKE_NUMBERS,
            "allow_interspersed_args": name not in _TAKE_THE_REST,
        }
        shared = run if name in _TAKE_THE_REST else _with_shared_options(run)
        app.command(name, context_settings=settings, epilog=exit_codes(name))(shared)
    command = typer.main.get_command(app)
    if _COMPLETE in os.environ:
        command.main(arguments, "pypto-cast")
    # Not command.main(): it turns interrupts into exit codes of its own and prints on the way.
    try:
        with command.make_context("pypto-cast", arguments) as context:
            command.invoke(context)
    except typer.Exit as ended:
        return ended.exit_code
    return 0
