"""Mock devices checked: `python -m benchmarks.mock_devices > benchmarks/mock_devices.md`.

Each device of tests/support/devices/mock_devices.py has a deviation, a pair of them, or a flaw: a
broken core, a flaky unit, a wrong clock. The table says what a device check makes of it, and the
command ends with 1 if that is not what it must be: a deviation that is followed wrongly, or that
nothing tells.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from pathlib import Path

from benchmarks.measuring import date_and_revision, markdown

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from support.devices.mock_devices import OUTCOMES, mocks, outcome_of

from pypto_cast.device.facts import Agreement


def measure() -> tuple[list[dict[str, str]], list[str]]:
    """A row for each device, and the names of those of which something else became."""
    rows, wrong = [], []
    for mock in mocks():
        outcome, found = outcome_of(mock)
        differing = [fact for fact in found.facts if fact.verdict is Agreement.DIFFERS]
        unstable = dict.fromkeys(fact.stability for fact in differing)
        rows.append(
            {
                "device": mock.name,
                "outcome": outcome,
                "facts that differ": ", ".join(fact.name for fact in differing) or "-",
                "stability": ", ".join(unstable) or "-",
            }
        )
        if outcome != mock.outcome:
            wrong.append(f"{mock.name}: {outcome}, must be {mock.outcome}")
        print(f"{len(rows)}: {mock.name}: {outcome}", file=sys.stderr, flush=True)
    return rows, wrong


def report(rows: list[dict[str, str]]) -> str:
    """The counts of all outcomes, and the table."""
    date, revision = date_and_revision()
    counts = Counter(row["outcome"] for row in rows)
    return "\n".join(
        [
            "# Mock devices and what a device check makes of them",
            "",
            f"{date}, revision {revision}: {len(rows)} devices, "
            + ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES),
            "",
            markdown(rows),
        ]
    )


def main() -> int:
    """Print the table; 1 if something else became of a device."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows, wrong = measure()
    print(report(rows))
    print(*wrong, sep="\n", file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
