"""exp and log, correctly rounded on every CPU.

numpy and the C library choose their float64 loops by the CPU, and the last bits of these differ.
Within a loop's error bound all numbers round to one FP32 code, but for the results of a few
operands, which lie that close to the middle of two FP32 numbers. Those are listed here; integers of
as many bits as it takes decide them, and replace what this CPU's loop gives otherwise. So a loop is
trusted for its bound alone. `python -m benchmarks.hard_operands` finds the operands among all
codes. FP16 has none.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Final

import numpy as np

from simulator.arithmetic.operation import Array

BOUND: Final = 2.0**-49
"""A float64 loop's relative error is less: 4 ulp are 2**-50 at most. numpy's AVX-512 loops from
Intel SVML are documented to stay below 4 ulp (release notes of 1.22), its own exp and log below
0.52 (1.19), glibc's below 1 ("Known Maximum Errors in Math Functions")."""
_FIRST_BITS: Final = 128
_LAST_BITS: Final = 1024
_GUARD_BITS: Final = 24
_FLOAT64_BITS: Final = 53
_Scaled = tuple[int, int]
"""A significand, off by less than 2**_GUARD_BITS, and the power of two that multiplies it."""
_Exact = Callable[[float, int], _Scaled]
"""A function of a finite number, to so many fraction bits."""
_Fixes = tuple[tuple[np.float32, np.float32], ...]
"""Operands and results."""
_POSITIONS: Final = 67
"""Copies of each operand that are tried: they fill the body of a vector loop and its remainder."""

# fmt: off
_OF_EXP: Final = (
    0x33800000, 0x36fdffc1, 0x377eff81, 0x383a3ef1, 0x38e69cc1, 0x39c6be5b, 0x39e5bb1d,
    0x3d1a274e, 0x3fe67199, 0x4001b249, 0x40315b33, 0x41cbf87b, 0x4288942b, 0xb3000000,
    0xbae0e25c, 0xbbb70ee8, 0xbbf0edf1, 0xbc2a461a, 0xc13d6631, 0xc16912cd,
)
_OF_LOG: Final = (
    0x022ae487, 0x03d2f29f, 0x064cb44b, 0x07c060fa, 0x0b265d7b, 0x0dc8bba4, 0x0f61ff63,
    0x111c87f8, 0x11b257e3, 0x13fcd84a, 0x145cb6d4, 0x14907055, 0x155d60fc, 0x158772eb,
    0x16c5ee7a, 0x18b06f2a, 0x1a21db87, 0x1a3de5e8, 0x1a8446cb, 0x1aac80dc, 0x1ab7c313,
    0x1adfd25d, 0x1b81ab52, 0x1dc9e7c1, 0x1e6bc9fa, 0x1f116ab8, 0x22925ad4, 0x22f6d580,
    0x2423c085, 0x24a8fb14, 0x25be734f, 0x25f12e61, 0x2758eec4, 0x27a51454, 0x28e3fa26,
    0x29bd4f07, 0x29e6126b, 0x29fd22f8, 0x2c4c24b7, 0x2d6f4a4e, 0x2e492984, 0x2e7a6221,
    0x3418949b, 0x3461a322, 0x38dcbe38, 0x39c31348, 0x39c7b1f9, 0x3bf86ef0, 0x3c413d3a,
    0x3e2b3421, 0x3fc55379, 0x3fd364d7, 0x4056ee45, 0x41178feb, 0x41e3b2af, 0x44bc4360,
    0x464d5b2b, 0x4665a9a6, 0x46ca6c75, 0x4b77325a, 0x4bf70db3, 0x4c08ff78, 0x4c5d65a5,
    0x4d604ebe, 0x4e85f412, 0x4fe4ab24, 0x50dfef2e, 0x526a304f, 0x54af989d, 0x56210e9a,
    0x5b042ba3, 0x5b98e163, 0x5bf9890b, 0x5d800341, 0x5d8b2d5b, 0x5ee8984e, 0x5efbcaae,
    0x5f64c24a, 0x5f945685, 0x62b467ba, 0x63b134d9, 0x64bc5793, 0x64e27fa3, 0x65d890d3,
    0x66a8c860, 0x66abbd63, 0x6914cb96, 0x6a2510d0, 0x6be8cf96, 0x6d1f23eb, 0x6d6c9d3a,
    0x6e7054f2, 0x6f31a8ec, 0x736cc271, 0x7405dee8, 0x74896a73, 0x79e7ec37, 0x7a708b30,
    0x7a854203, 0x7d98b8f4,
)
# fmt: on


def exp(a: Array, *, out: Array) -> None:
    """The exponential: float32, or float64 whose FP16 number is the correct one."""
    _round(a, out, np.exp, scaled_exp)


def log(a: Array, *, out: Array) -> None:
    """The natural logarithm: float32, or float64 whose FP16 number is the correct one."""
    _round(a, out, np.log, scaled_log)


def _round(a: Array, out: Array, estimate: Callable[..., object], exact: _Exact) -> None:
    estimate(a, out=out, dtype=np.float64, casting="unsafe")
    if out.dtype == np.float32:
        for operand, result in _fixes(estimate, exact):
            found = a == operand
            if found.any():
                np.copyto(out, result, where=found)


@functools.cache
def _fixes(estimate: Callable[..., object], exact: _Exact) -> _Fixes:
    """The operands at which this CPU's loop gives another code than the exact one."""
    operands = np.array(HARD_OPERANDS[exact], np.uint32).view(np.float32)
    results = np.array([to_odd(exact, x) for x in operands.tolist()]).astype(np.float32)
    found = np.empty((_POSITIONS, operands.size), np.float32)
    estimate(np.tile(operands, (_POSITIONS, 1)), out=found, dtype=np.float64, casting="unsafe")
    wrong = (found != results).any(axis=0)
    return tuple(zip(operands[wrong], results[wrong], strict=True))


def to_odd(exact: _Exact, x: float) -> float:
    """The function in float64, cut with the last bit set: rounded again, it gives the exact code.

    Only exp(0) and log(1) are float64 numbers: what `_LAST_BITS` do not tell from one is one. No
    other result of an FP32 operand needs half as many; exp beside 0 needs the most, as many as the
    operand has zeros after its point.
    """
    bits = _FIRST_BITS
    significand, exponent = exact(x, bits)
    while significand:
        least = abs(significand) - (1 << _GUARD_BITS)
        most = abs(significand) + (1 << _GUARD_BITS)
        dropped = most.bit_length() - _FLOAT64_BITS
        cut = most >> dropped
        decided = least >> dropped == cut
        if decided or bits == _LAST_BITS:
            cut |= decided
            return math.ldexp(cut if significand > 0 else -cut, dropped + exponent)
        bits *= 2
        significand, exponent = exact(x, bits)
    return 0.0


def scaled_exp(x: float, bits: int) -> _Scaled:
    """e**x is 2**k times e**rest, of which 0 <= rest < ln 2: the sum of rest**n / n!."""
    numerator, denominator = x.as_integer_ratio()
    log_2 = _log_2(bits)
    power, rest = divmod((numerator << bits) // denominator, log_2)
    total, term, n = 0, 1 << bits, 0
    while term:
        total += term
        n += 1
        term = (term * rest >> bits) // n
    return total, power - bits


def scaled_log(x: float, bits: int) -> _Scaled:
    """ln x is k ln 2 + 2 artanh((m - 1) / (m + 1)), where x is 2**k times m, 3/4 <= m < 3/2."""
    m, power = math.frexp(x)
    if m < 0.75:
        m, power = 2 * m, power - 1
    numerator, denominator = m.as_integer_ratio()
    artanh = _artanh(numerator - denominator, numerator + denominator, bits)
    return power * _log_2(bits) + 2 * artanh, -bits


def _log_2(bits: int) -> int:
    return 2 * _artanh(1, 3, bits)


def _artanh(numerator: int, denominator: int, bits: int) -> int:
    """The sum of q**n / n over odd n, of quotients q with abs(q) <= 1/3."""
    power = (abs(numerator) << bits) // denominator
    square = power * power >> bits
    total, n = 0, 1
    while power:
        total += power // n
        power = power * square >> bits
        n += 2
    return total if numerator > 0 else -total


HARD_OPERANDS: Final[dict[_Exact, tuple[int, ...]]] = {scaled_exp: _OF_EXP, scaled_log: _OF_LOG}
"""FP32 codes whose results lie within `BOUND` of the middle of two FP32 numbers."""
