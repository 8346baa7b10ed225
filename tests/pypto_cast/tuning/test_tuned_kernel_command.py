"""`pypto-cast tune FILE::KERNEL`: its tables, its files, its errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.environment.command import Command, command
from test_tuned_kernel import file

__all__ = ["command", "file"]  # fixtures


def test_the_command(command: Command, file: Path) -> None:
    read = json.loads(command("tune", f"{file}::rows", "--top", 2, "--json").out)
    assert read["report_kind"] == "tune-kernel"
    assert len(read["candidates"]) == 2
    written = command("tune", f"{file}::rows", "--write")
    assert written.out == f"{read['lines'][0]}\n"
    shown = command("tune", f"{file}::rows", "--top", 2, "--chip", "Ascend910B3")
    assert "candidates looked at" in " ".join(shown.out.split())
    assert f"rests on {read['not_measured']}" in " ".join(shown.out.split())


def test_the_command_resumes(command: Command, file: Path, tmp_path: Path) -> None:
    words = ("tune", f"{file}::rows", "--jobs", 1, "--json", "--cache", tmp_path / "kept.jsonl")
    first = command(*words).json
    held = (tmp_path / "kept.jsonl").read_text()
    second = command(*words).json
    assert (tmp_path / "kept.jsonl").read_text() == held
    assert second == first
    shown = " ".join(command(*(each for each in words if each != "--json")).out.split())
    assert f"{len(held.splitlines())} were planned by an earlier search" in shown
    assert "the output needs a file of its own" in command(*words[:-1], file).error
    (tmp_path / "kept.jsonl").write_text('{"key": "x", "outcome": "planned", "planned": []}\n')
    assert "no result of a sweep or of tune (planned is not as outcome says)" in (
        command(*words).error
    )
    error = command("tune", "--shape", "4,4", "--from", "fp32", "--to", "fp16", *words[-2:]).error
    assert error.startswith("--cache would change nothing of a cast")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            "::none",
            "has no kernel none; it has rows, turned, looped, large, unset, failing, misnamed",
        ),
        ("::failing", "of the kernel's own"),
        ("::misnamed", "kernels.py:46: NameError: name 'other' is not defined"),
        ("::unset", "calls no set_vec_tile_shapes before an operation"),
        ("::rows --top 0", "--top is the number of candidates to show, 1 or more; got 0"),
        ("::rows --from fp32", "--from would change nothing beside"),
        ("::rows --to fp32", "--to would change nothing beside"),
        ("::rows --shape 64,64", "--shape is NAME=N,N"),
        ("::rows --release 9", "release"),
    ],
)
def test_errors_of_a_kernel_are_one_line(
    command: Command, file: Path, words: str, says: str
) -> None:
    first, *rest = words.split()
    assert says in command("tune", f"{file}{first}", *rest).error


def test_the_former_name_of_config_line_warns(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("--shape", "64,96", "--from", "fp32", "--to", "fp16", "--config", "c.json")
    ran = command("tune", *words, "--kernel", "elsewhere.py:29")
    assert ran.code == 0
    assert "tune --kernel is --config-line now" in ran.err
    both = command("tune", *words, "--kernel", "a.py:29", "--config-line", "a.py:30")
    assert both.error.startswith("--kernel is the former name of --config-line")
