"""The seed of the random codes in the header, hypothesis without a clock."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from support.numbers.codes import SEED

from pypto_cast.options.context import defaults
from simulator.numbers import engines

pytest_plugins = [
    "pypto_cast.pytest_plugin",
    "pytester",
    "support.environment.sampled",
    "support.programs.fake_compiler",
]

settings.register_profile(
    "pypto_cast",
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("pypto_cast")


def pytest_report_header() -> list[str]:
    return [f"random codes: PYPTO_CAST_TEST_SEED={SEED}", f"engine: {engines.in_use()}"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for each reason of skipped tests, however many files have it.

    PYPTO_CAST_TEST_SKIPPED names a file that lists them, as pytest takes it: `pytest @FILE`.
    """
    skipped = terminalreporter.getreports("skipped")
    if file := os.environ.get("PYPTO_CAST_TEST_SKIPPED"):
        tests = sorted({report.nodeid.partition("[")[0] for report in skipped})
        Path(file).write_text("".join(f"{test}\n" for test in tests), encoding="utf-8")
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count} skipped: {reason}")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keeps the tests themselves out of garbage collection: there are millions of objects."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def _no_tile_of_another_test() -> Iterator[None]:
    """Options that a test sets end with it."""
    with defaults():
        yield
