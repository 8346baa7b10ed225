"""FILE::KERNEL on the command line: what is refused in one line, before anything is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.environment.command import Command, command
from support.programs.upstream_dumps import compiler

from ascend_kernels.schedule.schedule import Schedule
from pypto_cast.cli.commands import check_schedule_command

__all__ = ["command"]
SOURCE = """\
import sys
import pypto_cast as pypto

T = pypto.Tensor([8, 64], pypto.DT_FP32)
Open = pypto.Tensor([pypto.DYNAMIC, 64], pypto.DT_FP32)

@pypto.jit
def gr\u00f6\u00dfe(x: T, y: T):
    pypto.set_vec_tile_shapes(8, 64)
    y[:] = pypto.exp(x)

@pypto.jit
def open_rows(x: Open, y: T):
    y[:] = pypto.exp(x)

@pypto.jit
def ends(x: T, y: T):
    sys.exit(0)

@pypto.jit
def raises(x: T, y: T):
    raise KeyError("two\\nlines")
"""
PLANS = ("schedule", "tune")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "k\u00e4rnel.py"
    path.write_text(SOURCE, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", [*PLANS, "check-schedule"])
@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("{}", "a kernel is named FILE::KERNEL"),
        ("{}::none", "has no kernel none; it has gr\u00f6\u00dfe, open_rows, ends, raises"),
        ("{}.none::one", "there is no such file"),
        ("/dev/null::one", "/dev/null is no regular file"),
        ("{}::open_rows", "the shape of x is open; say --shape x=N,N"),
        ("{}::open_rows --shape x=1,64 --shape x=2,64", "--shape names a tensor twice"),
        ("{}::open_rows --shape x=0,64", "--shape is NAME=N,N of 1 or more"),
        ("{}::open_rows --shape x=" + "9" * 5000, "--shape is NAME=N,N of 1 or more"),
        ("{}::ends --release 9", "option release must be one of"),
        ("{}::ends --chip none", "unknown chip 'none'"),
    ],
)
def test_a_kernel_that_is_not_there(
    command: Command, file: Path, name: str, words: str, says: str
) -> None:
    assert says in command(name, *words.format(file).split()).error


@pytest.mark.parametrize("name", [*PLANS, "check-schedule"])
def test_a_kernel_that_ends_the_program_or_raises(
    command: Command, file: Path, tmp_path: Path, name: str
) -> None:
    words = ("--python", compiler(tmp_path)) if name == "check-schedule" else ()
    if words:
        file.write_text(SOURCE.replace("T = pypto.Tensor([8, 64]", "T = pypto.Tensor([128, 512]"))
        file.write_text(file.read_text().replace("def ends", "def softmax"))
    ends = "softmax" if words else "ends"
    assert "rnel.py ends the program, with 0, as a kernel of it runs" in (
        command(name, f"{file}::{ends}", *words).error
    )
    file.write_text(file.read_text().replace("sys.exit(0)", "raise KeyError('two\\nlines')"))
    assert "rnel.py:18: KeyError: 'two" in command(name, f"{file}::{ends}", *words).error


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("tune --seconds 0", "--seconds is a limit of time of 1 or more; got 0.0"),
        ("tune --seconds nan", "--seconds is a limit of time of 1 or more; got nan"),
        ("tune --top -1", "--top is the number of candidates to show, 1 or more; got -1"),
        ("tune --json --write", "--json and --write exclude each other"),
        ("tune -o -", "only --csv takes - to print"),
        ("tune -o /dev/null", "/dev/null is no regular file"),
        ("tune -o {} --force", "is the input"),
        ("schedule -o /dev/null", "/dev/null is no regular file"),
        ("schedule -o {} --force", "is the input"),
        ("schedule --html {} --force", "is the input"),
        ("schedule --tile =16,64", "--tile is [LINE=]N,N, as 14=32,256; got '=16,64'"),
        ("schedule --tile 9=9=16,64", "--tile is [LINE=]N,N"),
        ("schedule --tile 9=16,", "a tile is positive ints with commas between"),
        ("schedule --tile 16", "sets no tile shape of 1 entry; its calls"),
        ("certainty --inputs x.npz --html {} --force", "is the input"),
    ],
)
def test_words_that_are_refused_and_lose_nothing(
    command: Command, file: Path, words: str, says: str
) -> None:
    name, *rest = words.format(file).split()
    assert says in command(name, f"{file}::gr\u00f6\u00dfe", *rest).error
    assert file.read_text(encoding="utf-8") == SOURCE


def test_a_name_in_unicode(command: Command, file: Path) -> None:
    assert command("schedule", f"{file}::gr\u00f6\u00dfe").out.startswith("gr\u00f6\u00dfe: 1 leaf")
    ran = command("tune", f"{file}::gr\u00f6\u00dfe", "--write", "--top", 1)
    code, _, place = ran.out.partition("  # ")
    assert place == "k\u00e4rnel.py:9\n"
    assert eval(code.removeprefix("pypto.set_vec_tile_shapes"))


def test_a_compiled_kernel_is_judged_at_the_release_and_on_the_chip_asked_for(
    command: Command, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[tuple[str, str]] = []

    def check(schedule: Schedule, *_: object, **__: object) -> None:
        judged.append((schedule.release, schedule.chip))

    monkeypatch.setattr(check_schedule_command, "check", check)
    monkeypatch.setattr(check_schedule_command, "unknown_lines", lambda *_: ())
    text = SOURCE.replace("[8, 64]", "[128, 512]").replace("gr\u00f6\u00dfe", "softmax")
    file.write_text(text, encoding="utf-8")
    words = ("check-schedule", f"{file}::softmax", "--python", compiler(tmp_path))

    assert command(*words).code == 0
    assert command(*words, "--release", "head", "--chip", "Ascend910B4").code == 0

    assert judged[0][0] == "0.2.0"
    assert judged[1] == ("head", "Ascend910B4")
    dump = ("check-schedule", "--upstream-dump", tmp_path, "--release", "head", "--chip", "x")
    assert "--release and --chip would change nothing of a dump" in command(*dump).error
