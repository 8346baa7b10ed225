"""The share of certain results of a run of pytest."""

from __future__ import annotations

from typing import Any, Final

import pytest

from pypto_cast.kernel.certainty import Certainty, share_in_words
from pypto_cast.testing.possible import reaches

_SENT: Final = "pypto_cast_certainty"
"""Under which a worker of pytest-xdist sends its counts."""


class SessionShare:
    """Counts the results of all kernels that are asked for their certainty, and judges the run.

    It is a plugin of pytest; the workers of pytest-xdist count, and their controller judges. A run
    in which no kernel is asked fails too.

    Args:
        config: of the run.
        at_least: the share of certain results below which the run fails, from 0 to 1.
    """

    def __init__(self, config: pytest.Config, at_least: float) -> None:
        self._config = config
        self._at_least = at_least
        self._counted: list[tuple[int, int]] = []

    def count(self, certainty: Certainty) -> None:
        """Add the results of a kernel."""
        self._counted.append((certainty.undecided, certainty.size))

    def _sums(self) -> tuple[int, int]:
        """Undecided results, and all."""
        return sum(u for u, _ in self._counted), sum(total for _, total in self._counted)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take the counts of a worker that is done; a worker that crashed has none."""
        if counts := getattr(node, "workeroutput", {}).get(_SENT):
            self._counted.append(tuple(counts))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the run if too few results are certain; what has failed already stays as it is."""
        sent = getattr(self._config, "workeroutput", None)
        if sent is not None:
            sent[_SENT] = self._sums()
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
        undecided, total = self._sums()
        found = share_in_words(undecided, total) if total else "no kernel was asked for it"
        asked = f"--fail-under-certainty {self._at_least:g}"
        if self._is_enough():
            terminalreporter.write_line(f"certainty: {found}, {asked}", green=True)
        else:
            terminalreporter.write_line(f"FAIL certainty: {found}, below {asked}", red=True)

    def _is_enough(self) -> bool:
        return reaches(*self._sums(), self._at_least)
