"""A rule: conversions of the numerical core in a row, and the words for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pypto_cast.dtypes.data_types import CastMode
from simulator.numbers.convert import Conversion
from simulator.numbers.formats import Codes, Format
from simulator.numbers.rounding import Bools


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A conversion as one dialect makes it.

    Attributes:
        text: the rule in a line; or why there is none.
        source: what the rule is taken from.
        convert: source codes to destination codes; None where the dialect has no such conversion.
        leaves_open: which source codes have no settled result; None where all have one.
        leaves_nan_bits_open: a NaN result is settled as such, but not which bits it has.
    """

    text: str
    source: str
    convert: Callable[[Codes], Codes] | None = field(default=None, repr=False, compare=False)
    leaves_open: Callable[[Codes], Bools] | None = field(default=None, repr=False, compare=False)
    leaves_nan_bits_open: bool = False


DialectRule = Callable[[Format, Format, CastMode], Rule]
"""(source, destination, round mode, which only pypto has) to the rule."""


def chain(*steps: Conversion) -> Callable[[Codes], Codes]:
    """Conversions one after another, each by the definition."""

    def convert(codes: Codes) -> Codes:
        for step in steps:
            codes = step.define(codes)
        return codes

    return convert


def same(codes: Codes) -> Codes:
    """Copies the codes: the cast of a format to itself."""
    return codes.copy()


def no_rule(name: str, fmt: Format) -> Rule:
    """A framework without this format."""
    return Rule(text=f"{name} has no {fmt}, or no rule for it is known here", source="")
