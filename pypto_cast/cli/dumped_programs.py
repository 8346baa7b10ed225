"""Folders of dumps: two of them step by step, and msprobe's dump.json with its tensors.

The format of dump.json: SGLang's "MSProbe Debugging Guide", section "dump.json file description";
`data` has an entry for each call, as `Functional.relu.0.forward`, with `input_args`, `input_kwargs`
and `output`, lists of tensors that name their file in dump_tensor_data as `data_name`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import numpy.typing as npt

import pypto_cast.operations as op
from pypto_cast.cli.dumped_arrays import SUFFIXES, dumped
from pypto_cast.dtypes.data_types import DataType
from pypto_cast.kernel.operation_dump import INDEX
from pypto_cast.options.context import options
from pypto_cast.recording.output_certainty import OutputCertainty
from pypto_cast.report.report import Report, Table, columns, plain
from pypto_cast.report.text_format import printable
from pypto_cast.tensors.arrays import from_numpy
from pypto_cast.tensors.tensor import Tensor
from pypto_cast.testing.judgement import JudgedOutput, judge
from pypto_cast.testing.precision import Standard
from simulator.arithmetic.interval import exactly
from tiling.grid import Shape
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
        is_listed: a document has their order; else it is that of their names.
    """

    steps: tuple[JudgedStep, ...]
    is_listed: bool

    @property
    def passes(self) -> bool:
        """No step fails."""
        return all(step.passes for step in self.steps)

    @property
    def report(self) -> Report:
        """The first step that fails, all that do, and those that are not judged."""
        first = next((step for step in self.steps if not step.passes), None)
        told = sum(bool(step.judged) for step in self.steps)
        order = "the program" if self.is_listed else "their names"
        notes = [f"{told:,} of {len(self.steps):,} steps are judged, in the order of {order}"]
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


def judged_folders(
    results: Path,
    goldens: Path,
    standard: Standard,
    dtype: DataType | None = None,
    shape: Shape | None = None,
) -> JudgedProgram:
    """Dumps of two folders by their names, in the order of the program that wrote them.

    The order is that of dump.json files and of the index of `pypto-cast run --dump`; files in none
    of them come after those, by their names and the numbers in them. A dump that is of another
    kind in the other folder, as .pt beside .npy, is found too.

    Args:
        results, goldens: the folders.
        standard: as for `judge`.
        dtype, shape: as for `dumped`.

    Raises:
        OSError: a file cannot be read.
        ValueError: no folder, or no dumps in it.
    """
    for folder in (results, goldens):
        if not folder.is_dir():
            raise ValueError(f"{folder} is no folder; dumps of two folders are compared")
    ours, theirs = _dumps(results), _dumps(goldens)
    if not ours and not theirs:
        raise ValueError(f"{results} holds no dumps: {', '.join(SUFFIXES)}")
    theirs = _by_names_of(ours, theirs)
    listed = _listed(results)
    listed |= {name: dtype for name, dtype in _listed(goldens).items() if name not in listed}
    order = {name: place for place, name in enumerate(listed)}
    names = sorted(
        ours.keys() | theirs.keys(),
        key=lambda name: (order.get(name, len(order)), _natural(name)),
    )

    def step(name: str) -> JudgedStep:
        for folder, held in ((results, ours), (goldens, theirs)):
            if name not in held:
                return JudgedStep(name=name, reason=f"{folder} does not have it")
        try:
            pair = (dumped(held[name], listed.get(name) or dtype, shape) for held in (ours, theirs))
            judged = judge(*pair, standard=standard)
        except (OSError, TypeError, ValueError, ModuleNotFoundError) as error:
            return JudgedStep(name=name, reason=str(error))
        return JudgedStep(name=name, judged=judged.outputs)

    return JudgedProgram(
        steps=tuple(map(step, names)), is_listed=not order.keys().isdisjoint(names)
    )


def _dumps(folder: Path) -> dict[str, Path]:
    """The dumps in a folder, by their names."""
    paths = (path for path in folder.rglob("*") if path.suffix in SUFFIXES)
    return {str(path.relative_to(folder)): path for path in paths}


def _by_names_of(ours: Mapping[str, Path], theirs: Mapping[str, Path]) -> dict[str, Path]:
    """Their dumps by our names, where the kinds of files alone differ."""
    alone: dict[str, list[str]] = {}
    for name in ours.keys() ^ theirs.keys():
        alone.setdefault(str(Path(name).with_suffix("")), []).append(name)
    found = dict(theirs)
    for one, other in (sorted(x, key=ours.__contains__) for x in alone.values() if len(x) == 2):
        if other in ours and one in theirs:
            found[other] = found.pop(one)
    return found


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Numbers in names by their size, so that step 2 comes before step 10."""
    parts = re.split(r"(\d+)", name)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]


def _listed(folder: Path) -> dict[str, DataType | None]:
    """The files that the documents of a folder of dumps list, in program order, with their dtypes.

    Raises:
        OSError, ValueError: a document cannot be read.
    """
    above = [folder.parent / DOCUMENT] if folder.name == _FOLDER else []
    documents = [path for path in above if path.is_file()]
    documents += sorted(
        (path for name in (DOCUMENT, INDEX) for path in folder.rglob(name)),
        key=lambda path: _natural(str(path.relative_to(folder))),
    )
    found: dict[str, DataType | None] = {}
    for document in documents:
        entries = (
            ((document.parent / name, dtype) for name, dtype in _indexed(document))
            if document.name == INDEX
            else ((document.parent / _FOLDER / name, None) for name in _files(_data(document)))
        )
        found |= {
            str(path.relative_to(folder)): dtype
            for path, dtype in entries
            if folder in path.parents
        }
    return found


def _indexed(index: Path) -> Iterator[tuple[str, DataType | None]]:
    """The files of `pypto-cast run --dump`."""
    try:
        text = regular(index, most_bytes=MOST_DOCUMENT_BYTES).read_text()
        for line in text.splitlines():
            for each in json.loads(line)["tensors"]:
                if "file" in each:
                    yield str(each["file"]), DataType.__members__.get(str(each["dtype"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{index} is no index of a dump: {error}") from error


def _files(data: object) -> Iterator[str]:
    """The files that calls name, in the order of the document."""
    left = [data]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            if isinstance(name := each.get("data_name"), str):
                yield name
            each = list(each.values())
        if isinstance(each, list):
            left += reversed(each)


# --- msprobe's dump.json -------------------------------------------------------------------------


def judged_calls(document: Path) -> JudgedProgram:
    """The calls of a dump.json: whether their own inputs explain their outputs.

    Raises:
        OSError: a file cannot be read.
        ValueError: no such document.
    """
    data = _data(document)
    folder = document.parent / _FOLDER
    steps = tuple(_call(name, entry, folder) for name, entry in data.items())
    return JudgedProgram(steps=steps, is_listed=True)


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


def judged_program(
    result: Path,
    golden: Path | None,
    standard: Standard,
    dtype: DataType | None = None,
    shape: Shape | None = None,
) -> JudgedProgram:
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
    return judged_folders(result, golden, standard, dtype, shape)


def junit(steps: Sequence[JudgedStep], notes: Iterable[str]) -> Iterator[str]:
    """The lines of a JUnit document: a test case for each output and each unjudged step.

    Args:
        steps: in their order.
        notes: the verdict in words.
    """
    judged = [each for step in steps for each in step.judged]
    failed = sum(not each.passes for each in judged)
    skipped = sum(not step.judged for step in steps)
    yield '<?xml version="1.0" encoding="utf-8"?>'
    yield (
        f'<testsuite name="judge" tests="{len(judged) + skipped}" failures="{failed}" '
        f'skipped="{skipped}">'
    )
    for step in steps:
        if not step.judged:
            yield f"  {_case(step.name)}>"
            yield f"    <skipped message={quoteattr(printable(step.reason))}/>"
            yield "  </testcase>"
        for each in step.judged:
            case = _case(f"{step.name} {each.name}".strip())
            if each.passes:
                yield f"  {case}/>"
                continue
            lines = [printable(line) for line in (*each.lines(), *each.first.splitlines())]
            yield f"  {case}>"
            yield f"    <failure message={quoteattr(lines[0] if lines else 'fails')}>"
            yield escape("\n".join(lines))
            yield "    </failure>"
            yield "  </testcase>"
    yield "  <system-out>"
    yield escape("\n".join(map(printable, notes)))
    yield "  </system-out>"
    yield "</testsuite>"


def _case(name: str) -> str:
    return f'<testcase classname="judge" name={quoteattr(printable(name))}'
