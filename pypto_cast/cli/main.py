"""The `pypto-cast` command: exit code 0 on success, else 2 and one line why."""

from __future__ import annotations

import contextlib
import importlib
import io
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pypto_cast import __version__, loading
from pypto_cast.cli.command_list import COMMANDS

# As in pypto_cast.loading: a command may be the first to need it, after the main thread has ended.
importlib.import_module("concurrent.futures.process")

_ROOMS: Final = ("tiling", "simulator", "ascend_kernels", "pypto_cast")
_EXTRA: Final = ("typer", "rich", "jinja2", "safetensors", "click")
_SUCCESS: Final = 0
_FAILURE: Final = 2
_VERSION: Final = "--version"
_ENDINGS: Final = ("SIGTERM", "SIGHUP")
"""Signals that would end the process before it has cleared its unfinished outputs."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Errors of every kind are one line on stderr, without a traceback.

    Args:
        arguments: those of the command line unless given.

    Returns:
        The exit code: 0 or 2, or 1 as `command_list.FOUND` says; of `run`, the program's.
    """
    code = _SUCCESS
    try:
        _escape_output()
        with _one_line_warnings(), _interruptible():
            code = _invoke(list(sys.argv[1:] if arguments is None else arguments))
            sys.stdout.flush()
    except BrokenPipeError:  # the reader closed the pipe
        from pypto_cast.report.text_format import drop_output

        drop_output()
    except KeyboardInterrupt:
        return _fail("interrupted")
    except ModuleNotFoundError as error:
        return _fail(_missing(error))
    except Exception as error:
        return _fail(_reason(error) + _named(error))
    return code


def _invoke(arguments: list[str]) -> int:
    """Run the command that is named, imported here so that a missing extra is one line.

    The others are imported only where none is named: for the help, and to complete words.

    The version needs no command: what converts is told by the engines alone.
    """
    if arguments[:1] == [_VERSION]:
        loading.check_shadowing()
        from simulator.numbers import engines

        print(f"pypto-cast {__version__}, engine {engines.in_use()}")
        return _SUCCESS
    from pypto_cast.cli.app import invoke

    commands: dict[str, Callable[..., None]] = {}
    for name in [name for name in COMMANDS if [name] == arguments[:1]] or COMMANDS:
        words = name.replace("-", "_")
        module = importlib.import_module(f"pypto_cast.cli.commands.{words}_command")
        commands[name] = getattr(module, f"run_{words}")
    return invoke(commands, arguments)


def _fail(text: str) -> int:
    _say("error", text)
    return _FAILURE


def _say(kind: str, text: str) -> None:
    from pypto_cast.report.text_format import printable

    with contextlib.suppress(OSError):
        print(f"pypto-cast: {kind}: {printable(text)}", file=sys.stderr)


def _missing(error: ModuleNotFoundError) -> str:
    from pypto_cast.report.text_format import extra_hint

    if (error.name or "").partition(".")[0] in _EXTRA:
        return f"the command needs {error.name}: {extra_hint('cli')}"
    return str(error)


def _named(error: Exception) -> str:
    """The class of an error or a warning of this project, by which the pages list it."""
    own = (
        kind.__name__
        for kind in type(error).__mro__
        if kind.__module__.partition(".")[0] in _ROOMS and not kind.__name__.startswith("_")
    )
    name = next(own, "")
    return f" [{name}]" if name else ""


def _reason(error: Exception) -> str:
    """The text of an error, in the words of whoever raised it."""
    # Typer's own errors word themselves; they share no class that every version of it exports.
    wording: Callable[[], str] | None = getattr(error, "format_message", None)
    if wording is not None:
        return f"{wording()} (pypto-cast --help)"
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}" if str(error) else "not enough memory"
    if isinstance(error, (OSError, ValueError, TypeError, RuntimeError)) and str(error):
        return str(error)
    return f"unexpected {type(error).__name__}: {error}"


@contextlib.contextmanager
def _one_line_warnings() -> Iterator[None]:
    """Show each warning once, without the source line that raised it."""
    shown: set[str] = set()

    def show(message: Warning | str, *_: object, **__: object) -> None:
        text = str(message)
        if isinstance(message, Warning):
            text += _named(message)
        if text not in shown:
            shown.add(text)
            _say("warning", text)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Let a request to end be an interrupt, unless the caller has settled it (as nohup does)."""
    is_main = threading.current_thread() is threading.main_thread()
    present = [getattr(signal, name) for name in _ENDINGS if hasattr(signal, name)]
    ours = [s for s in present if is_main and signal.getsignal(s) is signal.SIG_DFL]
    for one in ours:
        signal.signal(one, signal.default_int_handler)
    try:
        yield
    finally:
        for one in ours:
            signal.signal(one, signal.SIG_DFL)


def _escape_output() -> None:
    """Write characters that the output's encoding lacks as escapes instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())
