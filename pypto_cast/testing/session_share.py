"""The share of certain results of a run of pytest."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

import pytest

from pypto_cast.kernel.certainty import Certainty, CertaintyCounts
from pypto_cast.testing.possible import CertainBy, reaches

_SENT: Final = "pypto_cast_certainty"
"""Under which a worker of pytest-xdist sends its counts."""


class SessionShare:
    """Counts the results of all kernels that are asked for their certainty, and judges the run.

    It is a plugin of pytest; the workers of pytest-xdist count, and their controller judges. A run
    in which no kernel is asked fails too.

    Args:
        config: of the run.
        at_least: the share of certain results below which the run fails, from 0 to 1.
        by: "documents" leaves those out that are certain given named choices.
    """

    def __init__(self, config: pytest.Config, at_least: float, by: CertainBy) -> None:
        self._config = config
        self._at_least = at_least
        self._by = by
        self._counts = CertaintyCounts()

    def count(self, certainty: Certainty) -> None:
        """Add the results of a kernel."""
        self._counts += certainty.counts

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take the counts of a worker that is done; a worker that crashed has none."""
        if counts := getattr(node, "workeroutput", {}).get(_SENT):
            self._counts += CertaintyCounts(**counts)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the run if too few results are certain, unless it has failed already."""
        sent = getattr(self._config, "workeroutput", None)
        if sent is not None:
            sent[_SENT] = dataclasses.asdict(self._counts)
        elif (
            session.exitstatus == pytest.ExitCode.OK
            and not self._config.option.collectonly
            and not self._is_enough()
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the share; not of a run that only collects tests."""
        if self._config.option.collectonly:
            return
        found = str(self._counts) if self._counts.size else "no kernel was asked for it"
        by = " --certainty-by documents" if self._by == "documents" else ""
        asked = f"--fail-under-certainty {self._at_least:g}{by}"
        if self._is_enough():
            terminalreporter.write_line(f"certainty: {found}, {asked}", green=True)
        else:
            terminalreporter.write_line(f"FAIL certainty: {found}, below {asked}", red=True)

    def _is_enough(self) -> bool:
        return reaches(self._counts, self._at_least, self._by)
