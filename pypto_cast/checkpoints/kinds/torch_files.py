"""Checkpoints of torch.save, read by torch's own loading of weights only: no code of one is run.

A file is a zip archive with a pickle of the objects and the storages beside it, stored as they are.
torch maps the storages into memory; the pickle is read by an unpickler that knows tensors, the
containers of Python and nothing else.
"""

from __future__ import annotations

import copy
import importlib
import pickle
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.checkpoints.stored import (
    STORED_NAMES,
    Checkpoint,
    CheckpointError,
    Kind,
    StoredTensor,
)
from pypto_cast.tensors.torch_bridge import array_over, tensor_over, torch_dtype_of

PICKLE: Final = "data.pkl"
_MAX_PICKLE_BYTES: Final = 1 << 25
_REFUSED: Final = re.compile(r"GLOBAL ([\w.]+)")
_NAMES: Final = {
    "float64": "F64",
    "bool": "BOOL",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "complex64": "C64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
}
"""safetensors' names of the torch dtypes that no cast takes."""


def read_torch(path: Path) -> Checkpoint:
    """Load a checkpoint of torch.save with its elements mapped, not read.

    Raises:
        ModuleNotFoundError: torch is not installed.
        OSError: the file cannot be read.
        CheckpointError: it is damaged, of TorchScript, or holds what is neither tensors nor
            containers of Python, such as whole modules; nothing of that is executed.
    """
    _check_archive(path)
    torch = imported_torch(path)
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
        raise CheckpointError(
            f"{path} is no PyTorch checkpoint that can be read: {_told(error)}"
        ) from error
    return Checkpoint(
        path=path, tensors=tuple(tensors), metadata={}, kind=Kind.TORCH, content=content
    )


def imported_torch(path: Path) -> Any:
    """torch, or an error that says what needs it."""
    try:
        return importlib.import_module("torch")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f'{path} is a PyTorch checkpoint, which needs torch: pip install "pypto-cast[torch]"'
        ) from None


def codes_by_name(checkpoint: Checkpoint) -> Mapping[str, Any]:
    """The tensors of a checkpoint by name."""
    return dict(_leaves(checkpoint.content, ""))


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


def save_torch(
    checkpoint: Checkpoint,
    results: Mapping[str, StoredTensor],
    scratch: Path,
    out: IO[bytes],
) -> None:
    """Write the objects of a checkpoint with other tensors in it.

    Args:
        checkpoint: the input.
        results: by name, the tensors that are not as they were; their offsets count in `scratch`.
            A name that the input lacks is added where the name that it begins with is.
        scratch: the elements of the results, mapped while they are written.
        out: where the new checkpoint goes.
    """
    torch = importlib.import_module("torch")
    made: dict[int, Any] = {}
    added: dict[int, dict[str, Any]] = {}
    leaves = codes_by_name(checkpoint)
    for name, result in results.items():
        values = _mapped(result, scratch)
        if name not in leaves:
            whole = max((leaf for leaf in leaves if name.startswith(leaf)), key=len)
            added.setdefault(id(leaves[whole]), {})[name.removeprefix(whole)] = values
            continue
        before = leaves[name]
        if isinstance(before, torch.nn.Parameter) and values.is_floating_point():
            values = torch.nn.Parameter(values, requires_grad=before.requires_grad)
        made[id(before)] = values
    torch.save(_replaced(checkpoint.content, made, added), out)


def _mapped(result: StoredTensor, scratch: Path) -> Any:
    known = {name: dtype for dtype, name in STORED_NAMES.items()}
    dtype = known[result.dtype]
    if not result.elems:
        torch = importlib.import_module("torch")
        return torch.empty(result.shape, dtype=torch_dtype_of(dtype))
    # Copied on write, for torch warns of arrays that cannot be written to.
    codes = np.memmap(scratch, np.uint8, "c", result.offset_bytes, (result.size_bytes,))
    width = result.size_bytes // result.elems
    return tensor_over(codes.view(np.ndarray).view(f"i{width}").reshape(result.shape), dtype)


def _replaced(value: Any, made: Mapping[int, Any], added: Mapping[int, dict[str, Any]]) -> Any:
    """A copy of nested containers in which some tensors are others; the containers keep types."""
    if id(value) in made:
        return made[id(value)]
    if isinstance(value, Mapping):
        copied: Any = copy.copy(value)
        for key, entry in value.items():
            copied[key] = _replaced(entry, made, added)
            for suffix, tensor in added.get(id(entry), {}).items():
                copied[f"{key}{suffix}"] = tensor
        return copied
    if type(value) in (list, tuple):
        return type(value)(_replaced(entry, made, added) for entry in value)
    return value


def _check_archive(path: Path) -> None:
    """Refuse what would be unpacked or parsed into more memory than the file has bytes."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OverflowError, RuntimeError, MemoryError) as error:
        raise CheckpointError(
            f"{path} is no PyTorch checkpoint that can be read: {error}"
        ) from error
    for info in entries:
        is_pickle = info.filename.rpartition("/")[2] == PICKLE
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise CheckpointError(
                f"{path} is no PyTorch checkpoint that can be read: {info.filename} in it is "
                "compressed, which torch.save never does"
            )
        if is_pickle and info.file_size > _MAX_PICKLE_BYTES:
            raise CheckpointError(
                f"{path} is no PyTorch checkpoint that can be read: its pickle has "
                f"{info.file_size:,} B, more than {_MAX_PICKLE_BYTES:,} B"
            )
        if "/code/" in info.filename:
            raise CheckpointError(
                f"{path} is a TorchScript archive, which holds code; save the state_dict() of the "
                "module with torch.save"
            )


def _tensors(content: object) -> Iterator[StoredTensor]:
    torch = importlib.import_module("torch")
    names: set[str] = set()
    for name, held in _leaves(content, ""):
        if name in names:
            raise CheckpointError(f"two tensors would be named {name!r}")
        names.add(name)
        dense = held.layout is torch.strided and not held.is_quantized and held.device.type == "cpu"
        kind = str(held.dtype).removeprefix("torch.")
        yield StoredTensor(
            name=name,
            dtype=_dtype_name(held.dtype) if dense else f"{held.layout} {kind}",
            shape=tuple(held.shape),
            offset_bytes=0,
            size_bytes=held.numel() * held.element_size() if dense else 0,
        )


def _dtype_name(dtype: Any) -> str:
    for known, name in STORED_NAMES.items():
        if torch_dtype_of(known) is dtype:
            return name
    word = str(dtype).removeprefix("torch.")
    return _NAMES.get(word, word)


def _leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    torch = importlib.import_module("torch")
    stack: list[tuple[str, Any]] = [(name, value)]
    seen: set[int] = set()
    while stack:
        name, value = stack.pop()
        if isinstance(value, torch.Tensor):
            yield name, value
            continue
        entries: list[tuple[Any, Any]] = []
        if isinstance(value, Mapping):
            entries = list(value.items())
        elif isinstance(value, (list, tuple)):
            entries = list(enumerate(value))
        if entries and id(value) in seen:
            raise CheckpointError("a container occurs twice in the objects of the checkpoint")
        seen.add(id(value))
        stack += [(_joined(name, key), entry) for key, entry in reversed(entries)]


def _joined(name: str, key: object) -> str:
    return f"{name}.{key}" if name else str(key)


def _told(error: Exception) -> str:
    """The name of what the unpickler refuses, or the first words of another error."""
    found = _REFUSED.search(str(error))
    return f"it asks for {found[1]}" if found else " ".join(str(error).split())[:200]
