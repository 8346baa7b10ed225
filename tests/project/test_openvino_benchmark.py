"""The rows of the OpenVINO benchmark: both candidates give the same codes."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import frontends

pytest.importorskip("openvino", reason="openvino is not installed (extra oracles)")


def test_rows_compare_the_same_result() -> None:
    names = set()
    for row in frontends.openvino(1 << 12):
        actual, wanted = np.asarray(row.ours()), np.asarray(row.peer())
        assert actual.shape == wanted.shape, row.name
        np.testing.assert_array_equal(actual.view(np.uint8), wanted.view(np.uint8), row.name)
        names.add(row.name)
    assert len(names) == 36
