"""`pypto-cast judge`: results of a device by a kernel's bounds, a golden and a standard."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, cast

import numpy as np
import numpy.typing as npt
import typer

from pypto_cast.cli.app import ChipName, Json, NpuOnCpu, ReplaceInstalled
from pypto_cast.cli.commands.certainty_command import (
    errors_at_lines,
    kernel_named,
    saved_arguments,
)
from pypto_cast.dtypes.data_types import DataType, numpy_dtype
from pypto_cast.dtypes.names import dtype_named
from pypto_cast.kernel.certainty import Certainty
from pypto_cast.options.context import options
from pypto_cast.options.releases import RELEASE_NAMES, ReleaseName
from pypto_cast.report import terminal
from pypto_cast.report.report import plain
from pypto_cast.report.text_format import printable, shape_named
from pypto_cast.tensors.array_files import mapped_npy, npz_arrays, with_dtype
from pypto_cast.testing.judgement import judge
from pypto_cast.testing.precision import STANDARDS, Standard
from pypto_cast.upstream.import_alias import as_pypto
from pypto_cast.upstream.npu_requests import npu_requests
from tiling.input_files import regular

_FAILS: Final = 1
_RAW: Final = ".bin"
Given = dict[str, npt.NDArray[Any]] | npt.NDArray[Any]


def run_judge(
    result: Annotated[
        Path, typer.Argument(metavar="RESULT", help="A .npy, .npz or .bin file of a device's.")
    ],
    golden: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What it should be, in the same dtype.")
    ] = None,
    precise: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The same in a wider dtype, for 2.1.")
    ] = None,
    kernel: Annotated[
        str | None, typer.Option(metavar="FILE::KERNEL", help="The kernel that gave it.")
    ] = None,
    inputs: Annotated[
        Path | None, typer.Option(metavar="FILE.npz", help="The kernel's inputs, by name.")
    ] = None,
    output: Annotated[
        str | None, typer.Option(metavar="NAME", help="The output that RESULT is; else by name.")
    ] = None,
    standard: Annotated[
        str, typer.Option(metavar="NAME", help=f"One of {', '.join(STANDARDS)}.")
    ] = "bits",
    dtype: Annotated[
        str | None, typer.Option(metavar="DTYPE", help="Of files that do not say it.")
    ] = None,
    shape: Annotated[str | None, typer.Option(metavar="N,N", help="Of .bin files.")] = None,
    release: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"One of {', '.join(RELEASE_NAMES)}.")
    ] = None,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Try every two hypotheses together too.")
    ] = False,
    chip: ChipName = None,
    npu_on_cpu: NpuOnCpu = False,
    replace_installed: ReplaceInstalled = False,
    json: Json = False,
) -> None:
    """Judge a device's results: can they be, and how far are they from a golden?

    With a kernel and its inputs, exit code 1 if an element is outside what a device may give.
    Without one, exit code 1 if the standard fails beside the golden. 2 if it cannot be judged.
    """
    if (kernel is None) != (inputs is None):
        raise ValueError("--kernel and --inputs go together: the bounds are of these inputs")
    if kernel is None and golden is None:
        raise ValueError("give --golden, or --kernel with --inputs, or both")
    named = None if dtype is None else dtype_named(dtype)
    extents = None if shape is None else shape_named(shape)
    files = [None if path is None else _read(path, named, extents) for path in (result, golden)]
    truth = None if precise is None else _read(precise, None, None)
    asked = cast(Standard, standard)
    if kernel is None or inputs is None:
        if output is not None:
            raise ValueError("--output names an output of --kernel")
        judged = judge(files[0], files[1], truth, standard=asked)
    else:
        with (
            as_pypto(replace_installed=replace_installed),
            npu_requests(on_cpu=npu_on_cpu),
            # Whether it is a release is for the options to say, which list them.
            options(release=cast(ReleaseName | None, release), chip=chip),
        ):
            file, found = kernel_named(kernel)
            arguments, others = saved_arguments(found, inputs)
            with errors_at_lines(file):
                bounds = found.certainty(*arguments, **others)
            given = [None if each is None else _by_output(each, bounds, output) for each in files]
            judged = judge(
                given[0],
                given[1],
                truth,
                bounds=bounds,
                standard=asked,
                run=lambda: found.certainty(*arguments, **others),
                pairs=pairs,
                told=(lambda text: typer.echo(text, err=True)) if pairs else None,
            )
    told = judged.report
    terminal.show(
        dataclasses.replace(
            told,
            title=f"{printable(str(result))}: {told.title}",
            facts=(*plain(result=result, golden=golden, kernel=kernel), *told.facts),
        ),
        as_json=json,
    )
    if not judged.passes:
        raise typer.Exit(_FAILS)


def _read(path: Path, dtype: DataType | None, shape: tuple[int, ...] | None) -> Given:
    """The arrays of a file by name, or its one array."""
    if path.suffix == _RAW:
        if dtype is None or shape is None:
            raise ValueError(f"{path} does not say what it holds: give --dtype and --shape")
        kind = numpy_dtype(dtype)
        have, want = regular(path).stat().st_size, int(np.prod(shape)) * kind.itemsize
        if have != want:
            raise ValueError(
                f"{path} has {have:,} B; {dtype} of shape {list(shape)} has {want:,} B"
            )
        raw: npt.NDArray[Any] = np.memmap(path, np.uint8, "r").view(kind).reshape(shape)
        return raw
    with open(regular(path), "rb") as file:
        is_archive = file.read(2) == b"PK"
    if is_archive:
        return {
            name: _as_dtype(array, dtype, f"{path}: {name}")
            for name, array in npz_arrays(path).items()
        }
    return _as_dtype(mapped_npy(path), dtype, str(path))


def _by_output(given: Given, bounds: Certainty, name: str | None) -> dict[str, Any]:
    """The arrays of a file by the outputs that they are, in these outputs' dtypes."""
    names = [output.name for output in bounds.outputs]
    if not isinstance(given, Mapping):
        if name is None and len(names) > 1:
            raise ValueError(f"the kernel writes {', '.join(names)}: --output says which it is")
        given = {name or names[0]: given}
    by_alias = {alias: o for o in bounds.outputs for alias in (o.name, *o.aliases)}
    if unknown := sorted(set(given) - set(by_alias)):
        raise ValueError(f"the kernel writes {', '.join(names)}, not {', '.join(unknown)}")
    return {key: _as_dtype(array, by_alias[key].dtype, key) for key, array in given.items()}


def _as_dtype(array: npt.NDArray[Any], dtype: DataType | None, label: str) -> npt.NDArray[Any]:
    """The array in a dtype: BF16 may be kept as FP32, whose upper half it is."""
    if dtype is not DataType.DT_BF16 or array.dtype != np.float32:
        return with_dtype(array, dtype, label)
    codes = np.ascontiguousarray(array).view(np.uint32)
    if (codes & np.uint32(0xFFFF)).any():
        raise ValueError(f"{label} is FP32, and not all its values are BF16's")
    return with_dtype((codes >> np.uint32(16)).astype(np.uint16), dtype, label)
