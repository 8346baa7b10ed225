"""The small floats of Ascend 950 in exact arithmetic, from the tables of their documents alone.

Nothing of the project is imported. A format is the list of its numbers, written out by the layout
that its document gives; a conversion is a look at the two numbers that a value lies between. For
HF8: arXiv 2409.16626, table 2 (dot field, exponent, fraction). For E4M3 and E5M2: OCP 8-bit
Floating Point 1.0. For E2M1 and E8M0: OCP Microscaling Formats 1.0; for E1M2 the largest number
that CANN asc-devkit has of it (1.75). Special values and saturation: CANN asc-devkit, Cast of the
Reg vector API, tables 4 and 34 of its pages.
"""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

POWER: Final = {exponent: Fraction(2) ** exponent for exponent in range(-160, 160)}


class SmallFloat(NamedTuple):
    """A format of at most 8 bits.

    `numbers` are those that are not negative, ascending, with their codes; `sign` is the bit that
    negates one. `signed_zero` is None where -0 does not exist.
    """

    numbers: tuple[tuple[Fraction, int], ...]
    sign: int
    inf: int | None
    nan: int | None
    has_negative_zero: bool


def _fields(exp_bits: int, man_bits: int, bias: int, count: int) -> list[tuple[Fraction, int]]:
    """The first `count` codes of a layout of exponent and fraction."""
    found = []
    for code in range(count):
        field, fraction = code >> man_bits, code % (1 << man_bits)
        one = Fraction(fraction, 1 << man_bits) + (field > 0)
        found.append((one * POWER[max(field, 1) - bias], code))
    return found


def _hif8() -> list[tuple[Fraction, int]]:
    """Every code of HF8 from its fields, read from the left as the paper's table has them."""
    found = []
    for code in range(0x6F):
        text = f"{code:07b}"
        if text.startswith("0000"):  # denormal: 2^(M - 23), and M = 0 is zero
            power = int(text[4:], 2) - 23
            found.append((POWER[power] if power > -23 else Fraction(0), code))
            continue
        if text.startswith("11"):
            width, rest = 4, text[2:]
        elif text.startswith("10"):
            width, rest = 3, text[2:]
        elif text.startswith("01"):
            width, rest = 2, text[2:]
        elif text.startswith("001"):
            width, rest = 1, text[3:]
        else:
            width, rest = 0, text[4:]
        exponent = int("1" + rest[1:width], 2) if width else 0
        exponent = -exponent if width and rest[0] == "1" else exponent
        fraction = rest[width:]
        found.append((POWER[exponent] * (1 + Fraction(int(fraction, 2), 1 << len(fraction))), code))
    # 0x6F is infinity; the codes of exponents below 0 come after it.
    for code in range(0x70, 0x80):
        text = f"{code:07b}"
        exponent = -int("1" + text[3:6], 2)
        found.append((POWER[exponent] * (1 + Fraction(int(text[6]), 2)), code))
    return sorted(found)


SMALL_FLOATS: Final = {
    "E4M3FN": SmallFloat(tuple(_fields(4, 3, 7, 0x7F)), 0x80, None, 0x7F, True),
    "E5M2": SmallFloat(tuple(_fields(5, 2, 15, 0x7C)), 0x80, 0x7C, 0x7F, True),
    "E2M1": SmallFloat(tuple(_fields(2, 1, 1, 8)), 8, None, None, True),
    "E1M2": SmallFloat(tuple(_fields(1, 2, 1, 8)), 8, None, None, True),
    "HF8": SmallFloat(tuple(_hif8()), 0x80, 0x6F, 0x80, False),
    "E8M0": SmallFloat(
        tuple((POWER[code - 127], code) for code in range(255)), 0, None, 255, False
    ),
}


class Value(NamedTuple):
    """The value of a code; `kind` is "finite", "inf" or "nan"."""

    kind: str
    negative: bool
    magnitude: Fraction


def decode(code: int, name: str) -> Value:
    """The value of a code of a small format."""
    form = SMALL_FLOATS[name]
    negative, magnitude = bool(code & form.sign), code & ~form.sign
    if code == form.nan or magnitude not in (form.inf, *_by_code(name)):
        return Value("nan", negative, Fraction(0))
    if magnitude == form.inf:
        return Value("inf", negative, Fraction(0))
    return Value("finite", negative, _by_code(name)[magnitude])


@lru_cache
def _by_code(name: str) -> dict[int, Fraction]:
    return {code: number for number, code in SMALL_FLOATS[name].numbers}


@lru_cache
def _ascending(name: str) -> tuple[Fraction, ...]:
    return tuple(number for number, _ in SMALL_FLOATS[name].numbers)


@lru_cache
def thresholds(name: str) -> tuple[Fraction, ...]:
    """Numbers, midpoints between neighbours, and those beyond the largest number."""
    numbers = _ascending(name)
    beyond = numbers[-1] + _next_gap(name)
    ladder = (*numbers, beyond)
    middles = [(a + b) / 2 for a, b in pairwise(ladder)]
    return tuple(sorted({*ladder, *middles}))


def _next_gap(name: str) -> Fraction:
    """The step from the largest number to the one that the layout would have next."""
    numbers = _ascending(name)
    if name == "HF8":
        return POWER[14]  # 32,768 has one bit of fraction, so that 49,152 is next
    return numbers[-1] - numbers[-2] if name != "E8M0" else numbers[-1]


@lru_cache(maxsize=1 << 18)
def _between(name: str, magnitude: Fraction) -> tuple[int, int]:
    """The last number at or below a magnitude, by place, and the quarter of the way to the next.

    0 is that number itself, 2 the midpoint, 1 and 3 what lies below and above. What lies beyond all
    numbers is as if it were just below the next that the layout would have.
    """
    numbers = _ascending(name)
    at = bisect_right(numbers, magnitude) - 1
    after = numbers[at + 1] if at + 1 < len(numbers) else numbers[-1] + _next_gap(name)
    twice = 2 * (magnitude - numbers[at])
    step = after - numbers[at]
    if twice == 0:
        return at, 0
    return at, 2 if twice == step else 1 if twice < step else 3


def encode(value: Value, name: str, mode: str, *, saturates: bool, keeps_nan: bool = False) -> int:
    """The code of a value: rounded once; then the special values.

    Args:
        value: the source.
        name: the destination, none of E8M0.
        mode: RINT, ROUND, FLOOR, CEIL, TRUNC or ODD.
        saturates: the saturating mode; else infinity, or NaN where the format has none of them.
        keeps_nan: NaN stays NaN in the saturating mode too.
    """
    form = SMALL_FLOATS[name]
    largest = form.numbers[-1][1]
    sign = form.sign if value.negative else 0
    beyond = form.inf if form.inf is not None else form.nan
    if value.kind == "nan":
        return form.nan if form.nan is not None and (keeps_nan or not saturates) else 0
    if value.kind == "inf":
        if saturates or beyond is None:
            return sign | largest
        return sign | beyond if form.inf is not None else beyond
    at, place = _between(name, value.magnitude)
    last = at + 1 == len(form.numbers)
    is_odd = form.numbers[at][1] % 2 == 1 or (last and mode == "ODD")
    up = (
        place != 0
        and {
            "RINT": place > 2 or (place == 2 and is_odd),
            "ROUND": place >= 2,
            "FLOOR": value.negative,
            "CEIL": not value.negative,
            "TRUNC": False,
            "ODD": not is_odd,
        }[mode]
    )
    rank = at + up
    if rank == len(form.numbers):
        if saturates or beyond is None:
            return sign | largest
        return sign | beyond if form.inf is not None else beyond
    code = form.numbers[rank][1]
    return code | (sign if code or form.has_negative_zero else 0)
