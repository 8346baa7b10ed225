"""All 2^32 FP32 codes to each small float and mode, on each engine, against the oracle's steps.

The codes of a step have one result, whose both ends exact fractions decide; see
`tests/support/numbers/small_float_steps.py`. Nine minutes of two cores:

    PYTHONPATH=tests python -m benchmarks.small_float_steps --write

Tests draw blocks of it.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final

from support.numbers.small_float_steps import BLOCKS, ENGINES, cases, steps

from benchmarks.measuring import Row, date_and_revision, markdown

TABLE: Final = Path(__file__).with_suffix(".md")


def counted(case: int) -> Row:
    """The row of a destination and a mode."""
    dst, mode = list(cases())[case]
    found = list(steps(dst, mode))
    faults = [line for each in found for line in each.faults(range(BLOCKS))]
    for line in faults:
        print(f"{dst} {mode.name}: {line}", file=sys.stderr)
    return {
        "to": str(dst),
        "mode": mode.name,
        "policies": len(found) // 2,
        "steps": sum(each.starts.size for each in found),
        "codes": sum(BLOCKS for _ in found) * (1 << 24) * len(ENGINES),
        "faulty_blocks": len(faults),
    }


def main() -> None:
    """Print the table, or write it beside this file; exits with 1 if a code differs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.small_float_steps")
    parser.add_argument("--write", action="store_true", help=f"writes {TABLE.name}")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    with ProcessPoolExecutor(given.processes) as pool:
        rows = list(pool.map(counted, range(sum(1 for _ in cases()))))
    date, revision = date_and_revision()
    text = f"""# Small floats between their thresholds

FP32 to each small float, all codes of both signs, by each policy for infinities and NaN and on each
engine ({", ".join(ENGINES)}): codes in blocks of 2^24 against the steps whose ends exact fractions
decide. A faulty block has a code with another result than its step. {date}, revision {revision}.

{markdown(rows)}
"""
    if given.write:
        TABLE.write_text(text, encoding="utf-8")
    else:
        print(text)
    sys.exit(any(row["faulty_blocks"] for row in rows))


if __name__ == "__main__":
    main()
