"""Rooms that can be imported on their own, and a wheel that works on its own."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support.environment.sources import ROOMS, ROOT, imported, module_name, sources

from pypto_cast.report.text_format import extra_hint

EXTRAS = ("typer", "rich", "jinja2", "safetensors", "distributed", "torch", "torch_npu", "sklearn")
REQUIRED = {"numpy", "ml_dtypes"}
FORMER_NAME = "pypto_cast.frontends"  # importing it is a DeprecationWarning

EXAMPLE = """\
import numpy as np
import pypto_cast as pypto
x = pypto.from_numpy(np.float32([2.0, 2049.0, 65520.0]))
pypto.set_vec_tile_shapes(16)
print(pypto.cast(x, pypto.DT_FP16, mode=pypto.CAST_RINT).numpy().tolist())
"""

every_room = pytest.mark.parametrize("room", ROOMS)


def python(code: str, *, path: Path, cwd: Path) -> str:
    """Run code in a fresh interpreter that finds packages under `path` first; what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def needs_extras(path: Path) -> bool:
    """True if a module imports something at once that is not required."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    at_once = ast.Module(body=[n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))])
    names = {name.split(".")[0] for _, name in imported(at_once, package=module_name(path))}
    return bool(names - REQUIRED - set(ROOMS) - set(sys.stdlib_module_names))


@pytest.mark.slow
@every_room
def test_a_room_can_be_imported_first(room: str, tmp_path: Path) -> None:
    """Every module of it that needs no extra, in a fresh interpreter."""
    files = [path for path in sorted(sources(room)) if path.name != "__main__.py"]
    modules = [module_name(path) for path in files if not needs_extras(path)]
    assert room in modules
    modules = [name for name in modules if name != FORMER_NAME]
    code = f"import importlib, json, sys\nfor name in {modules!r}: importlib.import_module(name)\n"
    code += "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    loaded = set(json.loads(python(code, path=ROOT, cwd=tmp_path)))
    allowed = set(ROOMS[: ROOMS.index(room) + 1])
    assert room in loaded
    assert loaded & set(ROOMS) <= allowed


@pytest.mark.slow
def test_importing_the_package_imports_no_extra(tmp_path: Path) -> None:
    code = "import pypto_cast.interface, json, sys\nprint(json.dumps(sorted(sys.modules)))"
    loaded = {name.split(".")[0] for name in json.loads(python(code, path=ROOT, cwd=tmp_path))}
    assert {"pypto_cast", "simulator", "numpy", "ml_dtypes"} <= loaded
    assert loaded.isdisjoint(EXTRAS)


@every_room
def test_a_room_says_that_it_is_typed(room: str) -> None:
    assert (ROOT / room / "py.typed").is_file()


# --- The wheel ---------------------------------------------------------------------------------


def build_wheel(place: Path) -> Path:
    """The wheel of a copy of the checkout, as a machine without a compiler builds it.

    A copy, so that building leaves nothing behind in the checkout.
    """
    checkout = place / "checkout"
    checkout.mkdir()
    for room in ROOMS:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / room, checkout / room, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"):
        shutil.copy(ROOT / name, checkout / name)
    settings = (checkout / "pyproject.toml").read_text(encoding="utf-8")
    backend = re.search(r'^build-backend = "(\w+)', settings, re.MULTILINE)
    assert backend is not None
    at_hand = importlib.util.find_spec(backend[1]) is not None
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", str(checkout), "--no-deps", "--quiet"),
            *(["--no-build-isolation"] if at_hand else []),
            *("--disable-pip-version-check", "--wheel-dir", str(place / "dist")),
        ],
        cwd=place,
        env={**os.environ, "CXX": "no-such-compiler"},
        capture_output=True,
        text=True,
        check=False,
    )
    output = done.stdout + done.stderr
    if not at_hand and f"No matching distribution found for {backend[1]}" in output:
        pytest.skip(f"{backend[1]} builds the wheel; it is not installed and no index has it")
    assert done.returncode == 0, output
    (built,) = (place / "dist").glob("*.whl")
    assert built.name.endswith("-py3-none-any.whl")
    return built


def listed(folder: Path) -> set[Path]:
    """Every file under a folder but what Python compiles for itself."""
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {path for path in files if "__pycache__" not in path.parts}


def test_the_example_runs_from_the_checkout(tmp_path: Path) -> None:
    assert len(EXAMPLE.splitlines()) == 5
    assert python(EXAMPLE, path=ROOT, cwd=tmp_path) == "[2.0, 2048.0, inf]\n"


@pytest.mark.exhaustive  # pip builds it
def test_the_wheel_holds_the_rooms_alone_and_runs_the_example(tmp_path: Path) -> None:
    """One test, because building takes the longest of all."""
    site = tmp_path / "site"
    with zipfile.ZipFile(build_wheel(tmp_path)) as archive:
        archive.extractall(site)

    where = f"import {', '.join(ROOMS)}\n" + "".join(f"print({room}.__file__)\n" for room in ROOMS)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for line in python(where, path=site, cwd=elsewhere).split():
        assert Path(line).is_relative_to(site)
    assert python(EXAMPLE, path=site, cwd=elsewhere) == "[2.0, 2048.0, inf]\n"

    for room in ROOMS:
        assert listed(site / room) == listed(ROOT / room)
    top = {path.name for path in site.iterdir() if not path.name.endswith(".dist-info")}
    assert top == set(ROOMS)

    (metadata,) = site.glob("*.dist-info/METADATA")
    text = metadata.read_text(encoding="utf-8")
    code = "import pypto_cast; print(pypto_cast.__version__)"
    assert f"\nVersion: {python(code, path=site, cwd=elsewhere).strip()}\n" in text
    required = re.findall(r"^Requires-Dist: ([\w-]+)[^;\n]*$", text, re.MULTILINE)
    assert {name.replace("-", "_") for name in required} == REQUIRED


def test_the_version_stands_in_one_place() -> None:
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project = settings.partition("[project]\n")[2].partition("\n[")[0]
    assert re.search(r'^dynamic = \["version"\]', project, re.MULTILINE)
    assert not re.search(r"^version\b", project, re.MULTILINE)


# --- Extras --------------------------------------------------------------------------------------


def test_hints_name_extras_that_there_are() -> None:
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    block = settings.partition("[project.optional-dependencies]\n")[2].partition("\n[")[0]
    extras = set(re.findall(r"^(\w+) = \[", block, re.MULTILINE))
    code = "\n".join(path.read_text(encoding="utf-8") for path in sources("pypto_cast"))
    hinted = set(re.findall(r"extra_hint\([\"'](\w+)[\"']\)", code))
    assert {"cli", "viz", "torch", "gguf", "dask"} <= hinted <= extras
    assert extra_hint("cli").startswith('pip install ".[cli]" in the checkout')


def test_nothing_says_that_an_index_has_the_package() -> None:
    folders = (*ROOMS, "docs", "examples", "benchmarks", "tests")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.*")]
    files += ROOT.glob("*.md")
    kinds = (".py", ".md", ".ipynb", ".json")
    name = "pypto-cast" + "["
    found = [
        str(path.relative_to(ROOT))
        for path in files
        if path.suffix in kinds and name in path.read_text(encoding="utf-8")
    ]
    assert found == []
