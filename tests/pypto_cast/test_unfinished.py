"""Outputs that are being made: killed, run twice, on file systems that lack locks or moves."""

from __future__ import annotations

import contextlib
import dis
import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from support.environment.command import Command, command
from support.environment.models import save_sharded
from support.environment.sources import ROOT

from pypto_cast import unfinished
from pypto_cast.checkpoints.directories import new_directory
from pypto_cast.tensors.array_files import new_file

__all__ = ["command"]  # a fixture

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither kill nor renameat2")
# Ends at the first step that could give the output its name, as by SIGKILL.
KILLED = """
import os, sys
from pypto_cast.cli.main import main
def end(event, arguments):
    moves = event in ("os.rename", "os.link")
    if moves or (event == "ctypes.dlsym" and arguments[1] == "renameat2"):
        os._exit(9)
main(["checkpoint", "--nothing"])  # imports once for all
for words in sys.argv[1:]:
    child = os.fork()
    if not child:
        sys.addaudithook(end)
        os._exit(main(words.split("|")))
    os.waitpid(child, 0)
"""


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.slow
@posix
def test_no_name_before_its_content(command: Command, tmp_path: Path) -> None:
    """Every command's way to an output: files, with and without --force, directories, reports."""
    np.save(tmp_path / "x.npy", np.ones(64, np.float32))
    (tmp_path / "old.npy").write_bytes(b"old")
    save_sharded(tmp_path / "in")
    x, to = f"{tmp_path}/x.npy", "--to|bf16"
    runs = {
        "y.npy": f"cast|{x}|{to}|-o|{tmp_path}/y.npy",
        "old.npy": f"cast|{x}|{to}|--force|-o|{tmp_path}/old.npy",
        "y.safetensors": f"checkpoint|{x}|{to}|-o|{tmp_path}/y.safetensors",
        "y.html": f"checkpoint|{x}|{to}|--html|{tmp_path}/y.html",
        "out": f"checkpoint|{tmp_path}/in|{to}|-o|{tmp_path}/out",
        "c.csv": f"tune|--shape|64|--from|fp32|{to}|--csv|{tmp_path}/c.csv",
    }
    program = [sys.executable, "-c", KILLED, *runs.values()]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(program, check=True, env=environment, capture_output=True)
    left = {f".{name}.pypto-cast-part" for name in runs}
    assert names(tmp_path) == {"x.npy", "old.npy", "in"} | left
    assert (tmp_path / "old.npy").read_bytes() == b"old"
    for name, words in runs.items():
        ran = command(*words.split("|"))
        assert ran.code == 0, ran.err
        assert f"warning: removed {tmp_path}/.{name}.pypto-cast-part, which a run on" in ran.err
    assert names(tmp_path) == {"x.npy", "in", *runs}


@pytest.mark.slow
@posix
def test_interrupt_at_any_instruction(tmp_path: Path) -> None:
    """One before each bytecode of a run but NOP: all where Python may handle it, and more."""
    files = {unfinished.__file__, contextlib.__file__}
    target, left, interrupted = tmp_path / "y", 0, 0

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        nonlocal left
        if frame.f_code.co_filename not in files:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_code.co_code[frame.f_lasti] != dis.opmap["NOP"]:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGINT)
        return trace

    def run() -> None:
        sys.settrace(trace)
        with unfinished.unfinished(target) as folder:
            (folder / "part").write_bytes(b"x")
        sys.settrace(None)

    while left <= 0:
        interrupted += 1
        left = interrupted
        try:
            run()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        assert not names(tmp_path), interrupted
        assert not unfinished._HELD, interrupted
    assert interrupted > 500


ORPHANED = """
import os, sys
from pathlib import Path
from pypto_cast.tensors.array_files import new_file
with new_file(Path(sys.argv[1])) as file:
    if os.fork():
        os._exit(9)
    print("running", flush=True)
    sys.stdin.read()
    os._exit(0)
"""


@pytest.mark.slow
@posix
def test_a_lock_ends_with_its_run_and_not_with_its_workers(tmp_path: Path) -> None:
    program = [sys.executable, "-c", ORPHANED, str(tmp_path / "out")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(program, env=environment, text=True, **pipes) as ran:
        assert ran.stdout is not None
        assert ran.stdout.readline() == "running\n"
        ran.wait()
        with pytest.warns(unfinished.LeftoverWarning), new_file(tmp_path / "out") as file:
            file.write(b"whole")
    assert names(tmp_path) == {"out"}


@pytest.mark.parametrize("name", ["out", "n" * 250])
def test_of_two_runs_the_second_is_refused(command: Command, tmp_path: Path, name: str) -> None:
    np.save(tmp_path / "x.npy", np.ones(64, np.float32))
    output = tmp_path / name
    with new_file(output) as file:
        file.write(b"mine")
        file.flush()
        (held,) = tmp_path.glob(".*")
        before = {path: path.read_bytes() for path in held.iterdir()}
        for words in (("cast",), ("checkpoint",), ("checkpoint", "--dry-run")):
            words = (*words, tmp_path / "x.npy", "--to", "bf16", "-o", output)
            ran = command(*words)
            assert f"another run writes {output} just now" in ran.out + ran.err
            assert ran.code in (1, 2)
        assert {path: path.read_bytes() for path in held.iterdir()} == before
    assert names(tmp_path) == {"x.npy", name}
    assert output.read_bytes() == b"mine"


def test_a_page_is_refused_before_the_checkpoint(command: Command, tmp_path: Path) -> None:
    save_file({"a": np.ones(64, np.float32)}, tmp_path / "in.safetensors")
    words = ("checkpoint", tmp_path / "in.safetensors", "--to", "bf16", "-o", tmp_path / "out")
    with new_file(tmp_path / "page.html"):
        ran = command(*words, "--html", tmp_path / "page.html")
        assert ran.error == f"another run writes {tmp_path / 'page.html'} just now"
    assert names(tmp_path) == {"in.safetensors", "page.html"}


def test_two_outputs_in_one_place(command: Command, tmp_path: Path) -> None:
    source = save_sharded(tmp_path / "in")
    words = ("checkpoint", source, "--to", "bf16", "--force", "-o", tmp_path / "out")
    assert command(*words).code == 0
    for page in (tmp_path / "out", tmp_path / "out" / "page.html"):
        assert "the same file or in each other" in command(*words, "--html", page).error
    inside = source / "config.json"
    assert "is a file of the input" in command(*words, "--html", inside).error
    assert inside.read_text() == '{"model_type": "tiny"}'


def test_one_of_many_has_the_output(tmp_path: Path) -> None:
    output, won, refused = tmp_path / "out", [], []
    together = threading.Barrier(4)

    def write(number: int) -> None:
        together.wait()
        try:
            with new_file(output, force=True) as file:
                file.write(bytes([number]) * 1000)
                won.append(number)
        except RuntimeError:
            refused.append(number)

    for _ in range(20):
        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(output.read_bytes())) == 1
    assert len(won) + len(refused) == 80
    assert names(tmp_path) == {"out"}


def failing(number: int) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unfinished, "_lock", failing(errno.ENOLCK))
    with new_file(tmp_path / "out") as file:
        file.write(b"1")
        with pytest.raises(OSError, match="cannot tell if a run still writes"):
            new_file(tmp_path / "out", force=True).__enter__()
    assert names(tmp_path) == {"out"}


@posix
def test_file_systems_without_a_move_to_free_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfinished, "_renameat2", failing(errno.EINVAL))

    def write(name: str) -> None:
        with new_file(tmp_path / name) as file:
            file.write(b"mine")
            if name == "theirs":
                (tmp_path / name).write_bytes(b"theirs")

    write("file")
    with pytest.raises(FileExistsError, match="has come into existence"):
        write("theirs")
    with new_directory(tmp_path / "folder", lambda: None) as folder:
        (folder / "x").touch()
    assert names(tmp_path / "folder") == {"x"}
    monkeypatch.setattr(os, "link", failing(errno.EPERM))
    with pytest.raises(OSError, match="--force writes over it"):
        write("no-link")
    assert names(tmp_path) == {"file", "theirs", "folder"}
    assert (tmp_path / "theirs").read_bytes() == b"theirs"


@pytest.mark.parametrize("way", ["file", "link"])
def test_what_is_in_the_way_is_kept(tmp_path: Path, way: str) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis").touch()
    part = tmp_path / ".out.pypto-cast-part"
    if way == "file":
        part.write_bytes(b"theirs")
    else:
        part.symlink_to(mine)
    with pytest.raises(ValueError, match="is no folder"):
        new_file(tmp_path / "out").__enter__()
    assert (mine / "thesis").exists()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="there is no /proc/self/fd")
def test_no_descriptor_stays_open(command: Command, tmp_path: Path) -> None:
    source = save_sharded(tmp_path / "in")
    np.savez(tmp_path / "in.npz", a=np.ones(64, np.float32))
    runs: list[tuple[object, ...]] = [
        (source, "-o", tmp_path / "out"),
        (source, "-o", tmp_path / "out", "--force"),
        (source, "-o", tmp_path / "out"),
        (tmp_path / "in.npz", "-o", tmp_path / "out.npz"),
        (tmp_path / "in.npz", "-o", tmp_path / "held"),
    ]
    with new_file(tmp_path / "held"):
        before = os.listdir("/proc/self/fd")
        codes = [command("checkpoint", *words, "--to", "bf16").code for words in runs]
        assert codes == [0, 0, 2, 0, 2]
        with pytest.raises(RuntimeError, match="another run"):
            new_file(tmp_path / "held").__enter__()
        assert os.listdir("/proc/self/fd") == before


@posix
@pytest.mark.parametrize("moment", ["mkdir", "rmdir"])
def test_an_interrupt_waits_for_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """It comes while the folder is made or removed, and leaves none of it."""
    real = getattr(Path, moment)

    def interrupted(path: Path, *arguments: Any) -> None:
        real(path, *arguments)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Path, moment, interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # nohup's children ignore it
    try:
        with pytest.raises(KeyboardInterrupt), new_file(tmp_path / "out") as file:
            file.write(b"whole")
    finally:
        signal.signal(signal.SIGINT, before)
    assert names(tmp_path) <= {"out"}
