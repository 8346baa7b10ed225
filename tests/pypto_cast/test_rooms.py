"""Files of the user that have the name of a package of ours are named, and not run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "shadow",
    ["tiling/__init__.py", "simulator.py", "ascend_kernels/__init__.py", "ascend_kernels.py"],
)
def test_a_file_that_shadows_is_named_and_not_run(shadow: str, tmp_path: Path) -> None:
    path = tmp_path / shadow
    path.parent.mkdir(exist_ok=True)
    path.write_text("print('it ran')\n")
    done = python(tmp_path, "-c", "import pypto_cast")
    last = done.stderr.splitlines()[-1]
    name = Path(shadow).parts[0].removesuffix(".py")
    assert last.startswith(f"ImportError: {path} shadows the package {name!r} of pypto_cast, ")
    assert str(ROOT / name) in last
    assert done.stdout == ""


def test_a_module_that_is_imported_already_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tiling.py"
    path.touch()
    done = python(tmp_path, "-c", "import tiling, sys; sys.path.pop(0); import pypto_cast")
    assert f"ImportError: {path} shadows" in done.stderr


def test_a_script_of_such_a_name_is_named(tmp_path: Path) -> None:
    path = tmp_path / "simulator.py"
    path.write_text("import pypto_cast\n")
    assert f"ImportError: {path} shadows" in python(tmp_path, str(path)).stderr


@pytest.mark.parametrize("name", ["tiling", "simulator"])
def test_a_folder_without_init_does_not_shadow(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    done = python(tmp_path, "-c", "import pypto_cast")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_packages_may_be_reached_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(ROOT)
    done = python(tmp_path / "link", "-c", "import pypto_cast, tiling; print(tiling.__file__)")
    assert (done.returncode, done.stderr) == (0, "")
