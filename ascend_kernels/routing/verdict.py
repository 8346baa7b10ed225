"""The verdict on a chain of casts: exact, and how that is known, or where it differs."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Standing(enum.Enum):
    """The kinds of verdict: exact, shown on all codes; exact, proved; differs on some."""

    SHOWN = "shown"
    PROVED = "proved"
    DIFFERS = "differs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
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
            nothing differs (the range with the most codes); None if every value differs.
        is_least: `differing` counts only those among the codes that were tried; `exact_range` is
            unknown then, and None.
        basis: how it is known.
        rests_on: the rules chosen where nothing public settles them that the verdict would not
            survive, and what it would be otherwise.
    """

    standing: Standing
    codes: int
    differing: int
    basis: str
    first: tuple[Difference, ...] = ()
    largest_error: int = 0
    exact_range: tuple[int, int] | None = None
    is_least: bool = False
    rests_on: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """No code is converted differently."""
        return self.standing is not Standing.DIFFERS

    def __str__(self) -> str:
        if self.is_exact:
            return f"exact on all {self.codes:,} codes, {self.standing.value}"
        least = "at least " if self.is_least else ""
        return f"differs on {least}{self.differing:,} of {self.codes:,} codes"
