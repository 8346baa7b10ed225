"""The safetensors format: the tensors of a checkpoint, and the places of their bytes.

The library checks a file; its bytes are read and written here, because the library takes and gives
whole files. The format: 8 bytes for the length of the header, a JSON header with dtype, shape and
byte range of each tensor, then the bytes of the tensors, without holes.
"""

from __future__ import annotations

import enum
import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from ascend_kernels.matrix import MATRIX, cast_formats
from pypto_cast.dtypes.data_types import ROWS, DataType
from pypto_cast.tensors.array_files import check_declared
from tiling.grid import Shape
from tiling.input_files import regular

_LENGTH_BYTES: Final = 8
_ALIGNMENT_BYTES: Final = 8
_MAX_HEADER_BYTES: Final = 1 << 25
"""A longer header would take more memory, once parsed, than all blocks of a cast."""

_WIDEST: Final = np.dtype(np.complex64)
"""The numpy dtype of safetensors' widest elements."""

METADATA_KEY: Final = "__metadata__"
"""The entry of a header that is no tensor."""

DTYPES_KEY: Final = "pypto_cast.dtypes"
"""The entry of a header's metadata that names the dtypes which safetensors has no name for."""

_CARRIER: Final = "U8"
"""The dtype that the header declares for these."""

_CONVERTED: Final = frozenset(fmt for family in MATRIX for fmt in cast_formats(family))

DTYPES: Final[Mapping[str, DataType]] = {
    row.safetensors or row.format.name: row.pypto
    for row in ROWS
    if row.pypto is not None
    and row.format is not None
    and row.format in _CONVERTED
    and (row.safetensors is not None or row.bits == 8)
}
"""safetensors' names of the dtypes that casts of some family convert; of those of a byte that it
has no name for the name of the format."""

_SAFETENSORS: Final = frozenset(row.safetensors for row in ROWS if row.safetensors is not None)

CARRIED_DTYPES: Final = frozenset(DTYPES) - _SAFETENSORS
"""Those that safetensors has no name for: HiF8."""

KEPT_DTYPES: Final = _SAFETENSORS | CARRIED_DTYPES
"""All dtypes of whole bytes that a safetensors file can hold."""

PACKED_DTYPES: Final[Mapping[str, DataType]] = MappingProxyType({"F4": DataType.DT_FP4_E2M1X2})
"""safetensors' names of dtypes of which two codes share a byte, the first in the low bits as torch
has them. No cast of a checkpoint reads or writes them."""

STORED_NAMES: Final[Mapping[DataType, str]] = {d: n for n, d in DTYPES.items()}
_WORDS: Final = MappingProxyType({"F": "FP", "I": "INT", "U": "UINT", "C": "COMPLEX"})


class CheckpointError(ValueError):
    """A file that is no sound checkpoint."""


class Kind(enum.Enum):
    """The kinds of checkpoints that are read; the value is its name in messages."""

    SAFETENSORS = "safetensors"
    DIRECTORY = "directory of safetensors"
    NPZ = ".npz"
    NPY = ".npy"
    TORCH = "PyTorch"
    GGUF = "GGUF"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTensor:
    """A tensor in a checkpoint.

    Attributes:
        name: unique in the checkpoint.
        dtype: safetensors' name; of a dtype that it has none for, the name of the file's format.
        shape: any number of dimensions.
        offset_bytes: where its elements begin in its file.
        size_bytes: of its elements.
        shard: name of its file in a directory, or of its entry in an archive; else empty.
        is_swapped: stored with the other byte order than a safetensors file has.
        is_fortran: stored with the first axis fastest.
        is_skipped: a dtype that no output can hold, such as a quantised one of GGUF.
    """

    name: str
    dtype: str
    shape: Shape
    offset_bytes: int
    size_bytes: int
    shard: str = ""
    is_swapped: bool = False
    is_fortran: bool = False
    is_skipped: bool = False

    @property
    def elems(self) -> int:
        return math.prod(self.shape)

    @property
    def dtype_in_words(self) -> str:
        """safetensors' F64 as FP64; a name without a plain width behind the letter as it is."""
        letter, digits = self.dtype[:1], self.dtype[1:]
        return _WORDS[letter] + digits if letter in _WORDS and digits.isdigit() else self.dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The tensors of a checkpoint, without their elements.

    Attributes:
        path: the file or directory.
        tensors: in the order of their bytes.
        metadata: what a safetensors file says about itself; of a directory that of its index.
        kind: what is written as the input was.
        shards: of a directory, the files of tensors with the metadata of each.
        content: of a PyTorch file, the objects that it holds.
    """

    path: Path
    tensors: tuple[StoredTensor, ...]
    metadata: Mapping[str, Any]
    kind: Kind = Kind.SAFETENSORS
    shards: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    content: object = None

    def file_of(self, tensor: StoredTensor) -> Path:
        """The file that holds a tensor."""
        return self.path / tensor.shard if self.kind is Kind.DIRECTORY else self.path


def read_header(path: Path) -> Checkpoint:
    """Check a safetensors file and read its header.

    Raises:
        OSError: the file cannot be read.
        CheckpointError: it is no sound safetensors file, or its header has more than 32 MiB.
    """
    import safetensors

    with open(regular(path), "rb") as file:
        size_bytes = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        if _MAX_HEADER_BYTES < length < size_bytes:
            raise CheckpointError(
                f"{path} is no safetensors file that a cast can read: it declares a header of "
                f"{length:,} B, more than {_MAX_HEADER_BYTES:,} B"
            )
        try:
            with safetensors.safe_open(path, framework="numpy") as checked:
                names = set(checked.keys())
            header = parsed_json(file.read(length))
        except (safetensors.SafetensorError, ValueError, RecursionError) as error:
            raise CheckpointError(f"{path} is no safetensors file: {error}") from error
    metadata: dict[str, str] = header.pop(METADATA_KEY, None) or {}
    try:
        header |= _carried(header, metadata.pop(DTYPES_KEY, "{}"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: {DTYPES_KEY!r} of its metadata: {error}") from error
    start = _LENGTH_BYTES + length
    tensors = sorted(
        (_stored(name, entry, start) for name, entry in header.items()),
        key=lambda tensor: (tensor.offset_bytes, tensor.size_bytes),
    )
    end = max((t.offset_bytes + t.size_bytes for t in tensors), default=start)
    if names != set(header) or end != size_bytes:
        raise CheckpointError(f"{path} is no safetensors file: header and bytes do not agree")
    return Checkpoint(path=path, tensors=tuple(tensors), metadata=metadata)


def parsed_json(text: bytes) -> dict[str, Any]:
    """The object of a JSON document; a name that occurs twice in an object is an error.

    Raises:
        ValueError: it is no JSON, no object, or has a name twice.
        RecursionError: it is nested too deeply.
    """
    parsed = json.loads(text, object_pairs_hook=_unique)
    if not isinstance(parsed, dict):
        raise ValueError(f"its JSON is no object but {type(parsed).__name__}")
    return parsed


def header_bytes(tensors: Iterable[StoredTensor], metadata: Mapping[str, str]) -> bytes:
    """The header of a file with these tensors one after the other, wherever they came from."""
    entries: dict[str, Any] = {}
    carried: dict[str, str] = {}
    begin = 0
    for tensor in tensors:
        end = begin + tensor.size_bytes
        is_carried = tensor.dtype in CARRIED_DTYPES
        if is_carried:
            carried[tensor.name] = tensor.dtype
        entries[tensor.name] = {
            "dtype": _CARRIER if is_carried else tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [begin, end],
        }
        begin = end
    named = dict(metadata) | ({DTYPES_KEY: json.dumps(carried)} if carried else {})
    header = ({METADATA_KEY: named} if named else {}) | entries
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT_BYTES)
    return len(text).to_bytes(_LENGTH_BYTES, "little") + text


def cut_short(name: str) -> CheckpointError:
    """The error of a file that became shorter after its header was read."""
    return CheckpointError(f"the file was cut short while tensor {name!r} was read")


def _carried(header: Mapping[str, Any], text: str) -> dict[str, Any]:
    """The entries of a header whose dtypes the metadata names, with these.

    Raises:
        ValueError: no JSON of names of dtypes, or one that is not of a tensor of bytes.
        RecursionError: it is nested too deeply.
    """
    found: dict[str, Any] = {}
    for name, dtype in parsed_json(text.encode()).items():
        if not isinstance(dtype, str) or dtype not in CARRIED_DTYPES:
            known = ", ".join(sorted(CARRIED_DTYPES))
            raise ValueError(f"{name!r} is said to be {dtype!r}; known: {known}")
        if name not in header or header[name]["dtype"] != _CARRIER:
            raise ValueError(f"{name!r} is said to be {dtype}, and is no tensor of {_CARRIER}")
        found[name] = {**header[name], "dtype": dtype}
    return found


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"{twice(name for name, _ in pairs)!r} occurs twice")
    return found


def twice(names: Iterable[str]) -> str | None:
    """The first of the names that occurs more than once; None if none does."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


def _stored(name: str, entry: Mapping[str, Any], start_bytes: int) -> StoredTensor:
    begin, end = entry["data_offsets"]
    shape = tuple(entry["shape"])
    try:
        check_declared(shape, _WIDEST)
    except ValueError as error:
        text = f"tensor {name!r} has a shape that no array has: {error}"
        raise CheckpointError(text) from error
    return StoredTensor(
        name=name,
        dtype=entry["dtype"],
        shape=shape,
        offset_bytes=start_bytes + begin,
        size_bytes=end - begin,
    )
