"""Cases of which a run takes a sample: the marker `sampled`."""

from __future__ import annotations

import zlib
from collections import defaultdict

import pytest
from support.numbers.codes import SEED


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keeps one in n of the cases of a test marked `sampled(n)`; marks the others `exhaustive`.

    Which are kept is drawn by the seed in the header, so that all processes of a run agree.
    """
    cases: dict[tuple[int, str], list[pytest.Item]] = defaultdict(list)
    for item in items:
        marker = item.get_closest_marker("sampled")
        if marker is not None:
            cases[marker.args[0], item.nodeid.partition("[")[0]].append(item)
    for (share, _), of_test in cases.items():
        drawn = sorted(of_test, key=lambda item: zlib.crc32(f"{SEED} {item.nodeid}".encode()))
        for item in drawn[-(-len(drawn) // share) :]:
            item.add_marker(pytest.mark.exhaustive)
