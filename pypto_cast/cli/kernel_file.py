"""A kernel of a Python file, and saved arrays as its arguments."""

from __future__ import annotations

import inspect
import runpy
from pathlib import Path
from typing import Any

import numpy as np

from pypto_cast.dtypes.data_types import DataType, numpy_dtype
from pypto_cast.kernel.jit import Kernel
from pypto_cast.report.text_format import printable
from pypto_cast.tensors.arguments import TensorAnnotation
from pypto_cast.tensors.array_files import npz_arrays, with_dtype
from pypto_cast.tensors.symbolic import Symbol
from tiling.input_files import MOST_DOCUMENT_BYTES, regular

_SEPARATOR = "::"


def kernel_named(text: str) -> tuple[Path, Kernel]:
    """Runs a file as a module and takes a kernel out of it.

    Args:
        text: FILE::KERNEL.

    Raises:
        FileNotFoundError: no such file.
        ValueError: as `regular`, or no such kernel in it; the text names those that are.
    """
    file, separator, name = text.rpartition(_SEPARATOR)
    if not separator or not file or not name:
        raise ValueError(
            f"a kernel is named FILE{_SEPARATOR}KERNEL, as quant.py::quant; got {text!r}"
        )
    path = regular(Path(file), most_bytes=MOST_DOCUMENT_BYTES)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file")
    found = runpy.run_path(str(path), run_name=path.stem)
    kernels = {name: value for name, value in found.items() if isinstance(value, Kernel)}
    if name not in kernels:
        listed = ", ".join(kernels) or "none, at the level of the module"
        raise ValueError(f"{path} has no kernel {printable(name)}; it has {listed}")
    return path, kernels[name]


def saved_arguments(kernel: Kernel, path: Path) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call out of a .npz file, by the names of the parameters.

    An array that is not in the file is made of zeros, where the annotation or the other arrays say
    its shape: outputs are left out so. Of an argument that is no tensor the file holds one number.

    Raises:
        OSError: the file cannot be read.
        TypeError: a dtype other than annotated.
        ValueError: no .npz file, arrays that no parameter takes, or one whose shape is not known.
    """
    signature = kernel.signature
    known = [*signature.tensors, *signature.others]
    held = npz_arrays(path)
    if unknown := sorted(set(held) - set(known)):
        raise ValueError(
            f"{path} holds {', '.join(map(printable, unknown))}; {signature.kernel} takes "
            f"{', '.join(known)}"
        )
    given = {
        name: with_dtype(held[name], annotation.dtype, f"{path}: {name}")
        for name, annotation in signature.tensors.items()
        if name in held
    }
    lengths = {
        entry.name: length
        for name, array in given.items()
        for entry, length in zip(signature.tensors[name].shape, array.shape, strict=False)
        if isinstance(entry, Symbol)
    }
    arrays = [
        given[name] if name in given else _zeros(name, annotation, lengths, path)
        for name, annotation in signature.tensors.items()
    ]
    others = {name: held[name].item() for name in signature.others if name in held}
    missing = [
        name
        for name, parameter in signature.others.items()
        if name not in others and parameter.default is inspect.Parameter.empty
    ]
    if missing:
        raise ValueError(f"{path} lacks {', '.join(missing)}, which {signature.kernel} takes")
    return arrays, others


def _zeros(
    name: str, annotation: TensorAnnotation, lengths: dict[str, int], path: Path
) -> np.ndarray[Any, Any]:
    shape = [
        lengths.get(entry.name) if isinstance(entry, Symbol) else entry
        for entry in annotation.shape
    ]
    known = [entry for entry in shape if isinstance(entry, int) and entry >= 0]
    if not shape or len(known) < len(shape):
        raise ValueError(
            f"{path} holds no {name}, and its annotation {annotation} leaves the shape open; save "
            "an array of its shape under that name"
        )
    return np.zeros(known, numpy_dtype(annotation.dtype or DataType.DT_FP32))
