"""`pypto-cast judge`: results of a device by a kernel's bounds, a golden and a standard."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, cast, get_args

import numpy as np
import typer

from ascend_kernels.schedule.planner.tiles.tile_graph import PlanError
from ascend_kernels.schedule.views.row_groups import NotCutError
from pypto_cast.checkpoints.settings import size_named
from pypto_cast.cli.app import (
    ChipName,
    Force,
    Json,
    NpuOnCpu,
    Readings,
    ReplaceInstalled,
    readings_named,
    refuse_unread,
)
from pypto_cast.cli.commands.certainty_command import (
    SEPARATOR,
    errors_at_lines,
    file_and_name,
    kernel_named,
    saved_arguments,
)
from pypto_cast.cli.dumped_arrays import Given, as_dtype, dumped
from pypto_cast.cli.dumped_programs import JudgedStep, judged_program, junit, names_a_program
from pypto_cast.dtypes.names import dtype_named
from pypto_cast.kernel.certainty import Certainty
from pypto_cast.kernel.jit import Kernel
from pypto_cast.options.context import TrustName, options
from pypto_cast.options.releases import RELEASE_NAMES
from pypto_cast.report import terminal
from pypto_cast.report.page import check_pages, page_html
from pypto_cast.report.report import Fact, Report, plain, said
from pypto_cast.report.text_format import printable, shape_named, written
from pypto_cast.tensors.array_files import check_apart, check_free, new_file
from pypto_cast.testing.bits import native
from pypto_cast.testing.judgement import judge
from pypto_cast.testing.part_judgement import PartJudge, needed_bytes
from pypto_cast.testing.precision import STANDARDS, Standard, elems_to_compare, pieces_observed
from pypto_cast.testing.reproduction import Reproduction, reproduced
from pypto_cast.testing.row_parts import RowParts
from pypto_cast.upstream.import_alias import as_pypto
from pypto_cast.upstream.npu_requests import npu_requests

_FAILS: Final = 1
_OF_A_KERNEL: Final = ("release", "trust", "pairs", "memory", "chip", "reading")
"""Options that say how the bounds are made."""


def run_judge(
    context: typer.Context,
    result: Annotated[
        Path, typer.Argument(metavar="RESULT", help="A file or folder of a device's.")
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
        list[str] | None,
        typer.Option(
            metavar="NAME[=FILE]", help="The output that RESULT is; more outputs, each in a file."
        ),
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
    trust: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"One of {', '.join(get_args(TrustName))}.")
    ] = None,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Try every two hypotheses together too.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write the verdicts there.")
    ] = None,
    junit_xml: Annotated[
        Path | None,
        typer.Option("--junit", metavar="FILE.xml", help="Write a test case for each output."),
    ] = None,
    reproduce: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.npz", help="Write the least part of the inputs that differs; a script."
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Judge a kernel that needs more, as 8G, in parts."),
    ] = None,
    force: Force = False,
    chip: ChipName = None,
    reading: Readings = None,
    npu_on_cpu: NpuOnCpu = False,
    replace_installed: ReplaceInstalled = False,
    json: Json = False,
) -> None:
    """Judge a device's results: possible, and near a golden?

    With a kernel and its inputs, each element is compared with the results that a device may give.
    Without one, the golden and the standard decide.
    """
    script = None if reproduce is None else reproduce.with_suffix(".py")
    written_files = (html, junit_xml, reproduce, script)
    for path in written_files:
        if path is not None:
            check_free(path, force=force, inputs=[result])
    check_apart(written_files)
    if reproduce is not None and kernel is None:
        raise ValueError("--reproduce cuts the inputs of --kernel")
    if html is not None:
        check_pages()
    if golden is None:
        refuse_unread(context, ("standard",), "without --golden, which it compares with")
    named = None if dtype is None else dtype_named(dtype)
    extents = None if shape is None else shape_named(shape)
    if names_a_program(result):
        of_one = {
            **{"--precise": precise, "--kernel": kernel, "--inputs": inputs, "--output": output},
            **{"--release": release, "--trust": trust, "--pairs": pairs, "--memory": memory},
            **{"--chip": chip, "--reading": reading},
        }
        if given_too := [name for name, value in of_one.items() if value]:
            raise ValueError(f"{result} holds many dumps, and {given_too[0]} is of one")
        program = judged_program(result, golden, cast(Standard, standard), named, extents)
        if not any(step.judged for step in program.steps):
            first = program.steps[0]
            raise ValueError(f"no step can be judged; of {printable(first.name)}: {first.reason}")
        facts = plain(result=result, golden=golden)
        _tell(result, program.report, facts, as_json=json)
        _write(program.report, program.steps, html, junit_xml, force=force)
        if not program.passes:
            raise typer.Exit(_FAILS)
        return
    if standard == "bits":
        refuse_unread(context, ("precise",), "beside --standard bits")
    if (kernel is None) != (inputs is None):
        raise ValueError("--kernel and --inputs go together: the bounds are of these inputs")
    if kernel is None and golden is None:
        raise ValueError("give --golden, or --kernel with --inputs, or both")
    if kernel is None:
        refuse_unread(context, _OF_A_KERNEL, "without --kernel")
    notes: list[str] = []
    files = [None if path is None else dumped(path, named, extents) for path in (result, golden)]
    truth = None if precise is None else dumped(precise)
    asked = cast(Standard, standard)
    if kernel is None or inputs is None:
        if output:
            raise ValueError("--output names an output of --kernel")
        with _shown_pieces(elems_to_compare(_arrays(files[0]), asked)):
            judged = judge(files[0], files[1], truth, standard=asked)
    else:
        settings: dict[str, dict[str, Any]] = {
            "as_pypto": {"replace_installed": replace_installed},
            "npu_requests": {"on_cpu": npu_on_cpu},
            # Whether these are known is for the options to say, which list them.
            "options": {
                **{"release": release, "chip": chip, "trust": trust},
                "readings": readings_named(reading),
            },
        }
        with (
            as_pypto(**settings["as_pypto"]),
            npu_requests(**settings["npu_requests"]),
            options(**settings["options"]),
        ):
            file, found = kernel_named(kernel)
            arguments, others = saved_arguments(found, inputs)
            with errors_at_lines(file):
                in_parts = _in_parts(memory, found, arguments, others)
            name, more = _outputs_named(output or ())
            if in_parts is None:
                with errors_at_lines(file):
                    bounds = found.certainty(*arguments, **others)
            else:
                bounds = in_parts.bounds
            given = [None if each is None else _by_output(each, bounds, name) for each in files]
            if given[0] is not None:
                for key, path in more.items():
                    given[0] |= _by_output(dumped(path, named, extents), bounds, key)
                _check_whole(given[0], bounds)
            told_runs = _tell_runs if pairs else None
            if in_parts is not None:
                if reproduce is not None:
                    raise ValueError("--reproduce cuts all rows; leave out --memory, or give more")
                arrays = _arrays(given[0])
                beside = 0 if given[1] is None else elems_to_compare(arrays, asked)
                with _shown_pieces(sum(array.size for array in arrays) + beside):
                    parted = in_parts.judged(
                        given[0] or {},
                        given[1],
                        truth,
                        standard=asked,
                        pairs=pairs,
                        told=told_runs,
                    )
                judged = parted.judgement
                notes.append(parted.note)
            else:
                judged = judge(
                    given[0],
                    given[1],
                    truth,
                    bounds=bounds,
                    standard=asked,
                    run=lambda: found.certainty(*arguments, **others),
                    pairs=pairs,
                    told=told_runs,
                )
            if reproduce is not None and script is not None and given[0] is not None:
                part = _reproduced(found, arguments, others, bounds, given[0])
                notes.append(str(part))
                with new_file(reproduce, force=force) as held:
                    np.savez(held, **part.arrays(), **others)
                with new_file(script, force=force) as text:
                    whole = f"{file.resolve()}{SEPARATOR}{file_and_name(kernel)[1]}"
                    text.write(part.script(whole, reproduce, settings).encode())
    facts = plain(result=result, golden=golden, kernel=kernel)
    told = judged.report
    told = dataclasses.replace(
        told, notes=(*told.notes, *notes, *written(written_files if reproduce else ()))
    )
    _tell(result, told, facts, as_json=json)
    _write(told, [JudgedStep(name="", judged=judged.outputs)], html, junit_xml, force=force)
    if not judged.passes:
        raise typer.Exit(_FAILS)


def _tell_runs(text: str) -> None:
    typer.echo(text, err=True)


def _in_parts(
    memory: str | None, kernel: Kernel, arguments: list[Any], others: dict[str, Any]
) -> PartJudge | None:
    """The judge of a kernel in parts, where the whole needs more memory than there may be.

    Raises:
        ValueError: it needs more, and is not judged in parts; both sizes, and why.
    """
    if memory is None:
        return None
    allowed = size_named(memory, "--memory")
    needed = needed_bytes(kernel, arguments, others)
    text = f"the kernel may need {needed:,} B"
    if needed <= allowed:
        typer.echo(f"{text} at once", err=True)
        return None
    try:
        found = PartJudge(RowParts(kernel, arguments, others), allowed)
    except (PlanError, NotCutError) as error:
        raise ValueError(
            f"{text}, for its arrays and their intervals; --memory allows {allowed:,} B, and it is "
            f"not judged in parts: {error}"
        ) from error
    typer.echo(f"{text} at once; it is judged in parts", err=True)
    return found


def _arrays(given: Given | None) -> list[np.ndarray[Any, Any]]:
    return list(given.values()) if isinstance(given, dict) else [] if given is None else [given]


@contextlib.contextmanager
def _shown_pieces(elems: int) -> Iterator[None]:
    """Show how many elements of all that are to be compared were."""
    with terminal.progress() as shown:
        task = shown.add_task("judging", total=elems)
        with pieces_observed(lambda elems: shown.advance(task, elems)):
            yield


def _tell(result: Path, told: Report, facts: tuple[Fact, ...], *, as_json: bool) -> None:
    title = f"{printable(str(result))}: {told.title}"
    terminal.show(
        dataclasses.replace(told, title=title, facts=(*facts, *told.facts)), as_json=as_json
    )


def _write(
    told: Report,
    steps: Sequence[JudgedStep],
    html: Path | None,
    junit_xml: Path | None,
    *,
    force: bool,
) -> None:
    if html is not None:
        with new_file(html, force=force) as file:
            verdict = said("verdict", "\n".join(told.notes))
            page = dataclasses.replace(told, facts=(*told.facts, verdict))
            file.write(page_html(page).encode())
    if junit_xml is not None:
        with new_file(junit_xml, force=force) as file:
            file.write("\n".join((*junit(steps, told.notes), "")).encode())


def _reproduced(
    kernel: Kernel,
    arguments: list[Any],
    others: dict[str, Any],
    bounds: Certainty,
    results: Mapping[str, Any],
) -> Reproduction:
    inputs = dict(zip(kernel.signature.tensors, arguments, strict=True))
    arrays = {
        output.name: native(array)
        for output in bounds.outputs
        for name, array in results.items()
        if name in (output.name, *output.aliases)
    }

    def run(part: Mapping[str, Any]) -> Certainty:
        return kernel.certainty(*part.values(), **others)

    return reproduced(run, inputs, bounds, arrays)


def _outputs_named(words: Iterable[str]) -> tuple[str | None, dict[str, Path]]:
    """The name of the first result, and the files of other outputs.

    Raises:
        ValueError: two names for one result, or a name without a file after an equals sign.
    """
    names: list[str] = []
    more: dict[str, Path] = {}
    for word in words:
        name, is_file, path = word.partition("=")
        if is_file and path:
            more[name] = Path(path)
        elif is_file or names:
            raise ValueError(f"--output takes one NAME, and NAME=FILE for others; got {word!r}")
        else:
            names.append(name)
    return (names[0] if names else None), more


def _check_whole(given: Mapping[str, Any], bounds: Certainty) -> None:
    """Raises ValueError: an output of the kernel is in no file."""
    missing = [o.name for o in bounds.outputs if given.keys().isdisjoint((o.name, *o.aliases))]
    if missing:
        raise ValueError(
            f"the kernel writes {', '.join(missing)} too: give --output {missing[0]}=FILE, or a "
            ".npz with all outputs by their names"
        )


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
    return {key: as_dtype(array, by_alias[key].dtype, key) for key, array in given.items()}
