"""`pypto-cast diff`: two models or arrays, tensor by tensor; exit code 1 where they differ."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from pypto_cast.checkpoints.model_differences import (
    CastFound,
    Element,
    TensorDifference,
    differences,
)
from pypto_cast.checkpoints.opening import open_checkpoint
from pypto_cast.cli.app import Json
from pypto_cast.dtypes.data_types import CastMode
from pypto_cast.report import terminal
from pypto_cast.report.report import Column, Report, Table, headed, plain, said
from pypto_cast.report.text_format import plural, printable
from pypto_cast.testing.saved_bounds import judged_results, load_bounds

_DIFFERENT: Final = 1
_MOST_ROWS: Final = 100
_PLACES: Final = "model file, directory or array"


def run_diff(
    first: Annotated[Path, typer.Argument(metavar="A", help=f"A {_PLACES}.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another one; the kinds may differ.")],
    bounds: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.npz",
            help="Written by certainty --bounds: report elements outside the intervals.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Compare bits; exit code 1 unless every tensor is equal, or wholly a cast of the other.

    With --bounds, A and B are .npy or .npz, and the exit code is 1 unless a device may give every
    element of both.
    """
    if bounds is not None:
        _against_bounds([first, second], bounds, json=json)
        return
    found = list(differences(open_checkpoint(first), open_checkpoint(second)))
    different = [one for one in found if not one.is_equal]
    terminal.show(_report(first, second, found, different), as_json=json)
    if different:
        raise typer.Exit(_DIFFERENT)


def _against_bounds(paths: Sequence[Path], bounds: Path, *, json: bool) -> None:
    certainty = load_bounds(bounds)
    judged = [(path, judged_results(path, certainty)) for path in paths]
    files = [
        {"file": str(path), "outputs": list(map(dataclasses.asdict, results))}
        for path, results in judged
    ]
    report = Report(
        kind="diff",
        title=f"against {printable(str(bounds))}",
        facts=plain(bounds=bounds, files=files),
        tables=(
            Table(
                columns=(Column(heading="file", is_name=True), *headed("output", "found")),
                rows=[
                    (str(path), each.output, each.in_words())
                    for path, results in judged
                    for each in results
                ],
            ),
        ),
        notes=tuple(each.text for _, results in judged for each in results if each.text),
    )
    terminal.show(report, as_json=json)
    if any(each.impossible for _, results in judged for each in results):
        raise typer.Exit(_DIFFERENT)


def _report(
    first: Path,
    second: Path,
    found: Sequence[TensorDifference],
    different: Sequence[TensorDifference],
) -> Report:
    told = [one for one in found if one.cast is not None or not one.is_equal]
    # Tensors that differ go first.
    told.sort(key=lambda one: one.is_equal)
    equal = sum(one.differing == 0 for one in found)
    casts = sum(one.cast is not None and one.is_equal for one in found)
    left = len(told) - _MOST_ROWS
    return Report(
        kind="diff",
        title=printable(f"A {first}, B {second}"),
        facts=plain(a=first, b=second, tensors=lambda: list(map(_document, found))),
        tables=(
            Table(
                columns=(
                    Column(heading="tensor", is_name=True),
                    Column(heading="A", is_minor=True),
                    Column(heading="B", is_minor=True),
                    Column(heading="found"),
                ),
                rows=[
                    (one.name, _held(one, 0), _held(one, 1), in_words(one))
                    for one in told[:_MOST_ROWS]
                ],
                note=f"{plural(left, 'more tensor')} in --json" if left > 0 else "",
            ),
        ),
        totals=(
            said(
                "total",
                f"{plural(len(found), 'tensor')}: {equal:,} equal in all bits, {casts:,} wholly a "
                f"cast of the other, {len(different):,} different",
            ),
        ),
    )


def in_words(one: TensorDifference) -> str:
    """The difference of a tensor in a sentence."""
    if None in one.shapes:
        return "only in A" if one.shapes[1] is None else "only in B"
    if one.shapes[0] != one.shapes[1]:
        return "the shapes differ"
    if one.cast is not None:
        return _cast_in_words(one.cast)
    if one.differing is None:
        return "no cast of A2/A3 leads from one to the other"
    if not one.differing:
        return "equal"
    words = f"{plural(one.differing, 'code')} differ" if one.differing > 1 else "1 code differs"
    if one.nans:
        words += f", {one.nans:,} of them NaN on both sides"
    if one.ulp_max and one.element is not None:
        words += f"; at most {one.ulp_max:,} ulp, at {_at(one.element)}"
    return words


def _cast_in_words(cast: CastFound) -> str:
    source = "A" if cast.result == "B" else "B"
    mode = "" if cast.mode is CastMode.CAST_NONE else f" by {cast.mode.name}"
    words = f"{cast.result} is {source} cast{mode}"
    if cast.element is None:
        return words
    element = f"; the first: {_at(cast.element)}"
    return f"{words}, but for {plural(cast.differing, 'element')}{element}"


def _at(element: Element) -> str:
    one, other = (f"{value:.9g} = {code:#x}" for value, code in _sides(element))
    return f"{list(element.index)}: {one} and {other}"


def _sides(element: Element) -> tuple[tuple[float, int], tuple[float, int]]:
    return (element.first, element.codes[0]), (element.second, element.codes[1])


def _held(one: TensorDifference, side: int) -> str:
    shape = one.shapes[side]
    return "" if shape is None else f"{one.dtypes[side]} {list(shape)}"


def _document(one: TensorDifference) -> dict[str, Any]:
    """Values are text, for JSON has no NaN."""
    cast = one.cast
    return {
        "name": one.name,
        "shapes": [None if shape is None else list(shape) for shape in one.shapes],
        "dtypes": list(one.dtypes),
        "equal": one.is_equal,
        "differing": one.differing,
        "nans": one.nans,
        "ulp_max": one.ulp_max,
        "element": _element_document(one.element),
        "cast": None
        if cast is None
        else {
            "result": cast.result,
            "mode": cast.mode.name,
            "differing": cast.differing,
            "element": _element_document(cast.element),
        },
        "found": in_words(one),
    }


def _element_document(element: Element | None) -> dict[str, Any] | None:
    if element is None:
        return None
    return {
        "index": list(element.index),
        "values": [str(value) for value, _ in _sides(element)],
        "codes": [f"{code:#x}" for _, code in _sides(element)],
    }
