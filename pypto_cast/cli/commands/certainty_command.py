"""`pypto-cast certainty`: a kernel on saved inputs, and which of its results are certain."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import runpy
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Annotated, Any, Final, cast, get_args

import numpy as np
import typer

from ascend_kernels.matrix import READ_OTHERWISE
from ascend_kernels.schedule.planner.tiles.tile_graph import PlanError
from pypto_cast.cli.app import (
    ChipName,
    Facts,
    Force,
    Json,
    NpuOnCpu,
    Readings,
    ReplaceInstalled,
    readings_named,
)
from pypto_cast.dtypes.data_types import DataType, numpy_dtype
from pypto_cast.kernel.certainty import Remedy
from pypto_cast.kernel.jit import Kernel
from pypto_cast.kernel.reports.chip_certainty import chips_table
from pypto_cast.options.context import TrustName, current, options
from pypto_cast.recording.buffers import UnsetArray
from pypto_cast.report import terminal
from pypto_cast.report.page import check_pages
from pypto_cast.report.report import Fact, plain, said
from pypto_cast.report.text_format import printable, written
from pypto_cast.tensors.arguments import TensorAnnotation
from pypto_cast.tensors.array_files import check_apart, check_free, npz_arrays, with_dtype
from pypto_cast.tensors.symbolic import Symbol
from pypto_cast.testing.saved_bounds import save_bounds, save_values
from pypto_cast.upstream.import_alias import as_pypto
from pypto_cast.upstream.npu_requests import npu_requests
from pypto_cast.upstream.wheel_compile import module_name
from simulator.corrections import READINGS, merged
from tiling.chips import DEFAULT_CHIP, chip_named
from tiling.input_files import MOST_DOCUMENT_BYTES, regular

SEPARATOR: Final = "::"
_RUNS_OF_A_CAUSE: Final = 3
"""Of `Kernel.remedies`, besides its first one."""


@contextlib.contextmanager
def errors_at_lines(path: Path, when: str = "a kernel of it runs") -> Iterator[None]:
    """Name the line of a file that raises, where the error does not name one itself.

    Standard output is the command's, its table or its JSON alone; prints of the file go to stderr.

    Raises:
        ValueError: file, line, and the exception that was raised there; or the file ends the
            program, `when` it may not.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except SystemExit as ended:
        raise ValueError(f"{path} ends the program, with {ended.code}, as {when}") from None
    except (PlanError, MemoryError):
        raise
    except Exception as error:
        if (named := error_at_line(path, error)) is None:
            raise
        raise named from error


def error_at_line(path: Path, error: Exception) -> ValueError | None:
    """An exception with the line of a file where it was raised; None where it names it, or none.

    The line of a syntax error is the one where it is.
    """
    frames = traceback.extract_tb(error.__traceback__)
    lines = [each.lineno for each in frames if each.filename == str(path)]
    if isinstance(error, SyntaxError) and error.filename == str(path):
        lines.append(error.lineno)
    if not lines or f"{path.name}:{lines[-1]}" in str(error):
        return None
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    raised = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return ValueError(f"{path}:{lines[-1]}: {raised}")


def file_and_name(text: str) -> tuple[Path, str]:
    """The two parts of FILE::KERNEL.

    Raises:
        ValueError: one is missing.
    """
    file, separator, name = text.rpartition(SEPARATOR)
    if not separator or not file or not name:
        raise ValueError(
            f"a kernel is named FILE{SEPARATOR}KERNEL, as quant.py::quant; got {text!r}"
        )
    return Path(file), name


def kernel_named(text: str) -> tuple[Path, Kernel]:
    """Runs a file as a module, of its package if it is in one, and takes a kernel out of it.

    Files beside it can be imported. It prints to stderr.

    Args:
        text: FILE::KERNEL.

    Raises:
        FileNotFoundError: no such file.
        ValueError: as `regular`, a file that raises or ends the program, or no such kernel in it;
            the text names those that are.
    """
    file, name = file_and_name(text)
    path = regular(file, most_bytes=MOST_DOCUMENT_BYTES)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file")
    root, name_of_module = module_name(path)
    # Last, as a file of the user's may be called select.py; for good, as a kernel may import.
    sys.path += [x for x in (str(root), str(path.resolve().parent)) if x not in sys.path]
    with errors_at_lines(path, "it is imported"):
        found = runpy.run_path(str(path), run_name=name_of_module)
    kernels = {name: value for name, value in found.items() if isinstance(value, Kernel)}
    if name not in kernels:
        listed = ", ".join(kernels) or "none, at the level of the module"
        raise ValueError(f"{path} has no kernel {printable(name)}; it has {listed}")
    return path, kernels[name]


def saved_arguments(
    kernel: Kernel, path: Path, besides: Iterable[str] = ()
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call out of a .npz file, by the names of the parameters.

    An array that is not in the file is an `UnsetArray`, where the annotation or the other arrays
    say its shape: outputs are left out so, and no input can be. Of an argument that is no tensor
    the file holds one number.

    Args:
        kernel: whose.
        path: of the file.
        besides: other arrays that it may hold.

    Raises:
        OSError: the file cannot be read.
        TypeError: a dtype other than annotated.
        ValueError: no .npz file, arrays that no parameter takes, or one whose shape is not known.
    """
    signature = kernel.signature
    known = [*signature.tensors, *signature.others]
    held = npz_arrays(path)
    if unknown := sorted(set(held).difference(known, besides)):
        raise ValueError(
            f"{path} holds {', '.join(map(printable, unknown))}; {signature.kernel} takes "
            f"{', '.join(known)}"
        )
    given = {
        name: with_dtype(held[name], annotation.dtype, f"{path}: {name}", "an annotation of")
        for name, annotation in signature.tensors.items()
        if name in held
    }
    if not given:
        raise ValueError(f"{path} holds none of {', '.join(signature.tensors)}")
    lengths = {
        entry.name: length
        for name, array in given.items()
        for entry, length in zip(signature.tensors[name].shape, array.shape, strict=False)
        if isinstance(entry, Symbol)
    }
    arrays = [
        given[name] if name in given else _unset(name, annotation, lengths, path)
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


def _unset(
    name: str, annotation: TensorAnnotation, lengths: dict[str, int], path: Path
) -> UnsetArray:
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
    return np.zeros(known, numpy_dtype(annotation.dtype or DataType.DT_FP32)).view(UnsetArray)


def run_certainty(
    kernel: Annotated[
        str, typer.Argument(metavar="FILE::KERNEL", help="A Python file and a kernel in it.")
    ],
    inputs: Annotated[
        Path,
        typer.Option(
            metavar="FILE.npz",
            help="Arrays by the names of the parameters; outputs may be left out.",
        ),
    ],
    html: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Draw what is undecided there.")
    ] = None,
    bounds: Annotated[
        Path | None,
        typer.Option(metavar="FILE.npz", help="Write what a device may give, for diff --bounds."),
    ] = None,
    values: Annotated[
        Path | None,
        typer.Option(metavar="FILE.npz", help="Write the outputs, BF16 as uint16 codes."),
    ] = None,
    trust: Annotated[
        str, typer.Option(metavar="NAME", help=f"One of {', '.join(get_args(TrustName))}.")
    ] = "default",
    facts: Facts = None,
    chip: ChipName = None,
    reading: Readings = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Another chip, whose certainty is shown beside."),
    ] = None,
    what_if: Annotated[
        int,
        typer.Option("--what-if", metavar="N", min=0, help="Try what would settle N causes."),
    ] = 0,
    npu_on_cpu: NpuOnCpu = False,
    replace_installed: ReplaceInstalled = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Show which results of a kernel are certain on a device.

    Open ones are shown with their causes. The kernel runs on the CPU; no file but those named is
    written.
    """
    for path in (html, bounds, values):
        if path is not None:
            check_free(path, force=force, inputs=[inputs, file_and_name(kernel)[0]])
    check_apart([html, bounds, values])
    if html is not None:
        check_pages()
    chips = (chip,) if against is None else (chip, against)
    readings = _readings_by_chip(chips, readings_named(reading))
    with (
        as_pypto(replace_installed=replace_installed),
        npu_requests(on_cpu=npu_on_cpu),
        # Whether it is one is for the options to say, which lists them.
        options(
            trust=cast(TrustName, trust),
            facts=facts,
            chip=chip,
            readings=readings[0],
        ),
    ):
        file, found = kernel_named(kernel)
        arguments, others = saved_arguments(found, inputs)
        with errors_at_lines(file):
            started = monotonic()
            certainty = found.certainty(*arguments, **others)
            causes = min(what_if, len(certainty.causes))
            runs = (against is not None) + (1 + _RUNS_OF_A_CAUSE * causes if what_if else 0)
            terminal.tell_left("further runs", (monotonic() - started) * runs)
            by_chip = {} if against is None else {current().chip.name: certainty}
            if against is not None:
                copies = [np.array(array) for array in arguments]
                with options(chip=against, readings=readings[-1]):
                    by_chip[current().chip.name] = found.certainty(*copies, **others)
            tried = found.remedies(*arguments, most=what_if, **others) if what_if else ()
    if html is not None:
        certainty.html(html, replace=force)
    if bounds is not None:
        save_bounds(certainty, bounds, force=force)
    if values is not None:
        save_values(certainty, values, force=force)
    told = certainty.report
    report = dataclasses.replace(
        told,
        title=f"{printable(str(file))}: {certainty.kernel}",
        facts=(
            *plain(file=file, html=html, bounds=bounds, values=values),
            *told.facts,
            Fact(key="what_if", value=list(map(_remedy, tried))),
        ),
        tables=(*told.tables, *((chips_table(by_chip),) if by_chip else ())),
        totals=(said("if known", "\n".join(map(str, tried))),),
        notes=told.notes + written([html, bounds, values]),
    )
    terminal.show(report, as_json=json)


def _readings_by_chip(
    chips: Sequence[str | None], readings: Mapping[str, str]
) -> list[Mapping[str, str]]:
    """The readings for each chip; where only some of them have any, none for the others."""
    has = [chip_named(chip or DEFAULT_CHIP.name).isa in READ_OTHERWISE for chip in chips]
    if len(chips) == 1 or not any(has):  # for the options to refuse
        return [readings] * len(chips)
    defaults = {name: READINGS[name].default for name, _ in merged((), readings)}
    return [readings if each else defaults for each in has]


def _remedy(tried: Remedy) -> dict[str, object]:
    return {
        "cause": str(tried.cause),
        "undecided": tried.undecided,
        "if_exact": tried.if_exact,
        "if_rounded": {dtype.name: left for dtype, left in tried.if_rounded.items()},
    }
