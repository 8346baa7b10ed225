"""Cases of which a run takes a sample: the marker `sampled`, `--one-in`, and `--within`."""

from __future__ import annotations

import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable

import pytest
from support.numbers.codes import SEED

_STARTED = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("samples")
    text = "run one in N (at least one) of the cases of a test, and of the other tests of a folder"
    group.addoption("--one-in", type=int, default=1, metavar="N", help=text)
    group.addoption("--drawn-by", type=int, default=SEED, metavar="SEED", help="which of them")
    text = "skip tests that would start later; --drawn-by draws the order of files"
    group.addoption("--within", type=float, metavar="SECONDS", help=text)


def pytest_report_header(config: pytest.Config) -> list[str]:
    names = ("one_in", "within", "drawn_by")
    share, within, seed = (config.getoption(name) for name in names)
    limit = "" if within is None else f" --within {within:g}"
    return [f"cases: --one-in {share}{limit} --drawn-by {seed}"] if share > 1 or limit else []


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[_STARTED] = time.monotonic()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    within = item.config.getoption("within")
    if within is not None and time.monotonic() - item.config.stash[_STARTED] >= within:
        pytest.skip(f"the {within:g} s of --within are over")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    """Keeps one in n of the cases of a test marked `sampled(n)`; marks the others `exhaustive`.

    Which are kept is drawn by the seed in the header, so that all processes of a run agree. Of the
    cases that `-m` and `-k` choose then, `--one-in` keeps some.
    """
    for of_test in grouped(items, test_of):
        marker = of_test[0].get_closest_marker("sampled")
        if marker is not None:
            for item in left_out(of_test, marker.args[0], SEED):
                item.add_marker(pytest.mark.exhaustive)
    yield
    share, seed = config.getoption("one_in"), config.getoption("drawn_by")
    dropped = {item for group in grouped(items, pool_of) for item in left_out(group, share, seed)}
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if item not in dropped]
    if config.getoption("within") is not None:
        items.sort(key=lambda item: zlib.crc32(f"{seed} {item.path.name}".encode()))


def test_of(item: pytest.Item) -> str:
    """The test that an item is a case of."""
    return item.nodeid.partition("[")[0]


def pool_of(item: pytest.Item) -> str:
    """The test that an item is a case of; the folder of its file, where it is the only one."""
    test, bracket, _ = item.nodeid.partition("[")
    return test if bracket else test.partition("::")[0].rpartition("/")[0]


def grouped(
    items: list[pytest.Item], name_of: Callable[[pytest.Item], str]
) -> Iterable[list[pytest.Item]]:
    """Returns the items of each name."""
    found: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        found[name_of(item)].append(item)
    return found.values()


def left_out(group: list[pytest.Item], share: int, seed: int) -> list[pytest.Item]:
    """Returns the items of a group that a draw of one in `share` leaves out."""
    drawn = sorted(group, key=lambda item: zlib.crc32(f"{seed} {item.nodeid}".encode()))
    return drawn[-(-len(drawn) // share) :]
