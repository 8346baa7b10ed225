"""Checks a chain of conversions against a single rounding, exactly, without trying each code.

Rounding in any of the six modes never decreases: of two values the larger does not become the
smaller result, -0 counted below +0. Neither does clamping, nor overflow to infinity. So a chain of
casts never decreases either, and neither does the single rounding. A function that never decreases
is known by its thresholds: for each result, the least source that reaches it, which bisection
finds. Two functions differ on the sources between unequal thresholds, and nowhere else. NaN is
compared apart: every NaN becomes the same.

"Not zero" is no such function, nor is a UINT64 taken for an INT64. They are monotone in parts, and
the thresholds of each part are found (`Question.cuts`).

Sources of at most 16 bits are compared code by code, and so are those of 32 bits where every code
is asked for.
"""

from __future__ import annotations

import dataclasses
import decimal
import enum
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from ascend_kernels.routing.value_ranks import (
    Function,
    Ranks,
    code_pieces,
    codes_at,
    is_nan,
    last_rank,
    nan_codes,
    ranks_of,
    result_codes,
    result_ranks,
)
from simulator.corrections import Readings
from simulator.numbers.formats import BOOL, UINT32, UINT64, Codes, FloatFormat, Format
from simulator.numbers.literals import Number, number_of
from simulator.numbers.rounding import boundary_codes
from tiling.chips import A2_A3

_MOST_THRESHOLD_BITS: Final = 16
_MOST_ENUMERATED_BITS: Final = 32
_PIECE_CODES: Final = 1 << 16
_SHOWN: Final = 3
_SPACED: Final = 1 << 16

ENUMERATED_BASIS: Final = "every code was converted both ways"
PROVED_BASIS: Final = (
    "every step and the single rounding never decrease, and both have the same thresholds"
)
COUNTED_BASIS: Final = (
    "every step and the single rounding never decrease; counted between their thresholds"
)
PROVED_IN_PARTS_BASIS: Final = (
    "below and above where codes change their sign, the chain and the single rounding are "
    "monotone, and both have the same thresholds"
)
COUNTED_IN_PARTS_BASIS: Final = (
    "below and above where codes change their sign, the chain and the single rounding are "
    "monotone; counted between their thresholds"
)
GIVEN_BASIS: Final = "every given code was converted both ways"
SAMPLED_BASIS: Final = "boundary codes and 65,536 evenly spaced codes alone were tried"


class RouteError(ValueError):
    """A question about routes that has no answer."""


class Evidence(enum.Enum):
    """The kinds of verdict: exact, shown on all codes; exact, proved; differs on some; differs on
    none of those that were tried."""

    SHOWN = "shown"
    PROVED = "proved"
    DIFFERS = "differs"
    TRIED = "tried"


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferingCode:
    """A source code that a chain and the single rounding convert differently."""

    code: int
    found: int
    wanted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A comparison of a chain with the single rounding.

    Attributes:
        standing: the kind.
        codes: source codes that the verdict is about, NaNs included unless a range was asked for.
        differing: how many of them are converted differently.
        first: the first three of those, in ascending order of their codes.
        largest_error: numbers of the destination from one result to the other, at most; NaN
            results count as 0.
        exact_range: source codes of the least and the largest value of the widest range on which
            nothing differs (the range with the most codes); None if every value differs, and of
            given codes.
        is_least: `differing` counts only those among the codes that were tried; `exact_range` is
            unknown then, and None.
        basis: how it is known.
        rests_on: the rules chosen where nothing public settles them that the verdict would not
            survive, and what it would be otherwise.
    """

    standing: Evidence
    codes: int
    differing: int
    basis: str
    first: tuple[DifferingCode, ...] = ()
    largest_error: int = 0
    exact_range: tuple[int, int] | None = None
    is_least: bool = False
    rests_on: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """No code is converted differently."""
        return self.standing in (Evidence.SHOWN, Evidence.PROVED)

    def __str__(self) -> str:
        if self.is_exact:
            return f"exact on all {self.codes:,} codes, {self.standing.value}"
        if self.standing is Evidence.TRIED:
            return f"differs on none of {self.codes:,} codes that were tried, out of more"
        least = "at least " if self.is_least else ""
        return f"differs on {least}{self.differing:,} of {self.codes:,} codes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The sources that a verdict is about.

    Attributes:
        src: source format.
        dst: destination format.
        low: rank of the least value.
        high: rank of the largest value.
        has_nan: NaN is among them.
        family: the instructions of the chains.
        readings: those that are not the default ones.
    """

    src: Format
    dst: Format
    low: int
    high: int
    has_nan: bool
    family: str = A2_A3
    readings: Readings = ()

    @property
    def codes(self) -> int:
        """The number of sources."""
        return self.high - self.low + 1 + self.has_nan * sum(map(len, nan_codes(self.src)))

    @property
    def ends(self) -> tuple[int, int]:
        """The codes of the least and the largest value."""
        return self.codes_of((self.low, self.high))

    def codes_of(self, ranks: tuple[int, int]) -> tuple[int, int]:
        """The source codes of two ranks."""
        low, high = codes_at(np.array(ranks, np.uint64), self.src).tolist()
        return low, high

    @property
    def is_enumerable(self) -> bool:
        """The verdict can be shown on all codes."""
        return self.src.bits <= _MOST_ENUMERATED_BITS

    @property
    def has_few_results(self) -> bool:
        """Thresholds of the destination can all be found."""
        return self.dst.bits <= _MOST_THRESHOLD_BITS

    @property
    def cuts(self) -> tuple[int, ...]:
        """Ranks at which parts begin on each of which every chain is monotone.

        To BOOL those are zeros and what is above, from UINT32 and UINT64 the upper half of values,
        which instructions take for negative ones. Elsewhere there is one part alone.
        """
        ranks: tuple[int, ...] = ()
        if self.dst is BOOL:
            zeros = ranks_of(np.zeros(1, self.src.code_dtype), self.src)
            ranks = (int(zeros[0]), int(zeros[0]) + 1)
            if isinstance(self.src, FloatFormat):
                ranks = (ranks[0] - 1, ranks[1])
        if self.src in (UINT32, UINT64):
            ranks += (1 << (self.src.bits - 1),)
        return tuple(rank for rank in ranks if self.low < rank <= self.high)

    def boundaries(self) -> Codes:
        """The boundary codes among the sources, not to be written to; where source and destination
        have more than 16 bits, 65,536 evenly spaced codes beside them.
        """
        return _boundaries(self)


@functools.lru_cache(maxsize=4)
def _boundaries(question: Question) -> Codes:
    codes = boundary_codes(question.src)
    if not question.has_few_results and question.src.bits > _MOST_THRESHOLD_BITS:
        # Chains that are tried alone are ranked by what is tried: all values have to count.
        last = last_rank(question.src)
        spaced = np.arange(_SPACED, dtype=np.uint64) * np.uint64(last // _SPACED)
        codes = np.sort(np.concatenate([codes, codes_at(spaced, question.src)]))
        codes = codes[_is_new(codes)]
    nan = is_nan(codes, question.src)
    ranks = ranks_of(np.where(nan, codes.dtype.type(0), codes), question.src)
    inside = (ranks >= np.uint64(question.low)) & (ranks <= np.uint64(question.high))
    chosen: Codes = codes[np.where(nan, question.has_nan, inside)]
    return chosen


def _is_new(ascending: Ranks | Codes) -> npt.NDArray[np.bool_]:
    """True where an entry differs from the one before; np.unique of newer numpy hashes, slowly."""
    return np.append(True, ascending[1:] != ascending[:-1])


def all_values(src: Format, dst: Format, family: str = A2_A3, readings: Readings = ()) -> Question:
    """The question about all codes of the source."""
    return Question(
        src=src,
        dst=dst,
        low=0,
        high=last_rank(src),
        has_nan=True,
        family=family,
        readings=readings,
    )


def judge(question: Question, chain: Function, single: Function) -> Verdict | None:
    """Compare a chain with the single rounding.

    Results of more than 16 bits have too many thresholds. There a chain from 32 bits that differs
    on no boundary code is compared code by code, which takes seconds.

    Args:
        question: which sources.
        chain: what is judged; it never decreases.
        single: the single rounding.

    Returns:
        The verdict; None where there is none: a 64-bit source, results of more than 16 bits, and no
        difference on boundary codes.
    """
    if question.src.bits <= _MOST_THRESHOLD_BITS:
        return enumerated(question, chain, single)
    if question.has_few_results:
        return between_thresholds(question, chain, single)
    verdict = sampled(question, chain, single)
    if verdict is None and question.is_enumerable:
        return enumerated(question, chain, single)
    return verdict


# --- Thresholds --------------------------------------------------------------------------------


def between_thresholds(question: Question, chain: Function, single: Function) -> Verdict:
    """The verdict by the thresholds of both functions; the destination has at most 16 bits."""
    tally = _Tally(question=question)
    functions = (chain, single)
    starts = np.sort(np.concatenate([_thresholds(question, one) for one in functions]))
    starts = starts[_is_new(starts)]
    found, wanted = (
        result_ranks(function, starts, question.src, question.dst) for function in functions
    )
    ends = np.append(starts[1:] - np.uint64(1), np.uint64(question.high))
    different = np.flatnonzero(found != wanted)
    tally.add_ranges(starts[different], ends[different], found[different], wanted[different])
    tally.add_nan(chain, single)
    if question.cuts:
        return tally.verdict(PROVED_IN_PARTS_BASIS, COUNTED_IN_PARTS_BASIS, Evidence.PROVED)
    return tally.verdict(PROVED_BASIS, COUNTED_BASIS, Evidence.PROVED)


@functools.lru_cache(maxsize=4)
def _thresholds(question: Question, function: Function) -> Ranks:
    """The ranks from which a function's result is another one than before, and the first rank.

    Between the cuts of the question all thresholds are bisected at once.
    """

    def at(ranks: Ranks) -> Ranks:
        return result_ranks(function, ranks, question.src, question.dst)

    starts = [question.low, *question.cuts]
    found = [np.array(starts, np.uint64)]
    for start, stop in zip(
        starts, [*(cut - 1 for cut in question.cuts), question.high], strict=True
    ):
        first, last = at(np.array([start, stop], np.uint64)).tolist()
        results = np.arange(min(first, last), max(first, last), dtype=np.uint64)
        low = np.full(results.shape, start, np.uint64)
        high = np.full(results.shape, stop, np.uint64)
        for _ in range((stop - start).bit_length()):
            middle = low + ((high - low) >> np.uint64(1))
            result = at(middle)
            reached = result > results if first < last else result <= results
            high = np.where(reached, middle, high)
            low = np.where(reached, low, np.minimum(middle + np.uint64(1), high))
        found.append(low)
    return np.concatenate(found)


# --- Code by code ------------------------------------------------------------------------------


def enumerated(question: Question, chain: Function, single: Function) -> Verdict:
    """The verdict by every code of the source, both ways."""
    tally = _Tally(question=question)
    for start, codes in code_pieces(question.low, question.high, question.src, _PIECE_CODES):
        found, wanted = chain(codes), single(codes)
        different = np.flatnonzero(found != wanted)
        if different.size:
            ranks = np.uint64(start) + different.astype(np.uint64)
            tally.add_codes(ranks, found[different], wanted[different])
    tally.add_nan(chain, single, every=True)
    return tally.verdict(ENUMERATED_BASIS, ENUMERATED_BASIS, Evidence.SHOWN)


def sampled(question: Question, chain: Function, single: Function) -> Verdict | None:
    """The verdict by boundary codes alone: that a chain differs; None where nothing does there."""
    tally = _Tally(question=question)
    codes = question.boundaries()
    codes = codes[~is_nan(codes, question.src)]
    ranks = np.sort(ranks_of(codes[chain(codes) != single(codes)], question.src))
    codes = codes_at(ranks, question.src)
    tally.add_codes(ranks, chain(codes), single(codes))
    tally.add_nan(chain, single)
    if not tally.differing:
        return None
    return tally.verdict("", SAMPLED_BASIS, Evidence.DIFFERS, is_least=True)


def compared(question: Question, codes: Codes, chain: Function, single: Function) -> Verdict:
    """The verdict on given codes in any order, each counted as often as it is there."""
    tally = _Tally(question=question)
    for start in range(0, codes.size, _PIECE_CODES):
        piece = codes[start : start + _PIECE_CODES]
        found, wanted = chain(piece), single(piece)
        different = np.flatnonzero(found != wanted)
        tally.add_given(piece[different], found[different], wanted[different])
    verdict = tally.verdict(GIVEN_BASIS, GIVEN_BASIS, Evidence.SHOWN, is_least=True)
    return dataclasses.replace(verdict, codes=codes.size, is_least=False)


@dataclass(slots=True, kw_only=True)
class _Tally:
    """Gathers differences in ascending order of the sources' ranks."""

    question: Question
    differing: int = 0
    largest: int = 0
    first: list[DifferingCode] = field(default_factory=list)
    free_from: int = -1
    widest: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        self.free_from = self.question.low

    def add_codes(self, ranks: Ranks, found: Codes, wanted: Codes) -> None:
        """Add differing sources and their results, as codes."""
        self._add(ranks, ranks, self._apart(found, wanted))
        self._keep(codes_at(ranks, self.question.src), found, wanted)

    def add_given(self, codes: Codes, found: Codes, wanted: Codes) -> None:
        """Add differing sources, NaN among them, in any order and as often as they are there."""
        self.differing += codes.size
        self.largest = max(self.largest, self._apart(found, wanted))
        self._keep(codes, found, wanted)

    def _apart(self, found: Codes, wanted: Codes) -> int:
        """Numbers of the destination between two results, at most."""
        dst = self.question.dst
        numbers = ~(is_nan(found, dst) | is_nan(wanted, dst))
        apart = _distance(ranks_of(found[numbers], dst), ranks_of(wanted[numbers], dst))
        return int(apart.max(initial=0))

    def add_ranges(self, starts: Ranks, ends: Ranks, found: Ranks, wanted: Ranks) -> None:
        """Add ranges of sources, whose results are the same all over a range, as ranks."""
        src, dst = self.question.src, self.question.dst
        found, wanted = result_codes(found, dst), result_codes(wanted, dst)
        self._add(starts, ends, self._apart(found, wanted))
        # Codes of negative floats ascend as ranks descend, so either end may hold the first.
        for inward in range(_SHOWN):
            shift = np.uint64(inward)
            inside = ends - starts >= shift
            for ranks in (starts + shift, ends - shift):
                self._keep(codes_at(ranks[inside], src), found[inside], wanted[inside])

    def add_nan(self, chain: Function, single: Function, *, every: bool = False) -> None:
        """Compare the results of NaN: of one NaN, or of every one."""
        if not self.question.has_nan:
            return
        src = self.question.src
        for nans in nan_codes(src):
            for piece in nans[::_PIECE_CODES] if every else nans[:1]:
                stop = min(piece + (_PIECE_CODES if every else _SHOWN), nans.stop)
                codes = np.arange(piece, stop, dtype=np.uint64).astype(src.code_dtype)
                found, wanted = chain(codes), single(codes)
                different = np.flatnonzero(found != wanted)
                if different.size:
                    self.differing += different.size if every else len(nans)
                    self._keep(codes[different], found[different], wanted[different])

    def _add(self, starts: Ranks, ends: Ranks, largest: int) -> None:
        if not starts.size:
            return
        self.differing += sum((ends - starts).tolist()) + starts.size
        self.largest = max(self.largest, largest)
        free = np.append(np.uint64(self.free_from), ends[:-1] + np.uint64(1))
        lengths = np.where(starts > free, starts - free, np.uint64(0))
        place = int(np.argmax(lengths))
        if lengths[place]:
            self._offer(int(free[place]), int(starts[place]) - 1)
        self.free_from = int(ends[-1]) + 1

    def _offer(self, low: int, high: int) -> None:
        if self.widest is None or high - low > self.widest[1] - self.widest[0]:
            self.widest = (low, high)

    def _keep(self, codes: Codes, found: Codes, wanted: Codes) -> None:
        if len(self.first) == _SHOWN and codes.min(initial=self.first[-1].code) >= (
            self.first[-1].code
        ):
            return
        kept = np.argsort(codes)[:_SHOWN]
        new = (
            DifferingCode(code=int(codes[k]), found=int(found[k]), wanted=int(wanted[k]))
            for k in kept
        )
        self.first = sorted({*self.first, *new}, key=lambda d: d.code)[:_SHOWN]

    def verdict(
        self, exact: str, differs: str, standing: Evidence, *, is_least: bool = False
    ) -> Verdict:
        """The verdict on all that was added."""
        question = self.question
        if not is_least and self.free_from <= question.high:
            self._offer(self.free_from, question.high)
        ends = None if is_least or self.widest is None else question.codes_of(self.widest)
        return Verdict(
            standing=Evidence.DIFFERS if self.differing else standing,
            codes=question.codes,
            differing=self.differing,
            basis=differs if self.differing else exact,
            first=tuple(self.first),
            largest_error=self.largest,
            exact_range=ends,
            is_least=is_least,
        )


def _distance(found: Ranks, wanted: Ranks) -> Ranks:
    return np.where(found > wanted, found - wanted, wanted - found)


Bound = float | Fraction
_NINE_DIGITS: Final = decimal.Context(prec=9)
_SHORT_BELOW: Final = 10**12


def question_between(
    src: Format,
    dst: Format,
    values: tuple[Bound, Bound],
    family: str = A2_A3,
    readings: Readings = (),
) -> Question:
    """The question about the values of a source from one bound to another, both included.

    Args:
        src: source format.
        dst: destination format.
        values: the bounds, of which the first is not above the second. Zero includes -0.
        family: the instructions of the chains.
        readings: those that are not the default ones.

    Raises:
        RouteError: not two numbers, upside down, or no value of the source lies between.
    """
    if not isinstance(values, tuple) or len(values) != 2 or not all(map(_is_number, values)):
        raise RouteError(f"values are two numbers, the least and the largest, not {values!r}")
    least, largest = values
    if least > largest:
        raise RouteError(
            f"values run from the least to the largest, and {_text(least)} is above "
            f"{_text(largest)}; ({_text(largest)}, {_text(least)}) would do"
        )
    low = _first_rank(src, lambda value: value >= least)
    high = _first_rank(src, lambda value: value > largest) - 1
    if low > high:
        near = [str(_number(rank, src)) for rank in (high, low) if 0 <= rank <= last_rank(src)]
        raise RouteError(
            f"{src} has no value between {_text(least)} and {_text(largest)}; the nearest: "
            f"{', '.join(near)}"
        )
    return Question(
        src=src,
        dst=dst,
        low=low,
        high=high,
        has_nan=False,
        family=family,
        readings=readings,
    )


def _text(bound: Bound) -> str:
    """A bound as a person would write it: at most nine digits of a long one."""
    if isinstance(bound, float) and not math.isfinite(bound):
        return str(bound)
    exact = Fraction(bound)
    if exact.denominator == 1 and abs(exact) < _SHORT_BELOW:
        return str(exact)
    shortened = _NINE_DIGITS.divide(*map(Decimal, exact.as_integer_ratio()))
    return str(shortened.normalize(_NINE_DIGITS))


def _is_number(value: object) -> bool:
    is_number = isinstance(value, (int, float, Fraction)) and not isinstance(value, bool)
    return is_number and value == value


def _first_rank(fmt: Format, reaches: Callable[[Bound], bool]) -> int:
    """The rank of the least value that reaches a bound; one past the last if none does."""
    low, high = 0, last_rank(fmt) + 1
    while low < high:
        middle = (low + high) // 2
        number = _number(middle, fmt)
        infinity = -math.inf if number.negative else math.inf
        if reaches(infinity if number.special else number.fraction):
            high = middle
        else:
            low = middle + 1
    return low


def _number(rank: int, fmt: Format) -> Number:
    return number_of(int(codes_at(np.array([rank], np.uint64), fmt)[0]), fmt)
