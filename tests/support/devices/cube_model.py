"""Devices that add a sum of products in one order or another, in exact fractions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from random import Random

LEAST_NORMAL = Fraction(1, 1 << 126)
LARGEST = Fraction((1 << 24) - 1) * (1 << 104)


def rounded(x: Fraction, *, truncates: bool = False, flushes: bool = False) -> Fraction:
    """An FP32 number beside x: the nearest, or the one toward zero; too large ones raise."""
    if x == 0:
        return x
    magnitude = abs(x)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, -126) - 23)
    steps = math.floor(magnitude / unit) if truncates else round(magnitude / unit)
    found = steps * unit
    if found > LARGEST:
        raise OverflowError
    if flushes and found < LEAST_NORMAL:
        found = Fraction(0)
    return found if x > 0 else -found


def summed(
    terms: Sequence[tuple[float, float]],
    bias: float | None,
    random: Random,
    way: str,
    add: Callable[[Fraction], Fraction],
) -> Fraction:
    """Multiply and add.

    Args:
        terms: pairs of factors.
        bias: the start of the sum, or none.
        random: chooses orders and splits.
        way: "chain", "fused", "tree", "pieces" (each a chain, then a chain of them) or "wide" (one
            rounding at the end).
        add: rounds a product or a sum.
    """
    exact = [Fraction(a) * Fraction(b) for a, b in terms]
    start = [] if bias is None else [Fraction(bias)]
    if way == "wide":
        return add(sum(exact + start, Fraction(0)))
    if way == "fused":
        total = start[0] if start else Fraction(0)
        for each in random.sample(exact, len(exact)):
            total = add(total + each)
        return total
    parts = [add(each) for each in exact] + start
    random.shuffle(parts)
    if way == "tree":
        while len(parts) > 1:
            a = parts.pop(random.randrange(len(parts)))
            b = parts.pop(random.randrange(len(parts)))
            parts.append(add(a + b))
        return parts[0]
    size = random.randint(1, len(parts)) if way == "pieces" else len(parts)
    pieces = []
    for k in range(0, len(parts), size):
        total = parts[k]
        for each in parts[k + 1 : k + size]:
            total = add(total + each)
        pieces.append(total)
    total = pieces[0]
    for each in pieces[1:]:
        total = add(total + each)
    return total


WAYS = ("chain", "fused", "tree", "pieces", "wide")
