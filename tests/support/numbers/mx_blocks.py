"""MX blocks in exact fractions: the shared scale and the codes, from the OCP's text alone.

Nothing of the project is imported: formats, codes and rounding are those of `small_floats`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from support.numbers.small_floats import SMALL_FLOATS, Value, encode

BLOCK: Final = 32
NAN_SCALE: Final = 255
_POWERS: Final = [Fraction(2) ** exponent for exponent in range(-127, 128)]
_INFINITY_AS: Final = Fraction(2) ** 128


def scale_code(values: Sequence[Value], name: str, rounds_up: bool) -> int:
    """The code of E8M0 for a block: by the greatest magnitude, from all powers of two."""
    if any(value.kind == "nan" for value in values):
        return NAN_SCALE
    is_infinite = any(value.kind == "inf" for value in values)
    if rounds_up and is_infinite:
        return len(_POWERS) - 1
    most = max((value.magnitude for value in values), default=Fraction(0))
    most = _INFINITY_AS if is_infinite else most
    largest = SMALL_FLOATS[name].numbers[-1][0]
    if rounds_up:
        fitting = [code for code, power in enumerate(_POWERS) if power * largest >= most]
        return min(fitting, default=len(_POWERS) - 1)
    power_of_largest = max(power for power in _POWERS if power <= largest)
    fitting = [code for code, power in enumerate(_POWERS) if power * power_of_largest <= most]
    return max(fitting, default=0)


def codes(values: Sequence[Value], scale: int, name: str) -> list[int]:
    """The codes of a block under its scale."""
    if scale == NAN_SCALE:
        nan = Value("nan", False, Fraction(0))
        return [encode(nan, name, "RINT", saturates=True, keeps_nan=True)] * len(values)
    return [
        encode(
            Value(value.kind, value.negative, value.magnitude / _POWERS[scale]),
            name,
            "RINT",
            saturates=True,
            keeps_nan=True,
        )
        for value in values
    ]
