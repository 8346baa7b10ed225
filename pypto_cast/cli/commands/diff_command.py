"""`pypto-cast diff`: two models or arrays, tensor by tensor; exit code 1 where they differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from pypto_cast.checkpoints.model_differences import (
    TensorDifference,
    differences,
    differences_report,
)
from pypto_cast.checkpoints.opening import open_checkpoint
from pypto_cast.checkpoints.stored import Checkpoint
from pypto_cast.cli.app import ChipName, Json, refuse_unread
from pypto_cast.options.context import options
from pypto_cast.report import terminal
from pypto_cast.testing.saved_bounds import judged_report, judged_results, load_bounds

_DIFFERENT: Final = 1
_PLACES: Final = "model file, directory or array"


def run_diff(
    context: typer.Context,
    first: Annotated[Path, typer.Argument(metavar="A", help=f"A {_PLACES}.")],
    second: Annotated[
        Path | None,
        typer.Argument(metavar="B", help="Another one; the kinds may differ."),
    ] = None,
    bounds: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.npz",
            help="Written by certainty --bounds: report elements outside the intervals.",
        ),
    ] = None,
    chip: ChipName = None,
    json: Json = False,
) -> None:
    """Compare the bits of two models or arrays.

    With --bounds, A, and B if it is given, are .npy or .npz, and every element of them has to be
    one that a device may give.
    """
    if bounds is not None:
        refuse_unread(context, ("chip",), "beside --bounds, which say what is possible")
        given = [first] if second is None else [first, second]
        _against_bounds(given, bounds, json=json)
        return
    if second is None:
        raise ValueError("give B, which A is compared with, or --bounds")
    with options(chip=chip):
        found = list(_with_progress(open_checkpoint(first), open_checkpoint(second)))
        terminal.show(differences_report(first, second, found), as_json=json)
    if not all(one.is_equal for one in found):
        raise typer.Exit(_DIFFERENT)


def _with_progress(first: Checkpoint, second: Checkpoint) -> Iterator[TensorDifference]:
    sizes = {tensor.name: tensor.size_bytes for tensor in first.tensors}
    with terminal.progress() as shown:
        task = shown.add_task("comparing", total=sum(sizes.values()))
        for found in differences(first, second):
            shown.advance(task, sizes.get(found.name, 0))
            yield found


def _against_bounds(paths: Sequence[Path], bounds: Path, *, json: bool) -> None:
    certainty = load_bounds(bounds)
    judged = [(path, judged_results(path, certainty)) for path in paths]
    terminal.show(judged_report(bounds, judged), as_json=json)
    if any(each.impossible for _, results in judged for each in results):
        raise typer.Exit(_DIFFERENT)
