"""Files: .npy inputs that carry no code, and outputs that exist whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import textwrap
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.dtypes import DataType, numpy_dtype
from tiling.plan import MAX_ELEMS


def check_free(path: Path, *, force: bool) -> None:
    """Refuse an output path that something would be lost at.

    Raises:
        FileExistsError: a file is there and `force` is false.
        FileNotFoundError: there is no directory to put it into.
        ValueError: a directory or a device is there.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent} is no directory to write {path.name} to")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is no regular file, so it cannot be the output")
    if os.path.lexists(path) and not force:
        raise FileExistsError(f"{path} exists; --force replaces it")


@contextlib.contextmanager
def new_file(path: Path, *, force: bool = False) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under its name once the body has succeeded.

    It is written beside `path` under another name; if the body fails, nothing is left of it. A
    file that is there already is replaced with `force` only, even if it came up in the meantime.

    Raises:
        FileExistsError: `path` exists and `force` is false.
        FileNotFoundError: its directory does not exist.
        ValueError: `path` is no regular file.
        OSError: the directory cannot be written to.
    """
    check_free(path, force=force)
    part = path.parent / f".pypto-cast-{secrets.token_hex(8)}.part"
    try:
        with open(part, "xb") as file:
            yield file
        if force:
            if path.exists():
                os.chmod(part, stat.S_IMODE(path.stat().st_mode))
            os.replace(part, path)
        else:
            _move_to_free(part, path)
    finally:
        part.unlink(missing_ok=True)


def _move_to_free(part: Path, path: Path) -> None:
    """Move a file to a name that nobody has, and fail if somebody does by now.

    The name is reserved by an empty file first. A hard link would do it in one step, but not every
    file system has them.
    """
    try:
        open(path, "xb").close()
    except FileExistsError:
        raise FileExistsError(f"{path} has come into existence; --force replaces it") from None
    try:
        os.replace(part, path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def check_regular(path: Path) -> None:
    """Refuse an input that cannot be mapped into memory.

    Raises:
        ValueError: a pipe or a device. (A directory fails when it is opened.)
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ValueError(f"{path} is no regular file; it would have to be mapped into memory")


_ZIP_MAGIC: Final = b"PK"
_LENGTH_BYTES: Final = {1: 2}
"""Of the length of a .npy header, by the format's major version; 4 in all later ones."""
_MAX_HEADER_BYTES: Final = 10_000
"""numpy's own limit, which it checks after reading."""


def _check_head(path: Path) -> None:
    """Refuse an archive, and a header that would be read into memory however long it is."""
    with open(path, "rb") as file:
        magic = file.read(len(np.lib.format.MAGIC_PREFIX))
        if magic.startswith(_ZIP_MAGIC):
            raise ValueError(
                f"{path} is no .npy file but a zip archive, as .npz files are; "
                "save one array of it with numpy.save"
            )
        major = int.from_bytes(file.read(2)[:1], "little")
        length = int.from_bytes(file.read(_LENGTH_BYTES.get(major, 4)), "little")
    if magic == np.lib.format.MAGIC_PREFIX and length > _MAX_HEADER_BYTES:
        raise ValueError(
            f"{path} is no .npy file that a cast can read: it declares a header of {length} "
            f"bytes, more than {_MAX_HEADER_BYTES}"
        )


def open_npy(path: Path, dtype: DataType | None = None) -> npt.NDArray[Any]:
    """Map a .npy file into memory, read-only; nothing in it is executed.

    Args:
        path: the file.
        dtype: what its codes are, where .npy cannot say it: numpy writes BF16 and INT4 as plain
            bytes (`|V2`, `|V1`). Unsigned integers of the same width are taken as codes too.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no .npy file, is cut short, holds Python objects, or declares a header
            or an array beyond what can be cast; nothing of that size is allocated.
        TypeError: plain bytes without `dtype`, or `dtype` does not go with what the file holds.
    """
    check_regular(path)
    _check_head(path)
    try:
        array: npt.NDArray[Any] = np.lib.format.open_memmap(path, mode="r")
    except (
        ValueError,
        TypeError,
        EOFError,
        SyntaxError,
        tokenize.TokenError,
        RecursionError,
        MemoryError,
        OverflowError,
    ) as error:
        reason = textwrap.shorten(str(error), 200, placeholder=" ...")
        raise ValueError(f"{path} is no .npy file that a cast can read: {reason}") from error
    if array.size > MAX_ELEMS:
        raise ValueError(
            f"{path} declares {array.size} elements, {list(array.shape)}; a cast takes at most "
            f"{MAX_ELEMS}"
        )
    found = array.dtype
    if dtype is None:
        if found.kind == "V" and found.names is None:
            likely = DataType.DT_INT4 if found.itemsize == 1 else DataType.DT_BF16
            raise TypeError(
                f"{path} holds bytes that .npy has no name for ({found.str}); say what they are, "
                f"for example --from {likely}"
            )
        return array
    wanted = numpy_dtype(dtype)
    if found.newbyteorder("=") == wanted:
        return array
    if found.kind in "Vu" and found.names is None and found.itemsize == wanted.itemsize:
        native = found.kind == "V" or found.isnative
        return (array if native else array.astype(found.newbyteorder("="))).view(wanted)
    raise TypeError(f"{path} holds {found}, which is not {dtype}")
