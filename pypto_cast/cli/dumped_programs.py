"""Folders of dumps: two of them step by step, and msprobe's dump.json with its tensors.

The format of dump.json: SGLang's "MSProbe Debugging Guide", section "dump.json file description";
`data` has an entry for each call, as `Functional.relu.0.forward`, with `input_args`, `input_kwargs`
and `output`, lists of tensors that name their file in dump_tensor_data as `data_name`.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import numpy.typing as npt

import pypto_cast.operations as op
from pypto_cast.cli.dumped_arrays import SUFFIXES, dumped
from pypto_cast.dtypes.data_types import DataType
from pypto_cast.options.context import options
from pypto_cast.recording.output_certainty import OutputCertainty
from pypto_cast.report.report import Report, Table, columns, plain
from pypto_cast.report.text_format import printable
from pypto_cast.tensors.arrays import from_numpy
from pypto_cast.tensors.tensor import Tensor
from pypto_cast.testing.judgement import JudgedOutput, judge
from pypto_cast.testing.precision import Standard
from simulator.arithmetic.interval import exactly
from tiling.input_files import MOST_DOCUMENT_BYTES, regular

_TILE_ELEMS: Final = 8192
DOCUMENT: Final = "dump.json"
_FOLDER: Final = "dump_tensor_data"
_ONE: Final = (
    *("exp", "log", "sqrt", "abs", "neg", "relu", "ceil", "floor", "trunc", "rsqrt", "reciprocal"),
    "bitwise_not",
)
_TWO: Final = (*("add", "sub", "mul", "div", "maximum", "minimum", "bitwise_and", "bitwise_or"),)
_OTHER_NAMES: Final[Mapping[str, str]] = {
    **{"absolute": "abs", "negative": "neg", "subtract": "sub", "multiply": "mul", "radd": "add"},
    **{
        "rmul": "mul",
        "divide": "div",
        "true_divide": "div",
        "truediv": "div",
        "and": "bitwise_and",
    },
    **{"or": "bitwise_or", "invert": "bitwise_not"},
}
"""torch's other names for one function, and Python's for its operators."""
APIS: Final[Mapping[str, tuple[int, Callable[..., Tensor]]]] = {
    name: (count, getattr(op, name)) for count, names in ((1, _ONE), (2, _TWO)) for name in names
}
"""torch's functions that are an operation here, of tensors of one shape: operands, operation."""
_API: Final = re.compile(r"(?:Tensor|Torch|Functional)\._*(?P<name>\w+?)_*\.\d+\.forward")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedStep:
    """A step of a program, judged.

    Attributes:
        name: of the call or the file.
        judged: its outputs; none if it is not judged.
        reason: why it is not judged.
    """

    name: str
    judged: tuple[JudgedOutput, ...] = ()
    reason: str = ""

    @property
    def passes(self) -> bool:
        """No output of it fails."""
        return all(each.passes for each in self.judged)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedProgram:
    """The steps of a program in its order.

    Attributes:
        steps: all of them.
    """

    steps: tuple[JudgedStep, ...]

    @property
    def passes(self) -> bool:
        """No step fails."""
        return all(step.passes for step in self.steps)

    @property
    def outputs(self) -> tuple[JudgedOutput, ...]:
        """Of all steps, by the names of these."""
        return tuple(
            dataclasses.replace(each, name=f"{step.name} {each.name}".strip())
            for step in self.steps
            for each in step.judged
        )

    @property
    def report(self) -> Report:
        """The first step that fails, all that do, and those that are not judged."""
        first = next((step for step in self.steps if not step.passes), None)
        told = sum(bool(step.judged) for step in self.steps)
        notes = [f"{told:,} of {len(self.steps):,} steps are judged"]
        if first is not None:
            notes.insert(0, f"the first that differs: {printable(first.name)}")
        rows = [
            (step.name, step.passes if step.judged else None, _told(step), step.reason)
            for step in self.steps
            if not (step.judged and step.passes)
        ]
        return Report(
            kind="judge",
            title="passes" if self.passes else "fails",
            facts=plain(
                passes=self.passes, judged=told, first=None if first is None else first.name
            ),
            tables=(
                Table(
                    key="steps",
                    columns=columns(
                        step="step", passes="passes", verdict="verdict", reason="not judged"
                    ),
                    rows=rows,
                ),
            ),
            notes=tuple(notes),
        )


def _told(step: JudgedStep) -> str:
    return "; ".join(line for each in step.judged for line in each.lines())


def judged_folders(results: Path, goldens: Path, standard: Standard) -> JudgedProgram:
    """Dumps of two folders by their names, in the order of a dump.json or of their numbers.

    Raises:
        OSError: a file cannot be read.
        ValueError: no folder, or no dumps in it.
    """
    for folder in (results, goldens):
        if not folder.is_dir():
            raise ValueError(f"{folder} is no folder; dumps of two folders are compared")
    names = sorted(_dumps(results) | _dumps(goldens), key=_natural)
    if not names:
        raise ValueError(f"{results} holds no dumps: {', '.join(SUFFIXES)}")
    order = {name: k for k, name in enumerate(_listed(results) or _listed(goldens))}
    names.sort(key=lambda name: order.get(name, len(order)))
    return JudgedProgram(steps=tuple(_pair(results, goldens, name, standard) for name in names))


def _dumps(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.suffix in SUFFIXES}


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Numbers in names by their size, so that step 2 comes before step 10."""
    parts = re.split(r"(\d+)", name)
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]


def _pair(results: Path, goldens: Path, name: str, standard: Standard) -> JudgedStep:
    for folder in (results, goldens):
        if not (folder / name).is_file():
            return JudgedStep(name=name, reason=f"{folder} does not have it")
    try:
        judged = judge(dumped(results / name), dumped(goldens / name), standard=standard)
    except (TypeError, ValueError) as error:
        return JudgedStep(name=name, reason=str(error))
    return JudgedStep(name=name, judged=judged.outputs)


# --- msprobe's dump.json -------------------------------------------------------------------------


def judged_calls(document: Path) -> JudgedProgram:
    """The calls of a dump.json: whether their own inputs explain their outputs.

    Raises:
        OSError: a file cannot be read.
        ValueError: no such document.
    """
    data = _data(document)
    folder = document.parent / _FOLDER
    return JudgedProgram(steps=tuple(_call(name, entry, folder) for name, entry in data.items()))


def _data(document: Path) -> dict[str, Any]:
    try:
        text = regular(document, most_bytes=MOST_DOCUMENT_BYTES).read_text()
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{document} is no dump.json: {error}") from error
    data = found.get("data") if isinstance(found, dict) else None
    if not isinstance(data, dict) or not data:
        raise ValueError(f"{document} is no dump.json: it has no calls under 'data'")
    return data


def _listed(folder: Path) -> list[str]:
    """The files of a dump.json in a folder, in program order; none without it."""
    document = folder / DOCUMENT
    if not document.is_file():
        return []
    return [
        f"{_FOLDER}/{each['data_name']}"
        for entry in _data(document).values()
        for key in ("input_args", "output")
        for each in _tensors(entry, key)
    ]


def _tensors(entry: object, key: str) -> list[dict[str, Any]]:
    """The tensors of a call that have a file."""
    listed = entry.get(key) if isinstance(entry, dict) else None
    return [
        each
        for each in (listed if isinstance(listed, list) else [])
        if isinstance(each, dict) and isinstance(each.get("data_name"), str)
    ]


def _call(name: str, entry: object, folder: Path) -> JudgedStep:
    matched = _API.fullmatch(name)
    api = APIS.get(_OTHER_NAMES.get(matched["name"], matched["name"])) if matched else None
    if api is None:
        return JudgedStep(name=name, reason="no operation here is this API")
    count, operation = api
    inputs, outputs = _tensors(entry, "input_args"), _tensors(entry, "output")
    others = isinstance(entry, dict) and entry.get("input_kwargs")
    arguments = entry.get("input_args") if isinstance(entry, dict) else None
    if others or len(inputs) != count or len(arguments or ()) != count or len(outputs) != 1:
        return JudgedStep(name=name, reason=f"not {count} tensors and one output with files")
    try:
        arrays = [_array(folder, each["data_name"]) for each in (*inputs, *outputs)]
        shapes = {array.shape for array in arrays}
        if len(shapes) != 1:
            return JudgedStep(name=name, reason="its tensors have several shapes")
        bounds = _bounds(operation, arrays[:-1])
        judged = judge(arrays[-1].reshape(-1), bounds=bounds)
    except (OSError, TypeError, ValueError, ModuleNotFoundError) as error:
        return JudgedStep(name=name, reason=str(error))
    return JudgedStep(name=name, judged=judged.outputs)


def _array(folder: Path, name: str) -> npt.NDArray[Any]:
    path = folder / name
    if folder.resolve() not in path.resolve().parents:
        raise ValueError(f"{printable(name)} lies outside {folder}")
    found = dumped(path)
    if isinstance(found, dict):
        raise ValueError(f"{path} holds {len(found)} tensors; one is asked for")
    return np.ascontiguousarray(found)


def _bounds(operation: Callable[..., Tensor], arrays: list[npt.NDArray[Any]]) -> OutputCertainty:
    """The interval of an operation of single elements, in one row of tiles."""
    with options(vec_tile_shapes=[_TILE_ELEMS]):
        result = operation(*(from_numpy(array.reshape(-1)) for array in arrays))
        held = result.enclosure()
    if held is None:
        raise ValueError("the operation gives no values")
    interval = held.interval or exactly(held.values)
    dtype: DataType = result.dtype
    return OutputCertainty(
        name="output",
        dtype=dtype,
        values=held.values,
        low=interval.low,
        high=interval.high,
        may_be_nan=interval.may_be_nan,
        cause=np.zeros(held.values.shape, np.uint16),
        causes=(),
    )


def names_a_program(path: Path) -> bool:
    """True for a folder of dumps, and for a dump.json."""
    return path.is_dir() or path.suffix == ".json"


def judged_program(result: Path, golden: Path | None, standard: Standard) -> JudgedProgram:
    """A dump.json by itself, or two folders.

    Raises:
        OSError: a file cannot be read.
        ValueError: a folder without a golden one.
    """
    if golden is None:
        document = result / DOCUMENT if result.is_dir() else result
        if not document.is_file():
            raise ValueError(f"{result} has no {DOCUMENT}: give --golden, another folder of dumps")
        return judged_calls(document)
    return judged_folders(result, golden, standard)


def junit(outputs: tuple[JudgedOutput, ...]) -> Iterator[str]:
    """The lines of a JUnit document: a test case for each output."""
    failed = sum(not each.passes for each in outputs)
    yield '<?xml version="1.0" encoding="utf-8"?>'
    yield f'<testsuite name="judge" tests="{len(outputs)}" failures="{failed}">'
    for each in outputs:
        name = quoteattr(printable(each.name))
        if each.passes:
            yield f'  <testcase classname="judge" name={name}/>'
            continue
        lines = [printable(line) for line in each.lines()]
        yield f'  <testcase classname="judge" name={name}>'
        yield f"    <failure message={quoteattr(lines[0] if lines else 'fails')}>"
        yield escape("\n".join((*lines, *each.first.splitlines())))
        yield "    </failure>"
        yield "  </testcase>"
    yield "</testsuite>"
