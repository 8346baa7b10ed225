"""A file of what a device may give, to compare results with that come later or from elsewhere."""

from __future__ import annotations

import dataclasses
import json
import os
import zipfile
from pathlib import Path
from typing import Any, Final

import numpy as np

from pypto_cast.dtypes.data_types import DataType, numpy_dtype
from pypto_cast.kernel.certainty import Cause, Certainty, OutputCertainty
from pypto_cast.recording.steps import OperationRecord, Patch, remember_array
from pypto_cast.tensors.array_files import check_npz, new_file
from pypto_cast.testing.elements import patches_of
from simulator.arithmetic.trust import Assumption
from tiling.grid import Grid, Shape
from tiling.input_files import regular

_KIND: Final = "pypto_cast bounds"
_VERSION: Final = 1
_ABOUT: Final = "about"
_ARRAYS: Final = ("values", "low", "high", "may_be_nan", "cause", "choices")


def save_bounds(bounds: Certainty, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write what a device may give into a compressed .npz file, whole or not at all.

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
                "patches": [_patch_document(p) for p in patches_of(output.values, output.values)],
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


def _patch_document(patch: Patch) -> dict[str, Any]:
    """A patch and the tiles of what wrote it, a cast under the name of its pair."""
    return dataclasses.asdict(dataclasses.replace(patch, record=patch.record.tiles()))


def _patch(about: dict[str, Any]) -> Patch:
    held = about["record"]
    grid = Grid(**{name: _shape(held["grid"][name]) for name in ("shape", "tile_shape")})
    return Patch(
        **{name: _shape(about[name]) for name in ("offset", "extent", "start")},
        record=OperationRecord(**{**held, "grid": grid, "loops": tuple(held["loops"])}),
    )


def _shape(lengths: list[int]) -> Shape:
    return tuple(map(int, lengths))
