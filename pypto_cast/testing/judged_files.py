"""Saved results against what a device may give."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from pypto_cast.kernel.certainty import Certainty, OutputCertainty
from pypto_cast.report.text_format import printable
from pypto_cast.tensors.array_files import mapped_npy, npz_arrays, with_dtype
from pypto_cast.testing.possible import ImpossibleError, assert_possible, impossible_count
from tiling.input_files import regular

_NPZ = b"PK"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedResult:
    """One array of a file, judged by the bounds of an output.

    Attributes:
        output: the name of the output.
        elems: its elements.
        impossible: those that no device gives.
        text: the first of them, with tile, core and causes; empty if there are none.
    """

    output: str
    elems: int
    impossible: int
    text: str

    def in_words(self) -> str:
        """The verdict in a line."""
        if not self.impossible:
            return f"all {self.elems:,} elements can be"
        return f"{self.impossible:,} of {self.elems:,} elements cannot be"


def judged_results(path: Path, bounds: Certainty) -> list[JudgedResult]:
    """Judge the arrays of a .npy or .npz file.

    Args:
        path: the array of the one output that has its shape, or arrays by the names of outputs.
        bounds: what a device may give.

    Raises:
        OSError: the file cannot be read.
        TypeError: an array of another dtype than its output.
        ValueError: neither kind of file, or arrays that no output goes with.
    """
    with open(regular(path), "rb") as file:
        is_archive = file.read(len(_NPZ)) == _NPZ
    if is_archive:
        arrays = npz_arrays(path)
    else:
        whole = mapped_npy(path)
        arrays = {_only_output(path, whole.shape, bounds): whole}
    if unknown := sorted(set(arrays) - set(bounds)):
        raise ValueError(
            f"{path} holds {', '.join(map(printable, unknown))}; the bounds are of "
            f"{', '.join(bounds)}"
        )
    return [_judged(arrays[name], bounds[name], f"{path}: {name}") for name in arrays]


def _only_output(path: Path, shape: tuple[int, ...], bounds: Certainty) -> str:
    alike = [output.name for output in bounds.outputs if output.shape == shape]
    if len(alike) != 1:
        outputs = ", ".join(f"{o.name} {list(o.shape)}" for o in bounds.outputs)
        raise ValueError(
            f"{path} holds {list(shape)}, which goes with {' and '.join(alike) or 'none'} of the "
            f"outputs {outputs}; save it in a .npz file under the name of its output"
        )
    return alike[0]


def _judged(array: npt.NDArray[Any], output: OutputCertainty, label: str) -> JudgedResult:
    held = with_dtype(array, output.dtype, label)
    if held.shape != output.shape:
        raise ValueError(f"{label} has shape {list(held.shape)}, its bounds {list(output.shape)}")
    try:
        assert_possible(held, output)
    except ImpossibleError as error:
        text, count = str(error), impossible_count(held, output)
    else:
        text, count = "", 0
    return JudgedResult(output=output.name, elems=held.size, impossible=count, text=text)
