"""Checkpoints of torch.save, read by torch's own loading of weights only: no code of one is run.

A file is a zip archive with a pickle of the objects and the storages beside it, stored as they are.
The pickle is read by an unpickler that knows tensors, the containers of Python and nothing else.
torch maps the archive, and every page of it that is touched counts as memory of the process. So the
elements are read from the file, those with strides through windows on it that are given back. And
torch.save needs storages in memory as a whole, so archives are written here; torch's own reading
and numpy's zip archives set the format: a pickle in which storages have keys, an entry for each.
"""

from __future__ import annotations

import copy
import importlib
import io
import math
import mmap
import pickle
import re
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import IO, Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.checkpoints.stored import (
    DTYPES,
    Checkpoint,
    CheckpointError,
    Kind,
    StoredTensor,
    cut_short,
)
from pypto_cast.dtypes.data_types import ROWS
from pypto_cast.report.text_format import extra_hint
from pypto_cast.tensors.torch_bridge import array_over, torch_dtype_of
from tiling.grid import Shape

PICKLE: Final = "data.pkl"
ARCHIVE_ERRORS: Final = (
    zipfile.BadZipFile,
    struct.error,
    ValueError,
    OverflowError,
    RuntimeError,
    MemoryError,
)
"""Raised by zipfile, and by the reading of headers here, where an archive is damaged."""
_DATA: Final = "data/"
_BYTE_ORDER: Final = "byteorder"
_VERSION: Final = "version", b"3\n"
_PIECE_BYTES: Final = 1 << 20
_STRIP_BYTES: Final = 1 << 23
"""Of elements with strides so many are gathered at a time: neighbours lie far apart in the file."""
_WINDOW_BYTES: Final = 1 << 23
"""Of the file so much is mapped meanwhile."""
_LOCAL_HEADER: Final = struct.Struct("<26x2H")
"""Of a zip entry, with the lengths of name and extra field, which stand between it and the data."""
_PADDING: Final = struct.Struct("<2H")
_PADDING_ID: Final = 0x4246
"""The extra field of a zip entry that torch too pads with."""
_ALIGNMENT_BYTES: Final = 64


class Storages:
    """Reads elements of tensors that torch has mapped from an archive; one thread at a time.

    Args:
        checkpoint: the archive.

    Attributes:
        tensors: those of the archive by name.

    Raises:
        OSError: the file cannot be read.
        CheckpointError: an entry of the archive is damaged.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        path = checkpoint.path
        self._file = io.BufferedReader(io.FileIO(path))
        self._size_bytes = path.stat().st_size
        self.tensors = {name: held for name, held, _ in _leaves(checkpoint.content, "")}
        storages = [held.untyped_storage() for held in self.tensors.values() if _is_dense(held)]
        try:
            self._address = _address(self._file, {s.data_ptr() for s in storages if s.nbytes()})
        except ARCHIVE_ERRORS as error:
            self._file.close()
            raise damaged_archive(path, error) from error
        self._strip: tuple[tuple[str, int], npt.NDArray[np.uint8]] | None = None

    def read(self, name: str, begin_bytes: int, out: npt.NDArray[np.uint8]) -> None:
        """Fill a buffer with whole elements of a tensor in row-major order, from a position on.

        Raises:
            OSError: the file cannot be read.
            CheckpointError: it ends before the elements do.
        """
        self._read(name, self.tensors[name], begin_bytes, out)

    def _read(self, name: str, held: Any, begin_bytes: int, out: npt.NDArray[np.uint8]) -> None:
        place = self._place(held)
        if place is None:
            read_bytes_of_torch(held, begin_bytes, out)
        elif held.is_contiguous():
            self._file.seek(place + begin_bytes)
            if self._file.readinto(out.data) != out.size:
                raise cut_short(name)
        else:
            self._read_strided(name, held.detach(), place, begin_bytes, out)

    def pieces(self, storage: Any) -> Iterator[npt.NDArray[np.uint8]]:
        """The bytes of a storage in order; a piece is gone when the next one comes."""
        torch = importlib.import_module("torch")
        whole = torch.empty(0, dtype=torch.uint8).set_(storage)
        held = np.empty(min(_PIECE_BYTES, storage.nbytes()), np.uint8)
        for begin in range(0, storage.nbytes(), _PIECE_BYTES):
            piece = held[: storage.nbytes() - begin]
            self._read("that stays as it is", whole, begin, piece)
            yield piece

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _place(self, held: Any) -> int | None:
        """The place of a tensor in the file; None where its elements are not there as they are."""
        storage = held.untyped_storage()
        if self._address is None or held.is_conj() or held.is_neg() or not held.numel():
            return None
        begin = storage.data_ptr() - self._address
        if begin < 0 or begin + storage.nbytes() > self._size_bytes:
            return None
        return int(begin + held.storage_offset() * held.element_size())

    def _read_strided(
        self, name: str, held: Any, place: int, begin_bytes: int, out: npt.NDArray[np.uint8]
    ) -> None:
        width = held.element_size()
        shape = tuple(held.shape)
        strides = tuple(stride * width for stride in held.stride())
        # A strip is so many entries of an axis, with all of those behind it.
        axis, inner = 0, math.prod(shape[1:]) * width
        while inner > _STRIP_BYTES and axis + 1 < len(shape):
            axis += 1
            inner //= shape[axis]
        step = max(1, _STRIP_BYTES // inner)
        filled = 0
        while filled < out.size:
            row, within = divmod(begin_bytes + filled, inner)
            *outer, entry = np.unravel_index(row, shape[: axis + 1])
            first = int(entry) - int(entry) % step
            key = name, row - int(entry) + first
            if self._strip is None or self._strip[0] != key:
                extents = min(step, shape[axis] - first), *shape[axis + 1 :]
                at = (*outer, first, *(0,) * len(shape[axis + 1 :]))
                begin = place + sum(int(i) * s for i, s in zip(at, strides, strict=True))
                self._strip = None
                gathered = np.empty(extents, f"V{width}")
                self._gather(name, begin, strides[axis:], gathered)
                self._strip = key, gathered.reshape(-1).view(np.uint8)
            part = self._strip[1][(int(entry) - first) * inner + within :][: out.size - filled]
            out[filled : filled + part.size] = part
            filled += part.size

    def _gather(self, name: str, begin: int, strides: Shape, out: npt.NDArray[np.void]) -> None:
        """Copy a box of elements out of the file, a window after another."""
        spans = [(extent - 1) * stride for extent, stride in zip(out.shape, strides, strict=True)]
        size_bytes = sum(spans) + out.itemsize
        if size_bytes > _WINDOW_BYTES:
            axis = spans.index(max(spans))
            half = out.shape[axis] // 2
            before, behind = np.split(out, [half], axis)
            self._gather(name, begin, strides, before)
            self._gather(name, begin + half * strides[axis], strides, behind)
            return
        skipped = begin % mmap.ALLOCATIONGRANULARITY
        try:
            window = mmap.mmap(
                self._file.fileno(),
                skipped + size_bytes,
                access=mmap.ACCESS_READ,
                offset=begin - skipped,
            )
        except ValueError:
            raise cut_short(name) from None
        with window:
            out[...] = np.ndarray(out.shape, out.dtype, window, skipped, strides)


class TorchEntries:
    """Writes the entries of an archive as torch.save has them.

    Args:
        file: where the archive goes.
        archive: it, empty and open for writing.
    """

    def __init__(self, file: BinaryIO, archive: zipfile.ZipFile) -> None:
        self._file, self._archive = file, archive

    def storage(self, key: str) -> IO[bytes]:
        """Begin the entry of a storage; its bytes are little-endian, and it is closed after."""
        return self._entry(_DATA + key)

    def complete(self, content: object, keys: Mapping[int, str], source: Storages) -> None:
        """Write all that is missing: the objects, and the storages in them that have no entry.

        Args:
            content: the objects.
            keys: of the storages that have an entry, by their addresses.
            source: reads the others.
        """
        pickler = _Pickler(keys)
        for name, data in (
            (PICKLE, pickler.dumped(content)),
            (_BYTE_ORDER, b"little"),
            _VERSION,
        ):
            with self._entry(name) as entry:
                entry.write(data)
        for key, storage in pickler.missing.items():
            with self.storage(key) as entry:
                for piece in source.pieces(storage):
                    entry.write(piece.data)

    def _entry(self, name: str) -> IO[bytes]:
        info = zipfile.ZipInfo(f"archive/{name}")
        info.CRC = info.compress_size = 0  # the length of a header is asked for before they are set
        # torch maps storages where they are, and reads them fastest where they are aligned.
        begin = self._file.tell() + len(info.FileHeader(zip64=True)) + _PADDING.size
        padding = bytes(-begin % _ALIGNMENT_BYTES)
        info.extra = _PADDING.pack(_PADDING_ID, len(padding)) + padding
        return self._archive.open(info, "w", force_zip64=True)


class _Pickler(pickle.Pickler):
    """Pickles objects with keys in place of their storages.

    Attributes:
        missing: the storages that have no entry yet, by the keys that they got.
    """

    def __init__(self, keys: Mapping[int, str]) -> None:
        self._out = io.BytesIO()
        super().__init__(self._out, protocol=2)  # the one that torch's loading of weights reads
        self._torch = importlib.import_module("torch")
        self._keys: dict[object, str] = dict(keys.items())
        self.missing: dict[str, Any] = {}

    def dumped(self, content: object) -> bytes:
        """The pickle."""
        self.dump(content)
        return self._out.getvalue()

    def persistent_id(self, value: object) -> tuple[object, ...] | None:
        """The reference to a storage, as torch's reading resolves it; None of other objects."""
        held: Any = value
        if isinstance(value, self._torch.storage.TypedStorage):
            # The public spellings of these warn that types of storages will go.
            storage, elems = held._untyped_storage, held._size()
            kind = getattr(self._torch, held._pickle_storage_type())
        elif self._torch.is_storage(value):
            storage, elems, kind = held, held.nbytes(), self._torch.UntypedStorage
        else:
            return None
        key = self._keys.get(storage.data_ptr())
        if key is None:
            # torch's reading gives a key one type, so a storage of two types is written twice.
            place = storage.data_ptr(), storage.nbytes(), kind
            key = self._keys.setdefault(place, f"kept{len(self.missing)}")
            self.missing[key] = storage
        return "storage", kind, key, "cpu", elems


def read_bytes_of_torch(held: Any, begin_bytes: int, out: npt.NDArray[np.uint8]) -> None:
    """Fill a buffer with whole elements of a torch tensor in row-major order, from a position on.

    Of a tensor with strides these elements alone are gathered.
    """
    torch = importlib.import_module("torch")
    plain = held.detach().resolve_conj().resolve_neg()
    if plain.is_complex():
        plain = torch.view_as_real(plain)
    width = plain.element_size()
    codes = array_over(plain.view(getattr(torch, f"int{8 * width}")), "tensor")
    flat = codes.reshape(-1) if codes.flags.c_contiguous else codes.flat
    begin = begin_bytes // width
    out.view(codes.dtype)[:] = flat[begin : begin + out.size // width]


def damaged_archive(path: Path, reason: object) -> CheckpointError:
    """The error that refuses an archive."""
    return CheckpointError(f"{path} is no PyTorch checkpoint that can be read: {reason}")


def _address(file: BinaryIO, storages: Set[int]) -> int | None:
    """The address that an archive is mapped at.

    torch does not tell. It is the one address at which a map can begin and from which every storage
    is as far away as an entry from the beginning of the file.

    Args:
        file: the archive.
        storages: their addresses.

    Returns:
        None where several fit, which needs entries without a storage, or none, and where the
        storages are not mapped as they are: torch turns the bytes of an archive that is not
        little-endian.
    """
    with zipfile.ZipFile(file) as archive:
        entries = {info.filename: info.header_offset for info in archive.infolist()}
        pickles = [name for name in entries if name.rpartition("/")[2] == PICKLE]
        if not pickles:
            raise zipfile.BadZipFile(f"its directory has no {PICKLE}")
        root = pickles[0].removesuffix(PICKLE)
        order = b"little"
        if root + _BYTE_ORDER in entries:
            order = archive.read(root + _BYTE_ORDER)
        elif importlib.import_module("torch").serialization.get_default_load_endianness():
            return None
    if order != b"little" or not storages:
        return None
    begins = set()
    for name, offset in entries.items():
        if name.startswith(root + _DATA):
            file.seek(offset)
            lengths = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
            begins.add(offset + _LOCAL_HEADER.size + sum(lengths))
    lowest = min(storages)
    possible = [
        lowest - begin
        for begin in begins
        if (lowest - begin) % mmap.ALLOCATIONGRANULARITY == 0
        and all(storage - lowest + begin in begins for storage in storages)
    ]
    return possible[0] if len(possible) == 1 else None


_MAX_PICKLE_BYTES: Final = 1 << 25
_REFUSED: Final = re.compile(r"GLOBAL ([\w.]+)")
_NAMES: Final = {row.torch: row.safetensors for row in ROWS if row.safetensors is not None}
"""safetensors' names of the torch dtypes."""


def read_torch(path: Path) -> Checkpoint:
    """Load a checkpoint of torch.save with its elements mapped, not read.

    Raises:
        ModuleNotFoundError: torch is not installed.
        OSError: the file cannot be read.
        CheckpointError: it is damaged, of TorchScript, or holds what is neither tensors nor
            containers of Python, such as whole modules; nothing of that is executed.
    """
    _check_archive(path)
    try:
        torch = importlib.import_module("torch")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"{path} is a PyTorch checkpoint, which needs torch: {extra_hint('torch')}"
        ) from None
    try:
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        tensors = _tensors(content)
    except pickle.UnpicklingError as error:
        raise CheckpointError(
            f"{path} holds more than tensors and containers of Python, and nothing of it was "
            f"executed: {_told(error)}"
        ) from error
    except CheckpointError:
        raise
    except Exception as error:  # the unpickler lets errors of every kind through
        raise damaged_archive(path, _told(error)) from error
    return Checkpoint(
        path=path, tensors=tuple(tensors), metadata={}, kind=Kind.TORCH, content=content
    )


def misplaced(checkpoint: Checkpoint, added: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Reasons why something cannot be put beside tensors.

    Args:
        checkpoint: the tensors.
        added: by the name of a tensor, what is to be added to its key.
    """
    for name, _, place in _leaves(checkpoint.content, ""):
        for suffix in added.get(name, ()):
            if place is None:
                yield f"tensor {name!r} is in no dict that could hold {name + suffix!r}"
            elif f"{place[1]}{suffix}" in place[0]:
                yield f"tensor {name!r} needs the name {name + suffix!r}, which is there already"


def with_results(
    checkpoint: Checkpoint, results: Mapping[str, Mapping[str, StoredTensor]]
) -> tuple[object, dict[int, str]]:
    """The objects of a checkpoint with other tensors in it, whose elements are not there.

    Args:
        checkpoint: the input.
        results: by the name of a tensor of the input, what it became under "", and what is added
            beside it by the end of its key; their shards are the keys of their storages, and those
            of one key are one object.

    Returns:
        The objects, and the keys by the addresses of the storages.
    """
    torch = importlib.import_module("torch")
    made: dict[str, Any] = {}

    def new(result: StoredTensor, before: Any = None) -> Any:
        if result.shard not in made:
            # Memory that nothing is written to takes no page.
            values = torch.empty(result.shape, dtype=torch_dtype_of(DTYPES[result.dtype]))
            if isinstance(before, torch.nn.Parameter) and values.is_floating_point():
                values = torch.nn.Parameter(values, requires_grad=before.requires_grad)
            made[result.shard] = values
        return made[result.shard]

    def replaced(value: Any, name: str) -> Any:
        if isinstance(value, torch.Tensor):
            result = results.get(name, {}).get("")
            return value if result is None else new(result, value)
        if isinstance(value, Mapping):
            copied: Any = copy.copy(value)
            for key, entry in value.items():
                within = _joined(name, key)
                copied[key] = replaced(entry, within)
                if isinstance(entry, torch.Tensor):
                    for suffix, result in results.get(within, {}).items():
                        if suffix:
                            copied[f"{key}{suffix}"] = new(result)
            return copied
        if type(value) in (list, tuple):
            entries = enumerate(value)
            return type(value)(replaced(entry, _joined(name, n)) for n, entry in entries)
        return value

    content = replaced(checkpoint.content, "")
    storages = {
        held.untyped_storage().data_ptr(): key for key, held in made.items() if held.numel()
    }
    return content, storages


def _check_archive(path: Path) -> None:
    """Refuse an archive that would take more memory than the file has bytes."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except ARCHIVE_ERRORS as error:
        raise damaged_archive(path, error) from error
    for info in entries:
        is_pickle = info.filename.rpartition("/")[2] == PICKLE
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise damaged_archive(
                path, f"{info.filename} in it is compressed, which torch.save never does"
            )
        if is_pickle and info.file_size > _MAX_PICKLE_BYTES:
            raise damaged_archive(
                path,
                f"its pickle has {info.file_size:,} B, more than {_MAX_PICKLE_BYTES:,} B",
            )
        if "/code/" in info.filename:
            raise CheckpointError(
                f"{path} is a TorchScript archive, which holds code; save the state_dict() of the "
                "module with torch.save"
            )


def _tensors(content: object) -> Iterator[StoredTensor]:
    names: set[str] = set()
    for name, held, _ in _leaves(content, ""):
        if name in names:
            raise CheckpointError(f"two tensors would be named {name!r}")
        names.add(name)
        dense = _is_dense(held)
        kind = str(held.dtype).removeprefix("torch.")
        yield StoredTensor(
            name=name,
            dtype=_dtype_name(held.dtype) if dense else f"{held.layout} {kind}",
            shape=tuple(held.shape),
            offset_bytes=0,
            size_bytes=held.numel() * held.element_size() if dense else 0,
        )


def _is_dense(held: Any) -> bool:
    torch = importlib.import_module("torch")
    return held.layout is torch.strided and not held.is_quantized and held.device.type == "cpu"


def _dtype_name(dtype: Any) -> str:
    word = str(dtype).removeprefix("torch.")
    return _NAMES.get(word, word)


def _leaves(
    value: Any, name: str
) -> Iterator[tuple[str, Any, tuple[Mapping[Any, Any], Any] | None]]:
    """Names, tensors, and the dict with the key of each; None where it is in none."""
    torch = importlib.import_module("torch")
    stack: list[tuple[str, Any, tuple[Mapping[Any, Any], Any] | None]] = [(name, value, None)]
    seen: set[int] = set()
    while stack:
        name, value, place = stack.pop()
        if isinstance(value, torch.Tensor):
            yield name, value, place
            continue
        entries: list[tuple[Any, Any]] = []
        if isinstance(value, Mapping):
            entries = list(value.items())
        elif isinstance(value, (list, tuple)):
            entries = list(enumerate(value))
        if entries and id(value) in seen:
            raise CheckpointError("a container occurs twice in the objects of the checkpoint")
        seen.add(id(value))
        holder = value if isinstance(value, Mapping) else None
        stack += [
            (_joined(name, key), entry, None if holder is None else (holder, key))
            for key, entry in reversed(entries)
        ]


def _joined(name: str, key: object) -> str:
    return f"{name}.{key}" if name else str(key)


def _told(error: Exception) -> str:
    """The name that the unpickler refuses, or the first words of another error."""
    found = _REFUSED.search(str(error))
    return f"it asks for {found[1]}" if found else " ".join(str(error).split())[:200]
