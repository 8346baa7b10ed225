"""The pytest plugin: a clean simulator for each test, and the tile in the report of a failure.

It comes with the package. `--pypto-chip` and `--pypto-fidelity` choose for the whole run, the
marker `@pytest.mark.pypto(chip="Ascend910B1", fidelity="instructions")` for one test. With
`--pypto-cast` a test-suite that imports upstream's pypto runs with this package in its place.

It is imported in every project. Nothing else of the package is until a test or an option asks for
it: a project may have modules of its own called `tiling` or `simulator`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import pytest

from pypto_cast import loading

if TYPE_CHECKING:
    from pypto_cast.options.context import Options
    from pypto_cast.recording.tally import Tally

_OPTIONS: Final = (
    "cast_saturation",
    "chip",
    "copy_completion",
    "engine",
    "exact",
    "fidelity",
    "fp8_nan",
    "global_saturation",
    "inf_nan_mode",
    "int_saturation",
    "readings",
    "release",
    "satmode",
    "simt_bytes",
    "strict",
    "threads",
)

_FIDELITIES: Final = ("fast", "instructions")
_CERTAIN_BY: Final = ("choices", "documents")
"""Spelled out: numpy is not to be imported by a run of pytest that needs nothing of this."""

_TALLY: Final[pytest.StashKey[Tally]] = pytest.StashKey()
_OF_WORKER: Final = "pypto_cast_tally"
_ON_CPU: Final = "pypto-cast: the CPU stands for the NPU; nothing here runs on a device"


class _NotRewritten(MetaPathFinder):
    """Finds the modules of this package before pytest does, which parses every module of a
    distribution that has a plugin, to write its asserts anew: in each session where Python writes
    no byte code, in the first one elsewhere. No message of this package is an assert's.

    It answers for what lies in folders of this package's own alone, as Python would.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is None or not loading.are_own(path):
            return None
        return PathFinder.find_spec(fullname, path, target)


loading.ask_first(_NotRewritten())


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PyptoSim:
    """The value of the fixture `pypto_sim`: chip and fidelity that the test's casts have."""

    options: Options

    @property
    def chip(self) -> str:
        """The vendor's name of the chip."""
        return self.options.chip.name

    @property
    def fidelity(self) -> str:
        """The fidelity: "instructions" if every instruction is executed, else "fast"."""
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
    group.addoption(
        "--certainty-by",
        choices=_CERTAIN_BY,
        default="choices",
        help="with --fail-under-certainty: count results that are certain given named choices too, "
        "or by documents alone",
    )
    for name, text in (
        ("--pypto-cast", "have `import pypto` give pypto_cast"),
        ("--pypto-npu-on-cpu", "with --pypto-cast: have torch_npu and .npu() mean the CPU"),
        ("--pypto-replace-installed", "with --pypto-cast: hide a pypto that is installed"),
        ("--pypto-strict", "with --pypto-cast: what upstream refuses is an error, not a warning"),
    ):
        group.addoption(name, action="store_true", help=text)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Stand for upstream's pypto, before the first conftest imports it, until the run ends.

    Raises:
        pytest.UsageError: a pypto is installed, and is not to be hidden; or a file of the project
            stands in place of a package that this one needs.
    """
    chosen = early_config.known_args_namespace
    if not chosen.pypto_cast:
        return
    _load("--pypto-cast")
    from pypto_cast.options.context import options
    from pypto_cast.recording.tally import counting
    from pypto_cast.upstream.import_alias import InstalledPyptoError, as_pypto
    from pypto_cast.upstream.npu_requests import npu_requests

    until_the_end = contextlib.ExitStack()
    try:
        until_the_end.enter_context(as_pypto(replace_installed=chosen.pypto_replace_installed))
    except InstalledPyptoError as error:
        raise pytest.UsageError(f"--pypto-cast: {error}") from None
    until_the_end.enter_context(npu_requests(on_cpu=chosen.pypto_npu_on_cpu))
    if chosen.pypto_strict:
        until_the_end.enter_context(options(strict=True))
    early_config.stash[_TALLY] = until_the_end.enter_context(counting())
    early_config.add_cleanup(until_the_end.close)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say first that the CPU stands for the NPU."""
    return _ON_CPU if _TALLY in config.stash and config.option.pypto_npu_on_cpu else None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Name a file beside the tests that has the name of a package of this one, where an option or a
    conftest loaded that: the folder came to sys.path after it, and imports give the package.
    """
    report = yield
    if isinstance(collector, pytest.Module) and loading.are_loaded():
        try:
            loading.check_shadowing()
        except loading.ShadowedPackageError as error:
            report.outcome, report.longrepr, report.result = "failed", str(error), []
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the tally of a worker of pytest-xdist to the process that reports it."""
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    tally = session.config.stash.get(_TALLY, None)
    if output is not None and tally is not None:
        output[_OF_WORKER] = tally.counts()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the tally of a worker of pytest-xdist."""
    counts = getattr(node, "workeroutput", {}).get(_OF_WORKER)
    if counts is not None:
        node.config.stash[_TALLY].add(counts)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Report at the end the kernels that ran, and the device."""
    if _TALLY in config.stash:
        terminalreporter.write_line(f"pypto-cast: {config.stash[_TALLY]}")
        if config.option.pypto_npu_on_cpu:
            terminalreporter.write_line(_ON_CPU)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, check the chip, and count certain results if a share is asked for.

    Raises:
        pytest.UsageError: the chip is unknown, or the share is none; or a file of the project
            stands in place of a package that this one needs.
    """
    text = f"pypto({', '.join(_OPTIONS)}): options of the fixture pypto_sim for this test"
    config.addinivalue_line("markers", text)
    if (chip := config.getoption("--pypto-chip")) is not None:
        _load("--pypto-chip")
        from tiling.chips import chip_named

        try:
            chip_named(chip)
        except ValueError as error:
            raise pytest.UsageError(f"--pypto-chip: {error}") from None
    if (at_least := config.getoption("--fail-under-certainty")) is not None:
        _count_certainty(config, at_least)


def _load(option: str) -> None:
    """Load the package for an option, or name the file that shadows a part of it."""
    try:
        loading.load()
    except loading.ShadowedPackageError as error:
        raise pytest.UsageError(f"{option}: {error}") from None


def _count_certainty(config: pytest.Config, at_least: float) -> None:
    _load("--fail-under-certainty")
    from pypto_cast.kernel.certainty import observed_by
    from pypto_cast.testing.possible import check_share
    from pypto_cast.testing.session_share import SessionShare

    try:
        check_share(at_least, "--fail-under-certainty")
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None
    share = SessionShare(config, at_least, config.getoption("--certainty-by"))
    config.pluginmanager.register(share)
    observing = contextlib.ExitStack()
    observing.enter_context(observed_by(share.count))
    config.add_cleanup(observing.close)


@pytest.fixture
def pypto_sim(request: pytest.FixtureRequest) -> Iterator[PyptoSim]:
    """Default options and no tile shape for this test, whatever was set before it.

    The marker `pypto` and the command line choose chip and fidelity; nothing is left behind.
    """
    try:
        loading.load()
    except loading.ShadowedPackageError as error:
        raise pytest.fail.Exception(f"pypto_sim: {error}", pytrace=False) from None
    from pypto_cast.options.context import defaults, options

    chosen: dict[str, Any] = {}
    for name in ("chip", "fidelity"):
        if (value := request.config.getoption(f"--pypto-{name}")) is not None:
            chosen[name] = value
    for marker in reversed(list(request.node.iter_markers("pypto"))):
        if unknown := set(marker.kwargs) - {*_OPTIONS, "landing"}:  # its former name
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
    if not loading.are_loaded():
        return ""
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
