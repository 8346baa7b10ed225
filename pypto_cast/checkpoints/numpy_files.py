"""Arrays of numpy's files: .npy, and .npz, which is a zip archive of them.

The format: numpy.lib.format. Nothing is unpickled, and no header is read that is longer than
numpy itself takes.
"""

from __future__ import annotations

import contextlib
import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import numpy as np

from pypto_cast.checkpoints.stored import (
    CARRIED_DTYPES,
    Checkpoint,
    CheckpointError,
    Kind,
    StoredTensor,
)
from pypto_cast.dtypes.data_types import ROWS
from pypto_cast.tensors.array_files import (
    HEADER_ERRORS,
    MAX_HEADER_BYTES,
    check_declared,
    check_packing,
    header_fields,
)

SUFFIX: Final = ".npy"
_PREFIX_BYTES: Final = 8
_BROKEN: Final = (*HEADER_ERRORS, struct.error)
_BROKEN_ZIP: Final = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    RuntimeError,
    zlib.error,
    *_BROKEN,
)
_DTYPES: Final = {row.safetensors: row.dtype for row in ROWS if row.safetensors is not None}
_CARRIED: Final = {
    row.format.dtype: row.format.name
    for row in ROWS
    if row.format is not None and row.format.name in CARRIED_DTYPES
}
"""Names of the dtypes of numpy that this package writes for formats which numpy has none of."""
_RECORDS: Final = frozenset(row.format.dtype for row in ROWS if row.format is not None)
"""The dtypes of elements of the formats; a record is among them where numpy has no dtype."""
_NAMES: Final = {dtype: name for name, dtype in _DTYPES.items()} | _CARRIED


def read_npy(path: Path) -> Checkpoint:
    """Read the header of a .npy file; its tensor has the name of the file.

    Raises:
        OSError: the file cannot be read.
        CheckpointError: it is no .npy file, holds Python objects, or is longer or shorter than it
            says.
    """
    with open(path, "rb") as file, _told(f"{path} is no .npy file that a cast can read", _BROKEN):
        tensor = _described(path.stem, file, file.seek(0, io.SEEK_END))
    return Checkpoint(path=path, tensors=(tensor,), metadata={}, kind=Kind.NPY)


def read_npz(path: Path) -> Checkpoint:
    """Read the headers of all arrays of a .npz file.

    Raises:
        OSError: the file cannot be read.
        CheckpointError: it is damaged, an entry is no array or occurs twice, or an array holds
            Python objects or is longer or shorter than it says.
    """
    tensors: list[StoredTensor] = []
    with (
        _told(f"{path} is no .npz file that a cast can read", _BROKEN_ZIP),
        zipfile.ZipFile(path) as archive,
    ):
        for info in archive.infolist():
            name = info.filename.removesuffix(SUFFIX)
            if any(tensor.name == name for tensor in tensors[-1:]) or info.flag_bits & 1:
                raise ValueError(f"entry {info.filename!r} occurs twice or is encrypted")
            check_packing(info)
            with archive.open(info) as file:
                tensors.append(_described(name, file, info.file_size, info.filename))
        if len({tensor.name for tensor in tensors}) < len(tensors):
            raise ValueError("an entry occurs twice")
    return Checkpoint(path=path, tensors=tuple(tensors), metadata={}, kind=Kind.NPZ)


def npy_header(tensor: StoredTensor, descr: str) -> bytes:
    """The header of a .npy file with a tensor in it."""
    out = io.BytesIO()
    fields = {"descr": descr, "fortran_order": tensor.is_fortran, "shape": tensor.shape}
    if len(repr(fields)) > MAX_HEADER_BYTES:
        np.lib.format.write_array_header_2_0(out, fields)
    else:
        np.lib.format.write_array_header_1_0(out, fields)
    return out.getvalue()


def descr_of(tensor: StoredTensor) -> str:
    """The dtype of a tensor in the words of .npy; BF16 as numpy writes it, plain bytes."""
    order = ">" if tensor.is_swapped else "<"
    dtype = _DTYPES.get(tensor.dtype)
    if dtype is None:
        return tensor.dtype
    if dtype.isbuiltin != 1:
        return f"|V{dtype.itemsize}"
    return dtype.str if dtype.itemsize == 1 else order + dtype.str[1:]


@contextlib.contextmanager
def _told(what: str, errors: tuple[type[Exception], ...]) -> Iterator[None]:
    try:
        yield
    except errors as error:
        text = " ".join(str(error).split())[:200]
        raise CheckpointError(f"{what}: {text}") from error


def _described(name: str, file: IO[bytes], size_bytes: int, entry: str = "") -> StoredTensor:
    """The tensor that a header describes, from its first bytes."""
    if size_bytes < 0:
        raise ValueError("its size is negative")
    if file.seekable():
        file.seek(0)
    head = file.read(_PREFIX_BYTES)
    if len(head) < _PREFIX_BYTES or not head.startswith(np.lib.format.MAGIC_PREFIX):
        raise ValueError(f"{entry or name!r} does not begin as an array")
    version = head[6]
    width = 2 if version == 1 else 4
    length = int.from_bytes(size := file.read(width), "little")
    if length > MAX_HEADER_BYTES:
        raise ValueError(f"it declares a header of {length} bytes, more than {MAX_HEADER_BYTES}")
    start = _PREFIX_BYTES + width + length
    shape, is_fortran, dtype = header_fields(version, size, file.read(length))
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which would have to be executed")
    is_record = dtype.names is not None and dtype not in _RECORDS
    if is_record or dtype.subdtype is not None:
        raise ValueError(f"it holds records, {dtype.str}, and no numbers")
    # numpy takes a bool for an extent, which other formats cannot write.
    if any(type(extent) is not int or extent < 0 for extent in shape):
        raise ValueError(f"it declares the shape {list(shape)}")
    check_declared(shape, dtype)
    tensor = StoredTensor(
        name=name,
        dtype=_NAMES.get(dtype.newbyteorder("="), dtype.str),
        shape=shape,
        offset_bytes=start,
        size_bytes=int(np.prod(shape, dtype=object)) * dtype.itemsize,
        shard=entry,
        is_swapped=dtype.newbyteorder("<") != dtype,
        is_fortran=is_fortran,
    )
    if start + tensor.size_bytes != size_bytes:
        raise ValueError(
            f"{entry or name!r} declares {tensor.size_bytes:,} B of elements and has "
            f"{size_bytes - start:,} B"
        )
    return tensor
