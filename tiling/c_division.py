"""Division of ints as in C: the quotient is truncated towards zero."""

from __future__ import annotations


def quotient(dividend: int, divisor: int) -> int:
    """The quotient without its fraction: -7 / 2 is -3.

    Raises:
        ZeroDivisionError: by zero.
    """
    found = abs(dividend) // abs(divisor)
    return found if (dividend < 0) == (divisor < 0) else -found


def remainder(dividend: int, divisor: int) -> int:
    """The remainder of that quotient, which has the dividend's sign: -7 % 3 is -1.

    Raises:
        ZeroDivisionError: by zero.
    """
    return dividend - divisor * quotient(dividend, divisor)
