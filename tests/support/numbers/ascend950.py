"""The casts of Ascend 950 in exact arithmetic, from upstream's table of pairs and CANN's of ranges.

Nothing of the project is imported. Pairs, modes and defaults: upstream pypto's pypto-cast document,
table of 950. Values out of range: CANN asc-devkit, Cast of the Reg vector API, tables 4 and 34.
SaturationMode.OFF: pto-isa a5, TCvt (three pairs go by way of INT32, where infinity is its limit).
CTRL[50] and CTRL[60]: CANN asc-devkit, SetCtrlSpr, tables 3 and 4.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final, NamedTuple

from support.numbers import oracle
from support.numbers.small_floats import SMALL_FLOATS, Value, decode, encode

M5: Final = ("RINT", "ROUND", "FLOOR", "CEIL", "TRUNC")


class Pair(NamedTuple):
    """A pair that pypto offers on 950; `default` is the mode of CAST_NONE, "" where none is."""

    src: str
    dst: str
    modes: tuple[str, ...]
    default: str


_TABLE: Final = """
FP32: FP32 M5 RINT, FP16 M6 RINT, BF16 M5 RINT, INT64 M5 TRUNC, INT32 M5 TRUNC, INT16 M5 TRUNC
FP32: E4M3FN M5 RINT, E5M2 M5 RINT, HF8 ROUND ROUND
FP16: FP32 - -, INT32 M5 TRUNC, INT16 M5 TRUNC, INT8 M5 TRUNC, UINT8 M5 TRUNC, HF8 ROUND ROUND
BF16: FP32 - -, INT32 M5 TRUNC, FP16 M5 RINT, E2M1 RINT RINT, E1M2 RINT RINT
UINT8: FP16 - -, UINT16 - -
INT8: FP16 - -, INT16 - -, INT32 - -
INT16: UINT8 - -, FP16 M5 RINT, FP32 - -, UINT32 - -, INT32 - -
INT32: FP32 M5 RINT, INT16 - -, UINT16 - -, INT64 - -, UINT8 - -, FP16 RINT RINT
UINT32: UINT8 - -, UINT16 - -, INT16 - -
INT64: FP32 M5 RINT, INT32 - -
E4M3FN: FP32 - -
E5M2: FP32 - -
HF8: FP32 - -
E2M1: BF16 - -
E1M2: BF16 - -
"""


def _pairs() -> list[Pair]:
    named = {"M5": M5, "M6": (*M5, "ODD"), "-": (), "RINT": ("RINT",), "ROUND": ("ROUND",)}
    found = []
    for line in _TABLE.strip().splitlines():
        src, rest = line.split(": ")
        for entry in rest.split(", "):
            dst, modes, default = entry.split()
            found.append(Pair(src, dst, named[modes], default.strip("-")))
    return found


PAIRS: Final = _pairs()

_MEMORY_API_TABLE: Final = """
BF16: FP16 M5, FP32 NONE, E1M2 M5, E2M1 M5, INT32 M5
COMPLEX32: COMPLEX64 NONE
COMPLEX64: COMPLEX32 M7, COMPLEX64 M5
DOUBLE: BF16 M5, FP32 M5, INT32 TRUNC, INT64 TRUNC
FP16: BF16 M5, FP32 NONE, HF8 ROUND/HYBRID, INT16 M5, INT32 M5, INT4 M5, INT8 M5, UINT8 M5
FP32: BF16 M5, FP16 M7, FP32 M5, E4M3FN RINT, E5M2 RINT, HF8 ROUND/HYBRID, INT16 M5, INT32 M5
FP32: INT64 M5
E1M2: BF16 NONE
E2M1: BF16 NONE
E4M3FN: FP32 NONE
E5M2: FP32 NONE
HF8: FP16 NONE, FP32 NONE
INT16: FP16 M5, FP32 NONE, INT32 NONE, INT4 NONE, UINT32 NONE, UINT8 NONE
INT32: FP16 NONE, FP32 M5, INT16 NONE, INT64 NONE, UINT16 NONE, UINT8 NONE
INT4: BF16 NONE, FP16 NONE, INT16 NONE
INT64: DOUBLE M5, FP32 M5, INT32 NONE
INT8: FP16 NONE, INT16 NONE, INT32 NONE
UINT16: UINT32 NONE, UINT8 NONE
UINT32: INT16 NONE, UINT16 NONE, UINT8 NONE
UINT8: FP16 NONE, UINT16 NONE, UINT32 NONE
"""
"""CANN asc-devkit, Cast of the memory vector API, table of 950; INT32 -> FP16 ignores its mode."""


def _memory_api() -> dict[tuple[str, str], tuple[str, ...]]:
    named = {"M5": M5, "M7": (*M5, "ODD", "NONE")}
    found = {}
    for line in _MEMORY_API_TABLE.strip().splitlines():
        src, rest = line.split(": ")
        for entry in rest.split(", "):
            dst, modes = entry.split()
            found[src, dst] = named.get(modes, tuple(modes.split("/")))
    return found


MEMORY_API: Final = _memory_api()
"""By pair, the round modes of Cast of the memory vector API."""
REG_API_ALONE: Final = (("BF16", "E8M0"), ("E8M0", "BF16"))
"""The pairs that Cast of the Reg vector API has besides."""
NO_LOW_BITS: Final = {("FP16", "INT32"), ("INT16", "UINT32")}
"""Pairs to integers on which SaturationMode.OFF does not act, besides those that always fit."""
SATURATED: Final = ("FP16", "BF16", "E5M2", "E4M3FN", "HF8")
"""The float destinations that CTRL[48]=0 saturates."""
KEEPS_NAN: Final = ("E5M2", "E4M3FN")
"""Those in which CTRL[50]=1 keeps NaN all the same."""


def is_integer(name: str) -> bool:
    return isinstance(oracle.FORMATS.get(name), oracle.Integer)


def has_low_bits(src: str, dst: str) -> bool:
    """SaturationMode.OFF acts: an integer may be out of range, and the instruction can truncate."""
    if not is_integer(dst) or (src, dst) in NO_LOW_BITS:
        return False
    source, target = oracle.FORMATS[src], oracle.FORMATS[dst]
    assert isinstance(target, oracle.Integer)
    if isinstance(source, oracle.Integer):
        return source.smallest < target.smallest or source.largest > target.largest
    return True


def value_of(code: int, name: str) -> Value:
    if name in SMALL_FLOATS:
        return decode(code, name)
    return Value(*oracle.decode(code, name))


def expected(
    code: int,
    pair: Pair,
    mode: str,
    *,
    off: bool,
    inf_nan_mode: bool,
    fp8_nan: bool = False,
    global_saturation: bool = True,
) -> int:
    """The code that a cast gives of a code.

    Args:
        code: of the source.
        pair: of formats.
        mode: one that the pair has; any where it has none.
        off: SaturationMode.OFF.
        inf_nan_mode: CTRL[48] is 1.
        fp8_nan: CTRL[50] is 1.
        global_saturation: CTRL[60] is 1; else `off` decides in place of CTRL[48].
    """
    src, dst = pair.src, pair.dst
    value = value_of(code, src)
    if is_integer(dst):
        return _to_integer(value, src, dst, mode, off and has_low_bits(src, dst))
    asked = not inf_nan_mode if global_saturation else not off
    saturates = is_integer(src) or (dst in SATURATED and asked)
    if dst in SMALL_FLOATS:
        keeps_nan = fp8_nan and dst in KEEPS_NAN
        return encode(value, dst, mode, saturates=saturates, keeps_nan=keeps_nan)
    if src == dst:
        return oracle.rounded_once(code, src, dst, mode)
    form = oracle.FORMATS[dst]
    assert isinstance(form, oracle.Float)
    if value.kind == "nan":
        return 0 if saturates else form.nan
    sign = form.sign_bit if value.negative else 0
    if value.kind == "inf":
        return sign | (form.largest if saturates else form.inf)
    rank = oracle.rounded(oracle.split(value.magnitude, dst), value.negative, mode)
    if rank >= form.inf:
        up = mode in ("RINT", "ROUND") or mode == ("FLOOR" if value.negative else "CEIL")
        rank = form.inf if up and not saturates else form.largest
    return sign | rank


def _to_integer(value: Value, src: str, dst: str, mode: str, off: bool) -> int:
    form = oracle.FORMATS[dst]
    assert isinstance(form, oracle.Integer)
    if value.kind == "nan":
        return 0
    by_int32 = off and (src, dst) in {("FP32", "INT16"), ("FP16", "INT16"), ("FP16", "INT8")}
    if value.kind == "inf":
        of = oracle.INT32 if by_int32 else form
        return form.low_bits(of.smallest if value.negative else of.largest)
    magnitude = oracle.rounded(oracle.split(Fraction(value.magnitude), dst), value.negative, mode)
    number = -magnitude if value.negative else magnitude
    return form.low_bits(number if off else form.clamp(number))
