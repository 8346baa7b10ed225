"""One output of a kernel: its values, its interval, and the causes of the difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pypto_cast.dtypes.data_types import DataType, numpy_dtype
from pypto_cast.recording.causes import Cause
from simulator.arithmetic.interval import Interval
from simulator.arithmetic.total_order import is_nan
from simulator.arithmetic.trust import Assumption, Causes
from simulator.numbers import float_environment
from simulator.numbers.convert import in_numpy
from simulator.numbers.formats import Format
from tiling.grid import Shape

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
ChoiceBits = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True, kw_only=True)
class CertaintyCounts:
    """Results by how much is known of them.

    Attributes:
        by_documents: one code is possible by public texts and the bounds of errors alone.
        by_choices: one code is possible given named choices.
        undecided: several codes are possible.
    """

    by_documents: int = 0
    by_choices: int = 0
    undecided: int = 0

    @property
    def certain(self) -> int:
        """Results of which one code is possible, by either kind."""
        return self.by_documents + self.by_choices

    @property
    def size(self) -> int:
        """All results."""
        return self.certain + self.undecided

    def __add__(self, other: CertaintyCounts) -> CertaintyCounts:
        return CertaintyCounts(
            by_documents=self.by_documents + other.by_documents,
            by_choices=self.by_choices + other.by_choices,
            undecided=self.undecided + other.undecided,
        )

    @property
    def share(self) -> str:
        """The share of certain results, rounded down, so that 100% leaves none open."""
        share = 10_000 * self.certain // self.size / 100 if self.size else 100.0
        return f"{share:g}% certain"

    def __str__(self) -> str:
        given = f", {self.by_choices:,} of them given named choices" if self.by_choices else ""
        left = f", {self.undecided:,} of {self.size:,} undecided" if self.undecided else ""
        return f"{self.share}{given}{left}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class OutputCertainty:
    """An output of a kernel and the range that a device may give for each of its elements.

    The arrays have one shape, those of numbers the numpy dtype of `dtype`; an output that is exact
    has `low is high is values`. Two of them are equal only if they are the same object.

    Attributes:
        name: of the parameter.
        dtype: of the output.
        values: what this library computes.
        low: the least number that a device may give, in the total order (-0 before +0); NaN in both
            ends: the result is NaN.
        high: the greatest.
        may_be_nan: where NaN is possible besides; None: nowhere.
        cause: an index into `causes` of what leaves an element open; without meaning where it is
            certain.
        causes: what leaves elements open.
        nearest: the last operation before the output that has an open result of its own or handed
            on; None if there is none.
        aliases: other parameters for which the same array was handed in.
        choices: by element that is certain, a bit for each of `named_choices` that it rests on; 0:
            it rests on documents; None: no element rests on any.
        named_choices: by bit, the lowest first.
        writes: offset and extent of each box that the kernel wrote, and how often.
        certain_rows: by row, along the last axis, False: none of its elements is certain; None: not
            known.

    Raises:
        TypeError: an array of another dtype.
        ValueError: arrays of different shapes.
    """

    name: str
    dtype: DataType
    values: Array
    low: Array
    high: Array
    may_be_nan: Bools | None
    cause: Causes
    causes: tuple[Cause, ...]
    nearest: Cause | None = None
    aliases: tuple[str, ...] = ()
    choices: ChoiceBits | None = None
    named_choices: tuple[Assumption, ...] = ()
    writes: tuple[tuple[Shape, Shape, int], ...] = ()
    certain_rows: Bools | None = None

    def __post_init__(self) -> None:
        number = numpy_dtype(self.dtype)
        wanted: dict[str, tuple[Array | None, Any]] = {
            "values": (self.values, number),
            "low": (self.low, number),
            "high": (self.high, number),
            "may_be_nan": (self.may_be_nan, np.dtype(np.bool_)),
            "cause": (self.cause, np.dtype(np.uint16)),
            "choices": (self.choices, np.dtype(np.uint32)),
        }
        for name, (array, dtype) in wanted.items():
            if array is None:
                continue
            if array.dtype != dtype:
                raise TypeError(f"{self.name}: {name} must have dtype {dtype}, not {array.dtype}")
            if array.shape != self.shape:
                raise ValueError(
                    f"{self.name}: {name} has shape {list(array.shape)}, values {list(self.shape)}"
                )

    @property
    def shape(self) -> Shape:
        """The shape of the output."""
        return self.values.shape

    @property
    def format(self) -> Format:
        """The number format of the output."""
        return self.dtype.number_format

    @property
    def interval(self) -> Interval:
        """The range that a device may give."""
        return Interval(low=self.low, high=self.high, may_be_nan=self.may_be_nan, cause=self.cause)

    @property
    def certain(self) -> Bools:
        """True where one code is possible; a NaN beside a number leaves two."""
        if self.low is self.high and self.may_be_nan is None:
            return np.ones(self.shape, np.bool_)
        return self.interval.certain()

    @property
    def by_documents(self) -> Bools:
        """True where one code is possible whatever the device does in place of a named choice."""
        return self.certain if self.choices is None else self.certain & (self.choices == 0)

    @property
    def counts(self) -> CertaintyCounts:
        """The number of elements by how much is known of them."""
        certain, documents = map(int, map(np.count_nonzero, (self.certain, self.by_documents)))
        return CertaintyCounts(
            by_documents=documents,
            by_choices=certain - documents,
            undecided=self.values.size - certain,
        )

    @property
    def undecided(self) -> int:
        """The number of elements that have more than one possible code."""
        return self.counts.undecided

    @property
    def certain_by_choice(self) -> Mapping[Assumption, int]:
        """The number of certain elements that rest on each choice, the most first; no choice of
        none. An element may rest on several.
        """
        if self.choices is None:
            return {}
        bits = self.choices[self.certain]
        found: Counter[Assumption] = Counter()
        for k, choice in enumerate(self.named_choices):
            found[choice] = int(np.count_nonzero(bits & np.uint32(1 << k)))
        return dict((+found).most_common())

    @property
    def undecided_by_cause(self) -> Mapping[Cause, int]:
        """The number of elements that each cause leaves open, the most first; no cause of none.

        Raises:
            ValueError: an undecided element has an index that no cause has.
        """
        counts = np.bincount(self.cause[~self.certain], minlength=len(self.causes))
        if counts.size > len(self.causes):
            raise ValueError(
                f"{self.name}: cause {counts.size - 1} is asked for, there are {len(self.causes)}"
            )
        found: Counter[Cause] = Counter()
        for cause, count in zip(self.causes, counts.tolist(), strict=True):
            if count:
                found[cause] += count
        return dict(found.most_common())

    @float_environment.quiet()
    def contains(self, values: Array) -> Bools:
        """True where values of the shape and dtype are among those that a device may give.

        Every NaN counts as one; -0 lies before +0.
        """
        return self.interval.contains(values, self.format)

    @float_environment.quiet()
    def possible(self, index: Shape) -> str:
        """The values that an element can have, in words: `from 2 to 3 or NaN`."""
        if is_nan(np.asarray(self.low[index]), self.format):
            return "NaN"
        low, high = (number_text(end, index, self.format) for end in (self.low, self.high))
        numbers = low if low == high else f"from {low} to {high}"
        may_be_nan = self.may_be_nan is not None and self.may_be_nan[index]
        return f"{numbers} or NaN" if may_be_nan else numbers

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype} {list(self.shape)}, {self.counts}"

    def __repr__(self) -> str:
        return f"<certainty of {self}>"


def number_text(values: Array, index: Shape, fmt: Format) -> str:
    """The number of an element in words, also of a format that numpy lacks."""
    return str(in_numpy(np.asarray(values[index]).reshape(1), fmt)[0])


def certain_by_choice(outputs: Iterable[OutputCertainty]) -> Mapping[Assumption, int]:
    """The number of certain results of outputs that rest on each choice, the most first."""
    counts: Counter[Assumption] = Counter()
    for output in outputs:
        counts.update(output.certain_by_choice)
    return dict(counts.most_common())
