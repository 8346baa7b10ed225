"""The pytest plugin: a clean simulator for each test, and the tile in the report of a failure.

It comes with the package. `--pypto-chip` and `--pypto-fidelity` choose for the whole run, the
marker `@pytest.mark.pypto(chip="Ascend910B1", fidelity="instructions")` for one test.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from pypto_cast.options import Options

_OPTIONS: Final = (
    "chip",
    "engine",
    "exact",
    "fidelity",
    "inf_nan_mode",
    "landing",
    "strict",
    "threads",
)

_FIDELITIES: Final = ("fast", "instructions")
"""Spelled out: numpy is not to be imported by a run of pytest that needs nothing of this."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PyptoSim:
    """What the fixture `pypto_sim` gives: what casts of the test are simulated on."""

    options: Options

    @property
    def chip(self) -> str:
        """The vendor's name of the chip."""
        return self.options.chip.name

    @property
    def fidelity(self) -> str:
        """Whether every instruction is executed ("instructions") or not ("fast")."""
        return self.options.fidelity

    def __repr__(self) -> str:
        return f"<pypto_sim: {self.chip}, fidelity {self.fidelity}>"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the command line options."""
    group = parser.getgroup("pypto_cast")
    group.addoption("--pypto-chip", metavar="NAME", help="chip of the fixture pypto_sim")
    group.addoption("--pypto-fidelity", choices=_FIDELITIES, help="of the fixture pypto_sim")
    group.addoption(
        "--fail-under-certainty",
        type=float,
        metavar="SHARE",
        help="fail if a smaller share of the results of Kernel.certainty is certain, as 0.99",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, check the chip, and count certain results if a share is asked for.

    Raises:
        pytest.UsageError: the chip is unknown, or the share is none.
    """
    text = f"pypto({', '.join(_OPTIONS)}): options of the fixture pypto_sim for this test"
    config.addinivalue_line("markers", text)
    if (chip := config.getoption("--pypto-chip")) is not None:
        from tiling.chips import chip_named

        try:
            chip_named(chip)
        except ValueError as error:
            raise pytest.UsageError(f"--pypto-chip: {error}") from None
    if (at_least := config.getoption("--fail-under-certainty")) is not None:
        _count_certainty(config, at_least)


def _count_certainty(config: pytest.Config, at_least: float) -> None:
    from pypto_cast.kernel.certainty import observed_by
    from pypto_cast.testing.possible import check_share
    from pypto_cast.testing.session_share import SessionShare

    try:
        check_share(at_least, "--fail-under-certainty")
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None
    share = SessionShare(config, at_least)
    config.pluginmanager.register(share)
    observing = contextlib.ExitStack()
    observing.enter_context(observed_by(share.count))
    config.add_cleanup(observing.close)


@pytest.fixture
def pypto_sim(request: pytest.FixtureRequest) -> Iterator[PyptoSim]:
    """Default options and no tile shape for this test, whatever was set before it.

    The marker `pypto` and the command line choose chip and fidelity; nothing is left behind.
    """
    from pypto_cast.options import defaults, options

    chosen: dict[str, Any] = {}
    for name in ("chip", "fidelity"):
        if (value := request.config.getoption(f"--pypto-{name}")) is not None:
            chosen[name] = value
    for marker in reversed(list(request.node.iter_markers("pypto"))):
        if unknown := set(marker.kwargs) - set(_OPTIONS):
            raise pytest.UsageError(f"marker pypto has {', '.join(_OPTIONS)}, not {unknown}")
        if marker.args:
            raise pytest.UsageError(f"marker pypto takes its options by name, not {marker.args}")
        chosen.update(marker.kwargs)
    with defaults(), options(**chosen) as current:
        yield PyptoSim(options=current)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add chip, fidelity and the tiles that differ to the report of a failed test."""
    report = yield
    error = call.excinfo.value if call.excinfo is not None else None
    if report.failed and error is not None and (text := _section(item, error)):
        report.sections.append(("pypto_cast", text))
    return report


def _section(item: pytest.Item, error: BaseException) -> str:
    from pypto_cast.testing.bits import BitsDifferError
    from pypto_cast.testing.possible import ImpossibleError
    from simulator.machine.memory import SimulatorFault

    if not isinstance(error, (BitsDifferError, ImpossibleError, SimulatorFault)):
        return ""
    lines = []
    sim = getattr(item, "funcargs", {}).get("pypto_sim")
    if isinstance(sim, PyptoSim):
        lines.append(f"chip {sim.chip}, fidelity {sim.fidelity}")
    if isinstance(error, SimulatorFault):
        lines.append(str(error))
    else:
        found = error.impossible if isinstance(error, ImpossibleError) else error.differences
        lines += dict.fromkeys(entry.place for entry in found if entry.place)
    return "\n".join(lines)
