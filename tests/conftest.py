"""The seed of the random codes in the header, hypothesis without a clock."""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings
from support.numbers.codes import SEED

from pypto_cast.options import defaults
from simulator.numbers import engines

pytest_plugins = ["pypto_cast.pytest_plugin", "support.programs.fake_compiler"]

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
