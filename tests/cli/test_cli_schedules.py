"""`pypto-cast compile` and `check-schedule`: upstream's own program of a kernel, executed."""

from __future__ import annotations

import os
from pathlib import Path, PurePath

import numpy as np
import pytest
from support.environment.command import Command, command
from support.programs.upstream_dumps import DUMPS, compiler, interpreter, unpacked

from ascend_kernels.schedule.upstream_dump import DUMP_FILES

__all__ = ["command"]

ERROR = """ERROR:root:Record function softmax failed: RuntimeError: Errcode: FC0000!
Only allow to expand one axis!, func Expand
[op EXP]tile shape not set"""


@pytest.fixture
def kernel(tmp_path: Path) -> str:
    path = tmp_path / "softmax.py"
    path.write_text((DUMPS / "softmax.py").read_text())
    return f"{path}::softmax"


def test_a_dump_is_executed_under_the_guards(command: Command, kernel: str, tmp_path: Path) -> None:
    dump = unpacked("softmax", tmp_path)
    arrays = {name: np.full((128, 512), 0.5, np.float32) for name in ("x", "y")}
    np.savez(tmp_path / "inputs.npz", **arrays)

    words = ("check-schedule", "--upstream-dump", dump)
    assert command(*words).out == "OK: softmax, 1 leaves, 4 tasks, by every guard\n"
    compared = command(*words, "--kernel", kernel, "--inputs", tmp_path / "inputs.npz")
    assert compared.out == "OK: softmax, 1 leaves, 4 tasks, by every guard and the tensor level\n"


def test_what_is_found_ends_with_1_and_what_is_not_executed_with_2(
    command: Command, kernel: str, tmp_path: Path
) -> None:
    dump = unpacked("softmax", tmp_path)
    (leaf,) = dump.glob("Pass_36_*/*_LEAF_*.json")
    whole = leaf.read_text()
    words = ("check-schedule", "--upstream-dump", dump, "--kernel", kernel)

    leaf.write_text(whole.replace('"BAR.V"', '"PHASE1"'))
    ran = command(*words)
    assert (ran.code, ran.err) == (1, "")
    assert "operation 5 ROWMAX_SINGLE" in ran.out.replace("\n", " ")
    assert "no flag or barrier puts V before V" in ran.out.replace("\n", " ")
    leaf.write_text(whole.replace('"EXP"', '"ABS"'))
    ran = command(*words)
    assert (ran.code, "elements cannot be" in ran.out) == (1, True)
    leaf.write_text(whole.replace('"EXP"', '"WHIRL"'))
    assert "not executed: 1 of 1 leaves" in command(*words).error


def test_a_kernel_is_compiled_and_its_file_stays(
    command: Command, kernel: str, tmp_path: Path
) -> None:
    file = Path(kernel.partition("::")[0])
    before = file.read_text()
    python = compiler(tmp_path)

    ran = command("compile", kernel, "--python", python, "-o", tmp_path / "kept")

    assert ran.code == 0
    assert ran.out.startswith("softmax: 1 leaves, 4 tasks, UB 181248 B as allocated, 131072 B")
    assert file.read_text() == before
    given = (tmp_path / "given.py").read_text()
    assert given == before.replace("import pypto_cast as pypto", "import pypto")
    kept = {str(x.relative_to(tmp_path / "kept")) for x in (tmp_path / "kept").rglob("*.*")}
    assert "large.json" not in kept
    assert all(any(map(PurePath(path).match, DUMP_FILES)) for path in kept)
    assert "exists" in command("compile", kernel, "-o", tmp_path / "kept").error
    checked = command("check-schedule", kernel, "--python", python, "--json")
    assert checked.json == {
        "report_version": 1,
        "report_kind": "check-schedule",
        "kernel": "softmax",
        "leaves": 1,
        "tasks": 4,
        "peak_ub_bytes": 181_248,
        "needed_ub_bytes": 131_072,
        "judged_by": "every guard and the tensor level",
        "found": None,
    }


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ((f"cat <<'END'\n{ERROR}\nEND",), "FC0000! Only allow to expand one axis!, func Expand"),
        (("sleep 60",), "did not end within 1 s"),
        ((), "nothing was printed"),
        (("echo \"ModuleNotFoundError: No module named 'torch'\"; exit 1",), "named 'torch'"),
    ],
    ids=["refused", "endless", "silent", "no wheel"],
)
def test_the_first_real_error_is_shown(
    command: Command, kernel: str, tmp_path: Path, lines: tuple[str, ...], says: str
) -> None:
    words = ("--python", interpreter(tmp_path, *lines), "--seconds", 1, "-o", tmp_path / "kept")

    assert says in command("compile", kernel, *words).error
    assert not (tmp_path / "kept").exists()
    assert not list(tmp_path.glob("tmp*"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("compile", "{}"), "name a new folder for the dump: -o DIR"),
        (("compile", "{}", "-o", "d", "--shape", "x=a"), "--shape is NAME=N,N, as x=1024,256"),
        (("compile", "{}", "-o", "d", "--shape", "z=4,4"), "softmax takes x, y, not z"),
        (("compile", "{}", "-o", "d", "--python", "/nowhere"), "/nowhere cannot be run"),
        (("check-schedule",), "name either FILE::KERNEL or --upstream-dump DIR"),
        (("check-schedule", "{}", "--upstream-dump", "d"), "name either FILE::KERNEL or"),
        (("check-schedule", "--upstream-dump", "nothing"), "no dump of upstream's compiler"),
    ],
)
def test_bad_words_are_refused(
    command: Command,
    kernel: str,
    words: tuple[str, ...],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)

    assert says in command(*(word.format(kernel) for word in words)).error
    assert os.listdir(tmp_path) == ["softmax.py"]
