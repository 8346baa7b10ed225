"""Arrays out of the files people dump: .npy, .npz, .bin, .pt and safetensors; no code is run."""

from __future__ import annotations

import contextlib
import math
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.checkpoints.opening import open_checkpoint
from pypto_cast.checkpoints.reading import Reader, native_codes
from pypto_cast.checkpoints.stored import DTYPES, Checkpoint, Kind, StoredTensor
from pypto_cast.dtypes.data_types import ROWS, DataType, numpy_dtype
from pypto_cast.tensors.array_files import mapped_npy, npz_arrays, with_dtype
from pypto_cast.testing.bits import pieces
from tiling.grid import Shape
from tiling.input_files import regular
from tiling.plan import MAX_ELEMS

Given = dict[str, npt.NDArray[Any]] | npt.NDArray[Any]
SUFFIXES: Final = (".npy", ".npz", ".bin", ".pt", ".pth", ".safetensors")
_RAW: Final = ".bin"
_ARCHIVE: Final = ".npz"
_BELOW_BF16: Final = 0xFFFF
"""The bits of FP32 that BF16 does not have."""
_UPPER: Final = int(sys.byteorder == "little")
"""The place of the other half in memory."""
_STORED: Final = (".pt", ".pth", ".safetensors")
_NUMPY: Final = {
    row.safetensors: row.dtype for row in ROWS if row.safetensors and row.dtype is not None
}


def dumped(path: Path, dtype: DataType | None = None, shape: Shape | None = None) -> Given:
    """The arrays of a file by name, or its one array.

    Args:
        path: a file of one of `SUFFIXES`; of .pt a tensor, or nested dicts and lists of them.
        dtype: of a file that does not say it; BF16 may be kept as FP32 or as uint16 codes.
        shape: of a .bin file.

    Raises:
        OSError: the file cannot be read.
        ModuleNotFoundError: the package that reads this kind is not installed.
        TypeError, ValueError: it is none, not sound, of another dtype or size, or has
            no elements.
    """
    found = _dumped(path, dtype, shape)
    for array in found.values() if isinstance(found, dict) else (found,):
        if not array.size:
            raise ValueError(f"{path} has shape {list(array.shape)}: no elements to judge")
    return found


def _dumped(path: Path, dtype: DataType | None, shape: Shape | None) -> Given:
    if path.suffix == _RAW:
        return _raw(path, dtype, shape)
    if path.suffix in _STORED:
        found = _stored(open_checkpoint(regular(path)), path)
    else:
        with open(regular(path), "rb") as file:
            is_archive = file.read(2) == b"PK"
        if not is_archive and path.suffix != _ARCHIVE:
            return as_dtype(mapped_npy(path), dtype, str(path))
        found = npz_arrays(path)
        return {name: as_dtype(x, dtype, f"{path}: {name}") for name, x in found.items()}
    named = {name: _as_named(x, dtype, f"{path}: {name}") for name, x in found.items()}
    return next(iter(named.values())) if len(named) == 1 else named


def _raw(path: Path, dtype: DataType | None, shape: Shape | None) -> npt.NDArray[Any]:
    if dtype is None or shape is None:
        raise ValueError(f"{path} does not say what it holds: give --dtype and --shape")
    kind = numpy_dtype(dtype)
    have, want = regular(path).stat().st_size, math.prod(shape) * kind.itemsize
    if have != want:
        raise ValueError(f"{path} has {have:,} B; {dtype} of shape {list(shape)} has {want:,} B")
    raw: npt.NDArray[Any] = np.memmap(path, np.uint8, "r").view(kind).reshape(shape)
    return raw


def _stored(checkpoint: Checkpoint, path: Path) -> dict[str, npt.NDArray[Any]]:
    if not checkpoint.tensors:
        raise ValueError(f"{path} holds no tensors")
    with contextlib.closing(Reader(checkpoint)) as reader:
        return {
            tensor.name or path.stem: _read(reader, tensor, path, checkpoint.kind)
            for tensor in checkpoint.tensors
        }


def _read(reader: Reader, tensor: StoredTensor, path: Path, kind: Kind) -> npt.NDArray[Any]:
    found = _NUMPY.get(tensor.dtype)
    if found is None or (kind is Kind.SAFETENSORS and tensor.dtype not in DTYPES):
        raise TypeError(f"{path}: {tensor.name} is of {tensor.dtype_in_words}, not judged here")
    if tensor.elems > MAX_ELEMS:
        raise ValueError(f"{path}: {tensor.name} has {tensor.elems:,} elements, over {MAX_ELEMS:,}")
    held = np.empty(tensor.size_bytes, np.uint8)
    reader.read(tensor, 0, held)
    codes = native_codes(held, found.itemsize, is_swapped=tensor.is_swapped)
    return codes.view(found).reshape(tensor.shape, order="F" if tensor.is_fortran else "C")


def _as_named(array: npt.NDArray[Any], dtype: DataType | None, label: str) -> npt.NDArray[Any]:
    """The array in a dtype, out of a file that names the dtypes that numpy's own cannot."""
    if dtype is None or array.dtype == numpy_dtype(dtype):
        return array
    if array.dtype.kind == "V":
        raise TypeError(f"{label} holds {array.dtype}, which is not {dtype}")
    return as_dtype(array, dtype, label)


def as_dtype(array: npt.NDArray[Any], dtype: DataType | None, label: str) -> npt.NDArray[Any]:
    """The array in a dtype: BF16 may be kept as FP32, whose upper half it is.

    Raises:
        TypeError: the array is of another dtype.
        ValueError: FP32 values that BF16 does not have.
    """
    if dtype is not DataType.DT_BF16 or array.dtype != np.float32:
        return with_dtype(array, dtype, label, "--dtype")
    words = array.view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
    if any((part & np.uint32(_BELOW_BF16)).any() for (part,) in pieces(words)):
        raise ValueError(f"{label} is FP32, and not all its values are BF16's")
    if not (array.flags.c_contiguous and array.dtype.isnative and array.size):
        codes = (words >> np.uint32(16)).astype(np.uint16)
        return with_dtype(codes, dtype, label)
    # The upper halves where they lie: a dump that is mapped into memory is not copied.
    halves = array.reshape(-1).view(np.uint16).reshape(*array.shape, 2)
    return halves[..., _UPPER].view(numpy_dtype(dtype))
