"""Writes all numbers that Python and the native engine share: formats, modes, policies, a call's.

    python -m simulator.numbers.native.format_tables            writes csrc/tables.h
    python -m simulator.numbers.native.format_tables --check    fails if that file is stale

Formats and round modes are numbered in the order of `FORMATS` and `RoundMode`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from simulator.numbers.convert import Overflow, Policy
from simulator.numbers.formats import BOOL, FORMATS, FloatFormat, Format, Taper, taper_of
from simulator.numbers.rounding import RoundMode

HEADER: Final = Path(__file__).with_name("csrc") / "tables.h"
VERSION: Final = 1
"""Of the library's C interface."""
MAX_STEPS: Final = 8
"""Conversions of one call."""
STEP_FIELDS: Final = ("src", "dst", "mode", "policy")
"""The struct Step in C++, a conversion: numbers of 32 bits."""
STATUS_TEXTS: Final = {
    "OK": "",
    "BAD_STEP": "the library does not know these conversions",
    "BAD_LEVEL": "this machine lacks the instructions",
    "BAD_MEMORY": "source and result overlap; they may do so only where the result begins where "
    "the source does and its elements are no wider",
}
"""The results of a call, numbered from 0."""

_OVERFLOW_BITS: Final = 2
_FLAG_BITS: Final = {
    name: bit
    for bit, name in enumerate(("keeps_inf", "keeps_nan", "keeps_nan_sign"), _OVERFLOW_BITS)
}

FORMAT_NUMBERS: Final = {name: number for number, name in enumerate(FORMATS)}
MODE_NUMBERS: Final = {mode: number for number, mode in enumerate(RoundMode)}
_OVERFLOW_NUMBERS: Final = {overflow: number for number, overflow in enumerate(Overflow)}


def policy_bits(policy: Policy) -> int:
    """A policy in one number: the overflow rule in the lowest two bits, a bit for each flag."""
    flags = sum(getattr(policy, name) << bit for name, bit in _FLAG_BITS.items())
    return _OVERFLOW_NUMBERS[policy.overflow] | int(flags)


_FORMAT_FIELDS: Final = (
    ("bool", "is_float"),
    ("int", "bits"),
    ("int", "bytes"),
    ("int", "man_bits"),
    ("int", "exp_bits"),
    ("int", "bias"),
    ("int", "emin"),
    ("bool", "is_scale"),
    ("bool", "nan_is_negative_zero"),
    ("bool", "has_negative_zero"),
    ("uint64_t", "sign_code"),
    ("uint64_t", "max_code"),
    ("bool", "has_inf"),
    ("uint64_t", "inf_code"),
    ("bool", "has_nan"),
    ("uint64_t", "nan_code"),
    ("bool", "is_signed"),
    ("bool", "is_bool"),
    ("uint64_t", "max_magnitude"),
    ("uint64_t", "min_magnitude"),
    ("int", "taper"),
)
"""The struct Format in C++; of a format of the other kind a field is 0.

`taper` is the number of its tables in TAPERS, from 1; 0 where every exponent has as many bits.
"""

_TAPERED: Final = [fmt for fmt in FORMATS.values() if isinstance(fmt, FloatFormat) and fmt.dots]
_TAPER_FIELDS: Final = {
    "codes": "uint8_t",
    "ranks": "uint8_t",
    "significands": "uint8_t",
    "quanta": "int8_t",
    "man_bits": "uint8_t",
    "bases": "uint8_t",
}
"""The struct Taper in C++, of 8 bits at most: those of `Taper`, by their names there."""


def _fields(fmt: Format) -> dict[str, int]:
    common = {"bits": fmt.bits, "bytes": fmt.code_dtype.itemsize}
    if not isinstance(fmt, FloatFormat):
        own = {"max_magnitude": fmt.max, "min_magnitude": -fmt.min}
        return common | own | {"is_signed": fmt.signed, "is_bool": fmt is BOOL}
    return common | {
        "is_float": True,
        "man_bits": fmt.man_bits,
        "exp_bits": fmt.exp_bits,
        "bias": fmt.bias,
        "emin": fmt.emin,
        "is_scale": fmt.is_scale,
        "nan_is_negative_zero": fmt.nan_is_negative_zero,
        "has_negative_zero": fmt.has_negative_zero,
        "sign_code": fmt.sign_code,
        "max_code": fmt.max_code,
        "has_inf": fmt.inf_code is not None,
        "inf_code": fmt.inf_code or 0,
        "has_nan": fmt.nan_code is not None,
        "nan_code": fmt.nan_code or 0,
        "taper": _TAPERED.index(fmt) + 1 if fmt in _TAPERED else 0,
    }


def _taper_arrays(taper: Taper) -> list[str]:
    return [", ".join(map(str, getattr(taper, name).tolist())) for name in _TAPER_FIELDS]


def _tapers() -> Iterable[str]:
    """The struct Taper and the tables of each tapered format."""
    tapers = [taper_of(fmt) for fmt in _TAPERED]
    sizes = [max(len(getattr(taper, name)) for taper in tapers) for name in _TAPER_FIELDS]
    yield "// Of a format whose exponents differ in bits: Taper in simulator/numbers/formats.py."
    yield "struct Taper {"
    yield "    int least, most;  // exponents, of which man_bits and bases have an entry each"
    for (name, kind), size in zip(_TAPER_FIELDS.items(), sizes, strict=True):
        yield f"    {kind} {name}[{size}];"
    yield "};"
    yield ""
    yield f"constexpr Taper TAPERS[{len(tapers)}] = {{"
    for fmt, taper in zip(_TAPERED, tapers, strict=True):
        arrays = [f"{{{array}}}" for array in _taper_arrays(taper)]
        ends = [str(taper.exponents[0]), str(taper.exponents[-1])]
        yield f"    {{{', '.join([*ends, *arrays])}}},  // {fmt}"
    yield "};"


def _row(fmt: Format) -> str:
    fields = _fields(fmt)
    values = [
        f"{int(fields.get(name, 0))}{'u' * kind.startswith('u')}" for kind, name in _FORMAT_FIELDS
    ]
    return f"    {{{', '.join(values)}}},  // {fmt}"


def _enum(name: str, members: Collection[str], count: str = "") -> list[str]:
    """An enum, and beside it the number of its members, which is no case of a switch."""
    lines = [f"enum {name} {{ {', '.join(members)} }};"]
    return [*lines, f"constexpr uint32_t {count} = {len(members)};"] if count else lines


def header() -> str:
    """The text of the generated header."""
    lines = [
        "// Generated by `python -m simulator.numbers.native.format_tables`; do not edit.",
        "// clang-format off",
        "#ifndef PYPTO_CAST_TABLES_H",
        "#define PYPTO_CAST_TABLES_H",
        "",
        "#include <cstdint>",
        "",
        f"constexpr int VERSION = {VERSION};",
        f"constexpr int MAX_STEPS = {MAX_STEPS};",
        "",
        *_enum("Status", STATUS_TEXTS),
        "",
        *_enum("FormatNumber", FORMATS, "FORMAT_COUNT"),
        "",
        *_enum("Mode", [mode.name for mode in RoundMode], "MODE_COUNT"),
        "",
        "// A policy is an overflow rule and flags.",
        *_enum("Overflow", [f"OVERFLOW_{rule.name}" for rule in Overflow], "OVERFLOW_COUNT"),
        f"constexpr unsigned OVERFLOW_MASK = {(1 << _OVERFLOW_BITS) - 1};",
        *(f"constexpr unsigned {name.upper()} = {1 << bit};" for name, bit in _FLAG_BITS.items()),
        f"constexpr unsigned POLICY_COUNT = {1 << _OVERFLOW_BITS + len(_FLAG_BITS)};",
        "",
        f"struct Step {{ uint32_t {', '.join(STEP_FIELDS)}; }};",
        "",
        "struct Format {",
        *(f"    {kind} {name};" for kind, name in _FORMAT_FIELDS),
        "};",
        "",
        "constexpr Format FORMATS[FORMAT_COUNT] = {",
        *(_row(fmt) for fmt in FORMATS.values()),
        "};",
        "",
        *_tapers(),
        "",
        "#endif  // PYPTO_CAST_TABLES_H",
    ]
    return "\n".join(lines) + "\n"


def write_or_check(prog: str, path: Path, text: str) -> int:
    """Write a generated file, or with --check compare it; returns the exit code."""
    parser = argparse.ArgumentParser(prog=prog)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if stale")
    if not parser.parse_args().check:
        path.write_text(text, encoding="utf-8")
        return 0
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return 0
    print(f"{path.name} is stale: run {prog}", file=sys.stderr)
    return 1


def main() -> int:
    return write_or_check("python -m simulator.numbers.native.format_tables", HEADER, header())


if __name__ == "__main__":
    sys.exit(main())
