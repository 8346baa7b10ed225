"""The vendor's boundary tables: what A2/A3 gives for zeros, infinities, NaN and the limits.

Source: asc-devkit, the summary of the boundary values of the memory vector interfaces, tables 1 to
18 and 30 to 41. Figures of the default float mode, in which half and float agree; under
saturation mode half results that are infinite become the largest number and NaN becomes 0, float
results stay. Tables that agree stand together.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

OPERANDS: Final = ("MIN", "MAX", "0", "-0", "nan", "inf", "-inf")
"""MIN and MAX are the finite limits of the format."""

_Results = Mapping[tuple[str, ...], str]


def _by_operand(results: str) -> _Results:
    named = zip(OPERANDS, results.split(), strict=True)
    return MappingProxyType({(operand,): result for operand, result in named})


def _by_pair(*rows: str) -> _Results:
    """One row a first operand, one word a second one; a dot: the table has the pair mirrored."""
    table: dict[tuple[str, ...], str] = {}
    for first, row in zip(OPERANDS, rows, strict=True):
        for second, result in zip(OPERANDS, row.split(), strict=True):
            if result != ".":
                table[first, second] = result
    return MappingProxyType(table)


# Two figures are those of half and of float.
UNARY_TABLES: Final[Mapping[int, tuple[str, _Results]]] = MappingProxyType(
    {
        2: ("exp", _by_operand("0 inf 1 1 nan inf 0")),
        3: ("log", _by_operand("nan 11.09|88.72284 -inf -inf nan inf nan")),
        4: ("abs", _by_operand("MAX MAX 0 0 nan inf inf")),
        5: (
            "reciprocal",
            _by_operand("-0.000015|-2.938736e-39 0.000015|2.938736e-39 inf -inf nan 0 -0"),
        ),
        6: ("sqrt", _by_operand("nan 256.0|1.8446744e+19 0 -0 nan inf nan")),
        7: ("rsqrt", _by_operand("nan 0.003906|5.421011e-20 inf -inf nan 0 nan")),
        8: ("relu", _by_operand("0 MAX 0 0 nan inf 0")),
    }
)
NAN_BELOW_ZERO: Final = (1, ("log", "sqrt", "rsqrt"))
"""The operations that give NaN for every negative number."""
FLOAT_TO_FLOAT: Final = (
    32,
    ("round", "floor", "ceil", "trunc"),
    ["MIN", "MAX", "0", "0", "nan", "inf", "-inf"],
)
"""The instruction Cast from float to float, which these operations become."""
# fmt: off
BINARY_TABLES: Final[Mapping[tuple[int, ...], tuple[str, _Results]]] = MappingProxyType({
    (9, 15): ("add", _by_pair(
        "-inf 0    MIN  MIN  nan  inf  -inf",
        ".    inf  MAX  MAX  nan  inf  -inf",
        ".    .    0    0    nan  inf  -inf",
        ".    .    .    -0   nan  inf  -inf",
        ".    .    .    .    nan  nan  nan",
        ".    .    .    .    .    inf  nan",
        ".    .    .    .    .    .    -inf",
    )),
    (10,): ("sub", _by_pair(
        "0    -inf MIN  MIN  nan  -inf inf",
        "inf  0    MAX  MAX  nan  -inf inf",
        "MAX  MIN  0    0    nan  -inf inf",
        "MAX  MIN  -0   0    nan  -inf inf",
        "nan  nan  nan  nan  nan  nan  nan",
        "inf  inf  inf  inf  nan  nan  inf",
        "-inf -inf -inf -inf nan  -inf nan",
    )),
    (11, 16): ("mul", _by_pair(
        "inf  -inf -0   0    nan  -inf inf",
        ".    inf  0    -0   nan  inf  -inf",
        ".    .    0    -0   nan  nan  nan",
        ".    .    .    0    nan  nan  nan",
        ".    .    .    .    nan  nan  nan",
        ".    .    .    .    .    inf  -inf",
        ".    .    .    .    .    .    inf",
    )),
    (12,): ("div", _by_pair(
        "1    -1   -inf inf  nan  -0   0",
        "-1   1    inf  -inf nan  0    -0",
        "-0   0    nan  nan  nan  0    -0",
        "0    -0   nan  nan  nan  -0   0",
        "nan  nan  nan  nan  nan  nan  nan",
        "-inf inf  inf  -inf nan  nan  nan",
        "inf  -inf -inf inf  nan  nan  nan",
    )),
    (13, 17): ("maximum", _by_pair(
        "MIN  MAX  0    -0   nan  inf  MIN",
        ".    MAX  MAX  MAX  nan  inf  MAX",
        ".    .    0    0    nan  inf  0",
        ".    .    .    -0   nan  inf  -0",
        ".    .    .    .    nan  nan  nan",
        ".    .    .    .    .    inf  inf",
        ".    .    .    .    .    .    -inf",
    )),
    (14, 18): ("minimum", _by_pair(
        "MIN  MIN  MIN  MIN  nan  MIN  -inf",
        ".    MAX  0    -0   nan  MAX  -inf",
        ".    .    0    -0   nan  0    -inf",
        ".    .    .    -0   nan  -0   -inf",
        ".    .    .    .    nan  nan  nan",
        ".    .    .    .    .    inf  -inf",
        ".    .    .    .    .    .    -inf",
    )),
})
COMPARISON_TABLES: Final[Mapping[tuple[int, ...], Mapping[str, _Results]]] = MappingProxyType({
    (30, 31): MappingProxyType({
        "eq": _by_pair("1 0 0 0 0 0 0", "0 1 0 0 0 0 0", "0 0 1 1 0 0 0", "0 0 1 1 0 0 0",
                       "0 0 0 0 0 0 0", "0 0 0 0 0 1 0", "0 0 0 0 0 0 1"),
        "ge": _by_pair("1 0 0 0 0 0 1", "1 1 1 1 0 0 1", "1 0 1 1 0 0 1", "1 0 1 1 0 0 1",
                       "0 0 0 0 0 0 0", "1 1 1 1 0 1 1", "0 0 0 0 0 0 1"),
        "gt": _by_pair("0 0 0 0 0 0 1", "1 0 1 1 0 0 1", "1 0 0 0 0 0 1", "1 0 0 0 0 0 1",
                       "0 0 0 0 0 0 0", "1 1 1 1 0 0 1", "0 0 0 0 0 0 0"),
        "le": _by_pair("1 1 1 1 0 1 0", "0 1 0 0 0 1 0", "0 1 1 1 0 1 0", "0 1 1 1 0 1 0",
                       "0 0 0 0 0 0 0", "0 0 0 0 0 1 0", "1 1 1 1 0 1 1"),
        "lt": _by_pair("0 1 1 1 0 1 0", "0 0 0 0 0 1 0", "0 1 0 0 0 1 0", "0 1 0 0 0 1 0",
                       "0 0 0 0 0 0 0", "0 0 0 0 0 0 0", "1 1 1 1 0 1 0"),
        "ne": _by_pair("0 1 1 1 0 1 1", "1 0 1 1 0 1 1", "1 1 0 0 0 1 1", "1 1 0 0 0 1 1",
                       "0 0 0 0 0 0 0", "1 1 1 1 0 0 1", "1 1 1 1 0 1 0"),
    }),
})
# fmt: on
INTEGER_TABLES: Final[Mapping[str, Mapping[tuple[str, ...], tuple[str, str]]]] = MappingProxyType(
    {
        "relu": {("MIN",): ("0", "0"), ("MAX",): ("MAX", "MAX")},
        "add": {
            ("MIN", "MIN"): ("0", "MIN"),
            ("MIN", "MAX"): ("-1", "-1"),
            ("MAX", "MAX"): ("-2", "MAX"),
        },
        "sub": {
            ("MIN", "MIN"): ("0", "0"),
            ("MIN", "MAX"): ("1", "MIN"),
            ("MAX", "MIN"): ("-1", "MAX"),
            ("MAX", "MAX"): ("0", "0"),
        },
        "mul": {
            ("MIN", "MIN"): ("0", "MAX"),
            ("MIN", "MAX"): ("MIN", "MIN"),
            ("MAX", "MAX"): ("1", "MAX"),
        },
        "maximum": {
            ("MIN", "MIN"): ("MIN", "MIN"),
            ("MIN", "MAX"): ("MAX", "MAX"),
            ("MAX", "MAX"): ("MAX", "MAX"),
        },
        "minimum": {
            ("MIN", "MIN"): ("MIN", "MIN"),
            ("MIN", "MAX"): ("MIN", "MIN"),
            ("MAX", "MAX"): ("MAX", "MAX"),
        },
        "eq": {
            ("MIN", "MIN"): ("1", "1"),
            ("MIN", "MAX"): ("0", "0"),
            ("MAX", "MIN"): ("0", "0"),
            ("MAX", "MAX"): ("1", "1"),
        },
    }
)
"""The rows of int16_t and int32_t in the tables of these operations: in the default mode, in
saturation mode."""

_PATTERNS: Final = (
    "MIN", "MAX", "0", "-0", "nan", "inf", "-inf", "inf -inf nan", "inf -inf", "inf nan",
    "-inf nan", "ones inf", "ones -inf", "ones nan",
)  # fmt: skip
"""The contents of a block or a repeat, over and over; or ones, and one other element."""


def _by_pattern(results: str, saturated: str) -> Mapping[str, tuple[str, str]]:
    rows = zip(_PATTERNS, results.split(), saturated.split(), strict=True)
    return MappingProxyType({pattern: (result, half) for pattern, result, half in rows})


_AMAX: Final = _by_pattern(
    "MIN MAX 0 -0 nan inf -inf nan inf nan nan inf 1 nan",
    "MIN MAX 0 -0 0 MAX MIN 0 MAX 0 0 MAX 1 0",
)
_AMIN: Final = _by_pattern(
    "MIN MAX 0 -0 nan inf -inf nan -inf nan nan 1 -inf nan",
    "MIN MAX 0 -0 0 MAX MIN 0 MIN 0 0 1 MIN 0",
)
_SUM: Final = "-inf inf 0 -0 nan inf -inf nan nan nan nan inf -inf nan"
REDUCTION_TABLES: Final[Mapping[int, tuple[str, int, Mapping[str, tuple[str, str]]]]] = (
    MappingProxyType(
        {
            33: ("amax", 32, _AMAX),
            34: ("amin", 32, _AMIN),
            35: ("sum", 32, _by_pattern(_SUM, "MIN MAX 0 -0 0 MAX MIN 0 0 0 0 65344 -65344 14")),
            36: ("amax", 256, _AMAX),
            37: ("amin", 256, _AMIN),
            38: ("sum", 256, _by_pattern(_SUM, "MIN MAX 0 -0 0 MAX MIN 0 0 0 0 MAX -65376 126")),
        }
    )
)
"""By table: the reduction, how many bytes it takes, and by pattern the result and, for half, the
result in saturation mode."""

_SEVERAL_REPEATS: Final = (
    "inf -inf nan", "inf -inf", "inf nan", "-inf nan", "inf", "-inf", "nan",
)  # fmt: skip


def _by_first(results: str, saturated: str) -> Mapping[str, tuple[str, str]]:
    rows = zip(_SEVERAL_REPEATS, results.split(), saturated.split(), strict=True)
    return MappingProxyType({first: (result, half) for first, result, half in rows})


LEVEL_TABLES: Final[Mapping[int, tuple[str, Mapping[str, tuple[str, str]]]]] = MappingProxyType(
    {
        39: ("amax", _by_first("nan inf nan nan inf 1 nan", "1 MAX 1 1 MAX 1 1")),
        40: ("amin", _by_first("nan -inf nan nan 1 -inf nan", "0 MIN 0 0 1 MIN 0")),
        41: ("sum", _by_first("nan nan nan nan inf -inf nan", "252 254 254 254 MAX -65248 254")),
    }
)
"""By table: the reduction, and by the first elements of 256, the others being 1, the result and,
for half, the result in saturation mode. A repeat is reduced by one instruction, then the results of
repeats."""

CONTRADICTED: Final = MappingProxyType(
    {
        (4, "nan"): "float gives 0 in saturation mode, which the introduction says float ignores",
        (35, "ones inf"): "half gives 65344 in saturation mode; steps that saturate give 65504, "
        "as in table 38",
        (35, "ones -inf"): "half gives -65344 in saturation mode; steps that saturate give -65504",
    }
)
"""Rows that contradict other public texts; the other text is followed."""
