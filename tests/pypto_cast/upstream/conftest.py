"""One environment with upstream's wheel for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.environment import upstream_wheel


@pytest.fixture(scope="session")
def python_with_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return upstream_wheel.python_with_wheel(tmp_path_factory.mktemp("upstream"))
