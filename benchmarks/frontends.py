"""Speed of the dialects beside their own frameworks: `python -m benchmarks.frontends`.

One process, both candidates of a row in turn, best of n rounds; absolute figures are this machine's
and the ratios of one run are what carries over. A row is a name, what we run and what the framework
runs; every dialect contributes a function that yields rows, named in `DIALECTS`.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from benchmarks import onnx_rows, openvino_rows
from benchmarks.measuring import best_seconds

ELEMS = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Two ways to the same values."""

    name: str
    ours: Callable[[], object]
    peer: Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Best times of a row; a ratio above 1 says that we are faster."""

    name: str
    ours_ms: float
    peer_ms: float
    ratio: float


def onnx(elems: int) -> Iterator[Row]:
    """Cast of every numeric pair beside onnx's ReferenceEvaluator."""
    for name, ours, peer in onnx_rows.rows(elems):
        yield Row(name=f"onnx {name}", ours=ours, peer=peer)


def openvino(elems: int) -> Iterator[Row]:
    """FakeConvert beside the evaluation of its node by OpenVINO's core."""
    for name, ours, peer in openvino_rows.rows(elems):
        yield Row(name=f"openvino {name}", ours=ours, peer=peer)


DIALECTS: dict[str, Callable[[int], Iterator[Row]]] = {"onnx": onnx, "openvino": openvino}


def measure(row: Row, rounds: int) -> Timing:
    """Time both candidates of a row."""
    best = best_seconds({"ours": row.ours, "peer": row.peer}, rounds)
    return Timing(
        name=row.name,
        ours_ms=round(best["ours"] * 1e3, 3),
        peer_ms=round(best["peer"] * 1e3, 3),
        ratio=round(best["peer"] / best["ours"], 2),
    )


def markdown(table: list[Timing]) -> str:
    """The timings as a table, and the geometric mean of the ratios."""
    lines = ["| row | ours ms | peer ms | ratio |", "|---|---|---|---|"]
    lines += [f"| {t.name} | {t.ours_ms} | {t.peer_ms} | {t.ratio} |" for t in table]
    mean = math.exp(math.fsum(math.log(max(t.ratio, 0.01)) for t in table) / max(len(table), 1))
    slower = sum(t.ratio < 1 for t in table)
    lines += [
        "",
        f"{len(table)} rows, {slower} of them slower than the peer, mean ratio {mean:.2f}",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.frontends", description=__doc__)
    parser.add_argument("--dialect", choices=DIALECTS, action="append")
    parser.add_argument("--row", action="append", default=[], help="a part of its name; replayable")
    parser.add_argument("--elems", type=int, default=ELEMS)
    parser.add_argument("--rounds", type=int, default=5, help="best of so many")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    given = parser.parse_args()
    table = []
    for dialect in given.dialect or DIALECTS:
        for row in DIALECTS[dialect](given.elems):
            if not given.row or any(part in row.name for part in given.row):
                table.append(measure(row, given.rounds))
                print(f"{table[-1].name}: {table[-1].ratio}", file=sys.stderr)
    print(json.dumps([asdict(t) for t in table], indent=1) if given.json else markdown(table))


if __name__ == "__main__":
    main()
