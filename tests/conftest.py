"""The seed of the random codes in the header, and hypothesis without a clock."""

from __future__ import annotations

from codes import SEED
from hypothesis import HealthCheck, settings

settings.register_profile(
    "pypto_cast",
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("pypto_cast")


def pytest_report_header() -> str:
    return f"random codes: PYPTO_CAST_TEST_SEED={SEED}"
