"""Storages of torch.save's archives: read by their places in the file, written one after another.

torch maps an archive, and every page of it that is touched counts as memory of the process. So the
elements are read from the file, those with strides through windows on it that are given back. And
torch.save needs storages in memory as a whole, so archives are written here; torch's own reading
and numpy's zip archives set the format: a pickle in which storages have keys, an entry for each.
"""

from __future__ import annotations

import importlib
import io
import math
import mmap
import pickle
import struct
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import IO, Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.checkpoints.stored import CheckpointError, cut_short
from pypto_cast.tensors.torch_bridge import array_over
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
        path: the archive.
        tensors: all tensors of its objects that are dense and in CPU memory.

    Raises:
        OSError: the file cannot be read.
        CheckpointError: an entry of the archive is damaged.
    """

    def __init__(self, path: Path, tensors: Iterable[Any]) -> None:
        self._file = io.BufferedReader(io.FileIO(path))
        self._size_bytes = path.stat().st_size
        storages = [held.untyped_storage() for held in tensors]
        try:
            self._address = _address(self._file, {s.data_ptr() for s in storages if s.nbytes()})
        except ARCHIVE_ERRORS as error:
            self._file.close()
            raise damaged_archive(path, error) from error
        self._strip: tuple[tuple[str, int], npt.NDArray[np.uint8]] | None = None

    def read(self, name: str, held: Any, begin_bytes: int, out: npt.NDArray[np.uint8]) -> None:
        """Fill a buffer with whole elements of a tensor in row-major order, from a position on.

        Args:
            name: of the tensor, which no other one has.
            held: the tensor.
            begin_bytes: the position.
            out: the buffer.

        Raises:
            OSError: the file cannot be read.
            CheckpointError: it ends before the elements do.
        """
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
            self.read("that stays as it is", whole, begin, piece)
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
