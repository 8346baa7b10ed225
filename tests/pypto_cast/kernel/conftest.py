"""Fixtures of the tests of kernels."""

from __future__ import annotations

from typing import Any

import pytest

from ascend_kernels.schedule.schedule import Schedule


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[Schedule]:
    """The schedules that are executed."""
    found: list[Schedule] = []
    times_written = Schedule.times_written

    def noted(schedule: Schedule, *given: Any, **asked: Any) -> object:
        found.append(schedule)
        return times_written(schedule, *given, **asked)

    monkeypatch.setattr(Schedule, "times_written", noted)
    return found
