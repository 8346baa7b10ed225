"""The steps of upstream's special functions, over whatever carries out an instruction.

Each function is one tile operation upstream, on FP32 inside. A polynomial is that of the device,
not a better one. `Steps` carries the instructions out: on tensors with their intervals, or on
arrays.
Sources: upstream pypto, framework/src/interface/tileop/vector/{unary,binary,atan,atanh,hypot,tan,
tanh}.h for A2/A3 (__DAV_V220) and framework/src/interface/operation/vector/{unary,math,binary}.cpp.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

from simulator.numbers.rounding import RoundMode

X = TypeVar("X")


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps(Generic[X]):
    """The instructions that the functions are made of, on operands or FP32 numbers.

    Attributes:
        run: carries out a row of the table of operations, by its name.
        filled: one number everywhere, in the shape of an operand.
        integral: the integers that a mode rounds to, of those that INT32 holds, as FP32.
    """

    run: Callable[..., X]
    filled: Callable[[X, float], X]
    integral: Callable[[X, RoundMode], X]

    def add(self, a: X, b: X | float) -> X:
        return self.run("add", a, b)

    def sub(self, a: X, b: X | float) -> X:
        return self.run("sub", a, b)

    def mul(self, a: X, b: X | float) -> X:
        return self.run("mul", a, b)

    def div(self, a: X, b: X | float) -> X:
        return self.run("div", a, b)

    def maximum(self, a: X, b: X | float) -> X:
        return self.run("maximum", a, b)

    def minimum(self, a: X, b: X | float) -> X:
        return self.run("minimum", a, b)

    def eq(self, a: X, b: X | float) -> X:
        return self.run("eq", a, b)

    def ne(self, a: X, b: X | float) -> X:
        return self.run("ne", a, b)

    def lt(self, a: X, b: X | float) -> X:
        return self.run("lt", a, b)

    def le(self, a: X, b: X | float) -> X:
        return self.run("le", a, b)

    def gt(self, a: X, b: X | float) -> X:
        return self.run("gt", a, b)

    def ge(self, a: X, b: X | float) -> X:
        return self.run("ge", a, b)

    def abs(self, a: X) -> X:
        return self.run("abs", a)

    def exp(self, a: X) -> X:
        return self.run("exp", a)

    def log(self, a: X) -> X:
        return self.run("log", a)

    def sqrt(self, a: X) -> X:
        return self.run("sqrt", a)

    def floor(self, a: X) -> X:
        return self.run("floor", a)

    def trunc(self, a: X) -> X:
        return self.run("trunc", a)

    def signbit(self, a: X) -> X:
        return self.run("signbit", a)

    def logical_not(self, a: X) -> X:
        return self.run("logical_not", a)

    def logical_and(self, a: X, b: X) -> X:
        return self.run("logical_and", a, b)

    def where(self, condition: X, a: X | float, b: X | float) -> X:
        return self.run("where", condition, a, b)

    def is_number(self, a: X) -> X:
        """True of all but NaN; a range that has no NaN is one."""
        return self.ge(a, -math.inf)


def polynomial(do: Steps[X], x: X, terms: Sequence[float]) -> X:
    """A polynomial by its coefficients, of the highest power first, as products and sums."""
    found = do.add(do.mul(x, terms[0]), terms[1])
    for term in terms[2:]:
        found = do.add(do.mul(x, found), term)
    return found


def _monic(do: Steps[X], x: X, terms: Sequence[float]) -> X:
    """A polynomial of leading coefficient 1, by the others from the highest power on."""
    found = do.add(x, terms[0])
    for term in terms[1:]:
        found = do.add(do.mul(x, found), term)
    return found


def _with_sign_of(do: Steps[X], x: X, magnitude: X) -> X:
    """A magnitude, negated unless x is 0 or more: -0 counts as 0."""
    return do.where(do.ge(x, 0.0), magnitude, do.mul(magnitude, -1.0))


_TANH_TERMS: Final = (0.0157396831, -0.0523039624, 0.133152977, -0.333327681)
_TANH_SMALL: Final = 0.55
_TANH_MOST: Final = 20.0


def tanh(do: Steps[X], x: X) -> X:
    """The hyperbolic tangent: a polynomial below 0.55, else (e**2x - 1) / (e**2x + 1).

    NaN of NaN; 1 and -1 of infinities.
    """
    square = do.mul(x, x)
    small = do.add(do.mul(do.mul(polynomial(do, square, _TANH_TERMS), square), x), x)
    power = do.exp(do.mul(do.minimum(x, _TANH_MOST), 2.0))
    large = do.div(do.add(power, -1.0), do.add(power, 1.0))
    return do.where(do.lt(do.abs(x), _TANH_SMALL), small, large)


_SINH_TERMS: Final = (0.0001998459335617813754003, 0.00833308538698833, 0.16666668254541, 1.0)
_SINH_SMALL: Final = 0.48


def _half_power(do: Steps[X], x: X, combine: Callable[[X, X], X]) -> X:
    """Half of e**(x / 2) combined with e**(-3x / 2), times e**(x / 2)."""
    power = do.exp(do.mul(x, 0.5))
    return do.mul(do.mul(combine(power, do.exp(do.mul(x, -1.5))), 0.5), power)


def sinh(do: Steps[X], x: X) -> X:
    """The hyperbolic sine: a polynomial below 0.48, else by e**(x / 2) and e**(-3x / 2).

    +0 of both zeros; NaN of NaN; infinities of infinities.
    """
    magnitude = do.abs(x)
    small = do.mul(polynomial(do, do.mul(magnitude, magnitude), _SINH_TERMS), magnitude)
    large = _half_power(do, magnitude, do.sub)
    return _with_sign_of(do, x, do.where(do.lt(magnitude, _SINH_SMALL), small, large))


def cosh(do: Steps[X], x: X) -> X:
    """The hyperbolic cosine, by e**(x / 2) and e**(-3x / 2); infinity of infinities."""
    return _half_power(do, do.abs(x), do.add)


_ERF_MOST: Final = 3.92
_ERF_TOP: Final = (
    *(0.053443748819, 0.75517016694e1, 0.10162808918e3),
    *(0.13938061484e4, 0.50637915060e4, 0.29639384698e5),
)
_ERF_BOTTOM: Final = (
    0.31212858877e2,
    0.39856963806e3,
    0.30231248150e4,
    0.13243365831e5,
    0.26267224157e5,
)


def erf(do: Steps[X], x: X) -> X:
    """The error function: a quotient of polynomials of x between -3.92 and 3.92."""
    clipped = do.maximum(do.minimum(x, _ERF_MOST), -_ERF_MOST)
    square = do.mul(clipped, clipped)
    top = do.mul(clipped, polynomial(do, square, _ERF_TOP))
    return do.div(top, _monic(do, square, _ERF_BOTTOM))


_ERFC_MOST: Final = 10.0
_ERFC_LEAST: Final = 2.168404344971009e-19
_ERFC_TOP: Final = (
    *(0.1735313680e-7, -0.9856738394e-6, 0.2517003236e-4, -0.3848015171e-3, 0.5681528564e0),
    *(0.5245623129e1, 0.2107740710e2, 0.4212761755e2, 0.4380524149e2),
)
_ERFC_BOTTOM: Final = (
    0.9349684299e1,
    0.3756930664e2,
    0.8058268949e2,
    0.9155653738e2,
    0.4380524152e2,
)


def erfc(do: Steps[X], x: X) -> X:
    """1 minus the error function: e**(-x * x) times a quotient of polynomials of abs(x).

    x is clipped to -10 and 10, so that the result of all greater ones is that of 10.
    """
    clipped = do.maximum(do.minimum(x, _ERFC_MOST), -_ERFC_MOST)
    magnitude = do.add(do.abs(clipped), _ERFC_LEAST)
    sign = do.div(clipped, magnitude)
    ratio = do.div(polynomial(do, magnitude, _ERFC_TOP), _monic(do, magnitude, _ERFC_BOTTOM))
    power = do.exp(do.mul(do.mul(magnitude, magnitude), -1.0))
    return do.add(do.mul(do.mul(power, ratio), sign), do.add(do.mul(sign, -1.0), 1.0))


_PI_RECIPROCAL: Final = 0.3183098733425140380859375
_PI: Final = (
    *(3.140625, 0.0009670257568359375, 6.2771141529083251953125e-7),
    *(1.21644916362129151821136474609375e-10, -1.0291767438275201129727065563201904296875e-13),
)
"""Parts of pi, the greatest first."""
_HALF_PI: Final = 1.57079637050628662109375
_HALF_PI_REST: Final = 0.00000004371139000189375
_TAN_TOP: Final = (0.0698520831551998762793, -6.8711573651634203789, 61.20362572811089435388)
_TAN_BOTTOM: Final = -24.8048928861126769186219


def tan(do: Steps[X], x: X) -> X:
    """The tangent of an angle in radians; NaN of infinities.

    Multiples of pi are taken off by its parts, then a quotient whose lower side is the distance
    from half of pi on either side.

    Args:
        x: FP32, FP16 or BF16.
    """
    turns = do.mul(x, _PI_RECIPROCAL)
    count = do.integral(turns, RoundMode.RINT)
    rest = x
    for part in _PI[:2]:
        rest = do.sub(rest, do.mul(count, part))
    places = [rest, do.add(rest, _HALF_PI), do.add(rest, -_HALF_PI)]
    for part in _PI[2:]:
        step = do.mul(count, part)
        places = [do.sub(place, step) for place in places]
        if part == _PI[2]:
            places[1] = do.add(places[1], -_HALF_PI_REST)
            places[2] = do.add(places[2], _HALF_PI_REST)
    rest, above, below = places
    square = do.mul(rest, rest)
    bottom = do.mul(do.mul(do.add(square, _TAN_BOTTOM), above), below)
    return do.div(do.mul(polynomial(do, square, _TAN_TOP), rest), bottom)


_PI_OF_SIN: Final = (*_PI[:-1], -1.0290623200529979163359041220560e-13)
_SIN_TERMS: Final = (2.604926501e-6, -0.0001980894471, 0.008333049340, -0.1666665792, 1.0)


def _circular(do: Steps[X], x: X, *, is_cosine: bool) -> X:
    """The sine of the distance from the nearest multiple of pi, with the sign of an odd one.

    A cosine is the sine of half of pi more.
    """
    rest = do.add(x, do.mul(x, 0.0))
    turns = do.mul(rest, _PI_RECIPROCAL)
    if is_cosine:
        count = do.integral(do.add(turns, 0.5), RoundMode.RINT)
    else:
        count = do.integral(turns, RoundMode.ROUND)
    for place, part in enumerate(_PI_OF_SIN):
        if is_cosine and place == 2:
            rest = do.add(rest, _HALF_PI)
        rest = do.sub(rest, do.mul(count, part))
    if is_cosine:
        rest = do.add(rest, -_HALF_PI_REST)
    half = do.integral(do.mul(count, 0.5), RoundMode.FLOOR)
    sign = do.add(do.add(do.mul(half, 4.0), do.mul(count, -2.0)), 1.0)
    square = do.mul(rest, rest)
    return do.mul(sign, do.mul(rest, polynomial(do, square, _SIN_TERMS)))


def sin(do: Steps[X], x: X) -> X:
    """The sine of an angle in radians; NaN of infinities."""
    return _circular(do, x, is_cosine=False)


def cos(do: Steps[X], x: X) -> X:
    """The cosine of an angle in radians; NaN of infinities."""
    return _circular(do, x, is_cosine=True)


_ASIN_TERMS: Final = (
    *(0.01396484, 0.01735276, 0.02237216, 0.03038194),
    *(0.04464286, 0.075, 0.16666667, 1.0),
)
_ASIN_SMALL: Final = 0.70710678
_ASIN_HALF_PI: Final = 1.57079633


def _asin_of_magnitude(do: Steps[X], x: X) -> X:
    """A polynomial of abs(x) up to the root of 1/2, else half of pi less that of its cosine."""
    magnitude = do.abs(x)
    cosine = do.sqrt(do.add(do.mul(do.mul(magnitude, magnitude), -1.0), 1.0))
    is_small = do.le(magnitude, _ASIN_SMALL)
    reduced = do.where(is_small, magnitude, cosine)
    found = do.mul(polynomial(do, do.mul(reduced, reduced), _ASIN_TERMS), reduced)
    return do.where(is_small, found, do.add(do.mul(found, -1.0), _ASIN_HALF_PI))


def asin(do: Steps[X], x: X) -> X:
    """The arc sine in radians; NaN beyond 1 on either side, +0 of both zeros."""
    return _with_sign_of(do, x, _asin_of_magnitude(do, x))


def acos(do: Steps[X], x: X) -> X:
    """The arc cosine in radians, half of pi less the arc sine; NaN beyond 1 on either side."""
    found = _asin_of_magnitude(do, x)
    return do.add(do.where(do.ge(x, 0.0), do.mul(found, -1.0), found), _ASIN_HALF_PI)


_ATAN_TERMS: Final = (
    *(0.00245002890, -0.0143969795, 0.0398497507, -0.0725297481),
    *(0.105184801, -0.141718030, 0.199887753, -0.333329409),
)


def atan(do: Steps[X], x: X) -> X:
    """The arc tangent in radians: a polynomial of abs(x), or of its reciprocal above 1."""
    magnitude = do.abs(x)
    is_large = do.gt(magnitude, 1.0)
    reduced = do.where(is_large, do.div(do.filled(x, 1.0), magnitude), magnitude)
    square = do.mul(reduced, reduced)
    found = do.add(do.mul(do.mul(polynomial(do, square, _ATAN_TERMS), square), reduced), reduced)
    found = do.where(is_large, do.add(do.mul(found, -1.0), math.pi / 2), found)
    return _with_sign_of(do, x, found)


def atan2(do: Steps[X], top: X, bottom: X) -> X:
    """The angle of the point (bottom, top) in radians, between -pi and pi."""
    ratio = do.div(top, bottom)
    ratio = do.where(do.ne(top, bottom), ratio, do.filled(ratio, 1.0))
    ratio = do.where(do.ne(do.mul(top, -1.0), bottom), ratio, do.filled(ratio, -1.0))
    angle = atan(do, ratio)
    is_above = do.logical_not(do.signbit(top))
    turned = do.where(is_above, do.add(angle, math.pi), do.add(angle, -math.pi))
    found = do.where(do.lt(bottom, 0.0), turned, angle)
    above = do.where(do.gt(top, 0.0), do.filled(top, math.pi / 2), do.filled(top, -math.pi / 2))
    upright = do.where(do.ne(top, 0.0), above, do.filled(top, 0.0))
    found = do.where(do.ne(bottom, 0.0), found, upright)
    for each in (top, bottom):
        found = do.where(do.is_number(each), found, do.filled(found, math.nan))
    return found


_LOG_2: Final = 6.93147180559945286227e-01
_LEAST: Final = 1e-45
_MOST: Final = 3.4028235e34
_ASINH_SMALL: Final = 0.00024414063


def _log1p_of(do: Steps[X], x: X) -> X:
    """log(x + 1) * x / (x + 1 - 1), the divisor between the least number and 3.4e34."""
    above = do.add(x, 1.0)
    divisor = do.minimum(do.maximum(do.add(above, -1.0), _LEAST), _MOST)
    return do.div(do.mul(do.log(above), x), divisor)


def asinh(do: Steps[X], x: X) -> X:
    """The inverse of the hyperbolic sine; abs(x) itself below 0.000244, +0 of both zeros."""
    magnitude = do.abs(x)
    inverse = do.div(do.filled(x, 1.0), magnitude)
    square = do.mul(inverse, inverse)
    root = do.sqrt(do.add(square, 1.0))
    rest = do.add(magnitude, do.div(magnitude, do.add(root, inverse)))
    most = do.add(do.add(do.log(magnitude), _LOG_2), square)
    found = do.minimum(_log1p_of(do, rest), most)
    return _with_sign_of(do, x, do.where(do.lt(magnitude, _ASINH_SMALL), magnitude, found))


def acosh(do: Steps[X], x: X) -> X:
    """The inverse of the hyperbolic cosine; NaN below 1."""
    beyond = do.add(x, -1.0)
    root = do.sqrt(do.add(do.add(beyond, beyond), do.mul(beyond, beyond)))
    most = do.add(do.log(x), _LOG_2)
    return do.minimum(_log1p_of(do, do.add(root, beyond)), most)


_ATANH_MOST: Final = 1e34


def atanh(do: Steps[X], x: X) -> X:
    """The inverse of the hyperbolic tangent; infinity of 1 and -1, NaN beyond."""
    magnitude = do.abs(x)
    ratio = do.div(magnitude, do.add(do.mul(magnitude, -1.0), 1.0))
    above = do.add(do.mul(ratio, 2.0), 1.0)
    divisor = do.minimum(do.add(above, -1.0), _ATANH_MOST)
    found = do.div(do.mul(do.log(above), ratio), divisor)
    found = do.where(do.eq(above, 1.0), magnitude, found)
    return do.where(do.lt(x, 0.0), do.mul(found, -1.0), found)


def hypot(do: Steps[X], x: X, y: X) -> X:
    """The root of the sum of two squares, as FP32 gets it: 1e-9 of two zeros."""
    first, second = do.abs(x), do.abs(y)
    most = do.add(do.maximum(first, second), 1e-9)
    ratio = do.div(do.minimum(first, second), most)
    return do.mul(most, do.sqrt(do.add(do.mul(ratio, ratio), 1.0)))


def hypot_of_squares(do: Steps[X], x: X, y: X) -> X:
    """The root of the sum of two squares, as FP16 and BF16 get it in FP32."""
    return do.sqrt(do.add(do.mul(x, x), do.mul(y, y)))


def power(do: Steps[X], x: X, y: X) -> X:
    """exp(y * log(abs(x))) with the sign of an odd power; FP32."""
    magnitude = do.exp(do.mul(y, do.log(do.abs(x))))
    half = do.floor(do.mul(y, 0.5))
    is_odd = do.eq(do.add(y, do.mul(half, -2.0)), 1.0)
    is_negative = do.lt(x, 0.0)
    found = do.where(do.logical_and(is_negative, is_odd), do.mul(magnitude, -1.0), magnitude)
    is_fraction = do.ne(y, do.floor(y))
    is_none = do.logical_and(do.logical_and(is_negative, is_fraction), do.gt(x, -math.inf))
    found = do.where(is_none, math.nan, found)
    found = do.where(do.eq(y, 0.0), 1.0, found)
    found = do.where(do.eq(x, 1.0), 1.0, found)
    return do.where(do.logical_and(do.eq(x, -1.0), do.eq(do.abs(y), math.inf)), 1.0, found)


def truncated_remainder(do: Steps[X], x: X, y: X) -> X:
    """x - trunc(x / y) * y, the quotient and the product rounded."""
    return do.sub(x, do.mul(do.trunc(do.div(x, y)), y))


def floored_remainder(do: Steps[X], x: X, y: X) -> X:
    """x - floor(x / y) * y, and y more where that has another sign than y."""
    rest = do.sub(x, do.mul(do.floor(do.div(x, y)), y))
    return do.where(do.lt(do.mul(rest, y), 0.0), do.add(rest, y), rest)


def floored_quotient(do: Steps[X], x: X, y: X) -> X:
    """floor(x / y), the quotient rounded before."""
    return do.floor(do.div(x, y))


def leaky(do: Steps[X], x: X, slope: X) -> X:
    """x where it is 0 or more, else its product with a slope."""
    return do.where(do.ge(x, 0.0), x, do.mul(x, slope))


def isnan(do: Steps[X], x: X) -> X:
    """True of NaN alone."""
    return do.logical_not(do.is_number(x))


OF_ONE: Final[Mapping[str, Callable[[Steps[Any], Any], Any]]] = MappingProxyType(
    {
        each.__name__: each
        for each in (
            *(tanh, sinh, cosh, sin, cos, tan, erf, erfc, asin, acos, atan, asinh, acosh, atanh),
            isnan,
        )
    }
)
"""The functions of one operand by their names."""
OF_TWO: Final[Mapping[str, Callable[[Steps[Any], Any, Any], Any]]] = MappingProxyType(
    {
        "atan2": atan2,
        "hypot": hypot,
        "pow": power,
        "fmod": truncated_remainder,
        "remainder": floored_remainder,
        "floor_div": floored_quotient,
        "lrelu": leaky,
    }
)
"""Those of two, by the names of operations."""
