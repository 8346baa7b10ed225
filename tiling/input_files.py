"""Input files that a user names: regular ones, and documents of a size that is parsed at once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

MOST_DOCUMENT_BYTES: Final = 1 << 25
"""A longer document would take gigabytes once it is parsed; none of those that are read has it."""


def regular(path: Path, *, most_bytes: int | None = None) -> Path:
    """The path of a file to read, or of one that is not there, which fails when it is opened.

    Args:
        path: the file.
        most_bytes: of its content; None: however large it is.

    Raises:
        ValueError: a pipe, a socket or a device, or it is larger. (A directory fails when it is
            opened.)
    """
    if path.is_file():
        size = path.stat().st_size
        if most_bytes is not None and size > most_bytes:
            raise ValueError(
                f"{path} has {size:,} B, more than the {most_bytes:,} B that are read of such a "
                "file"
            )
    elif path.exists() and not path.is_dir():
        raise ValueError(
            f"{path} is no regular file; a pipe or a device is not read, for it may never end: "
            "save its content as a file"
        )
    return path


def document_bytes(path: Path) -> bytes:
    """The content of a file that is parsed at once.

    Raises:
        OSError: it cannot be read.
        ValueError: as `regular`, of a document's size.
    """
    return regular(path, most_bytes=MOST_DOCUMENT_BYTES).read_bytes()


def toml_document(path: Path) -> dict[str, Any]:
    """The content of a TOML file.

    Raises:
        OSError: it cannot be read.
        ModuleNotFoundError: Python 3.10 has no TOML of its own, and tomli is not installed.
        ValueError: as `document_bytes`, or it is no TOML; the text names the file.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    content = document_bytes(path)
    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError:
        raise ValueError(f"{path}: TOML is UTF-8, and this is not") from None
    except RecursionError:
        raise ValueError(f"{path}: lists are nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
