"""Reads the elements of a checkpoint's tensors, a block at a time."""

from __future__ import annotations

import contextlib
import io
import sys
import zipfile
import zlib
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from pypto_cast.checkpoints.stored import (
    Checkpoint,
    CheckpointError,
    Kind,
    StoredTensor,
    cut_short,
)
from pypto_cast.checkpoints.torch_files import Storages
from simulator.numbers import float_environment

Bytes = npt.NDArray[np.uint8]
Histogram = npt.NDArray[np.int64]
"""Counts of source values: by the FP32 exponent field, which is 0 for zeros and subnormal numbers
and 255 for infinity and NaN."""
_EXPONENTS: Final = 256
_Stream = io.RawIOBase | io.BufferedIOBase


class Reader:
    """Gives bytes of tensors in row-major order as they are stored; one thread at a time.

    Args:
        checkpoint: what is read.

    Raises:
        OSError: a file cannot be opened.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._held, self._streams = contextlib.ExitStack(), contextlib.ExitStack()
        self._shard: str | None = None
        self._archive: zipfile.ZipFile | None = None
        self._storages: Storages | None = None
        if checkpoint.kind is Kind.NPZ:
            self._archive = self._held.enter_context(zipfile.ZipFile(checkpoint.path))
        elif checkpoint.kind is Kind.TORCH:
            self._storages = self._held.enter_context(contextlib.closing(Storages(checkpoint)))

    def read(self, tensor: StoredTensor, begin_bytes: int, out: Bytes) -> None:
        """Fill a buffer with bytes of a tensor from a position on.

        Of an archive's entries every tensor is read forwards; a step back begins it anew.

        Raises:
            CheckpointError: the file ends before they do, or an archive's entry is damaged.
        """
        if self._storages is not None:
            self._storages.read(tensor.name, begin_bytes, out)
            return
        file = self._opened(tensor)
        wanted = tensor.offset_bytes + begin_bytes
        try:
            if file.tell() != wanted:
                file.seek(wanted)
            got = _read_into(file, out)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise CheckpointError(f"tensor {tensor.name!r} is damaged: {error}") from error
        if got != out.size:
            raise cut_short(tensor.name)

    def close(self) -> None:
        """Close the files."""
        self._streams.close()
        self._held.close()

    def _opened(self, tensor: StoredTensor) -> _Stream:
        """The file or the entry that holds a tensor; one is open at a time."""
        if self._shard != tensor.shard:
            self._streams.close()
            if self._archive is not None:
                self._stream: _Stream = cast("zipfile.ZipExtFile", self._archive.open(tensor.shard))
            else:
                self._stream = io.FileIO(self._checkpoint.file_of(tensor))
            self._streams.callback(self._stream.close)
            self._shard = tensor.shard
        return self._stream


def native_codes(held: Bytes, itemsize: int, *, is_swapped: bool) -> npt.NDArray[Any]:
    """Bytes of a file as codes of this machine, without a copy where the byte orders agree."""
    is_big = is_swapped and itemsize > 1
    codes = held.view(np.dtype(f"{'>' if is_big else '<'}u{itemsize}"))
    if codes.dtype.isnative:
        return codes
    return codes.astype(codes.dtype.newbyteorder("="))


def exponents(values: npt.NDArray[Any]) -> Histogram:
    """Counts of magnitudes by binade."""
    with float_environment.quiet():
        wide = np.asarray(values, np.float32).reshape(-1)
    field = (wide.view(np.uint32) >> np.uint32(23)).astype(np.uint8)
    return np.bincount(field, minlength=_EXPONENTS)


def file_bytes(codes: npt.NDArray[Any]) -> Bytes:
    """Contiguous codes of this machine as bytes of a file, little-endian."""
    if sys.byteorder == "big":
        codes = codes.astype(codes.dtype.newbyteorder("<"))
    return codes.view(np.uint8)


def _read_into(file: _Stream, out: Bytes) -> int:
    view, got = out.data, 0
    while got < len(view):
        read = file.readinto(view[got:])
        if not read:
            break
        got += read
    return got
