"""Device checks killed and resumed: `python -m benchmarks.killed_checks --count 70 --seed random`.

A check of a stand-in is killed at a random launch, or in the midst of a random writing of its file,
up to three times; then it goes on to its end. Its file must be, byte for byte, that of a check that
was not killed, and each file that a kill left must be whole and say how far the check was. The
command ends with 1 otherwise, and prints the table of killed_checks.md.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.measuring import date_and_revision, markdown

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from support.devices.killed_checks import At, resumed, run_killed, whole_run

from pypto_cast.device.facts import read_facts

COUNTS: Final = ("checks", "kills", "files left", "same file")
_MOST_KILLS: Final = 3
_PLACES: Final[tuple[At, ...]] = ("launch", "write")


def measure(seed: int, count: int) -> tuple[dict[str, Counter[str]], list[str]]:
    """Kill checks, so many in all.

    Returns:
        By the place of the kills the checks, kills, files left, and checks with the same file; and
        a line for each that has another one.
    """
    random = np.random.default_rng(seed)
    found: dict[str, Counter[str]] = {at: Counter() for at in _PLACES}
    wrong = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the part that a killed check left
        once = Path(folder) / "once.json"
        most = dict(zip(_PLACES, whole_run(once), strict=True))
        for number in range(count):
            at = _PLACES[int(random.integers(len(_PLACES)))]
            path = Path(folder) / f"{number}.json"
            moments = random.integers(0, most[at], int(random.integers(1, _MOST_KILLS + 1)))
            tally = found[at]
            tally["checks"] += 1
            for moment in moments:
                run_killed(path, at, int(moment))
                tally["kills"] += 1
                if path.exists():
                    tally["files left"] += read_facts(path).run is not None
            same = resumed(path) == once.read_bytes()
            tally["same file"] += same
            if not same:
                wrong.append(f"{at} {moments.tolist()}: another file")
    return found, wrong


def report(found: dict[str, Counter[str]], seed: int) -> str:
    """The table of the findings."""
    rows = [
        {"killed": f"at a {at}"} | {name: tally[name] for name in COUNTS}
        for at, tally in found.items()
    ]
    date, revision = date_and_revision()
    return "\n".join(
        [
            "# Device checks killed at random moments and resumed",
            "",
            f"{date}, revision {revision}, seed {seed}",
            "",
            markdown(rows),
        ]
    )


def main() -> int:
    """Print the table; 1 if a file differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", default="random", help='a number, or "random"')
    parser.add_argument("--count", type=int, default=70, help="checks that are killed")
    options = parser.parse_args()
    seed = secrets.randbelow(1 << 32) if options.seed == "random" else int(options.seed)
    print("seed", seed, file=sys.stderr, flush=True)
    found, wrong = measure(seed, options.count)
    print(report(found, seed))
    print(*wrong, sep="\n", file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
