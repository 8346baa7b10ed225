"""Numbers in words: decimal and hexadecimal literals, read without rounding."""

from __future__ import annotations

from fractions import Fraction

import pytest

from simulator.numbers.literals import number_named


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0x10", Fraction(16)),
        ("0x1.8", Fraction(3, 2)),
        ("-0x.4", Fraction(-1, 4)),
        ("0X1.8P3", Fraction(12)),
        ("0x1p-3", Fraction(1, 8)),
        (" +0x2p+0 ", Fraction(2)),
        ("-1e-3", Fraction(-1, 1000)),
        ("0.1", Fraction(1, 10)),
    ],
)
def test_a_literal_is_the_number_that_it_says(text: str, number: Fraction) -> None:
    found = number_named(text)
    assert (found.negative, found.magnitude, found.special) == (number < 0, abs(number), "")


@pytest.mark.parametrize("text", ["0x", "0x.", "0xp3", "0x1p", "0x1.8.1", "x10", "1p3", ""])
def test_half_a_literal_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="is no number: write "):
        number_named(text)
