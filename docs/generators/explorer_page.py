"""The explorer: one cast, tried in the browser, without a server and without an installation.

The page holds the module, its script and the tables below; all of them are derived from the tables
of the project, so that a new pair or dialect appears by itself.

    python -m docs.generators.explorer_page FILE [--language zh]    writes the page alone
"""

from __future__ import annotations

import argparse
import base64
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final

from ascend_kernels.matrix import MATRIX, CastRule, resolve
from ascend_kernels.program import conversions
from docs.generators.explorer_module import FOLDER, MODULE
from docs.generators.explorer_words import WORDS
from pypto_cast.dialects.systems import DIALECTS
from pypto_cast.dtypes.data_types import CastMode, DataType
from simulator.numbers.convert import INF_NAN, Conversion
from simulator.numbers.formats import FORMATS, FloatFormat, Format
from simulator.numbers.literals import bits_text, number_of, short_text
from simulator.numbers.native.format_tables import FORMAT_NUMBERS, MODE_NUMBERS, policy_bits
from simulator.numbers.rounding import RoundMode
from tiling.chips import CHIPS

Step = list[int]
SCRIPTS: Final = (
    *("conversion.js", "stored_numbers.js", "address.js"),
    *("one_number.js", "many_numbers.js", "page.js"),
)
"""The files of the script in their order: each knows those before it; the first three, no page."""


def _step(conversion: Conversion) -> Step:
    return [
        FORMAT_NUMBERS[conversion.src.name],
        FORMAT_NUMBERS[conversion.dst.name],
        MODE_NUMBERS[conversion.mode],
        policy_bits(conversion.policy),
    ]


def _range(fmt: Format) -> str:
    if not isinstance(fmt, FloatFormat):
        return f"{fmt.min} to {fmt.max}"
    largest = short_text(str(number_of(fmt.max_code, fmt)))
    return f"-{largest} to {largest}"


def _format(fmt: Format) -> dict[str, Any]:
    """A format for the script: its widths by field, and its bits by code where these differ."""
    dtypes = [dtype.name for dtype in DataType if dtype.format is fmt]
    row: dict[str, Any] = {
        "name": fmt.name,
        "dtype": dtypes[0] if dtypes else None,
        "range": _range(fmt),
        "bits": fmt.bits,
        "bytes": fmt.code_dtype.itemsize,
        "npy": fmt.dtype.str if fmt.dtype.names is None else fmt.code_dtype.str,
    }
    if not isinstance(fmt, FloatFormat):
        return row | {
            "fields": [1, fmt.bits - 1] if fmt.signed else [fmt.bits],
            "is_float": False,
            "min": str(fmt.min),
            "max": str(fmt.max),
        }
    row["is_float"] = True
    if fmt.dots:
        return row | {"texts": [bits_text(code, fmt) for code in range(1 << fmt.bits)]}
    return row | {"fields": [fmt.bits] if fmt.is_scale else [1, fmt.exp_bits, fmt.man_bits]}


def _steps(family: str, rule: CastRule, *, saturate: bool) -> dict[str, list[Step]]:
    """The chain of each mode of a pair, under one satmode; "" where it has no modes."""
    found = {}
    for mode in rule.modes or (None,):
        resolution = resolve(family, rule.src, rule.dst, mode, saturate=saturate)
        found["" if mode is None else mode.name] = [_step(x) for x in conversions(resolution)]
    return found


def _rule(family: str, rule: CastRule) -> dict[str, Any]:
    return {
        "modes": [mode.name for mode in rule.modes],
        "default": None if rule.default is None else rule.default.name,
        "on": _steps(family, rule, saturate=True),
        "off": _steps(family, rule, saturate=False) if rule.off else None,
        "source": rule.source,
        "standing": rule.origin.standing.value,
    }


def _others(src: Format, dst: Format) -> Iterable[dict[str, Any]]:
    """The dialects beside pypto that convert a pair, with their chain where they are one."""
    for dialect in DIALECTS.values():
        if dialect.name.startswith("pypto"):
            continue
        if not dialect.applies(src, dst):
            continue
        rule = dialect.rule(src, dst, CastMode.CAST_NONE)
        if rule.convert is not None:
            steps = [_step(each) for each in rule.steps] if rule.leaves_open is None else []
            told = {"text": rule.text, "source": rule.source, "steps": steps or None}
            yield {"name": dialect.name, **told}


@cache
def tables() -> dict[str, Any]:
    """All that the script takes from the project, as JSON has it."""
    pairs = dict.fromkeys(pair for rules in MATRIX.values() for pair in rules)
    return {
        "formats": [_format(fmt) for fmt in FORMATS.values()],
        "families": list(MATRIX),
        "modes": [mode.name for mode in RoundMode],
        "infinities_and_nan": policy_bits(INF_NAN),
        "chips": {
            family: next(name for name, chip in CHIPS.items() if chip.isa == family)
            for family in MATRIX
        },
        "rules": {
            family: {f"{src}-{dst}": _rule(family, rule) for (src, dst), rule in rules.items()}
            for family, rules in MATRIX.items()
        },
        "dialects": {f"{src}-{dst}": list(_others(src, dst)) for src, dst in pairs},
    }


def script(names: Iterable[str] = SCRIPTS) -> str:
    """Files of the script as one, in a scope of its own."""
    parts = [(FOLDER / name).read_text("utf-8") for name in names]
    return f"(async () => {{\n{''.join(parts)}}})();\n"


def fragment(language: str) -> str:
    """The explorer as part of a page, in a language: markup, look, data and script."""
    data = {
        "tables": tables(),
        "words": WORDS[language],
        "module": base64.b64encode(MODULE.read_bytes()).decode(),
    }
    told = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    look = (FOLDER / "explorer.css").read_text("utf-8")
    return (
        f'<div id="explorer" lang="{language}"></div>\n<style>\n{look}</style>\n'
        f'<script type="application/json" id="explorer-data">{told}</script>\n'
        f"<script>\n{script()}</script>\n"
    )


def page(language: str) -> str:
    """A page of the explorer alone."""
    return (
        f'<!DOCTYPE html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        "<style>body{font-family:system-ui,sans-serif;margin:1rem}</style>\n"
        f"<title>{WORDS[language]['title']}</title>\n</head>\n<body>\n"
        f"<h1>{WORDS[language]['title']}</h1>\n{fragment(language)}</body>\n</html>\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m docs.generators.explorer_page")
    parser.add_argument("file", type=Path)
    parser.add_argument("--language", choices=WORDS, default="en")
    given = parser.parse_args()
    given.file.write_text(page(given.language), encoding="utf-8")


if __name__ == "__main__":
    main()
