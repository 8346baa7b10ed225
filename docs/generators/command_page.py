"""The page of the command, made of its help."""

from __future__ import annotations

import contextlib
import io
import re

from pypto_cast.cli.main import main


def help_of(*names: str) -> str:
    """The text that `pypto-cast NAMES --help` prints."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        main([*names, "--help"])
    return shown.getvalue().strip()


def page() -> str:
    """The help of the command and of each of its commands."""
    whole = help_of()
    listed = whole[whole.index("Commands:") :]
    names = re.findall(r"^  (\w[\w-]*) ", listed, re.M)
    parts = ["# The command", _shown(whole)]
    parts += [f"## {name}\n\n{_shown(help_of(name))}" for name in names]
    return "\n\n".join(parts) + "\n"


def _shown(text: str) -> str:
    return f"```text\n{text}\n```"
