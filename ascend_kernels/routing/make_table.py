"""Makes the committed table of verdicts: every pair of formats in every mode.

    python -m ascend_kernels.routing.make_table            writes verdicts.json
    python -m ascend_kernels.routing.make_table --check    computes all anew; fails if it differs

The best route of a 32-bit source is shown exact on all 2^32 codes, so a run takes about half an
hour on one core. Each pair is written as soon as it is done, and a run goes on where one stopped.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import sys
from collections.abc import Iterator
from typing import Any, Final

from ascend_kernels.routing.chain_check import all_values
from ascend_kernels.routing.chain_ranking import RankedChain, ranked_chains, route_row
from ascend_kernels.routing.chains import ROUTE_FORMATS
from ascend_kernels.routing.verdict_table import TABLE, TABLE_STEPS
from simulator.numbers.formats import BOOL, FP32, Format, IntFormat
from simulator.numbers.rounding import RoundMode
from simulator.numbers.verify import versions

_KEPT: Final = 4
"""Routes of a row."""


def questions() -> Iterator[tuple[Format, Format, RoundMode]]:
    """Yields the questions of the table: pairs and modes, FP32 to integral values among them."""
    for src, dst in itertools.product(ROUTE_FORMATS, repeat=2):
        if src is not dst or src is FP32:
            yield from ((src, dst, mode) for mode in RoundMode)


@functools.lru_cache(maxsize=1)
def _ranked(src: Format, dst: Format, mode: RoundMode) -> tuple[RankedChain, ...]:
    return ranked_chains(all_values(src, dst), mode, TABLE_STEPS, exhaustive=True)


def table_row(src: Format, dst: Format, mode: RoundMode) -> dict[str, Any]:
    """The row of a pair and a mode, computed."""
    # From integer to integer and to BOOL nothing is rounded: all modes are one question.
    is_one = isinstance(dst, IntFormat) and (isinstance(src, IntFormat) or dst is BOOL)
    ranked = _ranked(src, dst, RoundMode.RINT if is_one else mode)
    routes = [route_row(one) for one in ranked[:_KEPT]]
    return {"from": src.name, "to": dst.name, "mode": mode.name, "routes": routes}


def main() -> int:
    """Write the table, or with --check fail if it is stale."""
    prog = "python -m ascend_kernels.routing.make_table"
    parser = argparse.ArgumentParser(prog=prog)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if stale")
    is_check = parser.parse_args().check
    begun = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {"rows": []}
    known = {(row["from"], row["to"], row["mode"]): row for row in begun["rows"]}
    rows = []
    for src, dst, mode in questions():
        key = (src.name, dst.name, mode.name)
        if is_check or key not in known:
            row = table_row(src, dst, mode)
            if is_check and json.loads(json.dumps(row)) != known.get(key):
                print(f"{TABLE.name}, {' '.join(key)} is stale: run {prog}", file=sys.stderr)
                return 1
            known[key] = row
            print(" ".join(key), file=sys.stderr)
        rows.append(known[key])
        if not is_check:
            kept = rows if len(rows) == len(known) else known.values()
            lines, head = ",\n".join(map(json.dumps, kept)), json.dumps(versions("native"))
            text = f'{{"versions": {head},\n"rows": [\n{lines}\n]}}\n'
            TABLE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
