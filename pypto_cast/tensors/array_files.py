"""Files: .npy inputs that carry no code, and outputs that exist whole or not at all."""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import os
import re
import stat
import struct
import textwrap
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Final, Literal

import numpy as np
import numpy.typing as npt

from pypto_cast.dtypes.data_types import DTYPE_OF, DataType, numpy_dtype
from pypto_cast.tensors.arguments import check_codes
from pypto_cast.tensors.arrays import from_numpy
from pypto_cast.tensors.tensor import Tensor
from pypto_cast.unfinished import place, unfinished
from tiling.grid import Shape
from tiling.input_files import regular
from tiling.plan import MAX_ELEMS

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

CONTENT: Final = "output"
"""The name of an output in the folder in which it is made."""


def check_free(path: Path, *, force: bool, inputs: Iterable[Path] = ()) -> None:
    """Refuse an output path that something would be lost at.

    Args:
        path: where the output will be; of a symlink what it leads to.
        force: a file that is there may be replaced.
        inputs: files and directories that are read, which `force` does not replace either.

    Raises:
        FileExistsError: a file is there and `force` is false.
        FileNotFoundError: there is no directory to put it into.
        PermissionError: that directory cannot be written to.
        ValueError: a directory, a device, one of the inputs or a file in one is there.
    """
    target = final_path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target.parent} is no directory to write {target.name} to")
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(
            f"{target.parent} is read-only; {target.name} cannot be written to it"
        )
    # A pipe has no path that its symlink, such as /dev/stdout, would lead to.
    if target.is_symlink() or (path.exists() and not path.is_file()):
        raise ValueError(f"{path} is no regular file, so it cannot be the output")
    for source in inputs:
        if target.exists() and source.exists() and target.samefile(source):
            raise ValueError(f"{path} is the input {source}; the output needs a file of its own")
        if target.exists() and source.is_dir() and final_path(source) in target.parents:
            raise ValueError(f"{path} is a file of the input {source}, which is not replaced")
    if os.path.lexists(path) and not force:
        raise FileExistsError(f"{path} exists; --force replaces it")


def check_apart(paths: Iterable[Path | None]) -> None:
    """Refuse outputs of one run that are the same or in each other; None is none.

    Raises:
        ValueError: two of them are.
    """
    asked = [path for path in paths if path is not None]
    for one, other in itertools.combinations(asked, 2):
        first, second = final_path(one), final_path(other)
        if first == second or first in second.parents or second in first.parents:
            raise ValueError(
                f"{one} and {other} would be the same file or in each other; give each result a "
                "place of its own"
            )


class OutputFile(io.FileIO):
    """A file whose failing writes name it and its size.

    Args:
        path: the file.
        mode: as for `open`: "wb" or "ab".
        name: what the errors call it.
    """

    def __init__(self, path: Path, mode: str, name: Path) -> None:
        super().__init__(path, mode)
        self._name = name

    def write(self, data: ReadableBuffer) -> int:
        """Write bytes; returns how many. Raises OSError with the file's name and size."""
        try:
            return super().write(data)
        except OSError as error:
            more = memoryview(data).nbytes
            text = f"{error.strerror}; it has {self.tell():,} B, and {more:,} B more do not fit"
            raise OSError(error.errno, text, str(self._name)) from error

    def fileno(self) -> int:
        """Raises UnsupportedOperation: numpy would write to the descriptor and bypass `write`."""
        raise io.UnsupportedOperation("fileno")


@contextlib.contextmanager
def new_output(
    path: Path, *, force: bool = False, inputs: Iterable[Path] = (), key: str = ""
) -> Iterator[Path]:
    """A path to write a file to, which appears under its name once the body has succeeded.

    It is near `path` (see `unfinished`), in a folder that no other run has meanwhile and that may
    hold more. A file that is there already is replaced with `force` only, even if it came up in the
    meantime. A symlink stays one: what it leads to is written. A body that writes nothing leaves
    nothing.

    Args:
        path: where the output will be.
        force: a file that is there may be replaced.
        inputs: as for `check_free`.
        key: as for `unfinished`.

    Raises:
        FileExistsError: `path` exists and `force` is false.
        FileNotFoundError: its directory does not exist.
        RuntimeError: another run writes it.
        ValueError: `path` is no regular file, or one of the inputs.
        OSError: the directory cannot be written to, or there is no room.

    Warns:
        LeftoverWarning: a run on this output was killed, and what it left is removed.
    """
    check_free(path, force=force, inputs=inputs)
    target = final_path(path)
    with unfinished(target, key=key) as folder:
        made = folder / CONTENT
        yield made
        if not made.exists():
            return
        if force and target.exists():
            os.chmod(made, stat.S_IMODE(target.stat().st_mode))
        try:
            place(made, target, replace=force)
        except FileExistsError:
            text = f"{path} has come into existence; --force replaces it"
            raise FileExistsError(text) from None


@contextlib.contextmanager
def new_file(path: Path, *, force: bool = False, inputs: Iterable[Path] = ()) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under its name once the body has succeeded.

    If the body fails, nothing is left of it.

    Raises, warns:
        as `new_output`.
    """
    with (
        new_output(path, force=force, inputs=inputs) as made,
        io.BufferedWriter(OutputFile(made, "wb", path)) as file,
    ):
        yield file


@contextlib.contextmanager
def output_file(
    path: Path | None, *, force: bool, inputs: Iterable[Path]
) -> Iterator[BinaryIO | None]:
    """`new_file`, or None where no path is given."""
    if path is None:
        yield None
    else:
        with new_file(path, force=force, inputs=inputs) as file:
            yield file


def final_path(path: Path) -> Path:
    """The place of an output: absolute, and through all symlinks."""
    return Path(os.path.realpath(path))


HEADER_ERRORS: Final = (
    ValueError,
    TypeError,
    EOFError,
    SyntaxError,
    tokenize.TokenError,
    RecursionError,
    MemoryError,
    OverflowError,
)
"""Errors that numpy raises for headers."""
_BOMB_BYTES, _BOMB_RATIO = 1 << 28, 200
"""Entries that are larger and packed more tightly than this hold no numbers of use."""
_ZIP_MAGIC: Final = b"PK"
_REGISTERED: Final = 2
"""`numpy.dtype.isbuiltin` of a dtype that another library registers."""
_E5M2: Final = numpy_dtype(DataType.DT_FP8E5M2)
_E5M2_HEADER: Final = re.compile(rb"^(\{'descr': )'[<|]f1'")
"""The name that numpy writes for E5M2 and cannot read: ml_dtypes has it as a float of one byte."""
_READERS: Final = {
    1: np.lib.format.read_array_header_1_0,
    2: np.lib.format.read_array_header_2_0,
}
_LENGTH_BYTES: Final = {1: 2}
"""Of the length of a .npy header, by the format's major version; 4 in all later ones."""
MAX_HEADER_BYTES: Final = 10_000
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
    if magic == np.lib.format.MAGIC_PREFIX and length > MAX_HEADER_BYTES:
        raise ValueError(
            f"{path} is no .npy file that a cast can read: it declares a header of {length} "
            f"bytes, more than {MAX_HEADER_BYTES}"
        )


def header_fields(version: int, length: bytes, head: bytes) -> tuple[Shape, bool, np.dtype[Any]]:
    """The shape, whether it is in Fortran's order, and the dtype that a .npy header declares.

    Args:
        version: the format's major version.
        length: that of the header, as it stands in the file.
        head: the header.

    Raises:
        ValueError: of another version. Others as `HEADER_ERRORS`.
    """
    if version not in _READERS:
        # Version 3 differs in that its names of fields are UTF-8; an array of numbers has none.
        raise ValueError(f"its version {version} is none of arrays of numbers")
    plain, is_e5m2 = _E5M2_HEADER.subn(rb"\1'|V1'", head)
    shape, is_fortran, dtype = _READERS[version](io.BytesIO(length + plain))
    return shape, is_fortran, _E5M2 if is_e5m2 else dtype


def _header(file: IO[bytes]) -> tuple[Shape, bool, np.dtype[Any]]:
    """The same of an open file, which is left at the first element."""
    version, _ = np.lib.format.read_magic(file)
    length = file.read(_LENGTH_BYTES.get(version, 4))
    size = int.from_bytes(length, "little")
    if size > MAX_HEADER_BYTES:
        raise ValueError(f"it declares a header of {size} bytes, more than {MAX_HEADER_BYTES}")
    return header_fields(version, length, file.read(size))


def as_saved(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array as .npy and .npz hold it: a dtype of ml_dtypes as plain bytes.

    numpy itself does so with BF16; with E5M2 it writes what it cannot read.
    """
    return array.view(f"V{array.itemsize}") if array.dtype.isbuiltin == _REGISTERED else array


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
    return with_dtype(mapped_npy(path), dtype, str(path))


def check_declared(shape: Shape, dtype: np.dtype[Any]) -> None:
    """Refuse an array that numpy cannot make, of which a file may have all bytes for it has none.

    Raises:
        ValueError: elements of 0 bytes, more dimensions than numpy has, or extents that beside a 0
            exceed an array's size.
    """
    if not dtype.itemsize:
        raise ValueError(f"it declares elements of 0 bytes ({dtype.str})")
    if 0 in shape:
        np.empty(shape, dtype)  # which allocates nothing
    else:
        np.empty((0,) * len(shape), dtype)


def mapped_npy(path: Path) -> npt.NDArray[Any]:
    """The array of a .npy file as numpy reads it, mapped into memory; see `open_npy`."""
    _check_head(regular(path))
    try:
        with open(path, "rb") as file:
            shape, is_fortran, dtype = _header(file)
            start = file.tell()
        array: npt.NDArray[Any]
        if dtype == _E5M2:
            check_declared(shape, dtype)
            order: Literal["F", "C"] = "F" if is_fortran else "C"
            array = np.memmap(path, np.uint8, "r", start, shape, order).view(dtype)
        else:
            array = np.lib.format.open_memmap(path, mode="r")
            check_declared(array.shape, array.dtype)
    except HEADER_ERRORS as error:
        reason = textwrap.shorten(str(error), 200, placeholder=" ...")
        raise ValueError(f"{path} is no .npy file that a cast can read: {reason}") from error
    if array.size > MAX_ELEMS:
        raise ValueError(
            f"{path} declares {array.size} elements, {list(array.shape)}; a cast takes at most "
            f"{MAX_ELEMS}"
        )
    return array


def with_dtype(
    array: npt.NDArray[Any], dtype: DataType | None, label: str, told_by: str = "--from"
) -> npt.NDArray[Any]:
    """An array out of a file as elements of a dtype, which the file may not be able to name.

    Args:
        array: as numpy reads it.
        dtype: as for `open_npy`.
        label: what messages call it.
        told_by: what says the dtype; the error names it.

    Raises:
        TypeError: as for `open_npy`.
        ValueError: bytes of two codes of FP4 each.
    """
    found = array.dtype
    if dtype is None:
        if found.kind == "V" and found.names is None:
            fitting = [
                format(known)
                for fmt, known in DTYPE_OF.items()
                if fmt.dtype.isbuiltin != 1 and fmt.dtype.itemsize == found.itemsize
            ]
            if not fitting:
                raise TypeError(f"{label} holds {found.str}, elements that no dtype has")
            raise TypeError(
                f"{label} holds bytes that .npy has no name for ({found.str}); say what they are "
                f"with {told_by} {' or '.join(fitting)}"
            )
        return array
    wanted = numpy_dtype(dtype)
    if found.newbyteorder("=") == wanted:
        return array
    if found.kind in "Vu" and found.names is None and found.itemsize == wanted.itemsize:
        native = found.kind == "V" or found.isnative
        values = (array if native else array.astype(found.newbyteorder("="))).view(wanted)
        check_codes(values, dtype, label)
        return values
    raise TypeError(f"{label} holds {found}, which is not {dtype}")


def check_packing(info: zipfile.ZipInfo, *, may_be_constant: bool = False) -> None:
    """Refuse an entry of a .npz file that would be unpacked at once, or to far more than it is.

    Args:
        info: the entry.
        may_be_constant: the file is no input of numbers, and large arrays of one value are in it.

    Raises:
        ValueError: it is packed as numpy never does, or grows as a zip bomb does.
    """
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(
            f"entry {info.filename!r} is packed in a way that numpy.savez never does, and that is "
            "unpacked as a whole"
        )
    growth = info.file_size // max(info.compress_size, 1)
    if info.file_size > _BOMB_BYTES and growth > _BOMB_RATIO and not may_be_constant:
        raise ValueError(
            f"entry {info.filename!r} grows {growth:,}-fold to {info.file_size:,} B, as a zip bomb "
            "does; save it with numpy.savez, which packs nothing, if it is meant so"
        )


def check_npz(path: Path, *, may_be_constant: bool = False) -> None:
    """Look at the headers of a .npz file before anything of it is unpacked.

    Args:
        path: the file.
        may_be_constant: as for `check_packing`.

    Raises:
        OSError: the file cannot be read.
        ValueError: a pipe or a device, no zip archive, an entry that numpy does not write, that
            occurs twice, declares more elements than it has, or as `check_packing`.
    """
    try:
        with zipfile.ZipFile(regular(path)) as archive:
            names = {info.filename.removesuffix(".npy") for info in archive.infolist()}
            if len(names) < len(archive.infolist()):
                raise ValueError("an entry occurs twice")
            for info in archive.infolist():
                check_packing(info, may_be_constant=may_be_constant)
                with archive.open(info) as file:
                    shape, _, dtype = _header(file)
                check_declared(shape, dtype)
                declared = math.prod(shape) * dtype.itemsize
                if declared > info.file_size:
                    raise ValueError(
                        f"entry {info.filename!r} declares {declared:,} B of elements and has "
                        f"{info.file_size:,} B"
                    )
    except (*HEADER_ERRORS, RuntimeError, zipfile.BadZipFile, zlib.error, struct.error) as error:
        reason = textwrap.shorten(str(error), 200, placeholder=" ...")
        raise ValueError(f"{path} is no .npz file of arrays: {reason}") from error


def npz_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a .npz file by name; nothing in it is executed.

    Raises:
        OSError, ValueError: as `check_npz`, or it holds Python objects.
    """
    check_npz(path)
    try:
        with zipfile.ZipFile(path) as archive, np.load(path, allow_pickle=False) as held:
            return {
                entry.removesuffix(".npy"): _entry(archive, entry, held)
                for entry in archive.namelist()
            }
    except (*HEADER_ERRORS, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path} is no .npz file of arrays: {error}") from error


def _entry(
    archive: zipfile.ZipFile, entry: str, held: Mapping[str, npt.NDArray[Any]]
) -> npt.NDArray[Any]:
    with archive.open(entry) as file:
        shape, is_fortran, dtype = _header(file)
        if dtype != _E5M2:
            return held[entry]
        codes = np.frombuffer(file.read(math.prod(shape)), np.uint8)
    return codes.reshape(shape, order="F" if is_fortran else "C").view(dtype)


def read_tensor(path: Path, dtype: DataType | None = None) -> Tensor:
    """A .npy file as a tensor, mapped into memory.

    Args:
        path: the file.
        dtype: as for `open_npy`.

    Raises:
        OSError, TypeError, ValueError: as `open_npy`, and for a dtype or a shape that no cast
            takes.
    """
    array = open_npy(path, dtype)
    try:
        return from_numpy(array)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
