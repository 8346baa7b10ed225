"""Results of a device judged: can they be, do they hold a standard, and is the golden right.

judge -> precision.compared, precision.accepted, possible -> Judgement
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.kernel.certainty import Certainty, OutputCertainty
from pypto_cast.report.notebook import notebook_html
from pypto_cast.report.report import Column, Report, Table, columns, plain
from pypto_cast.testing.bits import array_under_test, native
from pypto_cast.testing.hypotheses import Explanation, explanations
from pypto_cast.testing.layouts import layout_of
from pypto_cast.testing.misplacements import boxes_of
from pypto_cast.testing.possible import (
    ImpossibleError,
    assert_possible,
    impossible_count,
    paired_outputs,
    possible_share,
)
from pypto_cast.testing.precision import (
    Acceptance,
    Comparison,
    Standard,
    accepted,
    compared,
    equal_share,
)

_ALONE: Final = "result"
_BEST: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideCount:
    """Elements of a tile that cannot be.

    Attributes:
        tile, core: that wrote them; None: no tile of this package did.
        written_by: the operation and its line; without a tile the one that leaves them open, as a
            matmul, or "" where it leaves none open.
        count: of elements.
    """

    tile: int | None
    core: int | None
    written_by: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedOutput:
    """One output, judged.

    Attributes:
        name: of the output.
        elems: its elements.
        comparison: beside the golden; None without one.
        acceptance: the verdict of the standard; None without a golden.
        impossible: elements that no device gives; None without bounds.
        first: the first of them, with tile, core, operation and line; empty if there are none.
        golden_impossible: elements of the golden that no device gives; None without both.
        outside: the elements that no device gives by tile and core, the most first.
        layout: another layout in which the elements would be right; empty if there is none.
    """

    name: str
    elems: int
    comparison: Comparison | None = None
    acceptance: Acceptance | None = None
    impossible: int | None = None
    first: str = ""
    golden_impossible: int | None = None
    outside: tuple[OutsideCount, ...] = ()
    layout: str = ""

    @property
    def passes(self) -> bool:
        """A device may give every element; without bounds, the standard passes."""
        if self.impossible is not None:
            return not self.impossible
        return self.acceptance is None or self.acceptance.passes

    def lines(self) -> Iterator[str]:
        """The verdicts in words."""
        if self.layout:
            yield f"{self.name}: it is {self.layout}"
        if self.impossible is not None:
            verdict = (
                f"{self.impossible:,} of {self.elems:,} elements cannot come from a device"
                if self.impossible
                else f"a device may give all {self.elems:,} elements"
            )
            yield f"{self.name}: {verdict}"
        if self.golden_impossible:
            yield (
                f"{self.name}: the golden cannot come from a device, {self.golden_impossible:,} "
                f"of {self.elems:,} elements cannot"
            )
        if self.acceptance is not None:
            yield f"{self.name}: {self.acceptance}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """All outputs, judged.

    Attributes:
        outputs: in the order of the bounds, or as they were given.
        explanations: single hypotheses about elements that cannot be, the best first.
        golden_explanations: the same of the golden.
    """

    outputs: tuple[JudgedOutput, ...]
    explanations: tuple[Explanation, ...] = ()
    golden_explanations: tuple[Explanation, ...] = ()

    @property
    def passes(self) -> bool:
        """Every output does."""
        return all(each.passes for each in self.outputs)

    def __str__(self) -> str:
        lines = [line for each in self.outputs for line in each.lines()]
        for label, found in (("", self.explanations), ("golden: ", self.golden_explanations)):
            if label and found and found[0].explained == found[0].of:
                lines.append(f"the golden cannot come from a device; it {_said_of(found[0])}")
            for place, each in enumerate(found[:_BEST]):
                lines += [f"{label}{'next best: ' if place else ''}{each}", *each.example]
        return "\n".join(lines)

    @property
    def report(self) -> Report:
        """The verdicts; last places and errors beside the golden; the first impossible elements."""
        beside = [(each.name, each.comparison) for each in self.outputs if each.comparison]
        places = Table(
            key="last_places",
            caption="last places beside the golden",
            columns=columns(output="output", apart="apart", elements="elements"),
            rows=[(name, *row) for name, comparison in beside for row in comparison.ulp_rows()],
        )
        errors = Table(
            key="errors",
            caption="errors beside the golden",
            columns=(
                *columns(output="output"),
                *(
                    Column(key=key, heading=heading, spec=".4g")
                    for key, heading in (("mare", "MARE"), ("mere", "MERE"), ("rmse", "RMSE"))
                ),
                *columns(small_wrong="small values wrong"),
            ),
            rows=[
                (name, *dataclasses.astuple(comparison.errors))
                for name, comparison in beside
                if comparison.errors is not None
            ],
        )
        verdicts = Table(
            key="outputs",
            columns=(
                *columns(output="output", elements="elements", passes=None),
                *columns(impossible="impossible", golden_impossible="golden impossible"),
                *columns(differing="differ", standard=None, acceptance=None, first=None),
            ),
            rows=list(map(_row, self.outputs)),
        )
        outside = Table(
            key="outside",
            caption="elements that cannot be, by tile",
            columns=columns(
                output="output", tile="tile", core="core", written_by="written by", count="elements"
            ),
            rows=[
                (each.name, found.tile, found.core, found.written_by, found.count)
                for each in self.outputs
                for found in each.outside
            ],
        )
        firsts = [each.first for each in self.outputs if each.first]
        return Report(
            kind="judge",
            title="passes" if self.passes else "fails",
            facts=plain(
                passes=self.passes,
                explanations=list(map(dataclasses.asdict, self.explanations)),
                golden_explanations=list(map(dataclasses.asdict, self.golden_explanations)),
            ),
            tables=(verdicts, *(table for table in (outside, errors, places) if table.rows)),
            notes=(*str(self).splitlines(), *firsts),
        )

    def _repr_html_(self) -> str:
        return notebook_html(self.report)


_ROUNDS: Final[Mapping[str, str]] = {
    "CAST_RINT": "rounds ties to even",
    "CAST_ROUND": "rounds ties away",
    "CAST_FLOOR": "rounds down",
    "CAST_CEIL": "rounds up",
    "CAST_TRUNC": "cuts toward zero",
    "CAST_ODD": "rounds to odd",
}
"""Round modes in words, by their names at the beginning of a hypothesis."""


def _said_of(best: Explanation) -> str:
    mode, _, _ = best.hypotheses[0].partition(" ")
    return f"{_ROUNDS.get(mode, 'is explained')} ({best.cause})"


def _row(each: JudgedOutput) -> tuple[object, ...]:
    accepted_by = each.acceptance
    return (
        each.name,
        each.elems,
        each.passes,
        each.impossible,
        each.golden_impossible,
        None if each.comparison is None else each.comparison.differing,
        None if accepted_by is None else accepted_by.standard,
        None if accepted_by is None else {"passes": accepted_by.passes, "text": accepted_by.text},
        each.first,
    )


def judge(
    result: Any,
    golden: Any = None,
    precise: Any = None,
    *,
    bounds: Certainty | OutputCertainty | None = None,
    standard: Standard = "bits",
    run: Callable[[], Certainty] | None = None,
    pairs: bool = False,
    told: Callable[[str], None] | None = None,
) -> Judgement:
    """Judge results: whether a device may give them, and how far they are from a golden.

    With bounds, elements outside are found, of the golden too: one that no device gives is a
    mistake of the golden. Without them the standard decides.

    Args:
        result: of one output a pypto tensor, a numpy array or a torch tensor; of several a mapping
            by name, or a list or tuple in their order. Not modified.
        golden: the same kind; None: none.
        precise: the same kind, in a wider dtype, for standard "2.1".
        bounds: what a device may give, as `Kernel.certainty` returns it.
        standard: as for `precision.accepted`.
        run: gives the bounds once more, as `lambda: kernel.certainty(x, y)`: then single hypotheses
            are tried on elements that cannot be, see `explanations`.
        pairs, told: as for `explanations`.

    Raises:
        TypeError: no arrays, or dtypes that differ.
        ValueError: neither a golden nor bounds; other outputs than the bounds or the golden have;
            another shape; an unknown standard, or one that needs what is not there.
    """
    if golden is None and bounds is None:
        raise ValueError("a result is judged by a golden, by bounds, or by both; got neither")
    if precise is not None and golden is None:
        raise ValueError("precise judges the golden too; give a golden")
    results = _by_name(result, bounds)
    goldens, precises = (_beside(each, results) for each in (golden, precise))
    outputs = tuple(
        _judged(name, value, output, goldens.get(name), precises.get(name), standard)
        for name, (value, output) in results.items()
    )
    values = {name: value for name, (value, _) in results.items()}

    def explained(of: Mapping[str, Any], counts: Iterable[int | None]) -> tuple[Explanation, ...]:
        if run is None or not any(counts):
            return ()
        return explanations(run, of, pairs=pairs, told=told)

    return Judgement(
        outputs=outputs,
        explanations=explained(values, [each.impossible for each in outputs]),
        golden_explanations=explained(goldens, [each.golden_impossible for each in outputs]),
    )


def _judged(
    name: str,
    value: Any,
    output: OutputCertainty | None,
    golden: Any,
    precise: Any,
    standard: Standard,
) -> JudgedOutput:
    impossible = golden_impossible = None
    first = layout = ""
    outside: tuple[OutsideCount, ...] = ()
    array = array_under_test(value, name)
    if output is not None:
        impossible, first = _impossible(value, output)
        if impossible:
            array = native(array)
            outside = by_tile(output, ~output.contains(array))
            layout = layout_of(array, output.shape, partial(possible_share, output))
        if golden is not None:
            golden_impossible, _ = _impossible(golden, output)
    comparison = None if golden is None else compared(value, golden)
    if comparison is not None and comparison.differing and not layout:
        theirs = array_under_test(golden, name)
        layout = layout_of(array, theirs.shape, lambda moved: equal_share(moved, theirs))
    return JudgedOutput(
        name=name,
        elems=array.size,
        comparison=comparison,
        acceptance=None
        if golden is None
        else accepted(standard, value, golden, precise, comparison=comparison),
        impossible=impossible,
        first=first,
        golden_impossible=golden_impossible,
        outside=outside,
        layout=layout,
    )


def by_tile(output: OutputCertainty, outside: npt.NDArray[np.bool_]) -> tuple[OutsideCount, ...]:
    """The elements outside by the tile that wrote them last, or by their cause, the most first.

    Args:
        output: the bounds.
        outside: true where a result cannot be.
    """
    left = outside.copy()
    found = []
    for box in reversed(boxes_of(output, most=None)):
        count = int(np.count_nonzero(left[box.index]))
        if count:
            found.append(
                OutsideCount(tile=box.tile, core=box.core, written_by=box.written_by, count=count)
            )
            left[box.index] = False
    counts = Counter(output.cause[left & ~output.certain].tolist())
    rest = {f"{output.causes[place]}": count for place, count in counts.items()}
    rest[""] = int(np.count_nonzero(left & output.certain))
    found += [
        OutsideCount(tile=None, core=None, written_by=name, count=count)
        for name, count in rest.items()
        if count
    ]
    return tuple(sorted(found, key=lambda each: -each.count))


def _impossible(value: Any, output: OutputCertainty) -> tuple[int, str]:
    try:
        assert_possible(value, output)
    except ImpossibleError as error:
        if not error.impossible:  # another dtype or shape
            array = native(array_under_test(value, output.name))
            words = ""
            if array.dtype == output.values.dtype:
                words = layout_of(array, output.shape, partial(possible_share, output))
            raise ValueError(f"{error}{words and '; it is '}{words}") from error
        return impossible_count(array_under_test(value, output.name), output), str(error)
    return 0, ""


def _by_name(
    result: Any, bounds: Certainty | OutputCertainty | None
) -> dict[str, tuple[Any, OutputCertainty | None]]:
    """Each array with its output, by names."""
    if bounds is not None:
        return {output.name: (value, output) for value, output in paired_outputs(result, bounds)}
    if isinstance(result, Mapping):
        return {name: (value, None) for name, value in result.items()}
    if isinstance(result, (list, tuple)):
        return {f"{_ALONE} {number}": (value, None) for number, value in enumerate(result)}
    return {_ALONE: (result, None)}


def _beside(given: Any, results: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays of a golden by the names of the results."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        if set(given) != set(results):
            have, want = (", ".join(map(str, each)) for each in (given, results))
            raise ValueError(f"the golden has {have}; the results are {want}")
        return dict(given)
    values = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(values) != len(results):
        raise ValueError(f"the golden has {len(values)} arrays; the results are {len(results)}")
    return dict(zip(results, values, strict=True))
