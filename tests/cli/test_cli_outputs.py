"""The command's outputs: whole or not there, and never in place of what is read."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from support.environment.command import Command, command, npy
from support.environment.signals import heard
from support.environment.sources import ROOT

from pypto_cast.cli.commands import cast_command
from pypto_cast.tensors.array_files import new_file

__all__ = ["command", "npy"]  # fixtures

SLEEPING_CAST = (
    "import sys, time\n"
    "from pypto_cast.cli.main import main\n"
    "from pypto_cast.cli.commands import cast_command\n"
    "def run(*_):\n"
    "    print('running', flush=True)\n"
    "    time.sleep(60)\n"
    "cast_command.run = run\n"
    "sys.exit(main())\n"
)


def started(program: str, *words: str) -> subprocess.Popen[str]:
    """A Python process with the words of a command line."""
    with heard():
        return subprocess.Popen(
            [sys.executable, "-c", program, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )


def test_an_output_is_replaced_with_force_only(command: Command, npy: Path) -> None:
    output = npy.with_name("y.npy")
    output.write_bytes(b"mine")
    words = ("cast", npy, "--to", "fp16", "--tile", "8,32", "-o", output)
    assert "exists; --force replaces it" in command(*words).error
    assert output.read_bytes() == b"mine"
    assert command(*words, "--force").code == 0
    assert np.load(output).dtype == np.float16
    assert sorted(path.name for path in npy.parent.iterdir()) == ["x.npy", "y.npy"]


@pytest.mark.parametrize("force", [(), ("--force",)], ids=["free", "force"])
@pytest.mark.parametrize("way", ["path", "symlink", "hard-link"])
def test_the_input_is_no_output(
    command: Command, npy: Path, way: str, force: tuple[str, ...]
) -> None:
    output = npy.parent / "." / "x.npy" if way == "path" else npy.with_name("y.npy")
    if way == "symlink":
        output.symlink_to(npy)
    elif way == "hard-link":
        output.hardlink_to(npy)
    before = npy.read_bytes()
    for words in (("cast", npy, "--to", "fp16"), ("trace", npy, "--to", "fp16")):
        error = command(*words, "--tile", "8,32", "-o", output, *force).error
        assert error == f"{output} is the input {npy}; the output needs a file of its own"
    assert npy.read_bytes() == before


def test_the_checkpoint_is_no_output(command: Command, tmp_path: Path) -> None:
    source = tmp_path / "m.safetensors"
    save_file({"a": np.ones(64, np.float32)}, source)
    before = source.read_bytes()
    words = ("checkpoint", source, "--to", "bf16", "-o", source, "--force")
    assert "is the input" in command(*words).error
    assert source.read_bytes() == before


def test_the_cost_set_is_no_output(command: Command, tmp_path: Path) -> None:
    costs = tmp_path / "mine.toml"
    costs.write_text('name = "mine"\n', encoding="utf-8")
    words = ("tune", "--shape", "64", "--from", "fp32", "--to", "fp16", "--cost-set", costs)
    assert "is the input" in command(*words, "--config", costs, "--force").error
    assert costs.read_text(encoding="utf-8") == 'name = "mine"\n'


@pytest.mark.parametrize("is_there", [True, False], ids=["target", "no-target"])
def test_what_a_symlink_leads_to_is_written(command: Command, npy: Path, is_there: bool) -> None:
    folder = npy.parent / "folder"
    folder.mkdir()
    target, link = folder / "target.npy", npy.with_name("y.npy")
    if is_there:
        target.write_bytes(b"mine")
    link.symlink_to(Path("folder", "target.npy"))
    words = ("cast", npy, "--to", "fp16", "--tile", "8,32", "-o", link)
    assert "exists; --force replaces it" in command(*words).error
    assert command(*words, "--force").code == 0
    assert link.is_symlink()
    assert np.load(target).dtype == np.float16
    assert list(folder.iterdir()) == [target]


def test_a_symlink_that_leads_nowhere(command: Command, npy: Path) -> None:
    link = npy.with_name("y.npy")
    link.symlink_to(link)
    words = ("cast", npy, "--to", "fp16", "--tile", "8,32", "-o", link, "--force")
    assert "is no regular file" in command(*words).error
    assert link.is_symlink()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="there is no /dev/stdout")
def test_a_pipe_is_no_output(npy: Path) -> None:
    program = "import sys; from pypto_cast.cli.main import main; sys.exit(main())"
    words = ("cast", str(npy), "--to", "fp16", "-o", "/dev/stdout", "--force")
    with started(program, *words) as ran:
        out, err = ran.communicate(timeout=60)
    assert (ran.returncode, out) == (2, "")
    assert err == (
        "pypto-cast: error: /dev/stdout is no regular file, so it cannot be the output\n"
    )


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends a process without asking it")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_process_that_is_ended_leaves_nothing(npy: Path, name: str) -> None:
    words = ["cast", str(npy), "--to", "fp16", "-o", str(npy.with_name("y.npy"))]
    with started(SLEEPING_CAST, *words) as ran:
        assert ran.stdout is not None
        assert ran.stdout.readline() == "running\n"
        assert len(list(npy.parent.iterdir())) == 2
        ran.send_signal(signal.Signals[name])
        _, err = ran.communicate(timeout=60)
    assert ran.returncode == 2
    assert err.splitlines()[-1] == "pypto-cast: error: interrupted"
    assert [path.name for path in npy.parent.iterdir()] == ["x.npy"]


SLEEPING_KERNEL = """
import sys, time
import pypto_cast as pypto

@pypto.frontend.jit
def kernel(x: pypto.Tensor[[8, 32], pypto.DT_FP32], y: pypto.Tensor[[8, 32], pypto.DT_FP32]):
    pypto.set_vec_tile_shapes(8, 32)
    print("running", file=sys.stderr, flush=True)
    time.sleep(60)
    y[:] = x * 2.0
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends a process without asking it")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_judging_that_is_ended_leaves_nothing(npy: Path, name: str) -> None:
    folder = npy.parent
    (folder / "k.py").write_text(SLEEPING_KERNEL)
    np.savez(folder / "in.npz", x=np.load(npy).reshape(-1)[:256].reshape(8, 32))
    before = sorted(folder.iterdir())
    words = ["judge", str(npy), "--kernel", f"{folder}/k.py::kernel"]
    words += ["--inputs", f"{folder}/in.npz", "--junit", f"{folder}/j.xml"]
    program = "import sys; from pypto_cast.cli.main import main; sys.exit(main())"
    with started(program, *words, "--html", f"{folder}/j.html") as ran:
        assert ran.stderr is not None
        assert ran.stderr.readline() == "running\n"
        ran.send_signal(signal.Signals[name])
        out, err = ran.communicate(timeout=60)
    assert (ran.returncode, out, err) == (2, "", "pypto-cast: error: interrupted\n")
    assert [path for path in sorted(folder.iterdir()) if path.name != "__pycache__"] == before


INTERRUPTED_IMPORT = """
import sys

class Interrupting:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
from pypto_cast.cli.main import main
sys.exit(main(["matrix"]))
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("module", ["numpy._core", "ml_dtypes", "pypto_cast.interface", "typer"])
def test_an_interrupt_while_modules_load_is_one_line(module: str) -> None:
    with started(INTERRUPTED_IMPORT, module) as ran:
        out, err = ran.communicate(timeout=60)
    assert (ran.returncode, out, err) == (2, "", "pypto-cast: error: interrupted\n")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGHUP")
def test_what_nohup_started_goes_on(npy: Path) -> None:
    """A request to end that was ignored when the command came stays ignored."""
    ignoring = "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    output = npy.with_name("y.npy")
    waiting = SLEEPING_CAST.replace("time.sleep(60)", "sys.stdin.readline()\n    sys.exit()")
    with started(ignoring + waiting, "cast", str(npy), "--to", "fp16", "-o", str(output)) as ran:
        assert ran.stdout is not None
        assert ran.stdout.readline() == "running\n"
        ran.send_signal(signal.SIGHUP)
        _, err = ran.communicate("\n", timeout=60)
    assert (ran.returncode, err) == (0, "")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_the_next_run_removes_what_a_killed_one_left(command: Command, npy: Path) -> None:
    output = npy.with_name("z.npy")
    words = ("cast", npy, "--to", "fp16", "--tile", "8,32", "--force", "-o", output)
    killed = ["cast", str(npy), "--to", "fp16", "-o", str(npy.with_name("y.npy"))]
    with started(SLEEPING_CAST, *killed) as ran:
        assert ran.stdout is not None
        assert ran.stdout.readline() == "running\n"
        (part,) = npy.parent.glob(".*")
        assert command(*words).code == 0
        assert part.exists(), "a run that goes on has lost its output"
        ran.kill()
    assert part.exists()
    ran = command(*words[:-1], npy.with_name("y.npy"))
    assert ran.code == 0
    assert f"warning: removed {part}, which a run on" in ran.err
    assert sorted(path.name for path in npy.parent.iterdir()) == ["x.npy", "y.npy", "z.npy"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGHUP")
def test_signals_are_the_callers_again(command: Command) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert command("matrix").code == 0
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_output_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "y"

    def write_while_another_does() -> None:
        with new_file(path) as file:
            file.write(b"mine")
            path.write_bytes(b"theirs")

    with pytest.raises(FileExistsError, match="--force"):
        write_while_another_does()
    assert path.read_bytes() == b"theirs"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("target", ["directory", "missing/y.npy", "/dev/null"])
def test_no_place_for_an_output(command: Command, npy: Path, target: str) -> None:
    (npy.parent / "directory").mkdir()
    output = npy.parent / target
    assert command("cast", npy, "--to", "fp16", "-o", output, "--force").error
    assert sorted(path.name for path in npy.parent.iterdir()) == ["directory", "x.npy"]


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), MemoryError(), RuntimeError("broken")])
def test_a_failure_leaves_nothing(
    command: Command, npy: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr(cast_command, "run", fail)
    ran = command("cast", npy, "--to", "fp16", "-o", npy.with_name("y.npy"))
    assert ran.error in ("interrupted", "not enough memory", "broken")
    assert [path.name for path in npy.parent.iterdir()] == ["x.npy"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows limits no file's size")
@pytest.mark.parametrize("kind", ["array", "checkpoint"])
def test_no_room_names_file_and_size(tmp_path: Path, kind: str) -> None:
    values = np.ones(100_000, np.float32)
    source, output = tmp_path / "x", tmp_path / "y"
    if kind == "array":
        source = tmp_path / "x.npy"
        np.save(source, values)
    else:
        save_file({"a": values}, source)
    program = (
        "import resource, sys\n"
        "from pypto_cast.cli.main import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
        "sys.exit(main())\n"
    )
    name = "cast" if kind == "array" else kind
    with started(program, name, str(source), "--to", "fp16", "-o", str(output)) as ran:
        _, err = ran.communicate(timeout=60)
    assert ran.returncode == 2
    says = (
        rf"{re.escape(str(output))}: File too large; it has 50,000 B, and [\d,]+ B more do not fit"
    )
    assert re.search(says, err.splitlines()[-1]), err
    assert list(tmp_path.iterdir()) == [source]
