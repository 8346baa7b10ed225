"""Timing of candidates side by side, sample values, and tables of the figures with their date."""

from __future__ import annotations

import datetime
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from simulator.numbers.convert import INF_NAN, codes_of, convert, values_of
from simulator.numbers.formats import FP64, FloatFormat, Format
from simulator.numbers.rounding import RoundMode

_SECONDS_IN_A_ROW: Final = 0.02

Row = dict[str, Any]
"""Cells by column; `to_PEER` holds our speed over the peer's, above 1 where we are faster."""

HEADS = {"melems_per_s": "Melem/s", "gbytes_per_s": "GB/s", "honest": "honest numpy"}


def date_and_revision() -> tuple[str, str]:
    """Today (UTC), and the checkout's revision: "-dirty" where files differ, "?" without git."""
    git = ["git", "describe", "--always", "--dirty", "--abbrev=9", "--exclude=*"]
    folder = Path(__file__).parent
    found = subprocess.run(git, cwd=folder, capture_output=True, text=True, check=False).stdout
    today = datetime.datetime.now(datetime.timezone.utc).date()
    return str(today), found.strip() or "?"


def sample(fmt: Format, elems: int) -> npt.NDArray[Any]:
    """Values as a checkpoint or its activations have them, over several binades."""
    random = np.random.default_rng(7)
    if isinstance(fmt, FloatFormat):
        scale = np.exp2(random.integers(-6, 7, elems).astype(np.float32))
        values = (random.standard_normal(elems, dtype=np.float32) * scale).astype(np.float64)
        return values_of(convert(codes_of(values, FP64), FP64, fmt, RoundMode.RINT, INF_NAN), fmt)
    if fmt.bits < 8:
        return random.integers(fmt.min, fmt.max + 1, elems, np.int8).astype(fmt.dtype)
    return random.integers(fmt.min, fmt.max, elems, fmt.dtype, endpoint=True)


def best_seconds(
    candidates: Mapping[str, Callable[[], object] | None],
    rounds: int,
    kept: list[object] | None = None,
    clock: Callable[[], float] = time.perf_counter,
    before: Callable[[], object] | None = None,
) -> dict[str, float]:
    """Run all candidates in turn, `rounds` times, some times in a row, and keep the best times.

    None stands for a candidate that cannot do it.

    The first time finds neither its code nor its data in the caches, which the others have filled,
    and memory at the pace that they needed: a cast of 48 MB moved 27 GB/s at first and 65 after
    twelve casts, memcpy 36 and 59. So each runs at least twice and for 20 ms. The release of a
    result is not timed. Results go into `kept`, if it is given, so that none has the memory of one
    before; then each runs once. The clock is the wall's; `time.thread_time` leaves out what other
    processes take. `before` runs ahead of every time, and is not timed either.
    """
    present = {name: run for name, run in candidates.items() if run is not None}
    best = dict.fromkeys(present, math.inf)
    with np.errstate(all="ignore"):
        for _ in range(rounds + 1):
            for name, run in present.items():
                runs, until = 0, time.perf_counter() + _SECONDS_IN_A_ROW
                while runs < 2 or time.perf_counter() < until:
                    if before is not None:
                        before()
                    start = clock()
                    result = run()
                    best[name] = min(best[name], clock() - start)
                    runs += 1
                    if kept is not None:
                        kept.append(result)
                        break
                    del result
    return best


def compared(
    candidates: Mapping[str, Callable[[], object] | None], rounds: int, **how: Any
) -> tuple[float, Row]:
    """The best time of the first candidate, and its speed over that of each other one.

    Args:
        candidates: by name; None for one that cannot do it.
        rounds: as for `best_seconds`.
        how: further arguments of that.

    Returns:
        Seconds; and `to_PEER`, above 1 where the first one is faster, None if the peer did not run.
    """
    best = best_seconds(candidates, rounds, **how)
    ours, *peers = candidates
    times = {peer: best.get(peer) for peer in peers}
    return best[ours], {
        f"to_{peer}": time and round(time / best[ours], 2) for peer, time in times.items()
    }


def ints(text: str) -> tuple[int, ...]:
    """Numbers of an option, such as 64,512."""
    return tuple(int(part) for part in text.split(","))


def print_tables(sections: Mapping[str, Iterable[Row]], *, as_json: bool) -> None:
    """Print the rows of each table: to stderr when measured, at the end as Markdown or JSON."""
    tables: dict[str, list[Row]] = {}
    for title, rows in sections.items():
        for row in rows:
            tables.setdefault(title, []).append(row)
            print(row, file=sys.stderr)
    if as_json:
        print(json.dumps(tables, indent=1))
    else:
        print("\n\n".join(f"## {t.capitalize()}\n\n{markdown(tables[t])}" for t in tables))


def markdown(table: Sequence[Row]) -> str:
    """The rows, which have the same columns, as a table of Markdown."""
    names = [name.removeprefix("to_") for name in table[0]]
    heads = [HEADS.get(name, name.replace("_", " ")) for name in names]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in table:
        cells = ["-" if cell is None else str(cell) for cell in row.values()]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
