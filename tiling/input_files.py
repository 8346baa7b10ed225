"""Input files that a user names: regular ones, for a pipe or a device may never end."""

from __future__ import annotations

from pathlib import Path


def regular(path: Path) -> Path:
    """The path of a file to read, or of one that is not there, which fails when it is opened.

    Raises:
        ValueError: a pipe, a socket or a device. (A directory fails when it is opened.)
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ValueError(f"{path} is no regular file; a pipe or a device is not read")
    return path
