"""The command: options, help and exit codes that all commands share."""

from __future__ import annotations

import ast
import importlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.environment.command import Command, command, npy
from support.environment.sources import ROOT, tree_of
from support.programs.upstream_dumps import DUMPS, compiler, unpacked

from docs.generators import command_page
from docs.generators.command_words import OPTIONS_ZH, option_zh
from pypto_cast.cli.command_list import COMMANDS, FOUND, exit_codes
from pypto_cast.cli.commands import certainty_command

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

terminal = importlib.import_module("pypto_cast.report.terminal")
__all__ = ["command", "npy"]  # fixtures

OWN = sorted({*COMMANDS} - {"run"})  # run prints as its program does
every_command = pytest.mark.parametrize("name", COMMANDS)
KERNEL = """
import pypto_cast as pypto

@pypto.frontend.jit
def half(x: pypto.Tensor[[16, 64], pypto.DT_FP32], y: pypto.Tensor[[16, 64], pypto.DT_FP16]):
    pypto.set_vec_tile_shapes(16, 64)
    y[:] = pypto.cast(x, pypto.DT_FP16)
"""
SHORT = {
    "cast": "x.npy --to fp16 --tile 8,5",
    "explain": "2.5 --from fp16 --to int8",
    "compare": "2.5 --from fp16 --to int8",
    "matrix": "",
    "route": "--from fp32 --to int8",
    "trace": "x.npy --to fp16",
    "certainty": "k.py::half --inputs x.npz",
    "schedule": "k.py::half",
    "compile": "softmax.py::softmax -o compiled --python wheel/python",
    "check-schedule": "--upstream-dump softmax",
    "operations": "exp",
    "lint": "k.py",
    "tune": "--shape 64,96 --from fp32 --to fp16",
    "sweep": "s.toml",
    "checkpoint": "m.npz --to bf16 -o m2.npz",
    "diff": "x.npy x.npy",
    "judge": "y.npy --golden y.npy",
    "verify": "--pair fp16-int8",
    "device-check": "--dry-run",
    "facts": "",
}
"""A short run of each command of OWN; no device, and a stand-in for upstream's compiler."""
IN_PTY = "import pty, sys; pty.spawn([sys.executable, '-m', 'pypto_cast', *sys.argv[1:]])"


@pytest.fixture
def folder(npy: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(npy.parent)
    monkeypatch.setenv("COLUMNS", "80")
    Path("k.py").write_text(KERNEL)
    np.savez("x.npz", x=np.ones((16, 64), np.float32))
    np.savez("m.npz", w=np.ones((4, 8), np.float32))
    np.save("y.npy", np.ones(8, np.float16))
    Path("s.toml").write_text(
        'shapes = [[64, 96]]\npairs = [["fp32", "fp16"]]\noutput = "s.jsonl"\n'
    )
    shutil.copy(DUMPS / "softmax.py", "softmax.py")
    unpacked("softmax", npy.parent)
    compiler(npy.parent / "wheel")
    return npy.parent


def test_summaries_fit_80_columns(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    listed = command("-h").out.partition("\nCasts:\n")[2]
    assert "..." not in listed
    assert re.findall(r"^  ([a-z][a-z-]+)  ", listed, re.M) == [*COMMANDS]


@every_command
def test_the_help_of_a_command(
    command: Command, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Lines of 80 columns, exit codes at the end, and the shared options but of run."""
    monkeypatch.setenv("COLUMNS", "80")
    text = command(name, "-h").out
    assert max(map(len, text.splitlines())) <= 80
    assert " ".join(text.split()).endswith(exit_codes(name))
    for option in ("--json", "-q, --quiet", "--no-progress"):
        assert (f"  {option} " in text) == (name != "run")


@every_command
def test_exit_code_1_is_in_the_table_of_those_that_have_it(name: str) -> None:
    source = ROOT / "pypto_cast/cli/commands" / f"{name.replace('-', '_')}_command.py"
    raised = [
        ast.unparse(node.exc)
        for node in ast.walk(tree_of(source))
        if isinstance(node, ast.Raise) and node.exc is not None
    ]
    assert any(text.startswith("typer.Exit(") for text in raised) == (name in FOUND)


def test_the_chinese_page_words_every_command() -> None:
    page = command_page.page_zh()
    assert [name for name in COMMANDS if f"| [{name}](#{name}) |" not in page] == []
    assert [name for name in FOUND if f"| `{name}` | 1 | " not in page] == []


FLAG = re.compile(r"(?<![\w-])--?[a-z][\w-]*")
SHARED = {"-q", "--no-progress", "-h", "--quiet", "--help"}


def test_the_chinese_page_words_every_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    texts = set()
    parts = dict(re.findall(r"^## ([\w-]+)\n(.*?)(?=^## |\Z)", command_page.page_zh(), re.M | re.S))
    for name in COMMANDS:
        command_page.help_of.cache_clear()
        options = command_page.options_of(name)
        shown = {flag for label, _ in options for flag in FLAG.findall(label)}
        heads = re.findall(r"^  (-\S.*?)(?:  |$)", command_page.help_of(name), re.M)
        listed = {flag for head in heads for flag in FLAG.findall(head)}
        assert shown == listed - SHARED, name
        rows = re.findall(r"^\| (`.+`) \| (.*) \|$", parts[name], re.M)
        assert [label for label, _ in rows] == [f"`{label}`" for label, _ in options]
        assert all(re.search(r"[\u4e00-\u9fff]", text) for _, text in rows)
        texts |= {text for _, text in options}
    command_page.help_of.cache_clear()
    assert {*OPTIONS_ZH} <= texts
    with pytest.raises(LookupError, match=r"no Chinese words .*: Of another kind"):
        option_zh("Of another kind.")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SHORT)
def test_quiet_prints_errors_alone(command: Command, folder: Path, name: str) -> None:
    words = SHORT[name].split()
    loud = command(name, *words, "--no-progress")
    for path in ("s.jsonl", "m2.npz"):
        Path(path).unlink(missing_ok=True)
    shutil.rmtree("compiled", ignore_errors=True)
    quiet = command(name, *words, "--quiet")
    assert (quiet.code, quiet.out, quiet.err) == (loud.code, "", "")
    assert loud.out or name == "lint"


@pytest.mark.parametrize("name", OWN)
def test_quiet_keeps_errors(command: Command, folder: Path, name: str) -> None:
    assert command(name, "-q", "--no-such-option").error


def test_every_command_but_run_has_a_short_run() -> None:
    assert sorted(SHORT) == OWN


@pytest.mark.parametrize("name", SHORT)
def test_every_command_prints_one_document_with_json(
    command: Command, folder: Path, name: str
) -> None:
    ran = command(name, *SHORT[name].split(), "--json", "--no-progress")
    assert ran.code in (0, 1)
    assert isinstance(ran.json, dict)


def test_quiet_keeps_json(command: Command) -> None:
    words = ("explain", "2.5", "--from", "fp16", "--to", "int8", "--json")
    assert command(*words, "-q").json == command(*words).json


def test_quiet_lint_ends_as_before(command: Command, folder: Path) -> None:
    Path("k.py").write_text(KERNEL.replace("DT_FP16", "DT_INT8").replace("x, ", "x + 0.5, "))
    loud, quiet = command("lint", "k.py"), command("lint", "k.py", "-q")
    assert (quiet.code, quiet.out) == (loud.code, "")


def test_quiet_ends_with_its_command(command: Command) -> None:
    before = [*warnings.filters]
    command("matrix", "-q")
    assert warnings.filters == before
    assert command("matrix").out


@pytest.mark.slow
@pytest.mark.sampled(4)
@pytest.mark.skipif(os.name != "posix", reason="there are no pseudo-terminals")
@pytest.mark.parametrize(
    ("settings", "codes"),
    [
        ({"TERM": "xterm-256color"}, {"1", "2", "0", "33"}),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, {"1", "2", "0"}),
        ({"TERM": "dumb"}, set()),
    ],
    ids=["terminal", "NO_COLOR", "dumb"],
)
def test_colours_of_a_terminal(folder: Path, settings: dict[str, str], codes: set[str]) -> None:
    words = ["checkpoint", "m.npz", "--to", "fp16", "--no-progress"]
    np.savez("m.npz", w=np.full((4, 8), 1e9, np.float32))
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "TERM")}
    environment = {**kept, "PYTHONPATH": str(ROOT), "COLUMNS": "80", **settings}
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
    ran = subprocess.run(
        [sys.executable, "-c", IN_PTY, *words], **streams, text=True, env=environment, check=True
    )
    assert "m.npz" in ran.stdout
    found = set(re.findall(r"\x1b\[([\d;]*)m", ran.stdout))
    assert found == codes
    assert ("\x1b" in ran.stdout) == bool(codes)


@pytest.mark.parametrize("step", ["advance", "update"])
@pytest.mark.parametrize(("shown", "said"), [(True, "casting: about 5 min left\n"), (False, "")])
def test_long_work_says_its_rest_where_no_bar_is_drawn(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    shown: bool,
    said: str,
) -> None:
    times = [0.0]
    with terminal.printing(terminal.Verbosity(progress=shown)), terminal.progress() as bar:
        monkeypatch.setattr(bar, "get_time", lambda: times[-1])
        task = bar.add_task("casting", total=131, completed=100, kept=100)
        for _ in range(2):
            times.append(times[-1] + 10)
            getattr(bar, step)(task, advance=1)
    assert capsys.readouterr().err == (said and f"pypto-cast: {said}")


def test_further_runs_of_a_kernel_are_said_if_they_are_long(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One more on the other chip, and one of --what-if, as nothing is left open."""
    words = ("certainty", "k.py::half", "--inputs", "x.npz")
    more = ("--against", "Ascend950PR", "--what-if", "2")
    assert command(*words, *more).err == ""
    monkeypatch.setattr(certainty_command, "monotonic", itertools.count(0.0, 60.0).__next__)
    assert command(*words).err == ""
    assert command(*words, *more).err == "pypto-cast: further runs: about 2 min left\n"


@pytest.mark.parametrize(
    ("seconds", "text"), [(12.4, "12 s"), (89, "89 s"), (600, "10 min"), (9000, "2.5 h")]
)
def test_durations(seconds: float, text: str) -> None:
    assert terminal.duration(seconds) == text


@pytest.mark.slow
@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("line", "word", "completed"),
    [
        ("cast x.npy --to", "DT_FP1", ["DT_FP16"]),
        ("cast x.npy --mode", "CAST_R", ["CAST_RINT", "CAST_ROUND"]),
        ("matrix --chip", "Ascend950", ["Ascend950PR", "Ascend950DT"]),
        ("diff", "--qu", ["--quiet"]),
    ],
)
def test_completion_of_values(line: str, word: str, completed: list[str]) -> None:
    words = f"pypto-cast {line} {word}"
    asked = {"_PYPTO_CAST_COMPLETE": "complete_bash", "COMP_WORDS": words}
    environment = {**os.environ, **asked, "COMP_CWORD": str(len(words.split()) - 1)}
    ran = subprocess.run(
        [sys.executable, "-m", "pypto_cast"],
        capture_output=True,
        text=True,
        env={**environment, "PYTHONPATH": str(ROOT)},
        check=True,
    )
    assert ran.stdout.split() == completed


def test_hints_name_extras_that_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = {
        extra
        for path in (ROOT / "pypto_cast").rglob("*.py")
        for extra in re.findall(r"extra_hint\('(\w+)'\)", path.read_text(encoding="utf-8"))
    }
    assert {"cli", "viz", "torch", "gguf", "dask"} <= named <= set(project["optional-dependencies"])
