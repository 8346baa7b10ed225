"""The command: what it says when it cannot, and how it behaves as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.environment.command import Command, command, npy
from support.environment.sources import ROOT

import pypto_cast as pypto

__all__ = ["command", "npy"]  # fixtures


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "Missing command"),
        ("fly", "No such command"),
        ("cast", "Missing argument"),
        ("cast x.npy", "--to"),
        ("cast x.npy --to fp16 --fast", "No such option"),
        ("cast x.npy --to fp17", "unknown dtype 'fp17'"),
        ("cast x.npy --to fp8", "does not cast FP32 -> FP8"),
        ("cast x.npy --to int8", "FP32 -> FP16 CAST_TRUNC -> INT8 CAST_TRUNC is exact"),
        ("cast x.npy --to fp16 --mode up", "unknown mode 'up'; known: CAST_NONE"),
        ("cast x.npy --to fp16 --satmode maybe", "unknown satmode"),
        ("cast x.npy --to fp16 --chip Ascend310", "unknown chip 'Ascend310'"),
        ("cast x.npy --to fp16 --tile 8;8", "as in 64,128"),
        ("cast x.npy --to fp16 --tile 8,0", "as in 64,128"),
        (
            "cast x.npy --to fp16 --tile 8",
            "has 1 entry; the output [100, 30] needs at least 2 entries, one for each dimension",
        ),
        ("cast wide.npy --to fp16 --tile 40000", "The nearest tile that fits is [32768]"),
        ("cast x.npy --to int64 --mode odd --strict --tile 8,8", "no mode CAST_ODD"),
        ("cast x.npy --to fp32 --from bf16", "holds float32, which is not DT_BF16"),
        ("cast none.npy --to fp16", "none.npy: No such file or directory"),
        ("cast . --to fp16", "Is a directory"),
        ("cast short.npy --to fp16", "greater than file size"),
        ("cast pickle.npy --to fp16", "no .npy file"),
        ("cast object.npy --to fp16", "Python objects"),
        ("cast archive.npz --to fp16", "no .npy file"),
        ("cast header.npy --to fp16", "no .npy file"),
        ("cast double.npy --to fp16", "double.npy: "),
        ("cast bracket.npy --to fp16", "no .npy file"),
        ("cast double.npy --to fp16", ".astype(numpy.float32)"),
        ("trace double.npy --to fp16", "double.npy: "),
        ("cast struct.npy --to fp16", "struct.npy: "),
        ("cast struct.npy --to fp16", "has no pypto dtype"),
        ("cast empty.npy --to fp16", "no empty tensor"),
        ("cast scalar.npy --to fp16", "1 to 5 dimensions"),
        ("explain", "Missing argument"),
        ("explain zero --from fp32 --to fp16", "'zero' is no number"),
        ("explain 1e99999 --from fp32 --to fp16", "exponent"),
        ("explain 0x1p99999 --from fp32 --to fp16", "exponent"),
        ("explain 128 --from int8 --to fp16", "INT8, which holds -128 to 127"),
        ("explain nan --from int8 --to fp16", "nan is not in INT8"),
        ("explain code:0x10000 --from fp16 --to fp32", "has 16 bits"),
        ("explain code:x --from fp16 --to fp32", "no code of FP16"),
        ("explain 1 --from fp16 --to fp16", "changes nothing"),
        ("explain 1 --from bf16 --to fp16", "BF16 -> FP32 -> FP16"),
        ("explain 1 --from fp8 --to hf8", "FP8 converts to nothing"),
        ("matrix --xml", "No such option"),
    ],
)
def test_errors_are_one_line(
    command: Command, npy: Path, monkeypatch: pytest.MonkeyPatch, words: str, says: str
) -> None:
    monkeypatch.chdir(npy.parent)
    np.save("wide.npy", np.zeros(50000, np.float32))
    Path("short.npy").write_bytes(npy.read_bytes()[:500])
    Path("pickle.npy").write_bytes(b"\x80\x04}.")
    Path("header.npy").write_bytes(b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 65535)
    np.save("object.npy", np.array([{}], object), allow_pickle=True)
    Path("bracket.npy").write_bytes(b"\x93NUMPY\x01\x00\x0c\x00" + b"{'descr': (\n")
    np.savez("archive.npz", x=np.zeros(3))
    np.save("double.npy", np.zeros(3))
    np.save("struct.npy", np.zeros(3, "f4,f4"))
    np.save("empty.npy", np.zeros(0, np.float32))
    np.save("scalar.npy", np.float32(1))
    files = sorted(os.listdir())
    output = ["-o", "out.npy"] if words.startswith("cast x") else []
    assert says in command(*words.split(), *output).error
    assert sorted(os.listdir()) == files


def test_hostile_text_stays_on_its_line(command: Command) -> None:
    assert command("cast", "a\nb\x1b[31m", "--to", "fp16").error.startswith("a b\\x1b[31m: ")


def run_process(
    *words: str,
    code: str = "",
    environment: dict[str, str] | None = None,
    stdout: Any = subprocess.PIPE,
) -> subprocess.CompletedProcess[str]:
    start = ["-c", code] if code else ["-m", "pypto_cast"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}
    return subprocess.run(
        [sys.executable, *start, *words],
        text=True,
        env=environment,
        stdout=stdout,
        stderr=subprocess.PIPE,
    )


def test_version_and_help() -> None:
    engine = pypto.platform().engine
    assert run_process("--version").stdout == f"pypto-cast {pypto.__version__}, engine {engine}\n"
    ran = run_process("checkpoint", "--help")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "--to" in ran.stdout


def test_the_folder_of_the_command_runs_as_a_module() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "pypto_cast.cli", "--version"]
    ran = subprocess.run(words, capture_output=True, text=True, env=environment)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith(f"pypto-cast {pypto.__version__}, ")


def test_h_is_help(command: Command) -> None:
    for words in ((), ("trace",), ("compare",)):
        ran = command(*words, "-h")
        assert (ran.code, ran.err) == (0, "")
        assert ran.out == command(*words, "--help").out
        assert "-h, --help" in ran.out


@pytest.mark.parametrize("name", ["cast", "checkpoint", "trace", "tune", "verify"])
def test_one_spelling_of_the_output(command: Command, name: str) -> None:
    assert "-o, --output " in command(name, "-h").out


@pytest.mark.slow
def test_completion() -> None:
    assert "--install-completion" in run_process("-h").stdout
    asked = {"_PYPTO_CAST_COMPLETE": "complete_bash", "COMP_WORDS": "pypto-cast ch"}
    ran = run_process(environment={**asked, "COMP_CWORD": "1"})
    assert (ran.returncode, ran.stdout.split()) == (0, ["check-schedule", "checkpoint"]), ran.stderr


@pytest.mark.slow
def test_module_and_exit_code() -> None:
    ran = run_process("cast", "none.npy", "--to", "fp16")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "pypto-cast: error: none.npy: No such file or directory\n"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("module", ["typer", "rich"])
def test_without_the_extra(module: str) -> None:
    hide = f"import sys; sys.modules[{module!r}] = None; import pypto_cast.cli.main as c; "
    ran = run_process(code=hide + "sys.exit(c.main())")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.count("\n") == 1
    assert 'pip install ".[cli]" in the checkout of pypto-cast' in ran.stderr


def test_the_package_itself_needs_no_extra() -> None:
    seen = (
        "import sys, pypto_cast, pypto_cast.cli.main; print({'typer', 'rich'} & set(sys.modules))"
    )
    assert run_process(code=seen).stdout == "set()\n"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_output_that_cannot_be_written() -> None:
    with open("/dev/full", "w") as full:
        ran = run_process("matrix", stdout=full)
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        ran = run_process("matrix", stdout=closed)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_a_reader_that_leaves_takes_no_verdict_along(form: tuple[str, ...], tmp_path: Path) -> None:
    np.save(tmp_path / "y.npy", np.zeros(8, np.float32))
    np.save(tmp_path / "g.npy", np.ones(8, np.float32))
    (tmp_path / "k.py").write_text("import pypto\n" + "y = pypto.cast(x, pypto.DT_INT8)\n" * 9)
    files = str(tmp_path / "y.npy"), "--golden", str(tmp_path / "g.npy")
    junit = tmp_path / "judge.xml"
    for words in (
        ("judge", *files, "--junit", str(junit)),
        ("diff", str(tmp_path / "y.npy"), str(tmp_path / "g.npy")),
        ("lint", str(tmp_path / "k.py")),
    ):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "w") as closed:
            ran = run_process(*words, *form, stdout=closed)
        assert (ran.returncode, ran.stderr) == (1, ""), words
    assert "<failure" in junit.read_text()


@pytest.mark.slow
def test_ascii_output_escapes_what_it_lacks(tmp_path: Path) -> None:
    np.save(tmp_path / "größe.npy", np.zeros(8, np.float32))
    words = ("cast", str(tmp_path / "größe.npy"), "--to", "fp16", "--tile", "16")
    code = (
        "import sys; sys.stdout.reconfigure(encoding='ascii'); "
        "from pypto_cast.cli.main import main; sys.exit(main())"
    )
    ran = run_process(*words, code=code)
    assert ran.returncode == 0, ran.stderr
    assert "gr\\xf6\\xdfe.npy" in ran.stdout
