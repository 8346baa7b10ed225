"""The rows of the OpenVINO benchmark: both candidates give the same codes."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import openvino_rows

pytest.importorskip("openvino", reason="openvino is not installed (extra oracles)")


def test_rows_compare_the_same_result() -> None:
    names = set()
    for name, ours, peer in openvino_rows.rows(1 << 12):
        actual, wanted = np.asarray(ours()), np.asarray(peer())
        assert actual.shape == wanted.shape, name
        np.testing.assert_array_equal(actual.view(np.uint8), wanted.view(np.uint8), name)
        names.add(name)
    assert len(names) == 36
