"""Files of the bounds of a device's results, and files of results judged by them."""

from __future__ import annotations

import dataclasses
import json
import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.dtypes.data_types import DataType, numpy_dtype
from pypto_cast.kernel.certainty import Cause, Certainty, OutputCertainty
from pypto_cast.recording.steps import OperationRecord, Patch, remember_array
from pypto_cast.report.report import Column, Report, Table, headed, plain
from pypto_cast.report.text_format import printable
from pypto_cast.tensors.array_files import check_npz, mapped_npy, new_file, npz_arrays, with_dtype
from pypto_cast.testing.bits import patches_of
from pypto_cast.testing.possible import ImpossibleError, assert_possible, impossible_count
from simulator.arithmetic.trust import Assumption
from simulator.numbers.convert import codes_of
from tiling.grid import Grid, Shape
from tiling.input_files import regular

_KIND: Final = "pypto_cast bounds"
_VERSION: Final = 1
_ABOUT: Final = "about"
_ARRAYS: Final = ("values", "low", "high", "may_be_nan", "cause", "choices")


def save_bounds(bounds: Certainty, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write bounds into a compressed .npz file, whole or not at all.

    Args:
        bounds: as `Kernel.certainty` returns it.
        path: the file.
        force: replace one that is there.

    Raises:
        OSError: it is there already, its directory is not, or there is no room.
    """
    arrays: dict[str, Any] = {}
    outputs = []
    for number, output in enumerate(bounds.outputs):
        for name in _ARRAYS:
            array = getattr(output, name)
            if array is not None:
                arrays[f"{number}.{name}"] = array.view(f"V{array.itemsize}").view(
                    f"u{array.itemsize}"
                )
        nearest = None if output.nearest is None else dataclasses.astuple(output.nearest)
        outputs.append(
            {
                "name": output.name,
                "aliases": output.aliases,
                "dtype": output.dtype.name,
                "causes": [dataclasses.astuple(cause) for cause in output.causes],
                "nearest": nearest,
                "named_choices": [dataclasses.astuple(each) for each in output.named_choices],
                "patches": [
                    dataclasses.asdict(dataclasses.replace(p, record=p.record.tiles()))
                    for p in patches_of(output.values, output.values)
                ],
            }
        )
    about = {
        "kind": _KIND,
        "version": _VERSION,
        "kernel": bounds.kernel,
        "release": bounds.release,
        "outputs": outputs,
    }
    arrays[_ABOUT] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    with new_file(Path(path), force=force) as file:
        np.savez_compressed(file, **arrays)


def save_values(bounds: Certainty, path: Path, *, force: bool = False) -> None:
    """Write the values of all outputs into a .npz file by their names, whole or not at all.

    A dtype that numpy has no name for, as BF16, is written as its codes, unsigned integers.

    Args:
        bounds: as `Kernel.certainty` returns it.
        path: the file.
        force: replace one that is there.

    Raises:
        OSError: it is there already, its directory is not, or there is no room.
    """
    arrays: dict[str, Any] = {
        output.name: output.values
        if output.values.dtype.isbuiltin == 1
        else codes_of(output.values, output.format)
        for output in bounds.outputs
    }
    with new_file(path, force=force) as file:
        np.savez(file, **arrays)


def load_bounds(path: str | os.PathLike[str]) -> Certainty:
    """Read a file that `save_bounds` wrote.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no such file, or one of another version.
    """
    wrong = f"{path} is no file of bounds; pypto-cast certainty --bounds writes one"
    file = regular(Path(path))
    try:
        check_npz(file, may_be_constant=True)
    except ValueError as error:
        raise ValueError(f"{wrong} ({error})") from error
    try:
        with np.load(path, allow_pickle=False) as held:
            about = json.loads(held[_ABOUT].tobytes())
            if about["kind"] != _KIND:
                raise ValueError(wrong)
            if about["version"] != _VERSION:
                raise ValueError(
                    f"{path}: bounds of version {about['version']}; this package reads {_VERSION}"
                )
            outputs = tuple(
                _output(number, each, held) for number, each in enumerate(about["outputs"])
            )
        release = str(about.get("release", ""))  # files of before say none
        return Certainty(outputs=outputs, kernel=str(about["kernel"]), release=release)
    except (KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(wrong) from error
    except ValueError as error:
        raise ValueError(str(error) if str(path) in str(error) else wrong) from error


def _output(number: int, about: dict[str, Any], held: Any) -> OutputCertainty:
    dtype = DataType[about["dtype"]]
    types = {
        "may_be_nan": np.dtype(np.bool_),
        "cause": np.dtype(np.uint16),
        "choices": np.dtype(np.uint32),
    }
    arrays = {
        name: held[key].view(types.get(name, numpy_dtype(dtype)))
        for name in _ARRAYS
        if (key := f"{number}.{name}") in held
    }
    arrays.setdefault("may_be_nan", None)
    nearest = about["nearest"]
    output = OutputCertainty(
        name=str(about["name"]),
        aliases=tuple(map(str, about.get("aliases", ()))),
        dtype=dtype,
        causes=tuple(_cause(*each) for each in about["causes"]),
        nearest=None if nearest is None else _cause(*nearest),
        named_choices=tuple(_choice(*each) for each in about.get("named_choices", ())),
        **arrays,
    )
    remember_array(output.values, output.values, [_patch(each) for each in about["patches"]])
    return output


def _cause(operation: str, file: str, line: int) -> Cause:
    return Cause(operation=str(operation), file=str(file), line=int(line))


def _choice(name: str, statement: str, source: str) -> Assumption:
    return Assumption(name=str(name), statement=str(statement), source=str(source))


def _patch(about: dict[str, Any]) -> Patch:
    held = about["record"]
    grid = Grid(**{name: _shape(held["grid"][name]) for name in ("shape", "tile_shape")})
    return Patch(
        **{name: _shape(about[name]) for name in ("offset", "extent", "start")},
        record=OperationRecord(**{**held, "grid": grid, "loops": tuple(held["loops"])}),
    )


def _shape(lengths: list[int]) -> Shape:
    return tuple(map(int, lengths))


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


def judged_report(bounds: Path, judged: Sequence[tuple[Path, Sequence[JudgedResult]]]) -> Report:
    """The verdict on each array of some files.

    Args:
        bounds: the file of the bounds.
        judged: files, and what `judged_results` gives of each.
    """
    files = [
        {"file": str(path), "outputs": list(map(dataclasses.asdict, results))}
        for path, results in judged
    ]
    results = [(path, each) for path, found in judged for each in found]
    return Report(
        kind="diff",
        title=f"against {printable(str(bounds))}",
        facts=plain(bounds=bounds, files=files),
        tables=(
            Table(
                columns=(Column(heading="file", is_name=True), *headed("output", "found")),
                rows=[(str(path), each.output, each.in_words()) for path, each in results],
            ),
        ),
        notes=tuple(each.text for _, each in results if each.text),
    )
