"""The safetensors format: what a checkpoint holds, and the bytes of one tensor at a time.

The library checks a file; its bytes are read and written here, because the library takes and gives
whole files. The format: 8 bytes for the length of the header, a JSON header with dtype, shape and
byte range of each tensor, then the bytes of the tensors, without holes.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.dtypes import DataType, numpy_dtype
from pypto_cast.files import check_regular
from pypto_cast.names import dtype_named
from tiling.grid import Shape

_COPY_BYTES: Final = 1 << 20
_LENGTH_BYTES: Final = 8
_ALIGNMENT_BYTES: Final = 8

DTYPES: Final[Mapping[str, DataType]] = MappingProxyType(
    {name: dtype_named(name) for name in ("F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8")}
)
"""safetensors' names of the dtypes that casts convert."""

STORED_NAMES: Final[Mapping[DataType, str]] = MappingProxyType({d: n for n, d in DTYPES.items()})
_WORDS: Final = MappingProxyType({"F": "FP", "I": "INT", "U": "UINT"})


class CheckpointError(ValueError):
    """A file that is no sound safetensors checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTensor:
    """A tensor in a checkpoint: name, safetensors' dtype, shape, and its bytes in the file."""

    name: str
    dtype: str
    shape: Shape
    offset_bytes: int
    size_bytes: int

    @property
    def elems(self) -> int:
        return math.prod(self.shape)

    @property
    def dtype_in_words(self) -> str:
        """safetensors' F64 as FP64; a name without a plain width behind the letter as it is."""
        known = DTYPES.get(self.dtype)
        if known is not None:
            return str(known.format)
        letter, digits = self.dtype[:1], self.dtype[1:]
        return _WORDS[letter] + digits if letter in _WORDS and digits.isdigit() else self.dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The content of a checkpoint's header; tensors are in the order of their bytes."""

    path: Path
    tensors: tuple[StoredTensor, ...]
    metadata: Mapping[str, str]


def read_header(path: Path) -> Checkpoint:
    """Check a checkpoint and read what it holds.

    Raises:
        OSError: the file cannot be read.
        CheckpointError: it is no sound safetensors file.
    """
    import safetensors

    check_regular(path)
    with open(path, "rb") as file:
        size_bytes = os.fstat(file.fileno()).st_size
        try:
            with safetensors.safe_open(path, framework="numpy") as checked:
                names = set(checked.keys())
        except (safetensors.SafetensorError, ValueError) as error:
            raise CheckpointError(f"{path} is no safetensors file: {error}") from error
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        header: dict[str, Any] = json.loads(file.read(length))
    metadata: dict[str, str] = header.pop("__metadata__", None) or {}
    start = _LENGTH_BYTES + length
    tensors = sorted(
        (_stored(name, entry, start) for name, entry in header.items()),
        key=lambda tensor: (tensor.offset_bytes, tensor.size_bytes),
    )
    end = max((t.offset_bytes + t.size_bytes for t in tensors), default=start)
    if names != set(header) or end != size_bytes:
        raise CheckpointError(f"{path} is no safetensors file: header and bytes do not agree")
    return Checkpoint(path=path, tensors=tuple(tensors), metadata=metadata)


def header_bytes(tensors: Iterable[StoredTensor], metadata: Mapping[str, str]) -> bytes:
    """The header of a file with these tensors one after the other, wherever they came from."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    begin = 0
    for tensor in tensors:
        end = begin + tensor.size_bytes
        header[tensor.name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [begin, end],
        }
        begin = end
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT_BYTES)
    return len(text).to_bytes(_LENGTH_BYTES, "little") + text


def read_values(stored: StoredTensor, file: BinaryIO) -> npt.NDArray[Any]:
    """The values of a tensor, flat.

    Raises:
        CheckpointError: the file ends before they do.
    """
    dtype = numpy_dtype(DTYPES[stored.dtype])
    little = np.dtype(f"<u{dtype.itemsize}")
    file.seek(stored.offset_bytes)
    codes = np.fromfile(file, little, stored.elems)
    if codes.nbytes != stored.size_bytes:
        raise _cut_short(stored)
    return codes.astype(little.newbyteorder("="), copy=False).view(dtype)


def write_values(values: npt.NDArray[Any], out: BinaryIO) -> None:
    """Append the values of a tensor to a file."""
    codes = np.ascontiguousarray(values).reshape(-1).view(f"u{values.dtype.itemsize}")
    out.write(codes.astype(codes.dtype.newbyteorder("<"), copy=False).view(np.uint8).data)


def copy_bytes(stored: StoredTensor, file: BinaryIO, out: BinaryIO) -> None:
    """Append the bytes of a tensor to a file as they are, a piece at a time.

    Raises:
        CheckpointError: the file ends before they do.
    """
    file.seek(stored.offset_bytes)
    left = stored.size_bytes
    while left:
        piece = file.read(min(left, _COPY_BYTES))
        if not piece:
            raise _cut_short(stored)
        out.write(piece)
        left -= len(piece)


def _stored(name: str, entry: Mapping[str, Any], start_bytes: int) -> StoredTensor:
    begin, end = entry["data_offsets"]
    return StoredTensor(
        name=name,
        dtype=entry["dtype"],
        shape=tuple(entry["shape"]),
        offset_bytes=start_bytes + begin,
        size_bytes=end - begin,
    )


def _cut_short(stored: StoredTensor) -> CheckpointError:
    return CheckpointError(f"the file was cut short while tensor {stored.name!r} was read")
