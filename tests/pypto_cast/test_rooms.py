"""Files of the user that have the name of a package of ours are named, and not run."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.environment.sources import ROOT

import pypto_cast as pypto
from ascend_kernels.schedule.planner.tiles.tile_graph import TileGraph
from pypto_cast.loading import ENTRIES, entry


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
    ("shadow", "use"),
    [
        ("tiling/__init__.py", "pypto_cast.cast"),
        ("simulator.py", "import pypto_cast.testing"),
        ("ascend_kernels/__init__.py", "from pypto_cast import *"),
        ("ascend_kernels.py", "from pypto_cast import options"),
    ],
)
def test_a_file_that_shadows_is_named_and_not_run(shadow: str, use: str, tmp_path: Path) -> None:
    path = tmp_path / shadow
    path.parent.mkdir(exist_ok=True)
    path.write_text("print('it ran')\n")
    done = python(tmp_path, "-c", f"import pypto_cast\n{use}")
    last = done.stderr.splitlines()[-1]
    name = Path(shadow).parts[0].removesuffix(".py")
    says = f"{path} shadows the package {name!r} of pypto_cast, {ROOT / name}: "
    assert last.startswith(f"pypto_cast.loading.ShadowedPackageError: {says}")
    assert done.stdout == ""


def test_the_version_names_a_file_that_shadows(tmp_path: Path) -> None:
    path = tmp_path / "simulator.py"
    path.write_text("print('it ran')\n")
    done = python(tmp_path, "-m", "pypto_cast", "--version")
    assert f"ShadowedPackageError: {path} shadows" in done.stderr
    assert (done.returncode, done.stdout) == (1, "")


def test_a_module_that_is_imported_already_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tiling.py"
    path.touch()
    done = python(tmp_path, "-c", "import tiling, sys; sys.path.pop(0); import pypto_cast.cast.api")
    assert f"ShadowedPackageError: {path} shadows" in done.stderr


def test_a_script_of_such_a_name_is_named(tmp_path: Path) -> None:
    path = tmp_path / "simulator.py"
    path.write_text("import pypto_cast\npypto_cast.cast\n")
    assert f"ShadowedPackageError: {path} shadows" in python(tmp_path, str(path)).stderr


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", ["tiling", "simulator"])
def test_a_folder_without_init_does_not_shadow(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    done = python(tmp_path, "-c", "import pypto_cast.cast.api")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_the_packages_may_be_reached_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(ROOT)
    done = python(
        tmp_path / "link", "-c", "import pypto_cast.cast.api, tiling; print(tiling.__file__)"
    )
    assert (done.returncode, done.stderr) == (0, "")


# --- Loaded when used ----------------------------------------------------------------------------


@pytest.mark.slow
def test_the_package_alone_loads_nothing(tmp_path: Path) -> None:
    code = (
        "import sys, pypto_cast, pypto_cast.pytest_plugin\n"
        "assert pypto_cast.__version__\n"
        "print(*{m.partition('.')[0] for m in sys.modules} & {'numpy', 'tiling', 'simulator'})\n"
        "assert {'cast', 'options', 'DT_FP16', 'testing'} <= {*dir(pypto_cast), 'testing'}\n"
        "names = {n for n in dir(pypto_cast) if not n.startswith('__')}\n"
        "assert names == set(pypto_cast.__all__) and 'tune' in names, names\n"
        "print(*{m.partition('.')[0] for m in sys.modules} & {'tiling'})\n"
    )
    done = python(tmp_path, "-c", code)
    assert (done.stdout, done.stderr) == ("\ntiling\n", "")


MOST_MODULES = 60
"""Modules of the packages that an import may load."""
MOST_OF_A_CAST = 180
"""Those that a first cast may load: every group of operations is one, for its rows are methods."""
FIRST_CAST = "import pypto_cast as p; p.cast(p.tensor([8], p.DT_FP32, data=[1.0] * 8), p.DT_FP16)"
HEAVY = ("hypothesis", "typer", "click", "rich", "torch", "onnx", "safetensors", "jinja2")


@pytest.mark.parametrize(
    ("use", "most"),
    [
        ("import pypto_cast", MOST_MODULES),
        ("from pypto_cast.cli.main import main; main(['--version'])", MOST_MODULES),
        (FIRST_CAST, MOST_OF_A_CAST),
    ],
)
def test_an_import_and_a_first_use_load_nothing_heavy(use: str, most: int, tmp_path: Path) -> None:
    code = (
        f"import sys; {use}\n"
        f"print(*{{*{HEAVY}}} & {{*sys.modules}})\n"
        "ours = ('pypto_cast', 'tiling', 'simulator', 'ascend_kernels')\n"
        "print(sum(name.split('.')[0] in ours for name in sys.modules))\n"
    )
    done = python(tmp_path, "-W", "ignore", "-c", code)
    heavy, loaded = done.stdout.splitlines()[-2:]
    assert heavy == "", done.stderr
    assert int(loaded) <= most


@pytest.mark.slow
def test_a_command_that_is_named_loads_no_other(tmp_path: Path) -> None:
    pytest.importorskip("typer", reason="typer is not installed (extra cli)")
    code = (
        "import sys; from pypto_cast.cli.main import main; main(['matrix'])\n"
        "print(*(m for m in sys.modules if m.startswith('pypto_cast.cli.commands.')))\n"
    )
    done = python(tmp_path, "-c", code)
    assert done.stdout.splitlines()[-1] == "pypto_cast.cli.commands.matrix_command", done.stderr


@pytest.mark.slow
@pytest.mark.sampled(4)
@pytest.mark.parametrize("first", ["options", "runtime", "interface", "kernel.jit"])
def test_any_submodule_may_be_imported_first(first: str, tmp_path: Path) -> None:
    """It is loaded once, and its name does not take the place of a function's."""
    code = (
        "import importlib, pypto_cast, sys\n"
        f"one = importlib.import_module('pypto_cast.{first}')\n"
        f"assert one is sys.modules['pypto_cast.{first}'] and one.__spec__.origin == one.__file__\n"
        "assert callable(pypto_cast.options) and pypto_cast.platform is not pypto_cast\n"
        "assert pypto_cast.interface.Tensor is pypto_cast.Tensor\n"
        "from pypto_cast.options.context import options\n"
        "assert options is pypto_cast.options\n"
    )
    done = python(tmp_path, "-W", "error", "-c", code)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_what_stands_on_the_core_is_loaded_when_it_is_used(tmp_path: Path) -> None:
    code = (
        f"import sys; {FIRST_CAST}\n"
        "on_the_core = ('routes', 'tuning', 'device', 'checkpoints', 'testing', 'dialects')\n"
        "loaded = [m for m in sys.modules if m.startswith('pypto_cast.')]\n"
        "assert not [m for m in loaded if m.split('.')[1] in on_the_core], loaded\n"
        "planned = [m for m in sys.modules if m.startswith('ascend_kernels.schedule')]\n"
        "assert not planned and 'pypto_cast.kernel.graph' not in sys.modules, planned\n"
        "assert p.PlanError.__module__ == 'ascend_kernels.schedule.planner.tiles.tile_graph'\n"
        "from pypto_cast import tune\n"
        "assert tune is p.tune is sys.modules['pypto_cast.tuning.tune'].tune\n"
        "assert p.Route.__module__ == 'pypto_cast.routes.cast_routes'\n"
        "module = sys.modules['pypto_cast.routes.cast_routes']\n"
        "assert callable(p.routes) and p.routes is module.routes\n"
        "assert callable(p.testing.assert_fits) and p.dialects.__name__ == 'pypto_cast.dialects'\n"
    )
    done = python(tmp_path, "-W", "ignore", "-c", code)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_entry_is_a_name_of_its_module() -> None:
    for name, module in ENTRIES.items():
        assert getattr(importlib.import_module(module), name) is entry(name)
    declared = (ROOT / "pypto_cast" / "interface.py").read_text(encoding="utf-8")
    block = declared.partition("TYPE_CHECKING:")[2].partition("\n\n")[0]
    shown = {
        (name, module) for module, name in re.findall(r"from ([\w.]+) import (\w+) as \2", block)
    }
    house = {
        ("certainty_page", "pypto_cast.kernel.reports.certainty_page"),
        ("certainty_tables", "pypto_cast.kernel.reports.certainty_page"),
        ("check_conditions", "pypto_cast.tensors.expression_conditions"),
        ("model_of_file", "pypto_cast.device.device_model"),
        ("notebook_html", "pypto_cast.report.notebook"),
        ("simplified", "pypto_cast.tensors.expression_rules"),
        ("tune_kernel", "pypto_cast.tuning.kernel_search"),
    }
    assert shown == set(ENTRIES.items()) - house


def test_type_checkers_see_every_name() -> None:
    """The stars of the package reach all names: mypy reads a stub where there is one, follows an
    `__all__` that is a list of texts, and takes names that are assigned or imported as themselves.
    """
    shown: set[str] = set()
    for module in re.findall(r"    from ([\w.]+) import \*", inspect.getsource(pypto)):
        path = Path(importlib.import_module(module).__file__ or "")
        stub = path.with_suffix(".pyi")
        read = stub if stub.exists() else path
        for node in ast.walk(ast.parse(read.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                shown.update(ast.literal_eval(node.value))
            elif isinstance(node, ast.Assign) and read.stem == "interface":
                shown.add(ast.unparse(node.targets[0]))
            elif isinstance(node, ast.ImportFrom):
                shown.update(name.name for name in node.names if name.name == name.asname)
    assert set(pypto.__all__) <= shown


def classes_of(kind: object) -> Iterator[type]:
    """Yields the classes that an annotation names."""
    if isinstance(kind, type):
        yield kind
    for part in typing.get_args(kind):
        yield from classes_of(part)


def test_types_that_users_receive_are_names_of_the_package() -> None:
    names = {name: getattr(pypto, name) for name in pypto.__all__}
    given: dict[str, object] = {k: f for k, f in names.items() if inspect.isfunction(f)}
    for name, kind in names.items():
        if isinstance(kind, type) and kind.__module__.startswith("pypto_cast."):
            for member, held in vars(kind).items():
                function = held.fget if isinstance(held, property) else held
                if inspect.isfunction(function) and not member.startswith("_"):
                    given[f"{name}.{member}"] = function
    # Annotations may name what is loaded only when a schedule is used.
    late = {name: entry(name) for name in ("Schedule", "TaskEstimate", "TunedKernel")}
    late |= {"TileGraph": TileGraph}
    received = {
        f"{name} gives {kind.__name__}"
        for name, function in given.items()
        for kind in classes_of(typing.get_type_hints(function, localns=late).get("return"))
        if kind.__module__.startswith("pypto_cast.") and kind not in names.values()
    }
    # The body of a `with` statement gets it, and needs none of it.
    assert [each for each in received if not each.startswith("what_if gives ")] == []
    assert {"Candidate", "TunedCast", "TilePlan", "Verdict"} <= names.keys()


@pytest.mark.slow
def test_threads_that_use_it_first_get_the_same(tmp_path: Path) -> None:
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "import pypto_cast\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        "    found = set(pool.map(lambda _: pypto_cast.cast, range(8)))\n"
        "assert found == {pypto_cast.cast}\n"
    )
    done = python(tmp_path, "-c", code)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("first", "use"),
    [
        ("import pypto_cast", "print(pypto_cast.__name__, pypto_cast.cast.__name__)"),
        ("from pypto_cast.cli.main import main", "print(main(['sweep', 's.toml', '--jobs', '2']))"),
    ],
    ids=["package", "command"],
)
def test_it_may_be_used_first_once_the_main_thread_has_ended(
    first: str, use: str, tmp_path: Path
) -> None:
    if "cli" in first:
        pytest.importorskip("typer", reason="typer is not installed (extra cli)")
    sweep = ('output = "s.jsonl"', "shapes = [[8], [16]]", 'pairs = [["DT_FP32", "DT_FP16"]]')
    (tmp_path / "s.toml").write_text("\n".join(sweep))
    code = (
        "import threading\n"
        f"{first}\n"
        "def late():\n"
        "    threading.main_thread().join()\n"
        f"    {use}\n"
        "threading.Thread(target=late).start()\n"
    )
    done = python(tmp_path, "-c", code)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] in ("pypto_cast cast", "0")


# --- The plugin of pytest in a project of others --------------------------------------------------

PROJECT = {
    "tiling.py": "NAME = 'their tiling'\n",
    "simulator.py": "class Broken(Exception):\n    pass\n",
    "conftest.py": "import tiling\n",
    "test_theirs.py": (
        "import sys, simulator, tiling\n"
        "def test_own():\n"
        "    assert tiling.NAME == 'their tiling'\n"
        "    assert 'pypto_cast.cast.api' not in sys.modules and 'numpy' not in sys.modules\n"
        "def test_that_fails():\n"
        "    raise simulator.Broken('as they mean it')\n"
    ),
    "test_ours.py": "def test_with_the_fixture(pypto_sim):\n    pass\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in PROJECT.items():
        (tmp_path / name).write_text(text)
    return tmp_path


PLUGIN = ("-m", "pytest", "-p", "pypto_cast.pytest_plugin", "-p", "no:cacheprovider", "-q")


@pytest.mark.slow
def test_a_project_with_modules_of_these_names_is_left_alone(project: Path) -> None:
    done = python(project, *PLUGIN, "test_theirs.py")
    assert done.returncode == 1
    assert "simulator.Broken: as they mean it" in done.stdout
    assert "1 failed, 1 passed" in done.stdout
    assert "INTERNALERROR" not in done.stdout + done.stderr


@pytest.mark.slow
def test_a_test_that_uses_the_plugin_is_told_of_the_clash(project: Path) -> None:
    done = python(project, *PLUGIN)
    assert "1 failed, 1 passed, 1 error" in done.stdout
    says = f"pypto_sim: {project / 'tiling.py'} shadows the package 'tiling' of pypto_cast"
    assert says in done.stdout
    assert "During handling" not in done.stdout


@pytest.mark.slow
def test_a_clash_in_a_folder_of_tests_is_named(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "tiling.py").write_text("NAME = 'their tiling'\n")
    (tmp_path / "tests" / "test_theirs.py").write_text(
        "import tiling\nNAME = tiling.NAME\ndef test_own():\n    assert NAME == 'their tiling'\n"
    )
    done = python(tmp_path, *PLUGIN, "tests", "--pypto-cast")
    assert done.returncode == 2
    assert f"{tmp_path / 'tests' / 'tiling.py'} shadows the package 'tiling'" in done.stdout
    assert "AttributeError" not in done.stdout + done.stderr
    assert "INTERNALERROR" not in done.stdout + done.stderr
    assert python(tmp_path, *PLUGIN, "tests").returncode == 0


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "option", ["--pypto-chip=Ascend910B1", "--fail-under-certainty=0.5", "--pypto-cast"]
)
def test_an_option_that_needs_the_package_names_the_clash(option: str, project: Path) -> None:
    done = python(project, *PLUGIN, option)
    assert done.returncode == 4
    name = option.partition("=")[0]
    assert f"ERROR: {name}: {project / 'tiling.py'} shadows the package" in done.stderr
