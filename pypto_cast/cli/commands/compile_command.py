"""`pypto-cast compile`: a kernel compiled by upstream's wheel, for the program that it makes."""

from __future__ import annotations

import contextlib
import inspect
import shutil
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from ascend_kernels.schedule.schedule import Schedule
from pypto_cast.cli.app import Json
from pypto_cast.cli.commands.certainty_command import SEPARATOR, kernel_named
from pypto_cast.dtypes.data_types import ROW_OF, DataType
from pypto_cast.kernel.jit import Kernel
from pypto_cast.kernel.reports.schedule_report import counted, figures
from pypto_cast.report import terminal
from pypto_cast.report.report import Report, plain
from pypto_cast.report.text_format import shape_named
from pypto_cast.tensors.array_files import npz_arrays, with_dtype
from pypto_cast.upstream.import_alias import as_pypto
from pypto_cast.upstream.schedule_reader import read_schedule
from pypto_cast.upstream.wheel_compile import SECONDS, compile_kernel

Tensors = list[tuple[list[int], str]]
_LONGEST: Final = (1 << 63) - 1

Named = Annotated[
    str, typer.Argument(metavar="FILE::KERNEL", help="A Python file and a kernel in it.")
]
Shapes = Annotated[
    list[str] | None,
    typer.Option("--shape", metavar="NAME=N,N", help="Shape of a tensor, where it is open."),
]
Inputs = Annotated[
    Path | None, typer.Option(metavar="FILE.npz", help="Arrays by the names of the parameters.")
]
Seconds = Annotated[int, typer.Option(min=1, metavar="N", help="Limit of time in seconds.")]
Python = Annotated[
    str, typer.Option(metavar="PATH", help="The interpreter of an environment with the wheel.")
]


def run_compile(
    kernel: Named,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="A new folder for the dump; required."),
    ] = None,
    inputs: Inputs = None,
    shape: Shapes = None,
    python: Python = "python3",
    seconds: Seconds = SECONDS,
    json: Json = False,
) -> None:
    """Compile a kernel with upstream's wheel; keep its dump.

    Needs pypto==0.2.0 and torch; no CANN. Your file is not touched, and nothing is computed; the
    dump is read by read_schedule. What the file prints as it is imported goes to stderr.
    """
    if output is None:
        raise ValueError("name a new folder for the dump: -o DIR")
    with as_pypto(replace_installed=True):
        file, found = kernel_named(kernel)
    schedule = compiled_schedule(
        kernel, file, found, inputs, shape, output, python=python, seconds=seconds
    )
    said = figures(schedule)
    line = (
        f"{kernel.rpartition(SEPARATOR)[2]}: {counted(said)}, UB {said['peak_ub_bytes']} B "
        f"as allocated, {said['needed_ub_bytes']} B needed; wrote {output}"
    )
    facts = plain(**said, output=str(output))
    terminal.show(Report(kind="compile", title=line, facts=facts), as_json=json)


def compiled_schedule(
    named: str,
    file: Path,
    kernel: Kernel,
    inputs: Path | None,
    shapes: list[str] | None,
    output: Path,
    *,
    python: str,
    seconds: int,
) -> Schedule:
    """Compile a kernel with upstream's wheel, and read its schedule from the dump that is left.

    Args:
        named: FILE::KERNEL, as the user wrote it.
        file, kernel: the two.
        inputs, shapes: see `declared_of`.
        output, python, seconds: see `compile_kernel`.

    Raises:
        TypeError, ValueError: see `declared_of`; or a dtype that torch lacks.
        WheelError, OSError: see `compile_kernel`.
        DumpError: see `read_schedule`; the output is removed.
    """
    tensors, others = _arguments_of(kernel, inputs, shapes or [])
    with terminal.progress() as shown:
        limit = terminal.duration(seconds)
        shown.add_task(f"compiling with upstream's wheel, {limit} at most", total=None)
        compile_kernel(
            file,
            named.rpartition(SEPARATOR)[2],
            tensors,
            output,
            python=python,
            seconds=seconds,
            others=others,
            dynamic=[name for name, x in kernel.signature.tensors.items() if x.dynamic_axes()],
        )
    try:
        return read_schedule(output, kernel.signature.kernel)
    except BaseException:
        shutil.rmtree(output)  # made above; what cannot be read is no output
        raise


def _arguments_of(
    kernel: Kernel, inputs: Path | None, shapes: list[str]
) -> tuple[Tensors, dict[str, Any]]:
    """Shape and torch's dtype of each tensor, and the numbers beside them; see `declared_of`."""
    declared, others = declared_of(kernel, inputs, shapes)
    found: Tensors = []
    for (shape, dtype), name in zip(declared, kernel.signature.tensors, strict=True):
        torch_name = ROW_OF[dtype].torch
        if torch_name is None:
            raise ValueError(f"torch has no {dtype}, which {name} is")
        found.append((shape, torch_name))
    return found, others


def declared_of(
    kernel: Kernel, inputs: Path | None, shapes: list[str]
) -> tuple[list[tuple[list[int], DataType]], dict[str, Any]]:
    """Shape and dtype of each tensor, and the numbers beside them.

    Args:
        kernel: its annotations say shapes and dtypes.
        inputs: a .npz file, for shapes that are open and for numbers; None: there is none.
        shapes: options that say shapes, which come first.

    Raises:
        TypeError: an array of another dtype than annotated.
        ValueError: a shape, a dtype or a number that nothing says, a shape that is none or is
            another than annotated, or a name that the kernel does not take.
    """
    signature = kernel.signature
    named = list(map(_named_shape, shapes))
    said = dict(named)
    if len(said) < len(named):
        raise ValueError(f"--shape names a tensor twice: {' '.join(shapes)}")
    held = {} if inputs is None else npz_arrays(inputs)
    known = [*signature.tensors, *signature.others]
    if unknown := sorted({*said, *held} - set(known) | set(said) & set(signature.others)):
        raise ValueError(f"{signature.kernel} takes {', '.join(known)}, not {unknown[0]}")
    found = []
    for name, annotation in signature.tensors.items():
        dtype = annotation.dtype
        if name in held:
            with_dtype(held[name], dtype, f"{inputs}: {name}", "an annotation of")
        shape = said.get(name) or (held[name].shape if name in held else annotation.shape)
        extents = tuple(each for each in shape if isinstance(each, int) and each > 0)
        if dtype is None:
            raise ValueError(f"the dtype of {name} is open; annotate it, as pypto.DT_FP32")
        if not shape or len(extents) < len(shape):
            raise ValueError(f"the shape of {name} is open; say --shape {name}=N,N")
        annotation.check(name, extents, dtype)
        found.append((list(extents), dtype))
    others = {name: held[name].item() for name in signature.others if name in held}
    for name, parameter in signature.others.items():
        if name not in others and parameter.default is inspect.Parameter.empty:
            raise ValueError(f"{signature.kernel} takes {name}, a number; save it in --inputs")
    return found, others


def _named_shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, numbers = text.partition("=")
    extents: tuple[int, ...] = ()
    with contextlib.suppress(ValueError):
        extents = shape_named(numbers)
    if max(extents, default=0) > _LONGEST:
        raise ValueError(
            f"--shape {text}: numbers of a kernel have 64 bits, so a length is below 2^63"
        )
    if name and extents:
        return name, extents
    raise ValueError(f"--shape is NAME=N,N of 1 or more, as x=1024,256; got {text!r}")
