"""Places of outputs: directories exchanged whole, links followed, the input never touched."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file, save_file
from support.environment.command import Command, command
from support.environment.models import WEIGHTS, load_sharded, model, save_sharded

from pypto_cast import unfinished

__all__ = ["command"]  # a fixture

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges directories")
BF16 = ("--to", "bf16", "--no-report")


@linux
def test_an_existing_directory_is_exchanged(command: Command, tmp_path: Path) -> None:
    source, output = save_sharded(tmp_path / "in"), save_sharded(tmp_path / "out")
    words = ("checkpoint", source, *BF16, "-o", output)
    assert command(*words).error == f"{output} exists; --force replaces it"
    assert command(*words, "--force").code == 0
    assert load_sharded(output)[WEIGHTS[0]].dtype == "bfloat16"
    assert {path.name for path in tmp_path.iterdir()} == {"in", "out"}


@linux
def test_a_file_system_that_cannot_exchange(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, output = save_sharded(tmp_path / "in"), save_sharded(tmp_path / "out")
    monkeypatch.setattr(unfinished, "_EXCHANGE", 1 << 20)  # a flag that there is not
    ran = command("checkpoint", source, *BF16, "-o", output, "--force")
    assert "this file system cannot exchange directories; remove this one first" in ran.error
    assert load_sharded(output)[WEIGHTS[0]].dtype == "float32"
    assert {path.name for path in tmp_path.iterdir()} == {"in", "out"}


def test_what_is_no_checkpoint_is_not_replaced(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, output = save_sharded(tmp_path / "in"), tmp_path / "out"
    output.mkdir()
    (output / "thesis.txt").write_text("years of work")
    words = ("checkpoint", source, *BF16, "--force", "-o")
    assert "the model there: thesis.txt; move it away" in command(*words, output).error
    assert (output / "thesis.txt").exists()
    (output / "x").touch()
    assert "is no directory, and the output is one" in command(*words, output / "x").error
    for inside in (source, source / "sub" / "out", tmp_path):
        assert "need places of their own" in command(*words, inside).error
    assert "no directory to write" in command(*words, tmp_path / "none" / "out").error
    here = save_sharded(tmp_path / "here")
    monkeypatch.chdir(here)
    assert "holds the current directory" in command(*words, here).error


def test_links_are_followed(command: Command, tmp_path: Path) -> None:
    blobs = save_sharded(tmp_path / "blobs")
    source = tmp_path / "in"
    source.mkdir()
    for path in blobs.iterdir():
        (source / path.name).symlink_to(path)
    place = tmp_path / "place"
    place.mkdir()
    link = tmp_path / "link"
    link.symlink_to(place / "model")
    assert command("checkpoint", source, *BF16, "-o", link).code == 0
    assert link.is_symlink()
    assert load_sharded(place / "model")[WEIGHTS[0]].dtype == "bfloat16"
    assert not (place / "model" / "config.json").is_symlink()
    assert load_sharded(blobs)[WEIGHTS[0]].dtype == "float32"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on a file's size")
@pytest.mark.parametrize("form", ["single", "sharded", "torch"])
def test_a_full_disk_leaves_nothing(command: Command, tmp_path: Path, form: str) -> None:
    source, more = tmp_path / "in.safetensors", []
    if form == "torch":
        torch: Any = pytest.importorskip("torch", reason=".pt files need torch")
        source = tmp_path / "in.pt"
        torch.save({"a": torch.zeros(300, 300)}, source)
    else:
        big = {**model(), "big": model()[WEIGHTS[0]].repeat(100, 0)}
        save_file(big, source)
        more = ["--shard-size", "1GB"] if form == "sharded" else []
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limit[1]))
    try:
        ran = command("checkpoint", source, *BF16, *more, "-o", tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert "do not fit" in ran.error
    assert [path.name for path in tmp_path.iterdir()] == [source.name]


def test_the_mode_of_other_files_is_theirs(command: Command, tmp_path: Path) -> None:
    save_file(model(), tmp_path / "in.safetensors")
    words = ("checkpoint", tmp_path / "in.safetensors", *BF16, "-o", tmp_path / "out")
    assert command(*words).code == 0
    os.chmod(tmp_path / "out", 0o600)
    assert command(*words, "--force").code == 0
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o600
    assert load_file(tmp_path / "out")[WEIGHTS[0]].dtype == "bfloat16"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps no such permissions")
def test_what_lies_beside_a_model_keeps_its_permissions(command: Command, tmp_path: Path) -> None:
    source = save_sharded(tmp_path / "in")
    (source / "secrets").mkdir()
    modes = {"run.sh": 0o755, "token": 0o600, "secrets/read_only": 0o400, "secrets": 0o700}
    for name, mode in modes.items():
        if name != "secrets":
            (source / name).touch()
        os.chmod(source / name, mode)
    words = ("checkpoint", source, *BF16, "-o", tmp_path / "out")
    for more in ((), ("--force",)):
        assert command(*words, *more).code == 0
        found = {name: (tmp_path / "out" / name).stat().st_mode & 0o777 for name in modes}
        assert found == modes
