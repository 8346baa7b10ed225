"""Results against bounds of a device: impossible ones, and shares that are too low."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from pypto_cast.kernel.certainty import Cause, Certainty, CertaintyCounts, OutputCertainty
from pypto_cast.recording.output_certainty import number_text
from pypto_cast.recording.steps import Patches
from pypto_cast.report.text_format import hex_code
from pypto_cast.testing.bits import (
    WrittenElement,
    array_under_test,
    code_in_words,
    dtype_under_test,
    flat_codes,
    native,
    patches_of,
    shape_under_test,
    writer_of,
)
from simulator.numbers import float_environment
from simulator.numbers.formats import Format
from tiling.grid import Shape

_SHOWN: Final = 5
CertainBy = Literal["choices", "documents"]
CERTAIN_BY: Final[tuple[CertainBy, ...]] = get_args(CertainBy)
"""The kinds of certain results that are counted: with those given named choices, or without."""


class ImpossibleError(AssertionError):
    """Results that no device gives.

    Attributes:
        impossible: the first of them of each output; none if dtype or shape is another.
    """

    def __init__(self, text: str, found: tuple[Impossible, ...] = ()) -> None:
        super().__init__(text)
        self.impossible = found


class UndecidedError(AssertionError):
    """Fewer results are certain than asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Impossible(WrittenElement):
    """One element that cannot be.

    Attributes:
        output: the name of the output.
        actual: its value.
        actual_code: its bits.
        possible: the values it can have, in words.
        low_code: the bits of the least of them.
        high_code: the bits of the greatest.
        format: of all.
        cause: what leaves more than one value; None: one is possible.
        nearest: the operation nearest to the output that has an open result; None: there is none.
    """

    output: str
    actual: str
    actual_code: int
    possible: str
    low_code: int
    high_code: int
    format: Format
    cause: Cause | None
    nearest: Cause | None

    def __str__(self) -> str:
        codes = dict.fromkeys(hex_code(c, self.format) for c in (self.low_code, self.high_code))
        cause = f", left open by {self.cause}" if self.cause else ""
        lines = [
            f"{list(self.index)}: cannot be",
            f"    actual   {self.actual} = {code_in_words(self.actual_code, self.format)}",
            f"    possible {self.possible} = {' to '.join(codes)}{cause}",
        ]
        if self.place:
            lines.append(f"    {self.place}")
        if self.nearest is not None and self.nearest != self.cause:
            lines.append(f"    nearest operation with an open result: {self.nearest}")
        return "\n".join(lines)


def assert_possible(actual: Any, bounds: Certainty | OutputCertainty) -> None:
    """Fail unless every element is one that a device may give.

    The message shows the first elements that cannot be: value, code, interval, what leaves it open,
    index, and the tile and core that wrote it here, if this package did. -0 lies before
    +0, so that they are two results; every NaN counts as one, and may be only where NaN may be.

    Args:
        actual: the results of a device, of torch or of a golden: a pypto tensor, a numpy array or a
            torch tensor of the output's dtype and shape. For several outputs a mapping by name, or
            a list or tuple in their order.
        bounds: what a device may give, as `Kernel.certainty` returns it, or one output of it.

    Raises:
        ImpossibleError: an AssertionError; an element cannot be, or dtype or shape is another.
        TypeError: no arrays, or no bounds.
        ValueError: other outputs than the bounds have.
    """
    __tracebackhide__ = True  # pytest shows the line of the test instead
    texts: list[str] = []
    found: list[Impossible] = []
    for value, output in list(paired_outputs(actual, bounds)):
        total, first = _impossible(value, output)
        if total:
            head = f"{output.name}: {total:,} of {output.values.size:,} elements cannot be"
            texts.append(f"{head}; the first {len(first)}:")
            texts += [f"  {element}" for element in first]
            found += first
    if texts:
        raise ImpossibleError("\n".join(texts), tuple(found))


def assert_certain(
    bounds: Certainty | OutputCertainty, at_least: float = 0.99, *, by: CertainBy = "choices"
) -> None:
    """Fail unless a share of the results of each output is certain.

    Args:
        bounds: what a device may give.
        at_least: the share, from 0 to 1.
        by: "choices" counts results that are certain by documents and those that are given named
            choices; "documents" the first alone.

    Raises:
        UndecidedError: an AssertionError; the text shows the shares and the heaviest causes.
        TypeError: no bounds.
        ValueError: no share, or `by` is neither.
    """
    __tracebackhide__ = True
    check_share(at_least, "at_least")
    if by not in CERTAIN_BY:
        raise ValueError(f"by is one of {', '.join(CERTAIN_BY)}; got {by!r}")
    outputs = _outputs(bounds)
    poor = [o.name for o in outputs if not reaches(o.counts, at_least, by)]
    if poor:
        text = str(Certainty(outputs=outputs))
        kind = "certain by documents" if by == "documents" else "certain"
        raise UndecidedError(f"less than {at_least:g} {kind}: {', '.join(poor)}\n{text}")


def check_share(share: float, label: str) -> None:
    """Refuse a number that is no share.

    Raises:
        ValueError: not from 0 to 1.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"{label} is a share from 0 to 1, as 0.99; got {share!r}")


def reaches(counts: CertaintyCounts, at_least: float, by: CertainBy) -> bool:
    """True if a share of results is certain; of no results it is not."""
    certain = counts.by_documents if by == "documents" else counts.certain
    return counts.size > 0 and certain / counts.size >= at_least


def _outputs(bounds: Certainty | OutputCertainty) -> tuple[OutputCertainty, ...]:
    if isinstance(bounds, OutputCertainty):
        return (bounds,)
    if isinstance(bounds, Certainty):
        return bounds.outputs
    raise TypeError(
        f"bounds must be what Kernel.certainty returns, not {type(bounds).__name__}; to compare "
        "with an array use assert_bits_equal"
    )


def paired_outputs(
    actual: Any, bounds: Certainty | OutputCertainty
) -> Iterable[tuple[Any, OutputCertainty]]:
    """Each array with its output.

    Raises:
        TypeError: no bounds.
        ValueError: other outputs than the bounds have.
    """
    outputs = _outputs(bounds)
    names = [output.name for output in outputs]
    if isinstance(actual, Mapping):
        pairs = [
            (name, output)
            for output in outputs
            for name in (output.name, *output.aliases)
            if name in actual
        ]
        if len(pairs) < len(actual) or {output.name for _, output in pairs} != set(names):
            raise ValueError(f"actual has {', '.join(map(str, actual))}, bounds {', '.join(names)}")
        return [(actual[name], output) for name, output in pairs]
    given = list(actual) if isinstance(actual, (list, tuple)) else [actual]
    if len(given) != len(outputs):
        raise ValueError(
            f"actual has {len(given)} outputs, bounds {len(outputs)} ({', '.join(names)}); give a "
            "list or a mapping by name"
        )
    return zip(given, outputs, strict=True)


@float_environment.quiet()
def _impossible(value: Any, output: OutputCertainty) -> tuple[int, list[Impossible]]:
    array = array_under_test(value, output.name)
    check_like(array, output, output.shape, shape_under_test(value))
    where = np.argwhere(~output.contains(native(array)))
    return len(where), list(described(where, array, output, patches_of(value, array)))


def check_like(
    array: npt.NDArray[Any],
    output: OutputCertainty,
    shape: Shape,
    given: Sequence[int] | None = None,
) -> None:
    """Refuse an array of another dtype than an output, or of another shape than asked for.

    Args:
        array: that is refused or not.
        output: asks for a dtype.
        shape: asked for; a scalar does for [1].
        given: the shape in the message, that of a scalar too; None: the array's.

    Raises:
        ImpossibleError: names both.
    """
    for what, have, want in (
        ("dtype", dtype_under_test(array, output.name), output.dtype.name),
        ("shape", str(list(array.shape)), str(list(shape))),
    ):
        if have != want:
            if what == "shape" and given is not None:
                have = str(list(given))
            raise ImpossibleError(f"{output.name}: actual has {what} {have}, bounds have {want}")


def impossible_count(array: npt.NDArray[Any], output: OutputCertainty) -> int:
    """The number of elements that no device gives."""
    return int(np.count_nonzero(~output.contains(native(array))))


def possible_share(output: OutputCertainty, array: npt.NDArray[Any]) -> float:
    """The share of elements of the output's shape and dtype that a device may give."""
    return 1 - impossible_count(array, output) / max(array.size, 1)


def described(
    where: npt.NDArray[np.intp],
    array: npt.NDArray[Any],
    output: OutputCertainty,
    origin: Patches = (),
) -> Iterator[Impossible]:
    """The first elements that cannot be.

    Args:
        where: their indices, a row each.
        array: the results.
        output: the bounds.
        origin: of the results; none: that of the bounds is taken.
    """
    patches = origin or patches_of(output.values, output.values)
    certain = output.certain
    for row in where[:_SHOWN].tolist():
        index = tuple(row)
        actual, low, high = (
            int(flat_codes(x[index].reshape(1), output.format)[0])
            for x in (array, output.low, output.high)
        )
        yield Impossible(
            index=index,
            **writer_of(index, patches),
            output=output.name,
            actual=number_text(array, index, output.format),
            actual_code=actual,
            possible=output.possible(index),
            low_code=low,
            high_code=high,
            format=output.format,
            cause=None if certain[index] else output.causes[output.cause[index]],
            nearest=output.nearest,
        )
